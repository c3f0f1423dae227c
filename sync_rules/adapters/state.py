"""Documents that outlive a process: which rules were applied, how far a backfill, a verify or a redrive is.

A document is JSON under a name, in a file (`FileState`) or as an item of a DynamoDB table (`TableState`); `LeasedState`
is what one invocation has of documents that many share.

Invariant: a document is saved as a whole, the old one or the new one, and is safe when `save` returns. It may hold the
keys where a scan continues, and no other value of an item.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from tenacity import Retrying

from sync_rules.adapters import aws, aws_errors, retries
from sync_rules.adapters.batch_reader import make_batch_gets
from sync_rules.adapters.files import read_if_there, replace_file
from sync_rules.model import json_bytes
from sync_rules.model.entities import KeyAttribute, Table
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.json_bytes import tag_binary, untag_binary
from sync_rules.model.values import Item

Body = Mapping[str, Any]  # JSON-ready
APPLIED: Final = "applied"  # the document of the applied rules: {name: fingerprint}, and AT
AT: Final = "at"  # when the oldest backfill began whose rules still count as applied, as ISO 8601
PREFIX: Final = "sync-rules/"  # of the ids in a table, which may hold other things
CONSISTENT: Final = {"ConsistentRead": True}
TAKEN: Final = "StateTaken"
CLAIM_MAX_TRIES: Final = 5
CURES: Final = {
    "TableNotFound": "create it with the string key 'id', or correct its name, the region or the endpoint",
    "ValidationException": "its key must be the string 'id' alone",
}


class State(Protocol):
    """Named documents of JSON. Each call raises StoreError when the place does not answer."""

    def load(self, name: str) -> dict[str, Any] | None:
        """Load a document; None if it does not exist."""

    def save(self, name: str, body: Body) -> None:
        """Save a document, and return once it is safe."""

    def remove(self, name: str) -> None:
        """Remove a document, if it exists. If the process dies at once, the document may stay."""


class SharedState(State, Protocol):
    """A State for several processes. Each call raises StoreError when the place does not answer."""

    def swap(self, name: str, before: Body | None, body: Body) -> bool:
        """Save a document if it still equals `before` (None: it does not exist). Return True if it is saved."""

    def load_many(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Load several documents, by name. Missing documents are left out."""


class MemoryState:
    """Documents in memory only: for a plan, and for tests."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}

    def load(self, name: str) -> dict[str, Any] | None:
        return self.documents.get(name)

    def save(self, name: str, body: Body) -> None:
        self.documents[name] = dict(body)

    def remove(self, name: str) -> None:
        self.documents.pop(name, None)


class FileState(MemoryState):
    """All documents in one JSON file, replaced as a whole. May be used by several threads; by one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.documents = self._read()

    def save(self, name: str, body: Body) -> None:
        with self._lock:
            super().save(name, body)
            self._write()

    def remove(self, name: str) -> None:
        """Remove a document with the next save: many are removed together, and none is worth a write of its own."""
        with self._lock:
            super().remove(name)

    def _read(self) -> dict[str, dict[str, Any]]:
        text = read_if_there(self.path, "a state file")
        if text is None:
            return {}
        try:
            found = json_bytes.parse_json(text, object_hook=untag_binary)
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
            with replace_file(self.path) as file:
                file.write(json.dumps(self.documents, default=tag_binary, indent=1, sort_keys=True).encode())
        except OSError as error:
            raise StoreError("StateNotWritten", f"{self.path}: {error.strerror}") from error


@dataclass(eq=False)
class TableState:
    """A SharedState: each document is an item of a DynamoDB table whose key is the string `id`.

    With `keep_seconds` documents expire by Time to Live on the attribute `expiration`.
    """

    client: Any
    table_name: str
    _: KW_ONLY
    keep_seconds: int | None = None
    clock: Callable[[], float] = time.time
    retrying: Retrying = field(default_factory=retries.make_retry)

    def load(self, name: str) -> dict[str, Any] | None:
        answer = self._ask(self.client.get_item, Key=self._key(name), ConsistentRead=True)
        return _parse_body(answer["Item"]) if "Item" in answer else None

    def load_many(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        table = Table("state", self.table_name, KeyAttribute("id", "S"))
        keys = [ItemKey("state", (("id", "S", PREFIX + name),)) for name in dict.fromkeys(names)]
        items: list[Item] = []
        for batch in make_batch_gets(
            self.client, {"state": table}, keys, lambda _table: CONSISTENT, lambda _key, item: items.append(item)
        ):
            self._call(batch)
        return {item["id"]["S"].removeprefix(PREFIX): _parse_body(item) for item in items}

    def save(self, name: str, body: Body) -> None:
        self._ask(self.client.put_item, Item=self._item(name, body))

    def swap(self, name: str, before: Body | None, body: Body) -> bool:
        item = self._item(name, body)
        guard: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(id)"}
        if before is not None:
            values = {":before": {"S": _format_body(before)}}
            guard = {"ConditionExpression": "document = :before", "ExpressionAttributeValues": values}
        try:
            self._ask(self.client.put_item, Item=item, **guard)
        except StoreError as error:
            if error.reason != "ConditionalCheckFailedException":
                raise
            return self.load(name) == _parse_body(item)  # then it was saved, and the answer was lost
        return True

    def remove(self, name: str) -> None:
        self._ask(self.client.delete_item, Key=self._key(name))

    def _key(self, name: str) -> dict[str, Any]:
        return {"id": {"S": PREFIX + name}}

    def _item(self, name: str, body: Body) -> dict[str, Any]:
        item: dict[str, Any] = {**self._key(name), "document": {"S": _format_body(body)}}
        if self.keep_seconds is not None:
            item["expiration"] = {"N": str(int(self.clock()) + self.keep_seconds)}
        return item

    def _ask(self, call: Any, **parameters: Any) -> dict[str, Any]:
        return self._call(call, TableName=self.table_name, **parameters)

    def _call(self, call: Any, **parameters: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self.retrying(call, **parameters)
        except aws_errors.ERRORS as error:
            missing = aws_errors.read_reason(error) == "TableNotFound"
            where = f"state table {self.table_name}{f' at {aws.format_place(self.client)}' if missing else ''}"
            raise aws_errors.make_store_error(error, where, CURES) from error
        return answer


def _format_body(body: Body) -> str:
    return json.dumps(body, default=tag_binary, separators=(",", ":"), sort_keys=True)


def _parse_body(item: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a stored document. Raises StoreError for an item that holds none: it is not the same as no item."""
    body: object = None
    with suppress(ValueError, KeyError, TypeError):
        body = json_bytes.parse_json(item["document"]["S"], object_hook=untag_binary)
    if not isinstance(body, dict):
        words = f"sync-rules cannot read document {item['id']['S']}. Delete it, and start its job again"
        raise StoreError("StateUnreadable", words)
    return body


class LeasedState:
    """The State of one invocation. It reads each document once, and saves it only if no other process has saved it
    since.

    A claimed document names its holder until it is released. A claim succeeds even if another invocation holds it. The
    document is then marked `broken`: its totals may lack the last work of that invocation.
    """

    def __init__(self, state: SharedState) -> None:
        self._state = state
        self._seen: dict[str, dict[str, Any] | None] = {}
        self._marks: dict[str, dict[str, Any]] = {}

    def fetch(self, names: Iterable[str]) -> None:
        """Read several documents together that will be loaded singly."""
        wanted = list(names)
        found = self._state.load_many(wanted)
        self._seen |= {name: found.get(name) for name in wanted}

    def load(self, name: str) -> dict[str, Any] | None:
        if name not in self._seen:
            self._seen[name] = self._state.load(name)
        return self._seen[name]

    def save(self, name: str, body: Body) -> None:
        """Save a document. Raises StoreError; its reason is StateTaken if another invocation saved the document
        meanwhile.
        """
        marked = {**body, **self._marks.get(name, {})}
        if not self._state.swap(name, self.load(name), marked):
            raise StoreError(TAKEN, f"another worker has taken over {name}: this worker ends")
        self._seen[name] = marked

    def remove(self, name: str) -> None:
        self._state.remove(name)
        self._seen[name] = None

    def claim(self, name: str, holder: str) -> None:
        """Take over a document from any holder. Raises StoreError."""
        for _ in range(CLAIM_MAX_TRIES):
            found = self._state.load(name)
            known = found or {}
            self._marks[name] = {"holder": holder, "broken": bool(known.get("holder") or known.get("broken"))}
            marked = {**known, **self._marks[name]}
            if self._state.swap(name, found, marked):
                self._seen[name] = marked
                return
        raise StoreError(TAKEN, f"other processes keep claiming {name}")

    def release(self, name: str, reason: str = "") -> None:
        """Give up a document in its saved form. `reason`: why its work is not done. Raises StoreError."""
        self._marks[name] = {**self._marks[name], "holder": None}
        self.save(name, {**(self.load(name) or {}), "reason": reason})


# ---------------------------------------------------------------- the rules that were applied
def read_applied_fingerprints(state: State) -> dict[str, str]:
    """Read the fingerprints of the applied rules, by name.

    Raises:
        UserError: when the document holds something else.
        StoreError: when the state does not answer.
    """
    found = {name: text for name, text in (state.load(APPLIED) or {}).items() if name != AT}
    for name, text in found.items():
        if not isinstance(text, str):
            raise UserError(f"the state has no fingerprint for rule {name}: expected text, found something else")
    return found


def read_applied_time(state: State) -> datetime | None:
    """Read the time since which all applied rules have been applied; None if it is unknown. Raises StoreError."""
    with suppress(ValueError):
        return datetime.fromisoformat(str((state.load(APPLIED) or {}).get(AT)))
    return None


def save_applied_fingerprints(state: State, fingerprints: Mapping[str, str], at: datetime) -> None:
    """Save which rules were applied, and since when. They replace all earlier entries. Raises StoreError."""
    state.save(APPLIED, {**fingerprints, AT: at.isoformat(timespec="seconds")})
