"""Documents that several processes work on at a time: nobody saves over what they have not seen.

Law: a save says what it replaces, and is refused where something else stands. So a worker that was taken for dead, and
goes on all the same, cannot take back what its successor has saved.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from sync_rules.adapters import aws
from sync_rules.adapters.state import PREFIX, Body, State, TableState
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.messages import decode_bytes, encode_bytes

READ_MAX_ITEMS: Final = 100  # BatchGetItem
TAKEN: Final = "StateTaken"
CLAIM_MAX_TRIES: Final = 5


class SharedState(State, Protocol):
    """A State for several processes. Each call raises StoreError when the place does not answer."""

    def swap(self, name: str, before: Body | None, body: Body) -> bool:
        """Save a document if it is still as it was before, None for not there. Says whether it is saved."""
        ...

    def load_many(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Those of these documents that are there."""
        ...


class SharedTable(TableState):
    """A SharedState in a DynamoDB table. With `keep_seconds` documents go by Time to Live, `expiration`, later on."""

    def __init__(
        self,
        client: Any,
        table_name: str,
        *,
        keep_seconds: int | None = None,
        clock: Callable[[], float] = time.time,
        retrying: Any = None,
    ) -> None:
        super().__init__(client, table_name, retrying=retrying)
        self._keep_seconds = keep_seconds
        self._clock = clock

    def save(self, name: str, body: Body) -> None:
        self._ask(self._client.put_item, Item=self._item(name, body))

    def swap(self, name: str, before: Body | None, body: Body) -> bool:
        item = self._item(name, body)
        guard = (
            {"ConditionExpression": "attribute_not_exists(id)"}
            if before is None
            else {
                "ConditionExpression": "document = :before",
                "ExpressionAttributeValues": {":before": {"S": _text(before)}},
            }
        )
        try:
            self._ask(self._client.put_item, Item=item, **guard)
        except StoreError as error:
            if error.reason != "ConditionalCheckFailedException":
                raise
            wanted: dict[str, Any] = json.loads(item["document"]["S"], object_hook=decode_bytes)
            return self.load(name) == wanted  # it was saved, and not told
        return True

    def load_many(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        wanted = [self._key(name) for name in dict.fromkeys(names)]
        found: dict[str, dict[str, Any]] = {}
        while wanted:
            some, wanted = wanted[:READ_MAX_ITEMS], wanted[READ_MAX_ITEMS:]
            asked = {self._table_name: {"Keys": some, "ConsistentRead": True}}
            answer = self._batch(asked)
            for item in answer.get("Responses", {}).get(self._table_name, ()):
                name = item["id"]["S"].removeprefix(PREFIX)
                found[name] = dict(json.loads(item["document"]["S"], object_hook=decode_bytes))
            wanted += answer.get("UnprocessedKeys", {}).get(self._table_name, {}).get("Keys", [])
        return found

    def _batch(self, asked: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._retrying(self._client.batch_get_item, RequestItems=asked)
        except aws.ERRORS as error:
            raise StoreError(aws.reason(error), f"state table {self._table_name}") from error
        return answer

    def _item(self, name: str, body: Body) -> dict[str, Any]:
        item: dict[str, Any] = {**self._key(name), "document": {"S": _text(body)}}
        if self._keep_seconds is not None:
            item["expiration"] = {"N": str(int(self._clock()) + self._keep_seconds)}
        return item


def _text(body: Body) -> str:
    return json.dumps(body, default=encode_bytes, separators=(",", ":"), sort_keys=True)


class Held:
    """The State of one call: each document is read once, and saved only over what was read.

    A document that is claimed bears who has it in hand, until it is let go. Who claims one that somebody has in hand
    takes it over, and it is noted on it that its totals may lack what that one did last: `broken`.
    """

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self._seen: dict[str, dict[str, Any] | None] = {}
        self._marks: dict[str, dict[str, Any]] = {}

    def fetch(self, names: Iterable[str]) -> None:
        """Read these at once, for what will be loaded one by one."""
        wanted = list(names)
        found = self._state.load_many(wanted)
        self._seen |= {name: found.get(name) for name in wanted}

    def load(self, name: str) -> dict[str, Any] | None:
        if name not in self._seen:
            self._seen[name] = self._state.load(name)
        return self._seen[name]

    def save(self, name: str, body: Body) -> None:
        """Raises StoreError, StateTaken when another one saved it meanwhile."""
        now = {**body, **self._marks.get(name, {})}
        if not self._state.swap(name, self.load(name), now):
            raise StoreError(TAKEN, f"another worker goes on with {name}: this one ends")
        self._seen[name] = now

    def remove(self, name: str) -> None:
        self._state.remove(name)
        self._seen[name] = None

    def claim(self, name: str, holder: str) -> None:
        """Take a document in hand, whoever had it. Raises StoreError."""
        for _ in range(CLAIM_MAX_TRIES):
            found = self._state.load(name)
            known = found or {}
            self._marks[name] = {"holder": holder, "broken": bool(known.get("holder") or known.get("broken"))}
            now = {**known, **self._marks[name]}
            if self._state.swap(name, found, now):
                self._seen[name] = now
                return
        raise StoreError(TAKEN, f"others take {name} again and again")

    def release(self, name: str, reason: str = "") -> None:
        """Let it go as it is saved; `reason` says why it is not done. Raises StoreError."""
        self._marks[name] = {**self._marks[name], "holder": None}
        self.save(name, {**(self.load(name) or {}), "reason": reason})
