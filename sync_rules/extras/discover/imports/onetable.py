"""OneTable schemas: models whose key attributes are made by value templates.

https://github.com/sensedeep/dynamodb-onetable, doc/schema-1.1.0.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import DocumentNode, quote_name
from sync_rules.extras.discover.imports.imported_model import FoundEntity, FoundTable, ImportedModel, Projection
from sync_rules.extras.discover.imports.key_schemas import (
    Parts,
    choose_projection,
    make_key_parts,
    make_table_key,
    require_attribute_name,
)
from sync_rules.extras.discover.imports.table_variables import make_table
from sync_rules.model.entities import Index, KeyAttribute, KeyType

NAME: Final = "OneTable schema"
INTERNAL: Final = ("_Schema", "_Migration", "_Unique", "_Generic")
VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
TYPES: Final[Mapping[str, KeyType]] = {"number": "N", "binary": "B", "buffer": "B", "arraybuffer": "B"}


def fits(document: Any) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("models"), dict):
        return False
    indexes = document.get("indexes")
    return str(document.get("format", "")).startswith("onetable") or (
        isinstance(indexes, dict) and "primary" in indexes
    )


def read(root: DocumentNode) -> ImportedModel:
    """The table and the entities of a schema."""
    schema = _Schema(root)
    name = root["table"].text_or_empty
    why = "a schema does not say its table's name"
    table = make_table(name or "onetable", name, why, schema.key(), root["table"].place)
    for index, node in root["indexes"].items():
        if index == "primary":
            continue
        local = node.require_map("an index")["type"].value == "local" or not node["hash"]
        table.indexes.append(schema.local(index, node) if local else schema.index(index, node))
    found = ImportedModel(NAME, [table])
    for called, model in root["models"].items():
        if called not in INTERNAL:
            found.entities.append(schema.entity(table, called, model))
    return found


class _Schema:
    """A schema: its indexes, models and parameters."""

    def __init__(self, root: DocumentNode) -> None:
        self.root = root
        self.primary = (
            root["indexes"].require_map("a map of indexes")["primary"].require_map("the primary index: hash and sort")
        )
        self.models = [one for name, one in root["models"].items() if name not in INTERNAL]
        self.params = root["params"].value if isinstance(root["params"].value, dict) else {}
        self.type_field = str(self.params.get("typeField") or "_type")

    def key(self) -> tuple[KeyAttribute, ...]:
        return make_table_key(self.primary, self._make_parts(self.primary))

    def index(self, name: str, node: DocumentNode) -> Index:
        return Index(name, *self._make_parts(node), self._make_projection(node))

    def local(self, name: str, node: DocumentNode) -> Index:
        """A local secondary index: the table's partition key, and a sort key of its own."""
        return Index(
            name, self.key()[:1], (self._make_attribute(node["sort"]),), self._make_projection(node), local=True
        )

    def _make_projection(self, node: DocumentNode) -> Projection:
        given = node["project"]
        return choose_projection("include" if isinstance(given.value, list) else given.text_or_empty, given)

    def _make_parts(self, node: DocumentNode) -> Parts:
        return make_key_parts(node, node["hash"], node["sort"], self._make_attribute)

    def _make_attribute(self, node: DocumentNode) -> KeyAttribute:
        name = require_attribute_name(node)
        return KeyAttribute(name, self._find_type(name))

    def _find_type(self, attribute: str) -> KeyType:
        """The type of a key attribute, from the first model that says it."""
        for model in self.models:
            field = _find_field(model, attribute)
            kind = field["type"].text_or_empty.lower() if field is not None else ""
            if not kind:
                continue
            if kind == "date":
                return "S" if self.params.get("isoDates") else "N"
            return TYPES.get(kind, "S")
        return "S"

    def entity(self, table: FoundTable, called: str, model: DocumentNode) -> FoundEntity:
        fields = dict(model.items("a map of fields"))
        own = {one.name for one in table.key}
        sure = {name for name, one in fields.items() if _is_always(one)}
        made = FoundEntity(called, table, attributes=[_find_stored_name(name, one) for name, one in fields.items()])
        for attribute in own:
            field = _find_field(model, attribute)
            sure |= set(_list_variables(field)) if field is not None else set()
        for attribute in table.types:
            field = _find_field(model, attribute)
            if field is None:
                if attribute in own and attribute != self.type_field:
                    made.checks.append(
                        f"the model does not say how {quote_name(attribute)} is made: write its template"
                    )
                continue
            variables = _list_variables(field)
            missing = [name for name in variables if name not in sure and name != self.type_field]
            if attribute not in own and missing:
                made.checks.append(
                    f"{attribute} is there only on items with {', '.join(missing)}, so it has no template here"
                )
                continue
            self._make_template(made, attribute, field, fields)
            if attribute not in own and not variables and attribute not in made.key and _is_always(field):
                made.required.append(attribute)
        made.attributes = [name for name in made.attributes if name not in own and name not in made.key]
        return made

    def _make_template(
        self, made: FoundEntity, attribute: str, field: DocumentNode, fields: Mapping[str, DocumentNode]
    ) -> None:
        value = field["value"].value
        name = str(field.path[-1])
        if value is None:
            if name != attribute:
                made.key[attribute] = f"{{{name}}}"
            return
        if not isinstance(value, str) or not value:
            made.checks.append(f"{quote_name(attribute)} is made by a function: write its template")
            return
        text = ""
        for number, piece in enumerate(re.split(VARIABLE, value)):
            if not number % 2:
                if "{" in piece or "}" in piece:
                    made.checks.append(f"{quote_name(attribute)} holds text that a template cannot: write its template")
                    return
                text += piece
                continue
            word, *padding = piece.split(":")
            inner = fields.get(word)
            form = ""
            if padding and padding[0]:
                form = f":pad({padding[0]})"
                if (
                    inner is None
                    or str(inner["type"].value).lower() != "number"
                    or padding[1:] not in ([], [""], ["0"])
                ):
                    made.checks.append(
                        f"{word} is padded in {quote_name(attribute)} as no template can: write its template"
                    )
                    return
            stored = word if inner is None else _find_stored_name(word, inner)
            text += made.called if word == self.type_field else f"{{{stored}{form}}}"
        made.key[attribute] = text


def _find_field(model: DocumentNode, attribute: str) -> DocumentNode | None:
    """The field of a model that is stored as an attribute."""
    return next(
        (one for name, one in model.items("a map of fields") if _find_stored_name(name, one) == attribute), None
    )


def _find_stored_name(name: str, field: DocumentNode) -> str:
    return field["map"].text_or_empty or name


def _list_variables(field: DocumentNode) -> list[str]:
    return [piece.split(":")[0] for piece in VARIABLE.findall(field["value"].text_or_empty)]


def _is_always(field: DocumentNode) -> bool:
    return field["required"].value is True or any(field[one] for one in ("default", "generate", "uuid"))
