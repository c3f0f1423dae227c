"""The schema.json of AWS Labs' DynamoDB modelling server: tables, entities with key templates, access patterns. Its
keys are text: the server turns numbers into text in keys, except for a key that is one number alone. An access
pattern is an operation on an entity with the parameters of each call. The importer finds the field of a parameter by
its name, else by its place: first the partition key, then the sort key, then the ends of a range.

https://github.com/awslabs/mcp/tree/main/src/dynamodb-mcp-server
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import DocumentNode, quote_name
from sync_rules.extras.discover.imports.imported_model import (
    FoundEntity,
    FoundPattern,
    FoundTable,
    ImportedModel,
    RangeForm,
    Verb,
    make_whole_table_entity,
)
from sync_rules.extras.discover.imports.key_schemas import (
    Parts,
    choose_projection,
    make_key_parts,
    make_table_key,
    require_attribute_name,
)
from sync_rules.language.yaml_source import KeyPath
from sync_rules.model.entities import Index, KeyAttribute, KeyType

WRITES: Final[Mapping[str, Verb]] = {
    "PutItem": "put",
    "BatchWriteItem": "put",
    "UpdateItem": "update",
    "DeleteItem": "delete",
}
RANGES: Final[Mapping[str, RangeForm]] = {
    "between": "between",
    "begins_with": "begins_with",
    ">=": "at_least",
    ">": "at_least",
    "<=": "at_most",
    "<": "at_most",
}
KEYS_AT_ONCE: Final = 25
SCAN: Final = "it is a Scan, which reads the whole table: write what it asks for, and `by` which fields"
TRANSACTION: Final = "it is a transaction: write a pattern for each of its parts, which cost twice as many units"
BATCH: Final = "one request does this for several items"
OPEN_END: Final = "its range leaves out the value itself, and this one does not"
HOW_MANY: Final = f"how many keys one call asks for is not said: {KEYS_AT_ONCE} here"
READS: Final = ("GetItem", "Query", "BatchGetItem")
MIXED: Final = "it may read items of other kinds too: the source says that it returns mixed data"
BOTH_WRITTEN: Final = "the source says that it needs {others} too"
NAME: Final = "schema of the DynamoDB modelling server"
NUMBERS: Final = ("integer", "decimal")
Templates = list[tuple[str, str, DocumentNode]]  # attribute, template, entity


def fits(document: Any) -> bool:
    tables = document.get("tables") if isinstance(document, dict) else None
    return isinstance(tables, list) and any(isinstance(one, dict) and "table_config" in one for one in tables)


def read(root: DocumentNode) -> ImportedModel:
    """The tables, entities and access patterns of a schema."""
    found = ImportedModel(NAME)
    others: dict[str, FoundEntity] = {}
    asked: list[tuple[FoundEntity, DocumentNode]] = []  # the holders of access patterns
    for node in root["tables"].list():
        config = node.require_map()["table_config"].require_map("a map with table_name and partition_key")
        name = config["table_name"].text("the table's name")
        templates = _list_templates(node)
        types = _find_types(templates)
        key = make_table_key(config, _make_key(config, config, types))
        table = FoundTable(name, name, key, at=config["table_name"].place)
        table.indexes = [_make_index(one, types) for one in node["gsi_list"].list("a list of indexes")]
        found.tables.append(table)
        by_entity: dict[KeyPath, dict[str, str]] = {}
        for attribute, template, holder in templates:
            by_entity.setdefault(holder.path, {}).setdefault(attribute, template)  # the table's own come first
        entities = [
            (called, _make_entity(table, called, one, by_entity.get(one.path, {})), one)
            for called, one in node["entities"].items()
        ]
        found.entities += [entity for _, entity, _ in entities] or [make_whole_table_entity(table)]
        others |= {called: entity for called, entity, _ in entities}
        asked += [(entity, one) for _, entity, one in entities]
    for entity, holder in asked:
        found.patterns += _list_patterns(entity, holder, others)
    found.patterns += map(_make_cross_pattern, root["cross_table_access_patterns"].list("a list of access patterns"))
    return found


def _list_templates(node: DocumentNode) -> Templates:
    """Every template of a table's entities, with the key attribute that it makes."""
    made: Templates = []
    for _, entity in node["entities"].items("a map of entities"):
        entity.require_map("an entity: a map with pk_template and fields")
        made += _pair_templates(entity, entity, node["table_config"])
        for mapping in entity["gsi_mappings"].list("a list of index mappings"):
            name = mapping.require_map()["name"].text("the index's name")
            index = next((one for one in node["gsi_list"].list() if one.require_map()["name"].value == name), None)
            if index is None:
                mapping["name"].fail("an index of gsi_list", found=repr(name)[:80])
            made += _pair_templates(mapping, entity, index)
    return made


def _pair_templates(holder: DocumentNode, entity: DocumentNode, key: DocumentNode) -> Templates:
    """The templates of one key: `key` names its attributes, `holder` has their templates."""
    return [
        (attribute.text_or_empty, template.text("a key template"), entity)
        for part, templates in (("partition_key", "pk_template"), ("sort_key", "sk_template"))
        for attribute, template in zip(key[part].list_entries(), holder[templates].list_entries(), strict=False)
        if attribute.text_or_empty
    ]


def _find_types(templates: Templates) -> dict[str, KeyType]:
    """The types of key attributes: N where each entity gives one number alone, else S."""
    seen: dict[str, set[KeyType]] = {}
    for attribute, template, entity in templates:
        fields = {
            one["name"].text_or_empty: one["type"].text_or_empty
            for one in entity["fields"].list()
            if isinstance(one.value, dict)
        }
        number = template.startswith("{") and fields.get(template[1:-1]) in NUMBERS
        seen.setdefault(attribute, set()).add("N" if number else "S")
    return {attribute: "N" if kinds == {"N"} else "S" for attribute, kinds in seen.items()}


def _make_key(node: DocumentNode, holder: DocumentNode, types: dict[str, KeyType]) -> Parts:
    def attribute(part: DocumentNode) -> KeyAttribute:
        name = require_attribute_name(part)
        return KeyAttribute(name, types.get(name, "S"))

    return make_key_parts(node, holder["partition_key"], holder["sort_key"], attribute)


def _make_index(node: DocumentNode, types: dict[str, KeyType]) -> Index:
    name = node.require_map()["name"].text("the index's name")
    shown = choose_projection(node["projection"].text_or_empty, node["included_attributes"])
    return Index(name, *_make_key(node["partition_key"], node, types), shown)


def _make_entity(table: FoundTable, called: str, node: DocumentNode, key: dict[str, str]) -> FoundEntity:
    fields = [one.require_map() for one in node["fields"].list("a list of fields")]
    names = [one["name"].text("the field's name") for one in fields]
    keys = table.types.keys() - {one.name for one in table.key}
    required = [
        one["name"].text() for one in fields if one["required"].value is True and one["name"].text_or_empty in keys
    ]
    checks = []
    numbers = [one for one in fields if one["type"].text_or_empty in NUMBERS]
    typed = [one.name for one in table.key if one.type == "N"]
    if typed and numbers:
        checks.append(
            f"{' and '.join(typed)} may be text in the table: the schema says only that the field is a number"
        )
    return FoundEntity(called, table, key, names, required, checks)


# ---------------------------------------------------------------- access patterns
def _list_patterns(
    entity: FoundEntity, node: DocumentNode, others: Mapping[str, FoundEntity]
) -> Iterator[FoundPattern]:
    """The patterns of one entity. `others` are all entities, by the names of the source."""
    for one in node["access_patterns"].list("a list of access patterns"):
        yield _make_pattern(entity, one.require_map("an access pattern: a map with name and operation"), others)


def _read_pattern_name(node: DocumentNode) -> tuple[str, str]:
    """The name of a pattern, and what its source says of it."""
    mark = node["pattern_id"].value
    name = node["name"].text_or_empty or f"pattern-{mark}"
    described = node["description"].text_or_empty or name
    return name, f"{mark}: {described}" if isinstance(mark, int | str) else described


def _make_pattern(entity: FoundEntity, node: DocumentNode, others: Mapping[str, FoundEntity]) -> FoundPattern:
    called, said = _read_pattern_name(node)
    operation = node["operation"].text_or_empty
    if operation in WRITES:
        return _make_write_pattern(entity, node, others)
    if operation not in READS:
        refused = SCAN if operation == "Scan" else f"{quote_name(operation)} neither reads nor writes items by key"
        return FoundPattern(called, said=said, refused=refused)
    name = node["index_name"].text_or_empty
    index = next((one for one in entity.table.indexes if one.name == name), None)
    if name and index is None:
        return FoundPattern(called, said=said, refused=f"the table has no index {quote_name(name)}")
    made = FoundPattern(called, "get", entity, one=operation != "Query", via=name, said=said)
    _add_fields(made, node, index)
    if made.refused:
        return made
    made.consistent = node["consistent_read"].value is True
    if operation == "BatchGetItem":
        made.one, made.keys = False, KEYS_AT_ONCE
        made.checks.append(HOW_MANY)
    if node["return_type"].text_or_empty == "mixed_data":
        made.checks.append(MIXED)
    return made


def _add_fields(made: FoundPattern, node: DocumentNode, index: Index | None) -> None:
    """Say which fields each call gives, by equality and as the ends of a range."""
    assert made.entity is not None
    key = index.attributes if index else made.entity.table.key
    partition = index.partition if index else key[:1]
    condition = node["range_condition"].text_or_empty
    form = RANGES.get(condition)
    if condition and form is None:
        made.refused = f"its range condition {quote_name(condition)} is not known"
        return
    given = _list_parameters(node)
    filtered = _add_filters(made, node, given)
    given = [name for name in given if name not in filtered]
    ends = (2 if form == "between" else 1) if form else 0
    fields = made.entity.list_fields(key)
    whole = fields if node["operation"].text_or_empty != "Query" else made.entity.list_fields(partition)
    left_over = _assign_parameters(made, given[: len(given) - ends], whole, fields)
    free = [field for field in fields if field not in made.by]
    made.checks += [f"no key says what the parameter {name} is for: it is left out" for name in left_over]
    if form is None:
        return
    if len(given) < ends or not free:
        made.refused = f"no field of the key is left for its range {quote_name(condition)}"
        return
    made.within = form, free[0]
    made.checks += [OPEN_END] if condition in (">", "<") else []


def _assign_parameters(
    made: FoundPattern, given: Sequence[str], whole: Sequence[str], fields: Sequence[str]
) -> list[str]:
    """Ask by parameters: by their names, else by their places in `whole`. Returns those that are neither."""
    assert made.entity is not None
    by: list[str] = []
    left_over = []
    asked = fields if made.one else [*fields, *made.entity.attributes]
    for name in given:
        free = [field for field in whole if field not in given and field not in by]
        if name in asked:
            by.append(name)
        elif free:
            by.append(free[0])
            made.checks.append(f"the parameter {name} is taken for {free[0]}")
        else:
            left_over.append(name)
    made.by = list(dict.fromkeys(by))
    return left_over


def _list_parameters(node: DocumentNode) -> list[str]:
    """The names of the parameters that are values."""
    ones = [one.require_map("a parameter: a map with name") for one in node["parameters"].list("a list of parameters")]
    return [one["name"].text("the parameter's name") for one in ones if one["type"].text_or_empty != "entity"]


def _add_filters(made: FoundPattern, node: DocumentNode, given: Sequence[str]) -> list[str]:
    """The parameters of a filter. Their values come with each call, which no condition of a rules file can say."""
    conditions = node["filter_expression"]["conditions"]
    either = node["filter_expression"]["logical_operator"].text_or_empty.upper() == "OR"
    found: list[str] = []
    for one in conditions.list("a list of conditions"):
        field, function = one.require_map()["field"].text_or_empty, one["function"].text_or_empty
        operator = one["operator"].text_or_empty or function
        listed = [part.text_or_empty for part in one["params"].list("a list of parameters")]
        found += [name for name in (one["param"].text_or_empty, one["param2"].text_or_empty, *listed) if name in given]
        if operator in ("attribute_exists", "attribute_not_exists") and not either and field.isidentifier():
            sign = "!=" if operator == "attribute_exists" else "=="
            made.where += f"{' && ' if made.where else ''}{field} {sign} `null`"
        else:
            made.checks.append(f"a filter is left out, whose value each call gives: {field} {operator}")
    return found


def _make_write_pattern(entity: FoundEntity, node: DocumentNode, others: Mapping[str, FoundEntity]) -> FoundPattern:
    called, said = _read_pattern_name(node)
    operation = node["operation"].text_or_empty
    made = FoundPattern(called, WRITES[operation], entity, said=said)
    if operation == "BatchWriteItem":
        made.checks.append(BATCH)
    if made.verb == "update":
        keys = entity.list_fields(entity.table.key)
        made.sets = [name for name in _list_parameters(node) if name in entity.attributes and name not in keys]
    named = [one["entity_type"].text_or_empty for one in node["parameters"].list() if isinstance(one.value, dict)]
    more = [name for name in named if name in others and others[name] is not entity]
    if more:
        made.checks.append(BOTH_WRITTEN.format(others=", ".join(more)))
    return made


def _make_cross_pattern(node: DocumentNode) -> FoundPattern:
    """A pattern across tables, as a comment: a transaction reads or writes items of several entities."""
    called, said = _read_pattern_name(node.require_map("an access pattern: a map with name and operation"))
    parts = (f"{one['action'].text_or_empty} {one['entity'].text_or_empty}" for one in node["entities_involved"].list())
    return FoundPattern(called, said=said, refused=f"{TRANSACTION}: {', '.join(parts)}")
