"""Terraform: what `terraform show -json` says of a state or a plan.

Terraform's own language, and the cdk.tf.json of CDK for Terraform, are refused: only Terraform can work out variables,
loops and modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import DocumentNode
from sync_rules.extras.discover.imports.imported_model import (
    FoundTable,
    ImportedModel,
    Projection,
    make_whole_table_entity,
)
from sync_rules.extras.discover.imports.key_schemas import (
    Parts,
    choose_projection,
    choose_stream,
    make_key_parts,
    make_table_key,
    parse_definitions,
    parse_key_schema,
    require_attribute_name,
)
from sync_rules.extras.discover.imports.table_variables import make_table
from sync_rules.model.entities import Index, KeyAttribute, KeyType

NAME: Final = "Terraform"
RESOURCE: Final = "aws_dynamodb_table"
HCL: Final = re.compile(
    r'^\s*(resource|module|variable|provider|data|output)\s+"[^"]*"(\s+"[^"]*")?\s*\{', re.MULTILINE
)
HCL_CURE: Final = (
    "run `terraform show -json > tables.json` where it is applied, or `terraform plan -out=plan` and "
    "`terraform show -json plan > tables.json`, and import tables.json"
)


def is_hcl(text: str) -> bool:
    """True if a text is Terraform's own language."""
    return text.lstrip()[:1] not in ("{", "[") and HCL.search(text) is not None


def fits(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    resources = document.get("resource")
    shown = "terraform_version" in document or "format_version" in document
    return shown or (isinstance(resources, dict) and not isinstance(resources.get("Type"), str))


def read(root: DocumentNode) -> ImportedModel:
    """The tables of a state or a plan, each with one entity."""
    found = ImportedModel(NAME)
    for called, node in _list_tables(root):
        table = _make_table(called, node)
        found.tables.append(table)
        found.entities.append(make_whole_table_entity(table))
    if not found.tables:
        root.fail(f"a resource {RESOURCE}", HCL_CURE, "none")
    return found


def _list_tables(root: DocumentNode) -> Iterator[tuple[str, DocumentNode]]:
    """The tables of a state or of the end that a plan has."""
    holder = root["planned_values"] or root["values"]
    if not isinstance(holder.value, dict):
        root.fail("values or planned_values", HCL_CURE, "neither")
    modules = [holder["root_module"]]
    while modules:
        module = modules.pop(0)
        if not module:
            continue
        for resource in module.require_map("a module")["resources"].list("a list of resources"):
            managed = resource.require_map("a resource")["mode"].value in (None, "managed")
            if resource["type"].value == RESOURCE and managed:
                yield resource["name"].text("the resource's name"), resource["values"].require_map()
        modules += list(module["child_modules"].list("a list of modules"))


def _make_table(called: str, node: DocumentNode) -> FoundTable:
    types = parse_definitions(node["attribute"], name="name", kind="type")
    key = make_table_key(node, _make_key(node, types))
    given = node["name"].text("the table's name") if node["name"] else ""
    table = make_table(called, given, "Terraform makes its name when it applies the plan", key, node.place)
    table.stream = choose_stream(node["stream_view_type"].value, enabled=node["stream_enabled"].value is True)
    for one in node["global_secondary_index"].list():
        parts = _make_key(one.require_map("an index"), types)
        table.indexes.append(Index(one["name"].text("the index's name"), *parts, _make_projection(one)))
    for one in node["local_secondary_index"].list():
        sort = (_make_attribute(one.require_map("an index")["range_key"], types),)
        index = one["name"].text("the index's name")
        table.indexes.append(Index(index, table.key[:1], sort, _make_projection(one), local=True))
    return table


def _make_key(node: DocumentNode, types: dict[str, KeyType]) -> Parts:
    if node["key_schema"].value:
        return parse_key_schema(node["key_schema"], types, names=("attribute_name", "key_type"))
    partition, sort = (node[key].of(node[key].value or None) for key in ("hash_key", "range_key"))
    return make_key_parts(node, partition, sort, lambda part: _make_attribute(part, types))


def _make_attribute(node: DocumentNode, types: dict[str, KeyType]) -> KeyAttribute:
    name = require_attribute_name(node)
    if name not in types:
        node.fail("an attribute that the table defines", found=f"{name!r}")
    return KeyAttribute(name, types[name])


def _make_projection(node: DocumentNode) -> Projection:
    return choose_projection(node["projection_type"].text_or_empty, node["non_key_attributes"])
