"""The process of the embedded engine: ministack, with stream records of PartiQL statements. It runs as a file.

PartiQL statements leave stream records and check the types of index keys, as in DynamoDB, so `run` can send 25 updates
in a request. Each answer of DynamoDB then has the header STATEMENTS. Only the version of ministack that this file was
written for is changed. Invariant: the process ends with its parent, whose end closes its standard input, and it imports
nothing of this package, which the engine's environment may lack.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from typing import Any, Final

WRITTEN_FOR: Final = "1.5.33"
STATEMENTS: Final = "x-sync-rules-statements"  # as `adapters.aws` reads it

Change = tuple[Any, Any, Any, Any, Any]  # table, values of its key, item before and after


def end_with_parent() -> None:
    """Wait until the parent closes the standard input, or ends; then end everything at once."""
    sys.stdin.buffer.read()
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    if os.getpgrp() == os.getpid():  # a group of its own, with the programs that the engine started
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


class Statements:
    """A patch of ministack: statements check index keys, and make their stream records once their whole request has
    succeeded.
    """

    def __init__(self, dynamodb: Any) -> None:
        self._emit = dynamodb._emit_stream_event  # noqa: SLF001
        self._refusal = dynamodb._validate_index_key_values  # noqa: SLF001
        self._set = dynamodb._set_item  # noqa: SLF001
        self._remove = dynamodb._remove_item  # noqa: SLF001
        self._changes: list[Change] | None = None  # of the statement at work
        dynamodb._set_item = self._note_writes(self._set)  # noqa: SLF001
        dynamodb._remove_item = self._note_writes(self._remove)  # noqa: SLF001
        dynamodb._execute_statement = self._record_changes(dynamodb._execute_statement)  # noqa: SLF001
        dynamodb._execute_transaction = self._record_changes(dynamodb._execute_transaction)  # noqa: SLF001

    def _note_writes(self, write: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(write)
        def note_write(table: Any, partition: Any, sort: Any, *item: Any) -> Any:
            before = write(table, partition, sort, *item)
            if self._changes is not None:
                self._changes.append((table, partition, sort, before, item[0] if item else None))
            return before

        return note_write

    def _record_changes(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(execute)
        def record_changes(data: Any) -> Any:
            changes: list[Change] = []
            self._changes = changes
            try:
                answer = execute(data)
            finally:
                self._changes = None
            if answer[0] != 200:  # noqa: PLR2004 - OK
                return answer
            refusal = self._undo_refused_changes(changes)
            if refusal is None:
                for change in changes:
                    self._record(change)
            return refusal or answer

        return record_changes

    def _undo_refused_changes(self, changes: list[Change]) -> Any:
        """Undo changes if one has an invalid index key. Returns the refusal, or None."""
        refusals = (self._refusal(table, after, update_expr=True) for table, *_, after in changes if after is not None)
        refusal = next(filter(None, refusals), None)
        if refusal is not None:
            for table, partition, sort, before, _ in reversed(changes):
                if before is None:
                    self._remove(table, partition, sort)
                else:
                    self._set(table, partition, sort, before)
        return refusal

    def _record(self, change: Change) -> None:
        table, _, _, before, after = change
        if before is not None or after is not None:
            event = "INSERT" if before is None else "REMOVE" if after is None else "MODIFY"
            self._emit(table["TableName"], event, before, after)


def improve() -> None:
    """Patch ministack's DynamoDB: statements make stream records, and each answer has the header STATEMENTS."""
    from ministack.services import dynamodb  # noqa: PLC0415 - once it is known that it is there

    Statements(dynamodb)
    handle = dynamodb.handle_request

    @wraps(handle)
    async def answer(*request: Any) -> Any:
        status, headers, body = await handle(*request)
        return status, {**headers, STATEMENTS: "recorded"}, body

    dynamodb.handle_request = answer


def main() -> None:
    """Serve until the parent ends."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    if version("ministack") == WRITTEN_FOR:
        improve()
    from ministack.app import main as serve  # noqa: PLC0415 - it reads the environment when imported

    serve()


if __name__ == "__main__":
    main()
