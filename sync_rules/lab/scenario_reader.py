"""Reads one file of a scenario: its shape, as pydantic models, then its items, keys, paths and names, by the rules.

Numbers are exact, and docs/testing.md has the tags. Invariant: one mistake does not hide the next. The reader notes it
with its location, and continues.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path as File
from typing import Annotated, Any, Final, TypeVar

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from sync_rules.lab.scenario import Action, ExpectedCalls, ExpectedItem, Expire, Marker, ScenarioStep, Wanted
from sync_rules.language.kinds.options import Model
from sync_rules.language.load import read_text
from sync_rules.language.problems import Location, Problems
from sync_rules.language.yaml_source import Document, KeyPath, Tags, name_type, parse_scalar, read_document
from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import make_raw_value
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import AttributeValue, Path, escape_invisible, parse_path
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.rules.ruleset import Rules

SET: Final = "!set"


# ---------------------------------------------------------------- the shape
def make_list(value: Any) -> Any:
    """Return a list as it is, and any other value as a list with this value."""
    return value if isinstance(value, list) else [value]


Items = Annotated[list[dict[str, Any]], BeforeValidator(make_list)]
ByTable = dict[str, Items]
Reasons = Annotated[list[str], BeforeValidator(make_list)]


class ChangeForm(Model):
    """An update: which item, what is set and removed, by path."""

    key: dict[str, Any] = Field(description="The item's key attributes.")
    sets: dict[str, Any] = Field(default={}, alias="set", description="Paths and their new values.")
    remove: list[str] = Field(default=[], description="Paths that are removed.")


class ExpectForm(Model):
    """Expectations once the pipeline has come to rest."""

    expect: ByTable = Field(default={}, description="By table: items by their keys, with what they must hold.")
    expect_gone: ByTable = Field(default={}, description="By table: keys of items that must not be there.")
    expect_calls: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default={}, description="By call rule: how often it has called its function so far."
    )
    expect_failures: dict[str, Reasons] = Field(default={}, description="By rule: all failures that this step reports.")


class StepForm(ExpectForm):
    """One step: its actions, which happen in the order put, update, delete, expire; then its expectations."""

    say: str = Field(description="What the application does, in a few words.")
    put: ByTable = Field(default={}, description="By table: whole items to write.")
    update: dict[str, Annotated[list[ChangeForm], BeforeValidator(make_list)]] = Field(
        default={}, description="By table: items to change."
    )
    delete: ByTable = Field(default={}, description="By table: keys of items to delete.")
    expire: ByTable = Field(default={}, description="By table: keys of items that Time to Live deletes.")


class ScenarioForm(ExpectForm):
    """A scenario: its rules and data, what must be true of the data alone, then the steps."""

    rules: str | None = Field(default=None, description="The rules file, relative to this file. Default: rules.yaml.")
    data: ByTable | None = Field(default=None, description="What is there at first: in place of data.yaml.")
    steps: list[StepForm] = Field(default=[], description="What the application does, one after the other.")
    answers: dict[str, Any] = Field(default={}, description="In the end: what read.py finds, by question.")


# ---------------------------------------------------------------- values
def parse_exact_scalar(tag: str, text: str) -> Any:
    """Parse a scalar. Numbers keep every digit."""
    match tag:
        case "float":
            number = Decimal(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
            if number.is_finite():
                return number
            raise ValueError
        case "binary":
            return base64.b64decode("".join(text.split()), validate=True)
        case _ if tag.startswith("!"):
            raise ValueError
    return parse_scalar(tag, text)


def parse_exact_list(tag: str, values: list[Any]) -> Any:
    """Convert a list: with the tag !set into a set."""
    if tag == SET:
        try:
            found = set(values)
            make_raw_value(found)
        except (TypeError, UserError) as error:
            message = "expected texts, numbers or binaries, all of one kind and at least one"
            raise ValueError(message) from error
        return found
    if tag.startswith("!"):
        raise ValueError(f"expected {SET}")
    return values


TAGS: Final = Tags(parse_exact_scalar, parse_exact_list, {Marker.ABSENT.value: Marker.ABSENT})


def list_keys(path: Sequence[str | int]) -> list[str]:
    """List the possible keys of the map that holds the last key of a path in a scenario file."""
    form = ScenarioForm if len(path) == 1 else ChangeForm if "update" in path[:-1] else StepForm
    return [one.alias or name for name, one in form.model_fields.items()]


T = TypeVar("T")
TYPES: Final = {"S": "text", "N": "number", "B": "binary"}
EXPECTED: Final = {
    "dict_type": "a map",
    "model_type": "a map",
    "list_type": "a list",
    "string_type": "text",
    "int_type": "a whole number",
    "greater_than_equal": "a whole number of at least 0",
}


class ScenarioReader:
    """A reader of one file, which notes the mistakes in it."""

    def __init__(self, file: File, rules: Rules | None = None) -> None:
        self.file = file
        self.rules = rules or Rules({}, {}, {})
        self.wrong: list[tuple[Location, str]] = []
        self._document = Document()

    def error(self, *others: ScenarioReader) -> UserError:
        """Make the error that lists all mistakes, those of other files first."""
        return UserError("\n".join(line for one in (*others, self) for line in one.list_mistakes()))

    def list_mistakes(self) -> Iterator[str]:
        """List the mistakes in the order of the file, in words."""
        for location, message in sorted(self.wrong, key=lambda one: (one[0].line, one[0].column)):
            keys = location.format_path()
            yield f"{self.file}:{location.line}:{location.column}" + (f" · {keys}" if keys else "") + f"\n  {message}"

    def say(self, location: Location, message: str) -> None:
        """Note a mistake."""
        self.wrong.append((location, escape_invisible(message)))

    # ------------------------------------------------------------ places
    def location(self, *keys: str | int) -> Location:
        return self._document.value(*self._path_in_file(keys))

    def locate_key(self, *keys: str | int) -> Location:
        """Return the location of the key of a value."""
        return self._document.key(*self._path_in_file(keys))

    def _path_in_file(self, keys: KeyPath) -> KeyPath:
        """The key path in the file, where a list of one may be written alone."""
        value, written = self._document.data, list[str | int]()
        for key in keys:
            if isinstance(key, int) and not isinstance(value, list):
                continue
            written.append(key)
            try:
                value = value[key]
            except (KeyError, IndexError, TypeError):
                value = None
        return tuple(written)

    def names(
        self, keys: KeyPath, what: str, given: Mapping[str, T], known: Collection[str]
    ) -> Iterator[tuple[str, KeyPath, T]]:
        """Yield the names in a map, each with its key path and value. An unknown name is noted as a mistake."""
        for name, value in given.items():
            if name not in known:
                self.say(self.locate_key(*keys, name), explain_unknown_name(what, name, known))
            yield name, (*keys, name), value

    def tables(self, keys: KeyPath, given: Mapping[str, Sequence[T]]) -> Iterator[tuple[Table, KeyPath, T]]:
        """Yield the entries in a map from table to entries, each with its table and key path."""
        for name, at, values in self.names(keys, "table", given, self.rules.tables):
            for index, value in enumerate(values if name in self.rules.tables else ()):
                yield self.rules.tables[name], (*at, index), value

    # ------------------------------------------------------------ shape
    def read_form(self, form: TypeAdapter[T]) -> T | None:
        """Read the file; None if it does not have this shape. Raises UserError if it cannot be read."""
        problems = Problems()
        document = read_document(read_text(self.file), problems, TAGS)
        for problem in problems.sort_problems():
            self.say(problem.location, problem.message + (f" ({problem.cure})" if problem.cure else ""))
        if document is None or self.wrong:
            return None
        self._document = document
        try:
            return form.validate_python({} if document.data is None else document.data)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                self._note_mistake(detail)
        return None

    def _note_mistake(self, detail: ErrorDetails) -> None:
        keys = self._path_in_file(detail["loc"])
        if detail["type"] == "missing":
            self.say(self.location(*keys[:-1]), f"{keys[-1]!r} is missing")
        elif detail["type"] == "extra_forbidden":
            self.say(self.locate_key(*keys), explain_unknown_name("key", str(keys[-1]), list_keys(keys)))
        else:
            message = f"expected {EXPECTED.get(detail['type'], 'something else')}, found {name_type(detail['input'])}"
            self.say(self.location(*keys), message)

    # ------------------------------------------------------------ values
    def value(self, keys: KeyPath, value: Any) -> AttributeValue | None:
        """Convert a value to DynamoDB's form; None after a noted mistake."""
        if value is Marker.ABSENT:
            self.say(self.location(*keys), "<absent> goes with expect and set: elsewhere, leave the attribute out")
            return None
        try:
            return make_raw_value(value)
        except UserError as error:
            self.say(self.location(*keys), str(error))
            return None

    def values(self, keys: KeyPath, given: Mapping[str, Any]) -> dict[str, AttributeValue]:
        found = {name: self.value((*keys, name), value) for name, value in given.items()}
        return {name: value for name, value in found.items() if value is not None}

    def key(self, table: Table, keys: KeyPath, given: Mapping[str, Any], *, alone: bool = False) -> ItemKey | None:
        """Return the key in an item; None after a noted mistake. `alone`: the item must have nothing else."""
        names = [attribute.name for attribute in table.key]
        noted = len(self.wrong)
        key = table.key_of(self.values(keys, {name: given[name] for name in names if name in given}))
        others = [name for name in given if name not in names]
        expected = ", ".join(f"{attribute.name} ({TYPES[attribute.type]})" for attribute in table.key)
        if key is None and len(self.wrong) == noted:
            found = ", ".join(f"{n} ({name_type(given[n])})" for n in names if n in given) or "none of it"
            self.say(self.location(*keys), f"expected the key of table {table.name!r}: {expected}; found {found}")
        elif alone and others:
            message = f"expected the key of table {table.name!r} alone: {expected}; found {', '.join(others)} too"
            self.say(self.locate_key(*keys, others[0]), message)
        return key

    def path(self, keys: KeyPath, text: str) -> Path | None:
        try:
            return parse_path(text)
        except UserError as error:
            self.say(self.locate_key(*keys), str(error))
            return None

    def read_expected_values(self, keys: KeyPath, given: Mapping[str, Any]) -> Wanted:
        paths = ((name, self.path((*keys, name), name)) for name in given)
        return {
            path: None if given[name] is Marker.ABSENT else self.value((*keys, name), given[name])
            for name, path in paths
            if path is not None
        }

    # ------------------------------------------------------------ actions
    def puts(self, keys: KeyPath, given: ByTable) -> Iterator[Put]:
        """Yield the puts of whole items."""
        for table, at, item in self.tables(keys, given):
            key = self.key(table, at, item)
            if key is not None:
                yield Put(key, self.values(at, item), ())

    def actions(self, here: KeyPath, step: StepForm) -> Iterator[Action]:
        yield from self.puts((*here, "put"), step.put)
        for table, at, change in self.tables((*here, "update"), step.update):
            key = self.key(table, (*at, "key"), change.key, alone=True)
            sets = self.read_expected_values((*at, "set"), change.sets)
            removes = [self.path((*at, "remove"), text) for text in change.remove]
            if key is not None:
                set_paths = tuple((path, value) for path, value in sets.items() if value is not None)
                gone = (*(path for path in removes if path), *(path for path, value in sets.items() if value is None))
                yield Update(key, set_paths, gone, ())
        for word, items in (("delete", step.delete), ("expire", step.expire)):
            for table, at, item in self.tables((*here, word), items):
                key = self.key(table, at, item, alone=True)
                if key is not None:
                    yield Delete(key, ()) if word == "delete" else Expire(key)

    def data(self) -> tuple[Put, ...]:
        """Read the items of a file like data.yaml. Raises UserError if it cannot be read."""
        return tuple(self.puts((), self.read_form(TypeAdapter(ByTable)) or {}))

    # ------------------------------------------------------------ expectations
    def step(self, here: KeyPath, say: str, actions: tuple[Action, ...], form: ExpectForm) -> ScenarioStep:
        names, rules = self.names, self.rules
        calls = names((*here, "expect_calls"), "call rule", form.expect_calls, rules.functions)
        failures = names((*here, "expect_failures"), "rule", form.expect_failures, rules.rules)
        return ScenarioStep(
            say,
            self.location(*here),
            actions,
            tuple(self._items(here, form)),
            tuple(ExpectedCalls(self.location(*at), name, times) for name, at, times in calls),
            frozenset((name, reason) for name, _, reasons in failures for reason in reasons),
        )

    def _items(self, here: KeyPath, form: ExpectForm) -> Iterator[ExpectedItem]:
        for word, items in (("expect", form.expect), ("expect_gone", form.expect_gone)):
            for table, at, given in self.tables((*here, word), items):
                key = self.key(table, at, given, alone=word == "expect_gone")
                if key is not None:
                    names = {attribute.name for attribute in table.key}
                    wanted = self.read_expected_values(
                        at, {name: value for name, value in given.items() if name not in names}
                    )
                    yield ExpectedItem(self.location(*at), key, wanted if word == "expect" else None)
