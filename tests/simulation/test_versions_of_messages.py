"""Two versions of the rules work on one queue while functions are updated or rolled back: no message is lost in silence.

Stream records and messages go to either version, in any order and several times. A message that fails comes again, and
is a dead letter after `MAX_RECEIVES` deliveries. At the end only one version runs, and dead letters are redriven.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import MemoryState
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, segments
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure
from sync_rules.model.limits import Limits
from sync_rules.model.values import get
from sync_rules.pipeline import consumer as consumer_module
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import Message, decode, encode
from sync_rules.pipeline.requests import Host, World
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules
from tests.support.builders import s
from tests.support.depth import deep

TEXT = """
tables:
  users:  {key: {user: S}}
  orders: {key: {order: S}, indexes: {by_user: {user: S}}}
  notes:  {key: {user: S, note: S}}
entities: {user: {table: users}, order: {table: orders}, note: {table: notes}}
rules:
"""
NAMES = "  names: copy user.name into order.user_name\n"
NOTES = "  notes: copy user.name into note.user_name\n"
RENAMED = "  user-names: {copy: user.name, into: order.user_name, renamed_from: names}\n"
BIOS = "  bios: copy user.bio into note.user_bio\n"  # listed in the base table: no second look repairs what is lost
OTHER_BODIES = BIOS.replace("user.bio", "user.name") + NAMES.replace("user.name", "user.bio")
# what the older and the newer version have
CHANGES = {
    "renamed": (NAMES + NOTES, RENAMED + NOTES),
    "added": (NAMES + NOTES, NAMES + NOTES + BIOS),
    "removed": (NAMES + NOTES + BIOS, NAMES + NOTES),
    "changed": (NAMES + NOTES + BIOS, OTHER_BODIES + NOTES),
    "changed, and both read the stream": (NAMES + NOTES + BIOS, OTHER_BODIES + NOTES),
}
# small, so that each fan-out becomes messages: rests, relays, chunks and second looks
LIMITS = Limits(
    fan_out_page_max_items=2, fan_out_round_max_items=2, fan_out_inline_max_items=2, fan_out_spread_max_items=4,
    fan_out_relay_max_items=2, fan_out_chunk_max_items=2, fan_out_second_look_max_items=4,
)  # fmt: skip
USERS, TARGETS = "AB", 5
STORM_STEPS = 60
MAX_RECEIVES = 8  # as in the template
HISTORIES, CATCHES = 60, 120  # of each change, in each direction


@dataclass
class Waiting:
    """A message in the queue."""

    message: Message
    due: float
    receives: int = 0


@dataclass(eq=False)
class History:
    """One history of an update (`older` becomes `newer`) or of its rollback, drawn by its random numbers.

    The function that reads the stream has the version with more rules, so that only messages can get lost. Where bodies
    of rules changed, it has the final version, and a backfill by that one comes at some step; or it has either, and the
    backfill comes when only the final version runs.
    """

    stream: tuple[Rules, ...]
    versions: tuple[Rules, Rules]
    final: Rules
    random: Random
    backfill_at: int | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    queue: list[Waiting] = field(default_factory=list)
    dead: list[Message] = field(default_factory=list)
    count: int = 0
    clock: float = 1e9  # seconds; no message is delivered before its delay has passed

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.final.tables)
        for user in USERS:
            self.store.put("users", {"user": s(user), "name": s("n0"), "bio": s("b0")})
            for number in range(TARGETS):
                copies = {"user": s(user), "user_name": s("n0"), "user_bio": s("b0")}
                self.store.put("orders", {"order": s(f"{user}{number}"), **copies})
                self.store.put("notes", {"note": s(str(number)), **copies})
        self.store.on_change = self._note
        world = World(self.store, self, self)
        host = Host(lambda: self.clock, lambda: self.clock, threading.Lock)
        self.consumers = {id(rules): Consumer(rules, world, host, limits=LIMITS) for rules in self.versions}

    # ------------------------------------------------------------ ports
    def send(self, message: Message, delay_seconds: int) -> None:
        self.queue.append(Waiting(decode(encode(message)), self.clock + delay_seconds))

    def park(self, failure: Failure) -> None:
        raise AssertionError(failure.reason)

    def _note(self, key: Any, old: Any, new: Any) -> None:
        self.count += 1
        images = {name: image for name, image in (("OldImage", old), ("NewImage", new)) if image}
        body = {"Keys": key.attributes(), "SequenceNumber": str(self.count), "StreamViewType": "NEW_AND_OLD_IMAGES"}
        arn = f"arn:aws:dynamodb:eu-central-1:1:table/{key.table}/stream/x"
        self.records.append({"eventSourceARN": arn, "dynamodb": body | images})

    # ------------------------------------------------------------ what may happen
    def play(self) -> None:
        """Play the storm; then let the final version finish everything, dead letters included."""
        for step in range(STORM_STEPS):
            if step == self.backfill_at:
                self._backfill()
            self.clock += self.random.choice((0, 0.1, 1, 10))
            changes = [lambda step=step: self._change(step)] if step < STORM_STEPS // 2 else []
            self.random.choice([*changes, self._deliver, self._work, self._work])()
        self._finish()
        if self.backfill_at == STORM_STEPS:
            self._backfill()
            self._finish()

    def _finish(self) -> None:
        for _ in range(10):
            while self.records or self.queue:
                self._deliver(self.final) if self.records else self._work(self.final)
            self.queue = [Waiting(message, self.clock) for message in self.redrivable()]
            if not self.queue:
                break

    def _backfill(self) -> None:
        names = frozenset(self.final.rules)
        run = BackfillRun(
            Selection(self.final, names), self.store, self, MemoryState(), {}, supplies=segments(self.final, 1)
        )
        assert run.run()

    def redrivable(self) -> list[Message]:
        """Take the dead letters that the final version can process."""
        known = [one for one in self.dead if not consumer_module.list_unknown_rules(one, self.final)]
        self.dead = [one for one in self.dead if one not in known]
        return known

    def _change(self, step: int) -> None:
        user = self.random.choice(USERS)
        (item,) = (one for one in self.store.items("users") if one["user"] == s(user))
        self.store.put("users", {**item, self.random.choice(("name", "bio")): s(f"v{step}")})

    def _deliver(self, rules: Rules | None = None) -> None:
        some, self.records = self.records[:5], self.records[5:]
        reader = self.consumers[id(rules or self.random.choice(self.stream))]
        assert not reader.handle_event({"Records": some}, lambda: 10**6)["batchItemFailures"]

    def _work(self, rules: Rules | None = None) -> None:
        if rules and self.queue:
            self.clock = max(self.clock, min(one.due for one in self.queue))
        due = [one for one in self.queue if one.due <= self.clock]
        if not due:
            return
        one = self.random.choice(due)
        self.queue.remove(one)
        worker = self.consumers[id(rules or self.random.choice(self.versions))]
        one.receives += 1
        try:
            worker.handle_message(one.message, again=one.receives > 1)
        except StoreError as error:
            assert error.reason == "UnknownRule"  # noqa: PT017 - nothing else fails here
            if one.receives < MAX_RECEIVES:
                self.queue.append(replace(one, due=self.clock + 1))
            else:
                self.dead.append(one.message)

    # ------------------------------------------------------------ what must hold
    def wrong(self) -> list[str]:
        """The copies that differ from their source, by the rules of the final version."""
        users = {item["user"]["S"]: item for item in self.store.items("users")}
        return [
            f"{rule.name} {item}"
            for rule in self.final.rules.values()
            if isinstance(rule, CopyRule)
            for item in self.store.items(rule.target.table.name)
            for path, copy in rule.mapping
            if get(item, copy) != get(users[item["user"]["S"]], path)
        ]


@cache
def versions_of(change: str) -> tuple[Rules, Rules]:
    older, newer = CHANGES[change]
    return parse_rules(TEXT + older, {}), parse_rules(TEXT + newer, {})


def history_of(change: str, number: int, *, back: bool) -> History:
    older, newer = versions_of(change)
    final = older if back else newer
    random = Random(f"{change} {back} {number}")
    if change == "changed":
        return History((final,), (older, newer), final, random, random.randrange(STORM_STEPS))
    if change.startswith("changed"):
        return History((older, newer), (older, newer), final, random, STORM_STEPS)
    stream = (older, newer) if change == "renamed" else (max(older, newer, key=lambda one: len(one.rules)),)
    return History(stream, (older, newer), final, random)


@pytest.mark.parametrize("back", [False, True], ids=["update", "rollback"])
@pytest.mark.parametrize("change", CHANGES)
def test_versions_lose_no_message(change, back):
    """Every copy of the final version is right. What is left in the dead letters names only rules that are gone."""
    for number in range(deep(HISTORIES)):
        history = history_of(change, number, back=back)
        history.play()
        assert history.wrong() == [], number
        if change not in ("added", "removed"):  # both versions know the name in the messages
            assert history.dead == [], number
        gone = {"bios"} if "bios" not in history.final.rules else set()
        assert {name for one in history.dead for name in consumer_module.list_unknown_rules(one, history.final)} <= gone


MUTANTS = {
    "an unknown rule is acknowledged in silence": lambda: patch.object(
        consumer_module, "list_unknown_rules", lambda _message, _rules: ()
    ),
    "messages carry the new name of a rule": lambda: patch.object(
        Rule, "message_name", property(lambda rule: rule.name)
    ),
    "the rules that are known are left out": lambda: patch.object(
        consumer_module, "_process_valid_message", _only_where_all_are_known
    ),
    "a record of a copy that was written asks for nothing": lambda: patch.object(
        consumer_module, "tasks_of", _without_pulls
    ),
}
process_known = consumer_module._process_valid_message
tasks_of = consumer_module.tasks_of


def _without_pulls(changes, rules):
    tasks = tasks_of(changes, rules)
    tasks.pulls = ()
    return tasks


def _only_where_all_are_known(message, rules, bounds, *, again):
    if consumer_module.list_unknown_rules(message, rules):
        return consumer_module.Report()
    return (yield from process_known(message, rules, bounds, again=again))


CAUGHT_BY = [
    ("an unknown rule is acknowledged in silence", "added", False),
    ("messages carry the new name of a rule", "renamed", True),
    ("the rules that are known are left out", "removed", False),
    ("a record of a copy that was written asks for nothing", "changed", False),
    ("a record of a copy that was written asks for nothing", "changed", True),
]


@pytest.mark.parametrize(("mutant", "change", "back"), CAUGHT_BY)
def test_versions_catch_a_mutant(mutant, change, back):
    """Each broken version of the code loses a message within the histories above."""
    with MUTANTS[mutant]():
        for number in range(CATCHES):
            history = history_of(change, number, back=back)
            history.play()
            if history.wrong() or (change == "renamed" and history.dead):
                return
    pytest.fail(f"{CATCHES} histories did not notice: {mutant}")
