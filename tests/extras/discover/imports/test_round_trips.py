"""Rules, written in a format and imported again: the same tables, keys, indexes and entities."""

from __future__ import annotations

from pathlib import Path

import pytest

from sync_rules.extras.discover.imports.importer import rules_from_text
from sync_rules.language.load import parse_rules
from sync_rules.model.entities import Entity, Table
from sync_rules.model.items import ItemKey
from sync_rules.rules.ruleset import Rules
from tests.extras.discover.imports import writers
from tests.extras.discover.imports.writers import declared, of_table
from tests.support.engines import ROOT

ODD = """
tables:
  readings: {name: device-readings.v2, key: {"State#Date": S, N: N}, indexes: {by_tenant: {partition: {tenant: S, region: S}, sort: {N: N, day: S}, projection: keys}}}
  blobs: {key: {id: B}, indexes: {GSI1: {kind: S, id: B}}}
  "on": {name: "on.off", key: {"null": S, "a b": S}, indexes: {x.y-z: {partition: {"{}": S}, projection: [name, "true"]}}}
entities:
  reading: {table: readings}
  blob: {table: blobs}
  switch: {table: "on"}
rules: {}
"""
OVERLOADED = """
tables:
  app: {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S, GSI1SK: S}}}
entities:
  organisation: {table: app, key: {PK: "ORG#{org_id}", SK: "ORG#{org_id}", GSI1PK: ORGS, GSI1SK: "ORG#{org_id}"}}
  user: {table: app, key: {PK: "ORG#{org_id}", SK: "USER#{user_id}", GSI1PK: "USER#{user_id}", GSI1SK: PROFILE}}
  ticket: {table: app, key: {PK: "TICKET#{ticket_id}", SK: TICKET, GSI1PK: "USER#{user_id}", GSI1SK: "TICKET#{ticket_id}"}}
  friend: {table: app, key: {PK: "USER#{user_id}", SK: "FRIEND#{friend_id}"}}
rules: {}
"""
NUMBERS = """
tables:
  orders: {key: {order_no: N}, indexes: {by_user: {user_id: S, placed: N}}}
  users: {key: {user_id: S}}
entities:
  order: {table: orders}
  user: {table: users}
rules: {}
"""
FILES = {
    **{path.parent.name: path.read_text() for path in sorted((ROOT / "examples").glob("*/rules.yaml"))},
    "demo": (ROOT / "sync_rules/lab/demo/rules.yaml").read_text(),
    "odd": ODD,
    "overloaded": OVERLOADED,
    "numbers": NUMBERS,
}


def rules_of(name: str) -> Rules:
    return parse_rules(FILES[name], environ={})


def draft_rules(text: str) -> Rules:
    return parse_rules(rules_from_text(text, "source").text, environ={})


def shape(table: Table) -> object:
    indexes = {one.name: (one.partition, one.sort, one.projection or "all") for one in table.indexes}
    return table.key, indexes


def shapes(rules: Rules) -> dict[str, object]:
    return {table.physical_name: shape(table) for table in rules.tables.values()}


def entities(rules: Rules) -> dict[str, tuple[str, dict[str, str]]]:
    return {one.name: (one.table.physical_name, dict(writers.templates(one))) for one in declared(rules)}


def sort_of_two(rules: Rules) -> bool:
    return any(len(one.partition) > 1 or len(one.sort) > 1 for table in rules.tables.values() for one in table.indexes)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("form", ["cloudformation", "cloudformation_yaml", "terraform", "cdktf"])
def test_import_of_a_template_has_its_tables(form, name):
    """Templates have tables, keys, indexes and projections, and an entity for each table."""
    before = rules_of(name)
    after = draft_rules(getattr(writers, form)(before))
    assert shapes(after) == shapes(before)
    assert {one.table.physical_name for one in declared(after)} == {one.physical_name for one in before.tables.values()}


@pytest.mark.parametrize("name", FILES)
def test_import_of_a_modelling_schema_has_its_entities(name):
    """Key templates are taken as they are."""
    before = rules_of(name)
    if name == "odd":
        pytest.skip("the format has neither binary keys nor names that are no words")
    after = draft_rules(writers.modelling(before))
    assert {physical: key for physical, (key, _) in shapes(after).items()} == {
        physical: key for physical, (key, _) in shapes(before).items()
    }
    used = {table.physical_name for table in before.tables.values() if of_table(before, table)}
    made = {name: one for name, one in entities(after).items() if one[0] in used}
    assert {name: without_defaults(*one) for name, one in made.items()} == {
        name: without_defaults(*one) for name, one in entities(before).items()
    }


def without_defaults(table: str, key: dict[str, str]) -> tuple[str, dict[str, str]]:
    return table, {name: text for name, text in key.items() if text != f"{{{name}}}"}


def writable(form: str, table: Table, entities: list[Entity]) -> bool:
    """True if a library has what a table and its entities have."""
    templates = [template for entity in entities for template in entity.templates.values()]
    once = all(
        len([name for t in entity.templates.values() for name in t.fields])
        == len({name for t in entity.templates.values() for name in t.fields})
        for entity in entities
    )
    simple = all(len(index.partition) == 1 and len(index.sort) <= 1 for index in table.indexes)
    match form:
        case "toolbox":  # a key of several fields, or a field in several keys, is a function there
            return once and all(len(template.fields) <= 1 for template in templates)
        case "electrodb":  # no binary keys, and a model says all keys of an index
            known = [set(writers.templates(entity)) for entity in entities]
            pairs = [{one.name for one in index.attributes} for index in table.indexes]
            whole = all(not names & pair or pair <= names for names in known for pair in pairs)
            words = all(one.name.isidentifier() and one.type != "B" for one in table.key_attributes)
            return simple and whole and words
    return simple


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("form", ["onetable", "electrodb", "toolbox"])
def test_import_of_a_library_s_schema_has_its_entities(form, name):
    """A schema of a library has one table: keys, indexes that its models use, and templates."""
    before = rules_of(name)
    for table in before.tables.values():
        mine = of_table(before, table)
        if not mine or not writable(form, table, mine):
            continue
        after = draft_rules(getattr(writers, form)(before, table))
        made = next(iter(after.tables.values()))
        assert made.physical_name == table.physical_name
        assert made.key == table.key
        assert {one.name for one in made.indexes} <= {one.name for one in table.indexes}
        assert {n: without_defaults(*e) for n, e in entities(after).items()} == {
            one.name: without_defaults(table.physical_name, dict(writers.templates(one))) for one in mine
        }


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("form", ["workbench", "data_model"])
def test_import_of_items_finds_their_entities(form, name):
    """Entities are read off sample items: each item belongs to one entity, items of a kind to the same one."""
    before = rules_of(name)
    if form == "workbench" and sort_of_two(before):
        pytest.skip("a Workbench model has no such keys")
    after = draft_rules(getattr(writers, form)(before))
    assert shapes(after) == shapes(before)
    tables = {table.physical_name: table for table in after.tables.values()}
    for table in before.tables.values():
        found: dict[str, str] = {}
        for entity in of_table(before, table):
            owners = {owner(after, tables[table.physical_name], item) for item in writers.items(entity)}
            assert len(owners) == 1, f"{entity.name}: {owners}"
            found[entity.name] = owners.pop()
        assert "" not in found.values()
        assert len(set(found.values())) == len(found)
        if form == "workbench":
            assert all(known == made for known, made in found.items())
        for known, made in found.items():
            assert literals(after.entities[made]) == literals(before.entities[known])


def owner(rules: Rules, table: Table, item: dict) -> str:
    key = table.key_of(item)
    assert isinstance(key, ItemKey)
    return ",".join(entity.name for entity in of_table(rules, table) if entity.has(key))


def literals(entity: Entity) -> dict[str, tuple[str, ...]]:
    """The texts around the fields of each template that says something."""
    return {name: t.literals for name, t in entity.templates.items() if t.literals != ("", "")}


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "fixtures").iterdir()), ids=lambda path: path.name)
def test_import_of_an_import_changes_nothing(path):
    """The tables of an imported file, written as a template and imported again, are the same."""
    if path.suffix == ".tf":
        return
    first = parse_rules(
        rules_from_text(path.read_text(), path.name).text,
        environ={"ORDERS_NAME": "oo-oo", "STACK_NAME": "st", "TEAM": "a"},
    )
    assert shapes(draft_rules(writers.cloudformation(first))) == shapes(first)
