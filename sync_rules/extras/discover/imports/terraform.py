"""Terraform: what `terraform show -json` says of a state or a plan, and the cdk.tf.json that CDK for Terraform makes.

Terraform's own language is refused: only Terraform can work out its variables, loops and modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import DocumentNode
from sync_rules.extras.discover.imports.imported_model import FoundTable, ImportedModel, Projection, whole_table
from sync_rules.extras.discover.imports.key_schemas import (
    Parts,
    attribute_name,
    definitions,
    key_parts,
    projection_of,
    schema,
    stream_of,
    table_key,
)
from sync_rules.extras.discover.imports.table_variables import (
    TableName,
    made_elsewhere,
    named_by,
    substitute,
    variable_text,
)
from sync_rules.model.entities import Index, KeyAttribute, KeyType

NAME: Final = "Terraform"
EXPECTED: Final = "the JSON of `terraform show -json`, or a cdk.tf.json"
UNKNOWN_NAME: Final = "its name is known only when Terraform works it out"
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
    """True if a document looks like Terraform's."""
    if not isinstance(document, dict):
        return False
    resources = document.get("resource")
    shown = "terraform_version" in document or "format_version" in document
    return shown or (isinstance(resources, dict) and not isinstance(resources.get("Type"), str))


def read(root: DocumentNode) -> ImportedModel:
    """The tables of a state, a plan, or a synthesised configuration, each with one entity."""
    found = ImportedModel(NAME)
    resources = _list_configured(root) if root["resource"] else _list_planned(root)
    for called, node in resources:
        table = _table(_name_of(called, node), node, root)
        found.tables.append(table)
        found.entities.append(whole_table(table))
    if not found.tables:
        root.fail(f"a resource {RESOURCE}", HCL_CURE, "none")
    return found


# ---------------------------------------------------------------- the two forms
def _list_planned(root: DocumentNode) -> Iterator[tuple[str, DocumentNode]]:
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


def _list_configured(root: DocumentNode) -> Iterator[tuple[str, DocumentNode]]:
    """The tables of a configuration in JSON."""
    for kind, group in root["resource"].items("a map of resources"):
        if kind != RESOURCE:
            continue
        for called, node in group.items("a map of tables"):
            bodies = list(node.list()) if isinstance(node.value, list) else [node]
            for body in bodies:
                yield called, body.require_map("a table")


def _name_of(name: str, node: DocumentNode) -> str:
    """The name of a resource among people: CDK for Terraform's path has it without the hash."""
    metadata = node["//"].value if isinstance(node["//"].value, dict) else {}
    inner = metadata.get("metadata")
    path = inner.get("path") if isinstance(inner, dict) else None
    return path if isinstance(path, str) and path else name


# ---------------------------------------------------------------- a table
def _table(called: str, node: DocumentNode, root: DocumentNode) -> FoundTable:
    name = _name(called, node["name"], root)
    if node["dynamic"]:
        node["dynamic"].fail("blocks that are written out", HCL_CURE, "dynamic blocks")
    types = definitions(_blocks(node["attribute"]), name="name", kind="type")
    key = table_key(node, _key(node, types))
    stream = stream_of(node["stream_view_type"].value, enabled=node["stream_enabled"].value is True)
    table = FoundTable(called, name.text, key, stream=stream, checks=list(name.checks), at=node.place)
    for one in _blocks(node["global_secondary_index"]).list():
        parts = _key(one.require_map("an index"), types)
        table.indexes.append(Index(one["name"].text("the index's name"), *parts, _projection(one)))
    for one in _blocks(node["local_secondary_index"]).list():
        sort = (_attribute(one.require_map("an index")["range_key"], types),)
        index = one["name"].text("the index's name")
        table.indexes.append(Index(index, table.key[:1], sort, _projection(one), local=True))
    return table


def _blocks(node: DocumentNode) -> DocumentNode:
    """Blocks as a list: one block may stand without it."""
    return node.of([node.value]) if isinstance(node.value, dict) else node


def _key(node: DocumentNode, types: dict[str, KeyType]) -> Parts:
    blocks = _blocks(node["key_schema"])
    if blocks and blocks.value:
        return schema(blocks, types, names=("attribute_name", "key_type"))
    partition, sort = (node[key].of(node[key].value or None) for key in ("hash_key", "range_key"))
    return key_parts(node, partition, sort, lambda part: _attribute(part, types))


def _attribute(node: DocumentNode, types: dict[str, KeyType]) -> KeyAttribute:
    name = attribute_name(node)
    if name not in types:
        node.fail("an attribute that the table defines", found=f"{name!r}")
    return KeyAttribute(name, types[name])


def _projection(node: DocumentNode) -> Projection:
    return projection_of(node["projection_type"].said, node["non_key_attributes"])


def _name(called: str, node: DocumentNode, root: DocumentNode) -> TableName:
    if not node:
        return made_elsewhere(called, "Terraform makes its name when it applies the plan")

    def value(word: str) -> str:
        name = word.removeprefix("var.")
        definition = root["variable"][name]
        if name == word or not definition:
            return ""
        definition = definition[0] if isinstance(definition.value, list) else definition
        return variable_text(name, definition["default"].value)

    text = substitute(node.text("the table's name"), value)
    return named_by(text, "configuration") if text else made_elsewhere(called, UNKNOWN_NAME)
