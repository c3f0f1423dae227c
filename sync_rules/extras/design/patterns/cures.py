"""Why no request serves a pattern, and the changes of the file that would serve it, the cheapest first.

Invariant: a cure is complete. Merged into the file, it passes `check` and serves the pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sync_rules.extras.design.patterns import changes, gets, searches, trees
from sync_rules.extras.design.patterns.answers import Cure, PatternAnswer, merge_entries
from sync_rules.extras.design.patterns.declarations import GetPattern, GraphPattern, Pattern, SearchPattern, TreePattern
from sync_rules.extras.design.patterns.graphs import (
    explain_dead_end,
    find_ends,
    find_set_rule,
    list_edge_fields,
    list_reaches,
    list_unnamed_neighbours,
    map_end_names,
)
from sync_rules.extras.design.patterns.key_access import AccessPath, Reach, find_reach, list_access_paths
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.model.entities import Entity, KeyType
from sync_rules.model.values import show_path


def _refuse_pattern(pattern: Pattern, reason: str, *cures: Cure) -> PatternAnswer:
    return PatternAnswer(pattern, reason=reason, cures=cures)


# ---------------------------------------------------------------- get
def explain_get(model: ProofInput, pattern: GetPattern) -> PatternAnswer:
    """Return the reason and the cures of a `get` that no request serves."""
    entity = model.rules.entities[pattern.entity]
    if pattern.consistent and (found := gets.find_cheapest_answer(model, replace(pattern, consistent=False, via=None))):
        late = (
            "no index is strongly consistent" if found.steps[0].index else "a mirror follows its source a moment later"
        )
        cures = [*changes.propose_local_index(model, pattern, entity), _drop_option(pattern, "consistent", value=False)]
        return _refuse_pattern(pattern, f"{found.steps[0].place} serves it, and {late}", *cures)
    if pattern.via is not None and (found := gets.find_cheapest_answer(model, replace(pattern, via=None))):
        way = f"via {pattern.via}" if pattern.via in ("table", "mirror") else f"via index {pattern.via}"
        reason = f"{way} does not serve it; {found.steps[0].place} does"
        return _refuse_pattern(pattern, reason, _drop_option(pattern, "via", value=None))
    if pattern.keys is not None:
        return _refuse_keys(pattern, entity)
    cures = [cure for cure in _list_get_cures(model, pattern, entity) if cure is not None]
    if pattern.consistent:
        cures = [
            *changes.propose_local_index(model, pattern, entity),
            *(_add_dropped_option(pattern, cure, "consistent", value=False) for cure in cures),
        ]
    if pattern.via is not None:
        cures = [_add_dropped_option(pattern, cure, "via", value=None) for cure in cures]
    return _refuse_pattern(pattern, _explain_lack(model, pattern, entity), *cures)


def _add_dropped_option(pattern: GetPattern, cure: Cure, option: str, *, value: Any) -> Cure:
    """A cure that goes with another value of an option alone."""
    own = {**cure.entries.get("patterns", {}).get(pattern.name, {}), option: value}
    entries = {**cure.entries, "patterns": {pattern.name: own}}
    return Cure(f"{cure.title}, and drop `{option}`", cure.price, entries)


def _refuse_keys(pattern: GetPattern, entity: Entity) -> PatternAnswer:
    needed = ", ".join(entity.identity)
    reason = f"`keys` reads items by their whole key, {needed}; given is {', '.join(pattern.by) or 'nothing'}"
    cure = Cure("give the whole key", "nothing", {"patterns": {pattern.name: {"by": [*entity.identity]}}})
    return _refuse_pattern(pattern, reason, cure)


def _drop_option(pattern: GetPattern, option: str, *, value: Any) -> Cure:
    price = "a read that may be a moment old" if option == "consistent" else "nothing"
    return Cure(f"drop `{option}`", price, {"patterns": {pattern.name: {option: value}}})


def _explain_lack(model: ProofInput, pattern: GetPattern, entity: Entity) -> str:
    """Why no way serves a pattern: the nearest one, and what it lacks."""
    given = gets.list_given_fields(pattern)
    if nameless := _explain_unnamed_items(model, pattern, entity):
        return nameless
    if not given and not pattern.within:
        partition = model.makers.choose_maker(entity, entity.table.partition, frozenset())
        if partition.fields:
            return f"nothing says which {entity.name}: a Scan would read all of table {entity.table.name}"
    nearest: tuple[int, str] = (-1, "")
    for way in list_access_paths(entity.table):
        found = find_reach(model.makers, entity, way, given, None)
        if found is not None:
            nearest = max(
                nearest, (len(found.used), _describe_path_lack(model, pattern, entity, found)), key=lambda one: one[0]
            )
    if nearest[1]:
        return nearest[1]
    keys = (f"{way.place_name} by {_format_key(model, entity, way)}" for way in list_access_paths(entity.table))
    asked = _join_names(pattern.by or sorted(given) or ([pattern.within.attribute] if pattern.within else []))
    return f"no key finds {entity.name} by {asked}: {'; '.join(keys)}"


def _explain_unnamed_items(model: ProofInput, pattern: GetPattern, entity: Entity) -> str:
    """The reason why an attribute of another entity cannot be had: items do not name one; "" where they do."""
    for text in pattern.returns or ():
        name, dot, rest = text.partition(".")
        other = model.rules.entities.get(name)
        if not dot or other is None or other is entity or gets.find_copy(model.rules, other, rest, entity) is not None:
            continue
        if lacking := gets.list_missing_link_fields(model, entity, other):
            return f"{entity.name} has no {_join_names(lacking)}, which would name the {other.name} of {text}"
    return ""


def _describe_path_lack(model: ProofInput, pattern: GetPattern, entity: Entity, found: Reach) -> str:
    """The lack of one way that finds items, for a pattern."""
    way, within = found.way, pattern.within
    finds = f"{way.place_name} {f'finds by {_join_names(sorted(found.used))}' if found.used else 'lists all of them'}"
    sorts = found.sorts[0] if found.sorts else "nothing more"
    unused = [name for name in pattern.by if name not in found.used]
    shared = [name for name in unused if any(name in term.maker.fields for term in found.terms)]
    if shared:
        return f"{way.place_name} holds {_join_names(shared)} in a form that other values share"
    if unused:
        return f"{finds}, and not by {_join_names(unused)}"
    if within is not None and find_reach(model.makers, entity, way, gets.list_given_fields(pattern), within) is None:
        if within.attribute in found.sorts:
            return f"{finds}, and {within.form} is for texts, as keys hold them"
        return f"{finds} and is sorted by {sorts}, not by {within.attribute}"
    if pattern.order is not None and pattern.order not in found.sorts:
        return f"{finds} and is sorted by {sorts}, not by {pattern.order}"
    return finds


def _join_names(names: Iterable[str]) -> str:
    return " and ".join(names)


def _format_key(model: ProofInput, entity: Entity, way: AccessPath) -> str:
    made = [model.makers.choose_maker(entity, attribute, frozenset()) for attribute in way.partition]
    return " and ".join(maker.text if maker.source is not None else maker.attribute.name for maker in made)


def _list_get_cures(model: ProofInput, pattern: GetPattern, entity: Entity) -> Iterator[Cure | None]:
    """The changes that give a pattern a request, the cheapest first. No number begins with another."""
    within = pattern.within
    letters = within.attribute if within is not None and within.form == "begins_with" else None
    if letters is not None and changes.find_type(model, pattern, entity, letters) != "S":
        return
    if not changes.list_equal_fields(pattern):
        yield changes.propose_listing_index(model, pattern, entity)
        return
    yield changes.propose_free_index(model, pattern, entity)
    yield changes.propose_index(model, pattern, entity)
    if pattern.one and pattern.within is None and pattern.order is None:
        yield changes.propose_mirror(model, pattern, entity)


# ---------------------------------------------------------------- search
def explain_search(model: ProofInput, pattern: SearchPattern) -> PatternAnswer:
    """Return the reason and the cure of a `search` that no request serves: copies of other items' attributes, and more
    filters.
    """
    entity = model.rules.entities[pattern.entity]
    vector = next(searches.list_vector_indexes(model, pattern), None)
    if vector is None:
        reason = f"table {entity.table.name} has no vector index: declare it under `vectors`, with its dimensions"
        return _refuse_pattern(pattern, reason)
    reasons: list[str] = []
    entries: dict[str, Any] = {}
    filters: dict[str, Any] = {}
    held = {text: searches.find_attribute(model, entity, text) for text in pattern.by}
    for text in (text for text, name in held.items() if name is None):
        other = model.rules.entities[text.partition(".")[0]]
        if lacking := gets.list_missing_link_fields(model, entity, other):
            return _refuse_pattern(
                pattern, f"{entity.name} has no {_join_names(lacking)}, which would name its {other.name}"
            )
        held[text] = copy = changes.choose_attribute_name(model, entity, text.replace(".", "_"))
        rule = {changes.choose_rule_name(model, f"{entity.name}-{copy}"): f"copy {text} into {entity.name}.{copy}"}
        links = frozenset(gets.list_link_fields(model.rules, other, entity))
        listing = GetPattern(name=pattern.name, entity=entity.name, by=tuple(links))
        if gets.find_cheapest_answer(model, listing) is None and (
            index := changes.propose_index(model, listing, entity)
        ):
            entries = merge_entries(entries, index.entries)
        entries = merge_entries(entries, {"rules": rule})
        reasons.append(f"a search filters by attributes of the {entity.name} itself, and {text} is of its {other.name}")
    for name in (name for name in held.values() if name is not None):
        if name not in {one.name for one in vector.index.attributes}:
            filters[name] = "N" if model.makers.is_number(entity, name) else "S"
    if filters and not reasons:
        reasons.append(f"vector index {vector.index.name} does not filter by {_join_names(filters)}")
    if filters:
        more = {"tables": {entity.table.name: {"vectors": {vector.index.name: {"filters": filters}}}}}
        entries = merge_entries(entries, more)
    if ungiven := [one.name for one in vector.index.partition if one.name not in held.values()]:
        reasons.append(f"each search of vector index {vector.index.name} gives {_join_names(ungiven)}")
        entries = merge_entries(entries, {"patterns": {pattern.name: {"by": [*pattern.by, *ungiven]}}})
    copied = "rules" in entries
    title = f"copies on each {entity.name}, to filter by" if copied else "more filters" if filters else "its partition"
    price = "a new vector index, as DynamoDB changes none" if filters else "nothing"
    price = f"a write for each item when its source changes, and {price}" if copied else price
    return _refuse_pattern(pattern, "; ".join(reasons), Cure(title, price, entries))


# ---------------------------------------------------------------- graph and tree
def explain_graph(model: ProofInput, pattern: GraphPattern) -> PatternAnswer:
    """Return the reason and the cures of a `graph` that no request serves."""
    ends = find_ends(model, pattern)
    if reason := explain_dead_end(model, pattern, ends):
        return _refuse_pattern(pattern, f"{reason}; say in `link`, or in a collect rule, which field does")
    if not [*list_reaches(model, pattern, ends)]:
        if pattern.within is not None and [*list_reaches(model, replace(pattern, within=None), ends)]:
            by = "it" if pattern.via else "no index"
            reason = (
                f"{by} lists {ends.edge.name} by {ends.start.name}, sorted by a text that {pattern.within[1]} is for"
            )
            reason = f"via {pattern.via}: {reason}" if pattern.via else reason
            return _refuse_pattern(pattern, reason.replace("it lists", "it does not list"))
        asked = GetPattern(
            name=pattern.name, entity=ends.edge.name, by=(*map_end_names(ends.start, pattern),), via=pattern.via
        )
        found = explain_get(model, asked)
        return _refuse_pattern(pattern, found.reason, *found.cures)
    rule = find_set_rule(model, ends)
    if rule is not None and (unnamed := list_unnamed_neighbours(rule, ends, pattern)):
        held = ", ".join(sorted(list_edge_fields(rule)))
        reason = f"{ends.node.name}.{rule.into} names edges by {held}: that names no {unnamed[0].name}"
        return _refuse_pattern(pattern, f"{reason}: say in `link` which of these holds a key of it")
    names = ", ".join(one.name for one in ends.neighbours)
    reason = f"no set on {ends.node.name} names its {names}: each node would cost a Query"
    own = [name for name in ends.edge.identity if name not in ends.node.identity]
    if rule is not None or not own:
        return _refuse_pattern(pattern, reason)
    made = {
        "collect": ends.edge.name,
        "into": f"{ends.node.name}.{changes.choose_attribute_name(model, ends.node, 'edges')}",
        "as": "#".join(f"{{{name}}}" for name in own),
    }
    entries = {"rules": {changes.choose_rule_name(model, f"{ends.node.name}-edges"): made}}
    return _refuse_pattern(pattern, reason, Cure("a set of its edges on each node", changes.OF_INDEX, entries))


def _find_id_type(entity: Entity, field: str) -> KeyType:
    """The type of an attribute that holds an id of the entity."""
    whole = (one.type for one in entity.table.key if entity.templates[one.name].whole == field)
    return next(whole, "S")


def explain_tree(model: ProofInput, pattern: TreePattern) -> PatternAnswer:
    """Return the reason and the cures of a `tree` that no request serves."""
    entity = model.rules.entities[pattern.entity]
    rule = trees.find_tree_rule(model, entity)
    table = entity.table
    own = entity.identity[-1] if entity.identity else pattern.field
    if rule is None:
        reason = f"no rule keeps the way from the root to each {entity.name}"
        made = {"path": f"{entity.name}.path", "parent": "parent_id", "graph": "graph_id"}
        indexes = {
            changes.choose_index_name(entity, "by-parent"): {"parent_id": _find_id_type(entity, own)},
            changes.choose_index_name(entity, "by-path"): {"graph_id": "S", "path": "S"},
        }
        entries: dict[str, Any] = {
            "tables": {table.name: {"indexes": indexes}},
            "rules": {changes.choose_rule_name(model, f"{entity.name}-path"): made},
        }
        return _refuse_pattern(pattern, reason, Cure("a path rule and its indexes", changes.OF_INDEX, entries))
    if pattern.field != rule.link[0][0]:
        reason = f"the id of a {entity.name} in its hierarchy is {rule.link[0][0]}, and not {pattern.field}"
        others = {one: None for one in ("under", "above", "children") if one != pattern.direction}
        cure = {"patterns": {pattern.name: {pattern.direction: rule.link[0][0], **others}}}
        return _refuse_pattern(pattern, reason, Cure(f"name {rule.link[0][0]}", "nothing", cure))
    if pattern.direction == "children":
        reason = f"no index lists the {entity.name} of one parent"
        parent = rule.link[0][1].path[0]
        index = changes.choose_index_name(entity, "by-parent")
        entries = {
            "tables": {table.name: {"indexes": {index: {parent: _find_id_type(entity, own)}}}},
            "rules": {rule.title: {"via": index}},
        }
        return _refuse_pattern(pattern, reason, Cure(f"an index by {parent}", changes.OF_INDEX, entries))
    reason = "no index has the graph and the path as its keys: each level would cost a Query for each item"
    graph = changes.choose_attribute_name(model, entity, "graph_id") if rule.graph is None else show_path(rule.graph)
    path = show_path(rule.path)
    if "." in graph or "." in path:
        return _refuse_pattern(pattern, reason)
    index = changes.choose_index_name(entity, "by-path")
    entries = {"tables": {table.name: {"indexes": {index: {graph: "S", path: "S"}}}}}
    if rule.graph is None:
        entries["rules"] = {rule.title: {"graph": graph}}
    return _refuse_pattern(pattern, reason, Cure(f"an index by {graph} and {path}", changes.OF_INDEX, entries))
