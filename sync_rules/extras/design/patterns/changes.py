"""Changes of a rules file that would serve a pattern: an index, keys of an existing index, a mirror.

Invariant: a change uses no attribute or name that anything else in the file has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from sync_rules.extras.design.patterns.answers import Cure
from sync_rules.extras.design.patterns.declarations import GetPattern, WritePattern, find_design
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.model.entities import Entity, Index, KeyAttribute, KeyType
from sync_rules.model.templates import may_overlap, parse_template

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.DesignPattern.MultiAttributeKeys.html
PARTITION_ATTRIBUTES_MAX: Final = 4
OF_INDEX: Final = "1 write unit more per KB of each item that changes, and its storage a second time"
OF_MIRROR: Final = "a transaction for each change: 4 write units per KB, and its storage a second time"
FIELD_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]*"
LOCAL_INDEXES_MAX: Final = 5  # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html


# ---------------------------------------------------------------- what is asked
def list_equal_fields(pattern: GetPattern) -> tuple[str, ...]:
    """List the fields that are given by equality; those of the condition only if nothing else is given."""
    return pattern.by or tuple(name for name, value in pattern.fixed if "BOOL" not in value)


def _find_order_field(pattern: GetPattern) -> str | None:
    return pattern.within.attribute if pattern.within is not None else pattern.order


def find_type(model: ProofInput, pattern: GetPattern, entity: Entity, name: str) -> KeyType:
    """Return the type of an attribute: as a key declares it, a rule needs or writes it, or a condition gives it; else
    text.
    """
    declared = {one.name: one.type for one in entity.table.key_attributes}
    if name in declared:
        return declared[name]
    declared_patterns = find_design(model.rules).patterns.values()
    others = (one for one in declared_patterns if isinstance(one, GetPattern) and one.entity == entity.name)
    given = {kind for one in (pattern, *others) for field, value in one.fixed if field == name for kind in value}
    return "N" if model.makers.is_number(entity, name) or "N" in given else "S"


# ---------------------------------------------------------------- an index more
def propose_index(model: ProofInput, pattern: GetPattern, entity: Entity) -> Cure | None:
    """Propose an index by the attributes themselves, or by an attribute that is made of them. None if that is
    impossible.
    """
    rules: dict[str, Any] = {}
    equal, ordered = list_equal_fields(pattern), _find_order_field(pattern)
    partition = _list_stored_attributes(model, entity, equal)
    if partition is None or len(partition) > PARTITION_ATTRIBUTES_MAX:
        name = choose_attribute_name(model, entity, f"{'_'.join(equal)}_key".replace(".", "_"))
        if not _can_be_in_templates(equal):
            return None
        rules[choose_rule_name(model, f"{pattern.name}-{name}")] = _make_derive_rule(entity, name, equal)
        partition = (name,)
    found = _choose_sort_attribute(model, pattern, entity, equal, rules)
    sort = () if found is None else (found,)
    if (ordered is not None and found is None) or set(sort) & set(partition):
        return None
    types = {name: find_type(model, pattern, entity, name) for name in (*partition, *sort)}
    if len(partition) == 1:
        form: dict[str, Any] = types
    else:
        form = {"partition": {name: types[name] for name in partition}, "sort": {name: types[name] for name in sort}}
        form = {part: named for part, named in form.items() if named}
    name = choose_index_name(entity, "by-" + "-".join((*partition, *sort)))
    entries: dict[str, Any] = {"tables": {entity.table.name: {"indexes": {name: form}}}}
    if rules:
        entries["rules"] = rules
    return Cure(f"an index by {' and '.join((*partition, *sort))}", OF_INDEX, entries)


def _list_stored_attributes(model: ProofInput, entity: Entity, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The attributes that store these fields and nothing else; None if a field is part of a longer text."""
    found: dict[str, None] = {}
    left = dict.fromkeys(names)
    for attribute in entity.table.key:
        maker = model.makers.choose_maker(entity, attribute, frozenset(names))
        if maker.source is not None and maker.fields and maker.whole(frozenset(names)):
            found[attribute.name] = None
            left = {name: None for name in left if name not in maker.fields}
    for name in left:
        ref = entity.ref(name)
        if ref.template is not None or len(ref.path) > 1:
            return None
        found[ref.path[0]] = None
    return tuple(found)


def _choose_sort_attribute(
    model: ProofInput, pattern: GetPattern, entity: Entity, given: tuple[str, ...], rules: dict[str, Any]
) -> str | None:
    """The attribute whose values are in the order that is asked for; else one that a new rule makes. None where no
    order is asked for, or no template can name its field.
    """
    ordered = _find_order_field(pattern)
    if ordered is None:
        return None
    found = _find_sort_attribute(model, entity, given, ordered)
    if found is None and _can_be_in_templates((ordered,)):
        found = choose_attribute_name(model, entity, f"{ordered}_order".replace(".", "_"))
        rules[choose_rule_name(model, f"{pattern.name}-{found}")] = _make_derive_rule(entity, found, (ordered,))
    return found


def _find_sort_attribute(model: ProofInput, entity: Entity, given: tuple[str, ...], ordered: str) -> str | None:
    for attribute in entity.table.key:
        maker = model.makers.choose_maker(entity, attribute, frozenset(given))
        upcoming = maker.find_next_field(frozenset(given))
        if maker.source is not None and upcoming is not None and upcoming.name == ordered:
            return attribute.name
    ref = entity.ref(ordered)
    return ref.path[0] if ref.template is None and len(ref.path) == 1 else None


def propose_listing_index(model: ProofInput, pattern: GetPattern, entity: Entity) -> Cure | None:
    """Propose an index that has all items of an entity in one partition."""
    ordered = _find_order_field(pattern)
    name = choose_attribute_name(model, entity, f"any_{entity.name}")
    rules: dict[str, Any] = {
        choose_rule_name(model, f"{pattern.name}-{name}"): {"derive": f"{entity.name}.{name}", "as": entity.name}
    }
    found = _choose_sort_attribute(model, pattern, entity, (), rules)
    if ordered is not None and found is None:
        return None
    types = {name: "S", **({} if found is None else {found: find_type(model, pattern, entity, found)})}
    index = {choose_index_name(entity, "by-" + "-".join(types)): types}
    entries: dict[str, Any] = {"tables": {entity.table.name: {"indexes": index}}, "rules": rules}
    title = f"an index with every {entity.name} in one partition"
    return Cure(title, f"{OF_INDEX}; at most 1,000 write units a second for all of them", entries)


def propose_local_index(model: ProofInput, pattern: GetPattern, entity: Entity) -> Iterator[Cure]:
    """Propose a local index, which may be read consistently, if the call gives the table's own partition."""
    ordered = _find_order_field(pattern)
    partition = model.makers.choose_maker(entity, entity.table.partition, frozenset(pattern.by))
    rest = [name for name in pattern.by if name not in partition.fields]
    names = [*rest, *([ordered] if ordered is not None else [])]
    full = sum(index.local for index in entity.table.indexes) >= LOCAL_INDEXES_MAX
    if full or not partition.whole(frozenset(pattern.by)) or entity.table.sort is None or len(names) != 1:
        return
    ref = entity.ref(names[0])
    if ref.template is not None or len(ref.path) > 1:
        return
    own: KeyAttribute = entity.table.partition
    form = {
        "partition": {own.name: own.type},
        "sort": {ref.path[0]: find_type(model, pattern, entity, ref.path[0])},
        "projection": "all",
        "local": True,
    }
    name = choose_index_name(entity, f"local-by-{ref.path[0]}")
    entries = {"tables": {entity.table.name: {"indexes": {name: form}}}}
    yield Cure(f"a local index by {ref.path[0]}, made with the table and never later", OF_INDEX, entries)


# ---------------------------------------------------------------- an index that is there
def propose_free_index(model: ProofInput, pattern: GetPattern, entity: Entity) -> Cure | None:
    """Propose that this entity also fills the keys of an index that other entities of the table fill. None if no index
    fits.
    """
    equal, ordered = list_equal_fields(pattern), _find_order_field(pattern)
    by = (ordered,) if ordered is not None else entity.identity or equal
    if not _can_be_in_templates((*equal, *by)) or (ordered and find_type(model, pattern, entity, ordered) != "S"):
        return None  # a number as text is in the order of its letters
    for index in entity.table.indexes:
        begins = _find_own_beginning(model, entity, index.partition[0])
        if begins and _is_free(model, entity, index) and (ordered is None or index.sort):
            partition = _make_derive_rule(entity, index.partition[0].name, equal, begins)
            rules = {choose_rule_name(model, f"{pattern.name}-{index.name}-partition"): partition}
            if index.sort:
                rules[choose_rule_name(model, f"{pattern.name}-{index.name}-sort")] = _make_derive_rule(
                    entity, index.sort[0].name, by
                )
            return Cure(f"index {index.name}, whose keys {entity.name} does not fill yet", OF_INDEX, {"rules": rules})
    return None


def _find_own_beginning(model: ProofInput, entity: Entity, attribute: KeyAttribute) -> str:
    """A text that no key of another entity begins with; "" where one may begin with anything."""
    others = [one for one in model.rules.entities.values() if one.table == entity.table and one is not entity]
    said = [
        model.makers.choose_maker(one, attribute, frozenset()) for one in others if model.makers.says(one, attribute)
    ]
    for text in (f"{entity.name.upper()}#", f"OF-{entity.name.upper()}#"):
        if not any(text.startswith(one.literal) or one.literal.startswith(text) for one in said):
            return text
    return ""


def _is_free(model: ProofInput, entity: Entity, index: Index) -> bool:
    """True if an index is shared by kinds of items, and nothing says that this one has attributes of its names."""
    keys = {attribute.name for attribute in entity.table.key}
    own = [one for one in index.attributes if one.name in keys or model.makers.says(entity, one)]
    others = (other for other in model.rules.entities.values() if other.table == entity.table and other is not entity)
    shared = any(model.makers.says(other, one) for other in others for one in index.partition)
    fits = len(index.partition) == 1 and len(index.sort) <= 1 and all(one.type == "S" for one in index.attributes)
    used = {one.name for one in index.attributes} & _list_mentioned_attributes(model, entity)
    return fits and shared and not own and not used and index.projection in ("all", None) and not index.local


def _list_mentioned_attributes(model: ProofInput, entity: Entity) -> set[str]:
    names = {path[0] for rule in model.rules.into_target(entity) for path in rule.copies if path}
    names |= model.list_watched_attributes(entity)
    for pattern in find_design(model.rules).patterns.values():
        if isinstance(pattern, GetPattern) and pattern.entity == entity.name:
            within = () if pattern.within is None else (pattern.within.attribute,)
            names |= {*pattern.by, *within, *(pattern.returns or ())} | ({pattern.order} if pattern.order else set())
            names |= set() if pattern.where is None else {path[0] for path in pattern.where.paths}
        elif isinstance(pattern, WritePattern) and pattern.entity == entity.name:
            names |= set(pattern.sets or ())
    return names


# ---------------------------------------------------------------- a mirror
def propose_mirror(model: ProofInput, pattern: GetPattern, entity: Entity) -> Cure | None:
    """Propose a second item under the requested key. None if no key fits."""
    table, asked = entity.table, pattern.by
    if any(one.type != "S" for one in table.key) or not asked or set(asked) & set(entity.identity):
        return None
    if not _can_be_in_templates(asked) or any("." in name for name in asked):
        return None
    name = _make_unique(f"{entity.name}_by_{'_'.join(asked)}"[:60], set(model.rules.entities))
    key = {table.partition.name: f"{name.upper()}#" + "#".join(f"{{{field}}}" for field in asked)}
    if table.sort is not None:
        key[table.sort.name] = entity.name.upper()
    begins = parse_template(key[table.partition.name], pads=True)
    others = (one for one in model.rules.entities.values() if one.table == table)
    if any(may_overlap(begins, one.templates[table.partition.name]) for one in others):
        return None
    entries: dict[str, Any] = {
        "entities": {name: {"table": table.name, "key": key}},
        "rules": {choose_rule_name(model, f"{pattern.name}-mirror"): f"mirror {entity.name} into {name}"},
    }
    return Cure("a mirror, which does not make the key unique", OF_MIRROR, entries)


# ---------------------------------------------------------------- names
def _make_derive_rule(entity: Entity, name: str, fields: tuple[str, ...], before: str = "") -> dict[str, Any]:
    return {"derive": f"{entity.name}.{name}", "as": before + "#".join(f"{{{field}}}" for field in fields)}


def _can_be_in_templates(fields: Iterable[str]) -> bool:
    """True if templates can name these fields."""
    return all(re.fullmatch(FIELD_NAME, field) for field in fields)


def choose_attribute_name(model: ProofInput, entity: Entity, name: str) -> str:
    """Return a name that no rule writes and no key has."""
    taken = {path[0] for rule in model.rules.into_target(entity) for path in rule.copies if path}
    taken |= {attribute.name for attribute in entity.table.key_attributes}
    return _make_unique(name, taken)


def choose_index_name(entity: Entity, name: str) -> str:
    text = re.sub(r"[^A-Za-z0-9_.-]", "-", name)
    return _make_unique(text[:200], {index.name for index in entity.table.indexes})


def choose_rule_name(model: ProofInput, name: str) -> str:
    """Return a name for a rule that no rule has."""
    text = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in name)
    return _make_unique(text[:60], {rule.title for rule in model.rules.rules.values()})


def _make_unique(name: str, taken: set[str]) -> str:
    number = 2
    found = name
    while found in taken:
        found, number = f"{name}{number}", number + 1
    return found
