"""A Query that is iterated to its end, or read page by page, with a token to continue in another request.

Invariant: a page holds as many items as its limit unless the listing ends. Its token continues exactly after its last
item, and only for the same query.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sync_rules.model import json_bytes
from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.values import Item, Path
from sync_rules.read.key_range import KeyRange
from sync_rules.read.reader import Reader

DIGEST_CHARACTERS = 12


@dataclass(frozen=True)
class Page:
    """Some items of a listing, and the token for the next page. `cursor` is None after the last page. The page of a
    token may be empty: DynamoDB finds the end only by reading further. A token contains key values, encoded and not
    encrypted.
    """

    items: list[Any]
    cursor: str | None


@dataclass(frozen=True, eq=False)
class Listing:
    """The items under one key condition, in the order of the sort key. Each iteration queries again, 1 MB at a time. An
    index is eventually consistent: a new item may be missing, and a deleted item may still appear. `rows` and
    `page_of_rows` return raw items in every mode of the reader. `projects`, `consistent` and `whole` are as in
    `Reader.query`.
    """

    reader: Reader
    table: Table
    conditions: KeyConditions | None  # None: no item can have such a key
    index: str | None = None
    backward: bool = False
    keep: Callable[[Item], bool] = field(default=lambda _row: True, repr=False)
    within: KeyRange | None = None
    projects: tuple[Path, ...] | None = None
    consistent: bool | None = None
    whole: bool = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.reader.output, self.rows())

    def rows(self) -> Iterator[Item]:
        """Yield every item, raw."""
        start: Item | None = None
        while True:
            found, start = self.ask(start, None)
            yield from found
            if start is None:
                return

    def page(self, limit: int, cursor: str | None = None) -> Page:
        """Return the first `limit` items, or those after an earlier page's `cursor`.

        Raises:
            UserError: for a limit below 1, or a cursor of another listing.
        """
        rows, after = self.page_of_rows(limit, cursor)
        return Page([self.reader.output(row) for row in rows], after)

    def part(self, limit: int | None, cursor: str | None) -> tuple[list[Item], str | None]:
        """Return every row or, with a limit, the rows of a page, and the next cursor. Raises UserError for a cursor
        without a limit.
        """
        if limit is not None:
            return self.page_of_rows(limit, cursor)
        if cursor is not None:
            raise UserError("a cursor goes with the limit of the pages it came from")
        return list(self.rows()), None

    def page_of_rows(self, limit: int, cursor: str | None = None) -> tuple[list[Item], str | None]:
        """Return a page of raw items and the next cursor, as `page` does."""
        if limit < 1:
            raise UserError(f"limit is {limit}: expected at least 1")
        start = None if cursor is None else self.decode(cursor)
        rows: list[Item] = []
        while True:
            found, start = self.ask(start, limit - len(rows))
            rows += found
            if start is None or len(rows) == limit:
                return rows, None if start is None else self.encode(start)

    def ask(self, start: Item | None, limit: int | None) -> tuple[list[Item], Item | None]:
        """Make one request. Return its rows that pass `keep`, and the key after which the next rows begin (None at the
        end).
        """
        if self.conditions is None:
            return [], None
        rows, after = self.reader.query(
            self.table,
            self.index,
            self.conditions,
            backward=self.backward,
            start=start,
            limit=limit,
            within=self.within,
            projects=self.projects,
            consistent=self.consistent,
            whole=self.whole,
        )
        return [row for row in rows if self.keep(row)], after

    # ------------------------------------------------------------ tokens
    @property
    def _digest(self) -> str:
        within = () if self.within is None else (self.within,)  # a token of before is still one
        query = repr((self.table.physical_name, self.index, self.conditions, self.backward, *within))
        return hashlib.sha256(query.encode()).hexdigest()[:DIGEST_CHARACTERS]

    def encode(self, start: Item) -> str:
        """Return the token of a key."""
        text = json.dumps([self._digest, start], default=_encode_bytes, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def decode(self, cursor: str) -> Item:
        """Return the key of a token. Raises UserError if the token is of another listing."""
        try:
            text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            digest, start = json_bytes.parse_json(text, object_hook=_decode_bytes)
            valid = digest == self._digest and self._is_within(start)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise UserError("not a cursor: expected the `cursor` of an earlier page") from error
        if not valid:
            raise UserError("this cursor is of another listing: expected one of the same query, in the same direction")
        return dict(start)

    def _is_within(self, start: Mapping[str, Any]) -> bool:
        """Tell whether a key belongs to this listing: an altered token cannot reach beyond its own query."""
        if self.conditions is None:
            return False
        name, prefix = self.conditions.begins_with or ("", "")
        if self.within is not None and not self.within.holds(start[self.within.name]):
            return False
        return all(start.get(name) == value for name, value in self.conditions.equals) and (
            not name or start[name]["S"].startswith(prefix)
        )


def _encode_bytes(value: object) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    raise TypeError(type(value).__name__)


def _decode_bytes(body: dict[str, Any]) -> Any:
    return base64.b64decode(body["$bytes"]) if body.keys() == {"$bytes"} else body
