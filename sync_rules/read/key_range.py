"""A range of sort keys: from a value, to a value, or between two; both ends belong to it.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.KeyConditionExpressions.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sync_rules.adapters.expressions import Expressions
from sync_rules.model.errors import UserError
from sync_rules.model.python_values import make_plain_value
from sync_rules.model.values import AttributeValue

KEY_TYPES = frozenset("SNB")


@dataclass(frozen=True)
class KeyRange:
    """A sort key's name, and its least and greatest value; None means that the range has no such end. DynamoDB compares
    texts by their UTF-8 bytes, numbers as numbers, binary by bytes.
    """

    name: str
    least: AttributeValue | None = None
    greatest: AttributeValue | None = None

    def __post_init__(self) -> None:
        types = {kind for end in self._list_ends() for kind in end}
        if len(types) != 1 or not types <= KEY_TYPES:
            found = " and ".join(sorted(types)) or "nothing"
            raise UserError(f"the range of {self.name!r} is of {found}: expected texts, numbers or binary, of one type")
        if self.least is not None and self.greatest is not None and _order(self.least) > _order(self.greatest):
            raise UserError(f"the range of {self.name!r} ends before it begins")

    def _list_ends(self) -> tuple[AttributeValue, ...]:
        return tuple(end for end in (self.least, self.greatest) if end is not None)

    def term(self, expressions: Expressions) -> str:
        """Return the range as a term of a key condition."""
        path, ends = expressions.path((self.name,)), [expressions.value(end) for end in self._list_ends()]
        if len(ends) == 1:
            return f"{path} {'>=' if self.greatest is None else '<='} {ends[0]}"
        return f"{path} BETWEEN {ends[0]} AND {ends[1]}"

    def holds(self, value: Mapping[str, Any]) -> bool:
        """Return True if a value of the key attribute is in the range."""
        if any(end.keys() != value.keys() for end in self._list_ends()):
            return False
        order = _order(value)
        return (self.least is None or _order(self.least) <= order) and (
            self.greatest is None or order <= _order(self.greatest)
        )


def _order(value: Mapping[str, Any]) -> Any:
    """The value as DynamoDB sorts it."""
    found = make_plain_value(value)
    return found.encode() if isinstance(found, str) else found
