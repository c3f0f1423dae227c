"""The patterns of the examples: each is served, and a removed pattern leaves needless copies, which are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sync_rules.extras.design.patterns.declarations import Design, design_of
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.language.load import load_rules

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*/rules.yaml"))
REMOVED = {
    "authors-and-books": ("book", {"author-on-books"}),
    "car-parts": ("everything-below", {"components/GSI2"}),
    "game-players": ("games-of-player", {"games-of-players"}),
    "goals-users-teams": ("members-of-goal", {"names-on-edges", "rank-of-members", "graph/gsi0"}),
    "mailing-addresses": ("customer", {"mailing-addresses"}),
    "order-lines": ("lines-of-order", set()),
    "organisations-users-tickets": ("tickets-of-user", {"user-on-tickets"}),
    "product-versions": ("versions-of-product", {"versions-of-products"}),
    "store-locations": ("stores-of-state", set()),
}

ARCHIVED = {"players-of-games"}  # the archive of games has it


def without(rules, *names):
    """Copies that nobody reads, and indexes that nothing uses, without some patterns."""
    left = {name: one for name, one in design_of(rules).patterns.items() if name not in names}
    proof = prove(replace(rules, sections={"patterns": Design(left)}))
    return {*proof.unread, *(f"{table}/{index}" for table, index in proof.idle)}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_patterns_of_an_example_are_served_and_need_all_that_is_kept(file):
    """Nothing is unread or idle; without one pattern something is, and without any everything."""
    rules = load_rules(file)
    proof = prove(rules)
    assert [answer.reason for answer in proof.unserved] == []
    assert without(rules) == set()
    name, left = REMOVED[file.parent.name]
    assert without(rules, name) == left
    kept = {rule.title for rule in rules.rules.values() if rule.puts} - ARCHIVED
    assert {one for one in without(rules, *design_of(rules).patterns) if "/" not in one} == kept
