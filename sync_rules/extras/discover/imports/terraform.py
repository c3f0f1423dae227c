"""Terraform: what `terraform show -json` says of a state or a plan, and the cdk.tf.json that CDK for Terraform makes.

Terraform's own language is refused: only Terraform can work out its variables, loops and modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import Node
from sync_rules.extras.discover.imports.imported_model import Found, FoundTable, Stream
from sync_rules.extras.discover.imports.key_schemas import attribute_name, definitions, schema, sized, table_key
from sync_rules.extras.discover.imports.table_variables import TableName, made_elsewhere, variable_text, with_variables
from sync_rules.extras.discover.imports.workbench import unseen
from sync_rules.model.entities import Index, KeyAttribute, KeyType

NAME: Final = "Terraform"
EXPECTED: Final = "the JSON of `terraform show -json`, or a cdk.tf.json"
RESOURCE: Final = "aws_dynamodb_table"
HCL: Final = re.compile(
    r'^\s*(resource|module|variable|provider|data|output)\s+"[^"]*"(\s+"[^"]*")?\s*\{', re.MULTILINE
)
HCL_CURE: Final = (
    "run `terraform show -json > tables.json` where it is applied, or `terraform plan -out=plan` and "
    "`terraform show -json plan > tables.json`, and import tables.json"
)
REFERENCE: Final = re.compile(r"\$\{([^}]*)\}")
PROJECTIONS: Final = {"ALL": "all", "KEYS_ONLY": "keys"}


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


def read(root: Node) -> Found:
    """The tables of a state, a plan, or a synthesised configuration, each with one entity."""
    found = Found(NAME)
    resources = _configured(root) if root["resource"] else _shown(root)
    for called, node in resources:
        table = _table(_called(called, node), node, root)
        found.tables.append(table)
        found.entities.append(unseen(table))
    if not found.tables:
        root.fail(f"a resource {RESOURCE}", HCL_CURE, "none")
    return found


# ---------------------------------------------------------------- the two forms
def _shown(root: Node) -> Iterator[tuple[str, Node]]:
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


def _configured(root: Node) -> Iterator[tuple[str, Node]]:
    """The tables of a configuration in JSON."""
    for kind, group in root["resource"].items("a map of resources"):
        if kind != RESOURCE:
            continue
        for called, node in group.items("a map of tables"):
            bodies = list(node.list()) if isinstance(node.value, list) else [node]
            for body in bodies:
                yield called, body.require_map("a table")


def _called(name: str, node: Node) -> str:
    """The name of a resource among people: CDK for Terraform's path has it without the hash."""
    metadata = node["//"].value if isinstance(node["//"].value, dict) else {}
    inner = metadata.get("metadata")
    path = inner.get("path") if isinstance(inner, dict) else None
    return path if isinstance(path, str) and path else name


# ---------------------------------------------------------------- a table
def _table(called: str, node: Node, root: Node) -> FoundTable:
    name = _name(called, node["name"], root)
    if node["dynamic"]:
        node["dynamic"].fail("blocks that are written out", HCL_CURE, "dynamic blocks")
    types = definitions(_blocks(node["attribute"]), name="name", kind="type")
    key = table_key(node, _key(node, types))
    table = FoundTable(called, name.text, key, stream=_stream(node), checks=list(name.checks), at=node.place)
    for one in _blocks(node["global_secondary_index"]).list():
        partition, sort = _key(one.require_map("an index"), types)
        table.indexes.append(Index(one["name"].text("the index's name"), partition, sort, _projection(one)))
    for one in _blocks(node["local_secondary_index"]).list():
        _, sort = _key(one.require_map("an index"), types)
        index = one["name"].text("the index's name")
        table.indexes.append(Index(index, table.key[:1], sort, _projection(one), local=True))
    return table


def _blocks(node: Node) -> Node:
    """Blocks as a list: one block may stand without it."""
    return node.of([node.value]) if isinstance(node.value, dict) else node


def _key(node: Node, types: dict[str, KeyType]) -> tuple[tuple[KeyAttribute, ...], tuple[KeyAttribute, ...]]:
    blocks = _blocks(node["key_schema"])
    if blocks and blocks.value:
        return schema(blocks, types, names=("attribute_name", "key_type"))
    parts: list[tuple[KeyAttribute, ...]] = []
    for part in (node["hash_key"], node["range_key"]):
        if part and part.value != "":
            name = attribute_name(part)
            if name not in types:
                part.fail("an attribute that the table defines", found=f"{name!r}")
            parts.append((KeyAttribute(name, types[name]),))
        else:
            parts.append(())
    return sized(node, parts[0], parts[1])


def _projection(node: Node) -> Any:
    kind = node["projection_type"].value
    if kind == "INCLUDE":
        return tuple(attribute_name(one) for one in node["non_key_attributes"].list("a list of attributes"))
    return PROJECTIONS.get(kind) if isinstance(kind, str) else None


def _stream(node: Node) -> Stream:
    if node["stream_enabled"].value is not True:
        return "none"
    view = node["stream_view_type"].value
    return "both" if view == "NEW_AND_OLD_IMAGES" else "other" if isinstance(view, str) else "unknown"


def _name(called: str, node: Node, root: Node) -> TableName:
    if not node:
        return made_elsewhere(called, "Terraform makes its name when it applies the plan")
    text = node.text("the table's name")
    parts, end = [], 0
    for match in REFERENCE.finditer(text):
        word = match[1].strip()
        variables = root["variable"].value if isinstance(root["variable"].value, dict) else {}
        name = word.removeprefix("var.")
        if not word.startswith("var.") or name not in variables:
            return made_elsewhere(called, "its name is known only when Terraform works it out")
        definition = variables[name]
        definition = definition[0] if isinstance(definition, list) and definition else definition
        default = definition.get("default") if isinstance(definition, dict) else None
        parts += [text[end : match.start()], variable_text(name, default)]
        end = match.end()
    made = "".join([*parts, text[end:]])
    unset = with_variables(made)
    return TableName(made, [f"set {unset}: the configuration has no default for it"] if unset else [])
