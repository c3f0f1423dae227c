"""YAML with the location of every key and value, for the messages about them.

YAML 1.2, one document, plain values only: `on`, `yes` and `no` are words. A key that comes twice is a problem, not a
silent overwrite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from sync_rules.language.problems import Location, Problems
from sync_rules.model import json_bytes

VALUES_MAX = 100_000  # by aliases: an alias of an alias of an alias can stand for any number of values
FILE_MAX_LEVELS = 40
KeyPath = tuple[str | int, ...]
TYPE_NAMES = {dict: "a map", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
CURES = {  # for what YAML says of the mistakes that templates and tabs lead to
    "flow mapping": 'text with braces needs quotes inside {...}, such as "USER#{user_id}"',
    "'\\t'": "indent with spaces",
    "another document": "keep one document, and remove the others with their ---",
}
OWN_TAG_CURE = "remove the tag, or write a value of its type"
TAGS_CURE = "write the value itself; ${VAR} takes a name from the environment"
CONSTANTS = {"true": True, "false": False}


def _rename(by_path: dict[KeyPath, Any], key: KeyPath, meant: str) -> None:
    for path in [path for path in by_path if path[: len(key)] == key]:
        by_path[(*key[:-1], meant, *path[len(key) :])] = by_path.pop(path)


def name_type(value: Any) -> str:
    return "nothing" if value is None else TYPE_NAMES.get(type(value), type(value).__name__)


@dataclass
class Document:
    """The values of a YAML file, and the locations of its keys (`starts`) and of its values (`locations`). `numbers`:
    the numbers as written, because a float loses digits.
    """

    data: Any = None
    starts: dict[KeyPath, Location] = field(default_factory=dict)
    locations: dict[KeyPath, Location] = field(default_factory=dict)
    text_at: dict[KeyPath, int] = field(default_factory=dict)  # columns before the first letter, for one-line text
    numbers: dict[KeyPath, str] = field(default_factory=dict)

    def value(self, *path: str | int) -> Location:
        """Return the location of a value, or of the nearest value above it if the file has no such value."""
        for length in range(len(path), -1, -1):
            location = self.locations.get(path[:length])
            if location is not None:
                return Location(location.line, location.column, path)
        return Location(key_path=path)

    def key(self, *path: str | int) -> Location:
        return self.starts.get(path) or self.value(*path)

    def names(self, section: str) -> list[str]:
        entries = self.data.get(section)
        return list(entries) if isinstance(entries, dict) else []

    def rename(self, meant: str, *key: str) -> None:
        """Read the key at this path under the name `meant`: it is misspelled, or a former name."""
        parent = reduce(getitem, key[:-1], self.data)
        values = {meant if name == key[-1] else name: value for name, value in parent.items()}
        parent.clear()
        parent.update(values)
        for table in (self.starts, self.locations, self.text_at, self.numbers):
            _rename(table, key, meant)

    def inside(self, offset: int, *path: str | int) -> Location:
        """Return the location of a letter in a one-line text, or of the text if the letter's is unknown."""
        location = self.value(*path)
        quote = self.text_at.get(path)
        return location if quote is None else Location(location.line, location.column + quote + offset, path)


class UnreadTagError(ValueError):
    """A tag that only another program understands, such as CloudFormation's !Ref."""


def parse_scalar(tag: str, text: str) -> Any:
    """Parse a scalar of the core schema. A date is text. Raises UnreadTagError for any other tag."""
    match tag:
        case "null":
            return None
        case "bool":
            return CONSTANTS[text.lower()]
        case "int":
            digits = text.replace("_", "")
            return int(digits, 10 if digits.lstrip("+-").isdigit() else 0)
        case "float":
            return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
    if tag not in ("", "str", "timestamp", "merge", "value"):
        raise UnreadTagError(tag)
    return text


def parse_list(tag: str, values: list[Any]) -> Any:
    """Return a list as it is. Raises UnreadTagError for a list with a tag."""
    if tag not in ("", "seq"):
        raise UnreadTagError(tag)
    return values


@dataclass(frozen=True)
class Tags:
    """Conversions of scalars and of lists, by the last word of their tag (`int` of !!int, but `!set` of !set).

    Both raise ValueError or KeyError for a text that does not fit its tag. `words`: the values of unquoted words that
    mean something else.
    """

    scalar: Callable[[str, str], Any] = parse_scalar
    sequence: Callable[[str, list[Any]], Any] = parse_list
    words: Mapping[str, Any] = field(default_factory=dict)


def compose_nodes(text: str) -> tuple[Node | None, Mapping[int, tuple[Node, Any]]]:
    """Return the nodes of a document, which callers must not change, and its aliases. Raises the parser's errors."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _AliasComposer
    yaml.composer.warn_double_anchors = False  # an anchor may be used again; the nearest before an alias counts
    node: Node | None = yaml.compose(text)
    return node, yaml.composer.aliases


def read_document(text: str, problems: Problems, tags: Tags = Tags()) -> Document | None:
    """Read the document in a text. If it is not one YAML document, report the problem and return None."""
    try:
        node, aliases = compose_nodes(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        location = Location(mark.line + 1, mark.column + 1) if mark else Location()
        said = ", ".join(part for part in (error.context, error.problem) if part)
        cure = next((cure for word, cure in CURES.items() if word in said), None)
        problems.add("SR001", location, f"not YAML: {said}", cure)
        return None
    except ReaderError as error:
        before = text[: error.position]
        location = Location(before.count("\n") + 1, len(before) - before.rfind("\n"))
        what = f"the character {error.character:#04x}" if isinstance(error.character, int) else repr(error.character)
        cure = 'remove it; in text with double quotes it may be written as an escape such as "\\x07"'
        problems.add("SR001", location, f"not YAML: {what} is not allowed in a text file", cure)
        return None
    except RecursionError:
        problems.add("SR001", Location(), "the document nests too many levels", "write it with fewer levels")
        return None
    except (YAMLError, ValueError) as error:
        problems.add("SR001", Location(), f"not YAML: {str(error).splitlines()[0]}")
        return None
    reader = _NodeReader(Document(), problems, tags, aliases)
    if node is not None:
        reader.document.data = reader.convert(node, ())
    return None if reader.left < 0 else reader.document


class _AliasComposer(Composer):
    """Makes nodes. `aliases` has the node of each alias and its own mark, which is not that of its anchor."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader)
        self.aliases: dict[int, tuple[Node, Any]] = {}

    def compose_scalar_node(self, anchor: Any) -> Any:
        node = super().compose_scalar_node(anchor)
        if not node.value.isascii():  # JSON escapes a character beyond 16 bits as two halves
            node.value = node.value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return node

    def compose_node(self, parent: Any, index: Any) -> Any:
        mark = self.parser.peek_event().start_mark if self.parser.check_event(AliasEvent) else None
        node = super().compose_node(parent, index)
        if mark is None or node.end_mark is None:  # an alias inside of its own anchor is refused later
            return node
        node = copy(node)
        self.aliases[id(node)] = node, mark
        return node


class _NodeReader:
    """Turn YAML nodes into values, noting the location of each: within an alias, that of the alias."""

    def __init__(
        self, document: Document, problems: Problems, tags: Tags, aliases: Mapping[int, tuple[Node, Any]]
    ) -> None:
        self.document = document
        self.problems = problems
        self.tags = tags
        self.aliases = aliases
        self.within: Any = None  # the mark of the outermost alias that is being read
        self.left = VALUES_MAX  # values that aliases may still stand for; negative once there are too many

    def convert(self, node: Node, path: KeyPath) -> Any:
        if self.within is not None or id(node) not in self.aliases:
            return self._convert(node, path)
        self.within = self.aliases[id(node)][1]
        value = self._convert(node, path)
        self.within = None
        return value

    def _at(self, node: Node, path: KeyPath) -> Location:
        mark = node.start_mark if self.within is None else self.within
        return Location(mark.line + 1, mark.column + 1, path)

    def _convert(self, node: Node, path: KeyPath) -> Any:
        location = self._at(node, path)
        self.document.locations[path] = location
        if self.left <= 0 or len(path) > FILE_MAX_LEVELS:
            if self.left >= 0:
                limits = f"at most {VALUES_MAX:,} values by aliases, {FILE_MAX_LEVELS} deep"
                message = f"expected {limits}; found more, as when an alias holds itself"
                self.problems.add("SR003", Location(location.line, location.column), message)
            self.left = -1  # nothing more is read
            return None
        self.left -= self.within is not None
        tag = (node.tag or "").rpartition(":")[2]
        if isinstance(node, MappingNode):
            if tag != "map":
                self._add_unread(node, location)
            return self._map(node.value, path)
        if isinstance(node, SequenceNode):
            return self._list(node, tag, location)
        assert isinstance(node, ScalarNode)
        return self._scalar(node, tag, location)

    def _list(self, node: SequenceNode, tag: str, location: Location) -> Any:
        values = [self.convert(child, (*location.key_path, index)) for index, child in enumerate(node.value)]
        try:
            return self.tags.sequence(tag, values)
        except UnreadTagError:
            self._add_unread(node, location)
        except ValueError as error:
            message = f"not YAML: a list that is not of its tag {tag}: {error}"
            self.problems.add("SR001", location, message, OWN_TAG_CURE)
        return values

    def _scalar(self, node: ScalarNode, tag: str, location: Location) -> Any:
        one_line = self.within is None and node.start_mark.line == node.end_mark.line
        if one_line and node.style in (None, "", "'", '"'):
            self.document.text_at[location.key_path] = 1 if node.style else 0
        if not self._is_unicode(node.value, location):
            return None
        if tag in ("int", "float"):
            self.document.numbers[location.key_path] = node.value
        if node.style in (None, "") and node.value in self.tags.words:
            return self.tags.words[node.value]
        try:
            return self.tags.scalar(tag, node.value)
        except UnreadTagError:
            self._add_unread(node, location)
            return node.value
        except (ValueError, KeyError):  # only an explicit tag can be wrong about its text
            message = f"not YAML: {node.value!r} is not of its tag {node.tag}"
            self.problems.add("SR001", location, message, OWN_TAG_CURE)
            return None

    def _is_unicode(self, text: str, location: Location) -> bool:
        try:
            json_bytes.require_unicode(text)
        except ValueError as error:
            cure = "write the character itself, or both halves of the pair"
            self.problems.add("SR001", location, f"not YAML: {error}", cure)
            return False
        return True

    def _add_unread(self, node: Node, location: Location) -> None:
        tag = str(node.tag).replace("tag:yaml.org,2002:", "!!")
        self.problems.add("SR001", location, f"sync-rules does not read YAML tags, found {tag}", TAGS_CURE)

    def _map(self, pairs: Sequence[tuple[Node, Node]], path: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, child in pairs:
            here = self._at(key, path)
            if not isinstance(key, ScalarNode):
                self.problems.add("SR004", here, "a key must be a word, found a map or a list: quote text with braces")
                continue
            name = str(key.value)
            if not self._is_unicode(name, here):
                continue
            inner = (*path, name)
            if name in values:
                first = self.document.starts[inner].line
                message = f"{name!r} occurs twice: the first is in line {first}"
                self.problems.add("SR002", here.at(name), message)
                continue
            self.document.starts[inner] = here.at(name)
            values[name] = self.convert(child, inner)
            if child.start_mark.index == child.end_mark.index:  # nothing: its mark is that of whatever comes next
                self.document.locations[inner] = here.at(name)
        return values
