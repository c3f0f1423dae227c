"""The heaviest of many: exact while few, then never too high, and what is heavy is never lost."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from sync_rules.jobs.dryrun.planner import HeavyHitters


@pytest.mark.parametrize("seed", range(10))
def test_heaviest_loses_nothing_heavy_in_little_room(seed):
    """HeavyHitters keeps every thing heavier than the total weight divided by its room, in at most twice that room."""
    random, room = Random(seed), 50
    heaviest: HeavyHitters[int] = HeavyHitters(room)
    real: Counter[int] = Counter()
    for _ in range(20_000):
        thing = int(random.paretovariate(0.6)) if random.random() < 0.5 else random.randrange(10**6)
        weight = random.randint(1, 3)
        heaviest.add(thing, weight)
        real[thing] += weight
        assert len(heaviest._weights) <= 2 * room
    assert heaviest.cut <= real.total() / room
    told = dict(heaviest.top(2 * room))
    assert all(real[thing] - heaviest.cut <= weight <= real[thing] for thing, weight in told.items())
    assert {thing for thing, weight in real.items() if weight > heaviest.cut} <= told.keys()
