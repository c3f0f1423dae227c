"""patterns --run: calls are measured, and a wrong copy is found as its reader sees it."""

from __future__ import annotations

import json

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.extras.design.commands.show_runs import as_json, lines
from sync_rules.extras.design.patterns.declarations import design_of
from sync_rules.extras.design.run.memory_reader import MemoryReader
from sync_rules.extras.design.run.pattern_runs import PatternTrial, load_items
from sync_rules.extras.design.run.sample_calls import calls, parse_arguments
from sync_rules.lab.recompute import recompute
from sync_rules.model.errors import UserError
from sync_rules.read import Patterns
from tests.extras.design.run.test_pattern_reader import kept, rules_of, stored
from tests.support.builders import s
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
    """Tables in which every copy is right, until a test changes an item."""

    def __init__(self):
        self.rules = rules_of(*PATTERNS.values())
        self.names = dict(zip(PATTERNS, design_of(self.rules).patterns, strict=True))
        self.items = kept(self.rules, stored(self.rules, DATA))

    def change(self, table, key, **values):
        """Set attributes of an item; None removes one, and no values remove the item."""
        place = self.rules.tables[table]
        found = next(one for one in self.items[table] if tuple(one[a.name]["S"] for a in place.key) == key)
        self.items[table].remove(found)
        if values:
            self.items[table].append({name: v for name, v in {**found, **values}.items() if v is not None})

    def run(self, *names, given=(), prove=True, most=10):
        """The measures of these patterns by their names."""
        right = recompute(self.rules, load_items(self.rules, lambda table: self.items[table])) if prove else None
        client = MemoryClient(self.rules.tables.values(), self.items)

        def source(table):
            return (*(() if right is None else right.items(table)), *self.items[table])

        trial = PatternTrial(self.rules, client, source, parse_arguments([*given]), most)
        found = [*trial.run([self.names[name] for name in names or PATTERNS], right)]
        text = json.dumps([as_json(one) for one in found]) + "\n".join(line for one in found for line in lines(one))
        assert "secret" not in text
        return dict(zip(names or PATTERNS, found, strict=True))

    def wrong(self, name):
        return [(one.wrong, one.key.values[0][2], one.attribute, one.rules) for one in self.run(name)[name].mismatches]


def test_runs_measure_calls_beside_the_estimate():
    """Rows, requests and units of the calls, with arguments of items; what cannot be called has its reason."""
    found = World().run()
    assert [name for name, one in found.items() if one.mismatches] == []
    assert {name: one.left for name, one in found.items() if one.left} == {"bad": "not served", "put": "a write"}
    for name in ("orders", "mail", "stores", "keys"):
        one = found[name]
        assert one.proved
        assert {*one.requests} == {one.answer.requests}
    assert (found["orders"].rows, found["orders"].units) == ([2, 2], [0.5, 0.5])
    assert found["orders"].answer.units == 0.5
    assert found["months"].rows == [2, 2]
    assert found["goals"].requests == [3, 3]
    assert sorted(found["below"].rows) == [0, 1]
    assert all(one.p50 >= 0 for one in found.values() if one.calls)


def test_runs_take_given_keys():
    """An argument that is given is used; others come from items that have it."""
    found = World().run("orders", "months", given=["user_id=2", "made=2026-01..2026-01"], prove=False)
    assert found["orders"].rows == [2]
    assert found["months"].rows == [1]
    assert not found["orders"].proved
    assert World().run("orders", prove=False, most=1)["orders"].calls == 1
    for wrong in ("user_id", "=2", "user_id="):
        with pytest.raises(UserError, match="NAME=VALUE"):
            parse_arguments([wrong])
    rules = rules_of(PATTERNS["months"])
    plan = Patterns(rules, MemoryReader(MemoryStore(rules.tables))).plan("p0")
    with pytest.raises(UserError, match=r"LEAST\.\.GREATEST"):
        calls(rules, plan, lambda _: (), {"user_id": "1", "made": "2026"}, 1)


def test_proof_finds_a_stale_copy():
    """The order, the attribute under the pattern's name, and the rule that keeps it."""
    world = World()
    world.change("shop", ("USER#1", "ORDER#2"), user_name=s("secret"))
    assert world.wrong("orders") == [("wrong", "USER#1", "user.name", ("user-name-on-orders",))]
    world.change("shop", ("USER#1", "ORDER#2"), user_name=None)
    assert world.wrong("orders") == [("missing", "USER#1", "user.name", ("user-name-on-orders",))]


def test_proof_finds_a_missing_mirror_and_one_too_many():
    """An item that is not found, and one that should not be."""
    world = World()
    world.change("shop", ("EMAIL#a@x", "USER"))
    assert world.wrong("mail") == [("missing", "EMAIL#a@x", "", ("user-by-email",))]
    world.items["shop"].append({"PK": s("EMAIL#z@x"), "SK": s("USER"), "user_id": s("1"), "name": s("Ann")})
    assert ("extra", "EMAIL#z@x", "", ("user-by-email",)) in world.wrong("mail")


WRONG = {
    "key": ("shop", ("STORE#1", "STORE"), {"place": None}, "stores", ("missing", "STORE#1", "", ("place",))),
    "element": (
        "records", ("GOAL-1", "GOAL-1"),
        {"edges": {"SS": ["GOALMEMBERSHIP-USER-1-LEAD", "GOALMEMBERSHIP-USER-9-LEAD"]}},
        "goals", ("wrong", "GOAL-1", "edges", ("goal-edges",)),
    ),
    "path": ("components", ("10",), {"Path": s("9|10")}, "below", ("missing", "10", "", ("parts",))),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_proof_finds_what_a_rule_made_wrong(case):
    """A key that was not derived, an element that no edge has, and a path that leads elsewhere, with their rules."""
    table, key, values, name, expected = WRONG[case]
    world = World()
    world.change(table, key, **values)
    assert set(world.wrong(name)) == {expected}
