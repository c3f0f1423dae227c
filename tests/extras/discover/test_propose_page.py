"""The page and the figures of a proposal: they ask for nothing, escape everything, and show values only if asked."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sync_rules.extras.discover.commands.proposal_page import NOT_PLANNED, Searched, write_page
from sync_rules.extras.discover.commands.show_proposal import ShownProposal, missing_indexes, percent
from sync_rules.extras.discover.imports.imported_model import FoundTable
from sync_rules.extras.discover.imports.key_schemas import as_key
from sync_rules.extras.discover.propose.proposal import (
    Example,
    Link,
    MissingIndex,
    Proposal,
    Proposed,
    ProposedEntity,
    ProposedTable,
)
from sync_rules.extras.discover.propose.repair_figures import Repair
from sync_rules.jobs.dryrun.figures import Plan, RuleFigures
from sync_rules.jobs.dryrun.prices import own_prices
from sync_rules.language.load import parse_rules
from sync_rules.model.items import ItemKey
from sync_rules.rules.selection import WHOLE
from tests.unit.cli.test_drift_page import Outline

SECRET = "s3cret-v4lue"
SCRIPT = "<script>alert('x')</script>\u202e"
SHOP = ProposedTable(
    "shop",
    FoundTable("shop", "shop", as_key({"PK": "S", "SK": "S"})),
    1_030,
    (
        ProposedEntity(
            "user", "shop", 30, {"PK": "USER#{user_id}", "SK": "PROFILE"}, ("name",), ("read off 30 items",)
        ),
        ProposedEntity("order", "shop", 1_000, {"PK": "USER#{user_id}", "SK": "ORDER#{order_id}"}, ("user_name",)),
    ),
    ("3 items are of no entity",),
)
NAMES = Proposed(
    "names",
    "copy",
    {"copy": "user.name", "into": "order.user_name"},
    "user",
    "order",
    1_000,
    997,
    3,
    "high",
    tuple(Example(f"order {number}{SCRIPT}", f"{SECRET}-new", f"{SECRET}-old") for number in range(3)),
    sources=30,
    orphans=4,
    remarks=("differences are those of the oldest orders",),
)
TOTALS = Proposed(
    "totals",
    "sum",
    {"sum": "order.total", "into": "user.total"},
    "order",
    "user",
    30,
    30,
    0,
    "low",
    held_back="the numbers may agree by chance",
    index=MissingIndex("shop", "by_user", "{user_id: S}"),
)
FOUND = Proposal((SHOP,), (NAMES, TOTALS), links=(Link("user", "order", (("user_id", "user_id"),), 1_000, 0.996, 1.0),))
RULES = parse_rules(
    """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules: {names: copy user.name into order.user_name}
""",
    environ={},
)
PLAN = Plan({}, 1_030, 3, {"shop": 120.0}, {"shop": 3.0}, [], [(ItemKey("shop", (("PK", "S", "x"),)), 3_000.0)], WHOLE)
REPAIR = Repair(PLAN, {"names": RuleFigures(looked_at=1_000, to_write=3, right=997, write_units=3)})


def searched(found: Proposal = FOUND, repair: Repair | None = REPAIR, *, values: bool = False, **changes) -> Searched:
    fields = {
        "rules": RULES,
        "started": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "seconds": 12.3,
        "how": "sync-rules propose --table shop",
        "origin": "table shop",
        "region": "eu-central-1",
        "prices": own_prices(),
    }
    return Searched(shown=ShownProposal(found, "rules: {}", repair, values), **{**fields, **changes})


def test_propose_page_asks_for_nothing_and_is_well_formed():
    """No script and nothing from outside; every element is closed; ids are unique and found."""
    shown = write_page(searched())
    outline = Outline(shown)
    assert outline.wrong == []
    assert not outline.all("script") + outline.all("link") + outline.all("img") + outline.all("iframe")
    assert not re.search(r"@import|url\(", shown)
    assert len(outline.all("h1")) == 1
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"] for attributes in outline.all("a")} == {f"#{one}" for one in ids}
    assert SCRIPT not in shown
    assert "\u202e" not in shown


def test_propose_page_shows_values_only_if_asked():
    """Keys of examples are there; values are there with --show-values alone."""
    assert SECRET not in write_page(searched())
    assert "order 2" in Outline(write_page(searched())).words
    assert f"{SECRET}-old" in write_page(searched(values=True))
    shown = searched(values=True).shown.as_json()
    assert shown["rules"][0]["examples"][0]["expected"] == f"{SECRET}-new"


def test_propose_page_says_what_was_found():
    """Headline, figures, evidence, reasons, indexes, links, entities, and what a repair costs by the plan."""
    words = Outline(write_page(searched())).words
    for said in (
        "✓ 1 rule proposed, 1 held back; 3 targets differ",
        "names ✓ high confidence 99.70 % 1,000 997 3 4 3",
        "totals ○ held back 100 % 30 30 0 0",
        "A backfill of all rules would write 3 items now: 120 read units and 3 write units.",
        "USD (prices of 2",
        "The hottest partition key takes at least 3 s",
        "997 of 1,000 agree (99.70 %); 3 differ; 4 name a source that does not exist",
        "differences are those of the oldest orders",
        "A repair: 3 to write, 3 write units.",
        "held back: the numbers may agree by chance",
        "index to add: table shop, by_user: {user_id: S} for totals",
        "order user user_id = user_id 1,000 99.6% 100.0%",
        "table shop: 3 items are of no entity",
        "Applied nothing",
    ):
        assert said in words, said


def test_propose_page_without_rules_or_plan():
    """Nothing found says why; a repair that was not planned says who plans it."""
    nothing = Proposal((SHOP,), nothing_because="no attribute names items of another kind")
    words = Outline(write_page(searched(nothing, None))).words
    assert "○ Nothing found, because no attribute names items of another kind" in words
    assert "There is no rule to repair by." in words
    assert NOT_PLANNED in Outline(write_page(searched(repair=None))).words
    assert "USD" not in write_page(searched(prices=None))


@pytest.mark.parametrize(
    ("checked", "agree", "said"),
    [(10, 10, "100 %"), (1_000_000, 999_999, "99.99 %"), (3, 2, "66.7 %"), (0, 0, ""), (1_000, 995, "99.50 %")],
)
def test_propose_agreement_is_never_rounded_to_all(checked, agree, said):
    """An item that differs is seen in the figure."""
    assert percent(replace(NAMES, checked=checked, agree=agree, differ=checked - agree)) == said


def test_propose_names_an_index_once_for_all_rules_that_need_it():
    """With the names of the rules."""
    both = (TOTALS, replace(TOTALS, name="counts"), NAMES)
    assert list(missing_indexes(both)) == ["index to add: table shop, by_user: {user_id: S} for totals, counts"]
