"""ElectroDB: entities by their models, whose keys ElectroDB composes of service, entity, version and attributes.

The keys are worked out as ElectroDB makes them: prefixes, labels, casing, collections, templates, casts.
https://electrodb.dev/en/modeling/indexes/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import DocumentNode, quote_name
from sync_rules.extras.discover.imports.identifiers import keep_name
from sync_rules.extras.discover.imports.imported_model import (
    FoundEntity,
    FoundPattern,
    FoundTable,
    ImportedModel,
    Projection,
)
from sync_rules.extras.discover.imports.key_schemas import (
    Parts,
    choose_projection,
    make_key_parts,
    make_table_key,
    require_attribute_name,
    require_parts,
)
from sync_rules.extras.discover.imports.table_variables import make_table
from sync_rules.model.entities import Index, KeyAttribute, KeyType

NAME: Final = "ElectroDB model"
EXPECTED: Final = "models with model, attributes and indexes"
IN_TEMPLATE: Final = re.compile(r"\$\{([^}]*)\}")
NUMBERS: Final = ("number",)
Member = tuple[FoundEntity, DocumentNode]  # of a collection: an entity and its index
MARKS: Final = ("__edb_e__", "__edb_v__")  # attributes with the entity and its version: ElectroDB ignores items without


def fits(document: Any) -> bool:
    found = _list_models(DocumentNode(document, ""))
    return any(isinstance(one["indexes"].value, dict) and "model" in one.value for one in found)


def read(root: DocumentNode) -> ImportedModel:
    """The tables and entities of models. Entities of one table share its keys."""
    found = ImportedModel(NAME)
    tables: dict[tuple[str, tuple[KeyAttribute, ...]], FoundTable] = {}
    members: dict[tuple[str, str, str], list[Member]] = {}
    for node in _list_models(root):
        model = _Model(node.require_map(EXPECTED))
        given = model.node["table"].text_or_empty or root["table"].text_or_empty
        table = make_table(model.service, given, "a model does not say its table's name", model.key(), node.place)
        known = tables.setdefault((table.physical, table.key), table)
        found.tables += [table] if known is table else []
        found.entities.append(model.entity(known))
        for name, index in model.list_collections():
            members.setdefault((known.called, name, str(index["index"].value or "")), []).append(
                (found.entities[-1], index)
            )
    found.patterns += [one for key, some in members.items() for one in _read_collection(*key, some)]
    return found


def _read_collection(_table: str, name: str, via: str, members: Sequence[Member]) -> Iterator[FoundPattern]:
    """The pattern of a collection: one Query finds its entities, if they have one partition key."""
    (entity, index), *others = members
    keys = {one.key.get(str(place["pk"]["field"].value), "") for one, place in members}
    if others and len(keys) == 1 and "" not in keys:
        fields = entity.list_fields([KeyAttribute(str(index["pk"]["field"].value), "S")])
        beside = [one for one, _ in others]
        yield FoundPattern(name, entity=entity, beside=beside, by=fields, via=via, said=f"collection {name}")


def _list_models(root: DocumentNode) -> list[DocumentNode]:
    """The models of a document: itself, its entries, or those of `entities`. Each may be the value of `schema`."""
    held = root["entities"] or root
    if isinstance(held.value, list):
        found = list(held.list())
    elif not isinstance(held.value, dict):
        return []
    elif "indexes" in held.value or "schema" in held.value:
        found = [held]
    else:
        found = [one for key, one in held.items() if isinstance(one.value, dict) or held is not root or key != "table"]
    return [one["schema"] if isinstance(one["schema"].value, dict) else one for one in found]


class _Model:
    def __init__(self, node: DocumentNode) -> None:
        self.node = node
        names = node["model"].require_map("a map with service, entity and version")
        self.service = names["service"].text("the service's name")
        self.called = names["entity"].text("the entity's name")
        self.version = names["version"].text("the version, a text") if names["version"] else "1"
        self.attributes = dict(node["attributes"].items("a map of attributes"))
        found = [one.require_map("an index") for _, one in node["indexes"].items("a map of indexes")]
        self.indexes = sorted(found, key=lambda one: bool(one["index"]))  # the table's own first: its templates hold
        if (own := sum(not one["index"] for one in found)) != 1:
            node["indexes"].fail("one index without a name, which is the table's own", found=f"{own}")
        self.base = self.indexes[0]
        self.checks: list[str] = []
        held = [*_list_composites(self.base["pk"]), *_list_composites(self.base["sk"])]
        sure = [name for name, one in self.attributes.items() if one["required"].value is True or one["default"]]
        self.always = {*held, *sure}

    def list_collections(self) -> Iterator[tuple[str, DocumentNode]]:
        yield from ((name, index) for index in self.indexes for name in _collections(index))

    def key(self) -> tuple[KeyAttribute, ...]:
        return make_table_key(self.base, self._make_parts(self.base))

    def _make_parts(self, index: DocumentNode) -> Parts:
        return make_key_parts(index, index["pk"], index["sk"], self._make_attribute)

    def _make_attribute(self, part: DocumentNode) -> KeyAttribute:
        name = require_attribute_name(part.require_map("a key: a map with field and composite")["field"])
        return KeyAttribute(name, "N" if self._is_number(part) else "S")

    def entity(self, table: FoundTable) -> FoundEntity:
        """The entity, whose indexes are added to the table."""
        key: dict[str, str] = {}
        required = [
            *MARKS,
            *map(self._find_stored_name, [*_list_composites(self.base["pk"]), *_list_composites(self.base["sk"])]),
        ]
        for index in self.indexes:
            if index["type"].value == "composite":
                table.indexes.append(self._make_plain_index(index))
                continue
            if index is not self.base:
                if index["pk"]["field"].value == table.key[0].name:
                    self.checks.append(f"index {index['index'].value} is taken for a local one, and left out")
                    continue
                table.indexes.append(self._make_index(index))
            self._add_templates(index, key)
        if keep_name(self.called) != self.called or self.version != "1":
            marks = f"{{derive: {keep_name(self.called)}.__edb_e__, as: {quote_name(self.called)}}}"
            self.checks.append(f"where a rule creates items: {marks}, and as: {quote_name(self.version)} for __edb_v__")
        stored = [self._find_stored_name(name) for name in self.attributes]
        return FoundEntity(self.called, table, key, [name for name in stored if name not in key], required, self.checks)

    def _make_index(self, index: DocumentNode) -> Index:
        name = index["index"].text("the index's name")
        return Index(name, *self._make_parts(index), self._make_projection(index))

    def _make_projection(self, index: DocumentNode) -> Projection:
        given = index["projection"].value
        if isinstance(given, list):
            names = [self._find_stored_name(one.text("an attribute's name")) for one in index["projection"].list()]
            return tuple(dict.fromkeys([*names, *MARKS]))
        return choose_projection(index["projection"].text_or_empty, index)

    def _make_plain_index(self, index: DocumentNode) -> Index:
        """An index whose key is several attributes as they are."""
        name = index["index"].text("the index's name")
        partition, sort = (
            tuple(map(self._make_plain_attribute, _list_composites(index[part]))) for part in ("pk", "sk")
        )
        return Index(name, *require_parts(index, partition, sort), self._make_projection(index))

    def _make_plain_attribute(self, name: str) -> KeyAttribute:
        kind: KeyType = "N" if self._find_type(name) in NUMBERS else "S"
        return KeyAttribute(self._find_stored_name(name), kind)

    # ------------------------------------------------------------ templates
    def _add_templates(self, index: DocumentNode, key: dict[str, str]) -> None:
        prefixes = self._make_prefixes(index)
        for part in ("pk", "sk"):
            if not index[part]:
                continue
            field = require_attribute_name(index[part]["field"])
            missing = [name for name in _list_composites(index[part]) if name not in self.always]
            if missing and index is not self.base:
                self.checks.append(
                    f"{field} is there only on items with {', '.join(missing)}, so it has no template here"
                )
                continue
            text = self._make_template(index[part], *prefixes[part])
            if text is None:
                self.checks.append(f"{field} holds what a template cannot write: write another, and no rule into it")
            elif key.setdefault(field, text) != text:
                self.checks.append(f"{field} is made in two ways: {key[field]!r} was taken")

    def _make_prefixes(self, index: DocumentNode) -> dict[str, tuple[str, str]]:
        """The texts that ElectroDB writes before and after the attributes in each key."""
        names = _collections(index)
        head = f"${'#'.join(names)}" if names else ""
        tail = f"{'#' if names else '$'}{self.called}_{self.version}"
        clustered = index["type"].value == "clustered"
        sort = (head, tail) if clustered else (head + tail, "")
        scope = index["scope"].value
        partition = f"${self.service}"
        if not index["sk"]:
            partition += sort[0] + sort[1]
        if isinstance(scope, str) and scope:
            partition += f"_{scope}"
        return {"pk": (partition, ""), "sk": sort}

    def _make_template(self, part: DocumentNode, before: str, after: str) -> str | None:
        """The template of a key; None where a text in it has braces, or an attribute a form that no template has."""
        template = part["template"].text_or_empty
        if template:
            pieces = re.split(IN_TEMPLATE, template)
        elif self._is_whole(part):
            pieces = ["", _list_composites(part)[0], ""]
        else:
            pieces = [before]
            for name in _list_composites(part):
                pieces[-1] += f"#{self._find_attribute(name)['label'].text_or_empty or name}_"
                pieces += [name, ""]
            pieces[-1] += after
        made = ""
        for number, piece in enumerate(pieces):
            if number % 2:
                form = "" if self._is_number(part) else self._choose_form(piece, part["casing"].value)
                if form is None:
                    return None
                made += f"{{{self._find_stored_name(piece)}{form}}}"
            elif "{" in piece or "}" in piece:
                return None
            else:
                made += _change_case(piece, part["casing"].value)
        return made

    def _choose_form(self, name: str, casing: Any) -> str | None:
        """How a key writes an attribute, in the words of a template; None where no template can."""
        padding = self._find_attribute(name)["padding"]
        if isinstance(padding.value, dict):
            length, is_number = padding["length"].value, self._find_type(name) in NUMBERS
            return f":pad({length})" if is_number and padding["char"].value == "0" and isinstance(length, int) else None
        if self._find_type(name) == "boolean":
            self.checks.append(f"{name} is a boolean: no rule can make a key of it")
        if casing == "none" or self._find_type(name) in (*NUMBERS, "boolean"):
            return ""
        return f":{'upper' if casing == 'upper' else 'lower'}"

    def _is_whole(self, part: DocumentNode) -> bool:
        """True if a key is one attribute of its own name, without a prefix, or a number."""
        names = _list_composites(part)
        return len(names) == 1 and (names[0] == part["field"].value or self._is_number(part))

    def _is_number(self, part: DocumentNode) -> bool:
        names = _list_composites(part)
        if len(names) != 1 or part["cast"].value == "string":
            return False
        template = part["template"].text_or_empty
        bare = template == f"${{{names[0]}}}" if template else names[0] == part["field"].value
        return part["cast"].value == "number" or (bare and self._find_type(names[0]) in NUMBERS)

    def _find_stored_name(self, name: str) -> str:
        """The attribute of an item that holds an attribute of the model."""
        return self._find_attribute(name)["field"].text_or_empty or name

    def _find_type(self, name: str) -> str:
        return self._find_attribute(name)["type"].text_or_empty or "string"

    def _find_attribute(self, name: str) -> DocumentNode:
        """An attribute of the model by its name; a node of None where it has none."""
        return self.attributes.get(name, self.node.of(None))


def _collections(index: DocumentNode) -> list[str]:
    """The names of the collections that an index is in, the widest first."""
    given = index["collection"].value
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str) and one]


def _list_composites(part: DocumentNode) -> list[str]:
    """The attributes in a key, in order."""
    if template := part["template"].text_or_empty:
        return [name for name in IN_TEMPLATE.findall(template) if name]
    given = part["composite"] or part["facets"]
    return [one.text("the name of an attribute") for one in given.list("a list of attributes")]


def _change_case(text: str, casing: Any) -> str:
    return text if casing == "none" else text.upper() if casing == "upper" else text.lower()
