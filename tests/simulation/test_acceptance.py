"""Rules that nothing has accepted, beside an application that wrote values of its own where the rules write.

While a rule is not accepted, no value of the application disappears, whatever is delivered in whatever order; what the
rules made themselves they keep right where the batch shows it. Once a backfill has accepted the rules, all is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from sync_rules.adapters.acceptance import list_guarded_rules
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.audit.verifier import Verifier
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Alteration, ItemKey
from sync_rules.model.limits import Limits
from sync_rules.model.values import AttributeValue
from sync_rules.pipeline import acceptance, parts, reconcile
from sync_rules.pipeline.consumer import Consumer
from tests.support import every_kind
from tests.support.builders import n, s
from tests.support.depth import deep
from tests.support.every_kind import order, part, post, user
from tests.support.stacked import backfill_of
from tests.support.worlds import Scene

MORE = {
    "gone": "{copy: user.email, into: order.mail, on_delete: delete}",
}
RULES = parse_rules(every_kind.text_of(every_kind.RULES | MORE))
LIMITS = Limits(parked_max_looks=2)
STEPS, HISTORIES, CATCHES = 60, 90, 300
OWN = "own"  # the first letters of what only the application writes


class History:
    """One history, drawn by its random numbers."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.scene = Scene(RULES, limits=LIMITS, complete=False)
        self.accepted = False
        self.scene.consumer = self._consumer()
        self.count = 0
        self.own: dict[tuple[ItemKey, str], AttributeValue] = {}
        self.altered = 0

    def _consumer(self) -> Consumer:
        ways = {rule.name: "run a backfill" for rule in list_guarded_rules(RULES)}
        return Consumer(
            RULES, self.scene.world, THIS_PROCESS, limits=LIMITS, unaccepted=lambda: {} if self.accepted else ways
        )

    def play(self) -> None:
        for _ in range(STEPS):
            self.random.choice((self._put, self._put, self._delete, self._deliver, self._deliver, self._receive))()
            assert self.lost() == []
        counts = self.scene.consumer.telemetry.alterations
        self.altered = sum(count for (_, kind), count in counts.items() if kind is not Alteration.SET)
        backfill_of(self.scene).run()
        self.accepted = True
        for _ in range(20):
            while self.scene.records:
                self._deliver()
            self.scene.receive()

    # ------------------------------------------------------------ what may happen
    def _put(self) -> None:
        """Put a whole item, at times with values of its own where rules write."""
        one, two = (str(self.random.randrange(3)) for _ in range(2))
        self.count += 1
        name, value = f"n{self.count}", f"{OWN}{self.count}"
        table, item, owned = self.random.choice(
            (
                ("shop", user(one, name=s(name), rank=n(self.count), email=s(f"{one}@x")), {"head": s(value)}),
                ("shop", order(one, two, self.count, status=s("CLOSED")), {"user_name": s(value)}),
                ("shop", order(one, two, self.count), {"user_name": s(value), "mail": s(value)}),
                ("posts", post(one, two, name), {}),
                ("parts", part(one, two if two > one else None), {"path": s(value)}),
                ("shop", {"PK": s(f"EMAIL#{one}@x"), "SK": s("EMAIL"), "user_id": s(one)}, {"name": s(value)}),
            )
        )
        chosen = {name: value for name, value in owned.items() if self.random.random() < 0.4}
        if "email" in item and self.random.random() < 0.2:
            chosen |= {"orders": {"SS": [value]}, "posts": {"M": {value: s(value)}}, "most": n(10**9 + self.count)}
        key = self.scene.put(table, {**item, **chosen})
        self.own = {place: value for place, value in self.own.items() if place[0] != key}
        self.own |= {(key, name): value for name, value in chosen.items()}

    def _delete(self) -> None:
        keys = [*(key for key, _ in self.own), self.scene.at("shop", "USER#1", "PROFILE")]
        key = self.random.choice(keys)
        self.scene.memory.delete(key)
        self.own = {place: value for place, value in self.own.items() if place[0] != key}

    def _deliver(self) -> None:
        """Deliver some records, at times twice."""
        some = self.scene.records[: self.random.randrange(1, 6)]
        if self.random.random() < 0.8:
            del self.scene.records[: len(some)]
        assert self.scene.deliver(some) == []

    def _receive(self) -> None:
        self.scene.receive()

    # ------------------------------------------------------------ what must hold
    def lost(self) -> list[str]:
        """The values of the application that are gone."""
        found = []
        for (key, name), value in self.own.items():
            present = (self.scene.memory.item(key) or {}).get(name)
            if present is None or not _contains(present, value):
                found.append(f"{key} {name}")
        return found

    def wrong(self) -> list[str]:
        """The differences that a repair could change."""
        verifier = Verifier(RULES, self.scene.world, frozenset(RULES.rules), grace_seconds=0)
        return [str(finding.difference) for finding in verifier.sweep() if finding.difference.repairable]


def _contains(present: AttributeValue, value: AttributeValue) -> bool:
    """True if a value is still there: itself, or its elements, or its entries."""
    if "SS" in value:
        return set(value["SS"]) <= set(present.get("SS", ()))
    if "M" in value:
        return value["M"].items() <= present.get("M", {}).items()
    return present == value


def test_acceptance_keeps_what_others_wrote_and_then_all_is_right():
    counts: Counter[str] = Counter()
    for number in range(deep(HISTORIES)):
        history = History(number)
        history.play()
        assert history.wrong() == [], number
        if any(reason.startswith("NotAccepted") for _, reason in history.scene.parked.told):
            counts["parked"] += 1
        counts["altered"] += bool(history.altered)
    assert counts["parked"] > HISTORIES / 5
    assert counts["altered"] > HISTORIES / 20  # what a rule itself had made went on, before anything was accepted


NOTHING: Any = lambda *_given: None  # noqa: E731


MUTANTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "targets are not protected": lambda: patch.object(reconcile, "protect_target", NOTHING),
    "parts are not protected": lambda: patch.object(parts, "protect_part", NOTHING),
    "every old image explains every value": lambda: patch.object(acceptance, "_makes", lambda *_given: True),
    "what is there counts as set": lambda: patch.object(acceptance, "get", NOTHING),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_acceptance_catches_a_mutant(mutant):
    with MUTANTS[mutant]():
        for number in range(CATCHES):
            try:
                History(number).play()
            except AssertionError:
                return
    pytest.fail(f"{CATCHES} histories did not notice: {mutant}")
