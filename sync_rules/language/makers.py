"""Finds mistakes about items that rules make: a rule that deletes them, and an entity that nothing makes."""

from __future__ import annotations

from collections.abc import Iterator

from sync_rules.language.problems import Problem
from sync_rules.language.yaml_source import Document
from sync_rules.rules.ruleset import Rules


def report_deletions_of_made_items(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report rules that delete items that other rules make."""
    for rule in rules.rules.values():
        if rule.target.made and getattr(rule, "on_delete", None) == "delete":
            message = f"rule {rule.title} would delete items of {rule.target.name!r}, which have members"
            yield Problem("SR325", message, document.value("rules", rule.title, "on_delete"))


def report_unmade_entities(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report entities that nothing makes although the file says so, and required attributes that no rule writes."""
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
