"""Replays a recording in memory, with the pipeline, and compares the result with the rules.

A replay repeats the application's recorded changes, and the rules work again. Records that change only derived data are
skipped, unless you ask for them: the recorded pipeline wrote them. Invariant: records, delivery and seed determine a
replay, so it can be repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path as File
from random import Random
from typing import Any, Final

from sync_rules.adapters.memory import MemoryStore
from sync_rules.lab.delivery import VARIANTS, Delivery
from sync_rules.lab.provenance import Provenance
from sync_rules.lab.recompute import Discrepancy, list_discrepancies
from sync_rules.lab.recording import Recorded
from sync_rules.lab.replay_tables import ReplayEvent, ReplayTables
from sync_rules.lab.scenario import Action, Expire
from sync_rules.lab.scenario_reader import ScenarioReader
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item, is_same_value, show_path
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.pipeline.failure_records import format_key, show_key
from sync_rules.rules.families import PartRule, TargetRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

RESTLESS: Final = "restless"
FAILED: Final = "failed"
WORK_SHARE: Final = 0.3  # of the records after which some pending work is processed
REST_SHARE: Final = 0.3  # of those after which all of it is; after the others none is
WORK_MAX_ARRIVALS: Final = 4
LOOKS: Final = 3  # retries of parked work: a freed key may free another one
MEANINGS: Final = {
    "rules": "not what the rule says",
    "application": "not what the application wrote",
    "recompute": "not what a recompute from nothing gives",
}


@dataclass(frozen=True)
class Mismatch:
    """A difference at the end of a replay. Only `history` holds values; the other fields hold keys and paths.

    `rule` is empty if no rule is concerned. `drift`: wrong, missing, extra, orphan; restless if the rules never come to
    rest; failed if work failed without a fault (`reason` is its error code).
    """

    rule: str
    drift: str
    delivery: Delivery
    key: ItemKey | None = None
    path: str = ""
    check: str = ""
    reason: str = ""
    history: tuple[ReplayEvent, ...] = field(default=(), repr=False)

    @property
    def subject(self) -> str:
        """The difference in one line."""
        where = f": {format_key(self.key)} {self.path}".rstrip() if self.key else ""
        why = MEANINGS.get(self.check, self.reason)
        return f"{self.drift}{where}" + (f" ({why})" if why else "") + (f" · rule {self.rule}" if self.rule else "")

    def __str__(self) -> str:
        return "\n".join(
            [f"{self.subject} · {self.delivery.name}, seed {self.delivery.seed}", *self.list_history_lines()]
        )

    def list_history_lines(self, *, values: bool = False) -> Iterator[str]:
        for event in self.history:
            who = f"record {event.record}" if event.by == "record" else event.by
            line = f"  {who:<12} {event.name} {format_key(event.change.key)}  {event.text(values=values)}"
            yield line.rstrip()

    def body(self, *, values: bool = False) -> dict[str, Any]:
        """Return the mismatch as JSON."""
        return {
            "rule": self.rule or None,
            "drift": self.drift,
            "table": self.key and self.key.table,
            "key": self.key and show_key(self.key),
            "path": self.path or None,
            "check": self.check or None,
            "reason": self.reason or None,
            "variant": self.delivery.name,
            "seed": self.delivery.seed,
            "history": [line.strip() for line in self.list_history_lines(values=values)],
        }


def replay(
    records: Iterable[Recorded],
    rules: Rules,
    delivery: Delivery = VARIANTS[0],
    data: Sequence[Put] = (),
    *,
    with_copies: bool = False,
) -> Mismatch | None:
    """Replay records under a delivery. Return the first mismatch, or None.

    `data`: initial items, besides those that the records imply.
    """
    return next(Replay(rules, delivery, with_copies=with_copies).list_mismatches(tuple(records), data), None)


def load_data(file: File, rules: Rules) -> tuple[Put, ...]:
    """Load the items of a file like the data.yaml of a scenario.

    Raises:
        UserError: if the file does not exist, or with every mistake in it.
    """
    reading = ScenarioReader(file, rules)
    puts = reading.data()
    if reading.wrong:
        raise reading.error()
    return puts


class Replay:
    """A replay of records. `counts` has the number of records replayed (`done`), and of records left out: `copies` and
    `ledger`, written by the recorded pipeline; `gone`, changes of items that are gone by then; `refused` by the
    table. `on_progress` is called with the number of each record once it is replayed.
    """

    def __init__(
        self,
        rules: Rules,
        delivery: Delivery,
        *,
        with_copies: bool = False,
        on_progress: Callable[[int], object] = lambda _record: None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._rules = rules
        self._delivery = delivery
        self._with_copies = with_copies
        self._on_progress = on_progress
        self._provenance = Provenance(rules)
        self._tables = ReplayTables(rules)

    @property
    def events(self) -> Sequence[ReplayEvent]:
        """All changes so far, in order."""
        return self._tables.events

    @property
    def store(self) -> MemoryStore:
        return self._tables.stage.store

    def list_mismatches(self, records: Sequence[Recorded], data: Sequence[Put] = ()) -> Iterator[Mismatch]:
        """Replay, and yield all mismatches. Those that verify would find come first."""
        try:
            if not self._play(records, data):
                yield Mismatch("", RESTLESS, self._delivery, history=tuple(self.events))
                return
            for wrong in list_discrepancies(self._tables.make_ending()):
                yield self._make_mismatch(wrong)
        except StoreError as error:
            yield Mismatch("", FAILED, self._delivery, reason=error.reason, history=tuple(self.events))

    # ---------------------------------------------------------------- the application
    def _play(self, records: Sequence[Recorded], data: Sequence[Put]) -> bool:
        own = [one for one in records if not self._provenance.is_in_ledger(one.change.key)]
        self.counts["ledger"] = len(records) - len(own)
        if not self._tables.begin(self._first(own, data), self._delivery):
            return False
        for one in own:
            outcome = self._redo(one)
            self.counts[outcome] += 1
            self._on_progress(one.number)
            if outcome == "done" and not self._work(one):
                return False
        return self._end()

    def _first(self, records: Sequence[Recorded], data: Sequence[Put]) -> Iterator[Put]:
        """The initial items: the old image of each item's first record, and the data."""
        first: dict[ItemKey, Item | None] = {}
        for one in records:
            first.setdefault(one.change.key, one.change.old)
        for key, item in first.items():
            if item is not None and (self._with_copies or self._provenance.find_mirror_rule(key, item) is None):
                yield Put(key, item, ())
        yield from (put for put in data if put.key not in first and not self._provenance.is_in_ledger(put.key))

    def _redo(self, one: Recorded) -> str:
        """Make a recorded change again. Returns the counter for it."""
        change, present = one.change, self._tables.stage.item(one.change.key)
        if not self._with_copies and (
            self._provenance.is_pipeline_write(change) or self._is_rule_delete(change, present)
        ):
            return "copies"
        action = make_action(change)
        if present is None and not isinstance(action, Put):
            return "gone"
        return "done" if self._tables.do(action, "record", one.number) else "refused"

    def _is_rule_delete(self, change: Change, present: Item | None) -> bool:
        """Tell whether a rule makes this delete: the target's source is gone."""
        if change.new is not None or present is None:
            return False
        rules = self._provenance.list_deleting_rules(change.key, present)
        return any(self._tables.stage.item(key) is None for rule in rules for key in rule.source_keys(present))

    # ---------------------------------------------------------------- the rules
    def _work(self, after: Recorded) -> bool:
        """Process some pending work, all of it, or none, so that the next change may meet copies that lag."""
        random = Random(f"{self._delivery.seed}/{after.identity}")  # noqa: S311 - to be drawn again
        drawn = random.random()
        if drawn < REST_SHARE:
            return self._tables.stage.rest()
        for _ in range(random.randint(1, WORK_MAX_ARRIVALS) if drawn < REST_SHARE + WORK_SHARE else 0):
            self._tables.stage.work()
        return True

    def _end(self) -> bool:
        """Come to rest, and again after each retry of parked work, which in production lasts for two hours."""
        for _ in range(LOOKS):
            if not self._tables.stage.rest():
                return False
            self._tables.stage.look_again()
        return self._tables.stage.rest()

    def _make_mismatch(self, wrong: Discrepancy) -> Mismatch:
        keys = [key for key in (wrong.key, wrong.source) if key is not None]
        history = list_history(self.events, self._rules, wrong.rule, keys)
        path = show_path(wrong.path) if wrong.path else ""
        return Mismatch(wrong.rule, wrong.drift.value, self._delivery, wrong.key, path, wrong.check, history=history)


def make_action(change: Change) -> Action:
    """Make the write that makes a recorded change again. It leaves other attributes of the item as they are."""
    old, new = change.old, change.new
    if new is None:
        return Expire(change.key) if change.expired else Delete(change.key, ())
    if old is None:
        return Put(change.key, new, ())
    sets = tuple(((name,), value) for name, value in new.items() if not is_same_value(old.get(name), value))
    return Update(change.key, sets, tuple((name,) for name in old if name not in new), ())


# ---------------------------------------------------------------- history
def list_history(
    events: Sequence[ReplayEvent], rules: Rules, rule: str, keys: Iterable[ItemKey]
) -> tuple[ReplayEvent, ...]:
    """List the events of these items, and of all items from which this rule, in all its parts, made them."""
    title = rules.rules[rule].title if rule in rules.rules else rule
    concerned = [one for one in rules.rules.values() if one.title == title]
    related = set(keys)
    while True:
        more = {key for event in events for key in _list_links(event.change, rules, concerned, related)} - related
        if not more:
            return tuple(event for event in events if event.change.key in related)
        related |= more


def _list_links(change: Change, rules: Rules, concerned: Iterable[Rule], related: set[ItemKey]) -> Iterator[ItemKey]:
    """The items that one of the rules links to related items, according to a record."""
    entity = rules.entity_of(change.key)
    for rule in concerned if entity is not None else ():
        assert entity is not None
        images = [image for image in (change.old, change.new) if image is not None]
        if isinstance(rule, TargetRule):
            if rule.target is entity and change.key in related:
                yield from (key for image in images for key in rule.source_keys(image))
            if rule.source is entity and any(hint.target in related for hint in rule.hints(change)):
                yield change.key
        elif isinstance(rule, PartRule) and entity in (rule.source, rule.target):
            for part in rule.parts(change, entity):
                if part.source is not None and part.target in related:
                    yield part.source
            if rule.target is entity and any(rule.find_total(image) in related for image in images):
                yield change.key
