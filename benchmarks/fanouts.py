"""The cost of a fan-out: work, requests, bytes, time, memory, and the effect of a limit of the table.

Invariant: both sides make all copies, by the engine's count; figures are per copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from benchmarks import baselines, fresh
from benchmarks.answering import AFTER
from benchmarks.bench import Bench, works
from benchmarks.counters import CPU_TIME, Cost
from benchmarks.figures import ENGINE, WALL, Figure, ratios
from benchmarks.ours import consumer_of, handled, renamed, shared
from benchmarks.scale import IN_PARTITION, REGION, estimate
from sync_rules.adapters.dynamodb import WORKERS
from sync_rules.extras.design.costs.pipeline_costs import WORKER_GIGABYTES
from sync_rules.jobs.dryrun.money import compute_on_demand_price
from sync_rules.jobs.dryrun.prices import read_own_prices

USER: Final = "1"
MEETS_LIMIT: Final = 1.5  # a client this many times as fast as the limit shows every pause
WORDS: Final = {
    "loop": "loop",
    "pool": f"loop with {baselines.THREADS} threads",
    "blind": "25 statements by hand, no guard",
    "guarded": "25 statements by hand, guarded",
    "ours": "ours",
}
ONE_BY_ONE: Final = {"loop": 50, "pool": 10}  # one request for each copy; so many times fewer at a latency
SHARED: Final = 10_000  # targets, most of them beyond what one invocation does
ONE_WORKER: Final = 1  # as many as the loop has: CPU time of threads counts their waiting for each other too


def by_hand(url: str, threads: int = 1) -> dict[str, Callable[[], object]]:
    """The fan-outs that people write, in the partition of the source."""
    table, client = baselines.table_of(url, "together"), baselines.client_of(url)
    return {
        "loop": lambda: baselines.loop(table, USER, AFTER),
        "pool": lambda: baselines.pool(table, USER, AFTER),
        "blind": lambda: baselines.blind(client, USER, AFTER, threads),
        "guarded": lambda: baselines.guarded(client, USER, AFTER, threads),
    }


def base(bench: Bench) -> Iterator[Figure]:
    """Targets in the partition of their source."""
    url, targets = bench.engine.url, bench.size(2_000)
    alone, four = consumer_of(url, ONE_WORKER), consumer_of(url)
    works_of = by_hand(url) | {
        "ours": lambda: handled(alone, renamed("together")),
        "four": lambda: handled(four, renamed("together")),
    }
    few = {name: targets // 5 if name in ONE_BY_ONE else targets for name in works_of}
    costs = bench.in_turns(
        {name: partial(bench.copying, few[name], work) for name, work in works_of.items()}, rounds=9, quick=5
    )
    seconds = {name: [cost.cpu_seconds for cost in some] for name, some in costs.items()}
    if bench.counts_instructions:
        yield Figure(
            "client instructions per copy, base-table listing",
            ratios(works(costs["ours"]), works(costs["loop"])), "%", bench.counters.kind, at_most=0.09, gated=True,
        )  # fmt: skip
    yield Figure("client CPU per copy", ratios(seconds["ours"], seconds["loop"]), "%", CPU_TIME, at_most=0.11)
    yield Figure(
        "client CPU per copy, against 25 guarded statements by hand",
        ratios(seconds["ours"], seconds["guarded"]), "x", CPU_TIME, at_most=1.3, gated=True,
    )  # fmt: skip
    yield Figure("the same with 4 workers", ratios(seconds["four"], seconds["loop"]), "%", CPU_TIME)
    for name in ("pool", "blind", "guarded"):
        yield Figure(f"the same, {WORDS[name]}", ratios(seconds[name], seconds["loop"]), "%", CPU_TIME)
    for name in ("loop", "pool", "blind", "guarded", "ours"):
        yield Figure(f"CPU per copy, {WORDS[name]}", tuple(1e6 * each for each in seconds[name]), "us", CPU_TIME)


def note_fan_out(bench: Bench) -> Iterator[Figure]:
    """Requests, bytes and units per copy, as the engine counts them."""
    url, pipeline = bench.engine.url, consumer_of(bench.engine.url, ONE_WORKER)
    found, again = {}, {}
    for name, work in (by_hand(url) | {"ours": lambda: handled(pipeline, renamed("together"))}).items():
        targets = bench.fixed(400 if name in ONE_BY_ONE else 2_000)
        bench.copying(targets, work)
        found[name] = {what: count / targets for what, count in bench.engine.counts().items()}
        bench.engine.set(targets=targets, right=True)
        work()
        again[name] = bench.engine.counts()["written"] / targets
    bench.engine.set(targets=100)
    handled(pipeline, renamed("together", times=100))
    lists = bench.engine.counts()["fan_outs"]
    spread = bench.fixed(SHARED)
    bench.copying(spread, shared(url, renamed("together")))
    of_workers = bench.engine.counts()
    ours, theirs = found["ours"], found["loop"]
    yield Figure("requests per copy", (ours["requests"],), "", ENGINE, at_most=0.042, gated=True)
    yield Figure(
        "bytes sent per copy", (ours["bytes"] / theirs["bytes"],), "%", ENGINE, at_most=0.25, gated=True,
        note=f"{ours['bytes']:.0f} of {theirs['bytes']:.0f}",
    )  # fmt: skip
    yield Figure("write units per copy", (ours["written"],), "", ENGINE, at_most=1, at_least=1, gated=True)
    yield Figure("write units per copy that is right", (again["ours"],), "", ENGINE, at_most=0, gated=True)
    yield Figure("read units per copy of 1 KB", (ours["read_units"],), "", ENGINE, at_most=0.3, gated=True)
    words, units = f"read units per copy of 1 KB, {spread:,} shared by workers", of_workers["read_units"] / spread
    yield Figure(words, (units,), "", ENGINE, at_most=0.3, gated=True)
    words = "fan-outs of 100 changes of one source in one batch"
    yield Figure(words, (lists,), "", ENGINE, at_most=1, at_least=1, gated=True)
    for name in ("loop", "pool", "blind", "guarded"):
        for words, figure in (
            ("requests per copy", found[name]["requests"]), ("bytes sent per copy", found[name]["bytes"]),
            ("read units per copy", found[name]["read_units"]), ("write units per copy", found[name]["written"]),
            ("write units per copy that is right", again[name]),
        ):  # fmt: skip
            yield Figure(f"{words}, {WORDS[name]}", (figure,), "", ENGINE)


def index(bench: Bench) -> Iterator[Figure]:
    """Targets of their own partitions, found through a keys-only index."""
    url, targets = bench.engine.url, bench.size(2_000)
    table, pipeline = baselines.table_of(url, "apart"), consumer_of(url, ONE_WORKER)
    costs = bench.in_turns(
        {
            "loop": lambda: bench.copying(targets // 5, lambda: baselines.loop(table, USER, AFTER)),
            "ours": lambda: bench.copying(targets, lambda: handled(pipeline, renamed("apart"))),
        },
        rounds=9,
    )
    requests = bench.engine.counts()["requests"] / targets
    if bench.counts_instructions:
        yield Figure(
            "client instructions per copy through a keys-only index, images included",
            ratios(works(costs["ours"]), works(costs["loop"])), "%", bench.counters.kind, at_most=0.14, gated=True,
        )  # fmt: skip
    seconds = {name: [cost.cpu_seconds for cost in some] for name, some in costs.items()}
    words = "client CPU per copy through a keys-only index, images included"
    yield Figure(words, ratios(seconds["ours"], seconds["loop"]), "%", CPU_TIME, at_most=0.14)
    yield Figure("requests per copy through a keys-only index", (requests,), "", ENGINE)


def latency(bench: Bench) -> Iterator[Figure]:
    """How fast one process is when each answer takes 5 ms, and the money of what people write by hand."""
    url, targets = bench.engine.url, bench.size(5_000)
    pipeline = consumer_of(url)
    works_of = by_hand(url, WORKERS) | {"ours": lambda: handled(pipeline, renamed("together"))}
    few = {name: targets // ONE_BY_ONE.get(name, 1) for name in works_of}
    units: dict[str, float] = {}

    def copying(name: str) -> Cost:
        cost = bench.copying(few[name], works_of[name], latency_ms=5)
        units[name] = bench.engine.counts()["read_units"] / few[name]
        return cost

    costs = bench.in_turns({name: partial(copying, name) for name in works_of}, rounds=5)
    rates = {name: [1 / cost.seconds for cost in some] for name, some in costs.items()}
    yield Figure("copies per second at 5 ms", ratios(rates["ours"], rates["loop"]), "x", WALL, at_least=30)
    for name in ("pool", "blind", "guarded"):
        yield Figure(f"the same, {WORDS[name]}", ratios(rates[name], rates["loop"]), "x", WALL)
    for name in works_of:
        yield Figure(f"copies per second at 5 ms, {WORDS[name]}", tuple(rates[name]), "", WALL)
    for name in by_hand(url):
        money = tuple(money_by_hand(1 / rate, units[name]) for rate in rates[name])
        yield Figure(f"money for a million copies, {WORDS[name]}", money, "USD", f"prices, units, {WALL}")
    ours = estimate(10**6, IN_PARTITION).money
    words = "without a rate limit, and with the records of its own writes"
    yield Figure("money for a million copies, ours", (float(ours),), "USD", "docs/scale.md", note=words)


def money_by_hand(seconds: float, units: float) -> float:
    """The price of a million copies of 1 KB in a function that does nothing else, from the figures of one."""
    prices = read_own_prices().regions[REGION]
    assert prices.functions
    function = 10**6 * seconds * WORKER_GIGABYTES * float(prices.functions.arm_gb_second)
    return float(compute_on_demand_price(prices, 10**6 * units, 10**6)) + function


def memory(bench: Bench) -> Iterator[Figure]:
    """Extra memory for a thousand times as many targets."""
    few, many = (1_000, 2_000) if bench.smoke else (1_000, 100_000 if bench.quick else 1_000_000)
    peaks = []
    for targets in (few, many):
        bench.engine.set(targets=targets)
        peaks.append(fresh.peak_bytes(bench.engine.url) / 1e6)
        assert bench.engine.counts()["distinct"] == targets
    yield Figure(
        f"memory growth from 1,000 to {many:,} targets", (peaks[1] - peaks[0],), "MB", "the peak of fresh processes",
        at_most=5, gated=True, note=f"{peaks[0]:.0f} to {peaks[1]:.0f}",
    )  # fmt: skip


def limited(bench: Bench) -> Iterator[Figure]:
    """Fan out under a limit of write units per second, which the client meets as throttles, or knows and keeps to. On a
    machine that is hardly faster than the limit, figures are reported without a goal. The figures depend on the clock,
    so the only gate is that no copy is lost.
    """
    cases = (("400/s, one partition", "together", 400, 1, 3_000), ("4 x 1,000/s", "apart", 1_000, 4, 20_000))
    for words, table, rate, partitions, wanted in cases:
        whole = rate * partitions
        targets = whole + bench.fixed((wanted // 3 if bench.quick else wanted) - whole)
        meeting, keeping = consumer_of(bench.engine.url), consumer_of(bench.engine.url, write_units=whole)
        alone = 1 / bench.copying(bench.fixed(2_000), partial(handled, meeting, renamed(table))).seconds
        note = f"without a limit {alone:,.0f}/s"
        ideal = (targets - whole) / whole  # a second's worth is there when it begins
        for how, pipeline in (("", meeting), (", limit known", keeping)):
            bench.engine.set(targets=targets, writes_per_second=rate, partitions=partitions)
            cost = bench.counters.cost(partial(handled, pipeline, renamed(table)))
            counts = bench.engine.counts()
            meets = alone > MEETS_LIMIT * whole
            yield Figure(
                f"share of {words} reached{how}", (ideal / cost.seconds,), "%", WALL,
                at_least=0.95 if meets else None, note=note,
            )  # fmt: skip
            yield Figure(
                f"throttled writes per copy at {words}{how}", (counts["throttled"] / targets,), "", ENGINE,
                at_most=(0.05 if how else 0.3) if meets else None,
            )  # fmt: skip
            lost = targets - counts["distinct"]
            yield Figure(f"copies lost at {words}{how}", (lost,), "", ENGINE, at_most=0, gated=True)
    table = baselines.table_of(bench.engine.url, "together")
    bench.engine.set(targets=1_000, writes_per_second=400)
    given_up = baselines.pool(table, USER, AFTER)
    yield Figure("copies that the thread pool gives up at 400/s", (given_up / 1_000,), "%", ENGINE)
