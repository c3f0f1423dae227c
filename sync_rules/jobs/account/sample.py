"""The verify by the clock: a random sample of the tables, in one call.

Law: it only looks, and it ends in time: what it has no time for is not in its figures, and it says that there was such.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from sync_rules.audit.asked import chosen, drawn
from sync_rules.audit.findings import SAMPLE_SEGMENTS, Share, Tally
from sync_rules.audit.verifier import GRACE_SECONDS, Verifier
from sync_rules.jobs.account.verify_unit import needed_ms
from sync_rules.pipeline.requests import World
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class Sampled:
    """What a sample came to, of which rules; `cut_short` where time was up before all of it was looked at."""

    tally: Tally
    names: frozenset[str]
    cut_short: bool


def sample(
    rules: Rules, world: World, percent: float, remaining_ms: Callable[[], int], random: Random, **options: Any
) -> Sampled:
    """Look at so much of each table, at random, as far as one call goes; and at nothing but that. Raises StoreError."""
    names = chosen(rules, [])
    grace_seconds = options.pop("grace_seconds", GRACE_SECONDS)
    needed = needed_ms(grace_seconds)
    verifier = Verifier(
        rules,
        world,
        names,
        share=Share(SAMPLE_SEGMENTS, drawn(percent, random)),  # whatever is cut off is not always the same
        grace_seconds=grace_seconds,
        enough=lambda: remaining_ms() < needed,
        **options,
    )
    for _ in verifier.look_over(names):
        pass
    return Sampled(verifier.tally, names, verifier.cut_short)
