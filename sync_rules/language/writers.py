"""Finds attributes with two writers, and values whose type an index key or a rule does not take. Two writers would undo
each other. A type follows from keys and rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sync_rules.language.problems import Location, Problem
from sync_rules.language.yaml_source import Document
from sync_rules.model.entities import Entity
from sync_rules.model.prefixes import Prefixes
from sync_rules.model.values import Path, has_overlap, show_path
from sync_rules.rules.kinds.path import TreeRule
from sync_rules.rules.kinds.tally import TallyRule, TotalRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

Writer = tuple[Rule, Entity, Path]


def format_attribute(entity: Entity, path: Path) -> str:
    """Format a path with its entity, as the rules file spells it. The empty path is the whole item."""
    return f"{entity.name}.{show_path(path)}" if path else entity.name


def locate_write(rule: Rule, document: Document, option: str = "into", *, path: Path = ()) -> Location:
    """Return the location of `option` in a rule, or of the option that names this path further on. Return the location
    of the rule if the option is missing.
    """
    further = isinstance(rule, TallyRule | TotalRule) and path in rule.sums
    key_path = ("rules", rule.title, "sums" if further else option)
    return document.value(*(key_path if key_path in document.locations else (*key_path[:2], rule.kind)))


def report_two_writers(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report attributes that two rules write, or one rule twice. A mirror writes its attributes and its key."""
    mirrors = set[tuple[str, str]]()
    for (one, target, left), (two, entity, right) in _find_overlaps(rules):
        what, location = format_attribute(entity, right or left), locate_write(two, document, path=right)
        if one is two:
            carried = document.locations.get(("rules", one.title, "carry"))
            alone = "remove it from carry" if carried else "remove one of the two, or give it another name"
            yield Problem("SR301", f"{what} is written twice by this rule", carried or location, alone)
            continue
        line = locate_write(one, document).line
        both = entity in one.owned_entities and entity in two.owned_entities
        if both and one.title == two.title:
            continue  # each has items of its own
        makers = one.makes and two.makes
        if makers and any(attribute.name == right[0] for attribute in entity.table.key):
            continue  # of one entity: the first member of any of them makes the item
        if both and not makers:
            if (one.name, two.name) not in mirrors:
                made = "made by" if one.makes or two.makes else "the mirrors of"
                message = f"the items of {entity.name!r} are {made} rule {one.title} in line {line} already"
                apart = f"write into another entity than {entity.name}, or remove one of the rules"
                yield Problem("SR301", message, location, apart)
            mirrors.add((one.name, two.name))
            continue
        inside = "" if left == right or not right else f" as {format_attribute(target, left)}"
        message = f"{what} is written by rule {one.title} in line {line} already{inside}"
        cure = _suggest_ids_name(one, two, right) or _suggest_ids_name(two, one, left)
        yield Problem("SR301", message, location, cure)


def _suggest_ids_name(rule: Rule, other: Rule, path: Path) -> str | None:
    """The cure if another rule writes the ids of a rule with a breadcrumb."""
    if not isinstance(rule, TreeRule) or rule.crumb is None or not has_overlap(rule.path, path):
        return None
    return f"rule {rule.title} keeps its ids itself: give its `ids` another name, or remove rule {other.title}"


def _find_overlaps(rules: Rules) -> Iterator[tuple[Writer, Writer]]:
    """Yield pairs of writers of one attribute: a later writer with an earlier one of its rule, and of another rule."""
    writers: dict[Entity, Prefixes[Writer]] = {}
    for rule in rules.rules.values():
        own: list[Writer] = [(rule, *node.writes) for node in rule.nodes()]
        for number, two in enumerate(own):
            _, entity, path = two
            mine = (one for one in own[:number] if one[1] is entity and has_overlap(one[2], path))
            others = writers[entity].find_overlaps(path) if entity in writers else iter(())
            yield from ((one, two) for one in (next(mine, None), next(others, None)) if one is not None)
        for writer in own:
            writers.setdefault(writer[1], Prefixes()).add(writer[2], writer)


CHAIN_MAX_COPIES: Final = 100  # the type of a value that comes through more is not known


def report_key_types(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report values of a type that an index key does not take, if the type follows from the rules."""
    types = Types(rules)
    for rule in rules.rules.values():
        table = rule.target.table
        own = {attribute.name for attribute in table.key}
        keys = {a.name: (a.type, index.name) for index in table.indexes for a in index.attributes if a.name not in own}
        for path in rule.puts:
            wanted, index = keys.get(path[0], ("", ""))
            found = "M" if len(path) > 1 else rule.type_of(path, types.find_type)
            if wanted and found not in (None, wanted):
                what = format_attribute(rule.target, path[:1])
                message = f"{what} is of type {wanted} in the key of index {index!r}, and gets a value of type {found}"
                yield Problem(
                    "SR312", message, locate_write(rule, document, path=path), _suggest_type(what, wanted, found)
                )


def _suggest_type(what: str, wanted: str, found: str | None) -> str:
    if wanted == "S" and found == "N":
        return f"declare {what} as N; or write another attribute, and make {what} of that by a derive rule"
    return f"declare {what} as {found}" if found in ("S", "N", "B") else "write an attribute that is in no key"


def report_read_types(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report fields of a type that a rule cannot use, if the type follows from the rules. Each item would be parked."""
    types = Types(rules)
    for rule in rules.rules.values():
        for path, wanted in rule.required_types.items():
            found = None if _is_in_index_key(rule.source, path) else types.find_type(rule.source, path)
            if found is not None and found not in wanted:
                what = format_attribute(rule.source, path)
                message = f"{what} is of type {found}, and this rule takes {' or '.join(wanted)} alone"
                parted = f"if its parts are meant: {{each: {show_path(path)}, separator: ...}}"
                cure = parted if found == "S" and "L" in wanted else None
                yield Problem("SR322", message, locate_write(rule, document, rule.kind, path=path), cure)


def _is_in_index_key(entity: Entity, path: Path) -> bool:
    """True for a field that only templates of index keys have: an item that is not in the index has an attribute."""
    ref = entity.bound_fields.get(path[0])
    return ref is not None and ref.path[0] not in {key.name for key in entity.table.key}


class Types:
    """The types of attributes, as far as they follow from keys and rules."""

    def __init__(self, rules: Rules) -> None:
        self._writers = {(rule.target.name, path): rule for rule in rules.rules.values() for path in rule.copies}
        self._asked: set[tuple[str, Path]] = set()

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
