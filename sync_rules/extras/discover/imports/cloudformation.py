"""Templates of CloudFormation: written by hand, for SAM, or synthesised by the CDK, as YAML or JSON. Functions are
resolved as far as the template allows: parameters become variables of the rules file with their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import DocumentNode, quote_name
from sync_rules.extras.discover.imports.imported_model import FoundTable, ImportedModel, make_whole_table_entity
from sync_rules.extras.discover.imports.key_schemas import (
    fill_table,
    make_key,
    require_attribute_name,
    require_key_type,
)
from sync_rules.extras.discover.imports.normalization import fill_defaults
from sync_rules.extras.discover.imports.table_variables import (
    TableName,
    check_variables,
    format_variable,
    make_variable,
    substitute,
)

NAME: Final = "CloudFormation template"
TABLES: Final = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable", "AWS::Serverless::SimpleTable")
STACKS: Final = ("AWS::CloudFormation::Stack", "AWS::Serverless::Application")
NO_VALUE: Final = {"Ref": "AWS::NoValue"}
PSEUDO: Final = {
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackName": "${STACK_NAME}",
    "AWS::Region": "${AWS_REGION}",
    "AWS::AccountId": "${AWS_ACCOUNT_ID}",
}
CDK_PARTS: Final = ("Resource", "Table", "Default")


def fits(document: Any) -> bool:
    return isinstance(document, dict) and ("Resources" in document or "AWSTemplateFormatVersion" in document)


def read(root: DocumentNode) -> ImportedModel:
    """Read the tables of a template, each with one entity: a template does not describe items."""
    found = ImportedModel(NAME)
    template = _Template(root)
    for logical, resource in root["Resources"].items("a map of resources"):
        kind = resource["Type"].value if isinstance(resource.value, dict) else None
        if kind in STACKS:
            found.notes.append(
                f"the tables of the nested stack {quote_name(logical)} are not read: import its template too"
            )
        elif logical.startswith("Fn::ForEach::"):
            found.notes.append(
                f"{quote_name(logical)} is not worked out: import the template that CloudFormation makes of it"
            )
        if kind not in TABLES:
            continue
        table = template.table(logical, resource, simple=kind == TABLES[2])
        found.tables.append(table)
        found.entities.append(make_whole_table_entity(table))
    if not found.tables:
        cure = "give the template that has the tables; of the CDK: cdk.out/STACK.template.json after `cdk synth`"
        root["Resources"].fail(f"a resource of type {TABLES[0]}", cure, "none")
    return found


@dataclass
class _Template:
    """A template, whose functions are worked out as far as they can be without deploying it."""

    root: DocumentNode
    chosen: list[str] = field(default_factory=list)  # conditions that were taken for true

    def table(self, logical: str, resource: DocumentNode, *, simple: bool) -> FoundTable:
        self.chosen = []
        raw = resource["Properties"]
        properties = raw.of(self._resolve_branches(raw.value if isinstance(raw.value, dict) else {}))
        called = _find_name(logical, resource)
        name = self._find_table_name(called, properties["TableName"])
        table = FoundTable(called, name.text, (), checks=list(name.checks), at=resource.place)
        if simple:
            self._fill_simple_table(table, properties["PrimaryKey"])
        else:
            fill_table(table, properties, self._require_literal)
        conditions = [condition] if isinstance(condition := resource["Condition"].value, str) else []
        for condition in dict.fromkeys([*conditions, *self.chosen]):
            table.checks.append(f"the template decides by condition {condition}: it was taken for true")
        return table

    def _fill_simple_table(self, table: FoundTable, key: DocumentNode) -> None:
        """The key and the stream of a SimpleTable, whose default is a text id."""
        name = require_attribute_name(key["Name"], self._require_literal) if key["Name"] else "id"
        table.key = make_key({name: require_key_type(key["Type"]) if key["Type"] else "S"})
        table.checks.append("a SimpleTable has no stream, and rules need one: make it an AWS::DynamoDB::Table")

    def _find_table_name(self, called: str, node: DocumentNode) -> TableName:
        if not node:
            return make_variable(called, "CloudFormation makes its name")
        text = self.text(node.value)
        if not text:
            return make_variable(called, "its name is known only when the stack is deployed")
        return check_variables(text)

    def _require_literal(self, node: DocumentNode) -> str:
        """A text that must be known from the template alone."""
        text = fill_defaults(self.text(node.value))
        return text or node.fail("a text that the template itself gives")

    def text(self, value: Any) -> str:
        """Resolve a CloudFormation value, such as Ref or Fn::Sub, to text. Parameters become variables of the rules
        file. Return "" if that is impossible.
        """
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str):
            return "" if "{{resolve:" in value or "${" in value else value
        if not isinstance(value, dict) or len(value) != 1:
            return ""
        ((name, argument),) = value.items()
        work = {"Fn::Sub": self._sub, "Fn::Join": self._join, "Fn::FindInMap": self._find, "Fn::Select": self._select}
        if name == "Ref" and isinstance(argument, str):
            return self._resolve_reference(argument)
        if name == "Fn::Sub" and isinstance(argument, str):
            return self._substitute(argument, {})
        return work[name](argument) if name in work and isinstance(argument, list) else ""

    def _sub(self, argument: list[Any]) -> str:
        match argument:
            case [str() as text, dict() as given]:
                return self._substitute(text, given)
        return ""

    def _join(self, argument: list[Any]) -> str:
        match argument:
            case [str() as joint, list() as parts]:
                texts = [self.text(part) for part in parts]
                return joint.join(texts) if all(texts) else ""
        return ""

    def _find(self, argument: list[Any]) -> str:
        inner = self.root["Mappings"].value
        for key in argument[:3]:
            inner = inner.get(fill_defaults(self.text(key))) if isinstance(inner, dict) else None
        return self.text(inner) if isinstance(inner, str) else ""

    def _select(self, argument: list[Any]) -> str:
        match argument:
            case [(int() | str()) as place, list() as parts] if str(place).isdecimal() and int(place) < len(parts):
                return self.text(parts[int(place)])
        return ""

    def _resolve_reference(self, name: str) -> str:
        if name in PSEUDO:
            return PSEUDO[name]
        parameters = self.root["Parameters"].value
        parameter = parameters.get(name) if isinstance(parameters, dict) else None
        if not isinstance(parameter, dict):
            return ""
        stored = "AWS::SSM" in str(parameter.get("Type"))  # then the default is where the value is, not the value
        return format_variable(name, None if stored else parameter.get("Default"))

    def _substitute(self, text: str, given: Mapping[str, Any]) -> str:
        return substitute(text, lambda name: self.text(given[name]) if name in given else self._resolve_reference(name))

    def _resolve_branches(self, value: Any) -> Any:
        """A value with the first branch of each Fn::If, without what is AWS::NoValue."""
        if isinstance(value, list):
            made = [self._resolve_branches(one) for one in value]
            return [one for one in made if one is not None]
        if not isinstance(value, dict):
            return value
        if value == NO_VALUE:
            return None
        branches = value.get("Fn::If")
        if len(value) == 1 and isinstance(branches, list) and len(branches) == 3:  # noqa: PLR2004 - condition, then, else
            condition, then, other = branches
            taken = self._resolve_branches(then)
            if isinstance(condition, str):
                self.chosen.append(condition if taken is not None else f"not {condition}")
            return taken if taken is not None else self._resolve_branches(other)
        return {key: one for key, inner in value.items() if (one := self._resolve_branches(inner)) is not None}


def _find_name(logical: str, resource: DocumentNode) -> str:
    """The name of a resource among people: the CDK's path has it without the hash of its logical id."""
    metadata = resource["Metadata"]
    path = metadata["aws:cdk:path"].value if isinstance(metadata.value, dict) else None
    if isinstance(path, str):
        parts = [part for part in path.split("/")[1:] if part not in CDK_PARTS]
        return parts[-1] if parts else logical
    return logical
