"""A session of the playground: texts of the page in, JSON out. The page only shows it, and knows no rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path as File
from typing import Any, Final

from packages.playground.engine.drawing import draw_graph
from packages.playground.engine.stage import Stage
from sync_rules.cli.show.rule_graph import make_graph
from sync_rules.lab.provenance import Provenance
from sync_rules.lab.recompute import Discrepancy
from sync_rules.lab.scenario_file import LOAD, load_scenario
from sync_rules.language.load import check_rules
from sync_rules.language.schema import make_json_schema
from sync_rules.model.errors import SyncRulesError, UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.json_bytes import parse_json, tag_binary, untag_binary
from sync_rules.model.values import Item, parse_path, show_path
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.rules.rule import Rule

FILES: Final = ("rules.yaml", "data.yaml", "scenario.yaml")
State = dict[str, Any]


class Session:
    """One rules file, its tables and what happened to them. `call` names a method and gives it texts."""

    def __init__(self, folder: str) -> None:
        self._folder = File(folder)

    def call(self, method: str, *texts: str) -> str:
        """The answer of a method as JSON. A mistake of the user is {"mistake": text}."""
        try:
            found = getattr(self, method)(*texts)
        except SyncRulesError as error:
            found = {"mistake": error.sentence}
        return json.dumps(found, ensure_ascii=False, default=tag_binary)

    def check(self, rules: str) -> list[State]:
        """The problems of a rules file."""
        return [problem.as_json(FILES[0]) for problem in check_rules(rules, {})[1]]

    def schema(self) -> State:
        """The JSON Schema of rules files."""
        return make_json_schema()

    def open(self, rules: str, data: str, scenario: str, items: str) -> State:
        """Begin with items by table, or else with the data of the scenario, and run the pipeline.

        Raises UserError or StoreError. The session then keeps what it had.
        """
        compiled, _ = check_rules(rules, {})
        if compiled is None:
            raise UserError("the rules have errors")
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, text in zip(FILES, (rules, data, scenario), strict=True):
            (self._folder / name).write_text(text or "{}", encoding="utf-8")
        first, *steps = load_scenario(self._folder / FILES[2], compiled).steps
        stage = Stage(compiled)
        given = parse_json(items, object_hook=untag_binary) if items else {}
        for table, item in ((name, item) for name in compiled.tables for item in given.get(name, ())):
            _put(stage, table, item, LOAD)
        for action in () if items else first.actions:
            stage.do(action, LOAD)
        stage.run()
        stage.events = [("ready", len(stage.finished))]
        self._stage, self._provenance, self._sent, self._steps = stage, Provenance(compiled), 0, steps
        self._drawing = draw_graph(make_graph(compiled))
        return self.state()

    # ------------------------------------------------------------ the application
    def next(self) -> State:
        """Do the next step of the scenario."""
        step = self._steps.pop(0)
        for action in step.actions:
            self._stage.do(action, step.say)
        return self.state()

    def put(self, table: str, item: str, say: str) -> State:
        """Put a whole item, given as DynamoDB's JSON."""
        _put(self._stage, table, parse_json(item, object_hook=untag_binary), say)
        return self.state()

    def edit(self, table: str, identity: str, path: str, value: str, say: str) -> State:
        """Set an attribute of an item; without a value remove it."""
        given, where = parse_json(value, object_hook=untag_binary) if value else None, parse_path(path)
        sets, removes = (((where, given),), ()) if given else ((), (where,))
        self._stage.do(Update(self._find(table, identity), sets, removes, ()), say)
        return self.state()

    def delete(self, table: str, identity: str, say: str) -> State:
        """Delete an item."""
        self._stage.do(Delete(self._find(table, identity), ()), say)
        return self.state()

    def _find(self, table: str, identity: str) -> ItemKey:
        return next(key for key, _ in self._items(table) if str(key) == identity)

    def _items(self, table: str) -> Iterator[tuple[ItemKey, Item]]:
        for item in self._stage.store.items(table):
            key = self._stage.rules.tables[table].key_of(item)
            assert key is not None, "an item of this table"
            yield key, item

    # ------------------------------------------------------------ the pipeline
    def step(self) -> State:
        """Take one step."""
        self._stage.step()
        return self.state()

    def run(self) -> State:
        """Take steps until no work is left."""
        self._stage.run()
        return self.state()

    def switch(self, *off: str) -> State:
        """Switch the invariants of these names off, and all others on."""
        self._stage.off = frozenset(off)
        return self.state()

    def fault(self, name: str) -> State:
        """Make something go wrong: repeat, delay, die, throttle or lag."""
        getattr(self._stage, name)()
        return self.state()

    # ------------------------------------------------------------ questions
    def patterns(self) -> State:
        """The access patterns with their requests and prices."""
        from packages.playground.engine.pattern_table import make_pattern_table  # noqa: PLC0415 - not before the start

        stage = self._stage
        return make_pattern_table(stage.rules, {name: stage.store.items(name) for name in stage.rules.tables})

    def explain(self, table: str, identity: str, name: str) -> list[State]:
        """The rules that keep an attribute of an item, and whether it is right."""
        from packages.playground.engine.explanation import explain_value  # noqa: PLC0415 - not before the start

        key, item = next((key, item) for key, item in self._items(table) if str(key) == identity)
        return explain_value(key, item, name, self._stage.rules, self._stage.store)

    # ------------------------------------------------------------ the state
    def state(self) -> State:
        """The tables, what waits, what is wrong, and the events since the last answer."""
        stage, wrong = self._stage, [*self._stage.list_wrong()]
        events, self._sent = stage.events[self._sent :], len(stage.events)
        return {
            "tables": [
                {
                    "name": name,
                    "key": [attribute.name for attribute in table.key],
                    "indexes": [index.name for index in table.indexes],
                    "items": [self._row(key, item, wrong) for key, item in self._items(name)],
                }
                for name, table in stage.rules.tables.items()
            ],
            "wrong": make_plain(wrong),
            "stuck": [
                {"rule": one.rule, "key": str(one.target), "reason": one.reason}
                for one in (stage.list_stuck() if stage.is_idle() else ())
            ],
            "waiting": make_plain(stage.waiting),
            "request": make_plain(stage.worker.request) if stage.worker else None,
            "delayed": len(stage.delayed),
            "flying": len(stage.flying),
            "finished": len(stage.finished),
            "lags": stage.store.lags,
            "throttles": stage.throttles,
            "idle": stage.is_idle(),
            "off": sorted(stage.off),
            "steps": [step.say for step in self._steps],
            "graph": self._drawing,
            "events": make_plain(events),
        }

    def _row(self, key: ItemKey, item: Item, wrong: list[Discrepancy]) -> State:
        entity, provenance = self._stage.rules.entity_of(key), self._provenance
        made = provenance.is_in_ledger(key) or provenance.find_mirror_rule(key, item) is not None
        return {
            "id": str(key),
            "entity": entity.name if entity else "",
            "own": None if made else provenance.strip_derived_paths(key, item),  # None: rules made the whole item
            "item": item,
            "copies": [show_path(path) for path in provenance.list_derived_paths(key, item)],
            "wrong": [show_path(one.path) for one in wrong if one.key == key],
        }


def _put(stage: Stage, table: str, item: Item, say: str) -> None:
    key = stage.rules.tables[table].key_of(item)
    if key is None:
        raise UserError(f"table {table}: the item lacks a key attribute, or it has another type")
    stage.do(Put(key, item, ()), say)


def make_plain(value: Any) -> Any:
    """A value in JSON's types: a dataclass as its type and fields, a key as its text, a rule as its name."""
    match value:
        case ItemKey():
            return str(value)
        case Rule():
            return value.name
        case Enum():
            return value.value
        case dict():
            return {str(name): make_plain(inner) for name, inner in value.items()}
        case tuple() if hasattr(value, "_fields"):
            return {name: make_plain(getattr(value, name)) for name in value._fields}
        case tuple() | list() | frozenset():
            return [make_plain(inner) for inner in value]
    if is_dataclass(value):
        held = {one.name: make_plain(getattr(value, one.name)) for one in fields(value)}
        return {"type": type(value).__name__, **held}
    return value
