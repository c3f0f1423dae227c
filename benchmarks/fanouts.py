"""The cost of a fan-out: work, requests, bytes, time, memory, and the effect of a limit of the table.

Invariant: both sides make all copies, by the engine's count; figures are per copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from benchmarks import baselines, fresh
from benchmarks.answering import AFTER
from benchmarks.bench import Bench, works
from benchmarks.counters import CPU_TIME
from benchmarks.figures import ENGINE, WALL, Figure, ratios
from benchmarks.ours import consumer_of, handled, renamed

USER: Final = "1"
MEETS_LIMIT: Final = 1.5  # a client this many times as fast as the limit shows every pause
ONE_WORKER: Final = 1  # as many as the loop has: CPU time of threads counts their waiting for each other too


def base(bench: Bench) -> Iterator[Figure]:
    """Targets in the partition of their source."""
    url, targets = bench.engine.url, bench.size(2_000)
    table, alone, four = baselines.table_of(url, "together"), consumer_of(url, ONE_WORKER), consumer_of(url)
    few = targets // 5
    costs = bench.in_turns(
        {
            "loop": lambda: bench.copying(few, lambda: baselines.loop(table, USER, AFTER)),
            "ours": lambda: bench.copying(targets, lambda: handled(alone, renamed("together"))),
            "pool": lambda: bench.copying(few, lambda: baselines.pool(table, USER, AFTER)),
            "four": lambda: bench.copying(targets, lambda: handled(four, renamed("together"))),
        },
        rounds=9,
    )
    seconds = {name: [cost.cpu_seconds for cost in some] for name, some in costs.items()}
    if bench.counts_instructions:
        yield Figure(
            "client instructions per copy, base-table listing",
            ratios(works(costs["ours"]), works(costs["loop"])), "%", bench.counters.kind, at_most=0.06, gated=True,
        )  # fmt: skip
    yield Figure(
        "client CPU per copy",
        ratios(seconds["ours"], seconds["loop"]), "%", CPU_TIME, at_most=0.07, gated=True,
    )  # fmt: skip
    for name, words in (("four", "the same with 4 workers"), ("pool", "the same, loop in a thread pool")):
        yield Figure(words, ratios(seconds[name], seconds["loop"]), "%", CPU_TIME)
    for name in ("loop", "ours"):
        yield Figure(f"CPU per copy, {name}", tuple(1e6 * each for each in seconds[name]), "us", CPU_TIME)


def sent(bench: Bench) -> Iterator[Figure]:
    """Requests, bytes and writes per copy, as the engine counts them."""
    url, targets, few = bench.engine.url, 2_000, 400
    table, pipeline = baselines.table_of(url, "together"), consumer_of(url, ONE_WORKER)
    bench.copying(targets, lambda: handled(pipeline, renamed("together")))
    ours = {name: count / targets for name, count in bench.engine.counts().items()}
    bench.copying(few, lambda: baselines.loop(table, USER, AFTER))
    theirs = {name: count / few for name, count in bench.engine.counts().items()}
    bench.engine.set(targets=targets, right=True)
    handled(pipeline, renamed("together"))
    again = bench.engine.counts()["written"]
    bench.engine.set(targets=100)
    handled(pipeline, renamed("together", times=100))
    lists = bench.engine.counts()["fan_outs"]
    yield Figure(
        "requests per copy", (ours["requests"],), "", ENGINE, at_most=0.042, gated=True,
        note=f"the loop {theirs['requests']:.4g}",
    )  # fmt: skip
    yield Figure(
        "bytes sent per copy", (ours["bytes"] / theirs["bytes"],), "%", ENGINE, at_most=0.25, gated=True,
        note=f"{ours['bytes']:.0f} of {theirs['bytes']:.0f}",
    )  # fmt: skip
    yield Figure("writes per copy", (ours["written"],), "", ENGINE, at_most=1, at_least=1, gated=True)
    yield Figure("writes per copy that is right", (again / targets,), "", ENGINE, at_most=0, gated=True)
    words = "fan-outs of 100 changes of one source in one batch"
    yield Figure(words, (lists,), "", ENGINE, at_most=1, at_least=1, gated=True)


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
            ratios(works(costs["ours"]), works(costs["loop"])), "%", bench.counters.kind, at_most=0.09, gated=True,
        )  # fmt: skip
    seconds = {name: [cost.cpu_seconds for cost in some] for name, some in costs.items()}
    words = "client CPU per copy through a keys-only index, images included"
    yield Figure(words, ratios(seconds["ours"], seconds["loop"]), "%", CPU_TIME, at_most=0.09)
    yield Figure("requests per copy through a keys-only index", (requests,), "", ENGINE)


def latency(bench: Bench) -> Iterator[Figure]:
    """How fast one process is when each answer takes 5 ms."""
    url, targets = bench.engine.url, bench.size(5_000)
    table, pipeline = baselines.table_of(url, "together"), consumer_of(url)
    few = targets // 50
    costs = bench.in_turns(
        {
            "loop": lambda: bench.copying(few, lambda: baselines.loop(table, USER, AFTER), latency_ms=5),
            "ours": lambda: bench.copying(targets, lambda: handled(pipeline, renamed("together")), latency_ms=5),
            "pool": lambda: bench.copying(few * 5, lambda: baselines.pool(table, USER, AFTER), latency_ms=5),
        },
        rounds=5,
    )
    rates = {name: [1 / cost.seconds for cost in some] for name, some in costs.items()}
    yield Figure("copies per second at 5 ms", ratios(rates["ours"], rates["loop"]), "x", WALL, at_least=30)
    yield Figure("the same, loop in a thread pool", ratios(rates["pool"], rates["loop"]), "x", WALL)
    for name in ("loop", "ours"):
        yield Figure(f"copies per second at 5 ms, {name}", tuple(rates[name]), "", WALL)


def memory(bench: Bench) -> Iterator[Figure]:
    """Extra memory for a thousand times as many targets."""
    many = 100_000 if bench.quick else 1_000_000
    peaks = []
    for targets in (1_000, many):
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
        targets, whole = wanted // 3 if bench.quick else wanted, rate * partitions
        meeting, keeping = consumer_of(bench.engine.url), consumer_of(bench.engine.url, write_units=whole)
        alone = 1 / bench.copying(2_000, partial(handled, meeting, renamed(table))).seconds
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
