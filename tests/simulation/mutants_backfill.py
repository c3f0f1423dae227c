"""Mutants of backfill: its pages, its checkpoints, the order it goes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.jobs.backfill import backfill_run
from sync_rules.jobs.backfill import page as backfill
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Pages
from sync_rules.jobs.backfill.progress import make_first_position
from sync_rules.pipeline.requests import Request, Scan, run_work
from sync_rules.rules.selection import Step
from tests.simulation.breaking import Mutation, Work, answered, known, replacing
from tests.simulation.worlds import among, small

BACKFILLS = small("backfill", "copy", "copy-derive", "copy-derive-embed-count", "collect", "count", "path")


# ---------------------------------------------------------------- backfill: pages
@contextmanager
def saved_before() -> Iterator[None]:
    """A checkpoint says that a page is done as soon as it was read."""
    original, begin = Pages.process, BackfillRun.__post_init__

    def knowing(run: Any) -> None:
        begin(run)
        run._pages.run = run

    def process(self: Any, supply: Any, *args: Any, **more: Any) -> Any:
        run = self.run

        def ask(request: Request) -> Work:
            answer = yield request
            if isinstance(request, Scan):
                run._save(supply, answer.cursor, backfill_run.Totals(), done=answer.cursor is None)
            return answer

        return original(self, Asked(supply, ask), *args, **more)

    with patch.object(Pages, "process", process), patch.object(BackfillRun, "__post_init__", knowing):
        yield


class Asked:
    """A supply, all of whose requests go through `ask`."""

    def __init__(self, supply: Any, ask: Callable[[Request], Any]) -> None:
        self.name, self._supply, self._ask = supply.name, supply, ask

    def page(self, *args: Any) -> Work:
        return answered(self._supply.page(*args), self._ask)


@contextmanager
def sources_first() -> Iterator[None]:
    """The sources are read when a segment is begun, before its pages."""
    early: dict[Any, Any] = {}
    process_page = backfill.process_page

    def bringing(scan: Any, selection: Any, bounds: Any) -> Work:
        if scan.cursor is None:
            early.clear()
            for table in {
                rule.source.table.name: rule.source.table for rule in selection.rules.rules.values()
            }.values():
                page = yield Scan(table.name, 500, consistent=True)
                early.update({table.key_of(item): item for item in page.items})
                while page.cursor is not None:
                    page = yield Scan(table.name, 500, page.cursor, consistent=True)
                    early.update({table.key_of(item): item for item in page.items})
        return (yield from answered(process_page(scan, selection, bounds), known(early)))

    with patch.object(backfill, "process_page", bringing):
        yield


def failures_acknowledged(self: Any, supply: Any, *args: Any, **_more: Any) -> Any:
    """A page is done, whatever failed on it."""
    cursor, selection, world, page = args
    result = run_work(supply.page(cursor, selection, self._bounds), world)
    page.items, page.outcomes = result.items, result.report.outcomes
    return result


# ---------------------------------------------------------------- backfill: going on
@contextmanager
def begun_is_done() -> Iterator[None]:
    """Mutant: a resumed backfill takes a segment that was begun for done."""
    original = BackfillRun._load

    def load(self: Any, supply: Any) -> Any:
        found = original(self, supply)
        return {**found, "done": found["done"] or found["cursor"] is not None}

    with patch.object(BackfillRun, "_load", load):
        yield


@contextmanager
def begun(change: Callable[[Any], None]) -> Iterator[None]:
    """Patch the begin of a run: `change` is applied to a resumed run."""
    original = BackfillRun.begin

    def begin(self: Any) -> None:
        original(self)
        if self._resumed:
            change(self)

    with patch.object(BackfillRun, "begin", begin):
        yield


def next_step(run: Any) -> None:
    run.position = make_first_position(run.position.step + 1, run.steps)


def next_round(run: Any) -> None:
    if not run.position.recording:
        run.position = replace(run.position, round=run.position.round + 1)


def all_at_once(_rules: Any, names: Any) -> Iterator[Step]:
    """Mutant: copies made from copies are not backfilled after them."""
    yield Step(names)


def one_round(original: Callable[..., Any]) -> Callable[..., Any]:
    """Mutant: rules that feed themselves are backfilled in one round."""
    return lambda rules, names: (replace(step, max_rounds=1) for step in original(rules, names))


MUTANTS: Mapping[str, Mutation] = {
    "backfill: progress saved before the effect": Mutation(saved_before, BACKFILLS),
    "backfill: sources read before the page": Mutation(sources_first, small("late", "copy")),
    "backfill: failures acknowledged": Mutation(
        replacing(Pages, "process", failures_acknowledged), among("late", "two")
    ),
    "backfill: what was begun is done": Mutation(begun_is_done, among("backfill", "mixed")),
    "backfill: goes on with the next step": Mutation(lambda: begun(next_step), BACKFILLS),
    "backfill: goes on with the next round": Mutation(lambda: begun(next_round), among("backfill", "path-delete")),
    "backfill: no cascade": Mutation(replacing(backfill_run, "cascade", all_at_once), BACKFILLS),
    "backfill: one round": Mutation(
        replacing(backfill_run, "cascade", one_round(backfill_run.cascade)), small("backfill", "path")
    ),
}
