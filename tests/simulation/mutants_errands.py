"""Mutants of verify and its repairs, and of redrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.audit import compare, verifier
from sync_rules.audit.compare import Drift
from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.redrive import redriver
from sync_rules.model.writes import (
    Condition,
    Delete,
    Test,
    Transaction,
    expect_existence,
    find_differences,
    make_update,
)
from sync_rules.pipeline import consumer
from sync_rules.pipeline.records import read_event, split_changes
from sync_rules.pipeline.requests import Apply, Read, run_work
from tests.simulation.breaking import Mutation, Work, answered, known, replacing
from tests.simulation.mutants_backfill import all_at_once, one_round
from tests.simulation.worlds import among, small

ALWAYS = (Condition(Test.ABSENT, ("never there",)),)  # a guard that always holds
VERIFIES = small("people", "copy", "copy-derive")
REDRIVES = small("redrive", "copy")


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
            found.setdefault((rule.name, target.key), (target.image, find_differences(target.image, desired)))

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
                update = make_update(one.target, *found[one.rule, one.target], ())
                yield Apply((replace(update, guard=(expect_existence(one.target),)),))
            return (yield from original([one for one in drifted if one not in mine], rules))

        with patch.object(verifier, "repair", repair):
            yield


@contextmanager
def creating() -> Iterator[None]:
    """Mutant: a target deleted before the second look is still called wrong, and the repair creates it again."""
    original = verifier.repair
    with remembered() as found:

        def gone_too(differing: Any, rules: Any) -> Work:
            comparison = yield from compare.recheck(differing, rules)
            for one in differing:
                if one.part is None and (yield Read((one.target,))) == (None,):
                    comparison.different.append(one)
            return comparison

        def repair(drifted: Any, rules: Any, **more: Any) -> Work:
            for one in drifted:
                if (one.rule, one.target) in found and (yield Read((one.target,))) == (None,):
                    update = make_update(one.target, *found[one.rule, one.target], ())
                    yield Apply((replace(update, guard=ALWAYS),))
            return (yield from original(drifted, rules, **more))

        with patch.object(verifier, "recheck", gone_too), patch.object(verifier, "repair", repair):
            yield


@contextmanager
def orphans_deleted() -> Iterator[None]:
    """A repair deletes what has lost its source."""
    original = verifier.repair

    def repair(drifted: Any, rules: Any, **more: Any) -> Work:
        for one in drifted:
            if one.drift is Drift.ORPHAN and not one.repairable:
                yield Apply((Transaction((Delete(one.target, (expect_existence(one.target),)),)),))
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
        changes, _ = split_changes(read_event(event, self.rules))
        images = {change.key: change.new for change in changes}
        report = run_work(
            answered(consumer.process_changes(changes, self.rules, self._bounds(remaining_ms)), known(images)),
            self.world,
        )
        self._count(report, len(changes))
        return {"batchItemFailures": [{}] if report.failed else []}


MUTANTS: Mapping[str, Mutation] = {
    "verify: blind repair": Mutation(blind, VERIFIES),
    "verify: repair creates items": Mutation(creating, VERIFIES),
    "verify: repair deletes orphans": Mutation(orphans_deleted, VERIFIES),
    "verify: nothing mended": Mutation(replacing(verifier, "repair", nothing_mended), VERIFIES),
    "verify: no cascade": Mutation(replacing(verifier, "cascade", all_at_once), among("damage", "cascade")),
    "verify: one round": Mutation(
        replacing(verifier, "cascade", one_round(verifier.cascade)), among("damage", "path-keep")
    ),
    "verify: totals not added up": Mutation(
        replacing(verifier, "find_unbalanced_totals", never_added_up), small("damage", "count")
    ),
    "verify: totals added up once": Mutation(
        replacing(verifier, "confirm_unbalanced_totals", one_sum), among("people", "booked-groups")
    ),
    "redrive: sources from images": Mutation(replacing(redriver, "Consumer", ByImages), among("redrive", "base")),
}
