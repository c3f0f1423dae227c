"""The dry store: answers as the real one would after writes that are only noted, and holds little memory."""

from __future__ import annotations

import threading
from dataclasses import replace
from random import Random

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.meter import FIRST_SEEN_MAX_ITEMS, LAST_SEEN_MAX_ITEMS
from sync_rules.jobs.dryrun.overlay import ASKED_MAX_KEYS, Overlay
from sync_rules.jobs.dryrun.store import DryStore
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.semantics import make_place
from sync_rules.model.writes import (
    WRITTEN,
    Condition,
    Delete,
    Put,
    Result,
    Status,
    Test,
    Transaction,
    Update,
    expect_value,
)
from sync_rules.pipeline.requests import Apply, List, Read, Scan
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Share
from tests.support.builders import book_item, index, key, library, n, s, table
from tests.support.worlds import Tap

BY = index("by", {"of": "S"}, {"rank": "N"}, projection=("color",))
NUMBERED = table("t", {"p": "S", "k": "N"}, BY)
TABLES = {"t": NUMBERED}
EVERYTHING_KEPT = Rules(TABLES, {}, {})  # these items belong to no entity
SPELLINGS = ("{}", "{}.0", "{}e0")


def at(p: str, k: str) -> ItemKey:
    return key(NUMBERED, p, k)


def item(random: Random, p: str, k: str) -> dict:
    found = {"p": s(p), "k": n(k), "color": s(random.choice("rgb")), "blob": {"B": bytes([random.randrange(3)])}}
    if random.random() < 0.7:
        found |= {"of": s(random.choice("xy")), "rank": n(random.choice(["1", "1.0", "2", "10", "-3"]))}
    return found


def there(where: ItemKey) -> Condition:
    return Condition(Test.EXISTS, (where.values[0][0],))


def absent(where: ItemKey) -> Condition:
    return Condition(Test.ABSENT, (where.values[0][0],))


def some_write(random: Random, store: MemoryStore):
    where = at(random.choice("ab"), random.choice(SPELLINGS).format(random.randrange(5)))
    before = store.item(where)
    seen = expect_value(("color",), random.choice([(before or {}).get("color"), s("r")]))
    match random.randrange(4):
        case 0:
            put = item(random, where.values[0][2], where.values[1][2])
            guard = absent(where) if before is None or random.random() < 0.2 else there(where)
            return Put(where, put, (guard,))
        case 1:
            return Transaction((Delete(where, (there(where),)),))
        case _:
            sets = ((("color",), s(random.choice("rgb"))), (("of",), s(random.choice("xyz"))))
            return Update(where, sets, (("blob",),) if random.random() < 0.3 else (), (there(where), seen))


def pages(store, request):
    """Every page of a listing or a scan."""
    found = []
    while True:
        page = store.list(request) if isinstance(request, List) else store.scan(request)
        found.append(page)
        if page.cursor is None:
            return found
        request = replace(request, cursor=page.cursor)


def by_key(items) -> list:
    return sorted((str(one["p"]), float(one["k"]["N"]), repr(sorted(one.items()))) for one in items)


@pytest.mark.parametrize("seed", range(60))
def test_dry_store_answers_as_if_it_had_written(seed):
    """After any writes, refused ones among them, it gives the answers of a store that made them: item by item, page by
    page of any listing from either end, and over any scan; the store behind it stays as it was.
    """
    random = Random(seed)
    behind, twin = MemoryStore(TABLES), MemoryStore(TABLES)
    for p in "ab":
        for k in range(5):
            if random.random() < 0.6:
                one = item(random, p, str(k))
                behind.put("t", one)
                twin.put("t", one)
    before = behind.items("t")
    dry = DryStore(behind, EVERYTHING_KEPT, frozenset())
    for _ in range(random.randrange(1, 25)):
        write = some_write(random, twin)
        assert dry.apply(Apply((write,))) == twin.apply(Apply((write,)))
        if random.random() < 0.3:
            dry.scan(Scan("t", 3))  # a new page, so that what is not kept is forgotten
    keys = tuple(at(p, text.format(k)) for p in "abc" for k in range(5) for text in SPELLINGS)
    assert dry.read(Read(keys)) == twin.read(Read(keys))
    for limit in (1, 2, 100):
        for backward in (False, True):
            lists = [List("t", None, KeyConditions((("p", s(p)),)), limit, backward=backward) for p in "abc"]
            lists += [List("t", "by", KeyConditions((("of", s(of)),)), limit, backward=backward) for of in "xyz"]
            lists += [List("t", "by", KeyConditions((("of", s("x")), ("rank", n("1")))), limit, backward=backward)]
            for request in lists:
                mine, real = pages(dry, request), pages(twin, request)
                assert [one for page in mine for one in page.items] == [one for page in real for one in page.items]
        for total in (1, 3):
            scanned = [pages(dry, Scan("t", limit, None, number, total)) for number in range(total)]
            assert by_key(one for some in scanned for page in some for one in page.items) == by_key(twin.items("t"))
            assert all(len(page.items) <= limit for some in scanned for page in some)
    assert behind.items("t") == before


def books(count: int) -> tuple[Rules, MemoryStore]:
    rules = library()
    store = MemoryStore(rules.tables)
    for number in range(count):
        store.put("books", book_item(f"b{number}", "a1"))
    return rules, store


def copy_on(rules: Rules, number: int) -> Update:
    where = key(rules.tables["books"], f"b{number}")
    return Update(where, ((("author_name",), s("Ada")),), (), (absent_copy(), there(where)))


def absent_copy() -> Condition:
    return expect_value(("author_name",), None)


def test_dry_store_remembers_a_bounded_number_of_what_is_read():
    """The dry store keeps a bounded number of items read, and reads a forgotten one again."""
    most = FIRST_SEEN_MAX_ITEMS + LAST_SEEN_MAX_ITEMS
    rules, store = books(most + 100)
    tap = Tap(store)
    dry = DryStore(tap, rules, frozenset(rules.rules))
    keys = tuple(key(rules.tables["books"], f"b{number}") for number in range(most + 100))
    dry.read(Read(keys))
    assert sum(make_place(one) in dry._seen.items for one in keys) == most
    tap.requests.clear()
    forgotten = FIRST_SEEN_MAX_ITEMS
    assert dry.apply(Apply((copy_on(rules, forgotten), copy_on(rules, most)))) == (WRITTEN, WRITTEN)
    assert [request.keys for request in tap.seen(Read)] == [(keys[forgotten],)]


def test_dry_store_says_that_a_write_failed_whose_item_cannot_be_read():
    """`apply` raises nothing: a store that does not answer is a failure of the write, which comes again."""
    tap = Tap(MemoryStore(TABLES))
    tap.refuse(Read, StoreError("ThrottlingException"))
    dry = DryStore(tap, EVERYTHING_KEPT, frozenset())
    write = Put(at("a", "1"), {"p": s("a"), "k": n("1")}, (absent(at("a", "1")),))
    assert dry.apply(Apply((write,))) == (Result(Status.FAILED, reason="ThrottlingException"),)


def test_dry_store_refuses_what_another_thread_was_quicker_to_write():
    """A guard is judged by the item as it is, not as this thread saw it before another one wrote."""
    store = MemoryStore(TABLES)
    here = at("a", "1")
    dry = DryStore(store, EVERYTHING_KEPT, frozenset())
    dry.read(Read((here,)))
    put = Put(here, {"p": s("a"), "k": n("1")}, (absent(here),))
    other = threading.Thread(target=lambda: dry.apply(Apply((put,))))
    other.start()
    other.join()
    assert dry.apply(Apply((put,)))[0].status is Status.REFUSED


def test_dry_store_shows_what_came_where_the_first_segment_of_a_sample_ends():
    """In a sample, items that only the dry run has are shown once, at the end of the lowest drawn segment."""
    dry = DryStore(MemoryStore(TABLES), EVERYTHING_KEPT, frozenset(), share=Share(10, (4, 7)))
    put = Put(at("a", "1"), {"p": s("a"), "k": n("1")}, (absent(at("a", "1")),))
    dry.apply(Apply((put,)))
    assert [len(dry.scan(Scan("t", 5, None, number, 10)).items) for number in (7, 4)] == [0, 1]


def test_overlay_finds_more_than_one_statement_may_ask_for():
    """Keys are asked for in pieces."""
    overlay = Overlay(TABLES)
    keys = [at("a", str(number)) for number in range(ASKED_MAX_KEYS + 1)]
    for one in keys:
        overlay.put(one, {**one.attributes()}, added=True)
    assert overlay.find(keys).keys() == {*keys}
