"""The patterns of the examples, called on their own data: the requests of the proof, and the right answers."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sync_rules.adapters.memory import MemoryStore
from sync_rules.extras.design.patterns.declarations import design_of
from sync_rules.extras.design.run.pattern_runs import Trial, loaded
from sync_rules.lab.recompute import recompute
from sync_rules.language.load import load_rules
from sync_rules.model.python_values import raw_of
from tests.support.memory_client import MemoryClient

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*/rules.yaml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_patterns_of_an_example_answer_on_its_data(file):
    """Each is called, finds something, and finds what the base data make; no page takes more requests than proved."""
    rules = load_rules(file)
    text = json.dumps(YAML(typ="safe").load((file.parent / "data.yaml").read_text()))
    data = json.loads(text, parse_float=Decimal)
    before = MemoryStore(rules.tables)
    for table, items in data.items():
        for item in items:
            before.put(table, {name: raw_of(value) for name, value in item.items()})
    right = recompute(rules, before)
    client = MemoryClient(rules.tables.values(), {name: right.items(name) for name in rules.tables})
    for one in Trial(rules, client, right.items, {}, 10).run(design_of(rules).patterns, loaded(rules, right.items)):
        if one.left == "a write":
            continue
        assert one.left == "", one.name
        assert one.mismatches == []
        assert sum(one.rows) > 0, one.name
        assert max(one.requests) == one.answer.requests
