"""From a scenario's neutral rules to a rules file of ours, as YAML text that is then parsed like any user's.

Law: what is supported is translated whole; what is not is named with the kind of rule that is planned for it. Helper
attributes, which only the translation needs, are listed, so that their writes are not taken for the scenario's:

- a reference inside a map (`campaign._id`) cannot be the key of an index: a copy of the item onto itself keeps it in a
  top-level attribute (`campaign_id_ref`), and the link goes by that;
- a path of several hops becomes a chain: each item on the way holds a copy of what comes after it;
- `references: cascade` becomes a copy of the source's identity with `on_delete: delete`. It is always a rule of its own:
  `delete` on the copies themselves would keep a stale value on a target that is pointed at a source that is missing.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML

from sync_rules.attributes import Path, show_path
from tests.peers.scenarios import ABSENT, Scenario

PLANNED = {
    "count": "count", "sum": "sum", "min": "min", "max": "max", "set": "collect", "list": "embed", "map": "embed",
}  # fmt: skip
OTHER_KINDS = {"text": "derive", "tree": "path", "key": "derive"}
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
Target = tuple[str, Path]  # a table and an attribute of its items


class UnsupportedError(Exception):
    """A neutral rule that our rules cannot say yet; the message says which and what is planned."""


@dataclass(frozen=True)
class Translation:
    """The rules file, which of its copies are helpers, and what could not be translated: reasons, and attributes."""

    text: str
    helpers: frozenset[Target]
    copies: tuple[Target, ...]
    unsupported: tuple[str, ...]
    left_out: tuple[Target, ...]


@dataclass
class Builder:
    """A rules file in the making. Every table has one entity of the same name, whose key attributes are its fields."""

    scenario: Scenario
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    indexes: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    helpers: dict[tuple[object, ...], Target] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table, key in self.scenario.tables.items():
            self.types[table] = {name: self._type(table, name) for name in key}

    def _type(self, table: str, attribute: str) -> str:
        values = [item[attribute] for of, item in self.scenario.items() if of == table and attribute in item]
        return "N" if values and all(isinstance(value, int | float) for value in values) else "S"

    # ------------------------------------------------------------ copies
    def copy(self, table: str, to: Path, path: Sequence[Mapping[str, Any]], attribute: Path) -> None:
        """A copy over one hop or several."""
        hop, *rest = path
        if rest:
            attribute = self._on_the_way(hop["to"], tuple(rest), attribute)
        self._rule((table, to), (hop["to"], attribute), self._link(table, hop), on_delete="clear")

    def check(self, table: str, path: Sequence[Mapping[str, Any]]) -> None:
        """Raises UnsupportedError for a path that cannot be followed to its end, before any rule is made of it."""
        for hop in path:
            self._check_hop(table, hop)
            table = hop["to"]

    def cascade(self, table: str, by: str, to: str) -> None:
        """Delete items with what they refer to."""
        hop = {"to": to, "by": by}
        self.check(table, [hop])
        link = self._link(table, hop)
        identity = (self.scenario.tables[to][0],)
        helper = self._helper(table, ("cascade", by, to), (*by.split("."), "owner"))
        self._rule((table, helper), (to, identity), link, on_delete="delete")

    def _check_hop(self, table: str, hop: Mapping[str, Any]) -> None:
        if "from" in hop:
            raise UnsupportedError("copy from many items (kind embed, planned)")
        if "where" in hop:
            raise UnsupportedError("copy with `where` on a hop (planned)")
        if len(self.scenario.tables[hop["to"]]) > 1:
            raise UnsupportedError("copy from a table whose key has two attributes by one reference")
        by = tuple(hop["by"].split("."))
        values = [_plain_get(item, by) for of, item in self.scenario.items() if of == table]
        if any(isinstance(value, list) for value in values):
            raise UnsupportedError("copy through a list of references (kind embed, planned)")

    def _link(self, table: str, hop: Mapping[str, Any]) -> dict[str, str]:
        """How an item names its source; the attribute that does is made one by which it can be listed."""
        by: Path = tuple(hop["by"].split("."))
        identity = self.scenario.tables[hop["to"]][0]
        kind = self.types[hop["to"]][identity]
        if len(by) > 1:
            key = ("reference", by)
            known = (table, *key) in self.helpers
            helper = self._helper(table, key, (*by, "ref"))
            if not known:
                own = {name: name for name in self.scenario.tables[table]}
                self._rule((table, helper), (table, by), own, on_delete="keep")
            by = helper
        if by[0] != self.scenario.tables[table][0]:
            kind = self.types[table].get(by[0], kind)
            self.indexes.setdefault(table, {})[NOT_IN_NAMES.sub("_", f"by_{by[0]}")] = {by[0]: kind}
        return {identity: show_path(by)}

    def _on_the_way(self, table: str, path: tuple[Mapping[str, Any], ...], attribute: Path) -> Path:
        """The attribute by which an item in the middle of a path hands on what comes after it."""
        key = ("chain", tuple(str(sorted(hop.items())) for hop in path), attribute)
        known = (table, *key) in self.helpers
        helper = self._helper(table, key, (*path[0]["by"].split("."), *attribute, "copy"))
        if not known:
            self.copy(table, helper, path, attribute)
        return helper

    def _helper(self, table: str, key: tuple[object, ...], words: Path) -> Path:
        """A helper attribute for this purpose, the same one each time it is asked for."""
        name = "_".join(word.strip("_") for word in words)
        while (table, (name,)) in self.helpers.values() and self.helpers.get((table, *key)) != (table, (name,)):
            name += "_2"
        return self.helpers.setdefault((table, *key), (table, (name,)))[1]

    def _rule(self, into: Target, copied: Target, link: Mapping[str, str], *, on_delete: str) -> None:
        (source, attribute), (table, to) = copied, into
        rule = {
            "copy": show_path((source, *attribute)),
            "into": show_path((table, *to)),
            "link": dict(link),
            "on_delete": on_delete,
        }
        if rule in self.rules.values():
            return  # said twice: the same rule
        name = NOT_IN_NAMES.sub("-", f"{table}-{'-'.join(to)}")[:50]
        while name in self.rules:
            name += "-2"
        self.rules[name] = rule

    # ------------------------------------------------------------ the file
    def text(self) -> str:
        """The rules file. Tables are named by PEER_PREFIX, so that several runs can share an engine."""
        tables = {
            table: {"name": f"${{PEER_PREFIX}}{NOT_IN_NAMES.sub('_', table)}", "key": dict(key)}
            | ({"indexes": self.indexes[table]} if table in self.indexes else {})
            for table, key in self.types.items()
        }
        stream = io.StringIO()
        yaml = YAML()
        yaml.width = 1000
        yaml.dump(
            {"tables": tables, "entities": {table: {"table": table} for table in tables}, "rules": self.rules}, stream
        )
        return stream.getvalue()


def _plain_get(item: Any, path: Path) -> Any:
    for name in path:
        item = item.get(name) if isinstance(item, dict) else None
    return item


def translate(scenario: Scenario) -> Translation:
    """The scenario's rules as ours, as far as they go."""
    builder = Builder(scenario)
    reasons: dict[str, None] = {}
    copies, left_out = list[Target](), list[Target]()
    for rule in scenario.rules:
        target = (rule["table"], tuple(str(rule["attr"]).split(".")))
        try:
            _copy(builder, target, rule)
        except UnsupportedError as error:
            reasons[str(error)] = None
            left_out.append(target)
        else:
            copies.append(target)
    for reference in scenario.references:
        try:
            _reference(builder, reference)
        except UnsupportedError as error:
            reasons[str(error)] = None
            left_out.append((reference["table"], ()))
    return Translation(
        builder.text(), frozenset(builder.helpers.values()), tuple(copies), tuple(reasons), tuple(left_out)
    )


def _copy(builder: Builder, target: Target, rule: Mapping[str, Any]) -> None:
    copy = rule.get("copy")
    if copy is None:
        raise UnsupportedError(_kind_of(rule))
    if rule.get("missing", copy.get("missing", ABSENT)) != ABSENT:
        raise UnsupportedError("copy with a value for a missing source (`missing`, planned)")
    builder.check(target[0], copy["path"])
    builder.copy(*target, copy["path"], tuple(copy["attr"].split(".")))


def _reference(builder: Builder, reference: Mapping[str, Any]) -> None:
    if reference["on_delete"] != "cascade":
        # `clear` would have to write the attribute that links, which no rule may (SR303, and its cycle SR305)
        raise UnsupportedError(f"references: {reference['on_delete']} (no rule may write the attribute that links it)")
    builder.cascade(reference["table"], reference["attr"], reference["to"])


def _kind_of(rule: Mapping[str, Any]) -> str:
    if "agg" in rule:
        return f"agg: {rule['agg']} (kind {PLANNED.get(rule['agg'], 'unknown')}, planned)"
    word = next((word for word in OTHER_KINDS if word in rule), None)
    return f"{word} (kind {OTHER_KINDS[word]}, planned)" if word else f"a rule of {', '.join(map(str, rule))}"
