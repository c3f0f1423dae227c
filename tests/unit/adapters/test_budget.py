"""The write budget of a table: spending stays within its share, per table and per partition key, and uses all of it."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.adapters.budget import PARTITIONS_MAX, Budget, Costs
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.meter import limit_store
from sync_rules.model.sizes import PARTITION_MAX_WRITE_UNITS
from sync_rules.model.writes import WRITTEN, Condition, Test, Update
from sync_rules.pipeline.requests import NOT_SENT, Apply, Read
from tests.support.builders import key, n, s, table
from tests.unit.adapters.test_rate import Clock

THERE = (Condition(Test.EXISTS, ("PK",)),)


def tables_of(**limits: int | None):
    made = {name: table(name, {"PK": "S", "SK": "S"}) for name in limits}
    return {name: replace(made[name], max_write_units_per_second=limit) for name, limit in limits.items()}


def budget_of(tables, writers=1, **options) -> tuple[Budget, Clock]:
    clock = Clock()
    return Budget(tables, writers, clock=clock, sleep=clock.sleep, **options), clock


def costs(units: int, where: str = "shop", partition: str = "a") -> Costs:
    return Costs(Counter({where: units}), Counter({(where, "PK", "S", partition): units}))


STEPS = st.lists(
    st.tuples(st.just("take"), st.integers(1, 120), st.sampled_from("abc"))
    | st.tuples(st.just("pass"), st.integers(0, 3), st.just("")),
    max_size=60,
)


@given(st.sampled_from([30, 700, 1_500, 4_000]), st.integers(1, 7), STEPS)
def test_budget_never_lets_more_through_than_the_share(limit, writers, steps):
    """Over any stretch of time, spending stays within the writer's share of the table and of each partition, plus a
    burst.
    """
    budget, clock = budget_of(tables_of(shop=limit), writers)
    let: list[tuple[float, int, str]] = []
    for step, amount, partition in steps:
        if step == "take":
            assert budget.take(costs(amount, partition=partition))
            let.append((clock(), amount, partition))
        else:
            clock.now += amount
    bounds = {"abc": limit / writers} | dict.fromkeys("abc", min(limit, PARTITION_MAX_WRITE_UNITS) / writers)
    for of, share in bounds.items():
        mine = [(at, units) for at, units, partition in let if partition in of]
        for i, (since, _) in enumerate(mine):
            for (until, _), units in zip(mine[i:], accumulate(units for _, units in mine[i:]), strict=True):
                assert units <= share * (until - since) + max(share, 120) + 1e-6


@pytest.mark.parametrize("partitions", [1, 4])
def test_budget_is_shared_by_threads_and_used_up(partitions):
    """Several threads together get what one would: all of it on many partition keys, of one what a partition takes."""
    budget, clock = budget_of(tables_of(shop=2_000))
    each = [costs(20, partition=str(i % partitions)) for i in range(400)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(budget.take, each))
    share = 2_000 if partitions > 1 else PARTITION_MAX_WRITE_UNITS
    assert clock.now - 1_000 == pytest.approx((8_000 - share) / share, rel=0.02)


def test_budget_refuses_no_write_for_ever():
    """One that costs more than a share gives in all the time there is goes out when nothing is owed, and is paid after."""
    budget, clock = budget_of(tables_of(shop=10), 22, within_seconds=lambda: 58.0)
    for _ in range(10):
        assert budget.take(costs(100))
        assert not budget.take(costs(100))
        clock.now += 100 / (10 / 22)
    assert clock.now - 1_000 == pytest.approx(10 * 220)


def test_budget_watches_so_many_partitions():
    """Memory is bounded; the one that was used longest ago is forgotten first."""
    budget, clock = budget_of(tables_of(shop=10**9))
    budget.take(costs(1_000, partition="hot"))
    for number in range(2 * PARTITIONS_MAX):
        budget.take(costs(1, partition=str(number)))
        budget.take(costs(1, partition="hot"))
    assert len(budget._partitions) == PARTITIONS_MAX
    assert clock.now - 1_000 == pytest.approx(2 * PARTITIONS_MAX / 1_000, rel=0.02)


# ---------------------------------------------------------------- a store that keeps to it
def store_of(limit: int | None, **options):
    tables = tables_of(shop=limit)
    memory = MemoryStore(tables)
    budget, clock = budget_of(tables, **options)
    return limit_store(memory, tables, budget), memory, clock


def items(memory: MemoryStore, count: int, size: int = 10):
    return tuple(memory.put("shop", {"PK": s("a"), "SK": s(str(i)), "text": s("x" * size)}) for i in range(count))


def update(at) -> Update:
    return Update(at, ((("copy",), n(1)),), (), THERE)


def test_budgeted_store_fails_what_there_is_no_time_for():
    """Writes that do not fit before the deadline fail as out of time; the others are reported as written."""
    store, memory, clock = store_of(10, within_seconds=lambda: 1_001 - clock.now)
    keys = items(memory, 50)
    store.read(Read(keys))
    results = store.apply(Apply(tuple(map(update, keys))))
    written = results.count(WRITTEN)
    assert 19 <= written <= 21
    assert results == (WRITTEN,) * written + (NOT_SENT,) * (50 - written)


def test_budget_counts_a_partition_by_its_value():
    """Two keys with the same partition key share what that takes; the sort key does not matter."""
    store, memory, clock = store_of(5_000)
    keys = items(memory, 3_000)
    store.read(Read(keys))
    assert key(tables_of(shop=1)["shop"], "a", "0") == keys[0]
    for start in range(0, 3_000, 100):
        store.apply(Apply(tuple(map(update, keys[start : start + 100]))))
    assert clock.now - 1_000 == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize(("limits", "writers", "units"), [({"a": 80, "b": 9_000}, 2, 4), ({"a": 900}, 1, 90)])
def test_budget_sends_as_few_at_once_as_its_lowest_share_allows(limits, writers, units):
    """A tenth of a second's worth of the table that takes least, whatever the others take."""
    assert budget_of(tables_of(**limits, free=None), writers)[0].at_once_max_units == units
