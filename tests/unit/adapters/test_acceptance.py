"""Which rules a place accepts: by a backfill, by an operator, or because there was nothing to fill."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sync_rules.adapters.acceptance import ACCEPTED, Acceptance, RunAcceptance, accepted_in, note_place, of_stack
from sync_rules.adapters.state import BACKFILL, MemoryState, save_applied
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.rules import fingerprints
from tests.support.builders import s
from tests.support.worlds import Scene

TEXT = """
tables: {users: {key: {user: S}}, orders: {key: {user: S, order: S}}, ledger: {key: {PK: S, SK: S}}}
entities: {user: {table: users}, order: {table: orders}}
rules:
  counted: count order into user.orders
"""
NAMES = "  names: copy user.name into order.user_name\n"
RULES = parse_rules(TEXT + NAMES)
CHANGED = parse_rules(TEXT + "  names: copy user.nick into order.user_name\n")
RENAMED = parse_rules(TEXT + "  titles: {copy: user.name, into: order.user_name, renamed_from: names}\n")


class State(MemoryState):
    """A state that several processes share."""

    def swap(self, name, before, body):
        assert self.load(name) == before
        self.save(name, body)
        return True


def test_acceptance_of_a_new_stack_begins_with_no_rule():
    """Only the rule that could alter values of others is guarded: a counter waits for its books."""
    state = State()
    note_place(RULES, state)
    assert of_stack(RULES, state)() == {"names": "run `sync-rules backfill --remote --rule names`"}
    state.save(BACKFILL, {})  # a backfill that has begun accepts nothing
    assert of_stack(RULES, state)().keys() == {"names"}
    save_applied(state, {"names": fingerprints.of_each(RULES)["names"]}, datetime.now(UTC))
    assert of_stack(RULES, state)() == {}
    assert of_stack(RENAMED, state)() == {}
    assert of_stack(CHANGED, state)().keys() == {"names"}


@pytest.mark.parametrize("name", [BACKFILL, "applied"])
def test_acceptance_of_a_stack_of_an_earlier_version_has_all_rules(name):
    """What such a stack did without acceptance it goes on doing, until a rule changes."""
    state = State()
    state.save(name, {})
    assert of_stack(CHANGED, state)() == {}  # before any function noted the place
    note_place(RULES, state)
    assert of_stack(RULES, state)() == {}
    assert of_stack(CHANGED, state)().keys() == {"names"}
    before = state.load(ACCEPTED)
    note_place(CHANGED, state)
    assert state.load(ACCEPTED) == before


def test_acceptance_reads_the_state_again_each_minute():
    """A state that does not answer leaves the rules unaccepted, and is asked again a minute later."""
    now, answers = [0.0], [frozenset(), StoreError("Throttled"), frozenset({"names"})]

    def accepted():
        answer = answers.pop(0)
        if isinstance(answer, StoreError):
            raise answer
        return answer

    acceptance = Acceptance(RULES, accepted, "{}", lambda: now[0])
    seen = []
    for now[0] in (0.0, 59.0, 60.0, 100.0, 120.0, 10_000.0):
        seen.append(bool(acceptance()))
    assert seen == [True, True, True, True, False, False]
    assert answers == []


@pytest.mark.parametrize("filled", [False, True], ids=["nothing to fill", "a value of others"])
def test_run_accepts_a_rule_that_has_nothing_to_fill(filled):
    """It stays accepted when it has made values itself; a changed rule is looked at anew."""
    scene = Scene(RULES)
    scene.there("orders", {"user": s("u"), "order": s("1"), **({"user_name": s("mine")} if filled else {})})
    first = RunAcceptance(RULES, MemoryState, (), scene.tap)
    kept = first.begin({})
    assert bool(first.unaccepted()) is filled
    scene.there("orders", {"user": s("u"), "order": s("2"), "user_name": s("made")})
    second = RunAcceptance(RULES, MemoryState, (), scene.tap)
    assert second.begin(kept) == kept
    assert bool(second.unaccepted()) is filled
    changed = RunAcceptance(CHANGED, MemoryState, (), scene.tap)
    changed.begin(kept)
    assert changed.unaccepted().keys() == {"names"}
    assert "sync-rules backfill --rule names" in changed.unaccepted()["names"]


def test_run_accepts_what_is_named_applied_or_of_an_earlier_version():
    scene, state = Scene(RULES), MemoryState()
    scene.there("orders", {"user": s("u"), "order": s("1"), "user_name": s("mine")})
    for before, named in (({}, ("names",)), (None, ())):
        acceptance = RunAcceptance(RULES, lambda: state, named, scene.tap)
        assert "names" in acceptance.begin(before)
        assert acceptance.unaccepted() == {}
    acceptance = RunAcceptance(RULES, lambda: state, (), scene.tap)
    assert acceptance.begin({}) == {}
    assert acceptance.unaccepted()
    save_applied(state, fingerprints.of_each(RULES), datetime.now(UTC))
    assert RunAcceptance(RULES, lambda: state, (), scene.tap).begin({}) == {}
    assert accepted_in(RULES, state) == {"names", "counted"}


def test_run_without_the_right_to_read_its_state_accepts_what_it_knows():
    class Closed(MemoryState):
        def load(self, _name):
            raise StoreError("AccessDeniedException", "state table")

    scene = Scene(RULES)
    scene.there("orders", {"user": s("u"), "order": s("1"), "user_name": s("mine")})
    for named, left in (((), {"names"}), (("names",), set())):
        acceptance = RunAcceptance(RULES, Closed, named, scene.tap)
        acceptance.begin({})
        assert acceptance.unaccepted().keys() == left


def test_run_without_the_right_to_scan_accepts_nothing_by_itself():
    scene = Scene(RULES)

    def refuse(_request):
        raise StoreError("AccessDeniedException", "orders")

    scene.tap.before = refuse
    acceptance = RunAcceptance(RULES, MemoryState, (), scene.tap)
    assert acceptance.begin({}) == {}
    assert acceptance.unaccepted().keys() == {"names"}
