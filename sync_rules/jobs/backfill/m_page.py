"""One page of a backfill, again until nothing on it fails.

Law: what failed comes again, and is not forgotten when it fails each time: a few items are set aside, each named in a
failure record, so that they hold up no other; where it is many, or the page cannot be had at all, it is the world that
does not answer, and the supply is left where it stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Final, Protocol

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from sync_rules.jobs.backfill.page import Brought, Chosen
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Failure, Outcome
from sync_rules.model.pace import Pace
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Park, Work, World, drive

TRIES_MAX: Final = 6  # after retries of each call
WAIT_MAX_SECONDS: Final = 20.0
SET_ASIDE_MAX_ITEMS: Final = 100  # of a whole run


class Supply(Protocol):
    """Where items come from, page by page: a segment of a table, a file of an export. `name` is its own among all."""

    @property
    def name(self) -> str: ...

    def page(self, cursor: Item | None, chosen: Chosen, pace: Pace) -> Work[Brought]:
        """The next page, brought in line. Raises StoreError when it cannot be had."""
        ...


class UnfinishedError(StoreError):
    """Some items of a page failed."""

    def __init__(self, brought: Brought) -> None:
        reason = next(iter(brought.report.failed.values())).reason
        super().__init__(reason, f"{len(brought.report.failed)} items not finished")
        self.brought = brought


class Pages:
    """Brings pages in line, for several threads. `halted` says whether to stop: at once, with the page unfinished."""

    def __init__(self, pace: Pace, halted: Callable[[], bool], sleep: Callable[[float], None]) -> None:
        self._pace = pace
        self._halted = halted
        self._sleep = sleep
        self._set_aside = 0
        self._lock = Lock()

    def bring(
        self, supply: Supply, cursor: Item | None, chosen: Chosen, world: World, page: Totals, *, recording: bool
    ) -> Brought:
        """The page at a cursor, whose totals go to `page`. `recording`: what is parked is stuck, and said to be.

        Raises:
            StoreError: when it could not be finished; `page` then counts what was written all the same.
        """
        limits = replace(self._pace.limits, parked_max_looks=0 if recording else 1)
        pace = replace(self._pace, limits=limits, out_of_time=lambda: self._pace.out_of_time() or self._halted())

        def once() -> Brought:
            brought = drive(supply.page(cursor, chosen, pace), world)
            page.look_again(Totals(outcomes=brought.report.outcomes))
            if brought.report.failed:
                raise UnfinishedError(brought)
            return brought

        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, StoreError) and not self._halted()),
            wait=wait_random_exponential(max=WAIT_MAX_SECONDS),
            stop=stop_after_attempt(TRIES_MAX),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            brought: Brought = retrying(once)
        except StoreError as error:
            if not isinstance(error, UnfinishedError) or not self._sets_aside(error.brought, world):
                page.outcomes = Counter({each: n for each, n in page.outcomes.items() if each[1] is Outcome.COPIED})
                raise
            brought = error.brought
        page.items, page.asked, page.levels = brought.items, brought.asked, brought.levels
        return brought

    def _sets_aside(self, brought: Brought, world: World) -> bool:
        """Keep a failure record of each item that failed, unless they are too many."""
        failed = brought.report.failed
        with self._lock:
            if self._halted() or self._set_aside + len(failed) > SET_ASIDE_MAX_ITEMS:
                return False
            self._set_aside += len(failed)
        for key, unfinished in failed.items():
            reason = unfinished.reason.partition(":")[0]
            of_parts = {part.rule.name for part in unfinished.parts}
            for rule in (name for name in unfinished.rules if name not in of_parts):
                world.answer(Park(Failure(rule, key, reason)))
            for part in unfinished.parts:
                failure = Failure(part.rule.name, key, reason, "", part.source, apart=True, element=part.element)
                world.answer(Park(failure))
        return True
