"""A foreign document with its places: a JSON pointer for each value, and the line if the document is YAML.

Invariant: a reader gets the type that it requests, or an error with file, place, expected and found value, and a cure.
No error quotes a value that may be of an item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from sync_rules.language.problems import Problems
from sync_rules.language.yaml_source import (
    Document,
    KeyPath,
    Tags,
    UnreadTagError,
    parse_list,
    parse_scalar,
    read_document,
)
from sync_rules.language.yaml_source import name_type as typed
from sync_rules.model import json_bytes
from sync_rules.model.errors import UserError

AGAIN: Final = "export the file again, or correct this place"
SHORT_MAX: Final = 60


class ImportedFileError(UserError):
    """A file that cannot be imported: where, what was expected and found, and the cure."""

    def __init__(self, file: str, place: str, expected: str, found: str, cure: str) -> None:
        where = f"{file} · {place}" if place else file
        super().__init__(f"{where}\n  expected {expected}; found {found}\n  cure: {cure}")
        self.file, self.place, self.expected, self.found, self.cure = file, place, expected, found, cure


def quote_name(text: str) -> str:
    """Return a name from a document, on one line, for messages and comments."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return repr(shown if len(shown) <= SHORT_MAX else f"{shown[:SHORT_MAX]}...")


def format_pointer(path: KeyPath) -> str:
    """Return the JSON pointer of a place (RFC 6901)."""
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return "".join(f"/{''.join(char if char.isprintable() else '?' for char in part)}" for part in parts)


@dataclass(frozen=True)
class DocumentNode:
    """A value of a document, and its place. A missing value is None."""

    value: Any
    file: str
    path: KeyPath = ()
    line_of: Callable[[KeyPath], str] = lambda _: ""

    @property
    def place(self) -> str:
        """The place for a message: the line if known, and the JSON pointer."""
        return " · ".join(part for part in (self.line_of(self.path), format_pointer(self.path)) if part)

    @property
    def text_or_empty(self) -> str:
        """The text of this node; "" for any other value."""
        return self.value if isinstance(self.value, str) else ""

    def fail(self, expected: str, cure: str = AGAIN, found: str = "") -> NoReturn:
        """Raise ImportedFileError with what was expected here."""
        raise ImportedFileError(self.file, self.place, expected, found or typed(self.value), cure)

    def of(self, value: Any) -> DocumentNode:
        """Return a node for another value at the same place, such as a resolved value."""
        return DocumentNode(value, self.file, self.path, self.line_of)

    def __getitem__(self, key: str | int) -> DocumentNode:
        """The value under a key; a node of None where there is none."""
        inner = self.value
        if isinstance(inner, dict):
            value = inner.get(key)
        else:
            value = inner[key] if isinstance(inner, list) and isinstance(key, int) and key < len(inner) else None
        return DocumentNode(value, self.file, (*self.path, key), self.line_of)

    def __bool__(self) -> bool:
        """True if there is a value."""
        return self.value is not None

    def require_map(self, expected: str = "a map") -> DocumentNode:
        """Return the node itself. Raises ImportedFileError unless it holds a map."""
        return self if isinstance(self.value, dict) else self.fail(expected)

    def items(self, expected: str = "a map") -> Iterator[tuple[str, DocumentNode]]:
        """Yield the entries of a map; none if the value is missing."""
        if self:
            for key in self.require_map(expected).value:
                yield str(key), self[key]

    def list(self, expected: str = "a list") -> Iterator[DocumentNode]:
        """Yield the entries of a list; none if the value is missing."""
        if self and not isinstance(self.value, list):
            self.fail(expected)
        for number in range(len(self.value or ())):
            yield self[number]

    def list_entries(self) -> tuple[DocumentNode, ...]:
        """Return the entries of a list, or a single value that is not in a list; none if the value is missing."""
        return tuple(self.list()) if isinstance(self.value, list) else (self,) if self else ()

    def text(self, expected: str = "text", cure: str = AGAIN) -> str:
        """Return a text that is not empty. Raises ImportedFileError for any other value."""
        if not isinstance(self.value, str):
            self.fail(expected, cure)
        if not self.value:
            self.fail(expected, cure, "an empty text")
        return str(self.value)


# ---------------------------------------------------------------- reading
def parse_json_document(text: str, file: str) -> DocumentNode:
    """Parse a JSON text into a document. Raises ImportedFileError."""
    try:
        return DocumentNode(json_bytes.parse_json(text), file)
    except ValueError as error:
        line, column = getattr(error, "lineno", 0), getattr(error, "colno", 0)
        place = f"{line}:{column}" if line else ""
        found = str(getattr(error, "msg", error))
        raise ImportedFileError(file, place, "JSON", f"another text: {found}", AGAIN) from error


def parse_yaml_document(text: str, file: str) -> DocumentNode:
    """Parse a YAML text into a document, with CloudFormation's functions in long form. Raises ImportedFileError."""
    problems = Problems()
    document = read_document(text, problems, Tags(scalar=_make_scalar, sequence=_make_sequence))
    if document is None or document.data is None:
        problem = next(iter(problems.sort_problems()), None)
        place = f"{problem.location.line}:{problem.location.column}" if problem else ""
        found = problem.message if problem else "nothing"
        cure = problem.cure if problem and problem.cure else "correct the syntax, or give another file"
        raise ImportedFileError(file, place, "JSON or YAML", found, cure)
    return DocumentNode(document.data, file, (), lambda path: _format_line(document, path))


def _format_line(document: Document, path: KeyPath) -> str:
    location = document.value(*path)
    return f"{location.line}:{location.column}"


def _make_scalar(tag: str, text: str) -> Any:
    return _make_function(tag, text.split(".", 1) if tag == "!GetAtt" else text, lambda: parse_scalar(tag, text))


def _make_sequence(tag: str, values: list[Any]) -> Any:
    return _make_function(tag, values, lambda: parse_list(tag, values))


def _make_function(tag: str, argument: Any, plain: Callable[[], Any]) -> Any:
    """A tag such as !Sub as the function of CloudFormation in its long form; any other value as it is."""
    if tag.startswith("!"):
        word = tag.removeprefix("!")
        return {word if word in ("Ref", "Condition") else f"Fn::{word}": argument}
    try:
        return plain()
    except UnreadTagError:
        return argument
