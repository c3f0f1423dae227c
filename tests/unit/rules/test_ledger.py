"""The ledger: keys that name a child or its parent, entries that name a total, numbers that are exact and sort as text."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.numbers import is_holdable
from sync_rules.rules import ledger
from sync_rules.rules.ledger import Contribution
from tests.support.builders import entity, key, n, s, table

numbers = st.builds(
    lambda sign, digits, exponent: Decimal((sign, tuple(map(int, digits)), exponent - len(digits) + 1)),
    st.sampled_from([0, 1]),
    st.text("0123456789", min_size=1, max_size=38).map(lambda digits: digits if digits.strip("0") else "0"),
    st.integers(-130, 125),
).filter(is_holdable)

COUNTS = table("counts", {"PK": "S", "SK": "S"})
SHOP = table("shop", {"PK": "S", "SK": "S"})
NUMBERED = table("numbered", {"year": "N", "page": "N"})
PAIRS = table("pairs", {"left": "S", "right": "S"})
ENTITIES = {
    "composite": (entity("order", SHOP, PK="USER#{id}", SK="ORDER#{order_id}#{line}"), key(SHOP, "USER#1", "ORDER#2#3")),
    "fixed": (entity("user", SHOP, PK="USER#{id}", SK="PROFILE"), key(SHOP, "USER#1", "PROFILE")),
    "twice": (entity("node", SHOP, PK="{id}", SK="{id}"), key(SHOP, "a/b", "a/b")),
    "numbers": (entity("page", NUMBERED), key(NUMBERED, "-2024", "0.5")),
    "slashes": (entity("pair", PAIRS), key(PAIRS, "a/b", "/")),
    "like ours": (entity("mean", PAIRS, left="{shard}/{rank}", right="{parent.id}"), key(PAIRS, "7/~", "child.id")),
}  # fmt: skip


# ---------------------------------------------------------------- numbers
@given(numbers, numbers)
def test_rank_text_sorts_as_the_numbers_do(one, two):
    """The texts of two numbers are in the order of the numbers, also with a key behind them."""
    left, right = (f"{ledger.format_rank(number)}{ledger.BETWEEN}key" for number in (one, two))
    assert (left < right, left == right) == (one < two, one == two)


# ---------------------------------------------------------------- keys
@pytest.mark.parametrize("child", ENTITIES)
@pytest.mark.parametrize("parent", ENTITIES)
@pytest.mark.parametrize("shards", [1, 12])
def test_ledger_keys_name_child_and_parent_and_nothing_else(child, parent, shards):
    """Each ledger key names its child or parent, and no two ledger items share a key."""
    (child, child_key), (parent, parent_key) = ENTITIES[child], ENTITIES[parent]
    made = ledger.make_ledger_entities("spent", child, parent, COUNTS, shards)
    children, parents = (
        ledger.write_fields("child", child, child_key),
        ledger.write_fields("parent", parent, parent_key),
    )
    keys = {
        made.entries: made.entries.key_of(children),
        made.totals: made.totals.key_of({**parents, "shard": s("11")}),
        made.ranks: made.ranks.key_of({**parents, **children, "rank": s("-999~")}),
    }
    assert ledger.read_key("child", child, made.entries.fields(keys[made.entries])) == child_key
    assert ledger.read_key("parent", parent, made.totals.fields(keys[made.totals])) == parent_key
    assert ledger.read_key("child", child, made.ranks.fields(keys[made.ranks])) == child_key
    assert ledger.read_key("parent", parent, made.ranks.fields(keys[made.ranks])) == parent_key
    nowhere = ledger.make_vacant_key("spent", COUNTS, child_key)
    for one in keys:
        assert [other for other in keys if one.fields(keys[other]) is not None] == [one]
        assert one.fields(nowhere) is None


def test_ledger_keys_of_two_rules_differ():
    """One table takes the ledgers of many rules, even when one's name begins with the other's."""
    (order, order_key), (user, _) = ENTITIES["composite"], ENTITIES["fixed"]
    one, two = (ledger.make_ledger_entities(name, order, user, COUNTS, 2) for name in ("n", "n-L"))
    at = two.entries.key_of(ledger.write_fields("child", order, order_key))
    assert two.entries.fields(at) is not None
    assert [e for e in (one.entries, one.totals, one.ranks) if e.fields(at) is not None] == []


@pytest.mark.parametrize(
    ("keys", "fits"),
    [
        ({"PK": "S", "SK": "S"}, True),
        ({"PK": "S"}, False),
        ({"PK": "S", "SK": "N"}, False),
        ({"n": "S", "SK": "S"}, False),
        ({"PK": "S", "=x": "S"}, False),
    ],
)
def test_ledger_needs_a_table_with_two_strings_for_a_key(keys, fits):
    """A ledger's table needs a key of two strings whose names are not the ledger's own."""
    assert ledger.is_suitable(table("t", keys)) is fits


@pytest.mark.parametrize(("kind", "is_supported"), [("S", True), ("N", True), ("B", False)])
def test_ledger_supports_no_binary_keys(kind, is_supported):
    """Binary has no place in a text."""
    assert ledger.is_supported(entity("e", table("t", {"id": kind}))) is is_supported


# ---------------------------------------------------------------- entries


@pytest.mark.parametrize("broken", [{"n": s("1")}, {"at": n(1)}, {"into": s("x")}, {"into": {"L": [s("x")]}}, {"into": {"L": [s("x"), n(1)]}}])  # fmt: skip
def test_entry_that_somebody_else_wrote_says_nothing(broken):
    """An entry that is not in the pipeline's form is no contribution."""
    at = key(COUNTS, "spent/L/1", "-")
    entry = ledger.make_entry(at, Contribution(key(COUNTS, "spent/T/u", "-"), "n", Decimal(1)))
    assert ledger.read_contribution(COUNTS, {**entry, **broken}) is None
