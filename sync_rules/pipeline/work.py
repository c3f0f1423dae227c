"""The stages of the pipeline, in their order. The consumer, backfill, redrive, verify and `write` all run them.

1. Pull: single targets. They come first, because their images came with the records.
2. Push: the targets that an item lists.
3. Parts: elements, mirrors and entries, which read their items themselves.
4. Trace: a failure belongs to the items whose records asked for the work.
5. Unlisted: a failure record of each item that an index does not list.
6. Effects: calls come after all writes, so that no copy waits for them.

Invariant: `STAGES` is the only place that orders the stages. A caller may do a stage in its own way, and a stage that
it does not name runs as everywhere: a new stage is one more line of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from sync_rules.model.limits import Bounds
from sync_rules.pipeline.effects import run_effect
from sync_rules.pipeline.fanout import pull, push
from sync_rules.pipeline.parts import reconcile_parts
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Work
from sync_rules.pipeline.tasks import Tasks
from sync_rules.rules.ruleset import Rules

Stage = Callable[[Tasks, Rules, Bounds, Report], Work[None]]  # does its tasks, and adds their outcomes to the report


def _pull(tasks: Tasks, _rules: Rules, bounds: Bounds, report: Report) -> Work[None]:
    if tasks.pulls:
        report.add((yield from pull(tasks.pulls, bounds)))


def _push(tasks: Tasks, rules: Rules, bounds: Bounds, report: Report) -> Work[None]:
    if tasks.pushes:
        report.add((yield from push(tasks.pushes, rules, bounds)))


def _reconcile_parts(tasks: Tasks, _rules: Rules, bounds: Bounds, report: Report) -> Work[None]:
    if tasks.parts:
        report.add((yield from reconcile_parts(tasks.parts, bounds)))


def _trace(tasks: Tasks, _rules: Rules, _bounds: Bounds, report: Report) -> Work[None]:
    report.trace_failures(tasks.origins)
    yield from ()


def _park_unlisted_items(tasks: Tasks, _rules: Rules, _bounds: Bounds, report: Report) -> Work[None]:
    yield from report.park_unlisted_items(tasks.unlisted)


def _run_effects(tasks: Tasks, _rules: Rules, bounds: Bounds, report: Report) -> Work[None]:
    for key, call in tasks.effects:
        yield from run_effect(key, call, bounds, report)


STAGES: Final[dict[str, Stage]] = {
    "pull": _pull,
    "push": _push,
    "parts": _reconcile_parts,
    "trace": _trace,
    "unlisted": _park_unlisted_items,
    "effects": _run_effects,
}


def do_tasks(
    tasks: Tasks, rules: Rules, bounds: Bounds, instead: Mapping[str, Stage] = MappingProxyType({})
) -> Work[Report]:
    """Do all tasks, stage by stage. `instead`: by name, the stages that the caller does in its own way."""
    report = Report()
    for name, stage in STAGES.items():
        yield from instead.get(name, stage)(tasks, rules, bounds, report)
    report.since_ms.update(tasks.since_ms)
    return report
