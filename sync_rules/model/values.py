"""Attribute values as DynamoDB's low-level API has them: {"S": "x"}, {"N": "1"}, {"M": {...}}, binary as bytes.

Invariant: no function changes a value. Items travel through the whole pipeline in this raw form, so a copy has, type
for type and digit for digit, the value that was read from its source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from sync_rules.model.errors import UserError

AttributeValue = Mapping[str, Any]
Item = Mapping[str, AttributeValue]
Path = tuple[str, ...]
Names = frozenset[str] | None  # of attributes; None: all of them

TYPES = {
    "S": "string", "N": "number", "B": "binary", "BOOL": "boolean", "NULL": "null",
    "M": "map", "L": "list", "SS": "string set", "NS": "number set", "BS": "binary set",
}  # fmt: skip
UNQUOTED = re.compile(r'[^."\s\[\]{}]+')
SEGMENT = re.compile(f'"([^"]+)"|({UNQUOTED.pattern})')
BRACES = re.compile(r"\{([^{}]*)\}")
NAMES_CURE = 'write names with one dot between two; a name that has a dot or a blank goes in double quotes: "full.name"'
QUOTE_CURE = "put double quotes around the whole name, or remove them"


def parse_path(text: str) -> Path:
    """Split a document path such as ``address.city`` or ``author."full.name"`` into its map keys.

    List indexes are not part of a path: a copy lives in an attribute or in a map key.

    Raises:
        UserError: when a segment is empty or a quote is left open.
    """
    segments: list[str] = []
    position = 0
    while True:
        match = SEGMENT.match(text, position)
        if match is None and BRACES.match(text, position):
            found = f"{text!r} is not a path: only texts such as {{state}}#{{city}} have fields in braces"
            quote = "a name that has braces itself goes in double quotes"
            bare = BRACES.sub(lambda field: field[1].partition(":")[0].strip(), text)
            named = all(map(UNQUOTED.fullmatch, bare.split(".")))
            raise UserError(found, f"write {bare}; {quote}" if named else quote)
        if match is None:
            found = f"{text!r} is not a path: expected names joined by dots, such as address.city"
            dot = text.endswith(".") and text[:-1] and not text.endswith("..")
            cure = "remove the dot at the end, or write a name behind it" if dot else NAMES_CURE
            raise UserError(found, QUOTE_CURE if text.startswith('"', position) else cure)
        segments.append(match[1] or match[2])
        position = match.end()
        if position == len(text):
            return tuple(segments)
        if text[position] != ".":
            cures = {
                "[": f"write {text[:position]} for the whole list, or put a name that has brackets in double quotes",
                "{": "put a name that has braces in double quotes",
                '"': QUOTE_CURE,
            }
            found = f"{text!r} is not a path: expected a dot at {text[position:]!r}"
            raise UserError(found, cures.get(text[position], NAMES_CURE))
        position += 1


def show_path(path: Path) -> str:
    return ".".join(name if UNQUOTED.fullmatch(name) else f'"{name}"' for name in path)


def escape_invisible(text: str, keep: str = "") -> str:
    """Return a text for people, on one line: invisible characters, and those that change lines or direction, are
    escaped as in JSON. Characters in `keep` stay.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in keep else json.dumps(one)[1:-1] for one in text)


def get(item: Item | None, path: Path) -> AttributeValue | None:
    """Return the value at a path of maps; None if the attribute, or a map on the way, is missing."""
    if item is None:
        return None
    value = item.get(path[0])
    if len(path) == 1:  # as most are
        return value
    for name in path[1:]:
        if value is None or "M" not in value:
            return None
        value = value["M"].get(name)
    return value


def is_same_value(left: AttributeValue | None, right: AttributeValue | None) -> bool:
    """True if DynamoDB regards two values as equal: numbers by value (1.0 is 1), sets without order."""
    if left == right:
        return True
    if left is None or right is None or "S" in left:
        return False
    (left_type, left_value), (right_type, right_value) = *left.items(), *right.items()
    if left_type != right_type:
        return False
    match left_type:
        case "N":
            return _parse_number(left_value) == _parse_number(right_value)
        case "SS" | "BS":
            return set(left_value) == set(right_value)
        case "NS":
            return {_parse_number(n) for n in left_value} == {_parse_number(n) for n in right_value}
        case "M":
            return left_value.keys() == right_value.keys() and all(
                is_same_value(value, right_value[name]) for name, value in left_value.items()
            )
        case "L":
            return len(left_value) == len(right_value) and all(map(is_same_value, left_value, right_value))
    return False


def _parse_number(text: str) -> Decimal | str:
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def has_overlap(left: Path, right: Path) -> bool:
    """True if a write to one path touches the other: they are equal, or one is inside the other."""
    shorter = min(len(left), len(right))
    return left[:shorter] == right[:shorter]


def has_changed(old: Item | None, new: Item | None, paths: Iterable[Path]) -> bool:
    """True if any of the paths has another value in the new item than in the old one."""
    if old is None or new is None:
        return any(get(old, path) != get(new, path) for path in paths)
    for path in paths:  # a loop that calls nothing for most of them: every record comes by here
        if len(path) == 1:
            before, after = old.get(path[0]), new.get(path[0])
        else:
            before, after = get(old, path), get(new, path)
        if before != after and (before is None or after is None or not is_same_value(before, after)):
            return True
    return False


def describe_place(item: Item, path: Path) -> str:
    """Describe the value at a path that needs a map: "nothing", "a map" or "something else"."""
    value = get(item, path)
    return "nothing" if value is None else "a map" if "M" in value else "something else"


def nest(path: Path, value: AttributeValue) -> AttributeValue:
    """Wrap the value in one map per path segment: ("a", "b"), v gives {"M": {"a": {"M": {"b": v}}}}."""
    for name in reversed(path):
        value = {"M": {name: value}}
    return value


def list_elements(value: AttributeValue | None) -> Iterator[AttributeValue]:
    """List the elements of a list in order, or of a set in the order of their texts. Any other value has none."""
    for kind, elements in (value or {}).items():
        if kind == "L":
            yield from elements
        elif kind in ("SS", "NS", "BS"):
            yield from ({kind[0]: element} for element in sorted(elements))


def replace_path(item: Item, path: Path, value: AttributeValue) -> Item:
    """Return an item with another value at a path that it has."""
    name, rest = path[0], path[1:]
    return {**item, name: {"M": replace_path(item[name]["M"], rest, value)} if rest else value}


def drop_path(item: Item, path: Path, *, emptied: bool = False) -> Item:
    """Return an item without a path. A map that becomes empty is dropped too, unless `emptied` keeps it."""
    name, rest = path[0], path[1:]
    value: AttributeValue | None = item.get(name)
    if value is None or (rest and "M" not in value):
        return item
    others = {one: inner for one, inner in item.items() if one != name}
    if not rest:
        return others
    inner = drop_path(value["M"], rest, emptied=emptied)
    return {**others, name: {"M": inner}} if inner or emptied else others
