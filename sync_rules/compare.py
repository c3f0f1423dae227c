"""The other end of the road: look at targets as reconcile does, but say what differs instead of writing it.

Law: nothing is called drift on one look. A scan may show an old image and a record may still be on its way, so what
differs is looked at again, strongly consistent, after a grace period. What is right by then was lag; so is a copy that
is another wrong one by then, because somebody is keeping it up with a source that changes all the time. Drift is a copy
that is still wrong and that nobody has touched, although what it must be has not changed either. The price: a wrong
copy that a foreign writer keeps changing passes for lag in one run, and a source that keeps going back and forth
between the same values may pass for drift.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sync_rules.attributes import AttributeValue, Item, Path, get
from sync_rules.decide import lost_source
from sync_rules.entities import Table
from sync_rules.errors import StoreError
from sync_rules.families import Desired, Part, TargetRule, Trouble
from sync_rules.model import Change, Delete, ItemKey, Transaction, Update, Write
from sync_rules.pace import Pace
from sync_rules.parts import judged, read_parts
from sync_rules.rules import Rules
from sync_rules.sources import Found, Sources, Target, read_sources, rounds_of
from sync_rules.store import Read, Scan, Work
from sync_rules.updates import differences

PACE: Final = Pace()


class Drift(Enum):
    """In which way a copy differs from what its rule says."""

    WRONG = "wrong"  # it holds another value than its source
    MISSING = "missing"  # it is not there, its source is
    EXTRA = "extra"  # it is there, its source has no such value
    ORPHAN = "orphan"  # its source does not exist, and the rule does not say what to do without
    STUCK = "stuck"  # it cannot be made right: a cycle, too many members, a key that is taken


Subject = tuple[str, ItemKey, Part | None]  # a rule and what it is about: the same for every look at it


@dataclass(frozen=True, slots=True)
class Difference:
    """One rule's copies on one target, or one part, that are not as they should be. Keys and paths, never a value.

    `held` stands for what the target held and `truth` for which source says it must hold what: digests, to tell whether
    the next look finds the same. They are not for output.
    """

    rule: str
    drift: Drift
    target: ItemKey
    source: ItemKey | None
    paths: tuple[Path, ...]
    held: str = field(repr=False)
    truth: str = field(repr=False)
    reason: str = ""  # why it is stuck
    part: Part | None = None

    @property
    def subject(self) -> Subject:
        return self.rule, self.target, self.part

    @property
    def mendable(self) -> bool:
        return self.drift not in (Drift.ORPHAN, Drift.STUCK)


class Verdict(Enum):
    """What two looks that both find a copy wrong, a grace period apart, come to."""

    LAG = "lag"  # another copy than before: it is being kept up
    DRIFT = "drift"  # wrong both times, and nothing has happened in between
    UNSURE = "unsure"  # the same wrong copy, but its source changed since: that record may be on its way


def judge(before: Difference, now: Difference) -> Verdict:
    """The verdict on a difference that the next look finds again."""
    if now.held != before.held:
        return Verdict.LAG
    return Verdict.DRIFT if now.truth == before.truth else Verdict.UNSURE


@dataclass
class Comparison:
    """What a look at some targets came to, in (rule, target) pairs."""

    right: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    different: list[Difference] = field(default_factory=list)


@dataclass(frozen=True)
class Sweep:
    """One page of a sweep over a table: what it came to, how many items it had, and where the scan goes on."""

    comparison: Comparison
    items: int
    cursor: Item | None


@dataclass
class Asked:
    """What is to be compared. Most parts are met twice, with what they are made from and with what they are written on:
    for each, whether it counts when it is right.
    """

    targets: list[Target] = field(default_factory=list)
    parts: dict[Part, bool] = field(default_factory=dict)


def sweep_page(table: Table, rules: Rules, only: frozenset[str], cursor: Item | None, limit: int) -> Work[Sweep]:
    """Scan a page and compare the targets and parts on it for the rules in `only`, whose sources are read after it."""
    page = yield Scan(table.name, limit, cursor)
    asked = Asked()
    for item in page.items:
        ask(item, table, rules, only, asked)
    return Sweep((yield from compare(asked)), len(page.items), page.cursor)


def ask(item: Item, table: Table, rules: Rules, only: frozenset[str], asked: Asked, *, alone: bool = False) -> bool:
    """Add what the rules in `only` say of an item: as a target, and as one side of parts. Says whether any is there.

    What is right is known from both sides; it counts from that of its source, or, where an item is looked at `alone`,
    from either.
    """
    key = table.key_of(item)
    entity = rules.entity_of(key) if key is not None else None
    if key is None or entity is None:
        return False
    mine = tuple(rule for rule in rules.into_target(entity) if rule.name in only)
    if mine:
        asked.targets.append(Target(key, item, mine))
    of_parts = [rule for rule in rules.parts_of(entity) if rule.name in only]
    for rule in of_parts:
        for part in rule.parts(Change(key, None, item), entity):
            asked.parts[part] = asked.parts.get(part, False) or alone or part.source == key
    return bool(mine or of_parts)


def look_again(found: Iterable[Difference], rules: Rules) -> Work[Comparison]:
    """The next look at what differed: consistent images first, their sources then. `judge` says what it means."""
    names: dict[ItemKey, set[str]] = {}
    asked = Asked()
    for difference in found:
        if difference.part is not None:
            asked.parts[difference.part] = True
        else:
            names.setdefault(difference.target, set()).add(difference.rule)
    keys = tuple(names)
    images = (yield Read(keys)) if keys else ()
    for key, image in zip(keys, images, strict=True):
        if image is not None:
            targets = Asked()
            ask(image, rules.tables[key.table], rules, frozenset(names[key]), targets)
            asked.targets += targets.targets
    return (yield from compare(asked))


def compare(asked: Asked) -> Work[Comparison]:
    """Compare targets, whose images are at hand, and parts, which are read, with their sources."""
    comparison = Comparison()
    for targets in rounds_of(asked.targets, PACE.limits):
        sources = yield from read_sources(targets, PACE)
        for target in targets:
            for rule in target.rules:
                _compare_one(rule, target, sources, comparison)
    parts = tuple(asked.parts)
    for start in range(0, len(parts), PACE.limits.fan_out_round_max_items):
        some = parts[start : start + PACE.limits.fan_out_round_max_items]
        for part, written_on, made_from in (yield from read_parts(some)):
            _compare_part(part, written_on, made_from, asked.parts[part], comparison)
    return comparison


def _compare_part(part: Part, written_on: Found, made_from: Found, sides: int, comparison: Comparison) -> None:
    for found in (written_on, made_from):
        if isinstance(found, StoreError):
            raise found
    verdict = judged(part, written_on, made_from)
    if verdict is None:
        comparison.right.update([part.rule.name] * sides)
    else:
        comparison.different.append(_differing_part(part, verdict, written_on, made_from))


def _compare_one(rule: TargetRule, target: Target, sources: Sources, comparison: Comparison) -> None:
    found = sources.of(rule, target)
    if isinstance(found, StoreError):
        raise found
    desired = found if isinstance(found, Trouble) else rule.desired(found, target.image)
    paths: Desired = {}
    reason = ""
    if lost_source(rule, target, sources) is not None and rule.orphans(target.image):
        drift = Drift.ORPHAN
    elif isinstance(desired, Trouble):
        drift, reason = Drift.STUCK, desired.reason
    elif desired is None:
        comparison.kept[rule.name] += 1
        return
    elif paths := differences(target.image, desired):
        drift = _drift(target.image, paths)
    else:
        comparison.right[rule.name] += 1
        return
    # an orphan is not kept up by writing its copies
    held = () if drift is Drift.ORPHAN else tuple(get(target.image, path) for path in rule.copies)
    says = desired.values() if isinstance(desired, Mapping) else ()
    named = rule.source_keys(target.image)
    source = named[0] if named else None
    truth = _digest(
        str(source), not any(found) if not isinstance(found, Trouble) else found.reason, *map(_ordered, says)
    )
    comparison.different.append(
        Difference(rule.name, drift, target.key, source, tuple(paths), _digest(*map(_ordered, held)), truth, reason)
    )


def _differing_part(part: Part, verdict: Write | Trouble | StoreError, target: Found, source: Found) -> Difference:
    """A part that is not as it should be. Of a set only the one element counts: the others come and go."""
    reason = ""
    held: object = _whole(target)
    last = verdict.actions[-1] if isinstance(verdict, Transaction) else verdict
    if isinstance(verdict, Trouble):
        drift, reason = Drift.STUCK, verdict.reason
        held = reason  # what else happens to the item does not matter
    elif isinstance(last, Update) and (last.adds or last.discards):
        drift = Drift.MISSING if last.adds else Drift.EXTRA
        held = drift.value
    elif isinstance(last, Delete):
        drift = Drift.EXTRA
    else:
        drift = Drift.MISSING if target is None else Drift.WRONG
    return Difference(
        part.rule.name, drift, part.target, part.source, (), _digest(held), _digest(_whole(source)), reason, part
    )


def _whole(item: Found) -> object:
    """An item as a value."""
    return _ordered({"M": item}) if item is not None and not isinstance(item, StoreError) else None


def _drift(image: Item, paths: Desired) -> Drift:
    if all(get(image, path) is None for path in paths):
        return Drift.MISSING
    if all(value is None for value in paths.values()):
        return Drift.EXTRA
    return Drift.WRONG


def _digest(*seen: object) -> str:
    """Sixteen hexadecimal digits that stand for what was seen."""
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def _ordered(value: AttributeValue | None) -> object:
    """A value without the order of its sets and maps, which may differ from one read to the next."""
    if value is None:
        return None
    ((kind, content),) = value.items()
    match kind:
        case "SS" | "NS" | "BS":
            return kind, sorted(content)
        case "M":
            return kind, [(name, _ordered(content[name])) for name in sorted(content)]
        case "L":
            return kind, [*map(_ordered, content)]
    return kind, content
