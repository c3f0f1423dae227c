"""Work side by side: the requests of a round are sent together, and each piece of work gets its own answers."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import NULL_PORTS, List, Read, Work, World, do_together, run_work
from tests.support.builders import author_item, book_item, key, library, s, table
from tests.support.worlds import Scene

SHOP = table("shop", {"PK": "S"})


class Unsteady(MemoryStore):
    """A store that fails to read some of its items."""

    def __init__(self, failing: Collection[int]) -> None:
        super().__init__({"shop": SHOP})
        self.failing = {_key(number) for number in failing}

    def read(self, request: Read) -> tuple[Item | None, ...]:
        if not self.failing.isdisjoint(request.keys):
            raise StoreError("Broken")
        return tuple(key.attributes() for key in request.keys)


def _key(number: int) -> ItemKey:
    return key(SHOP, str(number))


def _read_often(number: int, times: int) -> Work[list[object]]:
    """Read an item some times. Returns the answers, and the reasons of errors."""
    answers: list[object] = []
    for _ in range(times):
        try:
            answers += yield Read((_key(number),))
        except StoreError as error:
            answers.append(error.reason)
    return answers


@given(st.lists(st.integers(0, 3), max_size=5), st.frozensets(st.integers(0, 4)))
def test_do_together_gives_each_piece_of_work_its_answers(times: list[int], failing: frozenset[int]) -> None:
    """Pieces of different length get their own answers and errors. Each round asks for all that go on."""
    store, rounds = Unsteady(failing), list[int]()

    def share(function, requests):  # type: ignore[no-untyped-def] # of a World
        rounds.append(len(requests))
        return map(function, requests)

    work = do_together([_read_often(number, count) for number, count in enumerate(times)])
    answers = run_work(work, World(store, NULL_PORTS, NULL_PORTS, share=share))
    right = [_key(number).attributes() for number in range(len(times))]
    assert answers == [["Broken" if n in failing else right[n]] * count for n, count in enumerate(times)]
    longest = max(times, default=0)
    assert len(times) == 1 or rounds == [sum(count > turn for count in times) for turn in range(longest)]


def test_push_lists_the_items_of_a_batch_side_by_side() -> None:
    """Three authors change in one batch. The first listing is answered only when all three were asked for."""
    scene = Scene(library())
    scene.there("books", *(book_item(f"b{i}", f"a{i}", author_name=s("Ada")) for i in range(3)))
    scene.put("authors", *(author_item(f"a{i}", name=s("Eve")) for i in range(3)))
    asked = threading.Barrier(3, timeout=30)
    scene.tap.before = lambda request: isinstance(request, List) and asked.wait()
    with ThreadPoolExecutor(3) as pool:
        scene.consumer.world = replace(scene.consumer.world, share=pool.map)
        assert scene.deliver() == []
    books = scene.rules.tables["books"]
    assert [scene.item(key(books, f"b{i}"))["author_name"] for i in range(3)] == [s("Eve")] * 3
