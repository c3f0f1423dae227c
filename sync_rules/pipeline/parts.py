"""Reconcile parts: compare each part with its source and write the difference.

Invariant: the item that a part is written on is read FIRST, the item that it is made from THEN, both strongly
consistent, and the guard of the write compares what was read. A refused part is decided again from fresh reads,
because it may have no record of its own, unlike a target. Writes of several parts are merged where possible. They are
sent one by one if the merged write fails. Parts that are in books are written only after the mark was seen to be of
these books.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import Alteration, Failure, ItemKey, Outcome
from sync_rules.model.limits import Bounds
from sync_rules.model.semantics import apply_write
from sync_rules.model.sizes import TOO_LARGE, is_too_large
from sync_rules.model.values import Item
from sync_rules.model.writes import Check, Delete, Put, Result, Status, Test, Transaction, Update, Write
from sync_rules.pipeline.acceptance import protect_part
from sync_rules.pipeline.books import begin_books
from sync_rules.pipeline.joint_writes import (
    TOTAL_BROKEN,
    JointWrite,
    add_to_total,
    fits_numbers,
    join_writes,
    list_increments,
    put_totals,
)
from sync_rules.pipeline.report import Report, Unfinished, retry_parked_items
from sync_rules.pipeline.requests import Found, Work, apply_writes, read_all
from sync_rules.pipeline.sources import split
from sync_rules.pipeline.tasks import PartLook, make_part_message
from sync_rules.rules.books import Books
from sync_rules.rules.families import Part
from sync_rules.rules.rule import Blocked

NO_ROOM: Final = Blocked(TOO_LARGE)


def reconcile_parts(looks: Sequence[PartLook], bounds: Bounds) -> Work[Report]:
    """Reconcile parts, a bounded number at a time."""
    report = Report()
    for some in split(looks, bounds.limits.fan_out_round_max_items):
        yield from _reconcile_round(some, bounds, report)
    yield from retry_parked_items(report)
    return report


def _reconcile_round(looks: Sequence[PartLook], bounds: Bounds, report: Report) -> Work[None]:
    waiting = list(looks)
    begun: dict[Books, int | StoreError] = {}
    for attempt in range(bounds.limits.source_reads_max_tries):
        if not waiting:
            return
        if bounds.out_of_time():
            break
        decided, stuck = yield from _decide(waiting, bounds, report)
        wanted = yield from _begin_books(decided, begun, report)
        joints = join_writes(wanted) if attempt == 0 else [JointWrite((look,), write) for look, write in wanted]
        waiting, wrote = yield from _apply(joints, bounds, report)
        for look, blocked in stuck:
            # perhaps a write has unblocked it, as when two keys are swapped or something left a full item
            if wrote and (blocked.patient or blocked is NO_ROOM):
                waiting.append(look)
            else:
                yield from _park(look, blocked, bounds, report)
    for look in waiting:  # other writers are quicker each time: let the record be delivered again
        _fail(look, OUT_OF_TIME if bounds.out_of_time() else "SourceChanging", report)


def read_parts(parts: Iterable[Part]) -> Work[list[tuple[Part, Found, Found]]]:
    """Read the target of each part, then its source. Return the part, its target and its source. The source is None if
    the part has none, or keeps what a record showed.
    """
    parts = list(parts)
    targets = yield from read_all(part.target for part in parts)
    read = {part: part.source for part in parts if part.source is not None and part.seen is None}
    sources = yield from read_all(read.values())
    return [(part, targets[part.target], sources[read[part]] if part in read else None) for part in parts]


def _decide(
    looks: Sequence[PartLook], bounds: Bounds, report: Report
) -> Work[tuple[list[tuple[PartLook, Write]], list[tuple[PartLook, Blocked]]]]:
    found = yield from read_parts(look.part for look in looks)
    wanted: list[tuple[PartLook, Write]] = []
    stuck: list[tuple[PartLook, Blocked]] = []
    for look, (part, target, source) in zip(looks, found, strict=True):
        if isinstance(target, StoreError) or isinstance(source, StoreError):
            _fail(look, str(target if isinstance(target, StoreError) else source), report)
            continue
        looked = [
            look if one is part else replace(look, part=one) for one in part.rule.expand_part(part, target, source)
        ]
        meant = [(one, _check_room(_compute_write(one, target, source, report), target)) for one in looked]
        if all(write is None for _, write in meant):
            report.count([part.rule], Outcome.RIGHT)
        if bounds.unaccepted:
            meant = [(one, _protect(one.part, target, write, bounds)) for one, write in meant]
        stuck += ((one, write) for one, write in meant if isinstance(write, Blocked))
        wanted += ((one, write) for one, write in meant if write is not None and not isinstance(write, Blocked))
    return (yield from _replace_unfit_increments(wanted, stuck, report)), stuck


def _protect(part: Part, target: Item | None, write: Write | Blocked | None, bounds: Bounds) -> Write | Blocked | None:
    """The write; blocked if it alters a value of others for a rule that is not accepted."""
    if write is None or isinstance(write, Blocked):
        return write
    return protect_part(part, target, _classify_alteration(part, write), bounds) or write


def _compute_write(look: PartLook, target: Item | None, source: Item | None, report: Report) -> Write | Blocked | None:
    part = look.part
    write = part.rule.write_for(part, target, source)
    if look.rebuild and (look.rejected or isinstance(write, Blocked)):
        replacement = part.rule.rebuild_part(part, target, source)
        report.rebuilt |= {part.rule.name} if replacement is not None else set()
        write = replacement or write
    return write


def _check_room(write: Write | Blocked | None, target: Item | None) -> Write | Blocked | None:
    """The write; blocked if it certainly makes its item too large: a refused write costs the whole item."""
    no_room = write is not None and not isinstance(write, Blocked) and is_too_large(apply_write(write, target))
    return NO_ROOM if no_room else write


def _replace_unfit_increments(
    wanted: list[tuple[PartLook, Write]], stuck: list[tuple[PartLook, Blocked]], report: Report
) -> Work[list[tuple[PartLook, Write]]]:
    """The writes, with the new total in place of each difference that no number can hold. Totals are read last."""
    unfit = [[one.key for one in list_increments(write) if not fits_numbers(one)] for _, write in wanted]
    totals = yield from read_all(key for keys in unfit for key in keys)
    booked: list[tuple[PartLook, Write]] = []
    for (look, write), keys in zip(wanted, unfit, strict=True):
        error = next((total for key in keys if isinstance(total := totals[key], StoreError)), None)
        if error is not None:
            _fail(look, str(error), report)
            continue
        new = put_totals(write, totals) if isinstance(write, Transaction) else write
        if isinstance(new, Blocked):
            stuck.append((look, replace(new, member=look.part.source)))
        else:
            booked.append((look, new))
    return booked


def _begin_books(
    wanted: Sequence[tuple[PartLook, Write]], begun: dict[Books, int | StoreError], report: Report
) -> Work[list[tuple[PartLook, Write]]]:
    """Begin the books of these parts, once in a round; then give the parts that can be written."""
    begun |= yield from begin_books(
        books for look, _ in wanted if (books := look.part.rule.books) and books not in begun
    )
    ready: list[tuple[PartLook, Write]] = []
    for look, write in wanted:
        books = look.part.rule.books
        if books is not None and isinstance(error := begun[books], StoreError):
            _fail(look, str(error), report)
        else:
            ready.append((look, write))
    return ready


# ---------------------------------------------------------------- making it happen
def _apply(joints: Sequence[JointWrite], bounds: Bounds, report: Report) -> Work[tuple[list[PartLook], bool]]:
    """Write. Returns the parts to decide again, and True if anything was written."""
    again: list[PartLook] = []
    wrote = False
    for turn in _split_turns(joints, bounds.limits.apply_max_writes):
        allowed: list[JointWrite] = []
        late = bounds.out_of_time()  # nothing more is written: every write fails, and none counts as written too often
        for joint in turn:
            if late or _may_write(joint.looks[0], joint.write, bounds):
                allowed.append(joint)
            else:
                for look in joint.looks:
                    yield from _park(look, Blocked("Contended"), bounds, report)
        results = yield from apply_writes([joint.write for joint in allowed], bounds)
        for joint, result in zip(allowed, results, strict=True):
            wrote |= result.status is Status.WRITTEN
            again += yield from _take(joint, result, bounds, report)
    return again, wrote


def _may_write(look: PartLook, write: Write, bounds: Bounds) -> bool:
    """True if a part is not written too often. One that is made of what a record showed is put once, and set aside it
    would be lost.
    """
    return look.part.seen is not None or bounds.may_write(look.part.target, write)


def _split_turns(joints: Sequence[JointWrite], max_writes: int) -> Iterator[list[JointWrite]]:
    """Split into turns of writes on distinct items, which may go out together without conflicts."""
    waiting = list(joints)
    while waiting:
        turn: list[JointWrite] = []
        later: list[JointWrite] = []
        touched: set[ItemKey] = set()
        for joint in waiting:
            write = joint.write
            keys = {action.key for action in write.actions} if isinstance(write, Transaction) else {write.key}
            if len(turn) < max_writes and touched.isdisjoint(keys):
                turn.append(joint)
                touched |= keys
            else:
                later.append(joint)
        yield turn
        waiting = later


def _take(joint: JointWrite, result: Result, bounds: Bounds, report: Report) -> Work[Sequence[PartLook]]:
    rules = [look.part.rule for look in joint.looks]
    if result.status is Status.WRITTEN:
        report.count(rules, Outcome.COPIED)
        for look in joint.looks:
            if look.part.rule.books is None:  # a ledger is the pipeline's own
                report.alterations[look.part.rule.name, _classify_alteration(look.part, joint.write)] += 1
        report.written.update(look.part.target for look in joint.looks)
    elif result.status is Status.REFUSED or (result.status is Status.REJECTED and len(joint.looks) > 1):
        return joint.looks
    elif result.status is Status.REJECTED:
        (look,) = joint.looks
        blocked = yield from _find_blocked_total(joint.write)
        if blocked is TOTAL_BROKEN and look.rebuild and not look.rejected:
            return (replace(look, rejected=True),)
        yield from _park(look, blocked or Blocked(result.reason), bounds, report)
    else:
        for look in joint.looks:
            _fail(look, result.reason, report)
    return ()


def _classify_alteration(part: Part, write: Write) -> Alteration:
    """The alteration of a part by a write: an item or an element is one value."""
    actions = write.actions if isinstance(write, Transaction) else (write,)
    action = next((one for one in actions if one.key == part.target and not isinstance(one, Check)), actions[-1])
    match action:
        case Delete():
            return Alteration.REMOVED
        case Put(guard=guard) if any(one.test is Test.ABSENT for one in guard):
            return Alteration.SET
        case Update() if action.discards or (action.removes and not action.sets):
            return Alteration.REMOVED
        case Update() if action.adds:
            return Alteration.SET
    return Alteration.REPLACED


def _find_blocked_total(write: Write) -> Work[Blocked | None]:
    """The reason why a write cannot add to a total: it is not a number, or would get too many digits."""
    adding = list_increments(write)
    totals = yield from read_all(one.key for one in adding)
    found = (add_to_total(one, total) for one in adding if not isinstance(total := totals[one.key], StoreError))
    return next((one for one in found if isinstance(one, Blocked)), None)


def _fail(look: PartLook, reason: str, report: Report) -> None:
    report.count([look.part.rule], Outcome.FAILED)
    report.note(look.part.target, Unfinished((look.part.rule.name,), reason, (look.part,)))


def _park(look: PartLook, blocked: Blocked, bounds: Bounds, report: Report) -> Work[None]:
    part = look.part
    element = part.rule.label(part)
    failure = Failure(part.rule.name, part.target, blocked.reason, "", part.source, apart=True, element=element)
    try:
        yield from report.park([failure], make_part_message(part, look.attempt + 1), bounds, patient=blocked.patient)
    except StoreError as error:
        _fail(look, str(error), report)
