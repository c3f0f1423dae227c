"""The state machine of `--remote` in memory: what it asks of a function, in any order, twice, from workers that die."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from random import Random

from sync_rules.adapters.state import MemoryState
from sync_rules.jobs.account.protocol import answer
from sync_rules.model.errors import SyncRulesError
from sync_rules.model.json_bytes import tag_binary, untag_binary

LOOPS_MAX = 500
TRIES = 3


class KilledError(BaseException):
    """A worker is gone."""


class SharedMemory(MemoryState):
    """A SharedState: documents that go through JSON. `before` is called before each is saved."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[str], object] = lambda _name: None

    def load(self, name):
        return json.loads(json.dumps(self.documents.get(name), default=tag_binary), object_hook=untag_binary)

    def save(self, name, body):
        self.before(name)
        self.documents[name] = _through_json(body)

    def swap(self, name, before, body):
        if self.documents.get(name) != (None if before is None else _through_json(before)):
            return False
        self.save(name, body)
        return True

    def load_many(self, names):
        return {name: found for name in names if (found := self.load(name)) is not None}


def _through_json(body):
    return json.loads(json.dumps(body, default=tag_binary), object_hook=untag_binary)


class Machine:
    """infra/machine.asl.json. `make` makes new work for each call, as if in a process of its own; `random` gives
    the order of units, and which questions come twice.
    """

    def __init__(self, make: Callable[[], object], random: Random | None = None, execution: str = "one") -> None:
        self.make = make
        self.random = random or Random(0)
        self.execution = execution
        self.units: list[str] = []  # in the order of processing
        self.answer: dict = {}

    def ask(self, question: dict) -> dict:
        """One call; what goes in and out goes through JSON, and fits into a state."""
        text = json.dumps(question)
        assert len(text) < 200_000
        said = json.dumps(answer(json.loads(text), self.make()))
        assert len(said) < 200_000
        return json.loads(said)

    def again(self, question: dict) -> dict:
        """A question that may come twice, and is tried again where it failed or its worker died."""
        if self.random.random() < 0.3:
            with suppress(SyncRulesError, KilledError):
                self.ask(question)
        for left in range(TRIES, 0, -1):
            try:
                return self.ask(question)
            except (SyncRulesError, KilledError):
                if left == 1:
                    raise
        raise AssertionError

    def run(self, asked: dict) -> dict:
        """Run from Begin to Done or Told, and return the last answer."""
        self.answer = self.again({"do": "begin", "asked": asked, "execution": self.execution})
        return self.go_on()

    def go_on(self) -> dict:
        for _ in range(LOOPS_MAX):
            if not self.answer["more"]:
                return self.answer
            units = list(self.answer["units"])
            self.random.shuffle(units)
            for unit in units:
                self.work(unit)
            self.answer = self.again({"do": "end", "run": self.answer["run"]})
        raise AssertionError("it does not come to an end")

    def work(self, unit: str) -> None:
        """Run one unit until it is done or has failed as often as it may, without stopping the other units."""
        self.units.append(unit)
        with suppress(SyncRulesError, KilledError):
            for _ in range(LOOPS_MAX):
                if self.again({"do": "unit", "unit": unit, "run": self.answer["run"]})["done"]:
                    return
            raise AssertionError(f"{unit} is never done")
