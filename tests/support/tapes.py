"""Recordings for tests: an application's writes in the shop of `every_kind` while a pipeline runs, as recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from sync_rules.lab.recording import Header, Recorded, open_recording, read_recording
from sync_rules.lab.rehearsal import Rehearsal
from sync_rules.lab.scenario import Action, Expire
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.rules.ruleset import Rules
from tests.support import every_kind
from tests.support.builders import key, n, s
from tests.support.worlds import record_of

USERS = ("1", "2", "Ada7")
ORDERS = ("10", "11", "x-9")
STATES = ("OPEN", "VOID", "PAID")
NAMES = ("Ada", "Grace Hopper", "x", "007")
MAILS = ("ada@example.com", "g.h@example.org")
PARTS = ("CM1", "CM10", "CM2", "CM4")


class Tape:
    """A pipeline in memory whose stream records are kept."""

    def __init__(self, rules: Rules, created_ms: int | None = 1_700_000_000_000) -> None:
        self.rules = rules
        self.stage = Rehearsal(rules)
        self.bodies: list[dict[str, Any]] = []
        self._created_ms = created_ms
        self._expiring = False
        told = self.stage.store.on_change
        assert told is not None

        def note(at: ItemKey, old: Item | None, new: Item | None) -> None:
            position = str(1_000 + len(self.bodies))
            change = Change(at, old, new, position, self._created_ms, expired=self._expiring)
            self.bodies.append({"eventID": f"e{position}", **record_of(rules, change)})
            told(at, old, new)

        self.stage.store.on_change = note

    def do(self, *actions: Action, rest: bool = True) -> None:
        """Let the application make its writes, and the pipeline come to rest."""
        for action in actions:
            self._expiring = isinstance(action, Expire)
            self.stage.do(action)
            self._expiring = False
        if rest:
            assert self.stage.rest()

    def put(self, table: str, *items: Item, rest: bool = True) -> None:
        """Put whole items."""
        known = self.rules.tables[table]
        for item in items:
            at = known.key_of(item)
            assert at is not None
            self.do(Put(at, item, ()), rest=rest)

    def item(self, table: str, *values: str) -> Item | None:
        """An item as it is."""
        return self.stage.item(key(self.rules.tables[table], *values))


def lines(path: Path, bodies: Iterable[Any]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(f"{json.dumps(body)}\n" for body in bodies))
    return path


def recorded(path: Path, rules: Rules, bodies: Iterable[Any]) -> tuple[Recorded, ...]:
    """The records, written as a recording and read again."""
    with open_recording(path, Header({name: table.physical_name for name, table in rules.tables.items()})) as write:
        write(bodies)
    return read_recording(path, rules).records


def in_memory(tmp_path_factory: Any, rules: Rules, bodies: Sequence[Any]) -> tuple[Recorded, ...]:
    """A recording whose file no test looks at."""
    return recorded(tmp_path_factory.mktemp("tape") / "r.jsonl", rules, bodies)


def shopping(rules: Rules, seed: int, actions: int = 40) -> Tape:
    """A shop where anything happens, by a seed: stale puts, deletes, moves, meddling with what rules keep."""
    random = Random(seed)
    tape = Tape(rules)
    for _ in range(actions):
        tape.do(_action(tape, random), rest=random.random() < 0.6)
    tape.do()
    return tape


def _action(tape: Tape, random: Random) -> Action:
    tables = tape.rules.tables
    user_id, order_id = random.choice(USERS), random.choice(ORDERS)
    post_id, part_id = random.choice("pqr"), random.choice(PARTS)
    places = {
        "user": key(tables["shop"], f"USER#{user_id}", "PROFILE"),
        "order": key(tables["shop"], f"USER#{user_id}", f"ORDER#{order_id}"),
        "post": key(tables["posts"], post_id),
        "part": key(tables["parts"], part_id),
    }
    what = random.choice(("user", "order", "order", "post", "part"))
    at = places[what]
    present = tape.stage.item(at)
    chance = random.random()
    if present is not None and chance < 0.15:
        return Expire(at) if random.random() < 0.3 else Delete(at, ())
    fresh = {
        "user": lambda: every_kind.user(
            user_id, name=s(random.choice(NAMES)), rank=n(random.randrange(9)), email=s(random.choice(MAILS))
        ),
        "order": lambda: every_kind.order(
            user_id, order_id, random.choice((5, 0, -3, 12.5, 700)), status=s(random.choice(STATES))
        ),
        "post": lambda: every_kind.post(post_id, random.choice(USERS), random.choice(NAMES)),
        "part": lambda: every_kind.part(part_id, random.choice((*PARTS, None, None))),
    }[what]()
    if present is None or chance < 0.3:
        return Put(at, fresh, ())
    if chance < 0.5:  # a whole item with the copies as they were read
        return Put(at, {**present, **fresh}, ())
    if chance < 0.6:  # a copy is overwritten
        name = {"user": "head", "order": "counted", "post": "title", "part": "path"}[what]
        return Update(at, (((name,), s(random.choice(NAMES))),), (), ())
    names = [name for name in fresh if name not in at.attributes()]
    chosen = random.choice(names) if names else None
    return Update(at, (((chosen,), fresh[chosen]),), (), ()) if chosen else Put(at, fresh, ())
