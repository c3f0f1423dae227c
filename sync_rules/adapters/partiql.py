"""Guarded updates as PartiQL statements, for BatchExecuteStatement. The only place that knows their form.

Invariant: a statement does exactly what the UpdateItem would. An update that PartiQL cannot express, or not for
certain, is sent as an UpdateItem. Names are quoted, values are parameters only. UPDATE never creates an item, so the
key in the WHERE is the guard that it exists.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.update.html
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sync_rules.model.entities import Table
from sync_rules.model.sizes import count_value_bytes
from sync_rules.model.values import AttributeValue, Path
from sync_rules.model.writes import Test, Update

STATEMENT_MAX_CHARACTERS: Final = 8192  # of BatchStatementRequest
BATCHED_MAX_BYTES: Final = 100_000  # of a statement's values: a request of 25 stays far under its 16 MB
# As documented: SET with commas (ql-reference.multiplestatements.batching), REMOVE only with the verb repeated
# (ql-reference.update).
BETWEEN_SETS: Final = ", "
BETWEEN_REMOVES: Final = " REMOVE "
TEXTS_KEPT_MAX: Final = 1_024  # of at most 8 KB each

Compared = tuple[Test, Path]


@dataclass(slots=True)  # as a Change: made for every copy, and never changed
class Statement:
    """One UPDATE, and its parameters in the order of their marks."""

    text: str
    parameters: tuple[AttributeValue, ...]

    def request(self) -> dict[str, Any]:
        """Return the statement as an entry of BatchExecuteStatement. If its condition fails, the answer has the
        item.
        """
        return {
            "Statement": self.text,
            "Parameters": list(self.parameters),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


def make_statement(update: Update, table: Table) -> Statement | None:
    """Make the statement for an update; None if it must be sent as an UpdateItem."""
    if update.adds or update.discards:
        return None
    names = tuple([name for name, _, _ in update.key.values])
    guard: list[Compared] = []
    compared: list[AttributeValue] = []
    for test, path, value in update.guard:
        if test is Test.EXISTS and len(path) == 1 and path[0] in names:
            continue  # the whole key in the WHERE says that the item exists
        guard.append((test, path))
        if value is not None:
            compared.append(value)
            if _has_null(value):
                return None
    paths, values = zip(*update.sets, strict=True) if update.sets else ((), ())
    text = _make_text(table.physical_name, names, paths, update.removes, tuple(guard))
    if text is None or sum(map(count_value_bytes, (*values, *compared))) > BATCHED_MAX_BYTES:
        return None
    return Statement(text, (*values, *update.key.attributes().values(), *compared))


@lru_cache(maxsize=TEXTS_KEPT_MAX)
def _make_text(
    table: str, key: tuple[str, ...], sets: tuple[Path, ...], removes: tuple[Path, ...], guard: tuple[Compared, ...]
) -> str | None:
    """The text, which all updates of one rule share; None if there is none."""
    if ":" in table:  # an ARN, which no page says can be quoted
        return None
    if not all(map(_is_quotable, (*sets, *removes, *(path for _, path in guard)))):
        return None
    if any(test is Test.IS_MAP for test, _ in guard):
        return None
    clauses = (
        "SET " + BETWEEN_SETS.join(f"{_quote_path(path)}=?" for path in sets) if sets else "",
        "REMOVE " + BETWEEN_REMOVES.join(map(_quote_path, removes)) if removes else "",
    )
    where = [*(f"{_quote(name)}=?" for name in key), *(_format_condition(test, path) for test, path in guard)]
    text = f"UPDATE {_quote(table)} {' '.join(filter(None, clauses))} WHERE {' AND '.join(where)}"
    return text if len(text) <= STATEMENT_MAX_CHARACTERS else None


def _is_quotable(path: Path) -> bool:
    """Refuse names that an engine may read as a path, because it ignores the quotes around a dot or bracket."""
    return not any("." in name or "[" in name for name in path)


def _has_null(value: AttributeValue) -> bool:
    """True for a value with NULL, which PartiQL compares as SQL does, and an expression as a value."""
    ((kind, content),) = value.items()
    if kind == "M":
        return any(map(_has_null, content.values()))
    return kind == "NULL" or (kind == "L" and any(map(_has_null, content)))


def _format_condition(test: Test, path: Path) -> str:
    if test is Test.ABSENT:
        return f"{_quote_path(path)} IS MISSING"
    return f"{_quote_path(path)} IS NOT MISSING" if test is Test.EXISTS else f"{_quote_path(path)}=?"


def _quote_path(path: Path) -> str:
    return ".".join(map(_quote, path))


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
