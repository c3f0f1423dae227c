"""Filter criteria of event source mappings, made of the key templates of entities.

Invariant: each record that a rule can act on passes; others may pass, and the handler discards them. So a pattern
constrains keys alone (it cannot express what changed in an item), by equality and prefix of strings: a number in a
record is a string with several spellings. A mapping takes five patterns of 4,096 characters.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import combinations
from math import prod
from typing import Any, Final

from sync_rules.model.entities import Entity, Table
from sync_rules.rules.ruleset import Rules

PATTERNS_MAX: Final = 5
PATTERN_MAX_CHARACTERS: Final = 4096

# The allowed values of each key attribute: (True, text) a prefix, (False, text) a whole value. An attribute that is
# not in the pattern may have any value.
Pattern = Mapping[str, frozenset[tuple[bool, str]]]


def make_filter_criteria(rules: Rules, table: Table) -> dict[str, Any] | None:
    """Make the FilterCriteria of a table's mapping; None if no record can be excluded."""
    patterns = [_make_pattern(entity) for entity in list_entities(rules, table)]
    patterns = list({str(sorted((name, *sorted(said)) for name, said in p.items())): p for p in patterns}.values())
    while len(patterns) > PATTERNS_MAX:
        first, second = min(combinations(patterns, 2), key=lambda pair: _compute_looseness(*pair))
        patterns = [p for p in patterns if p is not first and p is not second] + [_join(first, second)]
    patterns = [_shorten(pattern) for pattern in patterns]
    if not patterns or not all(patterns):
        return None
    return {"Filters": [{"Pattern": _format_pattern(pattern)} for pattern in patterns]}


def list_entities(rules: Rules, table: Table) -> tuple[Entity, ...]:
    """List the entities of a table that some rule reads or writes."""
    spoken = {entity.name for rule in rules.rules.values() for entity in (rule.source, rule.target, rule.anchor)}
    return tuple(entity for name, entity in rules.entities.items() if name in spoken and entity.table == table)


def _make_pattern(entity: Entity) -> Pattern:
    said: dict[str, frozenset[tuple[bool, str]]] = {}
    for attribute in entity.table.key:
        template = entity.templates[attribute.name]
        start = template.literals[0]
        if attribute.type == "S" and start:
            said[attribute.name] = frozenset({(bool(template.fields), start)})
    return said


def _join(one: Pattern, other: Pattern) -> Pattern:
    """The pattern that matches whatever one of the two matches, and more if they differ in both attributes."""
    return {name: _drop_covered_values(one[name] | other[name]) for name in one if name in other}


def _drop_covered_values(said: frozenset[tuple[bool, str]]) -> frozenset[tuple[bool, str]]:
    """The values without those that a shorter prefix covers."""
    prefixes = [text for begins, text in said if begins]
    return frozenset(
        (begins, text)
        for begins, text in said
        if not any(text.startswith(prefix) and (not begins or text != prefix) for prefix in prefixes)
    )


def _compute_looseness(one: Pattern, other: Pattern) -> tuple[int, int]:
    """How much more than the two patterns their union matches: attributes it no longer constrains, then combinations
    of values that neither pattern matches.
    """
    both = _join(one, other)
    lost = max(len(one), len(other)) - len(both)
    return lost, _count_pairs(both) - _count_pairs(one) - _count_pairs(other)


def _count_pairs(pattern: Pattern) -> int:
    return prod(map(len, pattern.values()))


def _shorten(pattern: Pattern) -> Pattern:
    """The pattern without its longest attributes, as many as make it too long."""
    while len(_format_pattern(pattern)) > PATTERN_MAX_CHARACTERS:
        longest = max(pattern, key=lambda name: sum(len(text) for _, text in pattern[name]))
        pattern = {name: said for name, said in pattern.items() if name != longest}
    return pattern


def _format_pattern(pattern: Pattern) -> str:
    keys = {name: {"S": _format_alternatives(said)} for name, said in pattern.items()}
    return json.dumps({"dynamodb": {"Keys": keys}}, separators=(",", ":"))


def _format_alternatives(said: Iterable[tuple[bool, str]]) -> list[Any]:
    return [{"prefix": text} if begins else text for begins, text in sorted(said)]
