"""Why a pattern has no request, and the changes of the file that would give it one, the cheapest first.

Invariant: a cure is whole. Merged into the file, it passes `check` and serves the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from sync_rules.model.entities import Entity, Index, KeyAttribute, KeyType
from sync_rules.model.templates import may_overlap, parse_template
from sync_rules.model.values import show_path
from sync_rules.patterns import gets, trees
from sync_rules.patterns.answers import Answer, Cure
from sync_rules.patterns.graphs import ends_of, held_by, listings, names_of, set_rule, unled, unnamed_by
from sync_rules.patterns.model import Model
from sync_rules.patterns.ways import Reach, Way, reach, ways_of
from sync_rules.rules.patterns import GetPattern, GraphPattern, TreePattern, WritePattern

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.DesignPattern.MultiAttributeKeys.html
PARTITION_ATTRIBUTES_MAX: Final = 4
OF_INDEX: Final = "1 write unit more per KB of each item that changes, and its storage a second time"
OF_MIRROR: Final = "a transaction for each change: 4 write units per KB, and its storage a second time"
FIELD_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]*"
LOCAL_INDEXES_MAX: Final = 5  # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html


# ---------------------------------------------------------------- get
def of_get(model: Model, pattern: GetPattern) -> Answer:
    """The reason and the cures of a `get` that nothing serves."""
    entity = model.rules.entities[pattern.entity]
    if pattern.consistent and (found := gets.served(model, replace(pattern, consistent=False, via=None))):
        late = (
            "no index is strongly consistent" if found.steps[0].index else "a mirror follows its source a moment later"
        )
        cures = [*_local(model, pattern, entity), _dropped(pattern, "consistent", value=False)]
        return Answer(pattern, reason=f"{found.steps[0].place} serves it, and {late}", cures=tuple(cures))
    if pattern.via is not None and (found := gets.served(model, replace(pattern, via=None))):
        way = f"via {pattern.via}" if pattern.via in ("table", "mirror") else f"via index {pattern.via}"
        reason = f"{way} does not serve it; {found.steps[0].place} does"
        return Answer(pattern, reason=reason, cures=(_dropped(pattern, "via", value=None),))
    if pattern.keys is not None:
        return _of_keys(pattern, entity)
    cures = [cure for cure in _of_get(model, pattern, entity) if cure is not None]
    if pattern.consistent:
        cures = [
            *_local(model, pattern, entity),
            *(_without(pattern, cure, "consistent", value=False) for cure in cures),
        ]
    if pattern.via is not None:
        cures = [_without(pattern, cure, "via", value=None) for cure in cures]
    return Answer(pattern, reason=_lacks(model, pattern, entity), cures=tuple(cures))


def _without(pattern: GetPattern, cure: Cure, option: str, *, value: Any) -> Cure:
    """A cure that goes with another value of an option alone."""
    own = {**cure.entries.get("patterns", {}).get(pattern.name, {}), option: value}
    entries = {**cure.entries, "patterns": {pattern.name: own}}
    return Cure(f"{cure.title}, and drop `{option}`", cure.price, entries)


def _of_keys(pattern: GetPattern, entity: Entity) -> Answer:
    needed = ", ".join(entity.identity)
    reason = f"`keys` reads items by their whole key, {needed}; given is {', '.join(pattern.by) or 'nothing'}"
    cure = Cure("give the whole key", "nothing", {"patterns": {pattern.name: {"by": [*entity.identity]}}})
    return Answer(pattern, reason=reason, cures=(cure,))


def _dropped(pattern: GetPattern, option: str, *, value: Any) -> Cure:
    price = "a read that may be a moment old" if option == "consistent" else "nothing"
    return Cure(f"drop `{option}`", price, {"patterns": {pattern.name: {option: value}}})


def _lacks(model: Model, pattern: GetPattern, entity: Entity) -> str:
    """Why no way serves a pattern: the nearest one, and what it lacks."""
    given = gets.given_by(pattern)
    if not given and not pattern.within:
        partition = model.makers.best(entity, entity.table.partition, frozenset())
        if partition.fields:
            return f"nothing says which {entity.name}: a Scan would read all of table {entity.table.name}"
    nearest: tuple[int, str] = (-1, "")
    for way in ways_of(entity.table):
        found = reach(model.makers, entity, way, given, None)
        if found is not None:
            nearest = max(nearest, (len(found.used), _lack(model, pattern, entity, found)), key=lambda one: one[0])
    if nearest[1]:
        return nearest[1]
    keys = (f"{way.shown} by {_key_of(model, entity, way)}" for way in ways_of(entity.table))
    asked = _all(pattern.by or sorted(given) or ([pattern.within.attribute] if pattern.within else []))
    return f"no key finds {entity.name} by {asked}: {'; '.join(keys)}"


def _lack(model: Model, pattern: GetPattern, entity: Entity, found: Reach) -> str:
    """The lack of one way that finds items, for a pattern."""
    way, within = found.way, pattern.within
    finds = f"{way.shown} {_finds(found)}"
    sorts = found.sorts[0] if found.sorts else "nothing more"
    unused = [name for name in pattern.by if name not in found.used]
    shared = [name for name in unused if any(name in term.maker.fields for term in found.terms)]
    if shared:
        return f"{way.shown} holds {_all(shared)} in a form that other values share"
    if unused:
        return f"{finds}, and not by {_all(unused)}"
    if within is not None and reach(model.makers, entity, way, gets.given_by(pattern), within) is None:
        if within.attribute in found.sorts:
            return f"{finds}, and {within.form} is for texts, as keys hold them"
        return f"{finds} and is sorted by {sorts}, not by {within.attribute}"
    if pattern.order is not None and pattern.order not in found.sorts:
        return f"{finds} and is sorted by {sorts}, not by {pattern.order}"
    return finds


def _finds(found: Reach) -> str:
    """The fields by which a way finds items."""
    return f"finds by {_all(sorted(found.used))}" if found.used else "lists all of them"


def _all(names: Iterable[str]) -> str:
    return " and ".join(names)


def _key_of(model: Model, entity: Entity, way: Way) -> str:
    """The partition key of a way as the entity has it."""
    made = [model.makers.best(entity, attribute, frozenset()) for attribute in way.partition]
    return " and ".join(maker.text if maker.source is not None else maker.attribute.name for maker in made)


def _of_get(model: Model, pattern: GetPattern, entity: Entity) -> Iterator[Cure | None]:
    """The changes that give a pattern a request, the cheapest first."""
    if not _equal(pattern):
        yield _listed(model, pattern, entity)
        return
    yield _filled(model, pattern, entity)
    yield _index(model, pattern, entity)
    if pattern.one and pattern.within is None and pattern.order is None:
        yield _mirror(model, pattern, entity)


def _equal(pattern: GetPattern) -> tuple[str, ...]:
    """The fields that are known by equality; those of the condition only where nothing else is given."""
    return pattern.by or tuple(name for name, value in pattern.fixed if "BOOL" not in value)


def _ordered(pattern: GetPattern) -> str | None:
    """The field of a range, or of the order."""
    return pattern.within.attribute if pattern.within is not None else pattern.order


def _type(model: Model, pattern: GetPattern, entity: Entity, name: str) -> KeyType:
    """The type of an attribute: as a key declares it, a rule needs or writes it, or the pattern gives it; else text."""
    declared = {one.name: one.type for one in entity.table.key_attributes}
    if name in declared:
        return declared[name]
    needed = (
        kinds for rule in model.rules.from_source(entity) for path, kinds in rule.takes.items() if path == (name,)
    )
    written = (
        rule.type_of((name,), lambda *_: None) for rule in model.rules.into_target(entity) if (name,) in rule.copies
    )
    given = (kind for field, value in pattern.fixed if field == name for kind in value)
    return "N" if any(kinds == ("N",) for kinds in needed) or "N" in (*written, *given) else "S"


# ---------------------------------------------------------------- an index more
def _index(model: Model, pattern: GetPattern, entity: Entity) -> Cure | None:
    """An index by the attributes themselves, or by an attribute that is made of them."""
    rules: dict[str, Any] = {}
    equal, ordered = _equal(pattern), _ordered(pattern)
    partition = _stored(model, entity, equal)
    if partition is None or len(partition) > PARTITION_ATTRIBUTES_MAX:
        name = _free(model, entity, f"{'_'.join(equal)}_key".replace(".", "_"))
        if not _in_templates(equal):
            return None
        rules[_named(model, f"{pattern.name}-{name}")] = _derived(entity, name, equal)
        partition = (name,)
    sort: tuple[str, ...] = ()
    if ordered is not None:
        found = _sorting(model, entity, equal, ordered)
        if found is None:
            found = _free(model, entity, f"{ordered}_order".replace(".", "_"))
            if not _in_templates((ordered,)):
                return None
            rules[_named(model, f"{pattern.name}-{found}")] = _derived(entity, found, (ordered,))
        sort = (found,)
    if set(sort) & set(partition):
        return None
    types = {name: _type(model, pattern, entity, name) for name in (*partition, *sort)}
    if len(partition) == 1:
        form: dict[str, Any] = types
    else:
        form = {"partition": {name: types[name] for name in partition}, "sort": {name: types[name] for name in sort}}
        form = {part: named for part, named in form.items() if named}
    name = _free_index(entity, "by-" + "-".join((*partition, *sort)))
    entries: dict[str, Any] = {"tables": {entity.table.name: {"indexes": {name: form}}}}
    if rules:
        entries["rules"] = rules
    return Cure(f"an index by {_all((*partition, *sort))}", OF_INDEX, entries)


def _stored(model: Model, entity: Entity, names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The attributes in which items store these fields and nothing else; None where one is part of a longer text."""
    found: dict[str, None] = {}
    left = dict.fromkeys(names)
    for attribute in entity.table.key:
        maker = model.makers.best(entity, attribute, frozenset(names))
        if maker.source is not None and maker.fields and maker.whole(frozenset(names)):
            found[attribute.name] = None
            left = {name: None for name in left if name not in maker.fields}
    for name in left:
        ref = entity.ref(name)
        if ref.template is not None or len(ref.path) > 1:
            return None
        found[ref.path[0]] = None
    return tuple(found)


def _sorting(model: Model, entity: Entity, given: tuple[str, ...], ordered: str) -> str | None:
    """The attribute whose values are in the order of a field."""
    for attribute in entity.table.key:
        maker = model.makers.best(entity, attribute, frozenset(given))
        upcoming = maker.next_field(frozenset(given))
        if maker.source is not None and upcoming is not None and upcoming.name == ordered:
            return attribute.name
    ref = entity.ref(ordered)
    return ref.path[0] if ref.template is None and len(ref.path) == 1 else None


def _derived(entity: Entity, name: str, fields: tuple[str, ...], before: str = "") -> dict[str, Any]:
    return {"derive": f"{entity.name}.{name}", "as": before + "#".join(f"{{{field}}}" for field in fields)}


def _free(model: Model, entity: Entity, name: str) -> str:
    """A name that no rule writes and no key has."""
    taken = {path[0] for rule in model.rules.into_target(entity) for path in rule.copies if path}
    taken |= {attribute.name for attribute in entity.table.key_attributes}
    return _unique(name, taken)


def _free_index(entity: Entity, name: str) -> str:
    return _unique(name, {index.name for index in entity.table.indexes})


def _named(model: Model, name: str) -> str:
    """A name for a rule that no rule has."""
    text = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in name)
    return _unique(text[:60], {rule.title for rule in model.rules.rules.values()})


def _unique(name: str, taken: set[str]) -> str:
    number = 2
    found = name
    while found in taken:
        found, number = f"{name}{number}", number + 1
    return found


def _listed(model: Model, pattern: GetPattern, entity: Entity) -> Cure | None:
    """An index of which all items of an entity are one partition."""
    ordered = _ordered(pattern)
    found = None if ordered is None else _sorting(model, entity, (), ordered)
    name = _free(model, entity, f"any_{entity.name}")
    rules: dict[str, Any] = {
        _named(model, f"{pattern.name}-{name}"): {"derive": f"{entity.name}.{name}", "as": entity.name}
    }
    if ordered is not None and found is None:
        found = _free(model, entity, f"{ordered}_order".replace(".", "_"))
        if not _in_templates((ordered,)):
            return None
        rules[_named(model, f"{pattern.name}-{found}")] = _derived(entity, found, (ordered,))
    types = {name: "S", **({} if found is None else {found: _type(model, pattern, entity, found)})}
    index = {_free_index(entity, "by-" + "-".join(types)): types}
    entries: dict[str, Any] = {"tables": {entity.table.name: {"indexes": index}}, "rules": rules}
    title = f"an index with every {entity.name} in one partition"
    return Cure(title, f"{OF_INDEX}; at most 1,000 write units a second for all of them", entries)


# ---------------------------------------------------------------- an index that is there
def _filled(model: Model, pattern: GetPattern, entity: Entity) -> Cure | None:
    """The keys of an index that other entities of the table fill, filled by this one too."""
    equal, ordered = _equal(pattern), _ordered(pattern)
    by = (ordered,) if ordered is not None else entity.identity or equal
    if not _in_templates((*equal, *by)) or (ordered and _type(model, pattern, entity, ordered) != "S"):
        return None  # a number as text is in the order of its letters
    for index in entity.table.indexes:
        if _is_free(model, entity, index) and (ordered is None or index.sort):
            partition = _derived(entity, index.partition[0].name, equal, f"{entity.name.upper()}#")
            rules = {_named(model, f"{pattern.name}-{index.name}-partition"): partition}
            if index.sort:
                rules[_named(model, f"{pattern.name}-{index.name}-sort")] = _derived(entity, index.sort[0].name, by)
            return Cure(f"index {index.name}, whose keys {entity.name} does not fill yet", OF_INDEX, {"rules": rules})
    return None


def _in_templates(fields: Iterable[str]) -> bool:
    """True if templates can name these fields."""
    return all(re.fullmatch(FIELD_NAME, field) for field in fields)


def _is_free(model: Model, entity: Entity, index: Index) -> bool:
    """True if an index is shared by kinds of items, and nothing says that this one has attributes of its names."""
    keys = {attribute.name for attribute in entity.table.key}
    own = [one for one in index.attributes if one.name in keys or model.makers.says(entity, one)]
    others = (other for other in model.rules.entities.values() if other.table == entity.table and other is not entity)
    shared = any(model.makers.says(other, one) for other in others for one in index.partition)
    fits = len(index.partition) == 1 and len(index.sort) <= 1 and all(one.type == "S" for one in index.attributes)
    used = {one.name for one in index.attributes} & _mentioned(model, entity)
    return fits and shared and not own and not used and index.projection in ("all", None) and not index.local


def _mentioned(model: Model, entity: Entity) -> set[str]:
    """The attributes of an entity that rules or patterns name."""
    names = {path[0] for rule in model.rules.into_target(entity) for path in rule.copies if path}
    for rule in (*model.rules.into_target(entity), *model.rules.from_source(entity)):
        names |= {path[0] for path in rule.watches(entity) or () if path}
    for pattern in model.rules.patterns.values():
        if isinstance(pattern, GetPattern) and pattern.entity == entity.name:
            within = () if pattern.within is None else (pattern.within.attribute,)
            names |= {*pattern.by, *within, *(pattern.returns or ())} | ({pattern.order} if pattern.order else set())
            names |= set() if pattern.where is None else {path[0] for path in pattern.where.paths}
        elif isinstance(pattern, WritePattern) and pattern.entity == entity.name:
            names |= set(pattern.sets or ())
    return names


def _local(model: Model, pattern: GetPattern, entity: Entity) -> Iterator[Cure]:
    """A local index, which may be read consistently, where the table's own partition is asked."""
    ordered = _ordered(pattern)
    partition = model.makers.best(entity, entity.table.partition, frozenset(pattern.by))
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
        "sort": {ref.path[0]: _type(model, pattern, entity, ref.path[0])},
        "projection": "all",
        "local": True,
    }
    name = _free_index(entity, f"local-by-{ref.path[0]}")
    entries = {"tables": {entity.table.name: {"indexes": {name: form}}}}
    yield Cure(f"a local index by {ref.path[0]}, made with the table and never later", OF_INDEX, entries)


# ---------------------------------------------------------------- a mirror
def _mirror(model: Model, pattern: GetPattern, entity: Entity) -> Cure | None:
    """A second item under the key that is asked for."""
    table, asked = entity.table, pattern.by
    if any(one.type != "S" for one in table.key) or not asked or set(asked) & set(entity.identity):
        return None
    if not _in_templates(asked) or any("." in name for name in asked):
        return None
    name = _unique(f"{entity.name}_by_{'_'.join(asked)}"[:60], set(model.rules.entities))
    key = {table.partition.name: f"{name.upper()}#" + "#".join(f"{{{field}}}" for field in asked)}
    if table.sort is not None:
        key[table.sort.name] = entity.name.upper()
    begins = parse_template(key[table.partition.name])
    others = (one for one in model.rules.entities.values() if one.table == table)
    if any(may_overlap(begins, one.templates[table.partition.name]) for one in others):
        return None
    entries: dict[str, Any] = {
        "entities": {name: {"table": table.name, "key": key}},
        "rules": {_named(model, f"{pattern.name}-mirror"): f"mirror {entity.name} into {name}"},
    }
    return Cure("a mirror, which does not make the key unique", OF_MIRROR, entries)


# ---------------------------------------------------------------- graph and tree
def of_graph(model: Model, pattern: GraphPattern) -> Answer:
    """The reason and the cures of a `graph` that nothing serves."""
    ends = ends_of(model, pattern)
    if reason := unled(model, pattern, ends):
        return Answer(pattern, reason=f"{reason}; say in `link`, or in a collect rule, which field does")
    if not [*listings(model, pattern, ends)]:
        if pattern.within is not None and [*listings(model, replace(pattern, within=None), ends)]:
            by = "it" if pattern.via else "no index"
            reason = (
                f"{by} lists {ends.edge.name} by {ends.start.name}, sorted by a text that {pattern.within[1]} is for"
            )
            reason = f"via {pattern.via}: {reason}" if pattern.via else reason
            return Answer(pattern, reason=reason.replace("it lists", "it does not list"))
        asked = GetPattern(
            name=pattern.name, entity=ends.edge.name, by=(*names_of(ends.start, pattern),), via=pattern.via
        )
        found = of_get(model, asked)
        return Answer(pattern, reason=found.reason, cures=found.cures)
    rule = set_rule(model, ends)
    if rule is not None and (unnamed := unnamed_by(rule, ends, pattern)):
        held = ", ".join(sorted(held_by(rule)))
        reason = f"{ends.node.name}.{rule.into} names edges by {held}: that names no {unnamed[0].name}"
        return Answer(pattern, reason=f"{reason}: say in `link` which of these holds a key of it")
    names = ", ".join(one.name for one in ends.neighbours)
    reason = f"no set on {ends.node.name} names its {names}: each node would cost a Query"
    own = [name for name in ends.edge.identity if name not in ends.node.identity]
    if rule is not None or not own:
        return Answer(pattern, reason=reason)
    made = {
        "collect": ends.edge.name,
        "into": f"{ends.node.name}.{_free(model, ends.node, 'edges')}",
        "as": "#".join(f"{{{name}}}" for name in own),
    }
    entries = {"rules": {_named(model, f"{ends.node.name}-edges"): made}}
    return Answer(pattern, reason=reason, cures=(Cure("a set of its edges on each node", OF_INDEX, entries),))


def _id_type(entity: Entity, field: str) -> KeyType:
    """The type of an attribute that holds an id of the entity."""
    whole = (one.type for one in entity.table.key if entity.templates[one.name].whole == field)
    return next(whole, "S")


def of_tree(model: Model, pattern: TreePattern) -> Answer:
    """The reason and the cures of a `tree` that nothing serves."""
    entity = model.rules.entities[pattern.entity]
    rule = trees.rule_of(model, entity)
    table = entity.table
    own = entity.identity[-1] if entity.identity else pattern.field
    if rule is None:
        reason = f"no rule keeps the way from the root to each {entity.name}"
        made = {"path": f"{entity.name}.path", "parent": "parent_id", "graph": "graph_id"}
        indexes = {
            _free_index(entity, "by-parent"): {"parent_id": _id_type(entity, own)},
            _free_index(entity, "by-path"): {"graph_id": "S", "path": "S"},
        }
        entries: dict[str, Any] = {
            "tables": {table.name: {"indexes": indexes}},
            "rules": {_named(model, f"{entity.name}-path"): made},
        }
        return Answer(pattern, reason=reason, cures=(Cure("a path rule and its indexes", OF_INDEX, entries),))
    if pattern.field != rule.link[0][0]:
        reason = f"the id of a {entity.name} in its hierarchy is {rule.link[0][0]}, and not {pattern.field}"
        others = {one: None for one in ("under", "above", "children") if one != pattern.direction}
        cure = {"patterns": {pattern.name: {pattern.direction: rule.link[0][0], **others}}}
        return Answer(pattern, reason=reason, cures=(Cure(f"name {rule.link[0][0]}", "nothing", cure),))
    if pattern.direction == "children":
        reason = f"no index lists the {entity.name} of one parent"
        parent = rule.link[0][1].path[0]
        index = _free_index(entity, "by-parent")
        entries = {
            "tables": {table.name: {"indexes": {index: {parent: _id_type(entity, own)}}}},
            "rules": {rule.title: {"via": index}},
        }
        return Answer(pattern, reason=reason, cures=(Cure(f"an index by {parent}", OF_INDEX, entries),))
    reason = "no index has the graph and the path as its keys: each level would cost a Query for each item"
    graph = _free(model, entity, "graph_id") if rule.graph is None else show_path(rule.graph)
    path = show_path(rule.path)
    if "." in graph or "." in path:
        return Answer(pattern, reason=reason)
    index = _free_index(entity, "by-path")
    entries = {"tables": {table.name: {"indexes": {index: {graph: "S", path: "S"}}}}}
    if rule.graph is None:
        entries["rules"] = {rule.title: {"graph": graph}}
    return Answer(pattern, reason=reason, cures=(Cure(f"an index by {graph} and {path}", OF_INDEX, entries),))
