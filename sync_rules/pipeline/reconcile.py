"""Reconcile targets: read their sources, compute desired values, write differences under a guard.

Invariant: the image of a target is read FIRST, its source THEN (strongly consistent, once for all targets of a round),
and the write is a compare-and-set on what was read. A refused guard is an answer, not an error: the target changed
since, and its own record reconciles it again. Push and pull both end here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure, ItemKey, Outcome
from sync_rules.model.limits import Bounds
from sync_rules.model.semantics import apply_write
from sync_rules.model.sizes import FULL_BYTES, TOO_LARGE, count_item_bytes, is_too_large
from sync_rules.model.values import Item
from sync_rules.model.writes import Desired, Result, Status, find_differences, find_misfit
from sync_rules.pipeline.acceptance import block_unaccepted_rule, protect_target
from sync_rules.pipeline.ancestors import read_expected_sources
from sync_rules.pipeline.decide import (
    Changes,
    Intent,
    explain_refusal,
    find_lost_source,
    has_source_changed,
    is_relinked,
    list_deleting_rules,
    list_rules_to_delay,
    make_delete_intent,
    make_intent,
    make_put_intent,
    make_removal_intent,
)
from sync_rules.pipeline.messages import PullMessage
from sync_rules.pipeline.report import Report, retry_parked_items
from sync_rules.pipeline.requests import Park, Work, apply_writes, read_all
from sync_rules.pipeline.sources import Sources, Target, split, split_rounds
from sync_rules.rules.families import TargetRule
from sync_rules.rules.rule import Blocked, Waiting

NO_ROOM: Final = Result(Status.REJECTED, reason=TOO_LARGE)  # without a request: a refused write costs its whole item


def reconcile(targets: Sequence[Target], bounds: Bounds) -> Work[Report]:
    """Reconcile targets with their sources. The images of the targets must be older than this call."""
    report = Report()
    for some in split_rounds(targets, bounds.limits):
        report.add((yield from _reconcile_round(some, bounds)))
    yield from retry_parked_items(report)
    return report


def _reconcile_round(targets: Sequence[Target], bounds: Bounds) -> Work[Report]:
    report = Report()
    waiting: Sequence[Target] = targets
    for _ in range(bounds.limits.source_reads_max_tries):
        if not waiting:
            return report
        waiting = yield from _read_whole_images(waiting, bounds)
        sources = yield from read_expected_sources(waiting, bounds)
        decisions = Decisions()
        for target in waiting:
            _decide(target, sources, bounds, report, decisions)
        for rule, count in Counter(decisions.right).items():
            report.outcomes[rule.name, Outcome.RIGHT] += count
        for target, rules, blocked in decisions.stuck:
            yield from _park(target, rules, blocked, bounds, report)
        for target, rule in decisions.restricted:
            yield from _report_restricted_delete(target, rule, report)
        waiting = yield from _apply(decisions.intents, bounds, report)
        for target in decisions.deferred:
            if target.key in report.written:  # the record of the other rule's write reconciles this one
                report.count(target.rules, Outcome.SUPERSEDED)
            else:
                waiting.append(target)
        waiting += yield from _read_again(decisions.old, report)
    for target in waiting:  # its source changes faster than it can be copied: let the record be delivered again
        report.fail(target, "SourceChanging")
    return report


def _read_whole_images(targets: Sequence[Target], bounds: Bounds) -> Work[Sequence[Target]]:
    """The targets, with whole images of those that had no room lately: of others a listing reads only a part."""
    full = [one.key for one in targets if one.key in bounds.full and not one.attempt] if bounds.full else []
    if not full:
        return targets
    images: dict[ItemKey, Item] = {}
    for key, image in (yield from read_all(full)).items():
        if image is not None and not isinstance(image, StoreError):
            images[key] = image
            if count_item_bytes(image) < FULL_BYTES:
                bounds.full.pop(key, None)
    return [replace(target, image=images.get(target.key, target.image)) for target in targets]


# ------------------------------------------------------------------ what should happen
@dataclass
class Decisions:
    """The decisions of a round: writes, targets that wait for another rule's write, rules to park, rules that restrict
    a delete that has happened, and, for each target that needs nothing of a rule, that rule. `old`: targets without
    members, whose images are too old to remove them.
    """

    intents: list[Intent] = field(default_factory=list)
    deferred: list[Target] = field(default_factory=list)
    stuck: list[tuple[Target, Iterable[TargetRule], Blocked]] = field(default_factory=list)
    restricted: list[tuple[Target, TargetRule]] = field(default_factory=list)
    right: list[TargetRule] = field(default_factory=list)
    old: list[Target] = field(default_factory=list)


def _decide(target: Target, sources: Sources, bounds: Bounds, report: Report, decisions: Decisions) -> None:
    """Decide the write of a target, if it needs one. Rules with nothing to write are counted at once; rules that
    another rule undermines are deferred until the outcome of the other is known.
    """
    deleting = list_deleting_rules(target, sources) if target.removed else []
    accepted = [rule for rule in deleting if rule.name not in bounds.unaccepted]
    if accepted:
        decisions.intents.append(make_delete_intent(accepted[0], target, sources))
        return
    decisions.stuck += ((target, [rule], block_unaccepted_rule(rule, bounds)) for rule in deleting)
    target = target.only(rule for rule in target.rules if rule not in deleting) if deleting else target
    if target.absent:
        target = _drop_empty_rules(target, sources, decisions)
    elif target.key in sources.empty and _remove(target, bounds, decisions):
        return
    wanted: dict[TargetRule, Changes] = {}
    for rule in target.rules:
        changes = _compute_changes(rule, target, sources, report, decisions)
        if changes and (protected := protect_target(rule, target, changes, sources, bounds)):
            decisions.stuck.append((target, [rule], protected))
        elif changes:
            wanted[rule] = changes
    if not wanted:
        return
    if not bounds.may_write(target.key, [*wanted.values()]):
        decisions.stuck.append((target, wanted, Blocked("Contended")))
        return
    later = list_rules_to_delay(wanted)
    if later:
        decisions.deferred.append(target.only(later))
        wanted = {rule: wanted[rule] for rule in wanted if rule not in later}
    intent = make_intent(target, wanted, sources)
    decisions.intents.append(make_put_intent(intent) if target.absent else intent)


def _drop_empty_rules(target: Target, sources: Sources, decisions: Decisions) -> Target:
    """An absent target with the rules that decide about it: all of them if it has a member of any rule. Else it is
    right for the rules without members, and the others wait or fail.
    """
    members = {rule: sources.has_members(rule, target) for rule in target.rules}
    if True in members.values():
        return target
    decisions.right += [rule for rule in members if members[rule] is False]
    return target.only(rule for rule in members if members[rule] is None)


def _remove(target: Target, bounds: Bounds, decisions: Decisions) -> bool:
    """Decide to remove a target without members. False if it must stay, because it has something unexpected. The guard
    cannot compare what an old image lacks, so that is read again.
    """
    if not target.fresh:
        decisions.old.append(target)
        return True
    removal, unexpected = make_removal_intent(target), target.makers[0].find_unexpected_attribute(target.image)
    if unexpected is None and not bounds.may_write(target.key, "removed"):
        unexpected = Blocked("Contended")
    if unexpected is not None:
        decisions.stuck.append(
            (
                target,
                [min((*target.makers, *target.makers[0].list_makers_beside()), key=lambda rule: rule.name)],
                unexpected,
            )
        )
        return False
    decisions.intents.append(removal)
    return True


def _compute_changes(
    rule: TargetRule, target: Target, sources: Sources, report: Report, decisions: Decisions
) -> Changes:
    """The changes that one rule wants. A rule that cannot succeed is parked alone, and holds up no other rule."""
    wanted = None if target.removed else sources.find_shared_values(rule, target.image)
    if wanted is not None:
        return _list_changes(rule, target, wanted, None, decisions)
    found = sources.of(rule, target)
    if isinstance(found, StoreError):
        report.fail(target.only([rule]), str(found))
        return {}
    if rule in target.removed and rule.restricts(target.image) and find_lost_source(rule, target, sources):
        decisions.restricted.append((target, rule))
        return {}
    if isinstance(found, Waiting):  # whatever the target holds stays as it is
        report.count([rule], Outcome.WAITING)
        return {}
    desired = found if isinstance(found, Blocked) else rule.compute_values(found, target.image)
    if desired is None:
        report.count([rule], Outcome.KEPT)
        return {}
    if isinstance(desired, Blocked):
        decisions.stuck.append((target, [rule], desired))
        return {}
    left_out = None if isinstance(found, Blocked) else rule.find_omission(found, target.image)
    return _list_changes(rule, target, desired, left_out, decisions)


def _list_changes(
    rule: TargetRule, target: Target, desired: Desired, left_out: Blocked | None, decisions: Decisions
) -> Changes:
    """The changes that make a target what a rule desires. `left_out`: something that should be in it and is not."""
    changes = find_differences(target.image, desired)
    if changes and (reason := find_misfit(target.image, changes)):
        decisions.stuck.append((target, [rule], Blocked(reason)))
        return {}
    if left_out is not None:
        decisions.stuck.append((target, [rule], left_out))
    elif not changes:
        decisions.right.append(rule)
    return changes


def _read_again(targets: Sequence[Target], report: Report) -> Work[list[Target]]:
    """The targets with their present images, without those that are gone."""
    images = yield from read_all(target.key for target in targets)
    found: list[Target] = []
    for target in targets:
        image = images[target.key]
        if isinstance(image, StoreError):
            report.fail(target, str(image))
        elif image is None:
            report.count(target.rules, Outcome.GONE)
        else:
            found.append(replace(target, image=image, fresh=True))
    return found


# --------------------------------------------------------------- making it happen
def _apply(intents: Sequence[Intent], bounds: Bounds, report: Report) -> Work[list[Target]]:
    """Write. Returns the targets to decide again, such as those whose source changed under a transaction."""
    again: list[Target] = []
    for some in split(intents, bounds.limits.apply_max_writes):
        fits = [not is_too_large(apply_write(intent.write, intent.target.image)) for intent in some]
        writes = [intent.write for intent, fitting in zip(some, fits, strict=True) if fitting]
        results = iter((yield from apply_writes(writes, bounds)))
        for intent, fitting in zip(some, fits, strict=True):
            result = next(results) if fitting else NO_ROOM
            if result.status is Status.WRITTEN:
                report.count(intent.rules, Outcome.DELETED if intent.deletes else Outcome.COPIED)
                report.count_alterations(intent.target.image, intent.wanted)
                report.written.add(intent.target.key)
                continue
            target = yield from _take(intent, result, bounds, report)
            if target is not None:
                again.append(target)
    return again


def _take(intent: Intent, result: Result, bounds: Bounds, report: Report) -> Work[Target | None]:
    """Process the store's answer to a write that it did not make. Returns the target if it must be decided again."""
    target = intent.target.only(intent.rules)
    if result.status is Status.FAILED:
        report.fail(target, result.reason)
    elif result.status is Status.REJECTED:
        if result.reason == TOO_LARGE:
            bounds.note_full(target.key)
        yield from _park_rejected_write(intent, result, bounds, report)
    elif has_source_changed(intent.write, result):
        return intent.target if intent.deletes else target
    elif intent.deletes and result.item is not None and not is_relinked(intent, result.item):
        # the target's own record is a pull, and a pull never deletes
        return replace(intent.target, image=result.item)
    elif target.members and result.item is not None and explain_refusal(intent, result.item) is not Outcome.RIGHT:
        # an index may not show yet the member that hinted: the writer that was quicker need not know of it
        return replace(target, image=result.item, absent=False)
    else:
        outcome = explain_refusal(intent, result.item)
        report.count(intent.rules, outcome)
        if outcome is Outcome.RIGHT:  # perhaps written here, and the answer was lost
            report.written.add(target.key)
    return None


def _park_rejected_write(intent: Intent, result: Result, bounds: Bounds, report: Report) -> Work[None]:
    """Park a write that can never succeed. If several rules share it, each is tried alone first."""
    if len(intent.rules) == 1:
        yield from _park(intent.target, intent.rules, Blocked(result.reason), bounds, report)
        return
    for rule in intent.rules:
        report.add((yield from _reconcile_round([intent.target.only([rule])], bounds)))


def _park(target: Target, rules: Iterable[TargetRule], blocked: Blocked, bounds: Bounds, report: Report) -> Work[None]:
    rules = tuple(rules)
    member, apart = blocked.member or next(iter(target.members), None), blocked.member is not None
    sources = (next(iter(rule.source_keys(target.image)), None) for rule in rules)
    failures = [
        Failure(rule.name, target.key, blocked.reason, member=member, apart=apart, source=source)
        for rule, source in zip(rules, sources, strict=True)
    ]
    try:
        yield from report.park(failures, PullMessage(target.key, target.attempt + 1), bounds, patient=blocked.patient)
    except StoreError as error:
        report.fail(target.only(rules), str(error))


def _report_restricted_delete(target: Target, rule: TargetRule, report: Report) -> Work[None]:
    """Report a target that lost its source, for `on_delete: restrict`: nothing can forbid a delete that has
    happened.
    """
    try:
        yield Park(Failure(rule.name, target.key, "SourceDeleted"))
    except StoreError as error:
        report.fail(target.only([rule]), str(error))
    else:
        report.count([rule], Outcome.KEPT)
