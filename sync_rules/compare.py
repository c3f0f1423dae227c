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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from sync_rules.attributes import AttributeValue, Item, Path, get
from sync_rules.decide import Sources, Target, source_of
from sync_rules.entities import Table
from sync_rules.errors import StoreError
from sync_rules.kinds import KINDS
from sync_rules.model import ItemKey
from sync_rules.reconcile import read_sources
from sync_rules.rules import Rule, Rules
from sync_rules.store import Read, Scan, Work
from sync_rules.updates import Desired, differences


class Drift(Enum):
    """In which way a copy differs from what its rule says."""

    WRONG = "wrong"  # it holds another value than its source
    MISSING = "missing"  # it is not there, its source is
    EXTRA = "extra"  # it is there, its source has no such value
    ORPHAN = "orphan"  # a target under `on_delete: delete` whose source does not exist


@dataclass(frozen=True, slots=True)
class Difference:
    """One rule's copies on one target that are not as they should be. Keys and paths, never a value.

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


def sweep_page(table: Table, rules: Rules, only: frozenset[str], cursor: Item | None, limit: int) -> Work[Sweep]:
    """Scan a page and compare the targets on it for the rules in `only` with their sources, which are read after it."""
    page = yield Scan(table.name, limit, cursor)
    targets = [target for item in page.items if (target := target_of(item, table, rules, only)) is not None]
    return Sweep((yield from compare(targets)), len(page.items), page.cursor)


def target_of(item: Item, table: Table, rules: Rules, only: frozenset[str]) -> Target | None:
    """An item as the target of the rules in `only`, or None when it is of none."""
    key = table.key_of(item)
    entity = rules.entity_of(key) if key is not None else None
    if key is None or entity is None:
        return None
    asked = tuple(rule for rule in rules.into_target(entity) if rule.name in only)
    return Target(key, item, asked) if asked else None


def look_again(found: Iterable[Difference], rules: Rules) -> Work[Comparison]:
    """The next look at what differed: consistent images first, their sources then. `judge` says what it means."""
    asked: dict[ItemKey, set[str]] = {}
    for difference in found:
        asked.setdefault(difference.target, set()).add(difference.rule)
    keys = tuple(asked)
    images = yield Read(keys)
    present = [
        target
        for key, image in zip(keys, images, strict=True)
        if image is not None
        and (target := target_of(image, rules.tables[key.table], rules, frozenset(asked[key]))) is not None
    ]
    return (yield from compare(present))


def compare(targets: Sequence[Target]) -> Work[Comparison]:
    """Compare targets, whose images are at hand, with their sources."""
    sources = yield from read_sources(targets)
    comparison = Comparison()
    for target in targets:
        for rule in target.rules:
            _compare_one(rule, target, sources, comparison)
    return comparison


def _compare_one(rule: Rule, target: Target, sources: Sources, comparison: Comparison) -> None:
    key = rule.source_key(target.image)
    source = source_of(rule, target.image, sources)
    if isinstance(source, StoreError):
        raise source
    desired = KINDS[type(rule)].desired(rule, source, target.image)
    if key is not None and source is None and KINDS[type(rule)].deletes(rule, target.image):
        found, paths = Drift.ORPHAN, {}
    elif desired is None:
        comparison.kept[rule.name] += 1
        return
    elif paths := differences(target.image, desired):
        found = _drift(target.image, paths)
    else:
        comparison.right[rule.name] += 1
        return
    # an orphan is not kept up by writing its copies
    held = () if found is Drift.ORPHAN else tuple(get(target.image, path) for path in rule.copies)
    truth = _digest(str(key), source is None, *map(_ordered, (desired or {}).values()))
    difference = Difference(
        rule.name, found, target.key, key, tuple(paths), held=_digest(*map(_ordered, held)), truth=truth
    )
    comparison.different.append(difference)


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
