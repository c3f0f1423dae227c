"""Turns the changes of a batch into the work that they ask for, each piece once.

Invariant: every relevant change in a batch counts, even where the net difference is nothing, because something may have
acted in between; only the image is the newest. A target's own record checks all its rules, a hint only its rule.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sync_rules.model.entities import Entity
from sync_rules.model.items import Call, Change, ItemKey
from sync_rules.model.values import Item
from sync_rules.pipeline.messages import CallMessage, ChunkMessage, Message, PartMessage, PushMessage, list_rule_names
from sync_rules.rules.families import ListingRule, Part, PartRule, TargetRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules


@dataclass(slots=True)  # as a Change: made for every record, and never changed
class Pull:
    """Reconcile one target. Without an image, one is read first. `attempt` counts how often it was parked.

    `members` are the items that hinted at it. `settles`: an index may not show its members yet, so send a second look;
    `delay_seconds` is how long this second look waited (0: a first look).
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
    """Reconcile everything that one item lists (a source its targets, a node its edges), for rules of the same Query.

    `cursor` is where the listing goes on; `delay_seconds` is how long this second look waited (0: the first pass);
    `found`: an earlier page of this pass had to write. `spread`: workers share it, by chunks of keys or page by page.
    """

    source: ItemKey
    rules: tuple[Rule, ...]
    removed: bool = False
    cursor: Item | None = None
    delay_seconds: int = 0
    found: bool = False
    spread: bool = False

    def message(self) -> PushMessage:
        """The message that asks for the rest of this push."""
        return PushMessage(
            self.message_names, self.source, self.removed, self.cursor, self.delay_seconds, self.found, self.spread
        )

    @cached_property
    def target_rules(self) -> tuple[TargetRule, ...]:
        return tuple(rule for rule in self.rules if isinstance(rule, TargetRule))

    @cached_property
    def part_rules(self) -> tuple[PartRule, ...]:
        return tuple(rule for rule in self.rules if isinstance(rule, PartRule))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(rule.name for rule in self.rules)

    @property
    def message_names(self) -> tuple[str, ...]:
        return tuple(rule.message_name for rule in self.rules)

    @property
    def index(self) -> str | None:
        """The index that is listed; None for the base table."""
        find = self.rules[0].find  # all rules of a push list alike
        return find.index if find is not None else None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Keys of some of the items that a push lists."""

    push: Push
    targets: tuple[ItemKey, ...]


@dataclass(frozen=True, slots=True)
class PartLook:
    """A part to reconcile. `attempt` counts how often it was parked. `rebuild`: a repair
    rebuilds the part if nothing else makes it right. `rejected`: the total that it adds to is not a number.
    """

    part: Part
    attempt: int = 0
    rebuild: bool = False
    rejected: bool = False


def make_part_message(part: Part, attempt: int = 0) -> PartMessage:
    return PartMessage(part.rule.message_name, part.target, part.source, part.rule.label(part), attempt)


@dataclass
class Tasks:
    """The work of a batch. `origins`: by key of the item to work on, the items whose records asked for the work, unless
    only its own record did. `since_ms`: per rule, the time of the oldest change that concerns it (milliseconds since
    the epoch), from which lag is measured. Each effect has the key of the item that changed. `unlisted`: the items
    that the index of a rule does not list.
    """

    pulls: tuple[Pull, ...] = ()
    pushes: tuple[Push, ...] = ()
    parts: tuple[PartLook, ...] = ()
    effects: tuple[tuple[ItemKey, Call], ...] = ()
    unlisted: tuple[tuple[str, ItemKey], ...] = ()
    origins: dict[ItemKey, dict[ItemKey, None]] = field(default_factory=dict)
    since_ms: dict[str, int] = field(default_factory=dict)

    def only(self, names: Container[str]) -> Tasks:
        """Return the tasks of the rules of these names, with fresh images: pulls, pushes and parts, no effects."""
        pulls = (replace(one, image=None, rules=tuple(r for r in one.rules if r.name in names)) for one in self.pulls)
        pushes = (replace(one, rules=tuple(r for r in one.rules if r.name in names)) for one in self.pushes)
        return Tasks(
            tuple(one for one in pulls if one.rules),
            tuple(one for one in pushes if one.rules),
            tuple(look for look in self.parts if look.part.rule.name in names),
        )

    def trace(self, work: ItemKey, change: Change) -> None:
        """Note that a change asked for work on an item, which may be another item."""
        self.origins.setdefault(work, {})[change.key] = None

    def note_change(self, rules: Iterable[Rule], change: Change) -> None:
        """Note a change for the rules that it concerns: the oldest change of a rule measures its lag."""
        made_ms = change.created_ms
        if made_ms is not None:
            for rule in rules:
                if self.since_ms.get(rule.name, made_ms + 1) > made_ms:
                    self.since_ms[rule.name] = made_ms


@dataclass(slots=True)
class TargetWork:
    """The work collected for one target: the rules and members that hinted at it. If records of the target itself
    asked, `into` has all its rules, and `newest` the newest of these records.
    """

    hinted: dict[TargetRule, None]
    members: dict[ItemKey, None]
    into: tuple[TargetRule, ...] = ()
    newest: Change | None = None
    appeared: bool = False


def make_tasks(changes: Iterable[Change], rules: Rules) -> Tasks:
    """Make the tasks of a batch of changes, which are in the order of their stream."""
    batch = _Batch()
    for change in changes:
        entity = rules.entity_of(change.key)
        if entity is not None:
            batch.add(change, entity, rules)
    return batch.tasks()


@dataclass(slots=True)
class _Batch:
    """The work that the changes of a batch ask for, by what it is about."""

    found: Tasks = field(default_factory=Tasks)
    newest: dict[ItemKey, Change] = field(default_factory=dict)
    asked: dict[ItemKey, TargetWork] = field(default_factory=dict)
    pushed: dict[tuple[ItemKey, Rule], bool] = field(default_factory=dict)
    parts: dict[Part, None] = field(default_factory=dict)
    effects: list[tuple[ItemKey, Call]] = field(default_factory=list)
    unlisted: dict[tuple[str, ItemKey], None] = field(default_factory=dict)

    def add(self, change: Change, entity: Entity, rules: Rules) -> None:
        self.newest[change.key] = change
        concern = rules.find_concern(entity)
        entering = rules.list_rules_in_reach(change, entity) if concern.listed else ()
        if concern.into:
            self._ask_pull(change, concern.into, entering)
        for anchored in concern.anchored:
            if anchored.pushes(change):
                self.pushed[change.key, anchored] = change.new is None or self.pushed.get((change.key, anchored), False)
                self.found.note_change((anchored,), change)
        for hinting in concern.hinting:
            self._ask_hinted_pulls(change, hinting, entering)
        for effect_rule in concern.effects:
            if (call := effect_rule.effect(change)) is not None:
                self.effects.append((change.key, call))
                self.found.note_change((effect_rule,), change)
        for part_rule in concern.parts:
            self._ask_parts(change, part_rule, entity, entering)
        if concern.listed:
            self.unlisted |= dict.fromkeys((rule.name, change.key) for rule in _list_blind_rules(change, entity, rules))

    def _ask_pull(self, change: Change, into: tuple[TargetRule, ...], entering: tuple[Rule, ...]) -> None:
        """Ask for a pull if this is a relevant record of a target: for all of its rules."""
        for rule in into:
            if rule.pulls(change) or (rule in entering and rule.pulls(replace(change, old=None))):
                break
        else:
            return
        one = self.asked.setdefault(change.key, TargetWork({}, {}))
        one.into = into
        one.newest = change
        one.appeared |= change.old is None
        self.found.note_change(into, change)

    def _ask_hinted_pulls(self, change: Change, rule: TargetRule, entering: tuple[Rule, ...]) -> None:
        """Ask for pulls of the targets that a record of a source names by itself."""
        for hint in (hint for seen in _adapt_change(change, rule, entering) for hint in rule.hints(seen)):
            one = self.asked.setdefault(hint.target, TargetWork({}, {}))
            one.hinted[rule] = None
            if hint.member is not None:
                one.members[hint.member] = None
            self.found.trace(hint.target, change)
            self.found.note_change((rule,), change)

    def _ask_parts(self, change: Change, rule: PartRule, entity: Entity, entering: tuple[Rule, ...]) -> None:
        """Ask for the parts that a record of either side names."""
        for part in (part for seen in _adapt_change(change, rule, entering) for part in rule.parts(seen, entity)):
            self.parts[part] = None
            self.found.trace(part.target, change)
            self.found.note_change((rule,), change)

    def tasks(self) -> Tasks:
        if self.found.origins:
            self._trace_own()
        pulls = (_make_pull(key, one, self.newest.get(key)) for key, one in self.asked.items())
        return Tasks(
            tuple(one for one in pulls if one is not None),
            group_pushes(self.pushed),
            tuple(map(PartLook, self.parts)),
            tuple(self.effects),
            tuple(self.unlisted),
            self.found.origins,
            self.found.since_ms,
        )

    def _trace_own(self) -> None:
        """Note the items whose own records asked for work, where records of others asked for it too."""
        origins = self.found.origins
        own = {key for key, _ in self.pushed} | {key for key, one in self.asked.items() if one.newest is not None}
        for key in own & origins.keys():
            origins[key][key] = None


def _adapt_change(change: Change, rule: Rule, entering: tuple[Rule, ...]) -> tuple[Change, ...]:
    """Return a change as the rule must process it. If the item enters the index of the rule, add the change without
    its old image: earlier listings did not contain the item.
    """
    return (change, replace(change, old=None)) if rule in entering else (change,)


def _list_blind_rules(change: Change, entity: Entity, rules: Rules) -> Iterator[Rule]:
    """The rules whose index does not list an item that came without one of its key attributes, or lost one."""
    now = () if change.new is None else rules.list_blind_rules(entity, change.new)
    before = rules.list_blind_rules(entity, change.old) if now and change.old is not None else ()
    return (rule for rule in now if rule not in before)


def _make_pull(key: ItemKey, work: TargetWork, newest: Change | None) -> Pull | None:
    """The pull of a target; None if it was deleted, and no rule makes it again. Its newest image in the batch is used
    only if no member hinted at it: a member may have changed later than that image, and then no record of the target
    need follow.
    """
    last = newest if newest is not None and newest.in_order else None
    if last is not None and last.new is None:
        makers = tuple(rule for rule in dict.fromkeys((*work.into, *work.hinted)) if rule.makes)
        return Pull(key, None, makers) if makers else None
    if not work.hinted:  # as most are
        return Pull(key, None if last is None else last.new, work.into, 0, (), work.appeared)
    rules = tuple(dict.fromkeys((*work.into, *work.hinted)))
    members = tuple(work.members)
    image = last.new if last is not None and work.newest is not None and not members else None
    return Pull(key, image, rules, 0, members, bool(members) or work.appeared)


def group_pushes(pushed: Mapping[tuple[ItemKey, Rule], bool]) -> tuple[Push, ...]:
    """Merge the pushes of one item whose rules list by the same Query."""
    groups: dict[tuple[object, ...], Push] = {}
    for (anchor, rule), removed in pushed.items():
        group = (anchor, *rule.lists_by)
        so_far = groups.get(group, Push(anchor, ()))
        groups[group] = replace(so_far, rules=(*so_far.rules, rule), removed=so_far.removed or removed)
    return tuple(groups.values())


def make_pull(
    key: ItemKey, rules: Rules, image: Item | None = None, attempt: int = 0, delay_seconds: int = 0
) -> Pull | None:
    """Make the pull of a target by its key, for a message or a repair; None if no rule writes such items."""
    entity = rules.entity_of(key)
    into = rules.into_target(entity) if entity is not None else ()
    return Pull(key, image, into, attempt, settles=delay_seconds > 0, delay_seconds=delay_seconds) if into else None


def list_unknown_rules(message: Message, rules: Rules) -> tuple[str, ...]:
    """List the rules of a message that these rules know neither by name nor by a former name. A call has none: a call
    of an unknown rule is set aside instead. A pull names no rules.
    """
    if isinstance(message, CallMessage):
        return ()
    return tuple(name for name in list_rule_names(message) if rules.find_rule_by_name(name) is None)


def find_part(message: PartMessage, rules: Rules) -> PartLook | None:
    """Find the part that a message asks for. Return None if its rule no longer exists, or is now about other items."""
    rule = rules.find_rule_by_name(message.rule)
    if not isinstance(rule, PartRule):
        return None
    made_from = message.source is None or rules.entity_of(message.source) is rule.source
    entity = rules.entity_of(message.target)
    # a part without a place has its source's key, or a key of no entity; an element always has a node
    nowhere = not isinstance(rule, ListingRule) and (
        message.target == message.source or (message.target.table == rule.target.table.name and entity is None)
    )
    if not made_from or not (entity is rule.target or nowhere):
        return None
    return PartLook(Part(rule, message.target, message.source, message.element), message.attempt)


def list_pushes(message: PushMessage, rules: Rules) -> tuple[Push, ...]:
    """List the pushes that a message asks for, by the present rules. Rules that no longer exist are skipped. A rule
    whose Query has changed lists from the start.
    """
    return tuple(
        replace(
            push,
            cursor=message.cursor if _has_cursor_keys(message.cursor, push.rules[0]) else None,
            delay_seconds=message.delay_seconds,
            found=message.found,
            spread=message.spread,
        )
        for push in _list_pushes(message, rules)
    )


def list_chunks(message: ChunkMessage, rules: Rules) -> tuple[Chunk, ...]:
    """List the targets that a message asks for, by push. Rules that no longer exist are skipped."""
    chunks = (
        Chunk(push, tuple(key for key in message.targets if rules.entity_of(key) is push.rules[0].listed_entity))
        for push in _list_pushes(message, rules)
    )
    return tuple(chunk for chunk in chunks if chunk.targets)


def _list_pushes(message: PushMessage | ChunkMessage, rules: Rules) -> tuple[Push, ...]:
    entity = rules.entity_of(message.source)
    known = [
        rule
        for name in message.rules
        if (rule := rules.find_rule_by_name(name)) is not None and rule.anchor is entity and rule.find is not None
    ]
    return group_pushes({(message.source, rule): message.removed for rule in known})


def _has_cursor_keys(cursor: Item | None, rule: Rule) -> bool:
    """True for a cursor of the Query that this rule uses to list."""
    table = rule.listed_entity.table
    index = rule.find.index if rule.find is not None else None
    keys = table.key + (table.index(index).attributes if index is not None else ())
    return cursor is not None and cursor.keys() == {attribute.name for attribute in keys}
