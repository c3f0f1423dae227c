"""The errors of writing. If an error is raised, nothing was written, and its message says what to do."""

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
    """Why DynamoDB refused one of the application's actions: its number in the order of calls, and the error code.
    `item` is the stored item, if the action requested it.
    """

    action: int
    code: str
    item: Mapping[str, Any] | None = None


class TransactionCanceled(WriteError):  # noqa: N818 - DynamoDB's own word
    """DynamoDB refused actions of the application: an application's condition did not hold, or an action is impossible.
    A condition that the rules added never causes this error: the transaction is then built again from fresh reads.
    """

    def __init__(self, reasons: tuple[Cancelled, ...]) -> None:
        told = ", ".join(f"action {one.action}: {one.code}" for one in reasons)
        super().__init__(
            f"the transaction was refused ({told})", "nothing was written: read the items, and decide again"
        )
        self.reasons = reasons
