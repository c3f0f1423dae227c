"""Filters of requests as conditions of a rules file, in JMESPath, with the values that the request has.

https://jmespath.org/specification.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from sync_rules.extras.discover.imports.imported_model import FoundPattern
from sync_rules.extras.discover.imports.request_expressions import Condition, Value
from sync_rules.model.templates import CANONICAL_NUMBER

SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RAW: Final = re.compile(r"[^'`\\\x00-\x1f]{1,80}")  # a text that needs no escape
SIGNS: Final = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
OF_EXAMPLE: Final = "its filter has the values of the example: each call may give others"


def add(made: FoundPattern, filters: Sequence[Condition]) -> None:
    """Say the filter of a request as the `where` of its pattern. A condition that cannot be said leaves a check."""
    texts = [jmespath_of(one) for one in filters]
    made.where = " && ".join(text for text in texts if text)
    made.checks += [f"a filter is left out: {one.text}" for one, text in zip(filters, texts, strict=True) if not text]
    if any(text and one.values for one, text in zip(filters, texts, strict=True)):
        made.checks.append(OF_EXAMPLE)


def jmespath_of(one: Condition) -> str:
    """A condition in JMESPath; "" where it has a value that cannot be said."""
    path = ".".join(part if SIMPLE.fullmatch(part) else json.dumps(part) for part in one.path)
    literals = [_literal(value) for value in one.values]
    if "" in literals:
        return ""
    match one.operator:
        case "attribute_exists":
            return f"{path} != `null`"
        case "attribute_not_exists":
            return f"{path} == `null`"
        case "between":
            return f"{path} >= {literals[0]} && {path} <= {literals[1]}"
        case "in":
            return f"({' || '.join(f'{path} == {literal}' for literal in literals)})"
        case "begins_with":
            return f"({path} && starts_with({path}, {literals[0]}))"
        case "contains":
            return f"({path} && contains({path}, {literals[0]}))"
    return f"{path} {SIGNS[one.operator]} {literals[0]}"


def _literal(value: Value) -> str:
    """A value as JMESPath writes it; "" for a map, a list, a set, binary and a text that needs an escape."""
    ((kind, held),) = value.items()
    if kind == "BOOL" and isinstance(held, bool):
        return f"`{str(held).lower()}`"
    if not isinstance(held, str):
        return ""
    if kind == "N":
        return f"`{held}`" if CANONICAL_NUMBER.fullmatch(held) else ""
    return f"'{held}'" if kind == "S" and RAW.fullmatch(held) else ""
