"""Mutants of verify and its repairs, and of redrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.audit import compare, verifier
from sync_rules.audit.compare import Comparison, Drift
from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.redrive import redriver
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.model.items import Change
from sync_rules.model.writes import (
    Check,
    Condition,
    Delete,
    Increment,
    Test,
    Transaction,
    Update,
    differences,
    target_exists,
    update_of,
)
from sync_rules.pipeline import consumer
from sync_rules.pipeline.records import changes_of, read_event
from sync_rules.pipeline.requests import Apply, Read, Request, run_work
from tests.simulation.breaking import Mutation, Work, answered, known, replacing, wrapping
from tests.simulation.mutants_backfill import all_at_once, one_round
from tests.simulation.worlds import among

ALWAYS = (Condition(Test.ABSENT, ("never there",)),)  # a guard that always holds
VERIFIES = among("people", "base", "index", "two", "delete", "keep", "cascade")
REDRIVES = among("redrive", "base", "index", "two", "keep", "nested")
LEVELS = among("damage", "path", "path-keep", "path-delete")
GUARDED = among("people", "booked", "ranked", "two-index", "mixed", "collect")
BOOKED = among("people", "booked", "booked-few", "booked-groups")


# ---------------------------------------------------------------- verify
@contextmanager
def remembered() -> Iterator[dict[Any, Any]]:
    """Record the differences that the sweep found: by rule and target, the image and the writes to make."""
    found: dict[Any, Any] = {}
    compare_one, sweep = compare._compare_one, Verifier._sweep

    def comparing(rule: Any, target: Any, sources: Any, comparison: Any) -> None:
        before = len(comparison.different)
        compare_one(rule, target, sources, comparison)
        if len(comparison.different) > before and comparison.different[-1].paths:
            desired = rule.compute_values(sources.of(rule, target), target.image)
            found.setdefault((rule.name, target.key), (target.image, differences(target.image, desired)))

    def sweeping(self: Any, names: Any) -> Any:
        found.clear()
        yield from sweep(self, names)

    with patch.object(compare, "_compare_one", comparing), patch.object(Verifier, "_sweep", sweeping):
        yield found


@contextmanager
def blind() -> Iterator[None]:
    """A repair writes what the sweep found to be right, whatever has happened since."""
    original = verifier.repair
    with remembered() as found:

        def repair(drifted: Any, rules: Any, **more: Any) -> Work:
            mine = [one for one in drifted if (one.rule, one.target) in found]
            for one in mine:
                update = update_of(one.target, *found[one.rule, one.target], ())
                yield Apply((replace(update, guard=(target_exists(one.target),)),))
            return (yield from original([one for one in drifted if one not in mine], rules))

        with patch.object(verifier, "repair", repair):
            yield


@contextmanager
def blind_at_once() -> Iterator[None]:
    """The same, and there is no second look."""
    original = Verifier._look_again

    def looking(self: Any, found: Any, **more: Any) -> Any:
        if not self.repair:
            return (yield from original(self, found, **more))
        yield from self._repair_drift(found)
        return []

    with blind(), patch.object(Verifier, "_look_again", looking):
        yield


@contextmanager
def creating() -> Iterator[None]:
    """Mutant: a target deleted before the second look is still called wrong, and the repair creates it again."""
    original = verifier.repair
    with remembered() as found:

        def gone_too(differing: Any, rules: Any) -> Work:
            comparison = yield from compare.look_again(differing, rules)
            for one in differing:
                if one.part is None and (yield Read((one.target,))) == (None,):
                    comparison.different.append(one)
            return comparison

        def repair(drifted: Any, rules: Any, **more: Any) -> Work:
            for one in drifted:
                if (one.rule, one.target) in found and (yield Read((one.target,))) == (None,):
                    update = update_of(one.target, *found[one.rule, one.target], ())
                    yield Apply((replace(update, guard=ALWAYS),))
            return (yield from original(drifted, rules, **more))

        with patch.object(verifier, "look_again", gone_too), patch.object(verifier, "repair", repair):
            yield


def unguarded(request: Request) -> Work:
    """Mutant: a repair writes without guards."""
    if not isinstance(request, Apply):
        return (yield request)
    return (yield Apply(tuple(map(_bare, request.writes))))


def _bare(write: Any) -> Any:
    if isinstance(write, Transaction):
        return Transaction(tuple(_bare(action) for action in write.actions if not isinstance(action, Check)))
    return write if isinstance(write, Increment) else replace(write, guard=ALWAYS)


@contextmanager
def repair_unguarded() -> Iterator[None]:
    with wrapping(verifier, "do_tasks", unguarded)():
        yield


def one_look(found: Any, _rules: Any) -> Work:
    """The second look is the first one."""
    return Comparison(different=list(found))
    yield


@contextmanager
def orphans_deleted() -> Iterator[None]:
    """A repair deletes what has lost its source."""
    original = verifier.repair

    def repair(drifted: Any, rules: Any, **more: Any) -> Work:
        for one in drifted:
            if one.drift is Drift.ORPHAN and not one.repairable:
                yield Apply((Transaction((Delete(one.target, (target_exists(one.target),)),)),))
        return (yield from original(drifted, rules, **more))

    with patch.object(verifier, "repair", repair):
        yield


def one_sum(_table: Any, _rules: Any, found: Any) -> Work:
    """Mutant: a total that differs in one look is called wrong."""
    return found
    yield


def never_added_up(_table: Any, _rules: Any) -> Work:
    """Totals are what they are."""
    return {}
    yield


def nothing_mended(drifted: Any, _rules: Any, **_more: Any) -> Work:
    """A repair says that it is done."""
    return verifier.Repair(frozenset(), frozenset(), Counter())
    yield


# ---------------------------------------------------------------- redrive
class ByImages(consumer.Consumer):
    """Takes what records say of a source for the source."""

    def handle_event(self, event: Any, remaining_ms: Any) -> Any:
        changes, _ = changes_of(read_event(event, self.rules))
        images = {change.key: change.new for change in changes}
        report = run_work(
            answered(consumer.process(changes, self.rules, self._bounds(remaining_ms)), known(images)), self.world
        )
        self._count(report, len(changes))
        return {"batchItemFailures": [{}] if report.failed else []}


class Puts(consumer.Consumer):
    """Puts the items of records as they were."""

    def handle_event(self, event: Any, remaining_ms: Any) -> Any:
        changes: list[Change] = changes_of(read_event(event, self.rules))[0]
        for change in changes:
            if change.old is not None and change.new is not None:
                sets = tuple(
                    ((name,), value) for name, value in change.new.items() if name not in change.key.attributes()
                )
                run_work(_apply(Update(change.key, sets, (), (target_exists(change.key),))), self.world)
        return super().handle_event(event, remaining_ms)


def _apply(write: Update) -> Work:
    return (yield Apply((write,)))


@contextmanager
def removed_first() -> Iterator[None]:
    """Mutant: an entry is removed before it is processed."""
    original = Redriver._retry

    def put_through(self: Any, body: Any) -> str:
        for opened in self._current:
            opened.place.remove(opened.entry)
        return original(self, body)

    with patch.object(Redriver, "_retry", put_through):
        yield


def taken_away(self: Any, opened: Any, _reason: str, **_more: Any) -> None:
    """Mutant: an entry that failed again is removed."""
    opened.place.remove(opened.entry)


MUTANTS: Mapping[str, Mutation] = {
    "verify: blind repair": Mutation(blind, VERIFIES),
    "verify: no second look, and a blind repair": Mutation(blind_at_once, VERIFIES),
    "verify: repair creates items": Mutation(creating, VERIFIES),
    "verify: repair without guard": Mutation(repair_unguarded, GUARDED),
    "verify: no second look": Mutation(replacing(verifier, "look_again", one_look), VERIFIES),
    "verify: repair deletes orphans": Mutation(orphans_deleted, VERIFIES),
    "verify: nothing mended": Mutation(replacing(verifier, "repair", nothing_mended), VERIFIES),
    "verify: no cascade": Mutation(
        replacing(verifier, "cascade", all_at_once), among("damage", "cascade", "derive", "mixed")
    ),
    "verify: one round": Mutation(replacing(verifier, "cascade", one_round(verifier.cascade)), LEVELS),
    "verify: totals not added up": Mutation(
        replacing(verifier, "find_unbalanced_totals", never_added_up), among("damage", "booked", "booked-groups")
    ),
    "verify: totals added up once": Mutation(replacing(verifier, "confirm_unbalanced_totals", one_sum), BOOKED),
    "redrive: sources from images": Mutation(replacing(redriver, "Consumer", ByImages), REDRIVES),
    "redrive: puts the images of records": Mutation(replacing(redriver, "Consumer", Puts), REDRIVES),
    "redrive: removed before the effect": Mutation(removed_first, REDRIVES),
    "redrive: what failed again taken away": Mutation(replacing(Redriver, "_leave", taken_away), REDRIVES),
}
