"""The faults of docs/faults.md: each row names a test that exists. Faults at any request, in any
history, are played by tests/simulation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from sync_rules.audit.verifier import Verifier
from sync_rules.model.limits import Limits
from sync_rules.model.writes import Result, Status, Transaction, Write
from sync_rules.pipeline.requests import Apply
from tests.support.builders import n, s
from tests.support.every_kind import order, part, post, rules_of, user
from tests.support.worlds import Scene, deliver_whatever_fails

ROOT = Path(__file__).parents[3]


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


@dataclass
class Nth:
    """The number of one request."""

    number: int
    met: bool = False

    def __contains__(self, number: object) -> bool:
        self.met |= number == self.number
        return number == self.number


def test_fault_at_any_one_request_leaves_no_drift():
    """A read, a listing, a write or a message that fails once is made again: whichever it is, nothing is left out."""
    limits = Limits(fan_out_page_max_items=2, fan_out_inline_max_items=2, fan_out_relay_max_items=2, apply_max_writes=3)
    for number in count():
        scene, failing = Scene(rules_of(effects=False), limits=limits), Nth(number)
        scene.put("parts", part("c", "b"), part("b", "a"), part("a"), part("d", "a"), part("e", "a"))
        scene.put("shop", *(order("1", str(total), total) for total in range(3)))
        scene.put("shop", user("1", name=s("Ada"), rank=s("1"), email=s("a@x")))
        scene.put("posts", post("p", "1", "x"))
        deliver_whatever_fails(scene, failing)
        if not failing.met:
            break
        scene.tap.before, scene.tap.result = (lambda _request: None), (lambda _write: None)
        del scene.queue.send
        for _ in range(4):
            scene.rest()
            scene.receive()
        verifier = Verifier(scene.rules, scene.world, scene.rules.keeper_names, grace_seconds=0)
        assert [found.difference for found in verifier.sweep()] == [], number
    assert number > 30


def test_fault_table_names_tests_that_exist():
    """Each row of docs/faults.md says which test shows it, and there is such a test."""
    rows = re.findall(r"^\| (?!what goes wrong|---)(.*) \|$", (ROOT / "docs/faults.md").read_text(), re.MULTILINE)
    named = [re.findall(r"`(test_\w+)`", row.rpartition("|")[2]) for row in rows]
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(rows) >= 20
    assert all(named)
    assert {name for names in named for name in names} <= there
