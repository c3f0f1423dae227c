"""Commands that people run, each from beginning to end, while no other worker runs: a backfill, a verify.

Invariant: it is the code of production, in whole; only threads and pauses are taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any, Self
from unittest.mock import patch
from uuid import UUID

from sync_rules.adapters.state import MemoryState, State
from sync_rules.audit import verifier as verify
from sync_rules.audit.verify_tally import DriftFinding
from sync_rules.jobs.backfill import backfill_run, page, throttle
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.jobs.redrive import redriver
from sync_rules.model.items import Failure
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.messages import PartMessage, PullMessage
from sync_rules.pipeline.requests import NULL_PORTS, run_work
from sync_rules.pipeline.requests import World as Ports
from tests.simulation.grammar import Made
from tests.simulation.world import Direct, World


class DivergenceError(AssertionError):
    """Something that must hold does not."""


class _Inline:
    """Replaces a pool of threads."""

    def __init__(self, _workers: int) -> None:
        """Nothing is started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Nothing is stopped."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return list(map(function, items))


@contextmanager
def threadless() -> Iterator[None]:
    """Commands without threads, which soon set aside what keeps failing. A redrive begins with a group."""
    runs = count()  # their names: the same each time that a history is played
    with ExitStack() as stack:
        stack.enter_context(patch.object(page, "TRIES_MAX", 2))
        stack.enter_context(patch.object(redriver, "GROUP_FIRST_ITEMS", 4))
        stack.enter_context(patch.object(backfill_run, "uuid4", lambda: UUID(int=next(runs))))
        for module in (throttle, verify):
            stack.enter_context(patch.object(module, "ThreadPoolExecutor", _Inline))
        yield


class Kept:
    """Failures that a command keeps for a redrive."""

    def __init__(self, failures: Iterable[Failure] = ()) -> None:
        self.failures = list(failures)

    def park(self, failure: Failure) -> None:
        self.failures.append(failure)

    def messages(self) -> Iterator[PullMessage | PartMessage]:
        """The messages that a redrive sends."""
        for one in dict.fromkeys(self.failures):
            if one.key is not None and one.element is not None:
                yield PartMessage(one.rule, one.key, one.member, one.element, 1)
            elif one.key is not None:
                yield PullMessage(one.key, 1)


def began(made: Made, world: World) -> None:
    """The beginning of a run over tables that are empty: the books of counters are complete."""
    world.silent = True  # the record of a mark concerns no rule
    run_work(finish_empty(made.rules), Ports(Direct(world), NULL_PORTS, Kept()))
    world.silent = False


def backfill_run_of(
    made: Made, store: Any, failures: Any, state: State, names: frozenset[str] | None = None
) -> backfill_run.BackfillRun:
    """A backfill of all rules or some, as the command makes it."""
    names = made.rules.keeper_names if names is None else names
    return backfill_run.BackfillRun(
        Selection(made.rules, names),
        store,
        failures,
        state,
        {"rules": sorted(names)},
        supplies=make_supplies(made.rules, 1),
        completes=names,
        sleep=lambda _seconds: None,
    )


class DiedError(BaseException):
    """A process is gone."""


class Dying:
    """The ports of a backfill that dies at one of its next requests."""

    def __init__(self, port: Any, left: Iterator[int]) -> None:
        self._port, self._left = port, left

    def __getattr__(self, name: str) -> Any:
        if not next(self._left, 0):
            raise DiedError
        if name == "scan":
            return lambda request: self._port.scan(replace(request, limit=2))
        return getattr(self._port, name)


def backfill(made: Made, store: Any, pick: Callable[[int], int] | None = None) -> Kept:
    """A backfill of all rules. With `pick` it dies a few times, and perhaps one of some rules was begun before it. Raises
    DivergenceError when it does not finish. Returns what it could not do.
    """
    kept, state, whole = Kept(), MemoryState(), made.rules.keeper_names
    if not whole:
        return kept
    names = sorted(whole)
    for number in range(pick(5) if pick else 0):
        assert pick is not None, "it dies as somebody decides"
        some = frozenset(names[: 1 + pick(len(names))]) if number == 0 and pick(3) == 2 else whole
        left = iter(range(1 + pick(40), -1, -1))
        run = backfill_run_of(made, Dying(store, left), kept, Dying(state, left), some)
        with suppress(DiedError):
            if run.run() and some == whole:
                return kept
    run = backfill_run_of(made, store, kept, state)
    if not run.run():
        raise DivergenceError(f"a backfill left {run.left}")
    return kept


def verified(made: Made, world: World, *, repair: bool) -> list[DriftFinding]:
    """The findings of a verify of all rules."""
    if not made.rules.keeper_names:
        return []
    world.store.catch_up()
    ports = Ports(Direct(world), NULL_PORTS, Kept())
    verifier = verify.Verifier(
        made.rules,
        ports,
        made.rules.keeper_names,
        repair=repair,
        grace_seconds=0,
        sleep=lambda _s: None,
        clock=lambda: 0.0,
    )
    return list(verifier.sweep())
