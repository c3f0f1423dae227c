"""Rules written in the formats that are imported, so that what comes back can be compared with what was there."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sync_rules.language.links import default_template
from sync_rules.model.entities import Entity, Index, KeyAttribute, Table
from sync_rules.rules.ruleset import Rules

FORMATS = re.compile(r":[^{}]*(?=})")  # {version:pad(6)}
WORDS = {"S": "string", "N": "number", "B": "binary"}
PROJECTIONS = {"all": "ALL", "keys": "KEYS_ONLY", None: "ALL"}


def declared(rules: Rules) -> list[Entity]:
    """The entities of a file, without those of ledgers."""
    return [entity for entity in rules.entities.values() if "." not in entity.name]


def of_table(rules: Rules, table: Table) -> list[Entity]:
    return [entity for entity in declared(rules) if entity.table == table]


# ---------------------------------------------------------------- DynamoDB's own form
def key_schema(partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...]) -> list[dict[str, str]]:
    parts = [*((one, "HASH") for one in partition), *((one, "RANGE") for one in sort)]
    return [{"AttributeName": one.name, "KeyType": kind} for one, kind in parts]


def projection(index: Index) -> dict[str, Any]:
    if isinstance(index.projection, tuple):
        return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.projection)}
    return {"ProjectionType": PROJECTIONS[index.projection]}


def request(table: Table) -> dict[str, Any]:
    """A table as CreateTable takes it."""
    made: dict[str, Any] = {
        "TableName": table.physical_name,
        "AttributeDefinitions": [
            {"AttributeName": one.name, "AttributeType": one.type} for one in table.key_attributes
        ],
        "KeySchema": key_schema(table.key[:1], table.key[1:]),
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    }
    if table.indexes:
        made["GlobalSecondaryIndexes"] = [
            {"IndexName": one.name, "KeySchema": key_schema(one.partition, one.sort), "Projection": projection(one)}
            for one in table.indexes
        ]
    return made


def items(entity: Entity, number: int = 3) -> Iterator[dict[str, dict[str, Any]]]:
    """Items of an entity, with each field in its key and nowhere else."""
    attributes = {one.name: one.type for one in entity.table.key_attributes}
    for count in range(1, number + 1):
        item: dict[str, dict[str, Any]] = {"title": {"S": f"Title {count}"}}
        fields = itertools.count(count * 100)
        values: dict[str, str] = {}
        for name in dict.fromkeys([*(one.name for one in entity.table.key), *entity.templates]):
            template = entity.templates[name]
            text = template.literals[0]
            for field, after in zip(template.fields, template.literals[1:], strict=True):
                text += values.setdefault(field, str(next(fields))) + after
            item[name] = {attributes[name]: text.encode() if attributes[name] == "B" else text}
        yield item


def data_model(rules: Rules) -> str:
    tables = [request(table) for table in rules.tables.values()]
    held = {
        table.physical_name: [
            {"PutRequest": {"Item": item}} for entity in of_table(rules, table) for item in items(entity)
        ]
        for table in rules.tables.values()
    }
    return dumped({"tables": tables, "items": held, "access_patterns": []})


def dumped(value: Any) -> str:
    return json.dumps(value, indent=1, default=bytes.decode)


# ---------------------------------------------------------------- others
def cloudformation(rules: Rules) -> str:
    made = {
        f"{table.name.title()}Table": {"Type": "AWS::DynamoDB::Table", "Properties": request(table)}
        for table in rules.tables.values()
    }
    return dumped({"AWSTemplateFormatVersion": "2010-09-09", "Resources": made})


def cloudformation_yaml(rules: Rules) -> str:
    """The same template as YAML: JSON is YAML, but for how a reader tells it."""
    return f"# a template\n{cloudformation(rules)}"


def terraform_body(table: Table) -> dict[str, Any]:
    def key(partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...]) -> dict[str, Any]:
        if len(partition) > 1 or len(sort) > 1:
            parts = key_schema(partition, sort)
            return {"key_schema": [{"attribute_name": p["AttributeName"], "key_type": p["KeyType"]} for p in parts]}
        return {"hash_key": partition[0].name, "range_key": sort[0].name if sort else None}

    def shown(index: Index) -> dict[str, Any]:
        made = projection(index)
        return {"projection_type": made["ProjectionType"], "non_key_attributes": made.get("NonKeyAttributes")}

    return {
        "name": table.physical_name,
        "attribute": [{"name": one.name, "type": one.type} for one in table.key_attributes],
        **key(table.key[:1], table.key[1:]),
        "global_secondary_index": [{"name": i.name, **key(i.partition, i.sort), **shown(i)} for i in table.indexes],
        "stream_enabled": True,
        "stream_view_type": "NEW_AND_OLD_IMAGES",
    }


def terraform(rules: Rules) -> str:
    resources = [
        {
            "address": f"aws_dynamodb_table.{t.name}",
            "mode": "managed",
            "type": "aws_dynamodb_table",
            "name": t.name,
            "values": terraform_body(t),
        }
        for t in rules.tables.values()
    ]
    return dumped(
        {"format_version": "1.0", "terraform_version": "1.9.8", "values": {"root_module": {"resources": resources}}}
    )


def cdktf(rules: Rules) -> str:
    bodies = {table.name: terraform_body(table) for table in rules.tables.values()}
    return dumped({"resource": {"aws_dynamodb_table": bodies}, "terraform": {}})


def workbench(rules: Rules) -> str:
    def attribute(one: KeyAttribute) -> dict[str, str]:
        return {"AttributeName": one.name, "AttributeType": one.type}

    def key(attributes: tuple[KeyAttribute, ...]) -> dict[str, Any]:
        return dict(zip(("PartitionKey", "SortKey"), map(attribute, attributes), strict=False))

    tables = [
        {
            "TableName": table.physical_name,
            "KeyAttributes": key(table.key),
            "NonKeyAttributes": [],
            "TableFacets": [
                {
                    "FacetName": e.name,
                    "KeyAttributeAlias": {},
                    "TableData": list(items(e)),
                    "NonKeyAttributes": ["title"],
                }
                for e in of_table(rules, table)
            ],
            "GlobalSecondaryIndexes": [
                {"IndexName": i.name, "KeyAttributes": key(i.attributes), "Projection": projection(i)}
                for i in table.indexes
            ],
            "TableData": [],
            "DataAccess": {"MySql": {}},
        }
        for table in rules.tables.values()
    ]
    return dumped({"ModelName": "Model", "ModelMetadata": {}, "DataModel": tables})


def templates(entity: Entity) -> Mapping[str, str]:
    """The templates of all key attributes that an entity says something of, those of its own name too. Without the
    formats of their fields, which no other format of schemas has.
    """
    own = {one.name: default_template(one.name).text for one in entity.table.key}
    return {**own, **{name: FORMATS.sub("", template.text) for name, template in entity.templates.items()}}


def modelling(rules: Rules) -> str:
    def mappings(entity: Entity) -> list[dict[str, Any]]:
        text = templates(entity)
        return [
            {
                "name": index.name,
                "pk_template": text[index.partition[0].name],
                **({"sk_template": text[index.sort[0].name]} if index.sort and index.sort[0].name in text else {}),
            }
            for index in entity.table.indexes
            if index.partition[0].name in text
        ]

    def fields(entity: Entity) -> list[dict[str, Any]]:
        numbers = {one.name for one in entity.table.key_attributes if one.type == "N"}
        names = dict.fromkeys(name for template in entity.templates.values() for name in template.fields)
        whole = {template.whole: name for name, template in entity.templates.items() if template.whole}
        return [
            {"name": name, "type": "integer" if whole.get(name, name) in numbers else "string", "required": True}
            for name in (*names, *({one.name for one in entity.table.key_attributes} - entity.templates.keys()))
        ]

    tables = [
        {
            "table_config": {
                "table_name": table.physical_name,
                "partition_key": table.partition.name,
                **({"sort_key": table.sort.name} if table.sort else {}),
            },
            "gsi_list": [
                {
                    "name": i.name,
                    "partition_key": i.partition[0].name,
                    **({"sort_key": i.sort[0].name} if i.sort else {}),
                }
                for i in table.indexes
            ],
            "entities": {
                entity.name: {
                    "entity_type": entity.name.upper(),
                    "pk_template": templates(entity)[table.partition.name],
                    **({"sk_template": templates(entity)[table.sort.name]} if table.sort else {}),
                    "gsi_mappings": mappings(entity),
                    "fields": fields(entity),
                    "access_patterns": [],
                }
                for entity in of_table(rules, table)
            },
        }
        for table in rules.tables.values()
    ]
    return dumped({"tables": tables})


def onetable(rules: Rules, table: Table) -> str:
    def index(attributes: tuple[KeyAttribute, ...]) -> dict[str, str]:
        return dict(zip(("hash", "sort"), (one.name for one in attributes), strict=False))

    types = {one.name: WORDS[one.type] for one in table.key_attributes}
    models = {
        entity.name: {
            **{
                name: {"type": types[name], **({} if text == f"{{{name}}}" else {"value": text.replace("{", "${")})}
                for name, text in templates(entity).items()
            },
            **{
                field: {"type": "string", "required": True}
                for template in entity.templates.values()
                for field in template.fields
                if field not in types
            },
        }
        for entity in of_table(rules, table)
    }
    indexes = {"primary": index(table.key), **{one.name: index(one.attributes) for one in table.indexes}}
    return dumped(
        {
            "table": table.physical_name,
            "format": "onetable:1.1.0",
            "version": "0.0.1",
            "indexes": indexes,
            "models": models,
            "params": {},
        }
    )


def electrodb(rules: Rules, table: Table) -> str:
    """Models with templates of their own, in the spelling of the rules."""

    def part(entity: Entity, attribute: KeyAttribute) -> dict[str, Any]:
        text = templates(entity)[attribute.name]
        return {"field": attribute.name, "template": text.replace("{", "${"), "casing": "none"}

    def index(entity: Entity, attributes: tuple[KeyAttribute, ...], name: str | None) -> dict[str, Any]:
        made = dict(zip(("pk", "sk"), (part(entity, one) for one in attributes), strict=False))
        return {**made, **({"index": name} if name else {})}

    models = []
    for entity in of_table(rules, table):
        known = templates(entity)
        shown = [i for i in table.indexes if all(one.name in known for one in i.attributes)]
        numbers = {one.name for one in table.key_attributes if one.type == "N"}
        names = dict.fromkeys(field for template in entity.templates.values() for field in template.fields)
        whole = {template.whole: name for name, template in entity.templates.items() if template.whole}
        models.append(
            {
                "model": {"entity": entity.name, "service": "svc", "version": "1"},
                "attributes": {
                    name: {"type": "number" if whole.get(name, name) in numbers else "string", "required": True}
                    for name in names
                },
                "indexes": {
                    "primary": index(entity, table.key, None),
                    **{f"by{n}": index(entity, i.attributes, i.name) for n, i in enumerate(shown)},
                },
            }
        )
    return dumped({"table": table.physical_name, "entities": models})


def toolbox(rules: Rules, table: Table) -> str:
    def keyed(one: KeyAttribute) -> dict[str, str]:
        return {"name": one.name, "type": WORDS[one.type]}

    def index(one: Index) -> dict[str, Any]:
        sort = (
            {"sortKeys": [keyed(a) for a in one.sort]}
            if len(one.sort) > 1
            else {"sortKey": keyed(one.sort[0])}
            if one.sort
            else {}
        )
        first = (
            {"partitionKeys": [keyed(a) for a in one.partition]}
            if len(one.partition) > 1
            else {"partitionKey": keyed(one.partition[0])}
        )
        return {"type": "global", **first, **sort}

    def attribute(name: str, entity: Entity) -> tuple[str, dict[str, Any]]:
        template = entity.templates.get(name) or default_template(name)
        kind = {one.name: WORDS[one.type] for one in table.key_attributes}[name]
        made: dict[str, Any] = {"type": kind, "key": True, "required": "always"}
        if not template.fields:
            return name, {**made, "enum": [template.text]}
        steps = []
        if template.literals[0]:
            steps.append(
                {"transformerId": "prefix", "prefix": template.literals[0][:-1], "delimiter": template.literals[0][-1]}
            )
        if template.literals[-1]:
            steps.append(
                {"transformerId": "suffix", "suffix": template.literals[-1][1:], "delimiter": template.literals[-1][0]}
            )
        if steps:
            made["transform"] = steps[0] if len(steps) == 1 else {"transformerId": "pipe", "transformers": steps}
        return template.fields[0], {**made, "savedAs": name}

    dto = {
        "tableName": table.physical_name,
        "partitionKey": keyed(table.partition),
        **({"sortKey": keyed(table.sort)} if table.sort else {}),
        "indexes": {one.name: index(one) for one in table.indexes},
    }
    entities = [
        {
            "entityName": entity.name,
            "schema": {"type": "item", "attributes": dict(attribute(name, entity) for name in templates(entity))},
            "table": dto,
        }
        for entity in of_table(rules, table)
    ]
    return dumped(entities)
