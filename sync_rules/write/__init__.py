"""Lets applications write items with all that the rules say of them, at once. `docs/writing.md` shows how.

Invariant: the same rules and guards as in the stream, which stays the safety net.
"""

from __future__ import annotations

from sync_rules.write.consequences import Left
from sync_rules.write.errors import Cancelled, TransactionCanceled, WriteError
from sync_rules.write.follower import Follow, Followed, follow
from sync_rules.write.freshness import FreshPage, fresh, fresh_page
from sync_rules.write.rules_file import Rules
from sync_rules.write.transaction import Result, Transact, transact

__all__ = [
    "Cancelled",
    "Follow",
    "Followed",
    "FreshPage",
    "Left",
    "Result",
    "Rules",
    "Transact",
    "TransactionCanceled",
    "WriteError",
    "follow",
    "fresh",
    "fresh_page",
    "transact",
]
