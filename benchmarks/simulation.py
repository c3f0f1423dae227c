"""The times of docs/scale.md, simulated: `python -m benchmarks.simulation` writes the tables beside the computed ones.

Up to 100,000 copies each item is simulated, with all of the product's code (`benchmarks.simulated`). Beyond that the
same code is run on some messages, with no limit but its own pace, and what it took stands for all others of their kind:
the fan-out is then 50,000 pieces, each of many chunks, for which listing, workers and partitions are waited for.

Invariant: nothing here is computed by the formulas of `benchmarks.scale`, with which it is compared. Nothing was run on
AWS.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from benchmarks.scale import (
    COPIES,
    DOUBLES_SECONDS,
    LAYOUTS,
    PAGE,
    PARTITION_BYTES,
    TARGET_BYTES,
    WORKERS_MIN,
    Layout,
    duration,
    estimate,
    table,
)
from benchmarks.simulated import (
    ANSWER_SECONDS,
    COPY_SECONDS,
    KEY_SECONDS,
    MESSAGE_SECONDS,
    TABLE_UNITS,
    WORKERS_FIRST,
    WORKERS_MORE_SECOND,
    Account,
    Partitions,
    Ran,
    Setting,
    Table,
)
from benchmarks.turns import Clock
from sync_rules.deploy.yamltext import read_yaml
from sync_rules.extras.design.costs.pipeline_costs import INLINE_COPIES
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Limits
from sync_rules.model.sizes import PARTITION_MAX_READ_UNITS, PARTITION_MAX_WRITE_UNITS
from sync_rules.pipeline.messages import PushMessage

BEGIN, END = "<!-- generated: simulation -->\n", "<!-- end simulation -->"
EACH_MAX_COPIES: Final = 100_000  # of which each is simulated
PIECES: Final = 50_000
LISTER: Final = 0  # the worker that lists
HEAT_SECONDS: Final = 600  # at its limit for so long, a partition is split; AWS documents that it is, not when
EXPLAINED: Final = 0.2
WARM_PARTITIONS: Final = TABLE_UNITS // PARTITION_MAX_WRITE_UNITS
RULES_OF: Final = {"together": "name-on-orders", "apart": "name-on-purchases"}
ONE_PARTITION, WHOLE_TABLE = 1_000, 40_000  # of the template's WriteUnitsPerSecond
TEMPLATE: Final = read_yaml((PAGE.parent.parent / "template.yaml").read_text(), "template.yaml")
DEFAULT: Final = TEMPLATE["Parameters"]["WriteUnitsPerSecond"]["Default"]
PACES: Final = {
    int(units): Setting(one["Workers"], float(one["UnitsOfEach"]))
    for units, one in TEMPLATE["Mappings"]["FanoutPace"].items()
}


def placed(layout: Layout) -> str:
    return "together" if layout.consistent else "apart"


def partitions_of(layout: Layout, copies: int) -> int:
    """The partitions that the targets have at first: as many as their size needs, and those of a warm table."""
    by_size = math.ceil(copies * TARGET_BYTES / PARTITION_BYTES)
    return by_size if layout.consistent else max(by_size, layout.write_units[0] // PARTITION_MAX_WRITE_UNITS)


def account(layout: Layout, copies: int, setting: Setting, partitions: int, units: int = TABLE_UNITS) -> Account:
    clock = Clock()
    even = [copies * number // partitions for number in range(1, partitions)] if layout.consistent else None
    return Account(clock, Table(placed(layout), copies, Partitions(clock, partitions, units), even), setting)


# ---------------------------------------------------------------- each item
@cache
def each(copies: int, layout: Layout, setting: Setting) -> Ran:
    """Simulate each item. Asserts that no copy is lost, and that no message is given up."""
    ran = account(layout, copies, setting, partitions_of(layout, copies)).run()
    assert ran.counts["copies"] == copies, ran
    assert not ran.counts["dead letters"], ran
    return ran


# ---------------------------------------------------------------- pieces
@dataclass(frozen=True)
class Pace:
    """The product's own pace, where nothing limits it: copies per second listed and made, and a worker's read units."""

    listed_second: float
    worker_second: float
    worker_units: float


@cache
def pace(layout: Layout, setting: Setting) -> Pace:
    """Run the planner on one message that spreads, and a worker on the first of what it sent. In the base table the
    planner makes the copies itself, once it has sent on where the next one begins.
    """
    keys, chunks = Limits().fan_out_spread_max_items, 20
    name = placed(layout)
    source = ItemKey(name, (("PK", "S", "U#1"), ("SK", "S", "USER")))
    lister = account(layout, keys, setting, 1_000, 10**9)
    seconds = lister.processed([PushMessage((RULES_OF[name],), source, spread=True)])
    if layout.consistent:
        copies = lister.counts["copies"]
        rate = min(copies / seconds, setting.units_of_each or math.inf)
        return Pace(copies / lister.listed_seconds, rate, lister.counts["read units"] / copies)
    worker = account(layout, keys, setting, 1_000, 10**9)
    worked = worker.processed(lister.sent[:chunks])
    copies = worker.counts["copies"]
    rate = copies / worked if not setting.units_of_each else min(copies / worked, setting.units_of_each)
    return Pace(keys / seconds, rate, worker.counts["read units"] / copies)


@dataclass
class Flow:
    """Units that pass one after another at a rate, which may change with time."""

    rate: float
    free_at: float = 0.0
    passed: float = 0.0

    def take(self, start: float, units: float) -> float:
        """The time at which these units have passed."""
        if not units:
            return start
        self.free_at = max(self.free_at, start) + units / self.rate
        self.passed += units
        return self.free_at


@dataclass
class Throughput:
    """The partitions of the targets, as flows. Where targets share a partition key they are ordered: a piece is in one
    partition, which is split in its middle by heat. Else all partitions take an equal share of each piece, and the
    table takes twice its peak after each half hour.
    """

    layout: Layout
    copies: int
    bounds: list[int] = field(default_factory=list)
    flows: list[tuple[Flow, Flow]] = field(default_factory=list)
    began: list[float] = field(default_factory=list)
    peak: float = 0.0
    half_hours: int = 0

    def __post_init__(self) -> None:
        partitions = partitions_of(self.layout, self.copies)
        if self.layout.consistent:
            self.bounds = [self.copies * number // partitions for number in range(1, partitions)]
            self.flows = [self._flow(1) for _ in range(partitions)]
            self.began = [math.inf] * partitions
        else:
            self.flows = [self._flow(partitions)]

    @staticmethod
    def _flow(partitions: float) -> tuple[Flow, Flow]:
        writes, reads = partitions * PARTITION_MAX_WRITE_UNITS, partitions * PARTITION_MAX_READ_UNITS
        return Flow(min(TABLE_UNITS, writes)), Flow(min(TABLE_UNITS, reads))

    def take(self, number: int, start: float, writes: float, reads: float) -> float:
        """The time at which a piece that begins with this target has been read and written."""
        place = bisect_right(self.bounds, number)
        written, read = self.flows[place]
        if self.layout.consistent:
            self._heat(place, start)
        else:
            self._double(start)
        return max(written.take(start, writes), read.take(start, reads))

    def _heat(self, place: int, now: float) -> None:
        """Split a partition that was at its limit for long; its second half is one of its own from then on."""
        self.began[place] = min(self.began[place], now)
        low = self.bounds[place - 1] if place else 0
        high = self.bounds[place] if place < len(self.bounds) else self.copies
        if now - self.began[place] >= HEAT_SECONDS and high - low > 1:
            insort(self.bounds, (low + high) // 2)
            self.flows.insert(place + 1, self._flow(1))
            self.began[place : place + 1] = [now, math.inf]

    def _double(self, now: float) -> None:
        written, read = self.flows[0]
        while now >= (self.half_hours + 1) * DOUBLES_SECONDS:
            self.peak, written.passed = max(self.peak, written.passed / DOUBLES_SECONDS), 0.0
            partitions = max(written.rate, 2 * self.peak) / PARTITION_MAX_WRITE_UNITS
            written.rate = min(TABLE_UNITS, partitions * PARTITION_MAX_WRITE_UNITS)
            read.rate = min(TABLE_UNITS, max(read.rate, partitions * PARTITION_MAX_READ_UNITS))
            self.half_hours += 1


def pieces(copies: int, layout: Layout, setting: Setting) -> Ran:
    """Simulate a fan-out in pieces, in the order of time. Through an index one worker lists them until it comes to the
    end, and the others make them; in the base table each makes the piece that it lists.
    """
    its, throughput = pace(layout, setting), Throughput(layout, copies)
    size = max(Limits().fan_out_chunk_max_items, copies // PIECES)
    due = [(max(0.0, (number + 1 - WORKERS_FIRST) / WORKERS_MORE_SECOND), number) for number in range(setting.workers)]
    if layout.consistent:
        return _relayed(copies, its, throughput, size, due)
    queue: deque[int] = deque()  # numbers of the targets with which pieces begin
    idle: list[int] = []
    listed, listed_at, ended, busiest = 0, 0.0, 0.0, 0
    while due:
        now, worker = heapq.heappop(due)
        if worker == LISTER and listed < copies:
            some = min(size, copies - listed)
            listed_at = now + some / its.listed_second  # an index has partitions of its own
            queue.append(listed)
            listed += some
            for each_idle in [LISTER, *idle]:
                heapq.heappush(due, (listed_at, each_idle))
            idle.clear()
        elif queue:
            start = queue.popleft()
            some = min(size, copies - start)
            made_at = max(now + some / its.worker_second, throughput.take(start, now, some, some * its.worker_units))
            ended = max(ended, made_at)
            heapq.heappush(due, (made_at, worker))
            busiest = max(busiest, setting.workers - len(idle))
        else:
            idle.append(worker)
    return Ran(copies, ended, listed_at, busiest, {})


def _relayed(copies: int, its: Pace, throughput: Throughput, size: int, due: list[tuple[float, int]]) -> Ran:
    """The pieces of a base table: who is free takes the next one, as soon as the one before it is listed."""
    workers, listed, listed_at, ended = len(due), 0, 0.0, 0.0
    while listed < copies:
        free_at, worker = heapq.heappop(due)
        now, some = max(free_at, listed_at), min(size, copies - listed)
        listed_at = now + some / its.listed_second
        made_at = max(now + some / its.worker_second, throughput.take(listed, now, some, some * its.worker_units))
        listed, ended = listed + some, max(ended, made_at)
        heapq.heappush(due, (made_at, worker))
    return Ran(copies, ended, listed_at, workers, {})


def simulated(copies: int, layout: Layout, setting: Setting) -> Ran:
    return (each if copies <= EACH_MAX_COPIES else pieces)(copies, layout, setting)


# ---------------------------------------------------------------- shown
def compared(copies: int, layout: Layout, setting: Setting | None = None) -> tuple[float, float]:
    """The seconds of a fan-out, computed and simulated. Without a setting, there is no rate limit and the number of
    workers is the computed one; with it, no more than its write units are computed either.
    """
    computed = estimate(copies, layout)
    if setting is None:
        return computed.seconds, simulated(copies, layout, Setting(max(WORKERS_MIN, computed.workers))).seconds
    limited = max(0, copies - INLINE_COPIES) / (setting.workers * setting.units_of_each)
    return max(computed.seconds, limited), simulated(copies, layout, setting).seconds


def cells(copies: int, layout: Layout, setting: Setting | None = None) -> Iterator[str]:
    """A comparison as cells of a table. A difference that the page explains is bold."""
    computed, seconds = compared(copies, layout, setting)
    difference = seconds / computed - 1
    yield from (duration(computed), duration(seconds))
    yield f"**{difference:+.0%}**" if abs(difference) > EXPLAINED else f"{difference:+.0%}"


def rows(layout: Layout, limit: int) -> Iterator[str]:
    for copies in COPIES:
        both = (*cells(copies, layout), *cells(copies, layout, PACES[limit]))
        how = "each" if copies <= EACH_MAX_COPIES else "in pieces"
        yield f"| {copies:,} | {' | '.join(both)} | {how} |"


def assumed() -> Iterator[tuple[str, str]]:
    """The assumptions of the simulation, beside those of the computed tables."""
    yield "an answer of DynamoDB or SQS; a message deleted and the next one received", f"{ANSWER_SECONDS * 1e3:.0f} ms"
    yield "time of a core for each copy; four requests wait at once, and share one core", f"{COPY_SECONDS * 1e6:.0f} us"
    yield "time of a core for each item listed", f"{KEY_SECONDS * 1e6:.0f} us"
    yield "time of a core for each message sent", f"{MESSAGE_SECONDS * 1e3:.0f} ms"
    yield "units that a partition, and a table's quota, have in store at first", "one second's"
    yield "time at its limit after which an ordered partition is split in its middle", f"{HEAT_SECONDS // 60} min"


def generated() -> str:
    """The simulated part of docs/scale.md."""
    parts = [table("assumption of the simulation | value", "|---|---:|", (f"| {a} | {b} |" for a, b in assumed()))]
    for layout in LAYOUTS:
        limit = ONE_PARTITION if layout.consistent else WHOLE_TABLE
        head = "copies | computed | simulated | difference | "
        head += f"computed, template at {limit:,} | simulated | difference | items"
        parts += [f"### {layout.title}, simulated\n", table(head, f"|{'---:|' * 7}---|", rows(layout, limit))]
    default = (f"| {copies:,} | {' | '.join(cells(copies, LAYOUTS[0], PACES[DEFAULT]))} |" for copies in COPIES[1:-1])
    head = f"copies | computed, template at {DEFAULT} | simulated | difference"
    parts += ["### In one partition, at the template's default\n", table(head, "|---:|---:|---:|---:|", default)]
    return "\n".join(parts)


def page_with(page: str) -> str:
    """The page with its simulated part made anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{generated()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text()))
