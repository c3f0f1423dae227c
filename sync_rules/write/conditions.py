"""Conditions of the application: what they may hold, and when they need parentheses next to the guard of the rules.

Invariant: a condition keeps its place in the whole condition. It closes no parenthesis that it did not open, and it
names no placeholder of sync-rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sync_rules.model.json_bytes import is_encodable
from sync_rules.model.python_values import HALF_PAIR, HALF_PAIR_CURE
from sync_rules.model.values import AttributeValue
from sync_rules.write.errors import WriteError

PLACEHOLDER: Final = re.compile("[#:]sync_")
TOKEN: Final = re.compile(r"[#:]?[^\s()=<>,]+|[()]")


@dataclass(frozen=True, slots=True)
class OwnCondition:
    """A condition of the application, in boto3's form."""

    text: str
    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, AttributeValue] = field(default_factory=dict)


def check_condition(condition: OwnCondition) -> OwnCondition:
    """Return the condition unchanged. Raises WriteError if it could leave its place in the whole condition."""
    texts = (condition.text, *condition.names, *condition.names.values())
    if not all(isinstance(text, str) and is_encodable(text) for text in texts):
        raise WriteError(HALF_PAIR, HALF_PAIR_CURE)
    if any(PLACEHOLDER.search(text) for text in (condition.text, *condition.names, *condition.values)):
        raise WriteError("a condition with a placeholder of sync-rules, #sync_ or :sync_", "give it another name")
    depths = [0, *(depth for _, depth in _list_tokens(condition.text))]
    if min(depths) < 0 or depths[-1]:
        raise WriteError("a condition whose parentheses do not match", "close each parenthesis that it opens")
    return condition


def has_or(text: str) -> bool:
    """Return True if a condition has an OR outside all parentheses. Others need no parentheses: DynamoDB refuses
    redundant parentheses.
    """
    return any(depth == 0 and token.upper() == "OR" for token, depth in _list_tokens(text))


def _list_tokens(text: str) -> Iterator[tuple[str, int]]:
    """Each token of a condition, with the depth of parentheses after it."""
    depth = 0
    for token in TOKEN.findall(text):
        depth += {"(": 1, ")": -1}.get(token, 0)
        yield token, depth
