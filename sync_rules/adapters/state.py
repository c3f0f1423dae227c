"""What must outlive a process that works through tables: which rules were applied, and how far a backfill is.

Law: a document is saved as a whole, the old one or the new one, and is safe when `save` returns. It may hold the keys
where a scan goes on, and no other value of an item.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from tenacity import Retrying

from sync_rules.adapters import aws
from sync_rules.adapters.ownfile import replacing
from sync_rules.model.errors import StoreError, UserError
from sync_rules.pipeline.messages import decode_bytes, encode_bytes

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
            found = json.loads(self.path.read_bytes(), object_hook=decode_bytes)
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
                file.write(json.dumps(self._documents, default=encode_bytes, indent=1, sort_keys=True).encode())
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
        return None if text is None else dict(json.loads(text, object_hook=decode_bytes))

    def save(self, name: str, body: Body) -> None:
        document = json.dumps(body, default=encode_bytes, separators=(",", ":"), sort_keys=True)
        self._ask(self._client.put_item, Item={**self._key(name), "document": {"S": document}})

    def remove(self, name: str) -> None:
        self._ask(self._client.delete_item, Key=self._key(name))

    def _key(self, name: str) -> dict[str, Any]:
        return {"id": {"S": PREFIX + name}}

    def _ask(self, call: Any, **parameters: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = self._retrying(call, TableName=self._table_name, **parameters)
        except aws.ERRORS as error:
            reason = aws.reason(error)
            where = f"state table {self._table_name}"
            raise StoreError(reason, f"{where}: {CURES[reason]}" if reason in CURES else where) from error
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
