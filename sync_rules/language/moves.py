"""Find what cannot be of items that rules move or make: a second move, a rule that keeps them, a deletion of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sync_rules.language.problems import Problem
from sync_rules.language.writers import attribute, locate_write
from sync_rules.language.yaml_source import Document
from sync_rules.model.entities import Entity
from sync_rules.model.values import overlaps
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.kinds.move import MoveRule
from sync_rules.rules.ruleset import Rules


def moves(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report items that would move twice, items that another rule keeps at their key, and deletions by a move."""
    moving: dict[Entity, MoveRule] = {}
    for rule in rules.rules.values():
        if isinstance(rule, MoveRule) and (first := moving.setdefault(rule.source, rule)) is not rule:
            message = f"items of {rule.source.name!r} move by rule {first.title} already"
            yield Problem("SR320", message, document.value("rules", rule.title, "mirror"))
    yield from _report_chains(moving, document)
    for keeping in rules.rules.values():
        for rule in moving.values():
            for side, option in ((rule.source, "mirror"), (rule.target, "into")):
                if side in keeping.owned_entities:
                    message = f"the items of {side.name!r} are kept where they are by rule {keeping.title}"
                    yield Problem("SR301", message, document.value("rules", rule.title, option))
    yield from _report_overwrites(rules, moving.values(), document)
    for rule in rules.rules.values():
        if isinstance(rule, LinkedRule) and rule.on_delete in ("delete", "restrict") and rule.source in moving:
            message = f"{rule.source.name!r} is gone from its key when rule {moving[rule.source].title} moves it"
            cure = None if rule.name == rule.title else "remove on_delete; or move the item by hand"
            yield Problem("SR321", message, document.value("rules", rule.title, "on_delete"), cure)


def _report_overwrites(rules: Rules, moving: Iterable[MoveRule], document: Document) -> Iterator[Problem]:
    """Report writes over the former key of a moved item, its only copy."""
    for move in moving:
        for rule in rules.rules.values():
            for path in rule.puts if rule.target is move.target and rule is not move else ():
                if any(overlaps(path, one) for one in move.identity_paths):
                    what = attribute(rule.target, path)
                    message = f"{what} is a part of the key that the item had before rule {move.title} moved it"
                    yield Problem("SR323", message, locate_write(rule, document))


def _report_chains(moving: Mapping[Entity, MoveRule], document: Document) -> Iterator[Problem]:
    """Report moves of moved items: the second move hides what the first one left behind. A move back is a cycle."""
    for rule in moving.values():
        onward = moving.get(rule.target)
        if onward is not None and onward.target is not rule.source:
            message = (
                f"items of {rule.source.name!r} come to {rule.target.name!r} by rule {rule.title}, and would move on"
            )
            cure = f"move them at once: mirror: {rule.source.name}, into: {onward.target.name}"
            yield Problem("SR320", message, document.value("rules", onward.title, "mirror"), cure)


def report_deletions_of_made_items(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report rules that delete items that other rules make."""
    for rule in rules.rules.values():
        if rule.target.made and getattr(rule, "on_delete", None) == "delete":
            message = f"rule {rule.title} would delete items of {rule.target.name!r}, which have members"
            yield Problem("SR325", message, document.value("rules", rule.title, "on_delete"))


def report_unmade_entities(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report entities that nothing makes, or whose items lack what their entity requires."""
    made = {rule.target for rule in rules.rules.values() if rule.makes}
    for entity in (one for one in rules.declared_entities if one.made):
        if entity not in made:
            message = f"no count, sum, mean, min or max makes the items of {entity.name!r}"
            yield Problem("SR324", message, document.value("entities", entity.name, "made_by"))
        written = {path[0] for rule in rules.rules.values() if rule.target is entity for path in rule.puts}
        lacking = [name for name in entity.required if name not in written | entity.templates.keys()]
        if lacking:
            message = f"each {entity.name!r} has {', '.join(lacking)}, and rules make items without"
            place = document.value("entities", entity.name, "required")
            yield Problem("SR232", message, place, f"remove {', '.join(lacking)} from required")
