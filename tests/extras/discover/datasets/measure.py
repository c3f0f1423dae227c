"""How right a proposal is: precision and recall of its rules, drift counted exactly, and the data after a backfill.

What is compared are compiled rules and the values they make, never text. These forms count as the same:

- entities by the items they recognise, whatever they are called; links by the values that a backfill writes;
- a rule for several attributes and a rule for each; `derive` by `as` or by `join`, and a copy within one item;
- `mode: ledger` and `mode: recount`; a set of ids by elements or by values; a mirror, or copies along the same ids;
- a copy of a copy, from the first source or from the one between, and any source with the same values;
- a `where` in any words that lets the same items in.

Right rules that no data set asks for are not counted: natural truths, formulas that make the key of an index, and
attributes that repeat a part of the item's own key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import MemoryState
from sync_rules.extras.discover.propose.proposal import Proposal, Proposed
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.language.load import check_rules
from sync_rules.language.problems import list_errors
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import make_plain_value
from sync_rules.model.values import Item
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules
from tests.extras.discover.datasets.dataset import DataSet, Record, Truth, alike, get, item_of, stored
from tests.support.worlds import Parked

SHOWN_MAX = 6


@dataclass
class Unit:
    """One attribute that a proposed rule writes; with a mirror, all that it writes."""

    rule: Rule
    entity: str  # as the truth calls it
    path: str

    @property
    def into(self) -> str:
        return f"{self.entity}.{self.path}"

    @property
    def reads(self) -> set[str]:
        """The paths that the rule reads, of any entity."""
        return {".".join(path) for node in self.rule.nodes() for _, path in node.reads}

    def __str__(self) -> str:
        return f"{self.rule.kind} of {self.rule.source.name} into {self.into} ({self.rule.name})"


@dataclass
class Score:
    """The figures of a proposal, counted by attributes that rules write."""

    name: str
    rules: int = 0  # proposed, and no comments
    right: int = 0
    expected: int = 0
    found: int = 0
    counted: int = 0  # the found whose drift is to be known
    exact: int = 0
    wrong: list[str] = field(default_factory=list)
    commented: int = 0  # the expected that are comments
    missed: list[str] = field(default_factory=list)
    miscounted: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)  # not recognised as they are
    refused: list[str] = field(default_factory=list)  # by check
    spoiled: list[str] = field(default_factory=list)  # by a backfill

    @property
    def recall(self) -> float:
        return (self.found + self.commented) / self.expected if self.expected else 1.0

    @property
    def precision(self) -> float:
        return self.right / self.rules if self.rules else 1.0

    def __str__(self) -> str:
        line = (
            f"{self.name}: {self.right} of {self.rules} are right, {self.found} of {self.expected} are found, "
            f"{self.commented} are comments, drift is exact in {self.exact} of {self.counted}"
        )
        parts = ("refused", "entities", "missed", "wrong", "miscounted", "spoiled")
        told = [f"  {part}: {one}" for part in parts for one in getattr(self, part)[:SHOWN_MAX]]
        return "\n".join([line, *told])


def measure(data: DataSet, proposal: Proposal, text: str) -> Score:
    """The score of a proposal and of the rules file that was written of it. `data` is as it was when it was read."""
    score = Score(data.name)
    rules, problems = check_rules(text, {})
    if rules is None:
        score.refused = [problem.render("rules.yaml") for problem in list_errors(problems)]
        score.expected = sum(not truth.natural for truth in data.truths)
        score.missed = [truth.into for truth in data.truths if not truth.natural]
        return score
    names = _names(data, rules, score)
    units = list(_units(rules, names))
    after, failed = backfilled(data, rules)
    score.spoiled += failed
    proposed = {one.name: one for one in proposal.rules if one.held_back is None}
    held = [one for one in proposal.rules if one.held_back is not None]
    comments = {(one.kind, *_place(one, names)) for one in held}
    _match(data, units, after, proposed, score, comments=comments)
    _spoiled(data, after, score)
    return score


# ---------------------------------------------------------------- entities
def _names(data: DataSet, rules: Rules, score: Score) -> Mapping[str, str]:
    """The name in the truth of each proposed entity, by the items that it recognises."""
    seen: dict[str, Counter[str]] = {}
    own: Counter[str] = Counter()
    for entity, record in data.records():
        own[entity] += 1
        found = rules.entity_of(_key(data, rules, entity, record))
        if found is None:
            seen.setdefault("", Counter())[entity] += 1
        else:
            seen.setdefault(found.name, Counter())[entity] += 1
    names: dict[str, str] = {}
    for proposed, entities in seen.items():
        entity, count = entities.most_common(1)[0]
        if proposed:
            names[proposed] = entity
        if not proposed or len(entities) > 1 or count != own[entity]:
            score.entities.append(f"{proposed or 'no entity'} has {dict(entities)} of {own[entity]}")
    return names


def _key(data: DataSet, rules: Rules, entity: str, record: Record) -> ItemKey:
    """The key of a record as the rules know it: their table of that name, and its attributes."""
    ((table,),) = [rules.by_physical_name[data.table_of[entity]]]
    key = table.key_of(item_of(record))
    assert key is not None, "an item without the key of its table"
    return key


# ---------------------------------------------------------------- rules
def _units(rules: Rules, names: Mapping[str, str]) -> Iterator[Unit]:
    for rule in rules.rules.values():
        if rule.name == rule.title:  # else the helper of another
            target = names.get(rule.target.name, rule.target.name)
            paths = [""] if rule.kind == "mirror" else [".".join(path) for path in rule.copies]
            yield from (Unit(rule, target, path) for path in paths)


def _place(rule: Proposed, names: Mapping[str, str]) -> tuple[str, str]:
    """The entity, as the truth calls it, and the path that a rule writes; a mirror writes a whole item."""
    entity, _, path = str(rule.rule.get("into", rule.rule.get(rule.kind))).partition(".")
    return names.get(entity, entity), path


def _match(
    data: DataSet, units: list[Unit], after: Mapping[int, Record], proposed: Mapping[str, Proposed], score: Score,
    *, comments: Collection[tuple[str, str, str]],
) -> None:  # fmt: skip
    free = list(enumerate(data.truths))
    met: dict[int, list[Unit]] = {}
    for unit in units:
        if _repeats_key(data, unit, after):
            continue
        fits = [number for number, truth in free if _fits(unit, truth)]
        right = next((number for number in fits if _is_right(data, number, after)), None)
        if right is not None:
            met.setdefault(right, []).append(unit)
            if data.truths[right].natural:
                continue
        score.rules += 1
        score.right += right is not None
        if right is None:
            score.wrong.append(f"{unit}: {'not right after a backfill' if fits else 'no such truth'}")
    for number, truth in free:
        if truth.natural:
            continue
        score.expected += 1
        paths = {unit.path for unit in met.get(number, ())}
        if "" in paths or set(truth.place[1].split()) <= paths:
            score.found += 1
            _count(data, number, met[number], proposed, score)
        elif any(
            (kind, truth.place[0], path) in comments for kind in truth.kinds for path in (*truth.place[1].split(), "")
        ):
            score.commented += 1
        else:
            score.missed.append(f"{'/'.join(sorted(truth.kinds))} {', '.join(sorted(truth.reads))} into {truth.into}")


def _fits(unit: Unit, truth: Truth) -> bool:
    """True for a rule of the right kind for the attribute. What it reads shows in what a backfill makes of it, but for a
    snapshot, which a backfill leaves alone.
    """
    entity, path = truth.place
    if unit.entity != entity or unit.rule.kind not in truth.kinds:
        return False
    if truth.snapshot and not unit.reads & {ref.partition(".")[2] for ref in truth.reads}:
        return False
    snapshot = getattr(unit.rule, "mode", "live") == "snapshot"
    return unit.rule.kind == "mirror" or (unit.path in path.split() and snapshot == truth.snapshot)


def _repeats_key(data: DataSet, unit: Unit, after: Mapping[int, Record]) -> bool:
    """True for a right formula of an index key, or of an attribute that repeats the item's own key. Any design with
    such attributes has these formulas, and the measure does not count them.
    """
    table = data.tables[data.table_of[unit.entity]]
    if unit.rule.kind != "derive" or unit.into in {truth.into for truth in data.truths}:
        return False
    index_keys = {name for key in table.indexes.values() for name in key}
    if unit.path not in index_keys and not unit.reads <= set(table.key):
        return False
    return all(alike(get(after[id(r)], unit.path), get(r, unit.path)) for r in data.entities[unit.entity])


def _is_right(data: DataSet, number: int, after: Mapping[int, Record]) -> bool:
    """True if a backfill made what was right; it leaves snapshots alone."""
    truth, clean = data.truths[number], data.clean[number]
    return truth.snapshot or all(
        record in after and alike(get(after[record], truth.place[1]), wanted) for record, wanted in clean.items()
    )


def _count(data: DataSet, number: int, units: list[Unit], proposed: Mapping[str, Proposed], score: Score) -> None:
    score.counted += 1
    told = {unit.path: proposed[unit.rule.title].differ for unit in units if unit.rule.title in proposed}
    fine = True
    for unit in units:
        wanted = data.differing(number, unit.path)
        alone = len(unit.rule.copies) == 1 or not unit.path
        fine &= told[unit.path] in wanted if alone else told[unit.path] >= max(wanted)
    if fine:
        score.exact += 1
    else:
        wanted = data.differing(number)
        score.miscounted.append(f"{data.truths[number].into}: {told} differ, expected {sorted(wanted)}")


# ---------------------------------------------------------------- after a backfill
def backfilled(data: DataSet, rules: Rules) -> tuple[dict[int, Record], list[str]]:
    """Each record, by its id, as it is after a backfill in memory, and the failures."""
    store = MemoryStore(rules.tables)
    keys: dict[int, ItemKey] = {}
    for entity, record in data.records():
        key = _key(data, rules, entity, record)
        keys[id(record)] = key
        store.put(key.table, item_of(record))
    _, failed = backfill(rules, store)
    return {number: _plain(store.item(key)) for number, key in keys.items()}, failed


def backfill(rules: Rules, store: MemoryStore) -> tuple[BackfillRun, list[str]]:
    """Backfill all rules in memory. Returns the run and the failures."""
    parked, names = Parked(), frozenset(rules.rules)
    run = BackfillRun(
        Selection(rules, names), store, parked, MemoryState(), {}, supplies=make_supplies(rules, 1), completes=names,
        sleep=lambda _seconds: None,
    )  # fmt: skip
    failed = [] if run.run() else [f"the backfill was not finished: {run.left[0].reason}"]
    failed += [f"{rule}: {reason}, {count} times" for (rule, reason), count in Counter(parked.told).items()]
    return run, failed


def _plain(item: Item | None) -> Record:
    return {name: make_plain_value(value) for name, value in (item or {}).items()}


def _spoiled(data: DataSet, after: Mapping[int, Record], score: Score) -> None:
    """Attributes that a backfill changed to something else than what was right."""
    clean: dict[int, dict[str, Any]] = {}
    for number, truth in enumerate(data.truths):
        for record, right in data.clean[number].items():
            paths = truth.place[1].split()
            for path in paths:
                clean.setdefault(record, {})[path] = right[path] if len(paths) > 1 else right
    spoiled: Counter[str] = Counter()
    for entity, record in data.records():
        before, now = item_of(record), after[id(record)]
        for name in before.keys() | now.keys():
            value = now.get(name)
            if stored(value) == before.get(name, stored(None)):
                continue
            whole = clean.get(id(record), {})
            within = {path: right for path, right in whole.items() if path == name or path.startswith(f"{name}.")}
            if not within or not all(alike(get(now, path), right) for path, right in within.items()):
                spoiled[f"{entity}.{name}"] += 1
    score.spoiled += [f"{name} of {count} items" for name, count in spoiled.items()]
