"""The memory store against the engines: random guards and writes on random items have the same results.

CONTRACT_EXAMPLES sets how many are tried on each engine.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.values import get, has_overlap, is_same_value
from sync_rules.model.writes import Check, Condition, Increment, Put, Status, Test, Transaction, Update
from sync_rules.pipeline.requests import Apply, Read
from tests.contract.conftest import Bench
from tests.support.builders import exists, key, n, s, table
from tests.support.depth import deep
from tests.support.engines import chosen

EXAMPLES = int(os.environ.get("CONTRACT_EXAMPLES", str(deep(360))))
THINGS = table("things", {"id": "S"})
PLACE = key(THINGS, "somewhere")
NUMBERS = ["0", "1", "1.0", "-2.5", "10", "1e1", "0.1", "123456789012345678901234567890"]
TEXTS = ["", "x", "y", "é"]
# Engines differ where an element is written in two ways and where a sum has over 28 digits: see the contract suite.
ELEMENTS = {"SS": ["x", "y", "z"], "NS": ["0", "1", "-2.5", "10", "0.1"], "BS": [b"\x00", b"\xff"]}
AMOUNTS = ["0", "1", "-1", "2.5", "-2.5", "0.1", "10", "-1e1"]
DIGITS_MAX = 28

scalars = st.one_of(
    st.sampled_from(TEXTS).map(s),
    st.sampled_from(NUMBERS).map(n),
    st.sampled_from([b"", b"\x00", b"\xff"]).map(lambda value: {"B": value}),
    st.booleans().map(lambda value: {"BOOL": value}),
    st.just({"NULL": True}),
    st.lists(st.sampled_from(NUMBERS), min_size=1, unique_by=Decimal).map(lambda value: {"NS": value}),
)
elements = st.one_of(
    st.lists(st.sampled_from(choices), min_size=1, unique=True).map(lambda value, kind=kind: {kind: value})
    for kind, choices in ELEMENTS.items()
)
names = st.sampled_from(["a", "b", "c.d"])
values = st.recursive(
    scalars | elements,
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
    """Paths that do not overlap: to set, and at the top, where engines agree with DynamoDB, to remove, to add to and to
    discard from.
    """
    written: dict = {}
    for path in draw(st.lists(names.map(lambda name: (name,)) | paths, min_size=1, max_size=3)):
        if not any(has_overlap(path, other) for other in written):
            written[path] = draw(st.sampled_from(["add", "discard", "set", "remove"])) if len(path) == 1 else "set"
    kinds = {"set": values, "add": elements, "discard": elements}
    pairs = {kind: tuple((p, draw(of)) for p, k in written.items() if k == kind) for kind, of in kinds.items()}
    removes = tuple(path for path, kind in written.items() if kind == "remove")
    return Update(PLACE, pairs["set"], removes, (exists(THINGS),), pairs["add"], pairs["discard"])


amounts = st.dictionaries(names, st.sampled_from(AMOUNTS), min_size=1)
increments = amounts.map(lambda amounts: Increment(PLACE, tuple(amounts.items())))
puts = attributes.map(lambda item: Put(PLACE, item, ()))
absent = Condition(Test.ABSENT, ("id",))


@st.composite
def items_and_actions(draw):
    """A stored item or none, and an action on it, whose sets and numbers often meet the item's."""
    action = draw(st.one_of(updates(), updates(), updates(), puts, increments))
    stored = draw(attributes if isinstance(action, Update) and draw(st.booleans()) else st.none() | attributes)
    if stored is not None and isinstance(action, Update):
        like = {path[0]: draw(st.none() | of_kind(value)) for path, value in (*action.adds, *action.discards)}
        stored |= {name: value for name, value in like.items() if value is not None}
    if stored is not None and isinstance(action, Increment):
        stored |= {name: n(draw(st.sampled_from(AMOUNTS))) for name, _ in action.amounts if draw(st.booleans())}
    return stored, action


def of_kind(value):
    """A set like this one."""
    ((kind, _),) = value.items()
    return st.lists(st.sampled_from(ELEMENTS[kind]), min_size=1, unique=True).map(lambda found: {kind: found})


def placed(action, at, guard):
    """The action on an item of its own, under these conditions beside those it has."""
    item = {"item": {**at.attributes(), **action.item}} if isinstance(action, Put) else {}
    return replace(action, key=at, guard=(*action.guard, *guard), **item)


def seen_conditions(item):
    """Conditions that hold of an item, so that not nearly every guard is refused."""
    return [Condition(Test.EQUALS, (name,), value) for name, value in item.items()]


def engines_differ(item, action):
    """Cases in which engines differ from DynamoDB (see the contract suite): a path through something that is not a map
    or is missing, a set element spelled otherwise, a sum of many digits.
    """
    if isinstance(action, Increment):
        seen = [item.get(name, {}).get("N", "0") for name, _ in action.amounts]
        return any(len(Decimal(text).as_tuple().digits) >= DIGITS_MAX for text in seen)
    if not isinstance(action, Update):
        return False
    changed = [get(item, path) or {} for path, _ in (*action.adds, *action.discards)]
    parents = (get(item, path[:end]) for path, _ in action.sets for end in range(1, len(path)))
    return any(parent is None or "M" not in parent for parent in parents) or any(
        not set(value.get("NS", ())) <= set(ELEMENTS["NS"]) for value in changed
    )


def described(result):
    return result.status, result.refused, result.reason


def parts_of(write):
    """The parts of a write and its result, counted to show what the examples reach."""
    if isinstance(write, Transaction):
        return [part for action in write.actions for part in parts_of(action)]
    return [
        type(write).__name__,
        *(part for part in ("sets", "removes", "adds", "discards") if getattr(write, part, ())),
    ]


@pytest.mark.skipif(set(chosen()) <= {"memory"}, reason="there is no engine to compare with")
def test_memory_store_and_engine_agree(bench: Callable[..., Bench]):
    """The same result, the same item handed back, the same items stored afterwards."""
    engine = bench(THINGS)
    memory = MemoryStore({THINGS.name: THINGS})
    ids = count()
    reached: Counter = Counter()

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(items_and_actions(), st.lists(guards(), max_size=2), st.sampled_from([True, True, False]), st.integers(0, 2))
    def compare(stored_and_action, guard, as_seen, beside):
        stored, action = stored_and_action
        assume(not engines_differ(stored or {}, action))
        number = next(ids)
        at, other = key(THINGS, f"{number}"), key(THINGS, f"{number}-other")
        guard = [absent] if stored is None and as_seen else guard
        if stored is not None:
            item = {**at.attributes(), **stored}
            engine.put(THINGS, item)
            memory.put(THINGS.name, item)
            guard = seen_conditions(stored) if as_seen else guard
        write = placed(action, at, guard if isinstance(action, Increment) else guard or [exists(THINGS)])
        if beside or isinstance(action, Increment):
            check = Check(key(THINGS, "none"), (absent,))
            sums = (Increment(other, (("total", "1.5"),)),) if beside > 1 else ()
            write = Transaction((check, *sums, write))
        (expected,), (found,) = memory.apply(Apply((write,))), engine.store.apply(Apply((write,)))
        assert described(found) == described(expected)
        assert is_same_value(found.item and {"M": found.item}, expected.item and {"M": expected.item})
        for place in (at, other):
            after, expected_after = engine.store.read(Read((place,)))[0], memory.item(place)
            assert is_same_value(after and {"M": after}, expected_after and {"M": expected_after})
        reached.update((part, found.status) for part in parts_of(write))

    compare()
    parts = ("sets", "removes", "adds", "discards", "Put", "Increment")
    wanted = {(part, answer) for part in parts for answer in (Status.WRITTEN, Status.REFUSED)}
    wanted |= {("Update", Status.REJECTED), ("Increment", Status.REJECTED)}
    assert wanted <= reached.keys(), "the examples reach every answer to every write"
