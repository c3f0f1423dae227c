"""From the changes of a batch to the work they ask for, each piece once.

Law: any relevant change in the batch counts, even when the net difference is nothing, for somebody may have acted on
what was in between; only the image is the newest. A pull always checks all rules of its target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sync_rules.model.items import Change, Effect, ItemKey
from sync_rules.model.values import Item
from sync_rules.pipeline.messages import ChunkMessage, PartMessage, PushMessage
from sync_rules.pipeline.parts import PartLook
from sync_rules.rules.rule import EffectRule, ListingRule, Part, PartRule, Rule, TargetRule
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True, slots=True)
class Pull:
    """Look at one target. Without an image, one is read first. `attempt` counts how often it was parked.

    `members` are the items that hinted at it. `settles`: what an index shows of its members may be behind, so look
    again later; `delay_seconds` is how long such a second look waited (0: the first).
    """

    key: ItemKey
    image: Item | None
    rules: tuple[TargetRule, ...]
    attempt: int = 0
    members: tuple[ItemKey, ...] = ()
    settles: bool = False
    delay_seconds: int = 0


@dataclass(frozen=True)
class Push:
    """Look at everything that one item lists (a source its targets, a node its edges), for rules of the same Query.

    `cursor` says where the listing goes on; `delay_seconds` is how long a second look waited (0: the first pass);
    `found` whether an earlier page of this pass had to write. `spread`: nothing is looked at, keys are sent as chunks.
    """

    source: ItemKey
    rules: tuple[Rule, ...]
    removed: bool = False
    cursor: Item | None = None
    delay_seconds: int = 0
    found: bool = False
    spread: bool = False

    def message(self) -> PushMessage:
        """The rest of this push, to be done by whoever receives it."""
        return PushMessage(
            self.names, self.source, self.removed, self.cursor, self.delay_seconds, self.found, self.spread
        )

    @cached_property
    def target_rules(self) -> tuple[TargetRule, ...]:
        """Those of its rules that keep attributes of what is listed."""
        return tuple(rule for rule in self.rules if isinstance(rule, TargetRule))

    @cached_property
    def part_rules(self) -> tuple[PartRule, ...]:
        """Those of its rules for which what is listed names parts."""
        return tuple(rule for rule in self.rules if isinstance(rule, PartRule))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its rules."""
        return tuple(rule.name for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some of the items that a push lists, by their keys."""

    push: Push
    targets: tuple[ItemKey, ...]


@dataclass
class Tasks:
    """What a batch asks for. `origins` names, for the key of each piece of work, the items whose records it stems from;
    `since_ms` is, per rule, the time of the oldest change that concerned it (milliseconds since the epoch): what lag is
    measured from. Effects come with the change they are for.
    """

    pulls: tuple[Pull, ...] = ()
    pushes: tuple[Push, ...] = ()
    parts: tuple[PartLook, ...] = ()
    effects: tuple[tuple[ItemKey, Effect], ...] = ()
    origins: dict[ItemKey, dict[ItemKey, None]] = field(default_factory=dict)
    since_ms: dict[str, int] = field(default_factory=dict)

    def stems(self, work: ItemKey, change: Change) -> None:
        """Remember whose record asks for a piece of work."""
        self.origins.setdefault(work, {})[change.key] = None

    def concerns(self, rules: Iterable[Rule], change: Change) -> None:
        """Remember the oldest change of each rule."""
        if change.created_ms is not None:
            for rule in rules:
                self.since_ms[rule.name] = min(change.created_ms, self.since_ms.get(rule.name, change.created_ms))


@dataclass
class TargetWork:
    """What the records of a batch so far ask of one target."""

    rules: dict[TargetRule, None] = field(default_factory=dict)
    members: dict[ItemKey, None] = field(default_factory=dict)
    newest: Change | None = None  # its own record, when it has one in the batch that is a reason to look
    appeared: bool = False


def tasks_of(changes: Iterable[Change], rules: Rules) -> Tasks:
    """The work of a batch of changes, given in the order of their stream."""
    plan = Tasks()
    newest: dict[ItemKey, Change] = {}
    asked: dict[ItemKey, TargetWork] = {}
    pushed: dict[tuple[ItemKey, Rule], bool] = {}
    parts: dict[Part, None] = {}
    effects: list[tuple[ItemKey, Effect]] = []
    for change in changes:
        entity = rules.entity_of(change.key)
        if entity is None:
            continue
        newest[change.key] = change
        _ask_pull(change, rules.into_target(entity), asked, plan)
        for rule in rules.anchored(entity):
            if rule.pushes(change):
                pushed[change.key, rule] = change.new is None or pushed.get((change.key, rule), False)
                plan.stems(change.key, change)
                plan.concerns((rule,), change)
        for rule in rules.from_source(entity):
            if isinstance(rule, TargetRule):
                _ask_hinted(change, rule, asked, plan)
            elif isinstance(rule, EffectRule) and (effect := rule.effect(change)) is not None:
                effects.append((change.key, effect))
                plan.concerns((rule,), change)
        for part_rule in rules.parts_of(entity):
            for part in part_rule.parts(change, entity):
                parts[part] = None
                plan.stems(part.target, change)
                plan.concerns((part_rule,), change)
    plan.pulls = tuple(pull for key, one in asked.items() if (pull := _pull(key, one, newest.get(key))) is not None)
    plan.pushes = group_pushes(pushed)
    plan.parts = tuple(map(PartLook, parts))
    plan.effects = tuple(effects)
    return plan


def _ask_pull(change: Change, into: tuple[TargetRule, ...], asked: dict[ItemKey, TargetWork], plan: Tasks) -> None:
    """A record of a target: a look at it checks all of its rules."""
    if not any(rule.pulls(change) for rule in into):
        return
    one = asked.setdefault(change.key, TargetWork())
    one.rules |= dict.fromkeys(into)
    one.newest = change
    one.appeared |= change.old is None
    plan.stems(change.key, change)
    plan.concerns(into, change)


def _ask_hinted(change: Change, rule: TargetRule, asked: dict[ItemKey, TargetWork], plan: Tasks) -> None:
    """A record of a source that names its targets itself."""
    for hint in rule.hints(change):
        one = asked.setdefault(hint.target, TargetWork())
        one.rules[rule] = None
        if hint.member is not None:
            one.members[hint.member] = None
        plan.stems(hint.target, change)
        plan.concerns((rule,), change)


def _pull(key: ItemKey, work: TargetWork, newest: Change | None) -> Pull | None:
    """The look at a target. Its newest image in the batch will do only if nothing else hints at it: what a member says
    may be later than that image, and then no record of the target need follow.
    """
    rules, members = tuple(work.rules), tuple(work.members)
    hinted = work.newest is None or bool(members)
    if newest is not None and newest.new is None and newest.in_order:
        return None  # gone: there is nothing to hold a copy
    image = newest.new if newest is not None and newest.in_order and not hinted else None
    return Pull(key, image, rules, members=members, settles=bool(members) or work.appeared)


def group_pushes(pushed: Mapping[tuple[ItemKey, Rule], bool]) -> tuple[Push, ...]:
    """Pushes of one item that list in the same way become one listing."""
    groups: dict[tuple[object, ...], Push] = {}
    for (anchor, rule), removed in pushed.items():
        group = (anchor, *rule.lists_by)
        so_far = groups.get(group, Push(anchor, ()))
        groups[group] = replace(so_far, rules=(*so_far.rules, rule), removed=so_far.removed or removed)
    return tuple(groups.values())


def pull_of(
    key: ItemKey, rules: Rules, image: Item | None = None, attempt: int = 0, delay_seconds: int = 0
) -> Pull | None:
    """A pull of a target by its key, as a message or a repair asks for; None when no rule writes such items."""
    entity = rules.entity_of(key)
    into = rules.into_target(entity) if entity is not None else ()
    return Pull(key, image, into, attempt, settles=delay_seconds > 0, delay_seconds=delay_seconds) if into else None


def part_of(message: PartMessage, rules: Rules) -> PartLook | None:
    """The part a message asks for; None when its rule is gone, or has come to be about other items since."""
    rule = rules.rules.get(message.rule)
    if not isinstance(rule, PartRule):
        return None
    made_from = message.source is None or rules.entity_of(message.source) is rule.source
    entity = rules.entity_of(message.target)
    # a part that can stand nowhere is of no entity's key, or of its source's own; an element always stands on a node
    nowhere = not isinstance(rule, ListingRule) and (
        message.target == message.source or (message.target.table == rule.target.table.name and entity is None)
    )
    if not made_from or not (entity is rule.target or nowhere):
        return None
    return PartLook(Part(rule, message.target, message.source, message.element), message.attempt)


def pushes_of(message: PushMessage, rules: Rules) -> tuple[Push, ...]:
    """The pushes a message asks for. The rules may have changed since: what they no longer say is not asked for, what
    is listed in another way now is listed from the start.
    """
    return tuple(
        replace(
            push,
            cursor=message.cursor if _fits(message.cursor, push.rules[0]) else None,
            delay_seconds=message.delay_seconds,
            found=message.found,
            spread=message.spread,
        )
        for push in _pushes_of(message, rules)
    )


def chunks_of(message: ChunkMessage, rules: Rules) -> tuple[Chunk, ...]:
    """The targets a message asks for, by the pushes they are of. What the rules no longer say is not asked for."""
    chunks = (
        Chunk(push, tuple(key for key in message.targets if rules.entity_of(key) is push.rules[0].listed))
        for push in _pushes_of(message, rules)
    )
    return tuple(chunk for chunk in chunks if chunk.targets)


def _pushes_of(message: PushMessage | ChunkMessage, rules: Rules) -> tuple[Push, ...]:
    entity = rules.entity_of(message.source)
    known = [
        rule
        for name in message.rules
        if (rule := rules.rules.get(name)) is not None and rule.anchor is entity and rule.find is not None
    ]
    return group_pushes({(message.source, rule): message.removed for rule in known})


def _fits(cursor: Item | None, rule: Rule) -> bool:
    """Whether a cursor is of the Query this rule lists by now."""
    table = rule.listed.table
    index = rule.find.index if rule.find is not None else None
    keys = table.key + (table.index(index).attributes if index is not None else ())
    return cursor is not None and cursor.keys() == {attribute.name for attribute in keys}
