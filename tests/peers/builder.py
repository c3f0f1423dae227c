"""A rules file in the making, for one scenario: tables, indexes, rules, and helpers that only the translation needs.

Invariant: every table has one entity of the same name, whose key attributes are its fields. Attributes and whole tables
that the scenario does not mention are helpers. A helper is made once for a purpose, however often it is asked for.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML

from sync_rules.model.values import Path, show_path
from tests.peers.scenarios import Scenario

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
Target = tuple[str, Path]  # a table and an attribute of its items; with the empty path, all of the table


def path_of(text: object) -> Path:
    """A dotted name as a path."""
    return tuple(str(text).split("."))


@dataclass
class Builder:
    """The parts of the file so far. `made` are the helpers, by table and purpose.

    `carried` are the edges that a mirror makes of the items at
    their far end, with the hop there and the mirror.
    """

    scenario: Scenario
    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    indexes: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: dict[tuple[object, ...], Target] = field(default_factory=dict)
    carried: dict[str, tuple[Any, dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table, key in self.scenario.tables.items():
            self.keys[table] = {name: self._type(table, (name,)) or "S" for name in key}

    def _type(self, table: str, path: Path) -> str | None:
        """The type of an attribute's values; None if there are none, or of no type that a key has."""
        values = [value for value in self.values(table, path) if value is not None]
        if not values or any(isinstance(value, list | dict) for value in values):
            return None
        return "N" if all(isinstance(value, int | float) for value in values) else "S"

    def values(self, table: str, path: Path) -> list[Any]:
        """The values of a table's items at a path, as the scenario writes them; None for an item without a value."""
        return [_plain_get(item, path) for of, item in self.scenario.items() if of == table]

    def is_list(self, table: str, path: Path) -> bool:
        """True if the scenario writes lists there."""
        return any(isinstance(value, list) for value in self.values(table, path))

    def keys_of(self, table: str) -> tuple[str, ...]:
        """The key attributes of a table."""
        return tuple(self.keys[table])

    def id_of(self, table: str) -> str:
        """The one key attribute that references to items of a table hold."""
        (name,) = self.keys_of(table)
        return name

    def itself(self, table: str) -> dict[str, str]:
        """The link of an item to itself."""
        return {name: name for name in self.keys_of(table)}

    # ------------------------------------------------------------ rules
    def rule(self, into: Target, rule: dict[str, Any]) -> None:
        """Add a rule, named by what it writes. Said twice, it is the same rule."""
        if rule in self.rules.values():
            return
        name = NOT_IN_NAMES.sub("-", "-".join((into[0], *into[1])))[:50]
        name = name if name[0].isalpha() else f"r{name}"
        while name in self.rules:
            name += "-2"
        self.rules[name] = rule

    def copy(self, into: Target, copied: Target, link: Mapping[str, Any], **options: Any) -> None:
        """A copy from the item that is linked."""
        (table, path), (source, attribute) = into, copied
        words = {"copy": show_path((source, *attribute)), "into": show_path((table, *path))}
        self.rule(into, {**words, "link": dict(link), **options})

    def lists_by(self, table: str, attribute: str, kind: str) -> None:
        """Have items of a table listed by an attribute, if its key does not already."""
        if attribute != next(iter(self.keys[table])):
            kind = self.keys[table].get(attribute, kind)
            self.indexes.setdefault(table, {})[NOT_IN_NAMES.sub("_", f"by_{attribute}")] = {attribute: kind}

    def link(self, table: str, refs: tuple[Path, ...], to: str) -> dict[str, str]:
        """Link items of a table to another table's by attributes that an index can hold.

        An attribute inside a map is copied to a helper.
        """
        link: dict[str, str] = {}
        for identity, by in zip(self.keys_of(to), refs, strict=True):
            kind = self._type(table, by) or self.keys[to][identity]
            named = self.lifted(table, by)
            if not link:
                self.lists_by(table, named[0], kind)
            link[identity] = show_path(named)
        return link

    def lifted(self, table: str, path: Path) -> Path:
        """The attribute at the top of items that holds what is inside a map, or null in some: an index takes neither."""
        if len(path) == 1 and not self.has_null(table, path):
            return path
        key = ("reference", path)
        known = (table, *key) in self.made
        helper = self.helper(table, key, (*path, "ref"))
        if not known:
            name = ".".join(json.dumps(part) for part in path)
            where = {"where": f"{name} != `null`"} if self.has_null(table, path) else {}
            self.copy((table, helper), (table, path), self.itself(table), **where, on_delete="clear")
        return helper

    def has_null(self, table: str, path: Path) -> bool:
        """True if the scenario writes a null there."""
        *parents, name = path
        inner = (_plain_get(item, tuple(parents)) for of, item in self.scenario.items() if of == table)
        return any(isinstance(item, Mapping) and name in item and item[name] is None for item in inner)

    # ------------------------------------------------------------ helpers
    def helper(self, table: str, key: tuple[object, ...], words: Path) -> Path:
        """A helper attribute for this purpose, the same one each time it is asked for."""
        name = "_".join(word.strip("_") for word in words)
        while (table, (name,)) in self.made.values() and self.made.get((table, *key)) != (table, (name,)):
            name += "_2"
        return self.made.setdefault((table, *key), (table, (name,)))[1]

    def table(self, words: Path, key: Mapping[str, str]) -> str:
        """A helper table of these words, the same one each time it is asked for."""
        if ("table", *words) not in self.made:
            name = NOT_IN_NAMES.sub("_", "_".join(words))[:40]
            while name in self.keys:
                name += "_2"
            self.keys[name] = dict(key)
            self.made["table", *words] = (name, ())
        return self.made["table", *words][0]

    # ------------------------------------------------------------ the file
    def text(self) -> str:
        """The rules file. Tables are named by PEER_PREFIX, so that several runs can share an engine."""
        tables = {
            table: {"name": f"${{PEER_PREFIX}}{NOT_IN_NAMES.sub('_', table)}", "key": dict(key)}
            | ({"indexes": self.indexes[table]} if table in self.indexes else {})
            for table, key in self.keys.items()
        }
        kept = {
            rule["ledger"] for rule in self.rules.values() if "ledger" in rule
        }  # a ledger's items are the pipeline's
        entities = {table: {"table": table} for table in tables if table not in kept}
        stream = io.StringIO()
        yaml = YAML()
        yaml.width = 1000
        yaml.dump({"tables": tables, "entities": entities, "rules": self.rules}, stream)
        return stream.getvalue()


def _plain_get(item: Any, path: Path) -> Any:
    for name in path:
        item = item.get(name) if isinstance(item, dict) else None
    return item
