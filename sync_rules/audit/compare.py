"""Compare targets with their rules: reconcile's read-only counterpart.

Invariant: a single check never reports drift. A scan may show an old image, and a record may still be on its way. So a
difference is checked again after a grace period, by consistent reads. It was lag if the copy is right by then, or wrong
in another way, because its source keeps changing. It is drift if the copy is still wrong while neither copy nor source
has changed. The price: a wrong copy that another writer keeps changing passes for lag in one run. A source that
alternates between the same values may pass for drift. A copy without a source is an orphan. With `on_delete: clear`, a
repair removes it; `delete` and `restrict` only report it; `keep` only counts it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from sync_rules.audit.stock import Stock
from sync_rules.model.errors import StoreError
from sync_rules.model.items import NOT_IN_INDEX, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.semantics import apply_write
from sync_rules.model.sizes import describe_impossible
from sync_rules.model.values import AttributeValue, Item, Path, get
from sync_rules.model.writes import (
    Delete,
    Desired,
    Transaction,
    Update,
    Write,
    find_differences,
    find_misfit,
    make_update,
)
from sync_rules.pipeline.ancestors import read_expected_sources
from sync_rules.pipeline.decide import find_lost_source
from sync_rules.pipeline.parts import read_parts
from sync_rules.pipeline.requests import Found, Read, Scan, Work
from sync_rules.pipeline.sources import Sources, Target, split, split_rounds
from sync_rules.rules.families import Part, TargetRule
from sync_rules.rules.rule import Blocked, Waiting
from sync_rules.rules.ruleset import Rules

BOUNDS: Final = Bounds(follows_ancestors=True)


class Drift(Enum):
    """How a copy differs from its rule."""

    WRONG = "wrong"  # it holds another value than its source
    MISSING = "missing"  # it is not there, its source is
    EXTRA = "extra"  # it is there, its source has no such value
    ORPHAN = "orphan"  # it is there, its source does not exist
    STUCK = "stuck"  # it cannot be made right: a cycle, too many members, a key that is taken, an item that is full


Subject = tuple[str, ItemKey, Part | None]  # a rule and its target: the same for every look
Thing = tuple[str, ItemKey, str]  # a rule, and what it keeps on a target: each is one finding, from whatever side


@dataclass(frozen=True, slots=True)
class Difference:
    """Copies of one rule on one target, or one part, that are not right: keys and paths, never a value. `held` and
    `truth` are digests of the target's values and of its source's values, to compare with the next check.
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
    repairable: bool = True  # not what is stuck, nor an orphan that the rule leaves
    tried: bool = False  # stuck, but for a reason that may be gone by the time of a repair, which tries it all the same

    @property
    def subject(self) -> Subject:
        return self.rule, self.target, self.part

    @property
    def thing(self) -> Thing:
        return self.rule, self.target, self.part.element if self.part else ""


def group_by_thing(found: Iterable[Difference]) -> dict[Thing, tuple[Difference, ...]]:
    """Group differences by the thing that they are about. A mirror that names a foreign source has two: for that source
    and for its own.
    """
    grouped: dict[Thing, tuple[Difference, ...]] = {}
    for one in found:
        grouped[one.thing] = (*grouped.get(one.thing, ()), one)
    return grouped


def merge_thing(found: Sequence[Difference]) -> Difference:
    """Merge the differences of a thing into one. Count it as wrong, not stuck, if repairing another difference unblocks
    it.
    """
    stuck = next((one for one in found if one.drift is Drift.STUCK), None)
    if stuck is None or all(one.drift is Drift.STUCK for one in found):
        return found[0]
    return replace(stuck, drift=Drift.WRONG, reason="", repairable=True)


def can_be_late(one: Difference, rules: Rules) -> bool:
    """Return True if a copy may be missing because its source came later: no record of such a source finds its
    targets.
    """
    rule = rules.rules.get(one.rule)
    return one.drift is Drift.MISSING and rule is not None and rule.pull_only


class Verdict(Enum):
    """The verdict of two checks, a grace period apart, that both find a copy wrong."""

    LAG = "lag"  # another copy than before: it follows its source
    DRIFT = "drift"  # the same wrong copy, and its source has not changed
    UNSURE = "unsure"  # the same wrong copy, but its source changed since: that record may be on its way


def judge_second_look(before: Difference, now: Difference) -> Verdict:
    """Return the verdict on a difference that the next check finds again."""
    if now.held != before.held:
        return Verdict.LAG
    return Verdict.DRIFT if now.truth == before.truth else Verdict.UNSURE


@dataclass
class Comparison:
    """The result of a check of some targets, in (rule, target) pairs. `orphaned` counts the kept copies without a
    source; `waiting` counts copies that are not compared until a backfill of their rule.
    """

    right: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    orphaned: Counter[str] = field(default_factory=Counter)
    waiting: Counter[str] = field(default_factory=Counter)
    different: list[Difference] = field(default_factory=list)


@dataclass(frozen=True)
class Sweep:
    """One page of a sweep over a table: its comparison, its number of items, the cursor of the next page."""

    comparison: Comparison
    items: int
    cursor: Item | None


def sweep_page(scan: Scan, rules: Rules, only: frozenset[str]) -> Work[Sweep]:
    """Scan a page, then read the sources of the rules in `only`, and compare the targets and parts on the page."""
    page = yield scan
    stock = Stock()
    for item in page.items:
        stock.add(item, rules.tables[scan.table], rules, only)
    return Sweep((yield from compare(stock)), len(page.items), page.cursor)


def recheck(found: Iterable[Difference], rules: Rules) -> Work[Comparison]:
    """Check differences again: read consistent images first, then their sources. See `judge_second_look`."""
    names: dict[ItemKey, set[str]] = {}
    stock = Stock()
    for difference in found:
        if difference.part is not None:
            stock.parts[difference.part] = True
        else:
            names.setdefault(difference.target, set()).add(difference.rule)
    keys = tuple(names)
    images = (yield Read(keys)) if keys else ()
    for key, image in zip(keys, images, strict=True):
        if image is not None:
            of_target = Stock()
            of_target.add(image, rules.tables[key.table], rules, frozenset(names[key]))
            stock.targets += of_target.targets
            stock.unlisted += of_target.unlisted
        else:
            of_name = (rules.rules[name] for name in names[key])
            makers = tuple(rule for rule in of_name if isinstance(rule, TargetRule) and rule.makes)
            stock.named |= {key: makers} if makers else {}
    return (yield from compare(stock))


def compare(stock: Stock) -> Work[Comparison]:
    """Compare targets, whose images are given, and parts, which are read, with their sources."""
    comparison = Comparison()
    unlisted = dict.fromkeys(stock.unlisted)
    comparison.different += (  # only the application can set a key attribute
        Difference(rule, Drift.STUCK, key, None, (), "", "", NOT_IN_INDEX, repairable=False) for rule, key in unlisted
    )
    missing = yield from stock.read_missing_targets()
    for targets in split_rounds([*stock.targets, *missing], BOUNDS.limits):
        sources = yield from read_expected_sources(targets, BOUNDS)
        for target in targets:
            empty = target.key in sources.empty and not target.absent
            rules = _compare_empty(target, comparison) if empty else target.rules
            for rule in (rule for rule in rules if (rule.name, target.key) not in unlisted):
                _compare_one(rule, target, sources, comparison)
    for some in split(tuple(stock.parts), BOUNDS.limits.fan_out_round_max_items):
        for part, written_on, made_from in (yield from read_parts(some)):
            _compare_part(part, written_on, made_from, stock.parts[part], comparison)
    comparison.different = [*{one.subject: one for one in comparison.different}.values()]
    return comparison


def _compare_empty(target: Target, comparison: Comparison) -> tuple[TargetRule, ...]:
    """Note a target that should not exist, because it has no members. Returns the rules that still compare it."""
    maker = target.makers[0]
    unexpected = maker.find_unexpected_attribute(target.image)
    held, drift = compute_digest(sort_item(target.image)), Drift.EXTRA if unexpected is None else Drift.STUCK
    reason, stays = ("", False) if unexpected is None else (unexpected.reason, True)
    found = Difference(maker.name, drift, target.key, None, (), held, "", reason, repairable=not stays, tried=stays)
    comparison.different.append(found)
    return tuple(rule for rule in target.rules if stays and rule is not maker)


def _compare_part(part: Part, written_on: Found, made_from: Found, sides: int, comparison: Comparison) -> None:
    if isinstance(written_on, StoreError):
        raise written_on
    if isinstance(made_from, StoreError):
        raise made_from
    for meant in part.rule.expand_part(part, written_on, made_from):
        write = part.rule.write_for(meant, written_on, made_from)
        if isinstance(write, Blocked):
            write = part.rule.rebuild_part(meant, written_on, made_from) or write
        if isinstance(write, Blocked) and write.of_target:  # one thing is one finding, whatever it is in the way of
            part, made_from = Part(part.rule, part.target, None), None
        if write is not None:
            comparison.different.append(_describe_part(part, write, written_on, made_from))
            return
    comparison.right.update([part.rule.name] * sides)


def _compare_one(rule: TargetRule, target: Target, sources: Sources, comparison: Comparison) -> None:
    shared = sources.find_shared_values(rule, target.image)
    if shared is not None and not find_differences(target.image, shared):  # most targets: nothing else is needed
        comparison.right[rule.name] += 1
        return
    found = sources.of(rule, target)
    if isinstance(found, StoreError):
        raise found
    if isinstance(found, Waiting):
        comparison.waiting[rule.name] += 1
        return
    if target.absent and isinstance(found, tuple) and not any(sources.has_members(one, target) for one in target.rules):
        comparison.right[rule.name] += 1
        return
    desired = found if isinstance(found, Blocked) else rule.compute_values(found, target.image)
    paths: Desired = {}
    reason, repairable, tried = "", True, False
    lost = find_lost_source(rule, target, sources) is not None
    amiss = lost and isinstance(desired, Mapping) and bool(find_differences(target.image, desired))
    if lost and rule.orphans(target.image) and not amiss:
        drift, repairable = Drift.ORPHAN, False
    elif isinstance(desired, Blocked):
        drift, reason, repairable = Drift.STUCK, desired.reason, False
    elif desired is None:
        comparison.kept[rule.name] += 1
        comparison.orphaned[rule.name] += lost and rule.outlives(target.image)
        return
    elif (paths := find_differences(target.image, desired)) or _explain_omission(rule, found, target.image):
        reason = (_explain_refusal(rule, target, paths) if paths else "") or _explain_omission(
            rule, found, target.image
        )
        drift = Drift.STUCK if reason else _choose_drift(rule, target, paths, sources)
        repairable, tried = not reason, bool(reason and paths)
    else:
        comparison.right[rule.name] += 1
        return
    left = drift is Drift.ORPHAN and not repairable  # and not kept up by writing its copies
    held = () if left else tuple(get(target.image, path) for path in rule.copies)
    says = desired.values() if isinstance(desired, Mapping) else ()
    source = next(iter(rule.source_keys(target.image)), None)
    there = found.reason if isinstance(found, Blocked) else not any(found)
    truth, held_digest = (
        compute_digest(str(source), there, *map(sort_value, says)),
        compute_digest(*map(sort_value, held)),
    )
    comparison.different.append(
        Difference(
            rule.name,
            drift,
            target.key,
            source,
            rule.mask_paths(paths),
            held_digest,
            truth,
            reason,
            repairable=repairable,
            tried=tried,
        )
    )


def _explain_omission(rule: TargetRule, found: Sequence[Item | None] | Blocked, image: Item) -> str:
    """Return why a target must omit something, although the omission is right by its rule; "" if it omits nothing."""
    left_out = None if isinstance(found, Blocked) else rule.find_omission(found, image)
    return "" if left_out is None else left_out.reason


def _explain_refusal(rule: TargetRule, target: Target, paths: Desired) -> str:
    """Return why no write can repair a target: too little room, or no map; "" if a write can. A repair tries it
    anyway: only DynamoDB knows sizes near the limit.
    """
    if reason := find_misfit(target.image, paths):
        return reason
    return describe_impossible(
        rule.target.table, apply_write(make_update(target.key, target.image, paths, ()), target.image)
    )


def _describe_part(part: Part, write: Write | Blocked, target: Item | None, source: Item | None) -> Difference:
    """Return the difference of a wrong part. In a set only its own element counts: others may change."""
    reason: str = ""
    held: object = None
    unasked = Drift.ORPHAN if source is None else Drift.EXTRA
    last = write.actions[-1] if isinstance(write, Transaction) else write
    if isinstance(write, Blocked):
        drift, reason, held = Drift.STUCK, write.reason, write.reason
    elif isinstance(last, Update) and (last.adds or last.discards):
        drift, held = Drift.MISSING if last.adds else unasked, bool(last.adds)
    elif isinstance(last, Delete):
        drift, held = unasked, list_values_at_stake(target, last, part.rule.copies)
    else:
        drift = Drift.MISSING if target is None else Drift.WRONG
        held = list_values_at_stake(target, last, part.rule.copies)
    tried = isinstance(write, Blocked) and write.patient
    if not isinstance(write, Blocked) and (
        reason := describe_impossible(part.rule.target.table, apply_write(write, target))
    ):
        drift, tried = Drift.STUCK, True
    repairable = drift is not Drift.STUCK
    truth = compute_digest(sort_item(source))
    return Difference(
        part.rule.name,
        drift,
        part.target,
        part.source,
        (),
        compute_digest(held),
        truth,
        reason,
        part,
        repairable,
        tried,
    )


def _choose_drift(rule: TargetRule, target: Target, paths: Desired, sources: Sources) -> Drift:
    if all(get(target.image, path) is None for path in paths):
        return Drift.MISSING
    if all(value is None for value in paths.values()):
        named = rule.find_value_sources(target.key, target.image, paths)  # None: no item that could be gone
        exists = named is None or any(sources.items.get(key) is not None for key in named)
        return Drift.EXTRA if exists else Drift.ORPHAN
    return Drift.WRONG


# ---------------------------------------------------------------- digests
def compute_digest(*seen: object) -> str:
    """Return 16 hexadecimal digits of a hash. Two checks of a copy compare digests, so that no value is kept."""
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def list_values_at_stake(item: Item | StoreError | None, write: object, copies: Iterable[Path]) -> object:
    """List the values that a write would change. For a delete: the values of the rule's `copies`, or of the whole
    item.
    """
    if item is None or isinstance(item, StoreError):
        return None
    paths = [*(path for path, _ in write.sets), *write.removes] if isinstance(write, Update) else list(copies)
    return [sort_value(get(item, path)) for path in paths] if paths else sort_item(item)


def sort_item(item: Item | StoreError | None) -> object:
    return sort_value({"M": item}) if item is not None and not isinstance(item, StoreError) else None


def sort_value(value: AttributeValue | None) -> object:
    """Return a value with its sets and maps in a fixed order: two reads may return them in different orders."""
    if value is None:
        return None
    ((kind, content),) = value.items()
    match kind:
        case "SS" | "NS" | "BS":
            return kind, sorted(content)
        case "M":
            return kind, [(name, sort_value(content[name])) for name in sorted(content)]
        case "L":
            return kind, [*map(sort_value, content)]
    return kind, content
