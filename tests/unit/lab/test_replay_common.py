"""Replays of one recording that share their work: each ends as it would alone, and a wrong end is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sync_rules.jobs.backfill.run import BackfillRun
from sync_rules.lab import played
from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.derived import Derived
from sync_rules.lab.recompute import ENDS_MAX, Checked, wrongs
from sync_rules.lab.replay import Common, Replay
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.ledger import VERSION
from tests.support import every_kind
from tests.support.tapes import in_memory, shopping

RULES = every_kind.rules_of()


@pytest.mark.parametrize("with_copies", [False, True], ids=["", "with-copies"])
def test_replays_that_share_end_as_each_does_alone(tmp_path_factory, with_copies):
    """Under every delivery the events, the counts and the tables are those of a replay that shares nothing."""
    records = in_memory(tmp_path_factory, RULES, shopping(RULES, 5, actions=25).bodies)
    common = Common()
    for delivery in VARIANTS:
        alone = Replay(RULES, delivery, with_copies=with_copies)
        together = Replay(RULES, delivery, with_copies=with_copies, common=common)
        assert list(alone.mismatches(records)) == list(together.mismatches(records)) == []
        assert alone.events == together.events
        assert alone.counts == together.counts
        assert alone.store.holds_same(together.store)


def test_replays_that_share_find_what_a_later_one_has_wrong(tmp_path_factory, monkeypatch):
    """An end that was right before vouches for no other: the mismatches are those of a replay that shares nothing."""
    records = in_memory(tmp_path_factory, RULES, shopping(RULES, 5, actions=25).bodies)
    common = Common()
    assert list(Replay(RULES, VARIANTS[0], common=common).mismatches(records)) == []
    common.beginning = None
    monkeypatch.setattr(CopyRule, "pushes", lambda *_given: False)
    monkeypatch.setattr(CopyRule, "pulls", lambda *_given: False)
    alone = list(Replay(RULES, VARIANTS[0]).mismatches(records))
    assert alone
    assert list(Replay(RULES, VARIANTS[0], common=common).mismatches(records)) == alone


def test_replays_that_share_begin_once_and_recompute_once(tmp_path_factory, monkeypatch):
    """The tables before the first record are made once, and an equal end is recomputed once, whatever the delivery."""
    tape = shopping(RULES, 5, actions=25)
    records = in_memory(tmp_path_factory, RULES, tape.bodies[len(tape.bodies) // 2 :])
    made: list[int] = []
    begin, own_work = played.begin, Derived.own_work
    monkeypatch.setattr("sync_rules.lab.replay.begin", lambda *asked: made.append(1) or begin(*asked))
    judged: list[object] = []
    monkeypatch.setattr(Derived, "own_work", lambda of, change: judged.append(change) or own_work(of, change))
    filled: list[object] = []
    run = BackfillRun.run
    monkeypatch.setattr(BackfillRun, "run", lambda of: filled.append(of) or run(of))
    common = Common()
    for seed in range(3):
        for delivery in VARIANTS:
            assert list(Replay(RULES, replace(delivery, seed=seed), common=common).mismatches(records)) == []
    assert len(made) == 1
    assert len(judged) <= len(records)
    assert len(filled) <= 1


def test_ends_that_differ_in_the_ledger_alone_are_recomputed_once(tmp_path_factory, monkeypatch):
    """How often a total was added to differs from delivery to delivery; what a recompute starts from does not."""
    played = Replay(RULES, VARIANTS[0])
    records = in_memory(tmp_path_factory, RULES, shopping(RULES, 5, actions=25).bodies)
    assert list(played.mismatches(records)) == []
    total = next(item for item in played.store.items("ledger") if VERSION in item)
    filled: list[object] = []
    run = BackfillRun.run
    monkeypatch.setattr(BackfillRun, "run", lambda of: filled.append(of) or run(of))
    checked = Checked()
    for number in range(ENDS_MAX + 3):
        end = played.store.copy()
        end.put("ledger", {**total, VERSION: {"N": str(1_000 + number)}})
        assert list(wrongs(replace(played._tables.ending(), store=end), checked)) == []
    assert len(filled) == 1
    assert len(checked.ends) == ENDS_MAX


def test_ends_in_which_one_item_differs_are_found_whatever_was_right_before(tmp_path_factory):
    """Each item of a user's that is lost, changed or made anew is found, though all others stand as in a right end."""
    played = Replay(RULES, VARIANTS[0])
    records = in_memory(tmp_path_factory, RULES, shopping(RULES, 5, actions=25).bodies)
    assert list(played.mismatches(records)) == []
    ending, checked = played._tables.ending(), Checked()
    assert list(wrongs(ending, checked)) == []
    application = [key for key in ending.images if ending.applied.item(key) is not None]
    assert application
    for key in application:
        for change in ("lost", "changed", "new"):
            end = played.store.copy()
            item = end.item(key) or key.attributes()
            if change == "lost":
                end.delete(key)
            elif change == "changed":
                end.put(key.table, {**item, "of_nobody": {"S": "other"}})
            else:
                name, _, _ = key.values[-1]
                end.put(key.table, {**item, name: {"S": f"{item[name]['S']}0"}})
            found = [one for one in wrongs(replace(ending, store=end), checked) if one.check == "application"]
            assert found == [one for one in wrongs(replace(ending, store=end)) if one.check == "application"]
            assert found
