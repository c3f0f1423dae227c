"""Metering: read and write units are counted, writes before they are made, with bounded memory of the items seen."""

from __future__ import annotations

import pytest

from sync_rules.adapters.budget import Costs
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.meter import (
    FIRST_SEEN_MAX_ITEMS,
    LAST_SEEN_MAX_ITEMS,
    MeteredStore,
)
from sync_rules.model.errors import StoreError
from sync_rules.model.writes import WRITTEN, Check, Condition, Increment, Put, Result, Status, Test, Transaction, Update
from sync_rules.pipeline.requests import Apply, Read, Scan
from tests.support.builders import index, key, s, table
from tests.support.worlds import Tap

THERE = (Condition(Test.EXISTS, ("id",)),)
ABSENT = (Condition(Test.ABSENT, ("id",)),)
PLAIN = table("plain", {"id": "S"})
INDEXED = table("indexed", {"id": "S"}, index("by_kind", {"kind": "S"}, projection="all"))
TABLES = {one.name: one for one in (PLAIN, INDEXED)}


class Told:
    """A metered store that notes the units announced before each write, and when."""

    def __init__(self) -> None:
        self.memory = MemoryStore(TABLES)
        self.told: list[tuple[float, int]] = []
        self.metered = MeteredStore(self.memory, TABLES, self.note)
        self.changes = 0
        self.memory.on_change = self.changed

    def changed(self, *_change: object) -> None:
        self.changes += 1

    def note(self, units: float) -> None:
        self.told.append((units, self.changes))

    def put(self, where: str, item_id: str, **values: dict) -> object:
        at = self.memory.put(where, {"id": s(item_id), **values})
        self.changes = 0
        return at


@pytest.fixture
def told() -> Told:
    return Told()


def setting(at, **values) -> Update:
    return Update(at, tuple(((name,), value) for name, value in values.items()), (), THERE)


def test_meter_says_the_units_of_a_write_before_it_is_made(told):
    """The rate is asked before each write, for the larger size of the item before and after."""
    at = told.put("plain", "1", text=s("x" * 2_500))
    told.metered.read(Read((at,)))
    told.metered.apply(Apply((setting(at, text=s("y")),)))
    assert told.told == [(3, 0)]
    assert told.metered.writes == {"plain": 3}
    told.metered.apply(Apply((setting(at, text=s("z")),)))
    assert told.told[1:] == [(1, 1)]  # what it is now was seen as it was written


def test_meter_sends_writes_in_their_order_whatever_fits_together(told):
    """A small write behind one that waits waits too: else an answer would be taken for that of another write."""
    sizes = {"first": 60_000, "large": 60_000, "small": 100}
    writes = [Put(key(PLAIN, name), {"id": s(name), "text": s("x" * size)}, ABSENT) for name, size in sizes.items()]
    results = told.metered.apply(Apply(tuple(writes)))
    assert [result.status for result in results] == [Status.WRITTEN] * 3
    assert told.metered.writes == {"plain": 59 + 59 + 1}
    assert [units for units, _ in told.told] == [59, 60]


def test_meter_doubles_a_transaction_but_not_its_indexes(told):
    """Each action of a transaction costs twice, a check too; a row of an index once."""
    at, other = told.put("indexed", "1", kind=s("a")), told.put("plain", "1")
    told.metered.read(Read((at, other)))
    write = Transaction((Check(other, THERE), setting(at, more=s("x"))))
    told.metered.apply(Apply((write,)))
    assert told.metered.writes == {"plain": 2, "indexed": 3}


def test_meter_remembers_a_bounded_number_and_the_first_of_a_page(told):
    """A metered store remembers a bounded number of items: the first of a page and the last ones seen."""
    first = told.put("plain", "first", text=s("x" * 5_000))
    many = [told.put("plain", str(i)) for i in range(FIRST_SEEN_MAX_ITEMS + LAST_SEEN_MAX_ITEMS + 500)]
    told.metered.read(Read((first,)))
    told.metered.read(Read(tuple(many)))
    seen = told.metered.seen._first.keys() | told.metered.seen._last.keys()
    assert len(seen) == FIRST_SEEN_MAX_ITEMS + LAST_SEEN_MAX_ITEMS
    assert first in seen
    assert many[-1] in seen
    told.metered.apply(Apply((setting(first, more=s("y")),)))
    assert told.told[-1][0] == 5


def test_meter_forgets_with_each_page(told):
    """`forget` and each scanned page drop the sizes seen before."""
    at = told.put("plain", "1")
    told.metered.read(Read((at,)))
    told.metered.forget()
    assert told.metered.seen.get(at) is None
    told.metered.read(Read((at,)))
    told.metered.scan(Scan("indexed", 100))
    assert told.metered.seen.get(at) is None


# ---------------------------------------------------------------- what was not seen
class Purse:
    """A budget that pays for everything on one table, and notes it."""

    at_once_max_units = 1_000.0

    def __init__(self) -> None:
        self.paid: list[int] = []

    def watches(self, table: str) -> bool:
        return table == "plain"

    def take(self, costs: Costs) -> bool:
        self.paid.append(costs.units)
        return True


def paying(of: str, inner) -> tuple[MeteredStore, list[float]]:
    """A metered store with a rate or a budget, and what was paid."""
    purse, paid = Purse(), []
    if of == "rate":
        return MeteredStore(inner, TABLES, paid.append), paid
    return MeteredStore(inner, TABLES, budget=purse), purse.paid


@pytest.mark.parametrize("of", ["rate", "budget"])
def test_meter_reads_what_it_pays_for_and_did_not_see(told, of):
    """Unseen items of a request are read whole, together and once, to know their cost."""
    tap = Tap(told.memory)
    metered, paid = paying(of, tap)
    one, two, three, gone = (told.put("plain", name, text=s("x" * 4_500)) for name in ("1", "2", "3", "4"))
    metered.read(Read((one,)))
    told.memory.delete(gone)
    both = Transaction((Check(three, THERE), setting(two, a=s("x"))))
    metered.apply(Apply((setting(one, a=s("x")), both, setting(gone, a=s("x")))))
    assert [set(read.keys) for read in tap.seen(Read)] == [{one}, {two, three, gone}]
    assert sum(paid) == metered.writes.total() == 5 + 20 + 1
    assert metered.reads == {"plain": 2 * 3 + 1}
    metered.apply(Apply((setting(one, a=s("y")), setting(two, a=s("y")), setting(gone, a=s("y")))))
    assert len(tap.seen(Read)) == 2
    assert sum(paid) == 26 + 5 + 5 + 1


def test_meter_reads_nothing_that_is_not_paid_for(told):
    """Without a limit, or on a table that has none, a write is taken to be of a new item, and costs no read."""
    tap = Tap(told.memory)
    at, other = (told.put(where, "1", text=s("x" * 4_500)) for where in ("plain", "indexed"))
    MeteredStore(tap, TABLES).apply(Apply((setting(at, a=s("x")),)))
    metered, paid = paying("budget", tap)
    metered.apply(Apply((setting(other, a=s("x")),)))
    assert (tap.seen(Read), paid, len(tap.writes)) == ([], [1], 2)


def test_meter_reads_no_total(told):
    """A total is never read to find its size, because it is the pipeline's own item of known size."""
    tap = Tap(told.memory)
    metered, paid = paying("rate", tap)
    at = told.put("plain", "1")
    metered.read(Read((at,)))
    metered.apply(Apply((Transaction((setting(at, a=s("x")), Increment(key(PLAIN, "total"), (("n", "1"),)))),)))
    assert ([read.keys for read in tap.seen(Read)], paid) == ([(at,)], [4])


@pytest.mark.parametrize("of", ["rate", "budget"])
def test_meter_writes_nothing_that_it_could_not_read(told, of):
    """A write whose item cannot be read fails with the reason; items seen before are written."""
    tap = Tap(told.memory)
    metered, paid = paying(of, tap)
    seen, unseen = (told.put("plain", name, text=s("x" * 4_500)) for name in ("1", "2"))
    metered.read(Read((seen,)))

    def broken(request):
        if isinstance(request, Read):
            raise StoreError("ThrottlingException", "table plain")

    tap.before = broken
    results = metered.apply(Apply((setting(unseen, a=s("x")), setting(seen, a=s("x")), setting(unseen, b=s("x")))))
    failed = Result(Status.FAILED, reason="ThrottlingException: table plain")
    assert results == (failed, WRITTEN, failed)
    assert (sum(paid), [write.key for write in tap.writes]) == (5, [seen])
