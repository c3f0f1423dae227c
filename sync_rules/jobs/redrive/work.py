"""The work that retries one failure: a look at its target, at its part, or at all that its item concerns.

Invariant: a failure that cannot be retried in full never counts as a success. A failure record holds no values. The
record of a call names the place of its change, or cannot be retried. A rule that no longer exists has no work. If the
old image is missing, redrive checks everything that it knows, and the record stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from sync_rules.audit.compare import Drift, compare
from sync_rules.audit.stock import Stock
from sync_rules.jobs.backfill.page import Selection, process_item, process_keys
from sync_rules.model.errors import RecordError, StoreError
from sync_rules.model.items import Change, Failure, ItemKey
from sync_rules.model.limits import Bounds
from sync_rules.model.values import escape_invisible
from sync_rules.pipeline.consumer import process_message
from sync_rules.pipeline.failed_entries import Failed, GivenUp
from sync_rules.pipeline.failure_records import FailureRecord, format_key
from sync_rules.pipeline.messages import (
    KINDS,
    CallMessage,
    ChunkMessage,
    Message,
    PartMessage,
    PullMessage,
    PushMessage,
    list_rule_names,
)
from sync_rules.pipeline.records import read_event
from sync_rules.pipeline.report import Report, Unfinished
from sync_rules.pipeline.requests import FetchCall, Read, Work
from sync_rules.pipeline.tasks import (
    PartLook,
    Pull,
    Tasks,
    find_part,
    list_chunks,
    list_pushes,
    list_unknown_rules,
    make_pull,
    make_tasks,
)
from sync_rules.pipeline.work import do_tasks
from sync_rules.rules.families import EffectRule, Part, PartRule, TargetRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

SOURCE_DELETED: Final = "SourceDeleted"  # what `on_delete: restrict` reports
DROP: Final = "sync-rules failures RULES --drop"
REPAIR: Final = "`sync-rules verify --repair` repairs it"


def list_parts_by_key(key: ItemKey, rules: Rules) -> list[Part]:
    """List the parts that an item's key names as source or target. Conditions of rules are ignored."""
    entity = rules.entity_of(key)
    found: dict[Part, None] = {}
    for rule in rules.parts_of(entity) if entity is not None else ():
        parts = rule.unconditional().parts(Change(key, key.attributes(), None), entity) if entity is not None else ()
        found |= dict.fromkeys(replace(part, rule=rule) for part in parts)
    return [*found]


def list_rules_that_need_images(key: ItemKey, rules: Rules) -> list[Rule]:
    """List the rules that may need an old image of this item, because its key does not name their targets."""
    entity = rules.entity_of(key)
    return [rule for rule in rules.rules.values() if entity is None or not rule.is_known_by_key(entity)]


def make_work(body: FailureRecord | Message, rules: Rules, bounds: Bounds) -> Work[Report]:
    """Make the work for a failure record or a message. Its report names what failed; the work may raise StoreError.

    Raises:
        RecordError: if no current rule concerns it, or it holds too little.
    """
    if not isinstance(body, FailureRecord):
        return _make_message_work(body, rules, bounds)
    failure = body.failure(rules.tables)
    if failure.key is None:
        raise RecordError("its stream record could not be read: retry the batch of the record, with --file")
    if failure.call:
        return _make_call_work(failure, rules, bounds)
    if failure.position:
        return _make_record_work(failure, failure.key, rules, bounds)
    rule = rules.find_rule_by_name(failure.rule)
    if rule is None:
        raise _explain_missing_rule(failure.rule)
    if isinstance(rule, EffectRule):
        raise _explain_missing_values(rule)
    if isinstance(rule, PartRule):
        look = find_part(PartMessage(rule.name, failure.key, failure.member, failure.element or ""), rules)
        if look is None:
            raise _explain_foreign_item(rule)
        return _process_part(failure, look, rules, bounds)
    one = _find_pull(failure.key, rule, rules)
    if one is None:
        raise _explain_foreign_item(rule)
    return pull_targets([one], rules, bounds)


def find_shared_pull(body: Failed, rules: Rules) -> Pull | None:
    """Find the pull that retries an entry, if other pulls of its rule may share the reads. None for all other entries.

    A rule whose source is not its target reads nothing that it writes. A target made of members is held with all of
    them, and one that rules make has the values of several rules.
    """
    if not isinstance(body, FailureRecord) or body.call or body.position:
        return None
    rule = rules.find_rule_by_name(body.rule)
    if not isinstance(rule, TargetRule) or rule.source is rule.target or rule.gathers or rule.makes:
        return None
    try:
        key = body.failure(rules.tables).key
    except RecordError:
        return None
    return None if key is None else _find_pull(key, rule, rules)


def _find_pull(key: ItemKey, rule: Rule, rules: Rules) -> Pull | None:
    """The pull of an item by this rule alone; None if the rule does not write such items."""
    one = make_pull(key, rules)
    mine = () if one is None else tuple(each for each in one.rules if each is rule)
    return replace(one, rules=mine) if one is not None and mine else None


def _explain_missing_rule(name: str) -> RecordError:
    return RecordError(f"there is no rule {name!r} any more: {_suggest_rename(name)}; otherwise `{DROP}` removes it")


def _suggest_rename(name: str) -> str:
    former = "OLD" if ", " in name else name.partition(".")[0]
    return f"if it was renamed, say renamed_from: {former} in the new one"


def _explain_missing_values(rule: Rule) -> RecordError:
    return RecordError(
        f"rule {rule.title} acts outside the tables, and a failure record holds no values: "
        "retry its batch or its message"
    )


def _make_call_work(failure: Failure, rules: Rules, bounds: Bounds) -> Work[Report]:
    """The call of a function that was given up, with the change as it was kept. Raises RecordError."""

    def call() -> Work[Report]:
        message: CallMessage = yield FetchCall(failure.call)
        return (yield from process_message(replace(message, attempt=0), rules, bounds))

    _require_call(failure.rule, rules)
    return call()


def _require_call(name: str, rules: Rules) -> None:
    rule = rules.find_rule_by_name(name)
    if rule is None or not rule.calls:
        raise RecordError(f"there is no rule {name!r} any more that calls a function: {_suggest_rename(name)}")


def _explain_foreign_item(rule: Rule) -> RecordError:
    return RecordError(f"rule {rule.title} does not apply to this item any more: remove the entry")


def _make_record_work(failure: Failure, key: ItemKey, rules: Rules, bounds: Bounds) -> Work[Report]:
    """The work for a record without images: the change is not known, so everything is checked."""
    titles = set(failure.rule.split(", "))
    concerned = [rule for rule in rules.rules.values() if rule.title in titles or rule.renamed_from in titles]
    if not concerned:
        raise _explain_missing_rule(failure.rule) if failure.rule else RecordError("no rule applies to its item")
    for rule in concerned:
        if isinstance(rule, EffectRule):
            raise _explain_missing_values(rule)
    return _process_without_images(key, concerned, rules, bounds)


def _process_without_images(key: ItemKey, concerned: Collection[Rule], rules: Rules, bounds: Bounds) -> Work[Report]:
    alone = rules.only(rule.name for rule in concerned)
    report = yield from _process_whole_item(key, alone, bounds)
    unknown = list_rules_that_need_images(key, alone)
    if unknown and not report.failed:
        titles = ", ".join(dict.fromkeys(rule.title for rule in unknown))
        reason = f"this record lacks the old image of the item, for {titles}: {REPAIR}"
        report.note(key, Unfinished(tuple(rule.name for rule in unknown), reason))
    return report


def _process_whole_item(key: ItemKey, rules: Rules, bounds: Bounds) -> Work[Report]:
    """Process all that an item concerns, as it is and by its key; for an item that is gone, its deletion."""
    (image,) = yield Read((key,))
    if image is None:
        tasks = make_tasks([Change(key, key.attributes(), None)], rules).only(rules.rules)
        report = yield from do_tasks(replace(tasks, parts=()), rules, bounds)
    else:
        report = yield from process_item(key, image, Selection(rules, frozenset(rules.rules)), bounds)
    by_key = tuple(map(PartLook, list_parts_by_key(key, rules)))
    report.add((yield from do_tasks(Tasks(parts=by_key), rules, bounds)))
    return report


def _process_part(failure: Failure, look: PartLook, rules: Rules, bounds: Bounds) -> Work[Report]:
    """Look at a part, and at the parts that its source names by now. An older record does not name its element: then at
    all that it could mean.
    """
    alone, key = rules.only([look.part.rule.name]), look.part.target
    if failure.element is not None:
        report = yield from do_tasks(Tasks(parts=(look,)), rules, bounds)
        if failure.member is not None:
            some = yield from process_keys([failure.member], Selection(alone, frozenset(alone.rules)), bounds)
            report.add(some.report)
        return report
    report = yield from _process_whole_item(key, alone, bounds)
    if failure.member is not None:
        report.add((yield from do_tasks(Tasks(parts=(look,)), rules, bounds)))
        report.add((yield from _process_whole_item(failure.member, alone, bounds)))
    elif list_rules_that_need_images(key, alone) and not report.failed:
        reason = f"it does not say which item its part is made from: {REPAIR}"
        report.note(key, Unfinished((look.part.rule.name,), reason))
    return report


def pull_targets(pulls: Sequence[Pull], rules: Rules, bounds: Bounds) -> Work[Report]:
    """Pull targets, all by the same rule. Report an orphan as failed, because a pull cannot repair it."""
    report = yield from do_tasks(Tasks(pulls=tuple(pulls)), rules, bounds)
    (rule,) = pulls[0].rules
    if rule.needs_source:
        keys = tuple(one.key for one in pulls)
        try:
            failed = dict.fromkeys((yield from _list_orphans(keys, rule, rules)), SOURCE_DELETED)
        except StoreError as error:
            failed = dict.fromkeys(keys, error.reason)
        for key, reason in failed.items():
            report.note(key, Unfinished((rule.name,), reason))
    return report


def _list_orphans(keys: tuple[ItemKey, ...], rule: TargetRule, rules: Rules) -> Work[list[ItemKey]]:
    """List the targets whose source does not exist, although the rule needs one. Raises StoreError."""
    asked, images = Stock(), (yield Read(keys))
    for image in images:
        if image is not None and (rule.deletes(image) or rule.restricts(image)):
            asked.add(image, rule.target.table, rules, frozenset([rule.name]))
    found = yield from compare(asked)
    return [different.target for different in found.different if different.drift is Drift.ORPHAN]


def _make_message_work(message: Message, rules: Rules, bounds: Bounds) -> Work[Report]:
    """Process a message as if for the first time, so that what is stuck is reported at once."""
    match message:
        case PushMessage() | ChunkMessage():
            unknown = list_unknown_rules(message, rules)
            if len(unknown) == len(message.rules):
                raise _explain_missing_rule(", ".join(unknown))
            message = replace(message, rules=tuple(name for name in message.rules if name not in unknown))
            if not (list_pushes(message, rules) if isinstance(message, PushMessage) else list_chunks(message, rules)):
                raise RecordError(f"none of its rules concerns its item any more: {', '.join(message.rules)}")
            return process_message(message, rules, bounds)
        case PullMessage():
            if make_pull(message.target, rules) is None:
                raise RecordError("no rule writes its item any more: remove the entry")
        case PartMessage():
            if find_part(message, rules) is None:
                rule = rules.find_rule_by_name(message.rule)
                raise _explain_missing_rule(message.rule) if rule is None else _explain_foreign_item(rule)
        case CallMessage():
            _require_call(message.rule, rules)
    return process_message(replace(message, attempt=0), rules, bounds)


def split_readable(records: Iterable[Any], rules: Rules) -> tuple[list[Any], list[str]]:
    """Return the records of tables with rules, and a sentence for each record that cannot be read. Raises RecordError
    if every record is of a table without rules.
    """
    spoken_of = {table.name for table in rules.streamed_tables}
    readable: list[Any] = []
    unreadable: list[str] = []
    foreign = 0
    for record in records:
        match [*read_event({"Records": [record]}, rules)]:
            case [Failure() as failure]:
                unreadable.append(f"{failure.position or 'without a number'}: {failure.reason}")
            case [Change() as change] if change.key.table in spoken_of:
                readable.append(record)
            case _:
                foreign += 1
    if foreign and not readable and not unreadable:
        raise RecordError("no rule uses the table of its records: redrive it with the rules that do")
    return readable, unreadable


def list_entry_names(body: Failed) -> Sequence[str] | None:
    """List the names of the rules that an entry concerns, as the entry has them. None if it concerns all rules of an
    item.
    """
    match body:
        case GivenUp() | PullMessage():
            return None
        case FailureRecord():
            return body.rule.split(", ")
    return list_rule_names(body)


def list_entry_titles(body: Failed, rules: Rules | None = None) -> frozenset[str] | None:
    """Return the titles of the rules that an entry concerns, by their current names in `rules`. None if it concerns all
    rules of an item.
    """
    names = list_entry_names(body)
    if names is None:
        return None
    now = ((rules and rules.find_rule_by_name(name)) or None for name in names)
    return frozenset(rule.title if rule else name.partition(".")[0] for name, rule in zip(names, now, strict=True))


def is_gone(names: Iterable[str], rules: Rules) -> bool:
    """Return True if none of these rules exists any more, also not under another name. A part such as NAME.parent is
    gone if its rule no longer has it.
    """
    known = {rule.title for rule in rules.rules.values()}
    names = tuple(name for name in names if name)
    return bool(names) and not any(rules.find_rule_by_name(name) or name in known for name in names)


def describe_entry(body: Failed) -> str:
    """Return a line about the retry of an entry. It contains keys, never other values."""
    match body:
        case GivenUp():
            span = body.span
            where = f"{span.shard_id or 'an unknown shard'}, {span.first} to {span.last}"
            held = "" if body.event is not None else ", read from the stream"
            of = f", of {body.function}" if body.function else ""
            return f"{body.records or 'the'} records of {where}{held}{of}"
        case FailureRecord():
            table, key = body.about
            shown = "no key" if key is None else ", ".join(map(escape_invisible, key.values()))
            return f"{body.rule or 'no rule'} on {table}[{shown}]: {body.reason}"
        case PushMessage():
            return f"push of {format_key(body.source)} for {', '.join(body.rules)}"
        case ChunkMessage():
            return f"{len(body.targets)} targets of {format_key(body.source)} for {', '.join(body.rules)}"
        case CallMessage():
            return f"call of {body.function} for {format_key(body.change.key)}"
    return f"{KINDS[type(body)]} of {format_key(body.target)}"
