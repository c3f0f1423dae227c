"""Attribute values as short texts with a letter for their type, so that equal values are equal texts.

Invariant: two values of one type have one text if DynamoDB regards them as equal. A hash replaces a long value.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from sync_rules.model.json_bytes import parse_json
from sync_rules.model.numbers import normalize_number

LONG: Final = 1_000  # letters of a text that is kept whole
SHOWN: Final = 40  # letters of a longer one
PLAIN_NUMBER: Final = re.compile(r"0|-?[1-9]\d{0,17}")
ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
ESCAPED: Final = re.compile(r"\\(.)")
UNESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "0": "\0"}
STRING, NUMBER, BOOLEAN, NULL, BINARY, MAP, LIST = "s", "n", "b", "z", "x", "m", "l"
SETS: Final = {"SS": "S", "NS": "N", "BS": "X"}
TEXTS: Final = (STRING, NUMBER)  # the types that keys and texts are made of


def write_value(value: Mapping[str, Any]) -> str:
    """Return the text of a value: `sParis`, `n12`, `b1`."""
    for kind, content in value.items():
        if kind == "S":
            return STRING + keep_text(content)
        if kind == "N":
            return NUMBER + respell_number(content)
        if kind == "BOOL":
            return BOOLEAN + ("1" if content else "0")
        if kind == "NULL":
            return NULL
        if kind == "B":
            return BINARY + keep_text(str(content))
        if kind in SETS:
            members = sorted(respell_number(one) if kind == "NS" else str(one) for one in content)
            return SETS[kind] + keep_text(json.dumps(members, ensure_ascii=False))
        if kind in ("M", "L"):
            return write_plain_map(make_plain(value))
    return NULL


def write_plain_map(value: Any) -> str:
    """Return the text of a map or a list whose values are texts already."""
    return (MAP if isinstance(value, dict) else LIST) + keep_text(json.dumps(value, ensure_ascii=False, sort_keys=True))


def read_plain_map(text: str | None) -> dict[str, Any]:
    """Return the map of a typed text; an empty map if the text is shortened or not a map."""
    try:
        return dict(parse_json(unescape(text[1:]))) if text and text[0] == MAP else {}
    except ValueError:
        return {}


def make_plain(value: Mapping[str, Any]) -> Any:
    """Return a map or a list ready for JSON, with the text of each value."""
    if "M" in value:
        return {name: make_plain(inner) for name, inner in value["M"].items()}
    if "L" in value:
        return [make_plain(inner) for inner in value["L"]]
    return write_value(value)


def respell_number(text: str) -> str:
    """Return the canonical spelling of a number."""
    return text if PLAIN_NUMBER.fullmatch(text) else normalize_number(text) or text


def keep_text(text: str) -> str:
    """Return a text that fits between tabs: whole, or its beginning and its hash."""
    if len(text) > LONG:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        text = f"{text[:SHOWN]}…{len(text)}…{digest}"
    return text if text.isprintable() and "\\" not in text else text.translate(ESCAPES)


def unescape(text: str) -> str:
    """Return the original of a text from `keep_text`."""
    return ESCAPED.sub(lambda match: UNESCAPED.get(match[1], match[1]), text) if "\\" in text else text


def parse_value(text: str | None) -> Mapping[str, str] | None:
    """Return the text or the number of a typed text, in DynamoDB's JSON; None for any other value."""
    if text is None or text[0] not in TEXTS:
        return None
    return {"S": unescape(text[1:])} if text[0] == STRING else {"N": text[1:]}
