"""A function's cold start, for tests that call handlers: nothing is left of what an earlier call made and kept."""

from __future__ import annotations

from sync_rules.adapters.function_calls import import_function
from sync_rules.functions import runtime

KEPT = (
    runtime.read_rules,
    runtime.make_consumer,
    runtime.make_receipts,
    runtime.make_distinct_failures,
    import_function,
)


def start_cold() -> None:
    """Forget rules, pipeline and functions of users, and the invocation that was last."""
    for made in KEPT:
        made.cache_clear()
    runtime.deadline.begin(None)
