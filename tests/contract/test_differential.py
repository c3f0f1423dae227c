"""The memory store against the engines: random guards and updates on random items come to the same.

CONTRACT_EXAMPLES sets how many are tried on each engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sync_rules.attributes import get, overlaps, same
from sync_rules.memory import MemoryStore
from sync_rules.model import Check, Condition, Status, Test, Transaction, Update
from sync_rules.store import Apply, Read
from tests.builders import exists, key, n, s, table
from tests.contract.conftest import Bench
from tests.engines import chosen

EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", "250"))
THINGS = table("things", {"id": "S"})
NUMBERS = ["0", "1", "1.0", "-2.5", "10", "1e1", "0.1", "123456789012345678901234567890"]
TEXTS = ["", "x", "y", "é"]

scalars = st.one_of(
    st.sampled_from(TEXTS).map(s),
    st.sampled_from(NUMBERS).map(n),
    st.sampled_from([b"", b"\x00", b"\xff"]).map(lambda value: {"B": value}),
    st.booleans().map(lambda value: {"BOOL": value}),
    st.just({"NULL": True}),
    st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, unique=True).map(lambda value: {"SS": value}),
    st.lists(st.sampled_from(NUMBERS), min_size=1, unique_by=Decimal).map(lambda value: {"NS": value}),
    st.lists(st.sampled_from([b"\x00", b"\xff"]), min_size=1, unique=True).map(lambda value: {"BS": value}),
)
names = st.sampled_from(["a", "b", "c.d"])
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.dictionaries(names, inner, max_size=3).map(lambda value: {"M": value}),
        st.lists(inner, max_size=2).map(lambda value: {"L": value}),
    ),
    max_leaves=4,
)
paths = st.lists(names, min_size=1, max_size=3).map(tuple)
attributes = st.dictionaries(names, values, max_size=3)


@st.composite
def guards(draw):
    """Conditions of any kind, often comparing with what may well be there."""
    test = draw(st.sampled_from(list(Test)))
    return Condition(test, draw(paths), draw(values) if test is Test.EQUALS else None)


@st.composite
def updates(draw):
    """Paths to set and to remove that do not overlap; removals only at the top, where engines agree with DynamoDB."""
    chosen_paths: list = []
    for path in draw(st.lists(paths, min_size=1, max_size=3)):
        if not any(overlaps(path, other) for other in chosen_paths):
            chosen_paths.append(path)
    sets = tuple((path, draw(values)) for path in chosen_paths)
    removed = tuple(path for path, _ in sets if len(path) == 1 and draw(st.booleans()))
    return tuple(pair for pair in sets if pair[0] not in removed), removed


def seen_conditions(item):
    """Conditions that hold of an item, so that not nearly every guard is refused."""
    return [Condition(Test.EQUALS, (name,), value) for name, value in item.items()]


def reaches_into_no_map(item, sets):
    """Whether a path leads through something that is there and is no map: engines differ, see the contract suite."""
    parents = (get(item, path[:end]) for path, _ in sets for end in range(1, len(path)))
    return any(parent is not None and "M" not in parent for parent in parents)


def described(result):
    return result.status, result.refused, result.reason


@pytest.mark.skipif(set(chosen()) <= {"memory"}, reason="there is no engine to compare with")
def test_memory_store_and_engine_agree(bench: Callable[..., Bench]):
    """The same result, the same item handed back, the same item stored afterwards."""
    engine = bench(THINGS)
    memory = MemoryStore({THINGS.name: THINGS})
    ids = count()

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.none() | attributes, st.lists(guards(), max_size=2), st.booleans(), updates(), st.booleans())
    def compare(stored, guard, as_seen, update, in_transaction):
        assume(not reaches_into_no_map(stored or {}, update[0]))
        at = key(THINGS, str(next(ids)))
        if stored is not None:
            item = {**at.attributes(), **stored}
            engine.put(THINGS, item)
            memory.put(THINGS.name, item)
            guard = seen_conditions(stored) if as_seen else guard
        sets, removes = update
        write = Update(at, sets, removes, (exists(THINGS), *guard))
        if in_transaction:
            check = Check(key(THINGS, "none"), (Condition(Test.ABSENT, ("id",)),))
            write = Transaction((check, write))
        (expected,), (found,) = memory.apply(Apply((write,))), engine.store.apply(Apply((write,)))
        assert described(found) == described(expected)
        assert same(found.item and {"M": found.item}, expected.item and {"M": expected.item})
        after, expected_after = engine.store.read(Read((at,)))[0], memory.item(at)
        assert same(after and {"M": after}, expected_after and {"M": expected_after})
        statuses.add(found.status)

    statuses: set[Status] = set()
    compare()
    assert statuses >= {Status.WRITTEN, Status.REFUSED, Status.REJECTED}, "the examples reach every answer"
