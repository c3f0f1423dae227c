"""What happened to an item and to all that it is made from: the road that led to what is wrong.

Law: only what the rule in question links belongs to a history. Keys and the names of attributes are told; values only
to whoever asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sync_rules.lab.scenario import show
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item, same
from sync_rules.rules.kinds.ledger import contribution_of
from sync_rules.rules.kinds.tally import TallyRule
from sync_rules.rules.rule import PartRule, Rule, TargetRule
from sync_rules.rules.ruleset import Rules

By = Literal["data", "record", "rules"]


@dataclass(frozen=True)
class Event:
    """One change of an item: there from the beginning, done by a record (which), or written by the rules."""

    by: By
    change: Change
    record: int = 0

    @property
    def name(self) -> str:
        """As a stream calls it."""
        return "REMOVE" if self.change.new is None else "INSERT" if self.change.old is None else "MODIFY"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that changed, without those of the key."""
        return tuple(_changed(self.change))

    def text(self, *, values: bool = False) -> str:
        """What changed, in words: name, -title; with values name: "Ada" -> "Bea"."""
        old, new = self.change.old or {}, self.change.new or {}
        if values:
            return ", ".join(f"{name}: {show(old.get(name))} -> {show(new.get(name))}" for name in self.attributes)
        return ", ".join(name if name in new else f"-{name}" for name in self.attributes)


def _changed(change: Change) -> Iterator[str]:
    old: Item = change.old or {}
    new: Item = change.new or {}
    if change.new is None:
        return
    keys = {name for name, _, _ in change.key.values}
    for name in dict.fromkeys((*old, *new)):
        if name not in keys and not same(old.get(name), new.get(name)):
            yield name


def history_of(events: Sequence[Event], rules: Rules, rule: str, keys: Iterable[ItemKey]) -> tuple[Event, ...]:
    """The events of these items and of all that this rule, in all its parts, made them from."""
    title = rules.rules[rule].title if rule in rules.rules else rule
    concerned = [one for one in rules.rules.values() if one.title == title]
    related = set(keys)
    while True:
        more = {key for event in events for key in _linked(event.change, rules, concerned, related)} - related
        if not more:
            return tuple(event for event in events if event.change.key in related)
        related |= more


def _linked(change: Change, rules: Rules, concerned: Iterable[Rule], related: set[ItemKey]) -> Iterator[ItemKey]:
    """The items that a record links to related ones, by one of the rules."""
    entity = rules.entity_of(change.key)
    for rule in concerned if entity is not None else ():
        assert entity is not None
        images = [image for image in (change.old, change.new) if image is not None]
        if isinstance(rule, TargetRule):
            if rule.target is entity and change.key in related:
                yield from (key for image in images for key in rule.source_keys(image))
            if rule.source is entity and any(hint.target in related for hint in rule.hints(change)):
                yield change.key
        elif isinstance(rule, PartRule) and entity in (rule.source, rule.target):
            for part in rule.parts(change, entity):
                if part.source is not None and part.target in related:
                    yield part.source
            if isinstance(rule, TallyRule) and rule.target is entity:
                held = (contribution_of(rule.target.table, image) for image in images)
                if any(one is not None and one.total in related for one in held):
                    yield change.key
