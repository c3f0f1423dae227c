"""Three public applications: facts about their handlers and items, histories of their writes, and a recount.

Invariant: no line of an original is here. A history writes only what the original's handler reacts to, so that both
sides have the same truth: the numbers of the items that exist in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from tests.originals.original import Nothing

Plain = Mapping[str, Any]
Place = tuple[str, str, str]  # partition key, sort key, attribute
Part = tuple[Place, Decimal | int]
WRITES = 10  # of a history: with some faults in it, and short enough for thousands
NOTHING = Nothing()
POWERTOOLS = {"aws_lambda_powertools": {"Logger": NOTHING, "Tracer": NOTHING}}


@dataclass(frozen=True)
class Application:
    """An application. `files` are those whose lines count; the first has the handler. `history` yields whole items, and
    keys to delete. `list_parts` says what an item adds to which number. `is_total` recognises the items with numbers.
    """

    name: str
    files: Sequence[str]
    rules: Path
    source: str
    target: str
    attributes: Sequence[str]
    history: Callable[[Random], Iterator[tuple[str, Plain]]]
    list_parts: Callable[[Plain], Iterator[Part]]
    environment: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    is_total: Callable[[Plain], bool] = lambda _item: True

    @property
    def module(self) -> str:
        return self.files[0].removesuffix(".py").replace("/", ".")


# ---------------------------------------------------------------- a shopping cart
def shop(random: Random) -> Iterator[tuple[str, Plain]]:
    """Customers put products into carts, change quantities, log in with their cart, and check out."""
    lines: dict[tuple[str, str], int] = {}
    for _ in range(WRITES):
        line = (random.choice(["cart#1", "cart#2", "user#1", "user#2"]), f"product#{random.randrange(3)}")
        act = random.random()
        if act < 0.25 and lines:
            line = random.choice(sorted(lines))
            del lines[line]
            yield "delete", {"pk": line[0], "sk": line[1]}
            continue
        lines[line] = lines.get(line, 0) + random.randint(1, 3) if act < 0.6 else random.randint(0, 5)
        detail = {"name": f"Product {line[1][-1]}", "price": 1000, "category": "fruit"}
        more = {"productDetail": detail, "expirationTime": random.randrange(10**9)}
        yield "put", {"pk": line[0], "sk": line[1], "quantity": lines[line], **more}


def list_units(line: Plain) -> Iterator[Part]:
    if line["sk"].startswith("product#"):
        yield (line["sk"], "totalquantity", "quantity"), line["quantity"]


# ---------------------------------------------------------------- feedback
def give_feedback(random: Random) -> Iterator[tuple[str, Plain]]:
    """Feedback comes in; some of it comes again with another text."""
    items: list[dict[str, Any]] = []
    for number in range(WRITES):
        if items and random.random() < 0.2:
            item = random.choice(items)
        else:
            source = random.choice(["webscraper", "reviews"])
            item = {"pk": f"SOURCE#{source}", "sk": f"FEEDBACK#{number}", "source_platform": source}
            item |= {"feedback_id": str(number), "date": random.choice(["2026-08-19", "2026-08-20"])}
            item |= {"category": random.choice(["delivery", "price"]), "persona_name": random.choice(["Ada", "Bob"])}
            item |= {
                "sentiment_label": random.choice(["positive", "negative"]),
                "urgency": random.choice(["high", "low"]),
            }
            item |= {"sentiment_score": Decimal(random.randint(-9, 9)) / 10}
            items.append(item)
        yield "put", {**item, "original_text": "x" * random.randint(50, 400)}


def list_metrics(item: Plain) -> Iterator[Part]:
    date, category, mood = item["date"], item["category"], item["sentiment_label"]
    names = ["daily_total", f"daily_source#{item['source_platform']}", f"daily_category#{category}"]
    names += [f"daily_sentiment#{mood}", f"persona#{item['persona_name']}", f"category_sentiment#{category}#{mood}"]
    names += ["urgent"] * (item["urgency"] == "high") + ["daily_sentiment_avg"] * bool(item["sentiment_score"])
    yield from (((f"METRIC#{name}", date, "count"), 1) for name in names)
    yield ("METRIC#daily_sentiment_avg", date, "sum"), item["sentiment_score"]


# ---------------------------------------------------------------- hashes and matches
def submit(random: Random) -> Iterator[tuple[str, Plain]]:
    """Content is submitted, hashed, and matched with signals; some of it comes again."""
    for number in range(WRITES):
        content = f"c#{random.randrange(number // 2 + 1)}"
        kind = random.choice(["content", "hash", "match"])
        more: dict[str, Any] = {"UpdatedAt": str(number)}
        if kind == "content":
            more |= {"SK": "#content_object", "ContentType": "video" if int(content[2:]) % 3 else "photo"}
        elif kind == "hash":
            name = random.choice(["pdq", "video_md5"])
            more |= {"SK": f"type#{name}", "SignalType": name, "ContentHash": "0" * 64}
        else:
            source, signal = random.choice(["te", "ncmec"]), random.randrange(3)
            more |= {"SK": f"s#{source}#{signal}", "SignalSource": source, "SignalType": "pdq"}
        yield "put", {"PK": content, **more}


def list_counts(item: Plain) -> Iterator[Part]:
    kind, _, rest = item["SK"].partition("#")
    if item["SK"] == "#content_object":
        of, by, value = "submits", "content_type", item["ContentType"]
    elif kind == "type":
        of, by, value = "hashes", "signal_type", rest
    else:
        of, (by, value) = "matches", rest.split("#")
    yield (f"aggregate#hma.pipeline.{of}", "aggregate_count", "CurrentCount"), 1
    yield (f"parameterized#hma.pipeline.{of}#by#{by}", f"val#{value}", "CurrentCount"), 1


HERE = Path(__file__).parent
APPLICATIONS = {
    "cart": Application(
        "AWS shopping cart",
        ["db_stream_handler.py"],
        HERE / "cart.yaml",
        "carts",
        "carts",
        ["quantity"],
        shop,
        list_units,
        {"TABLE_NAME": "carts"},
        POWERTOOLS,
        lambda item: item["sk"] == "totalquantity",
    ),
    "feedback": Application(
        "Voice of the customer",
        ["handler.py"],
        HERE / "feedback.yaml",
        "feedback",
        "aggregates",
        ["count", "sum"],
        give_feedback,
        list_metrics,
        {"AGGREGATES_TABLE": "aggregates"},
        {
            "shared": {},
            "shared.logging": {"logger": NOTHING, "tracer": NOTHING, "metrics": NOTHING},
            "shared.aws": {"get_dynamodb_resource": lambda: __import__("boto3").resource("dynamodb")},
        },
    ),
    "hashes": Application(
        "Hasher-Matcher-Actioner",
        ["hmalib/lambdas/ddb_stream_counter.py", "hmalib/common/models/count.py"],
        HERE / "hashes.yaml",
        "store",
        "counts",
        ["CurrentCount"],
        submit,
        list_counts,
        {"SOURCE_TABLE_TYPE": "HMADataStore", "COUNTS_TABLE_NAME": "counts"},
        {
            "hmalib.common.logging": {"get_logger": NOTHING},
            "hmalib.common.models.content": {"ContentObject": type("C", (), {"CONTENT_STATIC_SK": "#content_object"})},
            "hmalib.common.models.models_base": {
                "DynamoDBItem": type("D", (), {"TYPE_PREFIX": "type#", "SIGNAL_KEY_PREFIX": "s#"})
            },
        },
    ),
}
