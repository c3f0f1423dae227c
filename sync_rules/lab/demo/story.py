"""Tells the demo's story: generated sample data, then the steps of `scenario.yaml`, and the pipeline's work after each.

Invariant: the application writes its own data only. The consumer, which reads the engine's real streams, makes every
copy right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

from sync_rules.adapters import aws_errors, retries
from sync_rules.lab.demo.example import STEP_MAX_MS, EngineScene, LocalPipeline
from sync_rules.lab.scenario import Scenario
from sync_rules.model.errors import SyncRulesError
from sync_rules.model.items import Outcome
from sync_rules.model.python_values import make_raw_value

FOLDER: Final = Path(__file__).parent  # with the story's rules and scenario
FIRST = ("Ada", "Bea", "Cem", "Dee", "Eli", "Fay", "Gus", "Hal", "Ida", "Jon")
LAST = ("Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine")

USERS, ORDERS_PER_USER = 50, 20
AUTHORS, BOOKS_PER_AUTHOR = 20, 10
CUSTOMERS, PURCHASES_PER_CUSTOMER = 5, 10
BATCH_WRITE_MAX_ITEMS: Final = 25
WRITES: Final = frozenset({Outcome.COPIED, Outcome.DELETED, Outcome.DONE})
LOAD: Final = "load the sample data, all copies missing"
REDELIVER: Final = "deliver old records again, twice"


# ---------------------------------------------------------------- sample data
def make_name(number: int) -> str:
    """Make the name of the person with this number."""
    return f"{FIRST[number % len(FIRST)]} {LAST[number // len(FIRST) % len(LAST)]}"


def list_items() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """List every item in plain values, each with the name of its table in the rules file."""
    for user in range(USERS):
        yield "shop", {"PK": f"USER#{user}", "SK": "PROFILE", "name": make_name(user)}
        for order in range(ORDERS_PER_USER):
            total = 10 + (user * 7 + order * 3) % 90
            yield "shop", {"PK": f"USER#{user}", "SK": f"ORDER#{order:04}", "total": total}
    for author in range(AUTHORS):
        bio = f"{make_name(author)} has written {BOOKS_PER_AUTHOR} books."
        yield "authors", {"author_id": f"a{author}", "name": make_name(author), "bio": bio}
        for book in range(BOOKS_PER_AUTHOR):
            yield "books", {"book_id": f"a{author}-{book}", "author_id": f"a{author}", "title": f"Volume {book + 1}"}
    for customer in range(CUSTOMERS):
        yield "customers", {"customer_id": f"c{customer}", "name": make_name(customer)}
        for purchase in range(PURCHASES_PER_CUSTOMER):
            yield "purchases", {"purchase_id": f"c{customer}-{purchase}", "customer_id": f"c{customer}"}


def load(stage: EngineScene) -> None:
    """Put all sample data, in batches."""
    for table, group in groupby(list_items(), key=lambda pair: pair[0]):
        puts = (
            {"PutRequest": {"Item": {name: make_raw_value(one) for name, one in item.items()}}} for _, item in group
        )
        while some := list(islice(puts, BATCH_WRITE_MAX_ITEMS)):
            _write(stage.client, {stage.rules.tables[table].physical_name: some})


def _write(client: Any, requests: Mapping[str, Any]) -> None:
    def write_the_rest() -> None:
        nonlocal requests
        requests = client.batch_write_item(RequestItems=requests)["UnprocessedItems"]
        if requests:
            raise aws_errors.UnprocessedError

    retries.make_retry()(write_the_rest)


# ---------------------------------------------------------------- the story
class StuckError(SyncRulesError):
    """The consumer did not finish its work in time."""


@dataclass(frozen=True)
class StepResult:
    """One line of the table: the step, the rules that had to write, how often they wrote and how often a copy was right
    already, and the lag: from the application's write until the streams were read to their end.
    """

    what: str
    reached: tuple[str, ...]
    writes: int
    right: int
    lag_ms: int


def play_story(scenario: Scenario, stage: EngineScene) -> Iterator[StepResult]:
    """Load the sample data, play each step, deliver old records again. Yield the result of each.

    Raises:
        StuckError: if the consumer does not finish its work in time.
    """
    yield run_step(LOAD, partial(load, stage), stage.pipeline)
    for step in scenario.steps[1:]:  # the first one loads the data of a data.yaml
        yield run_step(step.say, partial(stage.do_all, step.actions), stage.pipeline)
    yield run_step(REDELIVER, stage.pipeline.redeliver, stage.pipeline)


def run_step(what: str, do: Callable[[], object], pipeline: LocalPipeline) -> StepResult:
    """Run a step, and wait until the pipeline has finished its work. Raises StuckError if it does not."""
    before = pipeline.figures()
    started = time.monotonic()
    do()
    drained = pipeline.drain(STEP_MAX_MS)
    lag_ms = round((time.monotonic() - started) * 1000)
    if not drained or not pipeline.settle(STEP_MAX_MS):
        raise StuckError(
            f"the consumer did not finish within {STEP_MAX_MS // 1000} s after: {what}."
            " The machine may be very busy: try again."
        )
    done = pipeline.figures() - before
    writes = {key: count for key, count in done.items() if key[1] in WRITES}
    return StepResult(
        what,
        tuple(sorted({rule.partition(".")[0] for rule, _ in writes})),
        sum(writes.values()),
        sum(count for (_, outcome), count in done.items() if outcome is Outcome.RIGHT),
        lag_ms,
    )
