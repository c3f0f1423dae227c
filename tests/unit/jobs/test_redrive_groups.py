"""Redrive of failure records in groups: it ends as one entry after the other does, with fewer requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.jobs.redrive import group, redriver, work
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure, ItemKey
from sync_rules.model.values import Item
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.failed_entries import FailedEntry
from sync_rules.pipeline.failure_records import make_failure_record
from sync_rules.pipeline.requests import Apply, Read, Request
from tests.support.builders import key, s
from tests.support.inaccount import KilledError
from tests.unit.jobs.test_redrive import AT, Bench, Shelf
from tests.unit.jobs.test_remote_redrive import Account, Place

# A chain from users to lines, a rule that writes the link of another, two rules on one item, and one that needs its source
RULES = parse_rules("""
tables:
  users:  {key: {user_id: S}}
  orders: {key: {order_id: S}, indexes: {by_user: {user_id: S}}}
  lines:  {key: {line_id: S}, indexes: {by_order: {order_id: S}, by_owner: {owner_id: S}}}
entities:
  user:  {table: users}
  order: {table: orders}
  line:  {table: lines}
rules:
  names: {copy: user.name, into: order.user_name}
  towns: {copy: user.town, into: order.town, on_delete: restrict}
  heads: {derive: order.head, as: "{user_name}-{town}"}
  chain: {copy: order.user_name, into: line.user_name}
  links: {copy: order.user_id, into: line.owner_id}
  owned: {copy: user.name, into: line.owner_name, link: {user_id: owner_id}}
""")
WRITES = {"orders": ("names", "towns", "heads"), "lines": ("chain", "links", "owned")}
NUMBERS = st.sampled_from("012")
TEXTS = st.sampled_from(["", "old", "Ada", "Bea"])


def at(table: str, number: str) -> ItemKey:
    return key(RULES.tables[table], number)


def items_of(names: dict[str, str], **more: str) -> Item:
    return {name: s(value) for name, value in (names | more).items() if value}


@st.composite
def tables(draw) -> list[tuple[str, Item]]:
    """Items of all tables; some are missing, and some copies are right."""
    found = []
    for number in "012":
        user = {"user_id": number, "name": draw(TEXTS), "town": draw(TEXTS)}
        order = {"order_id": number, "user_id": draw(NUMBERS), "user_name": draw(TEXTS), "town": draw(TEXTS)}
        line = {"line_id": number, "order_id": draw(NUMBERS), "owner_id": draw(NUMBERS), "owner_name": draw(TEXTS)}
        found += [("users", items_of(user)), ("orders", items_of(order)), ("lines", items_of(line))]
    return [one for one in found if draw(st.integers(0, 4))]


UNREADABLE = ("", "", "")
EVERY = [(rule, table, number) for table, rules in WRITES.items() for rule in rules for number in "012"]
RECORDS = st.lists(
    st.sampled_from([*EVERY, UNREADABLE]),
    min_size=8,
    max_size=16,
)
FAULTS = st.dictionaries(
    st.sampled_from([(table, number) for table in ("users", "orders", "lines") for number in "012"]),
    st.sampled_from(["unread", "too large", "throttled"]),
    max_size=3,
)
REFUSALS = {
    "too large": Result(Status.REJECTED, reason="TooLarge"),
    "throttled": Result(Status.FAILED, reason="Throttled"),
}
SIZES = st.sampled_from([2, 3, 40])


def text_of(rule: str, table: str, number: str) -> str:
    if not rule:
        return "no record"
    return json.dumps(make_failure_record(Failure(rule, at(table, number), "Whatever"), AT))


@contextmanager
def groups_of(size: int) -> Iterator[None]:
    with patch.object(redriver, "GROUP_FIRST_ITEMS", size), patch.object(redriver, "GROUP_MAX_ITEMS", size):
        yield


def bench_with(items: list[tuple[str, Item]]) -> Bench:
    bench = Bench(RULES)
    for table, item in items:
        bench.scene.there(table, item)
    return bench


def break_items(bench: Bench, faults: dict[tuple[str, str], str]) -> None:
    """Let each request with one of these items fail, or each write of it."""
    unread = {at(*place) for place, fault in faults.items() if fault == "unread"}
    results = {at(*place): REFUSALS[fault] for place, fault in faults.items() if fault in REFUSALS}

    def before(request: Request) -> None:
        if isinstance(request, Read) and unread.intersection(request.keys):
            raise StoreError("Throttled", "a table")

    bench.scene.tap.before = before
    bench.scene.tap.result = lambda write: results.get(write.key)


def state_of(bench: Bench) -> dict[ItemKey, Item | None]:
    return {at(table, n): bench.scene.memory.item(at(table, n)) for table in RULES.tables for n in "012"}


# ---------------------------------------------------------------- as one by one
@given(tables(), RECORDS, FAULTS, SIZES)
def test_redrive_in_groups_ends_as_one_by_one(items, records, faults, size):
    """The same items, entries, lines and counts, also if items cannot be read or written, and for chains of rules."""
    ends = []
    for each in (1, size):
        bench, shelf = bench_with(items), Shelf(*(text_of(*one) for one in records))
        break_items(bench, faults)
        with groups_of(each):
            redriver = bench.redrive(shelf)
        ends.append((state_of(bench), shelf.texts, bench.left, asdict(redriver.tally)))
        assert bench.recorded.failures == []
    assert ends[0] == ends[1]


@given(tables(), RECORDS, SIZES, st.integers(1, 12))
def test_redrive_in_groups_that_dies_is_finished_by_the_next(items, records, size, last):
    """A redrive dies at any request. It has removed only entries that are done, and the next one ends as usual."""
    usual = bench_with(items)
    with groups_of(1):
        usual.redrive(Shelf(*(text_of(*one) for one in records)))
    bench, shelf = bench_with(items), Shelf(*(text_of(*one) for one in records))
    left = iter(range(last - 1, -1, -1))

    def before(_request: Request) -> None:
        if not next(left, 1):
            raise KilledError

    bench.scene.tap.before = before
    with groups_of(size), suppress(KilledError):
        bench.redrive(shelf)
    bench.scene.tap.before = lambda _request: None
    bench.redrive(shelf)
    assert state_of(bench) == state_of(usual)


@given(tables(), RECORDS, st.sampled_from([1_000, 20_000]), FAULTS)
def test_redrive_in_groups_fails_no_entry_for_want_of_time(items, records, request_ms, faults):
    """In the account each entry is tried in one call, and in time, however slow each request is."""
    bench = bench_with(items)
    break_items(bench, faults)
    fails, place = bench.scene.tap.before, Place(*(text_of(*one) for one in records))
    account = Account(request_ms, bench.scene, failures=place)

    def before(request: Request) -> None:
        account.spend(request)
        fails(request)

    bench.scene.tap.before = before
    assert account.run()["error"] == ""
    tally = account.tally
    assert tally.done + tally.again + tally.unreadable == len(records)
    assert not any("OutOfTime" in text for text in place.texts)


def test_redrive_in_groups_leaves_to_the_next_call_what_there_is_no_time_for():
    """In the account a group whose requests fail takes all time. Its entries are released, and the next call tries
    them.
    """
    bench, shelf = many(6)
    place = Place(*shelf.texts.values())
    account, troubles = Account(0, bench.scene, failures=place), [StoreError("Throttled")] * 2

    def before(request: Request) -> None:
        if troubles and isinstance(request, Read) and len(request.keys) > 1:
            account.left = 1_000
            raise troubles.pop()

    bench.scene.tap.before = before
    assert account.run()["error"] == ""
    assert (account.tally.done, account.tally.again, place.texts) == (6, 0, [])
    assert (troubles, account.calls) == ([], 5)  # three for the unit, each with its first entry


# ---------------------------------------------------------------- one fact each
def many(count: int = 90) -> tuple[Bench, Shelf]:
    """Orders of three users, each with a failure record."""
    bench = Bench(RULES)
    bench.scene.there("users", *(items_of({"user_id": n, "name": "Ada", "town": "Rome"}) for n in "012"))
    orders = [items_of({"order_id": f"o{n}", "user_id": str(n % 3)}) for n in range(count)]
    bench.scene.there("orders", *orders)
    return bench, Shelf(*(text_of("names", "orders", f"o{n}") for n in range(count)))


def test_redrive_in_groups_reads_each_source_once():
    """A group grows to 40 entries. It reads its targets and its sources, and writes: three requests."""
    bench, shelf = many()
    bench.redrive(shelf)
    sizes = [1, 2, 4, 8, 16, 32, 27]
    reads = bench.scene.tap.seen(Read)
    assert [len(request.keys) for request in reads[::2]] == sizes
    assert {len(request.keys) for request in reads[1::2]} == {1, 2, 3}
    assert len(bench.scene.tap.seen(Apply)) == len(sizes)
    assert shelf.texts == {}
    assert redriver.GROUP_MAX_ITEMS == 40


def test_redrive_in_groups_tries_those_alone_that_a_request_failed():
    """One item that cannot be read stays, and no other does. The next groups are small again."""
    bench, shelf = many(30)
    break_items(bench, {("orders", "o9"): "unread"})
    bench.redrive(shelf)
    assert [left.where for left in bench.left] == ["shelf:9"]
    assert [*shelf.texts] == [9]
    groups = [request.keys for request in bench.scene.tap.seen(Read) if request.keys[0].table == "orders"]
    assert [len(keys) for keys in groups] == [1, 2, 4, 8, *[1] * 8, 1, 2, 4, 8]


def test_redrive_in_groups_tries_what_is_stuck_once():
    """Items that cannot take the value fail by themselves, in order, and each is written once."""
    bench, shelf = many(40)
    break_items(bench, {("orders", f"o{n}"): "too large" for n in range(40)})
    bench.redrive(shelf)
    assert [(left.where, left.reason) for left in bench.left] == [(f"shelf:{n}", "TooLarge") for n in range(40)]
    assert len(bench.scene.tap.writes) == 40


def test_redrive_in_groups_finishes_what_a_place_gave_before_it_failed(monkeypatch):
    """A place that stops to answer ends the redrive, after the entries that it gave."""
    bench, shelf = many(5)
    given = [*shelf.entries()]

    def entries() -> Iterator[FailedEntry]:
        yield from given[:3]
        raise StoreError("SlowDown")

    monkeypatch.setattr(shelf, "entries", entries)
    with groups_of(40), pytest.raises(StoreError, match="SlowDown"):
        bench.redrive(shelf)
    assert [*shelf.texts] == [3, 4]


def test_redrive_in_groups_holds_only_so_much(monkeypatch):
    """Large entries are retried before others are read, whatever their number."""
    bench, shelf = many(12)
    monkeypatch.setattr(redriver, "HELD_MAX_BYTES", 3 * len(shelf.texts[0]) - 1)
    with groups_of(40):
        bench.redrive(shelf)
    targets = [request.keys for request in bench.scene.tap.seen(Read) if request.keys[0].table == "orders"]
    assert [len(keys) for keys in targets] == [3] * 4


def test_redrive_in_groups_has_groups_of_two_rules_side_by_side():
    """Two rules on each item make two groups, because neither reads what the other writes."""
    bench, _ = many(8)
    shelf = Shelf(*(text_of(rule, "orders", f"o{n}") for n in range(8) for rule in ("names", "owned", "towns")))
    shelf.texts = {number: text for number, text in shelf.texts.items() if number % 3 != 1}
    bench.redrive(shelf)
    assert shelf.texts == {}
    assert [len(request.writes) for request in bench.scene.tap.seen(Apply)] == [1, 1, 1, 2, 2, 4, 4, 1]


def test_redrive_in_groups_leaves_out_rules_that_read_what_they_write():
    """The path of a child is made of its parent's path, which the record before it repairs. Together both would be read
    before either is written, and the child would get the old path.
    """
    bench = Bench()
    bench.scene.there("parts", {"part_id": s("a")}, {"part_id": s("b"), "parent_id": s("a"), "path": s("x|b")})
    bench.scene.there("parts", {"part_id": s("a"), "path": s("x")})
    parts = bench.scene.rules.tables["parts"]
    texts = [json.dumps(make_failure_record(Failure("paths", key(parts, name), "X"), AT)) for name in "ab"]
    with groups_of(2):
        bench.redrive(Shelf(*texts))
    assert bench.scene.item(key(parts, "b"))["path"] == s("a|b")


def test_group_admits_no_pull_that_would_overtake_what_it_affects():
    """A pull joins others only if their rules neither read what its rule writes nor write what it reads."""

    def pull(rule: str, table: str, number: str):
        found = work._find_pull(at(table, number), RULES.rules[rule], RULES)
        assert found is not None
        return found

    def admits(*pulls) -> bool:
        some = group.PullGroup()
        for one in pulls[:-1]:
            assert some.admits(one)
            some.add(one)
        return some.admits(pulls[-1])

    names, towns = [pull("names", "orders", n) for n in "01"], [pull("towns", "orders", n) for n in "01"]
    chain, links, owned = ([pull(rule, "lines", n) for n in "01"] for rule in ("chain", "links", "owned"))
    assert admits(names[0], towns[0], names[1])
    assert admits(names[0], towns[0], names[1], towns[1])
    assert not admits(names[0], chain[0])
    assert not admits(chain[0], names[0])
    assert not admits(links[0], owned[0])
    assert not admits(owned[0], links[0])
    assert admits(links[0], chain[0], links[1])
    assert not admits(names[0], towns[1], names[1])  # both may need the last room of one item
