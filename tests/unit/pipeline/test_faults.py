"""A fault of docs/faults.md on rules of every kind. Faults at any request, in any history, are played by tests/simulation."""

from __future__ import annotations

from sync_rules.model.writes import Result, Status, Transaction, Write
from sync_rules.pipeline.requests import Apply
from tests.support.builders import n, s
from tests.support.every_kind import order, rules_of, user
from tests.support.worlds import Scene


def test_fault_a_lost_answer_counts_nothing_twice():
    """Each transaction is made once and its answer lost once: numbers, elements and mirrors are exact."""
    scene = Scene(rules_of(effects=False))
    lost: set[str] = set()

    def result(write: Write) -> Result | None:
        if not isinstance(write, Transaction) or repr(write) in lost:
            return None
        lost.add(repr(write))
        scene.memory.apply(Apply((write,)))
        return Result(Status.FAILED, reason="ReadTimeoutError")

    scene.tap.result = result
    scene.put("shop", user("1", name=s("Ada"), email=s("a@x")), order("1", "a", 5), order("1", "b", 7))
    scene.put("shop", order("1", "a", 6))
    while records := scene.records:
        scene.records = []
        if failed := scene.deliver(records):
            scene.records[:0] = [change for change in records if int(change.position) >= int(failed[0])]
    assert len(lost) > 3
    found = scene.item(scene.at("shop", "USER#1", "PROFILE"))
    assert (found["counted"], found["spent"], found["orders"]) == (n(2), n(13), {"SS": ["a", "b"]})
    assert scene.item(scene.at("shop", "EMAIL#a@x", "EMAIL"))["name"] == s("Ada")
    assert scene.parked.failures == []
