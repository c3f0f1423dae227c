"""Reads one file of a scenario: its items, keys, paths and names, each looked up in the rules.

Invariant: one mistake does not hide the next: it is noted with its location, and reading continues.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path as File
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from sync_rules.lab.scenario import (
    Action,
    ExpectedCalls,
    ExpectedItem,
    ExpectedObjects,
    Expire,
    Marker,
    Reported,
    Wanted,
)
from sync_rules.lab.scenario_form import TAGS, keys_at
from sync_rules.language.load import read_text
from sync_rules.language.problems import Location, Problems
from sync_rules.language.yaml_source import Document, KeyPath, read, type_name
from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import raw_of
from sync_rules.model.suggest import unknown
from sync_rules.model.values import AttributeValue, Path, parse_path
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.rules.ruleset import Rules

TYPES: Final = {"S": "text", "N": "number", "B": "binary"}
EXPECTED: Final = {
    "dict_type": "a map",
    "model_type": "a map",
    "list_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "greater_than_equal": "a number of times",
}


class ScenarioReader:
    """Reads one file, and notes its mistakes."""

    def __init__(self, file: File, rules: Rules | None = None) -> None:
        self.file = file
        self.rules = rules or Rules({}, {}, {})
        self.wrong: list[tuple[Location, str]] = []
        self._document = Document()

    def error(self, *others: ScenarioReader) -> UserError:
        """All mistakes, those of other files first."""
        return UserError("\n".join(line for one in (*others, self) for line in one.wrong_lines()))

    def wrong_lines(self) -> Iterator[str]:
        """The mistakes in the order of the file."""
        for location, message in sorted(self.wrong, key=lambda one: (one[0].line, one[0].column)):
            keys = location.shown()
            yield f"{self.file}:{location.line}:{location.column}" + (f" · {keys}" if keys else "") + f"\n  {message}"

    def say(self, location: Location, message: str) -> None:
        """Note a mistake."""
        self.wrong.append((location, message))

    # ------------------------------------------------------------ places
    def location(self, *keys: str | int) -> Location:
        """The location of a value."""
        return self._document.value(*keys)

    def at(self, keys: KeyPath) -> Any:
        """The value at a key path, or None."""
        value = self._document.data
        for part in keys:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def each(self, keys: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
        """The values of a list; a single value is a list of one."""
        value = self.at(keys)
        if isinstance(value, list):
            yield from (((*keys, index), one) for index, one in enumerate(value))
        elif value is not None:
            yield keys, value

    def names(self, keys: KeyPath, what: str, known: Collection[str]) -> Iterator[tuple[str, KeyPath]]:
        """The names in a map, each with its key path. A name that is not known is a mistake."""
        for name in self.at(keys) or ():
            if name not in known:
                self.say(self._document.key(*keys, name), unknown(what, name, known))
            yield name, (*keys, name)

    def tables(self, keys: KeyPath) -> Iterator[tuple[Table, KeyPath, dict[str, Any]]]:
        """The items in a map from table to items."""
        for name, at in self.names(keys, "table", self.rules.tables):
            if name in self.rules.tables:
                yield from ((self.rules.tables[name], here, value) for here, value in self.each(at))

    # ------------------------------------------------------------ shape
    def shaped(self, form: TypeAdapter[Any]) -> bool:
        """Read the file; True if it has this shape. Raises UserError when it cannot be read."""
        problems = Problems()
        document = read(read_text(self.file), problems, TAGS)
        for problem in problems.sorted():
            self.say(problem.location, problem.message + (f" ({problem.cure})" if problem.cure else ""))
        if document is None or self.wrong:
            return False
        self._document = document
        try:
            form.validate_python({} if document.data is None else document.data)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                self._misshapen(detail)
            return False
        return True

    def _misshapen(self, detail: ErrorDetails) -> None:
        keys: list[str | int] = []
        for part in detail["loc"]:
            if not isinstance(part, int) or isinstance(
                self.at(tuple(keys)), list
            ):  # a list of one may be written alone
                keys.append(part)
        if detail["type"] == "missing":
            self.say(self._document.value(*keys[:-1]), f"{keys[-1]!r} is missing")
        elif detail["type"] == "extra_forbidden":
            self.say(self._document.key(*keys), unknown("key", str(keys[-1]), keys_at(keys)))
        else:
            message = f"expected {EXPECTED.get(detail['type'], 'something else')}, found {type_name(detail['input'])}"
            self.say(self.location(*keys), message)

    # ------------------------------------------------------------ values
    def value(self, keys: KeyPath, value: Any) -> AttributeValue | None:
        """Convert a value to DynamoDB's form."""
        if value is Marker.ABSENT:
            self.say(self.location(*keys), "<absent> goes with expect and set: elsewhere, leave the attribute out")
            return None
        try:
            return raw_of(value)
        except UserError as error:
            self.say(self.location(*keys), str(error))
            return None

    def values(self, keys: KeyPath, given: Mapping[str, Any]) -> dict[str, AttributeValue]:
        """The attributes of an item."""
        found = {name: self.value((*keys, name), value) for name, value in given.items()}
        return {name: value for name, value in found.items() if value is not None}

    def key(self, table: Table, keys: KeyPath, given: Mapping[str, Any], *, alone: bool = False) -> ItemKey | None:
        """The key in an item; `alone`: nothing else is allowed."""
        names = [attribute.name for attribute in table.key]
        noted = len(self.wrong)
        key = table.key_of(self.values(keys, {name: given[name] for name in names if name in given}))
        others = [name for name in given if name not in names]
        expected = ", ".join(f"{attribute.name} ({TYPES[attribute.type]})" for attribute in table.key)
        if key is None and len(self.wrong) == noted:
            found = ", ".join(f"{n} ({type_name(given[n])})" for n in names if n in given) or "none of it"
            self.say(self.location(*keys), f"expected the key of table {table.name!r}: {expected}; found {found}")
        elif alone and others:
            message = f"expected the key of table {table.name!r} alone: {expected}; found {', '.join(others)} too"
            self.say(self._document.key(*keys, others[0]), message)
        return key

    def path(self, keys: KeyPath, text: str) -> Path | None:
        """A path."""
        try:
            return parse_path(text)
        except UserError as error:
            self.say(self._document.key(*keys), str(error))
            return None

    def wanted(self, keys: KeyPath, given: Mapping[str, Any]) -> Wanted:
        """The expected value at each path of an item."""
        paths = ((name, self.path((*keys, name), name)) for name in given)
        return {
            path: None if given[name] is Marker.ABSENT else self.value((*keys, name), given[name])
            for name, path in paths
            if path is not None
        }

    # ------------------------------------------------------------ actions
    def puts(self, keys: KeyPath = ()) -> Iterator[Put]:
        """Whole items."""
        for table, here, given in self.tables(keys):
            key = self.key(table, here, given)
            if key is not None:
                yield Put(key, self.values(here, given), ())

    def actions(self, step: KeyPath) -> Iterator[Action]:
        """The actions of a step."""
        yield from self.puts((*step, "put"))
        for table, here, given in self.tables((*step, "update")):
            key = self.key(table, (*here, "key"), given["key"], alone=True)
            sets = self.wanted((*here, "set"), given.get("set", {}))
            removes = [self.path((*here, "remove"), text) for text in given.get("remove", ())]
            if key is not None:
                set_paths = tuple((path, value) for path, value in sets.items() if value is not None)
                gone = (*(path for path in removes if path), *(path for path, value in sets.items() if value is None))
                yield Update(key, set_paths, gone, ())
        for word in ("delete", "expire"):
            for table, here, given in self.tables((*step, word)):
                key = self.key(table, here, given, alone=True)
                if key is not None:
                    yield Delete(key, ()) if word == "delete" else Expire(key)

    # ------------------------------------------------------------ expectations
    def expected(self, step: KeyPath) -> Iterator[ExpectedItem]:
        """The expected items."""
        for word in ("expect", "expect_gone"):
            for table, here, given in self.tables((*step, word)):
                key = self.key(table, here, given, alone=word == "expect_gone")
                if key is not None:
                    names = {attribute.name for attribute in table.key}
                    wanted = self.wanted(here, {name: value for name, value in given.items() if name not in names})
                    yield ExpectedItem(self.location(*here), key, wanted if word == "expect" else None)

    def kept(self, keys: KeyPath) -> Iterator[ExpectedObjects]:
        """The expected objects of archive rules."""
        for name, here in self.names(keys, "archive rule", self.rules.archives):
            wanted = tuple(self.wanted(inner, given) for inner, given in self.each(here))
            yield ExpectedObjects(self.location(*here), name, wanted)

    def called(self, keys: KeyPath) -> Iterator[ExpectedCalls]:
        """The expected calls of call rules."""
        for name, here in self.names(keys, "call rule", self.rules.functions):
            yield ExpectedCalls(self.location(*here), name, self.at(here))

    def reports(self, keys: KeyPath) -> Iterator[Reported]:
        """The expected failures."""
        for name, here in self.names(keys, "rule", self.rules.rules):
            yield from ((name, reason) for _, reason in self.each(here))
