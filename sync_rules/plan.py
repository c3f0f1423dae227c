"""From the changes of a batch to the work they ask for, each piece once.

Law: any relevant change in the batch counts, even when the net difference is nothing, for somebody may have acted on
what was in between; only the image is the newest. A pull always checks all rules of its target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sync_rules.attributes import Item
from sync_rules.kinds import KINDS
from sync_rules.messages import PushMessage
from sync_rules.model import Change, ItemKey
from sync_rules.rules import Find, Link, Rule, Rules


@dataclass(frozen=True, slots=True)
class Pull:
    """Look at one target. Without an image, one is read first. `attempt` counts how often it was parked."""

    key: ItemKey
    image: Item | None
    rules: tuple[Rule, ...]
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Push:
    """Look at every target of one source, for rules that find them by the same Query.

    `cursor` says where the listing goes on; `delay_seconds` is how long a second look waited (0: the first pass);
    `found` whether an earlier page of this pass had to write.
    """

    source: ItemKey
    rules: tuple[Rule, ...]
    removed: bool = False
    cursor: Item | None = None
    delay_seconds: int = 0
    found: bool = False

    def message(self) -> PushMessage:
        """The rest of this push, to be done by whoever receives it."""
        names = tuple(rule.name for rule in self.rules)
        return PushMessage(names, self.source, self.removed, self.cursor, self.delay_seconds, self.found)


@dataclass(frozen=True)
class Plan:
    """What a batch asks for. The key of each piece is the item whose records it stems from. `since_ms` is, per rule,
    the time of the oldest change that concerned it (milliseconds since the epoch): what lag is measured from.
    """

    pulls: tuple[Pull, ...]
    pushes: tuple[Push, ...]
    since_ms: Mapping[str, int]


def plan_batch(changes: Iterable[Change], rules: Rules) -> Plan:
    """The work of a batch of changes, given in the order of their stream."""
    newest: dict[ItemKey, Change] = {}
    pulled: dict[ItemKey, tuple[Rule, ...]] = {}
    pushed: dict[tuple[ItemKey, Rule], bool] = {}
    since: dict[str, int] = {}
    for change in changes:
        entity = rules.entity_of(change.key)
        if entity is None:
            continue
        newest[change.key] = change
        into = rules.into_target(entity)
        if any(KINDS[type(rule)].pulls(rule, change) for rule in into):
            pulled[change.key] = into
            _note(since, into, change)
        for rule in rules.from_source(entity):
            if KINDS[type(rule)].pushes(rule, change):
                removed = change.new is None or pushed.get((change.key, rule), False)
                pushed[change.key, rule] = removed
                _note(since, (rule,), change)
    pulls = tuple(pull for key, into in pulled.items() if (pull := _pull(newest[key], into)) is not None)
    return Plan(pulls, group_pushes(pushed), since)


def _note(since: dict[str, int], concerned: Iterable[Rule], change: Change) -> None:
    """Remember the oldest change of each rule."""
    if change.created_ms is not None:
        for rule in concerned:
            since[rule.name] = min(change.created_ms, since.get(rule.name, change.created_ms))


def _pull(newest: Change, rules: tuple[Rule, ...]) -> Pull | None:
    if newest.new is None and newest.in_order:
        return None  # gone: there is nothing to hold a copy
    return Pull(newest.key, newest.new if newest.in_order else None, rules)


def group_pushes(pushed: Mapping[tuple[ItemKey, Rule], bool]) -> tuple[Push, ...]:
    """Pushes of one source whose targets are found in the same way become one listing."""
    groups: dict[tuple[ItemKey, str, Find, Link], Push] = {}
    for (source, rule), removed in pushed.items():
        group = (source, rule.target.name, rule.find, rule.link)
        so_far = groups.get(group, Push(source, ()))
        groups[group] = replace(so_far, rules=(*so_far.rules, rule), removed=so_far.removed or removed)
    return tuple(groups.values())


def pull_of(key: ItemKey, rules: Rules, image: Item | None = None, attempt: int = 0) -> Pull | None:
    """A pull of a target by its key, as a scan, a message or a repair asks for; None when no rule writes such items."""
    entity = rules.entity_of(key)
    into = rules.into_target(entity) if entity is not None else ()
    return Pull(key, image, into, attempt) if into else None


def pushes_of(message: PushMessage, rules: Rules) -> tuple[Push, ...]:
    """The pushes a message asks for. The rules may have changed since: what they no longer say is not asked for, what
    is listed in another way now is listed from the start.
    """
    entity = rules.entity_of(message.source)
    known = [rule for name in message.rules if (rule := rules.rules.get(name)) is not None and rule.source is entity]
    return tuple(
        replace(
            push,
            cursor=message.cursor if _fits(message.cursor, push.rules[0]) else None,
            delay_seconds=message.delay_seconds,
            found=message.found,
        )
        for push in group_pushes({(message.source, rule): message.removed for rule in known})
    )


def _fits(cursor: Item | None, rule: Rule) -> bool:
    """Whether a cursor is of the Query this rule lists by now."""
    table = rule.target.table
    keys = table.key + (table.index(rule.find.index).attributes if rule.find.index is not None else ())
    return cursor is not None and cursor.keys() == {attribute.name for attribute in keys}
