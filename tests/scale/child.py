"""A backfill in a process of its own, to be killed: `python -m tests.scale.child LOG ARGUMENTS...`.

Invariant: it is the command as users have it. In addition, each write is noted in a file once done, so that whoever
killed the process knows its writes.
"""

from __future__ import annotations

import os
import sys
from typing import Any
from unittest.mock import patch

from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.cli import main as cli
from sync_rules.cli.commands import backfill
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.requests import Apply


def main(log: str, arguments: list[str]) -> int:
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    class Noting(DynamoStore):
        def apply(self, request: Apply) -> tuple[Result, ...]:
            results = super().apply(request)
            done = [w for w, result in zip(request.writes, results, strict=True) if result.status is Status.WRITTEN]
            os.write(file, "".join(f"{_keys(write)}\n" for write in done).encode())
            return results

    with patch.object(backfill, "DynamoStore", Noting):
        return cli.main(["backfill", *arguments])


def _keys(write: Any) -> str:
    actions = getattr(write, "actions", (write,))
    return " ".join(str(action.key) for action in actions)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
