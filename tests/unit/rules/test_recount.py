"""The recount kinds: an exact value computed by listing a group's members."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.model.entities import KeyAttribute, Ref
from sync_rules.model.items import Change
from sync_rules.model.lookups import Find
from sync_rules.model.values import Item
from sync_rules.model.where import compile_where
from sync_rules.rules.families import Hint
from sync_rules.rules.kinds.counted_rule import Weights
from sync_rules.rules.kinds.gathered_rule import MEMBERS_MAX_ITEMS
from sync_rules.rules.kinds.recount import RecountRule
from sync_rules.rules.rule import Blocked, Node, is_cause
from tests.support.builders import entity, key, m, n, of_partition, s, table
from tests.support.ledgers import tally

INTO = ("total",)
SHOP = table("shop", {"PK": "S", "SK": "S"})
USER = key(SHOP, "U#1", "PROFILE")
PROFILE = {"PK": s("U#1"), "SK": s("PROFILE")}
FUNCTIONS = ["count", "sum", "min", "max"]


def recount(function: str, **options) -> RecountRule:
    """A recount rule over a user's orders."""
    order = entity("order", SHOP, PK="U#{user}", SK="O#{id}")
    given = {
        "name": "total",
        "source": order,
        "target": entity("user", SHOP, PK="U#{user}", SK="PROFILE"),
        "into": INTO,
        "function": function,
        "of": None if function == "count" else ("price",),
        "link": (("user", Ref("user", ("PK",), order.templates["PK"])),),
        "find": Find(None, ((SHOP.partition, order.templates["PK"]),), ((KeyAttribute("SK", "S"), order.templates["SK"]),)),
        "places": 2 if function == "mean" else None,
    }  # fmt: skip
    return RecountRule(**{**given, **options})


def order(name: str, user: str = "1", **values) -> Item:
    return {"PK": s(f"U#{user}"), "SK": s(f"O#{name}"), **values}


def orders(*prices) -> list[Item]:
    return [order(str(i), **({} if price is None else {"price": n(price)})) for i, price in enumerate(prices)]


def total(function: str, members, **options):
    """The one value that is desired, whichever order the members are found in."""
    found = [recount(function, **options).compute_values(some, PROFILE) for some in permutations(members)]
    assert all(one == found[0] for one in found)
    return found[0] if isinstance(found[0], Blocked) else found[0][INTO]


# ---------------------------------------------------------------- exact
@pytest.mark.parametrize(
    ("function", "prices", "expected"),
    [
        ("count", [5, None, "1.5"], "3"),
        ("sum", ["0.1", "0.2"], "0.3"),
        ("sum", ["1.50", "2.50", None], "4"),
        ("sum", ["-0", "0.0"], "0"),
        ("sum", ["99999999999999999999999999999999999999", "-1"], "99999999999999999999999999999999999998"),
        ("sum", ["1E+125", "1E-130", "-1E+125"], "0." + "0" * 129 + "1"),  # rounding on the way would lose it
        ("mean", [], None),
        ("mean", ["1", "1", "0", None], "0.67"),
        ("mean", ["0.25", "0"], "0.13"),  # a half is rounded away from zero
        ("mean", ["-0.25", "0"], "-0.13"),
        ("mean", ["1E+125", "1E+125"], "1" + "0" * 125),
        ("min", ["10", "9", None], "9"),
        ("min", ["-2", "-10.0"], "-10"),
        ("min", [None, None], None),
        ("max", ["0.00"], "0"),
    ],
)
def test_recount_is_exact_and_in_plain_digits(function, prices, expected):
    """Numbers are compared and added by value, in full, and written without exponent and idle zeros."""
    assert total(function, orders(*prices)) == (None if expected is None else n(expected))


NUMBERS = st.tuples(st.integers(-999, 999), st.integers(-9, 9)).map(lambda pair: f"{pair[0]}E{pair[1]}")
MEMBERS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={"price": NUMBERS.map(n), "status": st.sampled_from(["OPEN", "DONE", "", "x"]).map(s), "other": st.just(n(1))},
    ),
    max_size=5,
).map(lambda found: [order(str(i), **values) for i, values in enumerate(found)])  # fmt: skip
PLAIN = {"count": len, "sum": sum, "min": min, "max": max}


@settings(deadline=None)
@given(st.sampled_from(FUNCTIONS), st.booleans(), MEMBERS, st.randoms(use_true_random=False))
def test_recount_equals_a_plain_recompute(function, per, members, random):
    """A recount equals a computation with fractions for any members in any order, grouped or not."""
    weigh = function in ("count", "sum")
    groups: dict[str, list[Fraction]] = {}
    for member in members:
        group = member.get("status", s(""))["S"] if per else "all"
        price = Fraction(member["price"]["N"]) if "price" in member else Fraction(0) if weigh else None
        if group and price is not None:
            groups.setdefault(group, []).append(price)
    rule = recount(function, per=("status",) if per else None)
    desired = rule.compute_values(random.sample(members, len(members)), PROFILE)[INTO]
    found = desired["M"] if per else {} if desired is None else {"all": desired}
    if weigh and not per:
        groups.setdefault("all", [])
    expected = {group: PLAIN[function](prices) for group, prices in groups.items()}
    if weigh and per:
        expected = {group: number for group, number in expected.items() if number}
    assert {group: Fraction(value["N"]) for group, value in found.items()} == expected


# ---------------------------------------------------------------- groups and weights


OPEN, ODD = s("OPEN"), {"BOOL": True}
AMOUNTS, LEAST = ("sum", "min", "max"), ("min", "max")


@pytest.mark.parametrize(
    ("functions", "members", "expected"),
    [
        (["sum"], [order("a", price=n(0), status=OPEN)], m()),  # as when its last member goes
        (LEAST, [order("a", price=n(0), status=OPEN)], m(OPEN=n(0))),
        (AMOUNTS, [order("a", price=n(3), status=OPEN), order("b", price=s("many"))], m(OPEN=n(3))),
        (AMOUNTS, [order("a", price=n(3), status=OPEN), order("b", price=s("many"), status=s(""))], m(OPEN=n(3))),
        (AMOUNTS, [order("a", price=n(3), status=OPEN), order("b", status=ODD)], m(OPEN=n(3))),
        (["sum"], [order("a", price=n(3), status=OPEN), order("b", price=n(0), status=ODD)], m(OPEN=n(3))),
        (["count"], [order("a", status=OPEN), order("b", status=ODD)], Blocked("NotAGroup", member=key(SHOP, "U#1", "O#b"))),
    ],
)  # fmt: skip
def test_recount_of_groups_leaves_out_what_adds_nothing(functions, members, expected):
    """A member in no group, or with nothing to add, cannot freeze its parent. A group must be a string or a number."""
    for function in functions:
        assert total(function, members, per=("status",)) == expected


def test_recount_reads_fields_that_the_key_binds():
    """A group may be named by a part of the member's key."""
    assert total("count", [order("a"), order("b")], per=("id",)) == m(a=n(1), b=n(1))


# ---------------------------------------------------------------- what cannot be
@pytest.mark.parametrize("function", AMOUNTS)
@pytest.mark.parametrize("price", [s("12"), {"NULL": True}, {"NS": ["1"]}])
def test_recount_names_the_first_member_that_is_no_number(function, price):
    """Text that looks like a number is none; the member is named, the same one every time."""
    members = [*orders(1), order("7", price=price), order("8", price=price)]
    assert total(function, members) == Blocked("NotANumber", member=key(SHOP, "U#1", "O#7"))


@pytest.mark.parametrize("prices", [["1E38", "1"], ["9E125", "9E125"]])
def test_recount_does_not_round_what_is_too_long(prices):
    """A sum that no number of DynamoDB can hold is a failure, not nearly right."""
    assert total("sum", orders(*prices)) == Blocked("NumberTooLong")


# ---------------------------------------------------------------- finding and hints
@pytest.mark.parametrize(
    ("function", "ends", "expected"),
    [
        ("max", True, (1, True, True)),
        ("min", True, (1, True, False)),
        ("max", False, (MEMBERS_MAX_ITEMS, False, False)),
    ],
)
def test_recount_lists_all_members_or_one_end(function, ends, expected):
    """With items sorted by the amount, the first is the least and the last the greatest; else all are listed."""
    found = recount(function, books=tally().books if ends else None).members(USER, PROFILE)
    assert (found.table, found.index, found.conditions) == ("shop", None, of_partition("PK", s("U#1"), ("SK", "O#")))
    assert (found.max_items, found.enough, found.backward) == expected


@pytest.mark.parametrize("attribute", ["price", "status", "role", "active", "other"])
def test_recount_hints_when_something_changed_that_it_reads(attribute):
    """A member hints at its parent if its amount, group, weight or `where` changed, and not otherwise."""
    options = {"per": ("status",), "where": compile_where("active", "order")}
    summed, counted = recount("sum", **options), recount("count", weights=Weights(("role",), {}))
    change = Change(key(SHOP, "U#1", "O#a"), order("a", **{attribute: n(1)}), order("a", **{attribute: n(2)}))
    for rule, reads in ((summed, {"price", "status", "active"}), (counted, {"role"})):
        assert list(rule.hints(change)) == ([Hint(USER, change.key)] if attribute in reads else [])
        (node,) = rule.nodes()
        assert is_cause(Node(recount("count"), (rule.source, (attribute,)), ()), node) is (attribute in reads)
