"""patterns --run: calls are measured, with arguments of items or given ones."""

from __future__ import annotations

import json

import pytest

from sync_rules.extras.design.commands.patterns import describe_run, format_run
from sync_rules.extras.design.patterns.declarations import find_design
from sync_rules.extras.design.run.pattern_runs import PatternTrial
from sync_rules.extras.design.run.sample_calls import list_calls, parse_arguments
from sync_rules.model.errors import UserError
from sync_rules.read import Patterns
from sync_rules.read.reader import Reader
from tests.extras.design.run.test_pattern_reader import kept, rules_of, stored
from tests.support.memory_client import MemoryClient

PATTERNS = {
    "orders": "{get: order, by: [user_id], attributes: [order_id, total, user.name], items: 2}",
    "mail": "{get: user, by: [email], one: true, attributes: [name]}",
    "stores": "{get: store, by: [state, city], attributes: [name], items: 1}",
    "goals": "{graph: goal, from: member, through: membership, neighbours: [member], items: 2}",
    "below": "{tree: component, under: ComponentId, attributes: [name]}",
    "open": "{get: order, by: [user_id], where: \"status == 'OPEN'\", keeps: 50%}",
    "keys": "{get: user, by: [user_id], keys: 25, attributes: [name]}",
    "months": "{get: order, by: [user_id], between: made}",
    "bad": "{get: order, by: [order_id]}",
    "put": "{put: order}",
}
DATA = [
    ("user", {"user_id": "1", "name": "Ann", "email": "a@x", "city": "A"}),
    ("user", {"user_id": "2", "name": "Bob", "email": "b@x", "city": "B"}),
    *(
        ("order", {"user_id": user, "order_id": number, "made": f"2026-0{number}", "total": 9, "status": "OPEN"})
        for user in "12"
        for number in "12"
    ),
    ("store", {"store_id": "1", "state": "NY", "city": "york", "city_code": "Y", "zip": "1", "name": "x"}),
    ("goal", {"goal_id": "1", "title": "secret"}),
    *(("member", {"user_id": user, "name": "secret"}) for user in "12"),
    *(("membership", {"goal_id": "1", "user_id": user, "memberRole": "LEAD"}) for user in "12"),
    ("component", {"ComponentId": "1", "ParentId": "", "name": "secret"}),
    ("component", {"ComponentId": "10", "ParentId": "1", "name": "secret"}),
]


class World:
    """Tables whose copies are all right."""

    def __init__(self):
        self.rules = rules_of(*PATTERNS.values())
        self.names = dict(zip(PATTERNS, find_design(self.rules).patterns, strict=True))
        self.items = kept(self.rules, stored(self.rules, DATA))

    def run(self, *names, given=(), most=10):
        """The measures of these patterns by their names."""
        client = MemoryClient(self.rules.tables.values(), self.items)
        trial = PatternTrial(self.rules, client, lambda table: self.items[table], parse_arguments([*given]), most)
        found = [*trial.run([self.names[name] for name in names or PATTERNS])]
        text = json.dumps([describe_run(one) for one in found]) + "\n".join(map(format_run, found))
        assert "secret" not in text
        return dict(zip(names or PATTERNS, found, strict=True))


def test_runs_measure_calls_beside_the_estimate():
    """Rows, requests and units of the calls, with arguments of items; what cannot be called has its reason."""
    found = World().run()
    assert {name: one.left for name, one in found.items() if one.left} == {"bad": "not served", "put": "a write"}
    for name in ("orders", "mail", "stores", "keys"):
        one = found[name]
        assert {*one.requests} == {one.answer.requests}
    assert (found["orders"].rows, found["orders"].units) == ([2, 2], [0.5, 0.5])
    assert found["orders"].answer.units == 0.5
    assert found["months"].rows == [2, 2]
    assert found["goals"].requests == [3, 3]
    assert sorted(found["below"].rows) == [0, 1]
    assert all(one.p50 >= 0 for one in found.values() if one.calls)


def test_runs_take_given_keys():
    """An argument that is given is used; others come from items that have it."""
    found = World().run("orders", "months", given=["user_id=2", "made=2026-01..2026-01"])
    assert found["orders"].rows == [2]
    assert found["months"].rows == [1]
    assert World().run("orders", most=1)["orders"].calls == 1
    for wrong in ("user_id", "=2", "user_id="):
        with pytest.raises(UserError, match="NAME=VALUE"):
            parse_arguments([wrong])
    rules = rules_of(PATTERNS["months"])
    plan = Patterns(rules, Reader(MemoryClient(rules.tables.values(), {}), raw=True)).plan("p0")
    with pytest.raises(UserError, match=r"LEAST\.\.GREATEST"):
        list_calls(rules, plan, lambda _: (), {"user_id": "1", "made": "2026"}, 1)
