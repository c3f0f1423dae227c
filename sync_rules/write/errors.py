"""The errors of writing: nothing is written when one is raised, and each says what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sync_rules.model.errors import UserError


class WriteError(UserError):
    """A transaction that cannot be made as requested. Nothing was written. `again`: the same transaction may succeed
    later.
    """

    def __init__(self, found: str, cure: str = "", *, again: bool = False) -> None:
        super().__init__(found, cure)
        self.again = again


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Why DynamoDB refused one of the application's actions: its number, in the order of the calls, and the error code.
    `item` is the stored item, if the action asked for it.
    """

    action: int
    code: str
    item: Mapping[str, Any] | None = None


class TransactionCanceled(WriteError):  # noqa: N818 - DynamoDB's own word
    """DynamoDB refused actions of the application: a condition of its own did not hold, or an action cannot be made.
    A condition that the rules added is never the reason: then the transaction is built again from fresh reads.
    """

    def __init__(self, reasons: tuple[Cancelled, ...]) -> None:
        told = ", ".join(f"action {one.action}: {one.code}" for one in reasons)
        super().__init__(
            f"the transaction was refused ({told})", "nothing was written: read the items, and decide again"
        )
        self.reasons = reasons
