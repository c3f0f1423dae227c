"""The parts of a condition: its conjuncts, the values that it sets, and the attributes that it reads."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, cast

import jmespath
from jmespath.lexer import Lexer

from sync_rules.model.numbers import format_number
from sync_rules.model.values import AttributeValue
from sync_rules.model.where_check import Node, list_children, reads_result

OPENING: Final = ("lparen", "lbracket", "lbrace", "filter")
CLOSING: Final = ("rparen", "rbracket", "rbrace")


def list_equalities(text: str) -> tuple[tuple[str, AttributeValue], ...]:
    """List the attributes that a condition requires to equal a text, a number, true or false."""
    found: dict[str, AttributeValue] = {}
    rows = [cast("Node", jmespath.compile(text).parsed)]
    while rows:
        node = rows.pop(0)
        if node["type"] == "and_expression":
            rows = [*node["children"], *rows]
        elif node["type"] == "comparator" and node["value"] == "eq":
            names = [side["value"] for side in node["children"] if side["type"] == "field"]
            values = [side["value"] for side in node["children"] if side["type"] == "literal"]
            if len(names) == len(values) == 1 and isinstance(values[0], str | int | float):
                found.setdefault(names[0], _make_value(values[0]))
    return tuple(found.items())


def list_names(text: str) -> tuple[str, ...]:
    """List the names of an item's own attributes in a condition, each once."""
    rows, found = [cast("Node", jmespath.compile(text).parsed)], dict[str, None]()
    while rows:
        node = rows.pop(0)
        if node["type"] == "field":
            found[node["value"]] = None
        rows = [child for at, child in enumerate(list_children(node)) if not reads_result(node, at)] + rows
    return tuple(found)


def list_conjuncts(text: str) -> tuple[str, ...]:
    """List the conditions that must all hold, as texts: those between && outside of brackets; else the whole text."""
    if cast("Node", jmespath.compile(text).parsed)["type"] != "and_expression":
        return (text.strip(),)
    depth, ends = 0, [0]
    for token in Lexer().tokenize(text):
        depth += (token["type"] in OPENING) - (token["type"] in CLOSING)
        if token["type"] == "and" and depth == 0:
            ends += [token["start"], token["start"] + len("&&")]
    ends.append(len(text))
    return tuple(text[start:end].strip() for start, end in zip(ends[::2], ends[1::2], strict=True))


def _make_value(value: str | float) -> AttributeValue:
    if isinstance(value, bool):
        return {"BOOL": value}
    return {"S": value} if isinstance(value, str) else {"N": format_number(Decimal(repr(value)))}
