"""Find what cannot be of items that a rule moves: a second move, a rule that keeps them, a deletion because of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sync_rules.language.problems import Problem
from sync_rules.language.yaml_source import Document
from sync_rules.model.entities import Entity
from sync_rules.rules.kinds.linked import LinkedRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules


def moves(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report items that would move twice, those that another rule keeps where they are, and what would be deleted
    because an item moved.
    """
    moving: dict[Entity, Rule] = {}
    for rule in rules.rules.values():
        if rule.moves and (first := moving.setdefault(rule.source, rule)) is not rule:
            message = f"items of {rule.source.name!r} move by rule {first.title} already"
            yield Problem("SR320", message, document.value("rules", rule.title, "mirror"))
    yield from _moving_on(moving, document)
    for keeping in rules.rules.values():
        for rule in moving.values():
            for side, option in ((rule.source, "mirror"), (rule.target, "into")):
                if side in keeping.owned:
                    message = f"the items of {side.name!r} are kept where they are by rule {keeping.title}"
                    yield Problem("SR301", message, document.value("rules", rule.title, option))
    for rule in rules.rules.values():
        if isinstance(rule, LinkedRule) and rule.on_delete in ("delete", "restrict") and rule.source in moving:
            message = f"{rule.source.name!r} is gone from its key when rule {moving[rule.source].title} moves it"
            yield Problem("SR321", message, document.value("rules", rule.title, "on_delete"))


def _moving_on(moving: Mapping[Entity, Rule], document: Document) -> Iterator[Problem]:
    """Report moves of what was moved: nobody could tell what the first one left behind. Back again is a cycle."""
    for rule in moving.values():
        onward = moving.get(rule.target)
        if onward is not None and onward.target is not rule.source:
            message = (
                f"items of {rule.source.name!r} come to {rule.target.name!r} by rule {rule.title}, and would move on"
            )
            cure = f"move them at once: mirror: {rule.source.name}, into: {onward.target.name}"
            yield Problem("SR320", message, document.value("rules", onward.title, "mirror"), cure)
