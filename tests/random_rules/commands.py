"""Commands that people run, each from beginning to end, with nobody else at work: a backfill, a verify.

Invariant: it is the code of production, in whole; only threads and pauses are taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self
from unittest.mock import patch

from sync_rules.adapters.state import MemoryState, State
from sync_rules.audit import verifier as verify
from sync_rules.audit.verify_tally import DriftFinding
from sync_rules.jobs.backfill import throttle
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, segments
from sync_rules.model.items import Failure
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.messages import PartMessage, PullMessage
from sync_rules.pipeline.requests import NULL_PORTS, run_work
from sync_rules.pipeline.requests import World as Ports
from tests.random_rules.grammar import Made
from tests.random_rules.world import Direct, World


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
    """Commands without threads."""
    with patch.object(verify, "ThreadPoolExecutor", _Inline), patch.object(throttle, "ThreadPoolExecutor", _Inline):
        yield


class Kept:
    """Failures that a command keeps, for whoever redrives them."""

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
    world.silent = True  # the record of a mark concerns nobody
    run_work(finish_empty(made.rules), Ports(Direct(world), NULL_PORTS, Kept()))
    world.silent = False


def backfill_run_of(made: Made, store: Any, failures: Any, state: State, name: str = "") -> BackfillRun:
    """A backfill of all rules, as the command makes it."""
    return BackfillRun(
        Selection(made.rules, made.rules.kept),
        store,
        failures,
        state,
        {},
        supplies=segments(made.rules, 1),
        completes=made.rules.kept,
        name=name,
        sleep=lambda _seconds: None,
    )


def backfill(made: Made, store: Any) -> Kept:
    """A backfill of all rules. Raises DivergenceError when it does not finish. Returns what it could not do."""
    kept = Kept()
    if not made.rules.kept:
        return kept
    run = backfill_run_of(made, store, kept, MemoryState(), name="one")
    if not run.run():
        raise DivergenceError(f"a backfill left {run.left}")
    return kept


def verified(made: Made, world: World, *, repair: bool) -> list[DriftFinding]:
    """The findings of a verify of all rules."""
    if not made.rules.kept:
        return []
    world.store.catch_up()
    ports = Ports(Direct(world), NULL_PORTS, Kept())
    verifier = verify.Verifier(
        made.rules, ports, made.rules.kept, repair=repair, grace_seconds=0, sleep=lambda _s: None, clock=lambda: 0.0
    )
    return list(verifier.sweep())
