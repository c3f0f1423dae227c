"""DynamoDB's semantics in memory: updates, sets and numbers; the contract suite compares stores with the service."""

from __future__ import annotations

from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.semantics import (
    InvalidUpdateError,
    apply_action,
    apply_update,
    apply_write,
    convert_to_update,
    is_well_formed,
)
from sync_rules.model.templates import CANONICAL_NUMBER
from sync_rules.model.values import is_same_value
from sync_rules.model.writes import Check, Delete, Increment, Put, Transaction, Update
from tests.support.builders import key, m, n, s, table

THINGS = table("things", {"id": "S"})
AT = key(THINGS, "1")
A = ("a",)


def change(sets=(), removes=(), adds=(), discards=()):
    return Update(AT, tuple(sets), tuple(removes), (), tuple(adds), tuple(discards))


def plus(**amounts):
    return convert_to_update(Increment(AT, tuple(amounts.items())))


@pytest.mark.parametrize(
    "action",
    [
        change([(A, m()), (("a", "b"), n(1))]),
        change([(A, n(1))], [A]),
        change([(A, {"SS": ["x"]})], adds=[(A, {"SS": ["y"]})]),
        change(adds=[(A, {"SS": ["x"]})], discards=[(A, {"SS": ["y"]})]),
        change([(("id",), s("1"))]),
        change([(A, m(b={"L": [{"SS": []}]}))]),
        change(adds=[(A, {"SS": []})]),
        change(discards=[(A, {"NS": ["1", "1.0"]})]),
        Increment(AT, (("a", "1"), ("a", "2"))),
        Increment(AT, (("a", "1" * 39),)),
        Increment(AT, (("a", "one"),)),
        Increment(AT, (("id", "1"),)),
        Put(AT, {"id": s("1"), "a": {"BS": []}}, ()),
    ],
    ids=lambda action: str(action)[:60],
)
def test_is_well_formed_refuses_what_dynamodb_refuses_unseen(action):
    """Paths that touch, a path of the key, an empty set, an element twice, a number that cannot be."""
    assert not is_well_formed(action)


# ---------------------------------------------------------------- what comes of it
sets_of_text = st.sets(st.sampled_from("wxyz"))
sets_of_numbers = st.sets(st.decimals(-3, 3, places=1))
spellings = st.sampled_from(["{}", "{}0", "{}e0", "{:.3f}"])


def held(elements):
    """A set as an attribute: none when it is empty."""
    return {"a": {"SS": sorted(elements)}} if elements else {}


@given(sets_of_text, sets_of_text.filter(bool))
def test_apply_update_adds_and_discards_as_sets_do(before, elements):
    """Union and difference; the empty set is no attribute."""
    of_text = {"SS": sorted(elements)}
    added, discarded = (apply_update(held(before), change(**{verb: [(A, of_text)]})) for verb in ("adds", "discards"))
    assert is_same_value({"M": added}, {"M": held(before | elements)})
    assert is_same_value({"M": discarded}, {"M": held(before - elements)})


@given(sets_of_numbers.filter(bool), sets_of_numbers.filter(bool), spellings)
def test_apply_update_knows_elements_by_value(before, elements, spelling):
    """A number is in a set once, however it is spelt."""
    item = {"a": {"NS": [str(number) for number in before]}}
    spelt = {"NS": [spelling.format(number) for number in elements]}
    added, discarded = (apply_update(item, change(**{verb: [(A, spelt)]})) for verb in ("adds", "discards"))
    assert sorted(map(Decimal, added["a"]["NS"])) == sorted(before | elements)
    assert sorted(map(Decimal, discarded.get("a", {"NS": []})["NS"])) == sorted(before - elements)


numbers = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(-(10**18), 10**18), st.integers(-15, 15)
)


@given(numbers, numbers)
def test_apply_update_sums_are_exact_and_plain(left, right):
    """A sum is exact, in DynamoDB's own form, or refused if it needs more than 38 digits."""
    exact = Context(prec=100).add(left, right)
    digits = len(exact.normalize(Context(prec=100)).as_tuple().digits)
    try:
        found = apply_update({"a": n(str(left))}, plus(a=str(right)))["a"]["N"]
    except InvalidUpdateError:
        assert digits > 38
    else:
        assert digits <= 38
        assert Decimal(found) == exact
        assert CANONICAL_NUMBER.fullmatch(found)


@pytest.mark.parametrize(
    "write",
    [change(adds=[(A, {"SS": ["x"]})]), change(discards=[(A, {"SS": ["x"]})]), plus(a="1")],
    ids=["add", "discard", "increment"],
)
@pytest.mark.parametrize("stored", [s("x"), {"NULL": True}, {"L": []}, {"BS": [b"x"]}], ids=str)
def test_apply_update_refuses_an_operand_of_another_type(write, stored):
    """Adding to or discarding from a value of another type is refused."""
    with pytest.raises(InvalidUpdateError):
        apply_update({"a": stored}, write)


def test_apply_action_makes_the_item_of_each_action():
    """After an update, a put, a delete, a check, and an update that the service would reject."""
    at = key(table("t", {"id": "S"}), "1")
    before = {"id": s("1"), "a": s("x")}
    change = Update(at, ((("b",), s("y")),), (("a",),), ())
    assert apply_action(change, before) == {"id": s("1"), "b": s("y")}
    assert apply_action(change, None) == {"id": s("1"), "b": s("y")}
    assert apply_action(Put(at, {"id": s("1")}, ()), before) == {"id": s("1")}
    assert apply_action(Delete(at, ()), before) is None
    assert apply_action(Check(at, ()), before) == before
    assert apply_action(Update(at, ((("a", "b"), s("y")),), (), ()), before) == before


def test_apply_write_makes_the_item_of_the_last_action():
    """The target's action comes last. A deleted item, and one that was not read, have no next state."""
    item = {"id": s("1"), "a": s("x")}
    both = Transaction((Check(AT, ()), change([(A, s("y"))])))
    assert apply_write(both, item) == {"id": s("1"), "a": s("y")}
    assert apply_write(change([(A, s("y"))]), None) is None
    assert apply_write(Put(AT, item, ()), None) == item
    assert apply_write(Delete(AT, ()), item) is None
