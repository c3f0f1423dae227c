"""Compute the tables of docs/scale.md: the time and cost of a fan-out on AWS, and which limit binds, for a thousand to
a billion copies. `python -m benchmarks.scale` writes them there.

Invariant: nothing here was run on AWS. Every number is an assumption or a documented limit, named below, or computed
from these. `make bench` measures how many copies one process writes per second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from textwrap import fill
from typing import Final

from sync_rules.extras.design.costs.pipeline_costs import (
    CHUNK_COPIES,
    INLINE_COPIES,
    PAGE_COPIES,
    RECORD_SECONDS,
    STREAM_BATCH_RECORDS,
    WORKER_COPIES_SECOND,
    WORKER_GIGABYTES,
    compute_price,
    count_fanout_units,
    estimate_compute,
)
from sync_rules.jobs.dryrun.money import compute_on_demand_price
from sync_rules.jobs.dryrun.prices import read_own_prices
from sync_rules.model import sizes
from sync_rules.model.sizes import PARTITION_MAX_READ_UNITS, PARTITION_MAX_WRITE_UNITS

PAGE: Final = Path(__file__).parent.parent / "docs" / "scale.md"
BEGIN, END = "<!-- generated: scale -->\n", "<!-- end -->"
LINE_MAX: Final = 118
COPIES: Final = tuple(10**power for power in range(3, 10))
REGION: Final = "us-east-1"

# ---------------------------------------------------------------- DynamoDB: limits, units per second
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html
NEW_TABLE_WRITES: Final = 4_000
NEW_TABLE_READS: Final = 12_000
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
TABLE_WRITES: Final = 40_000
TABLE_READS: Final = 40_000
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
DOUBLES_SECONDS: Final = 30 * 60  # after which an on-demand table takes twice its peak
PARTITION_BYTES: Final = 10 * 10**9  # a larger partition is split, so that a large table takes more from the start

# ---------------------------------------------------------------- Lambda and SQS
WORKERS_MAX: Final = 1_000  # MaximumConcurrency of an SQS event source mapping, and Lambda's default for an account
WORKERS_MIN: Final = 2  # the least MaximumConcurrency there is
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
WORKERS_FIRST: Final = 5
WORKERS_MORE_SECOND: Final = 5.0  # 300 a minute
LAMBDA_MAX_SECONDS: Final = 1_800

# ---------------------------------------------------------------- assumptions
TARGET_BYTES: Final = 1_024
INDEX_ROW_BYTES: Final = 128  # keys only
LISTED_COPIES_SECOND: Final = 18_000  # by the process that lists an index and sends keys on: benchmarks.simulation
LOOP_COPIES_SECOND: Final = 130  # the hand-written loop, measured beside


@dataclass(frozen=True)
class Limit:
    """A limit on copies per second."""

    name: str
    copies_second: float


ONE_PROCESS: Final = Limit("one process", WORKER_COPIES_SECOND)


@dataclass(frozen=True)
class Layout:
    """Placement of the targets, and how warm their table is. `write_units` has the units per second of the first half
    hour, the next, and so on; the last value stays. `listed_bytes` is read for each target by a listing.
    """

    title: str
    words: str
    name: str
    write_units: Sequence[int]
    read_units: float
    listed_bytes: int
    consistent: bool


LAYOUTS: Final = (
    Layout(
        "In one partition",
        "The targets share a partition key, as when they lie beside their source. They are written in the order of"
        " their keys, so that one partition takes all writes of a moment, however many the table has.",
        "partition",
        (PARTITION_MAX_WRITE_UNITS,),
        PARTITION_MAX_READ_UNITS,
        TARGET_BYTES,
        consistent=True,
    ),
    Layout(
        "Spread, in a new on-demand table",
        "Each target has a partition key of its own and is found through an index that projects keys only. The table"
        " takes twice as much after each half hour, up to the quota; one of more than 40 GB takes more from the start,"
        " because it has a partition for each 10 GB.",
        "new table",
        (*(NEW_TABLE_WRITES << half_hours for half_hours in range(4)), TABLE_WRITES),
        NEW_TABLE_READS,
        INDEX_ROW_BYTES,
        consistent=False,
    ),
    Layout(
        "Spread, in a warm table",
        "The same, in a table that has had such traffic, or was warmed for it.",
        "table quota",
        (TABLE_WRITES,),
        TABLE_READS,
        INDEX_ROW_BYTES,
        consistent=False,
    ),
)


IN_PARTITION: Final = LAYOUTS[0]


@dataclass(frozen=True)
class Estimate:
    """The time and cost of one fan-out. Money is in dollars; `workers` is the number that the fastest rate needs."""

    copies: int
    seconds: float
    binds: str
    workers: int
    writes: Decimal
    reads: Decimal
    compute: Decimal

    @property
    def money(self) -> Decimal:
        return self.writes + self.reads + self.compute


# ---------------------------------------------------------------- time
def estimate(copies: int, layout: Layout) -> Estimate:
    """Estimate time and money of a fan-out."""
    seconds, binds, fastest = _duration(copies, layout)
    writes, reads = write_units(copies), read_units(copies, layout)
    prices = read_own_prices().regions[REGION]
    workers = max(WORKERS_MIN, math.ceil(fastest / WORKER_COPIES_SECOND)) if copies > INLINE_COPIES else 1
    return Estimate(
        copies, seconds, binds, workers,
        compute_on_demand_price(prices, 0, writes), compute_on_demand_price(prices, reads, 0), compute(copies, layout),
    )  # fmt: skip


def _duration(copies: int, layout: Layout) -> tuple[float, str, float]:
    """The duration in seconds, the limit that most of it is due to, and the fastest rate. One process makes the first
    copies, and workers make the others.
    """
    inline = min(copies, INLINE_COPIES)
    alone = min((*_table_limits(copies, layout, 0), ONE_PROCESS), key=lambda one: one.copies_second)
    left, seconds, fastest = float(copies - inline), inline / alone.copies_second, alone.copies_second
    due = {alone.name: seconds}
    for stage in range(len(layout.write_units)):
        if left <= 0:
            break
        limit = min(_limits(copies, layout, stage), key=lambda one: one.copies_second)
        last = stage == len(layout.write_units) - 1
        spent = left / limit.copies_second if last else min(left / limit.copies_second, DOUBLES_SECONDS)
        left -= spent * limit.copies_second
        seconds += spent
        due[limit.name] = due.get(limit.name, 0) + spent
        fastest = limit.copies_second
    return seconds, max(due, key=lambda name: due[name]), fastest


def _table_limits(copies: int, layout: Layout, stage: int) -> tuple[Limit, Limit]:
    """The table's limits: it warms up, from what its size alone gives it where that is more."""
    partitions = 0 if layout.consistent else math.ceil(copies * TARGET_BYTES / PARTITION_BYTES) << stage
    writes = max(layout.write_units[stage], min(partitions * PARTITION_MAX_WRITE_UNITS, TABLE_WRITES))
    reads = min(max(layout.read_units * 2**stage, partitions * PARTITION_MAX_READ_UNITS), TABLE_READS)
    name = "table quota" if writes == TABLE_WRITES else layout.name
    return (
        Limit(f"{name}, writes", writes / write_units(1)),
        Limit(f"{name}, reads", reads * copies / read_units(copies, layout)),
    )


def _limits(copies: int, layout: Layout, stage: int) -> Iterable[Limit]:
    """The limits of the copies that workers make."""
    limits = [*_table_limits(copies, layout, stage)]
    if not layout.consistent:  # in the base table each worker lists what it makes
        limits.append(Limit("listing", LISTED_COPIES_SECOND))
    yield from limits
    least = min(one.copies_second for one in limits)
    meanwhile = WORKERS_FIRST + WORKERS_MORE_SECOND / 2 * copies / least
    workers = min(WORKERS_MAX, meanwhile)
    yield Limit("workers, few at first" if workers < WORKERS_MAX else "workers", workers * WORKER_COPIES_SECOND)


# ---------------------------------------------------------------- units and money
def write_units(copies: int) -> int:
    """The write units of copies."""
    return copies * sizes.count_write_units(TARGET_BYTES)


def read_units(copies: int, layout: Layout) -> float:
    """The read units of copies, listed as the layout has it."""
    return count_fanout_units(copies, TARGET_BYTES, layout.listed_bytes, consistent=layout.consistent)


def compute(copies: int, layout: Layout) -> Decimal:
    """The cost of Lambda and SQS."""
    work = estimate_compute(copies, WORKER_COPIES_SECOND, consistent=layout.consistent)
    money = compute_price(work, read_own_prices().regions[REGION])
    assert money is not None
    return money


def loop_invocations(copies: int) -> int:
    """The invocations that the hand-written loop takes, if it could resume where Lambda's limit stopped it."""
    return math.ceil(copies / (LOOP_COPIES_SECOND * LAMBDA_MAX_SECONDS))


# ---------------------------------------------------------------- shown
def duration(seconds: float) -> str:
    """A duration in the largest unit that gives at least 1."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2g} s"


def dollars(money: Decimal) -> str:
    """An amount to three digits, or "under" for less than a hundredth of a cent."""
    if money < Decimal("0.0001"):
        return "under $0.0001"
    digits = max(0, 2 - math.floor(math.log10(money)))
    return f"${float(f'{money:.3g}'):,.{min(digits, 4)}f}"


def assumed() -> Iterable[tuple[str, str]]:
    """The assumptions behind the estimates."""
    region = read_own_prices().regions[REGION]
    prices, functions, queues = region.on_demand, region.functions, region.queues
    assert functions
    assert queues
    more = f"{WORKERS_MORE_SECOND * 60:.0f}"
    yield "a target; no index contains a copied attribute", f"{TARGET_BYTES:,} bytes"
    yield "a target's row in an index that projects keys only", f"{INDEX_ROW_BYTES} bytes"
    yield "copies per second of one process, each answer after 5 ms, on a busy machine", f"{WORKER_COPIES_SECOND:,}"
    yield "copies per second that one process lists in an index, and sends on to workers", f"{LISTED_COPIES_SECOND:,}"
    yield "copies per second of the hand-written loop", f"{LOOP_COPIES_SECOND}"
    yield "copies made by the invocation that got the record; workers make the others", f"{INLINE_COPIES:,}"
    yield "copies per message to a worker, in the base table, through an index", f"{PAGE_COPIES}, {CHUNK_COPIES}"
    yield "records of the pipeline's own writes, per batch", f"{STREAM_BATCH_RECORDS}"
    yield "time for each such record", f"{RECORD_SECONDS * 1e6:.0f} us"
    yield "memory of a worker, which gives it a whole core", f"{WORKER_GIGABYTES} GB"
    yield (
        "write units and read units per second of one partition",
        f"{PARTITION_MAX_WRITE_UNITS:,}, {PARTITION_MAX_READ_UNITS:,}",
    )
    yield "bytes of a partition, at most", f"{PARTITION_BYTES:,}"
    yield "write units and read units per second of a new on-demand table", f"{NEW_TABLE_WRITES:,}, {NEW_TABLE_READS:,}"
    yield "write units and read units per second of a table, by default quota", f"{TABLE_WRITES:,}, {TABLE_READS:,}"
    yield "workers at first, workers added per minute, most workers", f"{WORKERS_FIRST}, {more}, {WORKERS_MAX:,}"
    units = f"${prices.write_units_million}, ${prices.read_units_million}"
    yield "price of a million write units, of a million read units", units
    words = f"${functions.arm_gb_second}, ${functions.requests_million:.2f}"
    yield "price of Lambda (arm64): a gigabyte-second, a million invocations", words
    yield "price of SQS: a million requests, three for each message", f"${queues.requests_million:.2f}"


def generated() -> str:
    """The generated part of docs/scale.md."""
    prices = read_own_prices()
    parts = [
        "## Assumptions\n",
        table("assumption | value", "|---|---:|", (f"| {words} | {value} |" for words, value in assumed())),
        f"Prices are of {REGION}, on demand, {prices.date}: {prices.source}.\n",
        "## Results\n",
    ]  # fmt: skip
    for layout in LAYOUTS:
        rows = [_row(estimate(copies, layout)) for copies in COPIES]
        head = "copies | time | binding limit | workers | writes | reads | Lambda, SQS | in all"
        parts += [f"### {layout.title}\n", f"{fill(layout.words, LINE_MAX)}\n"]
        parts.append(table(head, "|---:|---:|---|---:|---:|---:|---:|---:|", rows))
    rows = [
        f"| {copies:,} | {duration(copies / LOOP_COPIES_SECOND)} | {loop_invocations(copies):,} |" for copies in COPIES
    ]
    parts += [
        "### The loop by hand, in one Lambda\n",
        f"At {LOOP_COPIES_SECOND} copies a second, if the table takes them.\n",
    ]
    parts.append(table(f"copies | time | invocations of {LAMBDA_MAX_SECONDS // 60} minutes", "|---:|---:|---:|", rows))
    return "\n".join(parts)


def table(head: str, line: str, rows: Iterable[str]) -> str:
    """A table of the page."""
    return "\n".join([f"| {head} |", line, *rows, ""])


def _row(one: Estimate) -> str:
    cells = (
        f"{one.copies:,}", duration(one.seconds), one.binds, f"{one.workers:,}",
        *map(dollars, (one.writes, one.reads, one.compute, one.money)),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def page_with(page: str) -> str:
    """The page with its generated part made anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{generated()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text()))
