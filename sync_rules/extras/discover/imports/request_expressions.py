"""Expressions of DynamoDB's requests: conditions that are joined by AND, and the attributes of updates and projections.

Invariant: an expression is read whole, or NotReadError says what of it is not read.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.extras.discover.imports.foreign_document import quoted

TOKEN: Final = re.compile(r"\s*(<>|<=|>=|[=<>(),+-]|[#:]?[A-Za-z0-9_][A-Za-z0-9_.\[\]#]*)")
NAME: Final = re.compile(r"[#A-Za-z0-9_][A-Za-z0-9_.\[\]#]*")
COMPARED: Final = ("=", "<>", "<", "<=", ">", ">=")
FUNCTIONS: Final = ("begins_with", "contains", "attribute_exists", "attribute_not_exists")
JOINED: Final = ("or", "not")
CLAUSES: Final = ("set", "remove", "add", "delete")
Value = Mapping[str, Any]


class NotReadError(Exception):
    """A request that cannot be said as a pattern: the reason."""


@dataclass(frozen=True)
class RequestCondition:
    """A condition on one attribute. `operator` is a comparison, `between`, `in` or a function."""

    path: tuple[str, ...]
    operator: str
    values: tuple[Value, ...] = ()

    @property
    def text(self) -> str:
        """The condition for people, without its values."""
        return f"{'.'.join(self.path)} {self.operator}"


@dataclass(frozen=True)
class Names:
    """The names and values behind #name and :value."""

    names: Mapping[str, Any]
    values: Mapping[str, Any]

    def path(self, text: str) -> tuple[str, ...]:
        """The names of a path, those behind #name too. Raises NotReadError for a name that is not given."""
        return tuple(self._name(part.partition("[")[0]) for part in text.split("."))

    def _name(self, part: str) -> str:
        name = self.names.get(part) if part.startswith("#") else part
        if not isinstance(name, str) or not name:
            raise NotReadError(f"its request has no name for {quoted(part)}")
        return name

    def value(self, text: str) -> Value:
        """The value behind :value. Raises NotReadError for one that is not given."""
        value = self.values.get(text)
        if not isinstance(value, dict) or len(value) != 1:
            raise NotReadError(f"its request has no value for {quoted(text)}")
        return value


def tokens(text: str) -> list[str]:
    """The words and signs of an expression. Raises NotReadError for a sign that no expression has."""
    found, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = TOKEN.match(text, position)
        if match is None:
            raise NotReadError(f"{quoted(text)} is no expression")
        found.append(match[1])
        position = match.end()
    return found


def conditions(text: str, known: Names) -> list[RequestCondition]:
    """The conditions of an expression that must all hold. Raises NotReadError for OR, NOT and what is no condition."""
    words = tokens(text)
    if any(word.lower() in JOINED for word in words):
        raise NotReadError(f"{quoted(text)} has OR or NOT")
    return list(_ConditionParser(text, words, known).all())


class _ConditionParser:
    """Reads conditions one after another. Parentheses around conditions change nothing where all are to hold."""

    def __init__(self, text: str, words: Sequence[str], known: Names) -> None:
        self.text, self.words, self.known = text, words, known
        self.place = 0

    def all(self) -> Iterator[RequestCondition]:
        while True:
            self._skip("(")
            yield self._condition()
            self._skip(")")
            if self.place == len(self.words):
                return
            self._take("and")

    def _condition(self) -> RequestCondition:
        word = self._next()
        if word.lower() in FUNCTIONS and self._peek() == "(":
            return self._function(word.lower())
        if not NAME.fullmatch(word) or self._peek() == "(":
            self._fail()
        path = self.known.path(word)
        operator = self._next().lower()
        if operator in COMPARED:
            return RequestCondition(path, operator, (self._value(),))
        if operator == "between":
            least = self._value()
            self._take("and")
            return RequestCondition(path, operator, (least, self._value()))
        if operator != "in":
            self._fail()
        self._take("(")
        return RequestCondition(path, operator, self._values())

    def _function(self, name: str) -> RequestCondition:
        self._take("(")
        path = self.known.path(self._next())
        if self._peek() == ")":
            self._take(")")
            return RequestCondition(path, name)
        self._take(",")
        return RequestCondition(path, name, self._values())

    def _values(self) -> tuple[Value, ...]:
        found = [self._value()]
        while self._peek() == ",":
            self._take(",")
            found.append(self._value())
        self._take(")")
        return tuple(found)

    def _value(self) -> Value:
        word = self._next()
        return self.known.value(word) if word.startswith(":") else self._fail()

    def _peek(self) -> str:
        return self.words[self.place] if self.place < len(self.words) else ""

    def _next(self) -> str:
        word = self._peek()
        self.place += 1
        return word or self._fail()

    def _take(self, wanted: str) -> None:
        if self._next().lower() != wanted:
            self._fail()

    def _skip(self, sign: str) -> None:
        while self._peek() == sign:
            self.place += 1

    def _fail(self) -> Any:
        raise NotReadError(f"{quoted(self.text)} is not read as a list of conditions")


def projected(text: str, known: Names) -> list[str]:
    """The attributes of a projection, each once."""
    return list(dict.fromkeys(known.path(part.strip())[0] for part in text.split(",") if part.strip()))


def updated(text: str, known: Names) -> list[str]:
    """The attributes that an update expression changes, each once. Raises NotReadError where one cannot be seen."""
    found: dict[str, None] = {}
    clause, depth, first = "", 0, False
    for word in tokens(text):
        if word in "()":
            depth += 1 if word == "(" else -1
        elif not depth and word.lower() in CLAUSES:
            clause, first = word.lower(), True
        elif not depth and word == ",":
            first = True
        elif first or not clause:
            if not clause or not NAME.fullmatch(word):
                raise NotReadError(f"{quoted(text)} is no update expression")
            found.setdefault(known.path(word)[0])
            first = False
    return list(found)
