"""The cost of records that need no copy: those that no rule reads, and those of the pipeline's own writes.

Invariant: each measure goes from the event, as Lambda passes it, to the answer, with a new event each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from benchmarks import baselines
from benchmarks.answering import target
from benchmarks.bench import Bench, works
from benchmarks.counters import CPU_TIME, Cost
from benchmarks.figures import ENGINE, Figure, ratios
from benchmarks.ours import consumer_of, copied, event_of, handled, idle_consumer
from sync_rules.language.load import parse_rules

RECORDS: Final = 1_000  # of a batch
MANY_ROUNDS: Final = 31  # each takes milliseconds, which another process on the machine may double


def irrelevant(bench: Bench) -> Iterator[Figure]:
    """Records that concern no rule, from the event to the answer."""
    few, many = (idle_consumer(parse_rules(_rules(count))) for count in (20, 200))
    prefixes = [f"S{number}" for number in range(20)]
    other, unread = (json.dumps(_records(sort_key)) for sort_key in ("LOG#{}", "S3"))

    def of(work: Callable[[dict[str, Any]], object], text: str) -> Cost:
        event = json.loads(text)  # a new one each time, as each batch is
        return bench.counters.cost(lambda: work(event)).per(RECORDS)

    costs = bench.in_turns(
        {
            "20": lambda: of(partial(handled, few), other),
            "200": lambda: of(partial(handled, many), other),
            "unread": lambda: of(partial(handled, few), unread),
            "by hand": lambda: of(partial(baselines.handle, prefixes=prefixes), other),
        },
        rounds=MANY_ROUNDS,
        quick=15,
    )
    kind = bench.counters.kind
    micros = {name: tuple(1e6 * cost.cpu_seconds for cost in some) for name, some in costs.items()}
    yield Figure("irrelevant record, of no rule's entity", micros["20"], "us", CPU_TIME, at_most=2)
    if bench.counts_instructions:
        counts = tuple(cost.instructions for cost in costs["20"])
        yield Figure("instructions per irrelevant record", counts, "", kind, at_most=4_000, gated=True)
    yield Figure(
        "irrelevant record, 200 rules against 20",
        ratios(works(costs["200"]), works(costs["20"])), "x", kind, at_most=1.1, gated=True,
    )  # fmt: skip
    yield Figure(
        "irrelevant record against a handler that deserialises it",
        ratios(works(costs["20"]), works(costs["by hand"])), "%", kind,
    )  # fmt: skip
    yield Figure("record of a rule's source, nothing changed that it reads", micros["unread"], "us", CPU_TIME)


def _rules(count: int) -> str:
    """A rules file with `count` rules, each with its own source and targets."""
    entities = "".join(
        f'  source{n}: {{table: bench, key: {{PK: "P#{{id}}", SK: "S{n}"}}}}\n'
        f'  target{n}: {{table: bench, key: {{PK: "P#{{id}}", SK: "T{n}#{{number}}"}}}}\n'
        for n in range(count)
    )
    rules = "".join(f"  rule{n}: copy source{n}.name into target{n}.name\n" for n in range(count))
    return f"tables: {{bench: {{key: {{PK: S, SK: S}}}}}}\nentities:\n{entities}rules:\n{rules}"


def _records(sort_key: str) -> dict[str, Any]:
    """Records of 1 KB items in which only an attribute changed that no rule reads."""
    items = [{**target("together", n), "PK": {"S": f"P#{n}"}, "SK": {"S": sort_key.format(n)}} for n in range(RECORDS)]
    return event_of("bench", [(item, {**item, "status": {"S": "PAID"}}) for item in items])


def own(bench: Bench) -> Iterator[Figure]:
    """Records of the pipeline's own writes, for targets of one source."""
    pipeline = consumer_of(bench.engine.url, 1)
    reads = []

    def run() -> Cost:
        event = copied("together", RECORDS)
        bench.engine.set(targets=RECORDS)
        cost = bench.counters.cost(lambda: handled(pipeline, event)).per(RECORDS)
        reads.append(bench.engine.counts()["requests"])
        return cost

    def by_hand() -> Cost:
        event = copied("together", RECORDS)
        return bench.counters.cost(lambda: baselines.handle(event, prefixes=["O#"])).per(RECORDS)

    costs = bench.in_turns({"own": run, "by hand": by_hand}, rounds=MANY_ROUNDS, quick=9)
    micros = tuple(1e6 * cost.cpu_seconds for cost in costs["own"])
    yield Figure("record of our own copy", micros, "us", CPU_TIME, at_most=10)
    yield Figure(
        "record of our own copy against a handler that deserialises it",
        ratios(works(costs["own"]), works(costs["by hand"])), "%", bench.counters.kind, at_most=1.25, gated=True,
    )  # fmt: skip
    yield Figure(f"requests for {RECORDS:,} of them, of one source", (max(reads),), "", ENGINE, at_most=1, gated=True)
