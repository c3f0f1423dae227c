"""Find what refused a transaction: a condition of the application, a guard of the rules, or another writer.

Invariant: only the application's own conditions are an error for it. If the cause is unclear, the transaction is built
once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sync_rules.model.errors import StoreError
from sync_rules.model.semantics import Place, holds, is_same_item, make_place
from sync_rules.model.values import Item
from sync_rules.write.composer import Planned
from sync_rules.write.errors import Cancelled

REFUSED: Final = "ConditionalCheckFailed"
AGAIN: Final = frozenset({
    "None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "RequestLimitExceeded",
})  # fmt: skip


class Refusals:
    """The refusals of one transaction, attempt by attempt."""

    def __init__(self) -> None:
        self._doubted: dict[Place, Item | None] = {}

    def list_application_refusals(
        self, planned: Iterable[Planned], before: Mapping[Place, Item | None], reasons: Sequence[Mapping[str, Any]]
    ) -> list[Cancelled]:
        """List the application's actions that were refused for good, each with its item if the answer has it. The list
        is empty if the transaction must be built again. `before` holds the items as they were read.

        Raises:
            StoreError: if DynamoDB can never accept a write of a rule.
        """
        refused: list[Cancelled] = []
        for one, reason in zip(planned, reasons, strict=True):
            code = str(reason.get("Code") or "None")
            if code in AGAIN:
                continue
            if code == REFUSED and self._is_ours(one, before, reason.get("Item")):
                return []
            if one.own is None:
                raise StoreError(code, f"DynamoDB rejects a rule's write to an item of table {one.action.key.table}")
            refused.append(Cancelled(one.own.number, code, reason.get("Item") if one.own.returns else None))
        return refused

    def _is_ours(self, one: Planned, before: Mapping[Place, Item | None], item: Item | None) -> bool:
        """True if a guard of the rules was refused, and not the application's condition. Where no item came with the
        refusal, there is none, or the engine sends none: then it is the application's if it is refused once more for an
        item that was read as it had been.
        """
        own = one.own
        if own is None or (own.condition is None and not own.new):
            return True
        if own.new:
            return False
        if item:
            return not holds(one.action.guard, item)
        if not one.action.guard:
            return False
        place = make_place(own.key)
        if place in self._doubted and is_same_item(self._doubted[place], before[place]):
            return False
        self._doubted[place] = before[place]
        return True
