"""What must outlive a process that works through tables: which rules were applied, and how far a backfill is.

Law: a document is saved as a whole, the old one or the new one, and is safe when `save` returns. It may hold the keys
where a scan goes on, and no other value of an item.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from tenacity import Retrying

from sync_rules.adapters import aws
from sync_rules.adapters.files import replacing
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.json_bytes import tagged, untagged

Body = Mapping[str, Any]  # JSON-ready
APPLIED: Final = "applied"  # the document of the rules that were brought in line: {name: fingerprint}, and AT
AT: Final = "at"  # when that was said last, as ISO 8601
PREFIX: Final = "sync-rules/"  # of the ids in a table, which may hold other things
CURES: Final = {
    "TableNotFound": "create it with the string key 'id', or correct its name, the region or the endpoint",
    "ValidationException": "its key must be the string 'id' alone",
}


class State(Protocol):
    """Named documents of JSON. Each call raises StoreError when the place does not answer."""

    def load(self, name: str) -> dict[str, Any] | None:
        """A document; None when there is none."""
        ...

    def save(self, name: str, body: Body) -> None:
        """Returns once the document is safe."""
        ...

    def remove(self, name: str) -> None:
        """Remove a document, if it is there. A process that dies at once may leave it all the same."""
        ...


class MemoryState:
    """Documents that nobody keeps: for a plan, and for tests."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}

    def load(self, name: str) -> dict[str, Any] | None:
        return self.documents.get(name)

    def save(self, name: str, body: Body) -> None:
        self.documents[name] = dict(body)

    def remove(self, name: str) -> None:
        self.documents.pop(name, None)


class FileState:
    """All documents in one JSON file, replaced as a whole. May be used by several threads; by one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._documents = self._read()

    def load(self, name: str) -> dict[str, Any] | None:
        with self._lock:
            return self._documents.get(name)

    def save(self, name: str, body: Body) -> None:
        with self._lock:
            self._documents[name] = dict(body)
            self._write()

    def remove(self, name: str) -> None:
        """It goes with the next save: of many that go together, none is worth a write of its own."""
        with self._lock:
            self._documents.pop(name, None)

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads(self.path.read_bytes(), object_hook=untagged)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UserError(f"{self.path}: expected a state file to read, found {error.strerror}") from error
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(body, dict) for body in found.values()):
            raise UserError(
                f"{self.path}: expected a state file of sync-rules, found something else. Give another with --state, "
                "or delete this one: then every rule counts as new, and a backfill starts from the beginning."
            )
        return found

    def _write(self) -> None:
        try:
            with replacing(self.path) as file:
                file.write(json.dumps(self._documents, default=tagged, indent=1, sort_keys=True).encode())
        except OSError as error:
            raise StoreError("StateNotWritten", f"{self.path}: {error.strerror}") from error


class TableState:
    """Each document an item of a DynamoDB table whose key is the string `id`: for several machines."""

    def __init__(self, client: Any, table_name: str, *, retrying: Retrying | None = None) -> None:
        self._client = client
        self._table_name = table_name
        self._retrying = retrying or aws.retrying()

    def load(self, name: str) -> dict[str, Any] | None:
        answer = self._ask(self._client.get_item, Key=self._key(name), ConsistentRead=True)
        text = answer.get("Item", {}).get("document", {}).get("S")
        return None if text is None else dict(json.loads(text, object_hook=untagged))

    def save(self, name: str, body: Body) -> None:
        document = json.dumps(body, default=tagged, separators=(",", ":"), sort_keys=True)
        self._ask(self._client.put_item, Item={**self._key(name), "document": {"S": document}})

    def remove(self, name: str) -> None:
        self._ask(self._client.delete_item, Key=self._key(name))

    def _key(self, name: str) -> dict[str, Any]:
        return {"id": {"S": PREFIX + name}}

    def _ask(self, call: Any, **parameters: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._retrying(call, TableName=self._table_name, **parameters)
        except aws.ERRORS as error:
            raise aws.store_error(error, f"state table {self._table_name}", CURES) from error
        return answer


def applied(state: State) -> dict[str, str]:
    """The fingerprints of the rules that were brought in line, by name.

    Raises:
        UserError: when what is there is no such thing.
        StoreError: when the state does not answer.
    """
    found = {name: text for name, text in (state.load(APPLIED) or {}).items() if name != AT}
    for name, text in found.items():
        if not isinstance(text, str):
            raise UserError(f"the state has no fingerprint for rule {name}: expected text, found something else")
    return found


def save_applied(state: State, fingerprints: Mapping[str, str], now: datetime) -> None:
    """Say which rules were brought in line: these, and no others. Raises StoreError."""
    state.save(APPLIED, {**fingerprints, AT: now.isoformat(timespec="seconds")})


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
            wanted: dict[str, Any] = json.loads(item["document"]["S"], object_hook=untagged)
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
                found[name] = dict(json.loads(item["document"]["S"], object_hook=untagged))
            wanted += answer.get("UnprocessedKeys", {}).get(self._table_name, {}).get("Keys", [])
        return found

    def _batch(self, asked: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._retrying(self._client.batch_get_item, RequestItems=asked)
        except aws.ERRORS as error:
            raise aws.store_error(error, f"state table {self._table_name}") from error
        return answer

    def _item(self, name: str, body: Body) -> dict[str, Any]:
        item: dict[str, Any] = {**self._key(name), "document": {"S": _text(body)}}
        if self._keep_seconds is not None:
            item["expiration"] = {"N": str(int(self._clock()) + self._keep_seconds)}
        return item


def _text(body: Body) -> str:
    return json.dumps(body, default=tagged, separators=(",", ":"), sort_keys=True)


class LeasedState:
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
