"""The shortcuts of the core, each measured beside what it stands for: `python -m benchmarks.shortcuts`.

A shortcut is worth its lines only where a record or a copy passes it. A copy costs about 45 us of CPU in all.

`python -m benchmarks --only own` measures the others together, beside a handler that deserialises the record of our own
copy: records and updates that are not frozen, values found once for all targets of a source, paths compared in loops,
the table of a stream by its ARN. Without them the record takes 157 % of that handler's CPU, with them 98 to 117 %; the
gate is 125 %.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from sync_rules.model.lookups import Pointer
from tests.support.every_kind import order, rules_of

CALLS, ROUNDS = 20_000, 7


def microseconds(call: Callable[[], object]) -> float:
    """The CPU time of one call, in the best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = process_time()
        for _ in range(CALLS):
            call()
        best = min(best, process_time() - start)
    return best / CALLS * 1e6


def main() -> None:
    rules = rules_of()
    item, entity, rule = order("1234567", "abcdef", 1), rules.entities["order"], rules.rules["names"]
    key = entity.table.key_of(item)
    for name, short, long in (
        ("Entity.has beside fields", lambda: entity.has(key), lambda: entity.fields(key)),
        (
            "Pointer with its cache beside none",
            lambda: rule.pointer(item),
            lambda: Pointer(rule.link, rule.source)(item),
        ),
    ):
        print(f"{name}: {microseconds(short):.1f} us, {microseconds(long):.1f} us")


if __name__ == "__main__":
    main()
