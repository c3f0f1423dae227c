"""The start of a run: which rules it accepts, by a backfill, by an operator, or because there was nothing to fill."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sync_rules.adapters.acceptance import read_accepted_titles
from sync_rules.adapters.state import MemoryState, save_applied_fingerprints
from sync_rules.jobs.consume.run_start import RunAcceptance
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.requests import Scan
from sync_rules.rules import fingerprints
from tests.support.builders import s
from tests.support.worlds import Scene
from tests.unit.adapters.test_acceptance import CHANGED, RULES

DESTROYING = """
tables: {users: {key: {user: S}}, orders: {key: {user: S, order: S}}}
entities:
  user:  {table: users}
  order: {table: orders, key: {user: "U#{user_id}", order: "{order_id}"}}
  done:  {table: orders, key: {user: "D#{user_id}", order: "{order_id}"}}
rules:
"""


@pytest.mark.parametrize("filled", [False, True], ids=["nothing to fill", "a value of others"])
def test_run_accepts_a_rule_that_has_nothing_to_fill(filled):
    """An accepted rule stays accepted when it has made values itself; a changed rule does not."""
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
    save_applied_fingerprints(state, fingerprints.compute_rule_fingerprints(RULES), datetime.now(UTC))
    assert RunAcceptance(RULES, lambda: state, (), scene.tap).begin({}) == {}
    assert read_accepted_titles(RULES, state) == {"names", "counted"}
    save_applied_fingerprints(
        state, {"counted": fingerprints.compute_rule_fingerprints(RULES)["counted"]}, datetime.now(UTC)
    )
    assert read_accepted_titles(RULES, state) == {"counted"}
    acceptance = RunAcceptance(RULES, lambda: state, (), scene.tap, " --state s{x}.json")
    assert acceptance.begin({}) == {}
    assert acceptance.unaccepted() == {"names": "run `sync-rules backfill --state s{x}.json --rule names`"}


def test_run_accepts_no_rule_by_itself_that_could_delete_an_item():
    rule = "{copy: user.nick, into: order.nick, link: {user: user_id}, on_delete: delete}"
    rules = parse_rules(DESTROYING + f"  gone: {rule}\n")
    scene = Scene(rules)
    empty = RunAcceptance(rules, MemoryState, (), scene.tap)
    assert empty.begin({}).keys() == {"gone"}
    scene.there("orders", {"user": s("U#u"), "order": s("1")})
    acceptance = RunAcceptance(rules, MemoryState, (), scene.tap)
    acceptance.begin({})
    assert acceptance.unaccepted().keys() == {"gone"}
    assert len(scene.tap.seen(Scan)) == 2  # one for each start


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
    scene.tap.refuse(Scan, StoreError("AccessDeniedException", "orders"))
    acceptance = RunAcceptance(RULES, MemoryState, (), scene.tap)
    assert acceptance.begin({}) == {}
    assert acceptance.unaccepted().keys() == {"names"}
