"""A function's cold start, for tests that call handlers: nothing is left of what an earlier call made and kept."""

from __future__ import annotations

from sync_rules.adapters.function_calls import function_of
from sync_rules.functions import runtime

KEPT = (runtime.rules, runtime.consumer, runtime.receipts, runtime.distinct_failures, function_of)


def start_cold() -> None:
    """Forget rules, pipeline and functions of users, and the invocation that was last."""
    for made in KEPT:
        made.cache_clear()
    runtime.deadline.begin(None)
