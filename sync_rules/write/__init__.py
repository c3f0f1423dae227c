"""Lets applications write items with all that the rules say of them, in one transaction. `docs/writing.md` shows how.

Invariant: the same rules and guards as in the stream, which stays the safety net.
"""

from __future__ import annotations

from sync_rules.write.errors import Cancelled, TransactionCanceled, WriteError
from sync_rules.write.loading import Rules
from sync_rules.write.rehearsal import Left
from sync_rules.write.transaction import Result, Transact, transact

__all__ = ["Cancelled", "Left", "Result", "Rules", "Transact", "TransactionCanceled", "WriteError", "transact"]
