"""Backfills that are stopped, set things aside, or are not alone: what is not done may never pass for done."""

from __future__ import annotations

import pytest

from sync_rules.jobs.backfill.progress import abandon
from sync_rules.jobs.backfill.scope import require_beginning
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Outcome
from sync_rules.model.writes import Result, Status
from tests.support import every_kind
from tests.support.builders import order_item, s, shop, user_item
from tests.support.every_kind import order, user
from tests.support.inaccount import SharedMemory
from tests.support.worlds import Scene
from tests.unit.jobs.test_backfill_run import run_of


def test_a_failure_that_could_not_be_kept_is_not_counted_when_its_page_comes_again(monkeypatch):
    """Nothing fails when the backfill goes on: it says so, and the books of the rule are complete."""
    scene, state = Scene(every_kind.rules_of(effects=False)), SharedMemory()
    scene.there("shop", user("1", name=s("Ada")), order("1", "1", 5))
    names = frozenset(name for name, rule in scene.rules.rules.items() if rule.title == "counted")
    with monkeypatch.context() as patched:
        patched.setattr(scene.tap, "result", lambda _write: Result(Status.FAILED, reason="TransactionConflict"))
        patched.setattr(scene.parked, "park", refused)
        assert not run_of(scene, state, names=names, total=1).run()
    again = run_of(scene, state, names=names, total=1)
    assert again.run()
    assert not again.totals.count(Outcome.FAILED)
    assert not [one for one in scene.memory.items("ledger") if one.get("complete") == {"BOOL": False}]


def refused(_failure):
    """A failure log that takes nothing."""
    raise StoreError("Throttled", "the failure log")


def test_a_backfill_that_another_took_the_state_from_ends():
    """A backfill whose state another one took over ends without overwriting the other's checkpoints."""
    state = SharedMemory()
    scene = Scene(shop())
    scene.there("shop", user_item("7", name=s("New")), order_item("7", "1", user_name=s("Old")))
    slow = run_of(scene, state, total=2)
    slow.begin()
    abandon(state)
    quick = run_of(scene, state, total=2)
    assert quick.run()
    with pytest.raises(StoreError, match="another backfill"):
        slow._save_head()
    scene.there("shop", order_item("7", "1", user_name=s("Older")))
    assert run_of(scene, state, total=2).run()
    assert scene.item(scene.at("shop", "USER#7", "ORDER#1"))["user_name"] == s("New")


@pytest.mark.parametrize(
    "head",
    [{}, {"done": False, "run": "1", "scope": {}, "place": {"step": "x"}}, {"done": False, "run": 1, "scope": []}],
    ids=["empty", "no figures", "wrong types"],
)
def test_a_damaged_checkpoint_is_refused_and_can_be_left(head):
    """A damaged checkpoint is refused with advice to use --restart, which then drops it."""
    state = SharedMemory()
    state.save("backfill", head)
    with pytest.raises(UserError, match="--restart"):
        require_beginning(state, {}, "the state", resume=True, restart=False)
    require_beginning(state, {}, "the state", resume=False, restart=True)
    scene = Scene(shop())
    assert run_of(scene, state, total=1).run()
