"""A shop whose application writes by transactions."""

from __future__ import annotations

from typing import Any

from sync_rules.model.values import Item
from sync_rules.model.writes import Status
from sync_rules.pipeline.requests import Scan, Store
from sync_rules.rules.ruleset import Rules
from sync_rules.write import Follow, Transact
from tests.support.transacting import Transactor
from tests.support.worlds import Scene


class Shop:
    """A scene, and transactions on its store."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.scene = Scene(rules)
        self.client = Transactor(self.scene.memory, rules)
        self.slept: list[float] = []

    def transact(self, **options: Any) -> Transact:
        usual = {"raw": True, "store": self.scene.memory, "sleep": self.slept.append, "deadline_seconds": 60.0}
        return Transact(self.rules, self.client, **{**usual, **options})

    def follow(self, **options: Any) -> Follow:
        return Follow(self.rules, None, **{"store": self.scene.memory, "deadline_seconds": 60.0, **options})

    def rest(self) -> None:
        """The stream does all that is left, with second looks and retries of what was parked."""
        for _ in range(20):
            self.scene.rest()
            if not self.scene.queue.messages:
                return
            waiting = [one for one in self.scene.queue.messages if getattr(one[0], "attempt", 0) <= 1]
            self.scene.queue.messages = waiting
            self.scene.receive()

    def written_by_the_stream(self) -> int:
        """The writes that the stream makes until it rests, second looks included."""
        done = 0
        apply = self.scene.memory.apply

        def counted(request: Any) -> Any:
            nonlocal done
            results = apply(request)
            done += sum(result.status is Status.WRITTEN for result in results)
            return results

        self.scene.memory.apply = counted  # type: ignore[method-assign]
        try:
            self.rest()
        finally:
            self.scene.memory.apply = apply  # type: ignore[method-assign]
        return done

    def state(self) -> dict[tuple[str, object], Item]:
        """Every item, but how often totals were added to: bookings that are made together count once."""
        return state_of(self.rules, self.scene.memory)


def state_of(rules: Rules, store: Store) -> dict[tuple[str, object], Item]:
    """Every item in a store, sets in order."""
    found: dict[tuple[str, object], Item] = {}
    for name, table in rules.tables.items():
        for item in store.scan(Scan(name, 1_000, consistent=True)).items:
            kept = {attribute: value for attribute, value in item.items() if attribute != "v"}
            found[name, table.key_of(item)] = {a: _sorted(v) for a, v in kept.items()}
    return found


def _sorted(value: Any) -> Any:
    ((kind, content),) = value.items()
    return {kind: sorted(content)} if kind in ("SS", "NS", "BS") else value
