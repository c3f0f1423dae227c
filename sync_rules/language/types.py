"""Find values of a type that an index key or a rule does not take, where the type follows from keys and rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sync_rules.language.problems import Problem
from sync_rules.language.writers import attribute, locate_write
from sync_rules.language.yaml_source import Document
from sync_rules.model.entities import Entity
from sync_rules.model.values import Path
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

CHAIN_MAX_COPIES: Final = 100  # the type of a value that comes through more is not known


def key_types(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report values of a type that the key of an index does not take, where the type follows from the rules."""
    types = Types(rules)
    for rule in rules.rules.values():
        table = rule.target.table
        own = {attribute.name for attribute in table.key}
        keys = {a.name: (a.type, index.name) for index in table.indexes for a in index.attributes if a.name not in own}
        for path in rule.puts:
            wanted, index = keys.get(path[0], ("", ""))
            found = types.find_written_type(rule, path)
            if wanted and found not in (None, wanted):
                what = attribute(rule.target, path[:1])
                message = f"{what} is of type {wanted} in the key of index {index!r}, and gets a value of type {found}"
                yield Problem("SR312", message, locate_write(rule, document), _suggest_type(what, wanted, found))


def _suggest_type(what: str, wanted: str, found: str | None) -> str:
    if wanted == "S" and found == "N":
        return f"declare {what} as N; or write another attribute, and make {what} of that by a derive rule"
    return f"declare {what} as {found}" if found in ("S", "N", "B") else "write an attribute that is in no key"


def read_types(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report fields of a type that a rule cannot use, where the type follows from the rules: each item is refused."""
    types = Types(rules)
    for rule in rules.rules.values():
        for path, wanted in rule.required_types.items():
            found = None if _in_index_key(rule.source, path) else types.find_type(rule.source, path)
            if found is not None and found not in wanted:
                what = attribute(rule.source, path)
                message = f"{what} is of type {found}, and this rule takes {' or '.join(wanted)} alone"
                yield Problem("SR322", message, locate_write(rule, document, rule.kind))


def _in_index_key(entity: Entity, path: Path) -> bool:
    """True for a field that only templates of index keys have: an item that is not in the index has an attribute."""
    ref = entity.bound_fields.get(path[0])
    return ref is not None and ref.path[0] not in {key.name for key in entity.table.key}


class Types:
    """The types of attributes, as far as they follow from keys and rules."""

    def __init__(self, rules: Rules) -> None:
        self._writers = {(rule.target.name, path): rule for rule in rules.rules.values() for path in rule.copies}
        self._asked: set[tuple[str, Path]] = set()

    def find_written_type(self, rule: Rule, path: Path) -> str | None:
        """The type of the top-level attribute that a rule writes at or around a path."""
        return "M" if len(path) > 1 else rule.type_of(path, self.find_type)

    def find_type(self, entity: Entity, path: Path) -> str | None:
        """Return the type of an attribute; None if the rules file does not determine it."""
        declared = {one.name: one.type for one in entity.table.key_attributes}
        ref = entity.bound_fields.get(path[0])
        if len(path) == 1 and ref is not None:
            return declared[ref.path[0]] if ref.template is None else "N" if entity.is_padded(path[0]) else "S"
        if len(path) == 1 and path[0] in declared:
            return declared[path[0]]
        writer, asked = self._writers.get((entity.name, path)), (entity.name, path)
        if writer is None or asked in self._asked or len(self._asked) >= CHAIN_MAX_COPIES:
            return None
        self._asked.add(asked)
        found = writer.type_of(path, self.find_type)
        self._asked.discard(asked)
        return found
