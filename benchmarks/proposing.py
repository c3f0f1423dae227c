"""The measure of `propose`: rules for the export of one table of many items, from its files to the written rules.

Invariant: what the items hold is known: a number of rules, each with a number of items that differ. That is gated;
seconds and memory are figures of this machine, and gate nothing.
"""

from __future__ import annotations

import gzip
import json
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.bench import Bench
from benchmarks.figures import WALL, Figure
from benchmarks.fresh import own_peak_bytes
from benchmarks.running import child
from sync_rules.extras.discover.imports.imported_model import FoundTable
from sync_rules.extras.discover.propose.search import propose
from sync_rules.extras.discover.propose.table_files import Gathered, GatheredTable
from sync_rules.model.entities import KeyAttribute

ITEMS: Final = 1_000_000
LINES: Final = 50_000  # in a file
MOST_SECONDS: Final = 300
MOST_MB: Final = 2_000
THREADS: Final = 2
DRIFT: Final = 50  # of the copies one in so many is wrong
ORDERS: Final = 6  # of a user, at most
LINES_EACH: Final = 2  # of an order
WIDE_ITEMS: Final = 500_000
NAMED: Final = (  # entities, and each wide item names an item of each
    *("author", "band", "club", "depot", "event", "film", "guild", "hotel", "island", "judge"),
    *("kiosk", "lamp", "motel", "nurse", "opera", "pilot", "queue", "river", "store", "train"),
)
WIDE_ATTRIBUTES: Final = 40  # of each item, which no rule keeps
WIDE_MOST_SECONDS: Final = 600
STATES: Final = ("OPEN", "PAID", "SENT", "DONE")
RULES: Final = {  # each attribute that a rule should write, and the attribute or entity that it is made of
    "user_name": "name",
    "user_email": "email",
    "title": "title",
    "order_count": "",
    "spent": "total",
}
Record = dict[str, Any]
Maker = Callable[[int, "Expected"], Iterator[Record]]


@dataclass
class Expected:
    """The items that hold something else than they should, by attribute."""

    differ: dict[str, int]


def records(count: int, expected: Expected) -> Iterator[Record]:
    """A shop in one table: products, and users with their orders and lines, until there are so many items."""
    rng = random.Random(count)
    titles = [f"{rng.choice(STATES).lower()} thing {number}" for number in range(max(count // 50, 1))]
    for number, title in enumerate(titles):
        price = rng.randrange(100, 9_000)
        yield {"PK": f"PRODUCT#{number}", "SK": "INFO", "title": title, "price": price, "active": True}
    made, user = len(titles), 0
    while made < count:
        family = list(_family(user, titles, rng, expected))
        yield from family
        made, user = made + len(family), user + 1


def _family(user: int, titles: Sequence[str], rng: random.Random, expected: Expected) -> Iterator[Record]:
    name, email = f"User {user * 7919 % 1_000_003}", f"u{user}@example.com"
    totals = [rng.randrange(100, 90_000) for _ in range(ORDERS - user % 3)]

    def held(attribute: str, right: Any) -> Any:
        if rng.randrange(DRIFT):
            return right
        expected.differ[attribute] += 1
        return f"{right} of old" if isinstance(right, str) else right + 1

    counters = {"order_count": held("order_count", len(totals)), "spent": held("spent", sum(totals))}
    noise = {"status": rng.choice(STATES), "created_at": _time(rng), "vip": rng.random() < 0.1}
    yield {"PK": f"USER#{user}", "SK": "PROFILE", "name": name, "email": email, **counters, **noise}
    for at, total in enumerate(totals):
        order = f"{user * ORDERS + at:08}"
        copies = {"user_name": held("user_name", name), "user_email": held("user_email", email)}
        noise = {"status": rng.choice(STATES), "placed_at": _time(rng), "gift": rng.random() < 0.1}
        yield {"PK": f"USER#{user}", "SK": f"ORDER#{order}", **copies, "total": total, **noise}
        for line in range(1, LINES_EACH + 1):
            product = rng.randrange(len(titles))
            named = {"product_id": str(product), "title": held("title", titles[product])}
            noise = {"quantity": rng.randrange(1, 9), "checked": rng.random() < 0.5}
            yield {"PK": f"ORDER#{order}", "SK": f"LINE#{line}", **named, **noise}


def wide_records(count: int, _expected: Expected) -> Iterator[Record]:
    """Twenty entities, and items of sixty attributes that name one of each, and one right copy."""
    rng = random.Random(count)
    each = max(count // (10 * len(NAMED)), 1)
    names = {name: [f"{name} {number * 7919 % 1_000_003}" for number in range(each)] for name in NAMED}
    for name, texts in names.items():
        yield from (
            {"PK": f"{name.upper()}#{at}", "SK": "INFO", "title": text, f"{name}_no": at}
            for at, text in enumerate(texts)
        )
    kinds = (lambda: rng.choice(STATES), lambda: rng.randrange(1_000), lambda: _time(rng), lambda: str(rng.random()))
    for order in range(count - each * len(NAMED)):
        links = {f"{name}_id": rng.randrange(each) for name in NAMED}
        noise = {f"noise_{number:03}": kinds[number % len(kinds)]() for number in range(WIDE_ATTRIBUTES)}
        copy = {"author_title": names["author"][links["author_id"]]}
        ids = {name: str(number) for name, number in links.items()}
        yield {"PK": f"ORDER#{order:08}", "SK": "INFO", **copy, **ids, **noise}


def _time(rng: random.Random) -> str:
    return f"2025-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:{rng.randrange(60):02}:00Z"


def _stored(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"BOOL": value}
    return {"S": value} if isinstance(value, str) else {"N": str(value)}


def write_export(folder: Path, count: int, make: Maker = records) -> tuple[list[Path], int, Expected]:
    """Write the data files of an export. Gives them, the number of items, and the items that differ."""
    expected = Expected(dict.fromkeys(RULES, 0))
    items = make(count, expected)
    files: list[Path] = []
    written = 0
    while part := list(islice(items, LINES)):
        files.append(folder / f"{len(files):05}.json.gz")
        with gzip.open(files[-1], "wt", compresslevel=1) as lines:
            for item in part:
                lines.write(json.dumps({"Item": {name: _stored(value) for name, value in item.items()}}) + "\n")
        written += len(part)
    return files, written, expected


def propose_rules(bench: Bench) -> Iterator[Figure]:
    """Seconds and peak memory of a fresh process that proposes rules, and how many rules it found exactly, written or
    held back with a reason: a title of a line may be history.
    """
    count = bench.size(ITEMS)
    with TemporaryDirectory() as folder:
        (data := Path(folder) / "data").mkdir()
        files, items, expected = write_export(data, count)
        found = json.loads(child("-m", "benchmarks.proposing", str(data), str(Path(folder) / "work"), str(items)))
    assert len(files) == -(-items // LINES)
    name = f"rules proposed from {items:,} items"
    right = [attribute for attribute in RULES if found["differ"].get(attribute) == expected.differ[attribute]]
    wrong = [attribute for attribute in found["written"] if attribute not in RULES]
    yield Figure(f"{name}: seconds", (found["seconds"],), "s", WALL, at_most=MOST_SECONDS)
    yield Figure(f"{name}: peak memory", (found["peak"] / 1e6,), "MB", WALL, at_most=MOST_MB)
    share = len(right) / len(RULES)
    yield Figure(f"{name}: rules found with their drift", (share,), "%", "the rules", at_least=1.0, gated=True)
    yield Figure(f"{name}: other rules", (float(len(wrong)),), "", "the rules", at_most=0.0, gated=True)


def propose_for_wide_items(bench: Bench) -> Iterator[Figure]:
    """Seconds and peak memory of a fresh process that proposes the one rule of a table with twenty links."""
    with TemporaryDirectory() as folder:
        (data := Path(folder) / "data").mkdir()
        _, items, _ = write_export(data, bench.size(WIDE_ITEMS), wide_records)
        found = json.loads(child("-m", "benchmarks.proposing", str(data), str(Path(folder) / "work"), str(items)))
    name = f"rules proposed from {items:,} items of {len(NAMED) + WIDE_ATTRIBUTES} attributes"
    yield Figure(f"{name}: seconds", (found["seconds"],), "s", WALL, at_most=WIDE_MOST_SECONDS)
    yield Figure(f"{name}: peak memory", (found["peak"] / 1e6,), "MB", WALL, at_most=MOST_MB)
    right = found["written"] == ["author_title"] and found["differ"]["author_title"] == 0
    yield Figure(f"{name}: its rule, and no other", (float(right),), "%", "the rules", at_least=1.0, gated=True)


def main(data: Path, work: Path, items: int) -> None:
    """Propose rules in this process, and print what it took and what was found, as JSON."""
    files = tuple(sorted(data.iterdir()))
    table = FoundTable("shop", "shop", (KeyAttribute("PK", "S"), KeyAttribute("SK", "S")), [], stream="both")
    gathered = Gathered((GatheredTable(table, files, items, sum(file.stat().st_size for file in files)),))
    began = time.monotonic()
    proposal = propose(gathered, work, threads=THREADS, memory="1GB")
    seconds = time.monotonic() - began
    rules = {str(one.rule.get("into", one.rule.get(one.kind))).rpartition(".")[2]: one for one in proposal.rules}
    differ = {attribute: one.differ for attribute, one in rules.items()}
    written = [attribute for attribute, one in rules.items() if not one.held_back]
    of_readers = THREADS * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # at most
    print(json.dumps({"seconds": seconds, "peak": own_peak_bytes() + of_readers, "differ": differ, "written": written}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
