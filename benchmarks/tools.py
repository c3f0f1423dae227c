"""The measures of commands that people wait for: items for each second of CPU, beside a bare scan of the same items.

Invariant: every command looks at each item as it does in a user's account; none writes, as all copies are right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import boto3

from benchmarks.bench import Bench, works
from benchmarks.counters import CPU_TIME, Cost
from benchmarks.figures import Figure, ratios
from benchmarks.ours import RULES_FILE, NoFailures, store_of
from benchmarks.shop import RULES, record_day
from sync_rules.audit.verifier import Verifier
from sync_rules.cli.commands.record import Tape
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.lab.recording import Body, Header, read, writing
from sync_rules.lab.replay import Common, Replay
from sync_rules.lab.trial import variants
from sync_rules.language.load import load_rules, parse_rules
from sync_rules.pipeline.requests import DroppingQueue, World

RULE: Final = "name-on-orders"
TABLE: Final = "together"
ARN: Final = "arn:aws:dynamodb:us-east-1:111122223333:table/together/stream/2026-01-01T00:00:00.000"


def tools(bench: Bench) -> Iterator[Figure]:
    """A bare scan with boto3, and what verify, plan and record do with as many items."""
    url, items = bench.engine.url, bench.size(10_000)
    rules = load_rules(RULES_FILE)
    some = frozenset({RULE})
    client, store = boto3.client("dynamodb", endpoint_url=url), store_of(url, rules)

    def scan() -> None:
        pages = client.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
        assert sum(page["Count"] for page in pages) == items

    def verify() -> None:
        verifier = Verifier(rules, World(store, DroppingQueue(), NoFailures()), some, grace_seconds=0)
        assert not list(verifier.sweep())
        assert verifier.tally.items == items

    def plan() -> None:
        assert Planner(rules, some, store).run().writes == 0

    bodies = list(records(scanned(client, bench, items)))

    def record() -> None:
        with TemporaryDirectory() as folder, writing(Path(folder) / "day.jsonl", Header()) as write:
            tape = Tape(write, rules)
            tape.take({"Records": bodies})
            assert tape.tables.total() == items

    def of(work: Callable[[], None]) -> Cost:
        bench.engine.set(targets=items, right=True)
        return bench.counters.cost(work).per(items)

    named = {"scan": scan, "verify": verify, "plan": plan, "record": record}
    costs = bench.in_turns({name: lambda work=work: of(work) for name, work in named.items()}, rounds=5)  # type: ignore[misc]
    for name, found in costs.items():
        rates = tuple(1 / cost.cpu_seconds for cost in found)
        yield Figure(f"{name}, items of 1 KB for each second of CPU", rates, "", CPU_TIME)
        if name != "scan":
            yield Figure(
                f"{name}, per item, against a bare scan",
                ratios(works(found), works(costs["scan"])), "x", bench.counters.kind,
            )  # fmt: skip
    yield from replayed(bench)


def replayed(bench: Bench) -> Iterator[Figure]:
    """CPU of a replay for each change of the application: a day in a shop, recorded and played under every delivery."""
    changes = bench.size(5_000) // 20
    rules = parse_rules(RULES, environ={})
    with TemporaryDirectory() as folder:
        file = Path(folder) / "day.jsonl"
        number = record_day(file, rules, 20 * changes, changes)
        recorded = read(file, rules).records
    assert len(recorded) == number
    common = Common()

    def play() -> None:
        for delivery in variants():
            assert not list(Replay(rules, delivery, common=common).mismatches(recorded))

    cost = bench.counters.cost(play).per(changes * len(variants()))
    yield Figure(f"replay, for each of {changes} changes", (1e6 * cost.cpu_seconds,), "us", CPU_TIME)
    copies = 1e6 * cost.cpu_seconds * changes / (number - changes)
    yield Figure("replay, for each record of a copy", (copies,), "us", CPU_TIME)


def scanned(client: object, bench: Bench, items: int) -> list[dict[str, object]]:
    """The items of the engine."""
    bench.engine.set(targets=items, right=True)
    pages = client.get_paginator("scan").paginate(TableName=TABLE)  # type: ignore[attr-defined]
    return [item for page in pages for item in page["Items"]]


def records(items: list[dict[str, object]]) -> Iterator[Body]:
    """A record for each item, as the stream has it."""
    for number, item in enumerate(items):
        data = {"Keys": {name: item[name] for name in ("PK", "SK")}, "OldImage": item, "NewImage": item}
        yield {"eventName": "MODIFY", "eventSourceARN": ARN, "dynamodb": {**data, "SequenceNumber": str(number)}}
