"""OneTable schemas: models whose key attributes are made by value templates.

https://github.com/sensedeep/dynamodb-onetable, doc/schema-1.1.0.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import Node, quoted
from sync_rules.extras.discover.imports.imported_model import Found, FoundEntity, FoundTable
from sync_rules.extras.discover.imports.key_schemas import attribute_name
from sync_rules.extras.discover.imports.table_variables import TableName, made_elsewhere
from sync_rules.model.entities import Index, KeyAttribute, KeyType

NAME: Final = "OneTable schema"
EXPECTED: Final = "a map with models and indexes"
INTERNAL: Final = ("_Schema", "_Migration", "_Unique", "_Generic")
VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
TYPES: Final[Mapping[str, KeyType]] = {"number": "N", "binary": "B", "buffer": "B", "arraybuffer": "B"}
PROJECTIONS: Final = {"all": "all", "keys": "keys"}


def fits(document: Any) -> bool:
    """True if a document looks like a schema."""
    if not isinstance(document, dict) or not isinstance(document.get("models"), dict):
        return False
    indexes = document.get("indexes")
    return str(document.get("format", "")).startswith("onetable") or (
        isinstance(indexes, dict) and "primary" in indexes
    )


def read(root: Node) -> Found:
    """The table and the entities of a schema."""
    schema = _Schema(root)
    name = root["table"].value if isinstance(root["table"].value, str) and root["table"].value else ""
    given = TableName(name) if name else made_elsewhere("onetable", "a schema does not say its table's name")
    table = FoundTable(name or "onetable", given.text, schema.key(), checks=list(given.checks), at=root["table"].place)
    for index, node in root["indexes"].items():
        if index == "primary":
            continue
        local = node.require_map("an index")["type"].value == "local" or not node["hash"]
        table.indexes.append(schema.local(index, node) if local else schema.index(index, node))
    found = Found(NAME, [table])
    for called, model in root["models"].items():
        if called not in INTERNAL:
            found.entities.append(schema.entity(table, called, model))
    return found


class _Schema:
    """A schema: its indexes, models and parameters."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.primary = (
            root["indexes"].require_map("a map of indexes")["primary"].require_map("the primary index: hash and sort")
        )
        self.models = [one for name, one in root["models"].items() if name not in INTERNAL]
        self.params = root["params"].value if isinstance(root["params"].value, dict) else {}
        self.type_field = str(self.params.get("typeField") or "_type")

    def key(self) -> tuple[KeyAttribute, ...]:
        """The table's key."""
        return self._attributes(self.primary)

    def index(self, name: str, node: Node) -> Index:
        """A global secondary index."""
        partition, *sort = self._attributes(node)
        return Index(name, (partition,), tuple(sort), self._projection(node))

    def local(self, name: str, node: Node) -> Index:
        """A local secondary index: the table's partition key, and a sort key of its own."""
        sort = attribute_name(node["sort"])
        return Index(name, self.key()[:1], (KeyAttribute(sort, self._type(sort)),), self._projection(node), local=True)

    def _projection(self, node: Node) -> Any:
        shown = node["project"].value
        if isinstance(shown, list):
            return tuple(attribute_name(one) for one in node["project"].list())
        return PROJECTIONS.get(str(shown))

    def _attributes(self, node: Node) -> tuple[KeyAttribute, ...]:
        names = [attribute_name(node["hash"]), *([attribute_name(node["sort"])] if node["sort"] else [])]
        if len(set(names)) < len(names):
            node["sort"].fail("another attribute than the hash", found="the same")
        return tuple(KeyAttribute(name, self._type(name)) for name in names)

    def _type(self, attribute: str) -> KeyType:
        """The type of a key attribute, from the first model that says it."""
        for model in self.models:
            field = _field(model, attribute)
            if field is None or not isinstance(field["type"].value, str):
                continue
            kind = field["type"].value.lower()
            if kind == "date":
                return "S" if self.params.get("isoDates") else "N"
            return TYPES.get(kind, "S")
        return "S"

    def entity(self, table: FoundTable, called: str, model: Node) -> FoundEntity:
        """The entity of a model."""
        fields = dict(model.items("a map of fields"))
        own = {one.name for one in table.key}
        sure = {name for name, one in fields.items() if _is_always(one)}
        made = FoundEntity(called, table, attributes=[_stored(name, one) for name, one in fields.items()])
        for attribute in own:
            field = _field(model, attribute)
            sure |= set(_variables(field)) if field is not None else set()
        for attribute in table.types:
            field = _field(model, attribute)
            if field is None:
                if attribute in own and attribute != self.type_field:
                    made.checks.append(f"the model does not say how {quoted(attribute)} is made: write its template")
                continue
            variables = _variables(field)
            missing = [name for name in variables if name not in sure and name != self.type_field]
            if attribute not in own and missing:
                made.checks.append(
                    f"{attribute} is there only on items with {', '.join(missing)}, so it has no template here"
                )
                continue
            self._template(made, attribute, field, fields)
            if attribute not in own and not variables and attribute not in made.key and _is_always(field):
                made.required.append(attribute)
        made.attributes = [name for name in made.attributes if name not in own and name not in made.key]
        return made

    def _template(self, made: FoundEntity, attribute: str, field: Node, fields: Mapping[str, Node]) -> None:
        value = field["value"].value if isinstance(field.value, dict) else None
        name = str(field.path[-1])
        if value is None:
            if name != attribute:
                made.key[attribute] = f"{{{name}}}"
            return
        if not isinstance(value, str) or not value:
            made.checks.append(f"{quoted(attribute)} is made by a function: write its template")
            return
        text = ""
        for number, piece in enumerate(re.split(VARIABLE, value)):
            if not number % 2:
                if "{" in piece or "}" in piece:
                    made.checks.append(f"{quoted(attribute)} holds text that a template cannot: write its template")
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
                        f"{word} is padded in {quoted(attribute)} as no template can: write its template"
                    )
                    return
            stored = word if inner is None else _stored(word, inner)
            text += made.called if word == self.type_field else f"{{{stored}{form}}}"
        made.key[attribute] = text


def _field(model: Node, attribute: str) -> Node | None:
    """The field of a model that is stored as an attribute."""
    for name, one in model.items("a map of fields"):
        if _stored(name, one) == attribute:
            return one
    return None


def _stored(name: str, field: Node) -> str:
    mapped = field["map"].value if isinstance(field.value, dict) else None
    return mapped if isinstance(mapped, str) and mapped else name


def _variables(field: Node) -> list[str]:
    value = field["value"].value if isinstance(field.value, dict) else None
    return [piece.split(":")[0] for piece in VARIABLE.findall(value)] if isinstance(value, str) else []


def _is_always(field: Node) -> bool:
    """True if every item has the field."""
    given = field.value if isinstance(field.value, dict) else {}
    return given.get("required") is True or any(given.get(one) is not None for one in ("default", "generate", "uuid"))
