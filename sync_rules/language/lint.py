"""Finds mistakes between rules that are each valid: two writers, cycles, copies into keys, doubtful cost.

Each lint is a generator over compiled rules; `LINTS` lists them. Of the YAML they know only locations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from sync_rules.language.compiler import Known, doubt_own_names
from sync_rules.language.makers import report_deletions_of_made_items, report_unmade_entities
from sync_rules.language.problems import Problem, list_errors
from sync_rules.language.sections import Section
from sync_rules.language.writers import (
    format_attribute,
    locate_write,
    report_key_types,
    report_read_types,
    report_two_writers,
)
from sync_rules.language.yaml_source import Document
from sync_rules.model import where_check
from sync_rules.model.entities import Entity, Ref
from sync_rules.model.suggest import shorten_names
from sync_rules.model.values import Path, has_overlap, show_path
from sync_rules.model.where_check import CONSTANT, NEEDS_NO_QUOTES, list_quoted_names, suggest_text_or_name
from sync_rules.rules.families import ListingRule
from sync_rules.rules.kinds.booked_rule import BookedRule
from sync_rules.rules.kinds.embed import EmbedRule
from sync_rules.rules.kinds.history import HistoryRule
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.rule import Node, Rule, list_causes
from sync_rules.rules.ruleset import Rules

CYCLES_MAX = 100  # that are drawn
Lint = Callable[[Rules, Document], Iterable[Problem]]


def lint(rules: Rules, known: Known, sections: Iterable[Section]) -> None:
    """Report the findings of every lint, also those of sections. Lints that need all rules run only if there is no
    error.
    """
    document, problems = known.document, known.problems
    for each in (*LINTS, *(section.lint for section in sections)):
        problems.extend(each(rules, document))
    problems.extend(doubt_own_names(known.own_names, rules, known.list_sure_attributes))
    if not list_errors(problems.found):
        named = {name for one in sections for name in one.entities_of(rules.sections[one.name])}
        problems.extend(report_unused_names(rules, document, named))
        problems.extend(report_unmade_entities(rules, document))
        problems.extend(report_shared_mirror_keys(rules, document))


def list_linked_rules(rules: Rules) -> Iterator[LinkedRule]:
    """The rules whose targets point to one source each."""
    return (rule for rule in rules.rules.values() if isinstance(rule, LinkedRule))


# ---------------------------------------------------------------- keys
def report_key_writers(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report copies into the table's key. Warn of copies into an index key, unless the kind exists to fill index keys,
    or a rule lists by the copy.
    """
    listed = {
        (entity, find.index, key.name)
        for entity, find in ((rule.listed_entity, rule.find) for rule in rules.rules.values())
        if find is not None
        for key, _ in (*find.partition, *find.sort)
    }
    for rule in rules.rules.values():
        table = rule.target.table
        keys = {a.name for a in table.key}
        for path in rule.copies:
            location = locate_write(rule, document, path=path)
            what = format_attribute(rule.target, path)
            if path[0] in keys:
                yield Problem("SR302", f"{what} is part of the key of table {table.name!r}", location)
                continue
            for index in table.indexes if not rule.fills_index_keys else ():
                if path[0] in {a.name for a in index.attributes} and (rule.target, index.name, path[0]) not in listed:
                    yield Problem("SR403", f"{what} is part of the key of index {index.name!r}", location)


def report_own_reads(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report rules that write their own link, or an attribute that decides whether they apply."""
    for rule in list_linked_rules(rules):
        location = locate_write(rule, document)
        for path in rule.copies:
            what = format_attribute(rule.target, path)
            if any(has_overlap(path, link) for link in rule.link_paths):
                yield Problem(
                    "SR303", f"{what} is part of the link from {rule.target.name!r} to {rule.source.name!r}", location
                )
            if any(has_overlap(path, read) for read in rule.where_paths):
                by = f"index {rule.find.index!r}" if path in rule.sparse_paths and rule.find else "`where`"
                yield Problem("SR304", f"{by} depends on {what}, which this rule writes", location)


def report_deletions_of_restricted_items(rules: Rules, document: Document) -> Iterator[Problem]:
    """Warn of a rule that deletes the items that another rule of the same link only reports."""
    linked = list(list_linked_rules(rules))
    for deleting in (rule for rule in linked if rule.on_delete == "delete"):
        for other in (rule for rule in linked if rule.on_delete == "restrict"):
            if (other.source, other.target, other.link) == (deleting.source, deleting.target, deleting.link):
                message = f"rule {other.title} restricts what this rule deletes: items of {deleting.target.name!r}"
                yield Problem("SR422", message, document.value("rules", deleting.title, "on_delete"))


def report_shared_mirror_keys(rules: Rules, document: Document) -> Iterator[Problem]:
    """Warn of a mirror whose key two sources are likely to make. A key is unique by an id of the source's own, or by a
    single field other than an id, such as an email.
    """
    mirrors = [rule for rule in rules.rules.values() if isinstance(rule, MirrorRule)]
    made = {rule.target for rule in mirrors}
    for rule in mirrors:
        lacks = [field for field, ref in rule.names if ref.path in rule.identity_paths]
        near = {*rule.source.identity, *rule.target.identity}
        others = (one for one in rules.declared_entities if one not in made and one is not rule.source)
        named = {one.identity[-1] for one in others if one.identity and near >= {*one.identity}}
        read = {field: ref.field for field, ref in rule.fields}
        fields = [name for field in rule.target.identity if (name := read.get(field, field)) not in named]
        ids = [name for name in fields if name.lower().endswith("id") and name in rule.source.identity]
        plain = [name for name in fields if not name.lower().endswith("id") and name not in rule.source.identity]
        if lacks and not ids and len(plain) != 1:
            message = (
                f"two {rule.source.name!r} with the same {shorten_names(rule.target.identity, ' and ')} share one key"
            )
            slots = shorten_names(["{" + field + "}" for field in lacks], " and ")
            cure = f"add {slots} to the key of {rule.target.name!r}"
            yield Problem("SR423", message, document.value("entities", rule.target.name, "key"), cure)


def report_histories(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report a history of attributes that another rule writes: the application makes no new version for such a
    write.
    """
    for history in (rule for rule in rules.rules.values() if isinstance(rule, HistoryRule)):
        others = (rule for rule in rules.rules.values() if rule is not history)
        own = [(rule, node.writes) for rule in others for node in rule.nodes()]
        for rule, (entity, path) in own:
            what = f"{format_attribute(entity, path)} is written by rule {rule.title}"
            if entity is history.source and history.is_version_field(path):
                cure = "tell versions apart by an attribute that only the application writes"
                yield Problem("SR318", f"{what}, and names a version", locate_write(history, document, "link"), cure)
            elif entity is history.source and history.holds(path):
                location = locate_write(history, document, "attributes")
                yield Problem("SR318", f"{what}, and is part of each version", location)


def report_unfilled_links(rules: Rules, document: Document) -> Iterator[Problem]:
    """Warn of a link that reads a field from an index key, if no rule fills that key but a rule writes the field."""
    written = {(rule.target, path) for rule in rules.rules.values() for path in rule.copies}
    told = set[tuple[str, str]]()
    for rule in rules.rules.values():
        if not isinstance(rule, LinkedRule | ListingRule | BookedRule):
            continue
        entity = rule.target if isinstance(rule, LinkedRule) else rule.source
        keys = {attribute.name for attribute in entity.table.key}
        for field, ref in rule.link:
            if ref.template is None or ref.path[0] in keys or (entity, ref.path) in written:
                continue
            if (entity, (ref.field,)) not in written or (rule.title, field) in told:
                continue
            told.add((rule.title, field))
            what, key = format_attribute(entity, (ref.field,)), format_attribute(entity, ref.path)
            message = f"{ref.field!r} is read from {key}, which no rule fills; {what} is what a rule writes"
            cure = f"derive: {key}, as: {ref.template.text!r}"
            if not _is_listed_by(rule, ref):
                cure += f"; or link by the attribute itself: link: {{{field}: '\"{ref.field}\"'}}"
            yield Problem("SR461", message, locate_write(rule, document, "link"), cure)


def _is_listed_by(rule: Rule, ref: Ref) -> bool:
    """True if a rule lists its items by a key, and no index has the field itself for one."""
    listed = rule.find is not None and any(attribute.name == ref.path[0] for attribute, _ in rule.find.partition)
    return listed and all(index.attributes[0].name != ref.field for index in rule.listed_entity.table.indexes)


def report_unreadable_deletes(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report rules whose `on_delete` would need to read the deleted source."""
    for rule in list_linked_rules(rules):
        if rule.on_delete in ("delete", "restrict") and rule.where is not None and rule.where.source_paths:
            read = format_attribute(rule.source, rule.where.source_paths[0])
            location = document.value("rules", rule.title, "where")
            yield Problem("SR307", f"{read} cannot be read once it is deleted", location)


def report_slips(rules: Rules, document: Document) -> Iterator[Problem]:
    """Warn of a `where` or an `omit` that is valid, but probably a mistake."""
    for rule in rules.rules.values():
        for option, where in rule.filters.items():
            if ("rules", rule.title, option) not in document.locations:
                continue
            location = document.value("rules", rule.title, option)
            for (name,) in where.target_paths if where.source_name else ():  # one that reads two items
                if f"{name}." in where.text and get_close_matches(name, [rule.source.name]):
                    what = f"{name!r} is a map of {rule.target.name!r}. Did you mean {rule.source.name!r}?"
                    yield Problem("SR411", what, location)


def report_bare_words(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report a name in double quotes, and a comparison with a name that nothing else in the file uses: it is likely a
    text without quotes. It is an error if only that side is written like a constant.
    """
    known = list_named_attributes(rules)
    for rule in rules.rules.values():
        entity = rule.target if isinstance(rule, LinkedRule) else rule.source
        for option, where in rule.filters.items():
            location = document.locations.get(("rules", rule.title, option))
            if location is None:
                continue
            quoted = dict.fromkeys(filter(NEEDS_NO_QUOTES.fullmatch, list_quoted_names(where.text)))
            for name, other in where_check.list_bare_words(where.text):
                if name in known[entity.name] or name == where.source_name:
                    continue
                sure = CONSTANT.fullmatch(name) and not CONSTANT.fullmatch(str(other.get("value")))
                if not sure and (other["type"] == "function_expression" or name in quoted):
                    continue
                quoted.pop(name, None)
                what = f"{name} is read as an attribute of {entity.name!r}, and nothing else in the file names it"
                yield Problem("SR311" if sure else "SR416", what, location, suggest_text_or_name(name))
            for name in quoted:
                what = f'"{name}" is the attribute {name}, and not a text'
                yield Problem("SR410", what, location, suggest_text_or_name(name))


def list_named_attributes(rules: Rules) -> dict[str, set[str]]:
    """Return, by entity, the attributes that keys, links and rules name. Conditions do not count."""
    known = {entity.name: {*entity.bound_fields, *entity.identity} for entity in rules.entities.values()}
    for entity in rules.entities.values():
        known[entity.name] |= {attribute.name for attribute in entity.table.key_attributes}
    for rule in rules.rules.values():
        conditions: dict[str, Any] = dict.fromkeys(rule.filters)
        plain = replace(rule, **conditions)
        drawn = plain.draw()
        named = [(rule.source, path) for path in (drawn.reads if drawn is not None else ())]
        named += [ref for node in plain.nodes() for ref in (node.writes, *node.reads, *node.deciding_paths)]
        for entity, path in named:
            known[entity.name] |= set(path[:1])
    return known


# ---------------------------------------------------------------- cycles
def report_cycles(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report attributes that cause themselves through other attributes, links or conditions, each cycle once."""
    nodes = [node for rule in rules.rules.values() for node in rule.nodes()]
    after = {effect: dict.fromkeys(found) for effect, found in list_causes(nodes).items()}
    told = set[frozenset[tuple[Rule, Entity, Path]]]()
    for _ in range(CYCLES_MAX):
        try:
            TopologicalSorter(after).prepare()
        except CycleError as error:
            circle: list[Node] = list(error.args[1])
        else:
            return
        alike = frozenset((node.rule, *_widen_to_item(*node.writes)) for node in circle)
        if alike not in told:
            told.add(alike)
            yield _report_circle(circle, document)
        for cause, effect in pairwise(circle):  # taken apart, so that the next cycle can be found
            after[effect].pop(cause, None)


def _widen_to_item(entity: Entity, path: Path) -> tuple[Entity, Path]:
    """An attribute; of a key, the whole item."""
    return entity, () if path[:1] in [(attribute.name,) for attribute in entity.table.key] else path


def _report_circle(circle: list[Node], document: Document) -> Problem:
    shown = [node for node in circle[:-1] if "." not in node.writes[0].name] or circle[:-1]  # without ledgers
    written = [format_attribute(*node.writes) for node in (*shown, shown[0])]
    rules = list(dict.fromkeys(node.rule for node in circle))
    last = max(rules, key=lambda rule: document.value("rules", rule.title).line)
    if len(circle) == 2:  # noqa: PLR2004 - a circle of one: it begins and ends with the same attribute
        entity, path = circle[0].writes
        read = next(read for of, read in circle[0].reads if of is entity and has_overlap(path, read))
        written = [format_attribute(entity, read), written[0]]
    names = shorten_names([*dict.fromkeys(rule.title for rule in rules)])
    cure = "let the rule read another attribute, or write another one" if len(rules) == 1 else None
    if len(rules) == 1 and isinstance(last, EmbedRule) and last.fields is None:
        cure = f"name what the rule reads in `fields`, without {show_path(last.into)}"
    return Problem("SR305", f"{shorten_names(written, ' -> ')} (rules {names})", locate_write(last, document), cure)


# ---------------------------------------------------------------- entities
def report_same_items(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report keys that fit two entities. The first entity that fits wins. So an entity with one field in both key
    attributes may come before an entity without, like the nodes of a graph before its edges.
    """
    for two in rules.declared_entities:
        for one in (one for one in two.first if _has_repeated_field(two) or not _has_repeated_field(one)):
            message = f"a key of table {one.table.name!r} may be of {one.name!r} and of {two.name!r}"
            cure = (
                f"declare {two.name!r} before {one.name!r}"
                if _has_repeated_field(two) and not _has_repeated_field(one)
                else None
            )
            yield Problem("SR306", message, document.value("entities", two.name, "key"), cure)


def _has_repeated_field(entity: Entity) -> bool:
    fields = [field for a in entity.table.key for field in set(entity.templates[a.name].fields)]
    return len(fields) > len(set(fields))


def report_unused_names(rules: Rules, document: Document, named: set[str]) -> Iterator[Problem]:
    """Warn of entities without a rule and tables without an entity. `named`: the entities that sections name."""
    used = {entity.name for rule in rules.rules.values() for entity in (rule.source, rule.target)} | named
    for entity in rules.declared_entities:
        if entity.name not in used:
            message = f"no rule reads or writes {entity.name!r}"
            yield Problem("SR406", message, document.key("entities", entity.name))
    tables = {entity.table.name for entity in rules.entities.values()}
    for name in rules.tables:
        if name not in tables:
            yield Problem("SR407", f"no entity is in {name!r}", document.key("tables", name))


def report_settings_elsewhere(rules: Rules, document: Document) -> Iterator[Problem]:
    """Warn of settings of tables that are named by an ARN: the stack leaves those as they are."""
    for name, table in rules.tables.items():
        if (table.ttl or table.vectors) and table.physical_name.startswith("arn:"):
            message = f"table {name!r} is named by its ARN: the stack neither creates it nor applies its settings"
            yield Problem("SR472", message, document.key("tables", name))


# ---------------------------------------------------------------- Time to Live
def report_times_to_live(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report a second attribute of Time to Live for one table, and items that rules make and Time to Live deletes."""
    first: dict[str, tuple[Rule, str]] = {}
    stated = {name: table.ttl for name, table in rules.tables.items() if table.ttl is not None}
    for rule in rules.rules.values():
        option = "ttl" if ("rules", rule.title, "ttl") in document.locations else "as"
        for table, name in rule.times_to_live:
            other, known = first.setdefault(table.name, (rule, name))
            if name != known:
                message = f"items of table {table.name!r} expire by {name} here, and by {known} in rule {other.title}"
                yield Problem("SR317", message, document.value("rules", rule.title, option))
            if name != stated.get(table.name, name):
                message = f"items of table {table.name!r} expire by {stated[table.name]} here, and by {name} in rule "
                yield Problem("SR317", message + rule.title, document.value("tables", table.name, "ttl"))
        expires = rules.times_to_live.get(rule.target.table.name, "")
        if rule.target.made and (expires,) in rule.copies:
            message = f"items of {rule.target.name!r} expire by {expires}, and come back while they have members"
            yield Problem("SR474", message, locate_write(rule, document))


# ---------------------------------------------------------------- cost
def report_costs(rules: Rules, document: Document) -> Iterator[Problem]:
    """Warn of rules that cost more, or act later, than it seems."""
    for rule in rules.rules.values():
        location = locate_write(rule, document)
        for index in rule.target.table.indexes if not rule.fills_index_keys else ():
            shown = index.projection if isinstance(index.projection, tuple) else ()
            keys = {a.name for a in index.attributes}
            hit = [p for p in rule.copies if p[0] not in keys and (index.projection == "all" or p[0] in shown)]
            if hit:
                names = ", ".join(format_attribute(rule.target, path) for path in hit)
                yield Problem("SR401", f"{names} is projected into index {index.name!r}", location)
        if rule.find is not None and rule.find.index and not rule.settle_seconds:
            message = f"targets are found through index {rule.find.index!r}, and settle_seconds is 0"
            yield Problem("SR402", message, document.value("rules", rule.title, "settle_seconds"))
        if rule.strict:
            message = f"each copy of {rule.source.name!r} is a transaction"
            yield Problem("SR404", message, document.value("rules", rule.title, "strict"))


LINTS: tuple[Lint, ...] = (
    report_same_items,
    report_two_writers,
    report_key_writers,
    report_key_types,
    report_read_types,
    report_own_reads,
    report_unfilled_links,
    report_histories,
    report_unreadable_deletes,
    report_slips,
    report_bare_words,
    report_cycles,
    report_deletions_of_made_items,
    report_deletions_of_restricted_items,
    report_times_to_live,
    report_settings_elsewhere,
    report_costs,
)
