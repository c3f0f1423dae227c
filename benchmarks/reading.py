"""The cost before anything is copied: the start of a process, and the scan of a table.

Invariant: both sides read the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import quantiles
from typing import Any

import boto3

from benchmarks import fresh
from benchmarks.bench import Bench, works
from benchmarks.counters import CPU_TIME, Cost
from benchmarks.figures import WALL, Figure, ratios
from benchmarks.ours import RULES_FILE, NoFailures, store_of
from sync_rules.jobs.backfill.page import Selection, process_page
from sync_rules.language.load import load_rules
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.requests import NULL_PORTS, Scan, World, run_work


def start(bench: Bench) -> Iterator[Figure]:
    """The work of a fresh process before its first record, and with it."""
    bench.engine.set(targets=1)
    with fresh.deployed() as rules_file:
        costs = bench.in_turns(
            {
                name: partial(bench.counters.cost, partial(fresh.run, code, rules_file, bench.engine.url))
                for name, code in fresh.STARTS.items()
            },
            rounds=30,
            quick=3,
        )
    for name, beside, most, gated, words in (
        ("import", "client", 1.0, True, "handler import, against boto3.client alone"),
        ("ready", "client", 1.1, False, "handler ready: rules, clients, against boto3.client alone"),
        ("handled", "asked", 1.4, True, "first record handled, against boto3.client with its first answer"),
    ):
        figures = ratios(works(costs[name]), works(costs[beside]))
        yield Figure(words, figures, "x", bench.counters.kind, at_most=most, gated=gated)
    for name, words in (
        ("client", "boto3.client"), ("ready", "handler ready"), ("asked", "boto3.client, first answer"),
        ("handled", "handler, first record"),
    ):  # fmt: skip
        for kind, seconds in (
            (WALL, [cost.seconds for cost in costs[name]]),
            (CPU_TIME, [cost.cpu_seconds for cost in costs[name]]),
        ):
            most = quantiles(seconds, n=20, method="inclusive")[-1] * 1_000
            millis = tuple(1_000 * each for each in seconds)
            yield Figure(f"fresh process, {words}", millis, "ms", kind, note=f"p95 {most:.0f} ms")


def scan(bench: Bench) -> Iterator[Figure]:
    """Scanning 1 KB items, as backfill does it and as boto3 does."""
    url, items = bench.engine.url, bench.size(4_000)
    rules = load_rules(RULES_FILE)
    client, store = boto3.client("dynamodb", endpoint_url=url), store_of(url, rules)
    world, selection = World(store, NULL_PORTS, NoFailures()), Selection(rules, frozenset(rules.rules))

    def pages(page: Callable[[Any], Any]) -> None:
        cursor = page(None)
        while cursor:
            cursor = page(cursor)

    def stock(cursor: Any) -> Any:
        more = {"ExclusiveStartKey": cursor} if cursor else {}
        return client.scan(TableName="together", Limit=500, **more).get("LastEvaluatedKey")

    def of(page: Callable[[Any], Any]) -> Cost:
        bench.engine.set(targets=items, right=True)
        return bench.counters.cost(lambda: pages(page)).per(items)

    costs = bench.in_turns(
        {
            "stock": lambda: of(stock),
            "ours": lambda: of(lambda at: store.scan(Scan("together", 500, at, consistent=True)).cursor),
            "whole": lambda: of(
                lambda at: run_work(process_page(Scan("together", 500, at), selection, Bounds()), world).cursor
            ),
        },
        rounds=7,
    )
    theirs = works(costs["stock"])
    yield Figure(
        "scan in backfill, per 1 KB item, against client.scan",
        ratios(works(costs["ours"]), theirs), "%", bench.counters.kind, at_most=1.1, gated=True,
    )  # fmt: skip
    yield Figure("the same with each copy checked", ratios(works(costs["whole"]), theirs), "%", bench.counters.kind)
