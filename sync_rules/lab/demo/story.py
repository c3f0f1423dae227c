"""Tells the demo's story: sample data, an application that changes it step by step, and the pipeline's work after each.

Invariant: the application writes its own data only. The consumer, which reads the engine's real streams, makes every
copy right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from typing import Any, Final

from sync_rules.adapters import aws
from sync_rules.jobs.consume.run import wall_clock_ms
from sync_rules.lab.demo.pipeline import STEP_MAX_MS, LocalPipeline
from sync_rules.model.errors import SyncRulesError
from sync_rules.model.items import Outcome
from sync_rules.model.values import AttributeValue, Item
from sync_rules.rules.ruleset import Rules

FIRST = ("Ada", "Bea", "Cem", "Dee", "Eli", "Fay", "Gus", "Hal", "Ida", "Jon")
LAST = ("Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Maple", "Oak", "Pine")

USERS, ORDERS_PER_USER = 50, 20
AUTHORS, BOOKS_PER_AUTHOR = 20, 10
CUSTOMERS, PURCHASES_PER_CUSTOMER = 5, 10
BATCH_WRITE_MAX_ITEMS: Final = 25
WRITES: Final = frozenset({Outcome.COPIED, Outcome.DELETED, Outcome.DONE})


# ---------------------------------------------------------------- sample data


def text(value: str) -> AttributeValue:
    """A string attribute."""
    return {"S": value}


def name(number: int) -> str:
    """The name of the person with this number."""
    return f"{FIRST[number % len(FIRST)]} {LAST[number // len(FIRST) % len(LAST)]}"


def items() -> Iterator[tuple[str, Item]]:
    """Every item, with the rules' name of its table."""
    for user in range(USERS):
        yield "shop", {"PK": text(f"USER#{user}"), "SK": text("PROFILE"), "name": text(name(user))}
        for order in range(ORDERS_PER_USER):
            yield "shop", order_item(user, order)
    for author in range(AUTHORS):
        bio = text(f"{name(author)} has written {BOOKS_PER_AUTHOR} books.")
        yield "authors", {"author_id": text(f"a{author}"), "name": text(name(author)), "bio": bio}
        for book in range(BOOKS_PER_AUTHOR):
            title = text(f"Volume {book + 1}")
            yield "books", {"book_id": text(f"a{author}-{book}"), "author_id": text(f"a{author}"), "title": title}
    for customer in range(CUSTOMERS):
        yield "customers", {"customer_id": text(f"c{customer}"), "name": text(name(customer))}
        for purchase in range(PURCHASES_PER_CUSTOMER):
            ids = {"purchase_id": text(f"c{customer}-{purchase}"), "customer_id": text(f"c{customer}")}
            yield "purchases", ids


def order_item(user: int, order: int, more: Mapping[str, AttributeValue] | None = None) -> Item:
    """One order of a user."""
    total = {"N": str(10 + (user * 7 + order * 3) % 90)}
    key = {"PK": text(f"USER#{user}"), "SK": text(f"ORDER#{order:04}")}
    return {**key, "total": total, **(more or {})}


# ---------------------------------------------------------------- the application
class StuckError(SyncRulesError):
    """The consumer did not come to rest in time."""


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


class Application:
    """The user's application. It knows DynamoDB and no rules."""

    def __init__(self, client: Any, rules: Rules) -> None:
        self._client = client
        self._names = {name: table.physical_name for name, table in rules.tables.items()}

    def load(self) -> int:
        """Put all sample data. Returns the number of items."""
        count = 0
        for table, group in groupby(items(), key=lambda pair: pair[0]):
            rest = (item for _, item in group)
            while some := list(islice(rest, BATCH_WRITE_MAX_ITEMS)):
                count += len(some)
                self._batch({self._names[table]: [{"PutRequest": {"Item": item}} for item in some]})
        return count

    def _batch(self, requests: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        def write_the_rest() -> None:
            nonlocal requests
            requests = self._client.batch_write_item(RequestItems=requests)["UnprocessedItems"]
            if requests:
                raise aws.UnprocessedError

        aws.retrying()(write_the_rest)

    def put(self, table: str, item: Item) -> None:
        """Write a whole item."""
        self._client.put_item(TableName=self._names[table], Item=item)

    def set(self, table: str, key: Item, attribute: str, value: AttributeValue) -> None:
        """Set one attribute."""
        self._client.update_item(
            TableName=self._names[table],
            Key=key,
            UpdateExpression="SET #attribute = :value",
            ExpressionAttributeNames={"#attribute": attribute},
            ExpressionAttributeValues={":value": value},
        )

    def delete(self, table: str, key: Item) -> None:
        """Delete an item."""
        self._client.delete_item(TableName=self._names[table], Key=key)


@dataclass(frozen=True)
class StoryStep:
    """One step of the application."""

    what: str
    do: Callable[[Application], object]


LOAD: Final = "load the sample data, all copies missing"
STEPS: Final = (
    StoryStep(
        "rename a user",
        lambda app: app.set("shop", {"PK": text("USER#7"), "SK": text("PROFILE")}, "name", text("Hal Juniper")),
    ),
    StoryStep(
        "edit an author's bio",
        lambda app: app.set("authors", {"author_id": text("a3")}, "bio", text("Dee Ash has retired.")),
    ),
    StoryStep(
        "insert an order with a stale name",
        lambda app: app.put("shop", order_item(7, ORDERS_PER_USER, {"user_name": text("Hal Ash")})),
    ),
    StoryStep(
        "move a purchase to another customer",
        lambda app: app.set("purchases", {"purchase_id": text("c0-0")}, "customer_id", text("c1")),
    ),
    StoryStep(
        "overwrite a whole order with a stale copy",
        lambda app: app.put("shop", order_item(7, 0, {"user_name": text("Hal Ash"), "status": text("SHIPPED")})),
    ),
    StoryStep("delete an author (on_delete: clear)", lambda app: app.delete("authors", {"author_id": text("a5")})),
)
REDELIVER: Final = "deliver old records again, twice"


def play_story(application: Application, pipeline: LocalPipeline) -> Iterator[StepResult]:
    """Play each step, and yield its result.

    Raises:
        StuckError: when the consumer does not come to rest.
    """
    yield run_step(LOAD, application.load, pipeline)
    for step in STEPS:
        yield run_step(step.what, partial(step.do, application), pipeline)
    yield run_step(REDELIVER, pipeline.redeliver, pipeline)


def run_step(what: str, do: Callable[[], object], pipeline: LocalPipeline) -> StepResult:
    """Run a step, and let the pipeline come to rest. Raises StuckError when it does not."""
    before = pipeline.figures()
    started_ms = wall_clock_ms()
    do()
    drained = pipeline.drain(STEP_MAX_MS)
    lag_ms = wall_clock_ms() - started_ms
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
