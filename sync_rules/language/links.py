"""Finds where a target holds the fields that name its source, and which Query lists a source's targets.

Invariant: there is a single answer, or an error that says what to add. A link field is read where the target's own key
templates bind it, else from the attribute of that name. Targets are listed by the first key whose partition those
fields fill.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import takewhile

from sync_rules.model.entities import Entity, Index, KeyAttribute, KeyType, Ref
from sync_rules.model.lookups import Find, Link
from sync_rules.model.templates import CASES, Template
from sync_rules.model.values import parse_path, show_path

NOT_IN_INDEX_NAMES = re.compile(r"[^A-Za-z0-9_.-]")


def make_default_template(attribute: str) -> Template:
    """Make the template of a key attribute that the file gives none: the attribute is the field of its own name."""
    return Template(f"{{{attribute}}}", ("", ""), (attribute,))


def find_template(entity: Entity, attribute: KeyAttribute) -> Template:
    return entity.templates.get(attribute.name) or make_default_template(attribute.name)


def infer_link(source: Entity, target: Entity, given: Mapping[str, str]) -> Link:
    """Pair each identity field of the source with the attribute of the target that holds it.

    `given` holds the names that differ. Raises UserError when one of them is not a path.
    """
    return tuple((field, find_ref(target, given.get(field, ""), field)) for field in source.identity)


def find_ref(entity: Entity, text: str, field: str) -> Ref:
    """Find the place of the field that the rules file calls `text`, or of `field` if the text is empty.

    Raises UserError when the text is not a path.
    """
    if not text:
        return entity.ref(field)
    path = parse_path(text)
    if '"' not in text:
        return entity.ref(text)
    return Ref(path[0] if len(path) == 1 else text, path)


def is_self_link(source: Entity, target: Entity, link: Link) -> bool:
    """True if every target is its own source: a copy within one item."""
    return source is target and all(ref == target.ref(field) for field, ref in link)


def suggest_other_item(entity: Entity) -> str:
    """Suggest a cure for items that link to themselves: a link by the first field of an index key that is not in their
    own key.
    """
    if not entity.identity:
        return f"all items of {entity.name!r} have one fixed key: name another entity"
    own = {*entity.identity, *(attribute.name for attribute in entity.table.key)}
    keys = (attribute.name for index in entity.table.indexes for attribute in index.attributes)
    fields = (
        field for name in keys for field in (entity.templates[name].fields if name in entity.templates else (name,))
    )
    last = entity.identity[-1]
    name = next((field for field in fields if field not in own), None)
    if name is not None:
        return f"add to the rule, written as a map: link: {{{last}: {name}}}"
    return f"add to the rule, written as a map: link: {{{last}: parent_{last}}}, if parent_{last} names the other item"


def list_field_types(entity: Entity) -> dict[str, KeyType]:
    """List the type of each identity field: that of its key attribute if it is the whole value, else S, as part of a
    text.
    """
    types: dict[str, KeyType] = {}
    for attribute in entity.table.key:
        template = entity.templates[attribute.name]
        for field in template.fields:
            types.setdefault(field, attribute.type if template.whole else "S")
    return types


def find_mismatches(source: Entity, target: Entity, link: Link) -> Iterator[tuple[str, KeyType, KeyType]]:
    """List the link fields that are binary on one side only, as (field, type on the source, type on the target)."""
    declared = {attribute.name: attribute.type for attribute in target.table.key_attributes}
    types = list_field_types(source)
    for field, ref in link:
        if len(ref.path) > 1 or ref.path[0] not in declared:
            continue
        there: KeyType = "S" if ref.template else declared[ref.path[0]]
        if (there == "B") != (types[field] == "B"):
            yield field, types[field], there


@dataclass(frozen=True)
class Way:
    """A Query that lists targets. `fields`: the fields of the source in it. `narrow`: the Query depends on the source.
    `missing`: key attributes of the index that a target may lack.
    """

    find: Find
    fields: frozenset[str]
    narrow: bool
    missing: tuple[KeyAttribute, ...] = ()

    @property
    def place_name(self) -> str:
        """The table or the index, for messages."""
        return f"index {self.find.index!r}" if self.find.index else "the table"

    def make_sparse(self) -> Way:
        """Return this way for a rule that applies only to the items in the index."""
        return replace(self, find=replace(self.find, needs=(*self.find.needs, *self.missing), sparse=True), missing=())


def list_known_fields(source: Entity, link: Link) -> dict[str, str]:
    """List the target's fields that follow from the source's key, by name, with their types on the source. A field that
    the key holds in one case has "lower" or "upper" in place of a type.
    """
    types = list_field_types(source)
    cases = {field: case for one in source.table.key for field, case in source.templates[one.name].cases}
    return {ref.field: cases.get(field) or types[field] for field, ref in link}


def list_ways(source: Entity, target: Entity, link: Link, said: frozenset[str] = frozenset()) -> list[Way]:
    """List the ways by every key of the target's table that the link fills, base table first. `said`: attributes that
    every target has, by the rules file, besides those of its key templates.
    """
    known = list_known_fields(source, link)
    table = target.table
    base = Index("", (table.partition,), () if table.sort is None else (table.sort,))
    found = (_make_way(index, target, known) for index in (base, *table.indexes))
    return [_complete(way, target, link, said, known) for way in found if way is not None]


def _complete(way: Way, target: Entity, link: Link, said: frozenset[str], known: Mapping[str, str]) -> Way:
    """A way with the attributes that an item needs to be listed: the index's key without table key and link."""
    there = {attribute.name for attribute in target.table.key} | {ref.path[0] for _, ref in link if len(ref.path) == 1}
    index = () if way.find.index is None else target.table.index(way.find.index).attributes
    others = [attribute for attribute in index if attribute.name not in there]
    given = said | target.templates.keys()
    return replace(
        way,
        find=replace(way.find, needs=tuple(attribute for attribute in others if attribute.name in given)),
        narrow=way.narrow or not known,
        missing=tuple(attribute for attribute in others if attribute.name not in given),
    )


def _make_way(index: Index, target: Entity, known: Mapping[str, str]) -> Way | None:
    partition = tuple((attribute, find_template(target, attribute)) for attribute in index.partition)
    if not all(_fills(attribute, template, known) for attribute, template in partition):
        return None
    sort: list[tuple[KeyAttribute, Template]] = []
    for attribute in index.sort:
        template = find_template(target, attribute)
        filled = _fills(attribute, template, known)
        if filled or _begins(attribute, template, known):
            sort.append((attribute, template))
        if not filled:
            break
    held = frozenset(
        field for _, template in (*partition, *sort) for field in takewhile(known.__contains__, template.fields)
    )
    return Way(Find(index.name or None, partition, tuple(sort)), held, bool(held))


def choose(found: list[Way], via: str | None) -> Way | None:
    """Choose the way through `via`, else the first that depends on the source, else the first."""
    if via is not None:
        return next((way for way in found if way.find.index == via), None)
    return next((way for way in found if way.narrow), found[0] if found else None)


def choose_closest(found: list[Way], via: str | None) -> Way | None:
    """Choose the way through `via`, else by most of the source's fields, which lists the fewest other items."""
    return choose(found, via) if via is not None else max(found, key=lambda way: len(way.fields), default=None)


def _fits(found: str, field: str, attribute: KeyAttribute, template: Template) -> bool:
    """True if a value of one type fits a key attribute: text and numbers convert, binary never; cases must be equal."""
    if found in CASES:
        return dict(template.cases).get(field) == found
    if "B" in (found, attribute.type):
        return found == attribute.type and template.whole is not None
    return True


def _fills(attribute: KeyAttribute, template: Template, known: Mapping[str, str]) -> bool:
    return all(field in known and _fits(known[field], field, attribute, template) for field in template.fields)


def _begins(attribute: KeyAttribute, template: Template, known: Mapping[str, str]) -> bool:
    """True if the beginning of a string key is known: its literal, or its first field."""
    if attribute.type != "S" or template.whole is not None:
        return False
    if not all(_fits(known[field], field, attribute, template) for field in template.fields if field in known):
        return False
    return bool(template.literals[0]) or (bool(template.fields) and template.fields[0] in known)


def find_near_index(entity: Entity, link: Link) -> tuple[str, str] | None:
    """Find a partition key whose name is nearly that of a link field. Return it with its index; None if there is
    none.
    """
    indexes = {index.partition[0].name: index.name for index in entity.table.indexes if len(index.partition) == 1}
    for _, ref in link:
        meant = get_close_matches(ref.field, indexes, n=1)
        if meant and meant[0] not in {other.field for _, other in link}:
            return meant[0], indexes[meant[0]]
    return None


def suggest_way(source: Entity, target: Entity, link: Link) -> str:
    """Suggest a cure for targets that no key lists. If an index has an attribute of the source's key, the link or a key
    template suffices.
    """
    inferred = {field for field, ref in link if ref.path == (field,)}
    listed = {index.partition[0] for index in target.table.indexes if len(index.partition) == 1}
    held: list[str] = []
    for attribute in (each for each in source.table.key if each in listed):
        name, template = attribute.name, source.templates[attribute.name]
        if name in target.templates or not template.fields or not inferred.issuperset(template.fields):
            continue
        key = f'entities.{target.name}.key: {{{name}: "{template.text}"}}'
        held.append(f"if {name} holds all of {template.text}, say {key}")
        if len(template.fields) == 1:
            (field,) = template.fields
            held.append(f"if {name} holds {{{field}}} alone, say link: {{{field}: {name}}} in the rule")
    found = suggest_index(source, target, link)
    return "; ".join((*held, f"else {found}")) if held else found


def suggest_index(source: Entity, target: Entity, link: Link) -> str:
    """Return the cure for targets that no key lists: the index to add to the rules file."""
    types = list_field_types(source)
    where = f"tables.{target.table.name}.indexes"
    if not link:
        return f"let an index under {where} hold all items of {target.name!r} under one fixed key: by_kind: {{kind: S}}"
    attributes: dict[str, KeyType] = {}
    known = list_known_fields(source, link)
    declared = {attribute.name: attribute.type for attribute in target.table.key_attributes}
    nested: list[Ref] = []
    inside: list[str] = []
    for field, ref in link:
        attribute = KeyAttribute(ref.path[0], declared.get(ref.path[0], types[field]))
        if len(ref.path) > 1:
            nested.append(ref)
        elif known[ref.field] not in CASES and (ref.template is None or _fills(attribute, ref.template, known)):
            attributes[attribute.name] = attribute.type
        else:  # inside a key that holds other fields too: an attribute must hold it alone, to be listed by
            inside.append(ref.field)
            attributes[name_copy(ref.field)] = "S"
    for ref in nested:
        attributes["_".join(name.strip("_") for name in ref.path)] = types[next(f for f, r in link if r == ref)]
    named = [
        attribute.removeprefix("by_") if attribute in map(name_copy, inside) else attribute for attribute in attributes
    ]
    name = NOT_IN_INDEX_NAMES.sub("_", "by_" + "_".join(named))
    while name in {index.name for index in target.table.indexes}:  # one that lists only some of them
        name = f"all_{name}"
    inner = ", ".join(f"{attribute}: {kind}" for attribute, kind in attributes.items())
    short = f"{{{inner}}}" if len(attributes) == 1 else f"{{partition: {{{inner}}}}}"
    advice = f"add an index under {where}: {name}: {short}"
    if nested:
        paths = ", ".join(show_path(ref.path) for ref in nested)
        advice += f" (an index cannot reach into a map: keep {paths} in a top-level attribute too, and link by it)"
    for field in inside:
        cased = known[field] in CASES
        form = f"{{{field}:{known[field]}}}" if cased else f"{{{field}}}"
        made = f'entities.{target.name}.key: {{{name_copy(field)}: "{form}"}}'
        written = f'{{derive: {target.name}.{name_copy(field)}, as: "{form}"}}'
        why = (
            f"no item has {field!r} outside its key"
            if not cased
            else f"{source.name!r} has {field!r} in {known[field]} case in its key"
        )
        advice += f"; {why}, so say {made}, and write it by a rule {written}"
    return advice


def name_copy(field: str) -> str:
    """Name the attribute that copies a field that only a key holds."""
    return f"by_{field}"
