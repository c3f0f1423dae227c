"""A parent's number: the copy of its totals, over all shards, with and without groups."""

from __future__ import annotations

import pytest

from sync_rules.rules.kinds.tally import TotalRule
from sync_rules.rules.rule import Blocked
from tests.support.builders import m, n, s
from tests.support.ledgers import USER, ledger, tally

INTO = ("stats", "spent")


def total(shards=1, **options):
    given = {"into": INTO, "function": "sum", "shards": shards, "books": tally(shards=shards).books}
    return TotalRule("spent", ledger(shards).totals, USER, **{**given, **options})


def totals(**numbers):
    return {"PK": s("spent/T/u"), "SK": s("-"), **{name: n(number) for name, number in numbers.items()}}


@pytest.mark.parametrize(
    ("options", "sources", "value"),
    [
        ({}, [None], n(0)),
        ({}, [totals(n="2.50")], n("2.5")),
        ({}, [totals(n="2", **{"=OPEN": "7"})], n(2)),  # left by the rule when it had groups
        ({"shards": 3}, [totals(n="1E+20"), None, totals(n="-0.5")], n("99999999999999999999.5")),
        ({"function": "mean", "places": 1}, [totals(n="2", **{"=": "3"})], n("0.7")),
        ({"function": "mean", "places": 0, "shards": 2}, [totals(n="5", **{"=": "1"}), totals(**{"=": "1"})], n(3)),
        ({"function": "mean", "places": 1}, [None], None),
        ({"per": True}, [totals(n="9", **{"=OPEN": "1.0", "=PAID": "0", "==": "3"})], m(**{"OPEN": n(1), "=": n(3)})),
        ({"per": True, "shards": 2}, [totals(**{"=A": "2", "=B": "1"}), totals(**{"=A": "-2"})], m(B=n(1))),
    ],
)
def test_total_is_the_sum_over_the_shards(options, sources, value):
    """The number is exact and plain; no totals are 0 or an empty map, and groups of nothing are left out."""
    assert total(**options).compute_values(sources, {"user_id": s("u")}) == {INTO: value}


def test_total_shows_further_sums_beside_the_number():
    """Each sum has an attribute of its own on the parent; it is 0 without a total, whatever other sums left."""
    rule = total(2, function="count", sums={("units",): ("pieces",), ("stats", "kg"): ("size", "kg")})
    found = rule.compute_values(
        [totals(n="2", **{"=pieces": "1.50", "=left": "9"}), totals(n="1")], {"user_id": s("u")}
    )
    assert found == {INTO: n(3), ("units",): n("1.5"), ("stats", "kg"): n(0)}


@pytest.mark.parametrize(
    ("sources", "reason"),
    [
        ([], "KeyTooLong"),
        ([totals(n="x"), None], "TotalBroken"),
        ([totals(n="1E+30"), totals(n="1E-20")], "NumberTooLong"),
    ],
)
def test_total_tells_what_it_cannot_say(sources, reason):
    """A total without a possible key, with a broken number or with too many digits blocks the parent's attribute."""
    assert total(2).compute_values(sources, {"user_id": s("u")}) == Blocked(reason)
