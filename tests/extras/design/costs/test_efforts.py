"""The effort that rules state is what the pipeline takes: counted at the store, for one event on items below 1 KB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sync_rules.extras.design.costs.efforts import Effort, Occasion, find_effort
from sync_rules.language.kinds.registry import KINDS
from sync_rules.rules.rule import Rule
from tests.docs import test_costs as counted


def units(effort: Effort) -> tuple[int, int]:
    """The write and read units where every item is one unit."""
    writes = effort.target_writes + effort.source_writes + effort.ledger_writes
    reads = effort.target_reads + effort.source_reads + effort.ledger_reads + effort.listings
    return writes, reads


@pytest.mark.parametrize(
    ("page", "rule", "story"),
    [
        ("embed", "", counted.address),
        ("collect", "", counted.goal),
        ("mirror", "", counted.email),
        ("count", counted.COUNT, counted.orders),
        ("count", counted.MAX, counted.orders),
    ],
    ids=["embed", "collect", "mirror", "count", "max"],
)
def test_effort_is_what_the_pipeline_takes(page, rule, story):
    """One event of a source: the efforts of all rules that the rule of the file was compiled into, added up."""
    shop = counted.Shop(f"docs/rules/{page}.md", rule)
    efforts = [find_effort(one, Occasion.SOURCE) for one in shop.rules.rules.values() if one.title != "feeds-of-posts"]
    story(shop)
    meter = shop.costs()
    stated = [units(effort) for effort in efforts if effort is not None]
    assert tuple(map(sum, zip(*stated, strict=True))) == (meter.writes, meter.reads)


def test_effort_of_a_derived_attribute_is_one_write():
    """Each of two derived attributes states a write; the pipeline makes one update of both."""
    shop = counted.Shop("docs/rules/derive.md")
    counted.store(shop)
    meter = shop.costs()
    assert (meter.writes, meter.reads) == (1, 0)
    assert {units(find_effort(one, Occasion.SOURCE)) for one in shop.rules.rules.values()} == {(1, 0)}


def test_effort_of_a_copy_is_that_of_each_target():
    """A target that came: one write, and its source for both of its records. A source: all of its targets."""
    shop = counted.Shop("docs/rules/copy.md")
    (rule,) = (one for one in shop.rules.rules.values() if one.title == "user-name-on-orders")
    assert units(find_effort(rule, Occasion.TARGET)) == (1, 2)
    of_source = find_effort(rule, Occasion.SOURCE)
    assert of_source.of_all
    assert units(of_source) == (1, 0)


def test_every_kind_states_its_effort():
    """A kind without a function would cost nothing, in silence."""

    def list_kinds(kind: type[Rule]) -> Iterator[type[Rule]]:
        for one in kind.__subclasses__():
            yield from list_kinds(one)
            yield one

    unstated = find_effort.dispatch(object)
    leaves = [one for one in list_kinds(Rule) if not one.__subclasses__() and one.__module__.startswith("sync_rules.")]
    assert len(leaves) >= len(KINDS)
    assert [one.__name__ for one in leaves if find_effort.dispatch(one) is unstated] == []
