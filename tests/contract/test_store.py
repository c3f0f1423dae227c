"""The promises of `Store` in sync_rules/pipeline/requests.py, tried on every store."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from sync_rules.model.errors import StoreError
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.values import AttributeValue, get, is_same_value
from sync_rules.model.writes import (
    Check,
    Condition,
    Delete,
    Increment,
    Put,
    Status,
    Test,
    Transaction,
    Update,
    Write,
    expect_value,
)
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan
from tests.contract.conftest import Bench
from tests.support.builders import exists, index, key, m, n, of_partition, s, table, update

Make = Callable[..., Bench]

THINGS = table("things", {"PK": "S", "SK": "S"}, index("by_link", {"link": "S"}, {"SK": "S"}))
NUMBERED = table("numbered", {"owner": "S", "number": "N"})
BINARY = table("binary", {"owner": "B", "part": "B"})
MANY = table("many", {"id": "S"}, index("by_place", {"country": "S", "zip": "N"}, {"city": "S", "street": "S"}))
ONE = key(THINGS, "p", "1")
TWO = key(THINGS, "p", "2")
NOWHERE = key(THINGS, "p", "nowhere")
NULL = {"NULL": True}
XY = {"SS": ["x", "y"]}
ABSENT = Condition(Test.ABSENT, ("PK",))  # no such item
LIKE = {"things": ("p", "1"), "numbered": ("o", "1"), "binary": (b"o", b"1")}  # a possible key of each table


def thing(pk="p", sk="1", **values):
    return {"PK": s(pk), "SK": s(sk), **values}


def is_equal(path, value):
    return Condition(Test.EQUALS, (path,), value)


def one(bench, write):
    """The result of a single write."""
    (result,) = bench.store.apply(Apply((write,)))
    return result


def alone(write):
    return write


def in_transaction(write):
    return Transaction((Check(NOWHERE, (ABSENT,)), write))


both_ways = pytest.mark.parametrize("sent", [alone, in_transaction])


both_directions = pytest.mark.parametrize("backward", [False, True])


def change(adds=None, discards=None, at=ONE, guard=(), **sets):
    """An update of sets, given by attribute."""
    pairs = [tuple(((name,), value) for name, value in (given or {}).items()) for given in (sets, adds, discards)]
    return Update(at, pairs[0], (), (exists(THINGS), *guard), pairs[1], pairs[2])


def plus(at=ONE, **amounts):
    return Increment(at, tuple((name, str(amount)) for name, amount in amounts.items()))


def pages(ask, request: List | Scan) -> list[Page]:
    """Every page from the first to the last."""
    found = [ask(request)]
    while found[-1].cursor is not None:
        found.append(ask(replace(request, cursor=found[-1].cursor)))
    return found


def items_of(found):
    return [item for page in found for item in page.items]


# ---------------------------------------------------------------- reads
def test_read_answers_in_the_order_of_its_keys(bench: Make):
    """A missing item is None and a key asked for twice is answered twice."""
    b = bench(THINGS)
    b.put(THINGS, thing(sk="1", a=n(1)), thing(sk="2", a=n(2)))
    missing = key(THINGS, "p", "none")
    found = b.store.read(Read((TWO, missing, ONE, TWO)))
    assert [get(item, ("a",)) for item in found] == [n(2), None, n(1), n(2)]


def test_read_takes_any_number_of_keys(bench: Make):
    """230 keys are more than one BatchGetItem takes; no key, no call."""
    b = bench(THINGS)
    b.put(THINGS, *(thing(sk=str(i)) for i in range(230)))
    found = b.store.read(Read(tuple(key(THINGS, "p", str(i)) for i in range(231))))
    assert [item and item["SK"]["S"] for item in found] == [*map(str, range(230)), None]
    assert b.store.read(Read(())) == ()


def test_read_and_list_find_a_number_key_by_value(bench: Make):
    """1.0 and 1 are the same key, also when both are asked for. A list by both key attributes has at most one item."""
    b = bench(NUMBERED)
    items = [{"owner": s("o"), "number": n(number)} for number in (1, 10, 2)]
    b.put(NUMBERED, *items)
    assert b.store.read(Read((key(NUMBERED, "o", "1.0"), key(NUMBERED, "o", "1")))) == (items[0], items[0])
    conditions = KeyConditions((("owner", s("o")), ("number", n("1.0"))))
    assert b.store.list(List("numbered", None, conditions, 10)).items == (items[0],)


def test_read_keeps_binaries_as_bytes(bench: Make):
    """Keys, values and sets of binaries come back as the bytes they were."""
    b = bench(BINARY)
    item = {"owner": {"B": b"\x00\xff"}, "part": {"B": b"\x01"}, "a": {"B": b"\xfe"}, "b": {"BS": [b"\x00", b"\x80"]}}
    b.put(BINARY, item)
    (found,) = b.store.read(Read((key(BINARY, b"\x00\xff", b"\x01"),)))
    assert is_same_value({"M": found}, {"M": item})


def test_read_and_list_show_what_is_looked_at(bench: Make):
    """The attributes asked for, as far as an item has them, and its key; all of them where none are named."""
    b = bench(THINGS, MANY)
    b.put(THINGS, thing(sk="1", **{"a": n(1), "b.c": n(2), "link": s("x")}), thing(sk="2", d=n(4)))
    b.put(MANY, {"id": s("1"), "a": s("many"), "d": s("other")})
    names = frozenset({"a", "b.c", "size"})
    some = {"PK": s("p"), "SK": s("1"), "a": n(1), "b.c": n(2)}
    bare = {"PK": s("p"), "SK": s("2")}
    whole = {"id": s("1"), "a": s("many"), "d": s("other")}
    assert b.store.read(Read((ONE,), {"things": names})) == (some,)
    assert b.store.read(Read((TWO, key(MANY, "1"), ONE), {"things": names})) == (bare, whole, some)
    assert b.store.read(Read((key(MANY, "1"), ONE), {"things": frozenset(), "many": None}))[1] == bare | {"SK": s("1")}
    of_p = of_partition("PK", s("p"))
    assert b.store.list(List("things", None, of_p, 9, attributes=names)).items == (some, bare)
    by_link = of_partition("link", s("x"))
    assert b.store.list(List("things", "by_link", by_link, 9, attributes=frozenset())).items == (bare | {"SK": s("1")},)


# ---------------------------------------------------------------- keys that no item can have
TOO_LONG = {
    "partition-key-too-long": (THINGS, ("x" * 2049, "1")),
    "sort-key-too-long": (THINGS, ("p", "x" * 1025)),
    "sort-key-too-long-in-bytes": (THINGS, ("p", "é" * 513)),
}
IMPOSSIBLE = {
    **TOO_LONG,
    "empty-sort-key": (THINGS, ("p", "")),
    "empty-binary": (BINARY, (b"", b"1")),
    "number-of-39-digits": (NUMBERED, ("o", "9" * 39)),
    "number-too-large": (NUMBERED, ("o", "1e126")),
}


def impossible(*gaps):
    """One case for each; what stands in the gaps is about keys that are too long."""
    return pytest.mark.parametrize(
        ("of", "values"),
        [pytest.param(*case, id=name, marks=gaps if name in TOO_LONG else ()) for name, case in IMPOSSIBLE.items()],
    )


@impossible()
def test_read_of_an_impossible_key_is_refused(bench: Make, of, values):
    """A read of a key that no item can have is invalid, also beside possible keys."""
    b = bench(of)
    for keys in ((key(of, *values),), (key(of, *values), key(of, *LIKE[of.name]))):
        with pytest.raises(StoreError) as caught:
            b.store.read(Read(keys))
        assert caught.value.reason == "ValidationException"


@impossible()
def test_put_of_an_impossible_key_is_refused(bench: Make, of, values):
    """No item has such a key."""
    b = bench(of)
    with pytest.raises((StoreError, ClientError), match="ValidationException"):
        b.put(of, {**key(of, *values).attributes(), "a": n(1)})


@impossible(pytest.mark.needs("key_size_in_transaction"))
def test_transaction_with_an_impossible_key_is_rejected(bench: Make, of, values):
    """A transaction with a key that no item can have is rejected, whichever action names it."""
    b = bench(of, MANY)
    b.put(MANY, {"id": s("1")})
    check = Check(key(of, *values), (Condition(Test.ABSENT, (of.partition.name,)),))
    result = one(b, Transaction((check, update(MANY, key(MANY, "1"), a=n(1)))))
    assert (result.status, result.reason) == (Status.REJECTED, "ValidationException")


@pytest.mark.needs("index_key_size")
def test_update_of_an_index_key_minds_its_size(bench: Make):
    """A partition key of an index holds 2,048 bytes, as one of a table does."""
    b = bench(THINGS)
    b.put(THINGS, thing())
    assert one(b, update(THINGS, ONE, link=s("x" * 2048))).status is Status.WRITTEN
    assert one(b, update(THINGS, ONE, link=s("x" * 2049))).status is Status.REJECTED


@pytest.mark.needs("key_size_in_query")
def test_list_of_an_impossible_key_is_refused(bench: Make):
    """A list under a key that no item can have is invalid."""
    b = bench(THINGS)
    with pytest.raises(StoreError) as caught:
        b.store.list(List("things", None, of_partition("PK", s("x" * 2049)), 1))
    assert caught.value.reason == "ValidationException"


# ---------------------------------------------------------------- lists
@both_directions
@pytest.mark.parametrize(
    ("of", "kind", "parts"),
    [
        (THINGS, "S", ["Z", "a", "é", "ω", "\uffe0", "😀"]),
        (NUMBERED, "N", ["-2", "0.5", "9", "10", "1000"]),
        (BINARY, "B", [b"\x00", b"\x00\x01", b"\x7f", b"\x80", b"\xff"]),
    ],
    ids=["strings", "numbers", "binaries"],
)
def test_list_is_of_one_partition_in_its_order(bench: Make, of, kind, parts, backward):
    """Strings sort by their UTF-8 bytes, numbers by value, binaries bytewise, unsigned, a prefix before what it begins."""
    b = bench(of)
    owner, sort = of.partition.name, of.sort.name
    mine, other = ({"B": text.encode()} if kind == "B" else s(text) for text in ("p", "other"))
    b.put(of, *({owner: mine, sort: {kind: part}} for part in random.Random(1).sample(parts, len(parts))))
    b.put(of, {owner: other, sort: {kind: parts[0]}})
    page = b.store.list(List(of.name, None, of_partition(owner, mine), 100, backward=backward))
    assert [item[sort][kind] for item in page.items] == (parts[::-1] if backward else parts)
    assert page.cursor is None


@both_directions
@pytest.mark.parametrize("limit", [1, 3, 5, 10, 11])
def test_list_pages_give_each_item_once(bench: Make, limit, backward):
    """Pages of any size give each item of the partition once."""
    b = bench(THINGS)
    b.put(THINGS, *(thing(sk=f"{i:02}") for i in range(10)), thing(pk="o", sk="99"), thing(pk="q", sk="00"))
    found = pages(b.store.list, List("things", None, of_partition("PK", s("p")), limit, backward=backward))
    assert all(len(page.items) <= limit for page in found)
    assert [item["SK"]["S"] for item in items_of(found)] == sorted((f"{i:02}" for i in range(10)), reverse=backward)


@both_directions
def test_list_narrows_by_the_beginning_of_the_sort_key(bench: Make, backward):
    """begins_with, with pages that stop at its end."""
    b = bench(THINGS)
    b.put(THINGS, *(thing(sk=sk) for sk in ("A", "B#", "B#1", "B#2", "B#\U0010ffff", "B$", "C")))
    request = List("things", None, of_partition("PK", s("p"), ("SK", "B#")), 2, backward=backward)
    expected = sorted(["B#", "B#1", "B#2", "B#\U0010ffff"], reverse=backward)
    assert [item["SK"]["S"] for item in items_of(pages(b.store.list, request))] == expected


@both_directions
def test_list_of_an_index_gives_the_keys_of_its_rows(bench: Make, backward):
    """Only items that have its key attributes, in its order, across partitions of the table, page by page."""
    b = bench(THINGS)
    b.put(THINGS, *(thing(pk=f"p{i}", sk=str(i % 3), link=s("x"), payload=s("-")) for i in range(7)))
    b.put(THINGS, thing(pk="without", sk="0"), thing(pk="other", sk="0", link=s("y")))
    rows = items_of(pages(b.store.list, List("things", "by_link", of_partition("link", s("x")), 2, backward=backward)))
    assert [row["SK"]["S"] for row in rows] == sorted("0001122", reverse=backward)
    assert {row["PK"]["S"] for row in rows} == {f"p{i}" for i in range(7)}
    assert all(row.keys() == {"PK", "SK", "link"} for row in rows)


def test_list_of_an_index_follows_its_items(bench: Make):
    """An item moves when its index key changes and leaves when it loses it or is deleted."""
    b = bench(THINGS)
    b.put(THINGS, *(thing(sk=sk, link=s("x")) for sk in "123"))
    assert one(b, update(THINGS, ONE, link=s("y"))).status is Status.WRITTEN
    assert one(b, update(THINGS, TWO, removes=("link",))).status is Status.WRITTEN
    b.delete(key(THINGS, "p", "3"))
    listed = {x: b.store.list(List("things", "by_link", of_partition("link", s(x)), 9)).items for x in "xy"}
    assert {x: [row["SK"]["S"] for row in rows] for x, rows in listed.items()} == {"x": [], "y": ["1"]}


@pytest.mark.needs("multi_attribute_gsi")
def test_list_of_an_index_with_several_key_attributes(bench: Make):
    """All partition attributes, then sort attributes from the left. The last one may be a beginning."""
    b = bench(MANY)
    for i, (zip_code, city, street) in enumerate(
        [(1, "B", "x1"), (1, "B", "x2"), (1, "B", "y"), (1, "C", "x"), (2, "B", "x")]
    ):
        b.put(MANY, {"id": s(str(i)), "country": s("c"), "zip": n(zip_code), "city": s(city), "street": s(street)})
    b.put(MANY, {"id": s("incomplete"), "country": s("c"), "zip": n(1), "city": s("B")})
    partition = (("country", s("c")), ("zip", n(1)))

    def listed(conditions):
        return [item["id"]["S"] for item in items_of(pages(b.store.list, List("many", "by_place", conditions, 2)))]

    assert listed(KeyConditions(partition)) == ["0", "1", "2", "3"]
    assert listed(KeyConditions((*partition, ("city", s("B"))), ("street", "x"))) == ["0", "1"]


def test_list_of_a_missing_index_says_so(bench: Make):
    """The error names table and index."""
    b = bench(THINGS)
    with pytest.raises(StoreError, match=r"IndexNotFound: .*by_nothing") as caught:
        b.store.list(List("things", "by_nothing", of_partition("link", s("x")), 1))
    assert caught.value.reason == "IndexNotFound"


# ---------------------------------------------------------------- scans
@pytest.mark.parametrize("total", [1, 3])
def test_scan_segments_are_disjoint_and_complete(bench: Make, total):
    """All segments together give every item once, page by page."""
    b = bench(THINGS)
    b.put(THINGS, *(thing(pk=f"p{i}", sk=str(j)) for i in range(12) for j in range(3)))
    seen = []
    for segment in range(total):
        found = pages(b.store.scan, Scan("things", 4, None, segment, total))
        seen += [(item["PK"]["S"], item["SK"]["S"]) for item in items_of(found)]
    assert sorted(seen) == sorted((f"p{i}", str(j)) for i in range(12) for j in range(3))


# ---------------------------------------------------------------- updates


@pytest.mark.parametrize("stored", [[thing(a=s("newer"))], []], ids=["another value", "no item"])
def test_update_refused_hands_back_the_item(bench: Make, stored):
    """A refused guard changes nothing and answers with the item as it stands. An update never creates an item."""
    b = bench(THINGS)
    b.put(THINGS, *stored)
    result = one(b, update(THINGS, ONE, expect_value(("a",), s("old") if stored else None), a=s("mine")))
    assert (result.status, result.refused) == (Status.REFUSED, {0})
    assert result.item == b.item(ONE) == (stored[0] if stored else None)
    assert len(b.records(THINGS)) == len(stored)


@pytest.mark.parametrize(
    ("stored", "condition", "expected"),
    [
        ({"a": NULL}, Condition(Test.ABSENT, ("a",)), False),
        ({}, Condition(Test.ABSENT, ("a",)), True),
        ({"a": NULL}, is_equal("a", NULL), True),
        ({}, is_equal("a", NULL), False),
        ({"a": NULL}, Condition(Test.EXISTS, ("a",)), True),
        ({"a": n("1.0")}, is_equal("a", n(1)), True),
        ({"a": n(1)}, is_equal("a", n("1e0")), True),
        ({"a": n(1)}, is_equal("a", s("1")), False),
        ({"a": n("12345678901234567890123456789012345678")}, is_equal("a", n("12345678901234567890123456789012345679")), False),
        ({"a": {"SS": ["x", "y"]}}, is_equal("a", {"SS": ["y", "x"]}), True),
        ({"a": {"NS": ["1", "2"]}}, is_equal("a", {"NS": ["2.0", "1"]}), True),
        ({"a": {"BS": [b"\x00", b"\x01"]}}, is_equal("a", {"BS": [b"\x01", b"\x00"]}), True),
        ({"a": {"L": [n(1), n(2)]}}, is_equal("a", {"L": [n(2), n(1)]}), False),
        ({"a": m(x=n(1), y={"SS": ["p", "q"]})}, is_equal("a", m(y={"SS": ["q", "p"]}, x=n("1.0"))), True),
        ({"a": m(x=n(1))}, Condition(Test.EQUALS, ("a", "x"), n(1)), True),
        ({"a": m()}, Condition(Test.ABSENT, ("a", "x")), True),
        ({"a": s("text")}, Condition(Test.ABSENT, ("a", "x")), True),
        ({"a": s("text")}, Condition(Test.EXISTS, ("a", "x")), False),
        ({"a": m()}, Condition(Test.IS_MAP, ("a",)), True),
        ({"a": s("text")}, Condition(Test.IS_MAP, ("a",)), False),
        ({}, Condition(Test.IS_MAP, ("a",)), False),
        ({"a": s("")}, is_equal("a", s("")), True),
        ({"a": s("é")}, is_equal("a", s("e\u0301")), False),
    ],
)  # fmt: skip
def test_guard_compares_as_dynamodb_does(bench: Make, stored, condition, expected):
    """Absent is not NULL, numbers are equal by value, sets without order, text byte for byte."""
    b = bench(THINGS)
    b.put(THINGS, thing(**stored))
    result = one(b, update(THINGS, ONE, condition, seen=s("yes")))
    assert result.status is (Status.WRITTEN if expected else Status.REFUSED)


def test_update_over_400_kb_is_rejected(bench: Make):
    """Names and values together may have 409,600 bytes; engines count a few bytes differently. The item stays as it was,
    and the other writes of the same request are made.
    """
    b = bench(THINGS)
    b.put(THINGS, thing(sk="1", big=s("x" * 300_000)), thing(sk="2"))
    large = update(THINGS, ONE, a=s("x" * 150_000))
    first, second = b.store.apply(Apply((large, update(THINGS, TWO, a=s("x" * (400 * 1024 - 64))))))
    assert (first.status, first.reason, second.status) == (Status.REJECTED, "ItemTooLarge", Status.WRITTEN)
    assert "a" not in (b.item(ONE) or {})


def test_results_are_in_the_order_of_the_writes(bench: Make):
    """Forty writes, every third refused."""
    b = bench(THINGS)
    b.put(THINGS, *(thing(sk=str(i), a=n(i % 3)) for i in range(40)))
    writes = tuple(
        update(THINGS, key(THINGS, "p", str(i)), Condition(Test.EQUALS, ("a",), n(i % 3 or 7)), b=n(1))
        for i in range(40)
    )
    expected = [Status.WRITTEN if i % 3 else Status.REFUSED for i in range(40)]
    assert [result.status for result in b.store.apply(Apply(writes))] == expected


def test_writes_that_race_have_one_winner(bench: Make):
    """Each is atomic: of twelve that expect the copy to be absent one is made, and the others see it."""
    b = bench(THINGS)
    b.put(THINGS, thing())
    results = b.store.apply(Apply(tuple(update(THINGS, ONE, expect_value(("a",), None), a=n(i)) for i in range(12))))
    (winner,) = [i for i, result in enumerate(results) if result.status is Status.WRITTEN]
    assert b.item(ONE) == thing(a=n(winner))
    assert {get(r.item, ("a",))["N"] for r in results if r.status is Status.REFUSED} == {str(winner)}


def test_writes_to_a_missing_table_fail(bench: Make):
    """FAILED with a reason, and a read says which table; nothing is lost of the rest."""
    b = bench(THINGS)
    nowhere = table("nowhere", {"id": "S"}, prefix="no-such-")
    b.tables[nowhere.name] = nowhere
    b.put(THINGS, thing())
    lost, written = b.store.apply(Apply((update(nowhere, key(nowhere, "1"), a=n(1)), update(THINGS, ONE, a=n(1)))))
    assert (lost.status, lost.reason, written.status) == (Status.FAILED, "TableNotFound", Status.WRITTEN)
    with pytest.raises(StoreError, match="nowhere"):
        b.store.read(Read((key(nowhere, "1"),)))


# ---------------------------------------------------------------- whole items
@both_ways
def test_put_writes_one_whole_item(bench: Make, sent):
    """A put replaces the whole item, index rows included."""
    b = bench(THINGS)
    b.put(THINGS, thing(a=n(1), b=s("gone"), link=s("x")))
    assert one(b, sent(Put(ONE, thing(a=n(2)), (is_equal("a", n(1)),)))).status is Status.WRITTEN
    assert b.item(ONE) == thing(a=n(2))
    assert b.store.list(List("things", "by_link", of_partition("link", s("x")), 9)).items == ()


@both_ways
def test_put_creates_when_its_guard_says_that_there_is_nothing(bench: Make, sent):
    """A put guarded by absence creates the item once, and is then refused with the stored item."""
    b = bench(THINGS)
    assert one(b, sent(Put(ONE, thing(a=n(1), link=s("x")), (ABSENT,)))).status is Status.WRITTEN
    result = one(b, sent(Put(ONE, thing(a=n(2)), (ABSENT,))))
    assert (result.status, result.item) == (Status.REFUSED, thing(a=n(1), link=s("x")))
    assert result.refused == ({0} if sent is alone else {1})
    assert b.item(ONE) == thing(a=n(1), link=s("x"))
    assert len(b.store.list(List("things", "by_link", of_partition("link", s("x")), 9)).items) == 1


@both_ways
@pytest.mark.parametrize(
    "write",
    [
        Put(ONE, thing(), ()),
        Put(ONE, thing(sk="2"), (ABSENT,)),
        Put(ONE, {}, (ABSENT,)),
        Update(ONE, ((("a",), s("x")),), (), ()),
        Update(ONE, (), (), (exists(THINGS),), ((("a", "b"), XY),)),
        Update(ONE, (), (), (exists(THINGS),), ((("a",), n(1)),)),
    ],
    ids=["put-unguarded", "put-elsewhere", "put-nothing", "update-unguarded", "add-inside", "add-number"],
)
def test_write_that_is_our_own_mistake_is_never_sent(bench: Make, sent, write):
    """Without a guard, or guarded for another key, it could make or replace an item. A number added twice, because the
    first answer was lost, would count twice; a path is not at the top.
    """
    b = bench(THINGS)
    with pytest.raises(AssertionError):
        one(b, sent(write))


# ---------------------------------------------------------------- sums
def test_increments_that_race_all_count(bench: Make):
    """Forty from four workers at once: none is lost and none counts twice."""
    b = bench(THINGS)
    writes = tuple(in_transaction(plus(v=1)) for _ in range(40))
    statuses = [result.status for result in b.store.apply(Apply(writes))]
    assert get(b.item(ONE), ("v",)) == n(statuses.count(Status.WRITTEN))
    assert Status.WRITTEN in statuses


# ---------------------------------------------------------------- what a write leaves
Written = tuple[
    dict | None, Write, dict, *tuple[str, ...]
]  # what is stored, the write, what is then, and the gaps in it
BOTH_WAYS = {"alone": alone, "in_transaction": in_transaction}


def updates() -> Iterator[tuple[str, Written]]:
    """The rest of the item stays. Reserved words and odd characters are only ever placeholders."""
    stored = {"a": s("old"), "b": s("gone"), "c": s("stays")}
    named = update(THINGS, ONE, is_equal("a", s("old")), a=s("new"), d=n(1), removes=("b",))
    yield "what-it-names", (stored, named, {"a": s("new"), "c": s("stays"), "d": n(1)})
    sets = (("a", "b", "c"), n(9)), (("a", "x"), s("new"))
    removes = ("a", "b", "d"), ("a", "zzz"), ("zzz",)  # a missing one changes nothing
    stored, left = {"a": m(b=m(c=n(1), d=n(2)), e=n(3))}, {"a": m(b=m(c=n(9)), e=n(3), x=s("new"))}
    yield "inside-maps", (stored, Update(ONE, sets, removes, (exists(THINGS),)), left)
    for name in ("name", "size", "a.b", "with space", "#hash", ":colon", "1st", "ümläut", "a[0]", '"quoted"'):
        sets = ((name,), n(1)), (("parent", name), n(2))
        write = Update(ONE, sets, (), (exists(THINGS), Condition(Test.ABSENT, (name,))))
        yield f"name-{name}", ({"parent": m()}, write, {name: n(1), "parent": {"M": {name: n(2)}}})


def elements() -> Iterator[tuple[str, Written]]:
    """ADD makes the attribute where there is none, and DELETE of the last element removes it: no set is ever empty. 1.0 is
    the element 1.
    """
    rows = [
        ({}, change(adds={"a": XY}), {"a": XY}),
        ({"a": {"SS": ["w", "x"]}}, change(adds={"a": XY}), {"a": {"SS": ["w", "x", "y"]}}),
        ({"a": XY}, change(adds={"a": {"SS": ["x"]}}), {"a": XY}),
        ({"a": {"NS": ["1", "2"]}}, change(adds={"a": {"NS": ["2", "-3"]}}), {"a": {"NS": ["1", "2", "-3"]}}),
        ({"a": {"BS": [b"\x00"]}}, change(adds={"a": {"BS": [b"\xff"]}}), {"a": {"BS": [b"\x00", b"\xff"]}}),
        ({"a": XY}, change(discards={"a": {"SS": ["x", "z"]}}), {"a": {"SS": ["y"]}}),
        ({"a": XY}, change(discards={"a": XY}), {}),
        ({"a": XY}, change(discards={"a": {"SS": ["X"]}}), {"a": XY}),
        ({}, change(discards={"a": XY}), {}),
        ({"a": {"NS": ["1", "2"]}}, change(discards={"a": {"NS": ["1"]}}), {"a": {"NS": ["2"]}}),
        ({"a": {"BS": [b"\x00"]}}, change(discards={"a": {"BS": [b"\x00"]}}), {}),
        (
            {"a": XY, "b": XY, "c": n(1)},
            change(adds={"a": {"SS": ["z"]}}, discards={"b": {"SS": ["x"]}}, c=n(2)),
            {"a": {"SS": ["x", "y", "z"]}, "b": {"SS": ["y"]}, "c": n(2)},
        ),
    ]
    one_two, by_value = {"a": {"NS": ["1", "2"]}}, {"a": {"NS": ["1.0", "3"]}}
    for way, sent in BOTH_WAYS.items():
        yield from ((f"elements-{i}-{way}", (old, sent(write), new)) for i, (old, write, new) in enumerate(rows))
        added, discarded = {"a": {"NS": ["1", "2", "3"]}}, {"a": {"NS": ["2"]}}
        yield f"add-by-value-{way}", (one_two, sent(change(adds=by_value)), added, "elements_by_value")
        yield f"discard-by-value-{way}", (one_two, sent(change(discards=by_value)), discarded, "elements_by_value")


def sums() -> Iterator[tuple[str, Written]]:
    """Item and attribute begin with nothing, which is 0. Sums are exact, to 38 digits, and are written without an exponent
    and without zeros at the end.
    """
    for stored, amounts, totals in (
        (None, {"v": 1}, {"v": "1"}),
        ({}, {"v": "-2.5"}, {"v": "-2.5"}),
        ({"v": n("1.5"), "w": s("stays")}, {"v": "2"}, {"v": "3.5"}),
        ({"v": n(1)}, {"v": -1}, {"v": "0"}),
        ({"v": n("0.1")}, {"v": "0.2"}, {"v": "0.3"}),
        ({"v": n(1)}, {"v": 0}, {"v": "1"}),
        ({}, {"v": 0}, {"v": "0"}),
        ({"v": n(1)}, {"v": 1, "w": "-7"}, {"v": "2", "w": "-7"}),
    ):
        left = (stored or {}) | {name: n(total) for name, total in totals.items()}
        yield f"{stored}+{amounts}", (stored, in_transaction(plus(**amounts)), left)
    for left, right, total in (
        ("12345678901234567890.123456789", "0.000000000000000001", "12345678901234567890.123456789000000001"),
        ("9" * 38, "1", "1" + "0" * 38),
        ("1e125", "1e125", "2" + "0" * 125),
        ("1e-20", "1e-20", "0." + "0" * 19 + "2"),
        ("0", "2.50", "2.5"),
    ):
        yield f"{left}+{right}", ({"v": n(left)}, in_transaction(plus(v=right)), {"v": n(total)}, "exact_sums")


@pytest.mark.parametrize(
    ("stored", "write", "left"),
    [
        pytest.param(stored, write, left, id=name, marks=[pytest.mark.needs(gap) for gap in gaps])
        for name, (stored, write, left, *gaps) in (*updates(), *elements(), *sums())
    ],
)
def test_write_leaves_what_dynamodb_would(bench: Make, stored, write, left):
    """A write changes what it names, spelled as DynamoDB spells it, and leaves all else as it was."""
    b = bench(THINGS)
    if stored is not None:
        b.put(THINGS, thing(**stored))
    assert one(b, write).status is Status.WRITTEN
    found, expected = b.item(ONE), thing(**left)
    assert is_same_value({"M": found}, {"M": expected})
    assert spelled(found) == spelled(expected)


def spelled(item):
    """Numbers as they are written, and how many are in a set."""
    return {name: value.get("N", len(value.get("NS", ()))) for name, value in item.items()}


# ---------------------------------------------------------------- writes that DynamoDB cannot take
Refused = tuple[dict | None, Write, *tuple[str, ...]]  # what is stored, the write, and the gaps of engines in it


def paths() -> Iterator[tuple[str, Refused]]:
    """Writes of a path inside what is no map, also to remove what is not there; of a path twice, or inside another."""
    into, out_of = update(THINGS, ONE, a__b=n(1)), update(THINGS, ONE, removes=("a.b",))
    text, listed = {"a": s("text")}, {"a": {"L": []}}
    yield "set-in-nothing", ({}, into, "parent_in_statement")
    yield "set-in-text", (text, into)
    yield "set-in-list", (listed, into)
    yield "set-in-list-in-transaction", (listed, in_transaction(into), "checked_path_into_list")
    yield "set-in-null", ({"a": NULL}, into, "checked_path_into_null")
    for name, stored in {"nothing": {}, "text": text, "list": listed}.items():
        yield f"remove-from-{name}", (stored, out_of, "checked_remove_path")
    inside = Update(ONE, ((("a",), m()), (("a", "b"), n(1))), (), (exists(THINGS),))
    both = change(adds={"a": {"SS": ["y"]}}, discards={"a": {"SS": ["x"]}})
    set_and_add = change(a={"SS": ["y"]}, adds={"a": {"SS": ["x"]}})
    yield "path-inside", ({"a": m()}, inside, "overlapping_paths", "overlapping_paths_in_statement")
    yield "add-and-discard", ({"a": {"SS": ["x"]}}, both, "overlapping_paths")
    yield "set-and-add", ({"a": {"SS": ["x"]}}, set_and_add, "overlapping_paths")
    twice = Increment(ONE, (("b", "1"), ("b", "2")))
    for name, write in {"add-and-discard": both, "increment-twice": twice}.items():
        yield (
            f"{name}-in-transaction",
            ({"a": {"SS": ["x"]}}, in_transaction(write), "overlapping_paths_in_transaction"),
        )


def keys() -> Iterator[tuple[str, Refused]]:
    """Writes of a primary key, even to itself; an index key takes no other type and no empty value."""
    for text in "21":
        yield f"sort-key-{text}", ({}, update(THINGS, ONE, SK=s(text)), "key_in_statement")
    for link in (n(1), s("")):
        yield f"index-key-{link}", ({}, update(THINGS, ONE, link=link))
        for way, sent in BOTH_WAYS.items():
            yield f"put-index-key-{link}-{way}", (None, sent(Put(ONE, thing(link=link), (ABSENT,))))


def sets() -> Iterator[tuple[str, Refused]]:
    """Writes of elements of another type, of none, or of one twice: at the top, inside a map, or to add or discard."""
    gaps = {
        **{f"empty-{name}-alone": "empty_set_in_statement" for name in ("set", "inside")},
        **{f"empty-{name}-in_transaction": "empty_set_in_transaction" for name in ("set", "inside")},
        **{f"empty-{name}-alone": "empty_elements" for name in ("add", "discard")},
        **{f"empty-{name}-in_transaction": "empty_elements_in_transaction" for name in ("add", "discard")},
        "twice-set-alone": "element_twice_in_statement",
    }

    def writes(value: AttributeValue) -> dict[str, Write]:
        return {
            "set": change(a=value),
            "inside": change(a=m(b=value)),
            "add": change(adds={"a": value}),
            "discard": change(discards={"a": value}),
            "put": Put(ONE, thing(a=value), (exists(THINGS),)),
        }

    for way, sent in BOTH_WAYS.items():
        for stored in (s("x"), n(1), NULL, {"L": [s("x")]}, m(), {"NS": ["1"]}, {"BS": [b"x"]}):
            for name in ("add", "discard"):
                yield f"{name}-of-another-type-{stored}-{way}", ({"a": stored}, sent(writes(XY)[name]))
        for form, stored, value in (("empty", {"a": XY}, {"SS": []}), ("twice", {}, {"SS": ["x", "x"]})):
            for name, write in writes(value).items():
                if form == "empty" or name in ("set", "add", "put"):
                    gap = gaps.get(f"{form}-{name}-{way}")
                    yield f"{form}-{name}-{way}", (stored, sent(write), *([gap] if gap else ()))


def numbers() -> Iterator[tuple[str, Refused]]:
    """Increments by or to what DynamoDB cannot hold: they are never rounded. Increments of what is not a number."""
    sums = ("9" * 38, "0.1"), ("1e50", "1"), ("1e100", "1e-100"), ("9e125", "9e125"), ("1.1e-129", "-1.01e-129")
    for left, right in sums:
        yield f"{left}+{right}", ({"v": n(left)}, in_transaction(plus(v=right)), "exact_sums")
    for amount in ("1" * 39, "1e126", "one"):
        yield f"increment-by-{amount}", (None, in_transaction(plus(v=amount)))
    for stored in (s("1"), NULL, {"NS": ["1"]}, {"L": []}):
        yield f"increment-of-{stored}", ({"v": stored}, Transaction((plus(TWO, v=1), plus(v=1))))


@pytest.mark.parametrize(
    ("stored", "write"),
    [
        pytest.param(stored, write, id=name, marks=[pytest.mark.needs(gap) for gap in gaps])
        for name, (stored, write, *gaps) in (*paths(), *keys(), *sets(), *numbers())
    ],
)
def test_write_that_dynamodb_cannot_take_is_rejected(bench: Make, stored, write):
    """The item stays as it was, and nothing else of its transaction is written."""
    b = bench(THINGS)
    if stored is not None:
        b.put(THINGS, thing(**stored))
    before = b.item(ONE)
    result = one(b, write)
    assert (result.status, result.reason) == (Status.REJECTED, "ValidationException")
    assert (b.item(ONE), b.item(TWO)) == (before, None)


@pytest.mark.parametrize("sets", [{"a__b": n(1)}, {}], ids=["path", "elements"])
@both_ways
def test_write_that_cannot_be_taken_is_refused_first(bench: Make, sent, sets):
    """A guard that does not hold comes before what is wrong with the write."""
    b = bench(THINGS)
    b.put(THINGS, thing(a=s("text")))
    write = update(THINGS, ONE, Condition(Test.IS_MAP, ("a",)), **sets)
    write = write if sets else replace(write, adds=((("a",), XY),))
    assert one(b, sent(write)).status is Status.REFUSED


# ---------------------------------------------------------------- transactions
@pytest.mark.parametrize(
    ("source_holds", "target_holds", "refused"),
    [(False, True, {0}), (True, False, {1}), (False, False, {0, 1})],
)
@pytest.mark.parametrize("action", [Update, Increment])
def test_transaction_refused_says_where(bench: Make, action, source_holds, target_holds, refused):
    """The positions of the guards that failed; the target as it stands if its own did; nothing written."""
    b = bench(THINGS, MANY)
    b.put(MANY, {"id": s("src"), "v": n(1)})
    b.put(THINGS, thing(copy=n(5)))
    check = Check(key(MANY, "src"), (is_equal("v", n(1 if source_holds else 2)),))
    guard = is_equal("copy", n(5 if target_holds else 6))
    write = update(THINGS, ONE, guard, copy=n(1)) if action is Update else Increment(ONE, (("copy", "1"),), (guard,))
    result = one(b, Transaction((check, write)))
    assert (result.status, result.refused) == (Status.REFUSED, refused)
    assert result.item == (None if target_holds else thing(copy=n(5)))
    assert b.item(ONE) == thing(copy=n(5))


def test_transaction_of_every_action(bench: Make):
    """A ledger's move: a check, a put, a delete, elements, and two sums, all or none."""
    b = bench(THINGS, MANY)
    b.put(MANY, {"id": s("node"), "edges": XY}, {"id": s("gone")}, {"id": s("from"), "v": n(5)})

    def move(seen):
        return Transaction((
            Check(NOWHERE, (ABSENT,)),
            Delete(key(MANY, "gone"), (exists(MANY),)),
            Increment(key(MANY, "from"), (("v", "-2"),)),
            Increment(key(MANY, "to"), (("v", "2"),)),
            Update(
                key(MANY, "node"), (), (), (exists(MANY),), ((("more",), XY),), ((("edges",), {"SS": ["x"]}),)
            ),
            Put(ONE, thing(amount=n(2)), seen),
        ))  # fmt: skip

    result = one(b, move((is_equal("amount", n(1)),)))
    assert (result.status, result.refused, result.item) == (Status.REFUSED, {5}, None)
    untouched = b.store.read(Read((key(MANY, "gone"), key(MANY, "from"), key(MANY, "to"), ONE)))
    assert untouched == ({"id": s("gone")}, {"id": s("from"), "v": n(5)}, None, None)

    assert one(b, move((ABSENT,))).status is Status.WRITTEN
    found = b.store.read(Read((*(key(MANY, name) for name in ("gone", "from", "to", "node")), ONE)))
    node = {"id": s("node"), "edges": {"SS": ["y"]}, "more": XY}
    expected = (None, {"id": s("from"), "v": n(3)}, {"id": s("to"), "v": n(2)}, node, thing(amount=n(2)))
    assert all(
        is_same_value(left and {"M": left}, right and {"M": right}) for left, right in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Check(ONE, (is_equal("a", n(7)),)), update(THINGS, ONE, is_equal("a", n(8)), a=n(1))),
        (plus(v=1), plus(v=1)),
        (plus(v=1), Put(ONE, thing(), (exists(THINGS),))),
        (plus(v=1), Delete(ONE, (exists(THINGS),))),
        (plus(v=1), change(adds={"a": XY})),
    ],
    ids=["refused", "increment", "put", "delete", "update"],
)
def test_transaction_that_names_an_item_twice_is_rejected_before_any_guard(bench: Make, first, second):
    """A transaction that names an item twice is rejected as invalid, even if a guard would also fail."""
    b = bench(THINGS)
    b.put(THINGS, thing())
    result = one(b, Transaction((first, second)))
    assert (result.status, result.reason) == (Status.REJECTED, "ValidationException")
    assert b.item(ONE) == thing()


@pytest.mark.parametrize(("actions", "status"), [(100, Status.WRITTEN), (101, Status.REJECTED)])
def test_transaction_has_up_to_100_actions(bench: Make, actions, status):
    """One more, and none is done."""
    b = bench(THINGS)
    keys = [key(THINGS, "p", str(i)) for i in range(actions)]
    assert one(b, Transaction(tuple(plus(at, v=1) for at in keys))).status is status
    made = sum(item is not None for item in b.store.read(Read(tuple(keys))))
    assert made == (100 if status is Status.WRITTEN else 0)


# ---------------------------------------------------------------- stream records
def test_records_carry_both_images(bench: Make):
    """Insert, update and delete each leave one record, in order, and so does each item of a transaction. A refused write
    and a check leave none.
    """
    b = bench(THINGS, MANY)
    b.put(THINGS, thing(a=n(1)))
    one(b, update(THINGS, ONE, is_equal("a", n(7)), a=n(8)))
    one(b, update(THINGS, ONE, a=n(2)))
    b.delete(ONE)
    seen = [(change.key, change.old, change.new) for change in b.records(THINGS)]
    assert seen == [
        (ONE, None, thing(a=n(1))),
        (ONE, thing(a=n(1)), thing(a=n(2))),
        (ONE, thing(a=n(2)), None),
    ]
    check = Check(key(MANY, "src"), (Condition(Test.ABSENT, ("id",)),))
    one(b, Transaction((check, plus(ONE, a=1), plus(TWO, a=1))))
    assert sorted(str(change.key) for change in b.records(THINGS)[3:]) == [str(ONE), str(TWO)]
    assert b.records(MANY) == []


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(write, id=name, marks=pytest.mark.needs("silent_set_reorder" if name == "reorder" else "silent_no_op"))
        for name, write in {
            "update": update(THINGS, ONE, v=n(1), removes=("zzz",)),
            "reorder": update(THINGS, ONE, a={"SS": ["y", "x"]}),
            "add": change(adds={"a": {"SS": ["x"]}}),
            "discard": change(discards={"a": {"SS": ["z"]}}),
            "discard-from-nothing": change(discards={"zzz": {"SS": ["x"]}}),
            "put": Put(ONE, thing(a=XY, v=n("1.0")), (exists(THINGS),)),
            "transaction-add-discard": in_transaction(change(adds={"a": {"SS": ["x"]}}, discards={"zzz": {"SS": ["x"]}})),
            "transaction-increment": in_transaction(plus(v=0)),
            "transaction-put": in_transaction(Put(ONE, thing(a=XY, v=n(1)), (exists(THINGS),))),
        }.items()
    ],
)  # fmt: skip
def test_records_of_a_write_that_changes_nothing(bench: Make, write):
    """None: the elements were there, or not there, the amount is 0, the item is the same."""
    b = bench(THINGS)
    b.put(THINGS, thing(a=XY, v=n(1)))
    b.delete(TWO)
    assert one(b, write).status is Status.WRITTEN
    assert len(b.records(THINGS)) == 1
