"""Guards and updates as expressions; their meaning on items is in the contract suite."""

from __future__ import annotations

from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.adapters.expressions import (
    Expressions,
    InvalidUpdateError,
    as_update,
    storable,
    updated,
    well_formed,
    whole,
)
from sync_rules.model.templates import CANONICAL_NUMBER
from sync_rules.model.values import same
from sync_rules.model.writes import Check, Condition, Increment, Put, Test, Update
from tests.support.builders import key, m, n, s, table, update

THINGS = table("things", {"id": "S"})
AT = key(THINGS, "1")
A = ("a",)


def change(sets=(), removes=(), adds=(), discards=()):
    return Update(AT, tuple(sets), tuple(removes), (), tuple(adds), tuple(discards))


def plus(**amounts):
    return as_update(Increment(AT, tuple(amounts.items())))


def test_expressions_hold_placeholders_only():
    """Names and values stand beside the expression, whatever characters they hold."""
    expressions = Expressions()
    guard = expressions.guard(
        [
            Condition(Test.EXISTS, ("PK",)),
            Condition(Test.EQUALS, ("a.b", "c"), s("x' OR 1")),
            Condition(Test.ABSENT, ("size",)),
            Condition(Test.IS_MAP, ("a.b",)),
        ]
    )
    text = expressions.update(change([(("a.b", "c"), n(1))], [("size",)]))
    assert guard == "attribute_exists(#n0) AND #n1.#n2 = :v0 AND attribute_not_exists(#n3) AND attribute_type(#n1, :v1)"
    assert text == "SET #n1.#n2 = :v2 REMOVE #n3"
    assert expressions.parameters() == {
        "ExpressionAttributeNames": {"#n0": "PK", "#n1": "a.b", "#n2": "c", "#n3": "size"},
        "ExpressionAttributeValues": {":v0": s("x' OR 1"), ":v1": s("M"), ":v2": n(1)},
    }


def test_expressions_leave_out_what_is_empty():
    """DynamoDB refuses empty ExpressionAttributeValues."""
    expressions = Expressions()
    expressions.guard([Condition(Test.EXISTS, ("PK",))])
    assert expressions.parameters().keys() == {"ExpressionAttributeNames"}


def test_expressions_name_elements_and_amounts_by_placeholders():
    """ADD and DELETE after SET and REMOVE; an increment is an ADD."""
    expressions = Expressions()
    both = change(
        [(("x",), n(1))], [("y",)], [(("a.b",), {"SS": ["p"]}), (("c",), {"NS": ["1"]})], [(("size",), {"SS": ["q"]})]
    )
    assert expressions.update(both) == "SET #n0 = :v0 REMOVE #n1 ADD #n2 :v1, #n3 :v2 DELETE #n4 :v3"
    assert Expressions().update(plus(a="1", b="-2")) == "ADD #n0 :v0, #n1 :v1"
    assert expressions.parameters()["ExpressionAttributeValues"][":v3"] == {"SS": ["q"]}


# ---------------------------------------------------------------- what can be asked for at all
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
def test_well_formed_refuses_what_dynamodb_refuses_unseen(action):
    """Paths that touch, a path of the key, an empty set, an element twice, a number that cannot be."""
    assert not well_formed(action)


@pytest.mark.parametrize(
    "action",
    [
        Check(AT, ()),
        update(THINGS, AT, a=n(1), b__c=m(x={"SS": ["x"]}, y={"L": []}), removes=("b.d",)),
        change(adds=[(A, {"SS": ["x"]})], discards=[(("b",), {"NS": ["1", "2"]})]),
        Increment(AT, (("a", "-0.5"), ("b", "0"))),
        Put(AT, {"id": s("1"), "a": {"BS": [b""]}}, ()),
    ],
    ids=lambda action: type(action).__name__,
)
def test_well_formed_lets_the_rest_pass(action):
    """A well-formed action passes this check; the item decides later if the action is possible."""
    assert well_formed(action)


@pytest.mark.parametrize(
    ("number", "held"),
    [
        ("1" * 38, True), ("1" * 39, False), ("1" * 38 + "000", True), ("-0." + "1" * 38, True), ("9.9e125", True),
        ("1e126", False), ("1e-130", True), ("1e-131", False), ("0", True), ("NaN", False), ("Infinity", False),
        ("", False),
    ],
)  # fmt: skip
def test_storable_knows_the_numbers(number, held):
    """A number can be stored with at most 38 digits, from 1E-130 to 9.9...E+125."""
    assert storable(n(number)) is held
    assert storable(m(a={"L": [{"NS": [number]}]})) is held


@pytest.mark.parametrize(
    "mistaken",
    [change(adds=[(A, n(1))]), change(discards=[(A, s("x"))]), change(adds=[(("a", "b"), {"SS": ["x"]})])],
    ids=["number", "text", "nested"],
)
def test_as_update_takes_sets_only(mistaken):
    """A number is only ever added in an increment; elements only at the top of an item."""
    with pytest.raises(AssertionError):
        as_update(mistaken)


@pytest.mark.parametrize("item", [{}, {"id": s("2")}, {"id": n(1)}], ids=str)
def test_whole_is_an_item_of_its_own_key(item):
    """A put whose item has another key than the one guarded is refused."""
    with pytest.raises(AssertionError):
        whole(Put(AT, item, ()))


# ---------------------------------------------------------------- what comes of it
sets_of_text = st.sets(st.sampled_from("wxyz"))
sets_of_numbers = st.sets(st.decimals(-3, 3, places=1))
spellings = st.sampled_from(["{}", "{}0", "{}e0", "{:.3f}"])


def held(elements):
    """A set as an attribute: none when it is empty."""
    return {"a": {"SS": sorted(elements)}} if elements else {}


@given(sets_of_text, sets_of_text.filter(bool))
def test_updated_adds_and_discards_as_sets_do(before, elements):
    """Union and difference; the empty set is no attribute."""
    of_text = {"SS": sorted(elements)}
    added, discarded = (updated(held(before), change(**{verb: [(A, of_text)]})) for verb in ("adds", "discards"))
    assert same({"M": added}, {"M": held(before | elements)})
    assert same({"M": discarded}, {"M": held(before - elements)})


@given(sets_of_numbers.filter(bool), sets_of_numbers.filter(bool), spellings)
def test_updated_knows_elements_by_value(before, elements, spelling):
    """A number is in a set once, however it is spelt."""
    item = {"a": {"NS": [str(number) for number in before]}}
    spelt = {"NS": [spelling.format(number) for number in elements]}
    added, discarded = (updated(item, change(**{verb: [(A, spelt)]})) for verb in ("adds", "discards"))
    assert sorted(map(Decimal, added["a"]["NS"])) == sorted(before | elements)
    assert sorted(map(Decimal, discarded.get("a", {"NS": []})["NS"])) == sorted(before - elements)


numbers = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(-(10**18), 10**18), st.integers(-15, 15)
)


@given(numbers, numbers)
def test_updated_sums_are_exact_and_plain(left, right):
    """A sum is exact, in DynamoDB's own form, or refused if it needs more than 38 digits."""
    exact = Context(prec=100).add(left, right)
    digits = len(exact.normalize(Context(prec=100)).as_tuple().digits)
    try:
        found = updated({"a": n(str(left))}, plus(a=str(right)))["a"]["N"]
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
def test_updated_refuses_an_operand_of_another_type(write, stored):
    """Adding to or discarding from a value of another type is refused."""
    with pytest.raises(InvalidUpdateError):
        updated({"a": stored}, write)


def test_updated_leaves_the_item_it_was_given():
    """Items are values: also the sets inside of them."""
    item = {"a": {"SS": ["x"]}, "b": {"SS": ["x"]}, "c": n(1)}
    new = updated(item, change(adds=[(A, {"SS": ["y"]})], discards=[(("b",), {"SS": ["x"]})]))
    assert (item, new) == (
        {"a": {"SS": ["x"]}, "b": {"SS": ["x"]}, "c": n(1)},
        {"a": {"SS": ["x", "y"]}, "c": n(1)},
    )
