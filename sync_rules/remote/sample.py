"""The verify by the clock: a random sample of the tables, in one call.

Law: it only looks, and it ends in time: what it has no time for is not in its figures.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from sync_rules.asked import chosen
from sync_rules.findings import SAMPLE_SEGMENTS, Share, Tally
from sync_rules.remote.protocol import TIME_RESERVED_MS
from sync_rules.rules import Rules
from sync_rules.store import World
from sync_rules.verify import GRACE_SECONDS, Verifier


def sample(
    rules: Rules, world: World, percent: float, remaining_ms: Callable[[], int], random: Random, **options: Any
) -> tuple[Tally, frozenset[str]]:
    """Look at so much of each table, at random, as far as one call goes; and at nothing but that. The figures, and the
    rules. Raises StoreError.
    """
    names = chosen(rules, [])
    count = min(SAMPLE_SEGMENTS, max(1, round(SAMPLE_SEGMENTS * percent / 100)))
    numbers = tuple(random.sample(range(SAMPLE_SEGMENTS), count))
    grace_seconds = options.pop("grace_seconds", GRACE_SECONDS)
    needed_ms = 2 * grace_seconds * 1000 + 2 * TIME_RESERVED_MS  # two more looks at what differs
    verifier = Verifier(
        rules,
        world,
        names,
        share=Share(SAMPLE_SEGMENTS, numbers),
        grace_seconds=grace_seconds,
        enough=lambda: remaining_ms() < needed_ms,
        **options,
    )
    for _ in verifier.look_over(names):
        pass
    return verifier.tally, names
