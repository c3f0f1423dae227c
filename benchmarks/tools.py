"""The measures of commands that people wait for: items for each second of CPU, beside a bare scan of the same items.

Invariant: every command looks at each item as it does in a user's account; none writes, as all copies are right. Prune
compares the rules file with itself. A redrive has a failure record for each item that it looks at, or batches of
records that were given up.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import boto3

from benchmarks.bench import Bench, works
from benchmarks.counters import CPU_TIME, Cost
from benchmarks.figures import Figure, ratios
from benchmarks.ours import RULES_FILE, NoFailures, copied, store_of
from benchmarks.shop import RULES, record_day
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.audit.leftovers import FormerRules, prune_page
from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.jobs.failure_log import FailedLines
from sync_rules.jobs.redrive.entries import RedriveCounts
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.lab.recording import Body, Header, open_recording, read_recording
from sync_rules.lab.recording_replay import Replay
from sync_rules.lab.tape import Tape
from sync_rules.lab.trial import choose_deliveries
from sync_rules.language.load import load_rules, parse_rules
from sync_rules.model.items import Failure, ItemKey
from sync_rules.model.json_bytes import format_compact_json
from sync_rules.pipeline.failure_records import make_failure_record
from sync_rules.pipeline.requests import NULL_PORTS, World, run_work
from sync_rules.rules.ruleset import Rules

RULE: Final = "name-on-orders"
TABLE: Final = "together"
FAILED_SHARE: Final = 10  # of the items have a failure record
BATCH_RECORDS: Final = 100
CREATED: Final = datetime(2026, 1, 1, tzinfo=UTC)
ARN: Final = "arn:aws:dynamodb:us-east-1:111122223333:table/together/stream/2026-01-01T00:00:00.000"


def tools(bench: Bench) -> Iterator[Figure]:
    """A bare scan with boto3, and what verify, plan, prune, record and redrive do with as many items."""
    url, items = bench.engine.url, bench.size(10_000)
    rules = load_rules(RULES_FILE)
    some = frozenset({RULE})
    client, store = boto3.client("dynamodb", endpoint_url=url), store_of(url, rules)

    def scan() -> None:
        pages = client.get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
        assert sum(page["Count"] for page in pages) == items

    def verify() -> None:
        verifier = Verifier(rules, World(store, NULL_PORTS, NoFailures()), some, grace_seconds=0)
        assert not list(verifier.sweep())
        assert verifier.tally.items == items

    def plan() -> None:
        assert Planner(rules, some, store).run().writes == 0

    bodies = list(records(scanned(client, bench, items)))

    def record() -> None:
        with TemporaryDirectory() as folder, open_recording(Path(folder) / "day.jsonl", Header()) as write:
            tape = Tape(write, rules)
            tape.take({"Records": bodies})
            assert tape.tables.total() == items

    failed = [failure_of(number) for number in range(items // FAILED_SHARE)]
    copies = copied(TABLE, items)["Records"]
    given_up = [batch_of(copies[at : at + BATCH_RECORDS]) for at in range(0, items, BATCH_RECORDS)]

    def redrive_failures() -> None:
        redriven(rules, store, failed)

    def redrive_batches() -> None:
        assert redriven(rules, store, given_up).records == items

    named = {
        "scan": scan, "verify": verify, "plan": plan, "prune": lambda: prune(rules, store, items), "record": record,
        "redrive of failure records": redrive_failures, "redrive of batches": redrive_batches,
    }  # fmt: skip

    def of(name: str) -> Cost:
        bench.engine.set(targets=items, right=True)
        return bench.counters.cost(named[name]).per(len(failed) if named[name] is redrive_failures else items)

    costs = bench.in_turns({name: partial(of, name) for name in named}, rounds=5)
    for name, found in costs.items():
        rates = tuple(1 / cost.cpu_seconds for cost in found)
        yield Figure(f"{name}, items of 1 KB for each second of CPU", rates, "", CPU_TIME)
        if name != "scan":
            yield Figure(
                f"{name}, per item, against a bare scan",
                ratios(works(found), works(costs["scan"])), "x", bench.counters.kind,
            )  # fmt: skip
    yield from replayed(bench)


def prune(rules: Rules, store: DynamoStore, items: int) -> None:
    """Look for leftovers of these rules, which the current rules still write."""
    past, world, count = FormerRules(rules, rules, frozenset({RULE})), World(store, NULL_PORTS, NoFailures()), 0
    page = run_work(prune_page(rules.tables[TABLE], past, None), world)
    while page.cursor is not None:
        count += page.items
        page = run_work(prune_page(rules.tables[TABLE], past, page.cursor), world)
    assert count + page.items == items


def redriven(rules: Rules, store: DynamoStore, entries: list[dict[str, object]]) -> RedriveCounts:
    """Redrive entries from a file; asserts that each succeeds and is removed."""
    with TemporaryDirectory() as folder:
        lines = Path(folder) / "failures.jsonl"
        lines.write_text("".join(f"{format_compact_json(one)}\n" for one in entries))
        place = FailedLines(lines)
        redriver = Redriver(rules, World(store, NULL_PORTS, NoFailures()))
        redriver.take(place)
        redriver.rest()
        place.close()
        assert not lines.read_text()
    assert redriver.tally.done == len(entries)
    return redriver.tally


def failure_of(number: int) -> dict[str, object]:
    """A failure record of the copy on one target."""
    key = ItemKey(TABLE, (("PK", "S", "U#1"), ("SK", "S", f"O#{number:09}")))
    return make_failure_record(Failure(RULE, key, "ThrottlingException"), CREATED)


def batch_of(bodies: list[Body]) -> dict[str, object]:
    """A batch that was given up, as Lambda sends it to an on-failure destination in S3."""
    numbers = [body["dynamodb"]["SequenceNumber"] for body in bodies]
    span = {"startSequenceNumber": numbers[0], "endSequenceNumber": numbers[-1], "streamArn": ARN, "shardId": "shard"}
    return {"DDBStreamBatchInfo": span, "payload": format_compact_json({"Records": bodies})}


def replayed(bench: Bench) -> Iterator[Figure]:
    """CPU of a replay for each change of the application: a day in a shop, recorded and played under every delivery."""
    changes = bench.size(5_000) // 20
    rules = parse_rules(RULES, environ={})
    with TemporaryDirectory() as folder:
        file = Path(folder) / "day.jsonl"
        number = record_day(file, rules, 20 * changes, changes)
        recorded = read_recording(file, rules).records
    assert len(recorded) == number

    def play() -> None:
        for delivery in choose_deliveries():
            assert not list(Replay(rules, delivery).list_mismatches(recorded))

    cost = bench.counters.cost(play).per(changes * len(choose_deliveries()))
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
