"""The patterns of the examples: each is served, and answers on their data; a removed pattern leaves needless copies."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sync_rules.adapters.memory import MemoryStore
from sync_rules.extras.design.patterns.declarations import Design, find_design
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.extras.design.run.pattern_runs import PatternTrial
from sync_rules.lab.recompute import recompute
from sync_rules.language.load import load_rules
from sync_rules.model.python_values import make_raw_value
from tests.support.memory_client import MemoryClient

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*/rules.yaml"))
REMOVED = {
    "authors-and-books": ("book", {"author-on-books"}),
    "car-parts": ("everything-below", {"components/GSI2"}),
    "chat-rooms": ("room", {"messages"}),
    "game-players": ("games-of-player", {"games-of-players"}),
    "goals-users-teams": ("members-of-goal", {"names-on-edges", "rank-of-members", "graph/gsi0"}),
    "mailing-addresses": ("customer", {"mailing-addresses"}),
    "order-lines": ("lines-of-order", set()),
    "organisations-users-tickets": ("tickets-of-user", {"user-on-tickets"}),
    "product-versions": ("versions-of-product", {"versions-of-products"}),
    "store-locations": ("stores-of-state", set()),
    "timelines": ("timeline", {"entries", "newest-posts", "newest-posts-on-follows", "titles-on-entries"}),
}


def without(rules, *names):
    """Copies that no pattern reads, and indexes that no pattern uses, without some patterns."""
    left = {name: one for name, one in find_design(rules).patterns.items() if name not in names}
    proof = prove(replace(rules, sections={"patterns": Design(left)}))
    return {*proof.unread, *(f"{table}/{index}" for table, index in proof.idle)}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_patterns_of_an_example_are_served_and_need_all_that_is_kept(file):
    """Nothing is unread or idle; without one pattern something is, and without any everything."""
    rules = load_rules(file)
    proof = prove(rules)
    assert [answer.reason for answer in proof.unserved_answers] == []
    assert without(rules) == set()
    name, left = REMOVED[file.parent.name]
    assert without(rules, name) == left
    kept = {rule.title for rule in rules.rules.values() if rule.puts and not rule.times_to_live}
    assert {one for one in without(rules, *find_design(rules).patterns) if "/" not in one} == kept


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_patterns_of_an_example_answer_on_its_data(file):
    """Each is called and finds something; no page takes more requests than proved."""
    rules = load_rules(file)
    text = json.dumps(YAML(typ="safe").load((file.parent / "data.yaml").read_text()))
    data = json.loads(text, parse_float=Decimal)
    before = MemoryStore(rules.tables)
    for table, items in data.items():
        for item in items:
            before.put(table, {name: make_raw_value(value) for name, value in item.items()})
    right = recompute(rules, before)
    client = MemoryClient(rules.tables.values(), {name: right.items(name) for name in rules.tables})
    for one in PatternTrial(rules, client, right.items, {}, 10).run(find_design(rules).patterns):
        if one.left == "a write":
            continue
        assert one.left == "", one.name
        assert sum(one.rows) > 0, one.name
        assert max(one.requests) == one.answer.requests
