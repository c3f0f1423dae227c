"""Scenario files: read, and their plain YAML values turned into items, keys and expectations.

Invariant: this module knows the neutral format and nothing of ours; `translate` makes rules of it, `runner` plays it. A
mistake in a scenario is an error; it never passes because it is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from sync_rules.model.entities import Table
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item
from sync_rules.model.values import Path as AttributePath
from tests.support.builders import attribute_value

ABSENT = "<absent>"
NO_ITEM = "<no item>"
WRITES = ("put", "update", "delete", "corrupt")
WRITE_WORDS = {"table", "key", "keys", "item", "set", "remove", "delete"}
STEP_WORDS = {
    *WRITES, "repair", "paused", "expect", "expect_fixed", "expect_fixed_count", "max_target_writes", "notes", "note",
    "title", "comment", "expect_notes",
}  # fmt: skip


@dataclass(frozen=True)
class Expectation:
    """The expected `value` of one item at `path`, or ABSENT; with the empty path NO_ITEM, or any item at all."""

    table: str
    key: str
    path: AttributePath
    value: Any


@dataclass(frozen=True)
class Step:
    """One step: application writes, or a repair, and what must hold once the pipeline has settled."""

    writes: tuple[tuple[str, Mapping[str, Any]], ...]
    repair: Mapping[str, Any] | None
    expect: tuple[Expectation, ...]


@dataclass(frozen=True)
class Scenario:
    """One scenario as its file has it."""

    file: str
    id: str
    tables: Mapping[str, tuple[str, ...]]
    rules: tuple[Mapping[str, Any], ...]
    references: tuple[Mapping[str, Any], ...]
    initial: Mapping[str, tuple[Mapping[str, Any], ...]]
    expect_initial: tuple[Expectation, ...]
    steps: tuple[Step, ...]
    config_error: bool | str

    def items(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Every item, or part of one, that the scenario writes, with its table."""
        for table, items in self.initial.items():
            yield from ((table, item) for item in items)
        for step in self.steps:
            for _, write in step.writes:
                yield write["table"], write.get("item", {})
                yield write["table"], unfolded(write.get("set", {}))


def load(directory: Path) -> tuple[Scenario, ...]:
    """The scenarios of every YAML file of a directory, in the order of their names."""
    files = sorted(directory.glob("*.yaml"))
    return tuple(_scenario(path.stem, entry) for path in files for entry in _read(path)["scenarios"])


def _read(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


def _scenario(file: str, entry: Mapping[str, Any]) -> Scenario:
    tables = {name: (key,) if isinstance(key, str) else tuple(key) for name, key in entry["tables"].items()}
    return Scenario(
        file,
        str(entry["id"]),
        tables,
        tuple(entry.get("rules") or ()),
        tuple(entry.get("references") or ()),
        {table: tuple(items) for table, items in (entry.get("initial") or {}).items()},
        expectations(entry.get("expect_initial")),
        tuple(_step(number, step) for number, step in enumerate(entry.get("steps") or (), 1)),
        entry.get("config_error", False),
    )


def _step(number: int, step: Mapping[str, Any]) -> Step:
    assert step.keys() <= STEP_WORDS, (number, step)
    repair = step.get("repair")
    return Step(
        tuple((verb, write) for verb in step if verb in WRITES for write in _several(step[verb])),
        (repair if isinstance(repair, dict) else {}) if repair else None,
        expectations(step.get("expect")),
    )


def _several(writes: Any) -> list[Mapping[str, Any]]:
    """The writes of a verb: one, or a list of them; `keys` names several items that are written alike."""
    found = []
    for write in writes if isinstance(writes, list) else [writes]:
        assert {"table"} <= write.keys() <= WRITE_WORDS, write
        found += [{**write, "key": key} for key in write["keys"]] if "keys" in write else [write]
    return found


def expectations(expect: Mapping[str, Any] | None) -> tuple[Expectation, ...]:
    """The expectations of a step, one per attribute. An item without a named attribute must at least exist."""
    found = []
    for table, items in (expect or {}).items():
        for key, values in items.items():
            if values == NO_ITEM or not values:
                found.append(Expectation(table, str(key), (), values or None))
                continue
            found += [Expectation(table, str(key), tuple(str(a).split(".")), v) for a, v in values.items()]
    return tuple(found)


def unfolded(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names as nested maps."""
    item: dict[str, Any] = {}
    for name, value in values.items():
        *parents, last = name.split(".")
        inner = item
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[last] = value
    return item


# ---------------------------------------------------------------- values
def item_of(values: Mapping[str, Any]) -> Item:
    """A plain YAML map as an item."""
    return {str(name): attribute_value(value) for name, value in values.items()}


def key_of(table: Table, text: object) -> ItemKey:
    """The key that a scenario writes as one value, or as several joined by `|`."""
    parts = str(text).split("|", len(table.key) - 1)
    return ItemKey(table.name, tuple((a.name, a.type, part) for a, part in zip(table.key, parts, strict=True)))
