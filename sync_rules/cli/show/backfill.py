"""The display of a backfill: a moving line on a terminal, a line every few seconds in a log, JSON lines for machines.

Invariant: it shows counts, names of rules and error codes, never a key or a value. Progress goes to standard error.
JSON, and the table and last lines for people, go to standard output.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from rich.console import Console
from rich.table import Table as Grid

from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.console import make_grid as columns
from sync_rules.cli.show.display import Display, open_display
from sync_rules.cli.show.text import bracket_alterations
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.model.items import REFUSALS, Alteration, Outcome

GROUPS: Final = {
    "copied": (Outcome.COPIED,),
    "right": (Outcome.RIGHT,),
    "kept": (Outcome.KEPT,),
    "waiting": (Outcome.WAITING,),
    "refused": tuple(REFUSALS),
    "parked": (Outcome.PARKED,),
    "failed": (Outcome.FAILED,),
}
MINUTE: Final = 60

Estimate = Callable[[frozenset[str]], int]  # the number of items to scan for these rules


def count_outcomes(totals: Totals, rules: frozenset[str] | None = None) -> dict[str, int]:
    """Return the count of outcomes by group, over all rules or some."""
    return {name: totals.count(*outcomes, rules=rules) for name, outcomes in GROUPS.items()}


def count_results(totals: Totals, rules: frozenset[str] | None = None) -> dict[str, Any]:
    """Return the counts of outcomes and of alterations, over all rules or some."""
    made = {each.value: count for each, count in totals.count_alterations(rules).items()}
    return {**count_outcomes(totals, rules), "alterations": made}


class Meter:
    """The figures of a run. `estimate` uses DynamoDB's own item count, which may be six hours old."""

    def __init__(self, estimate: Estimate, clock: Callable[[], float] = time.monotonic) -> None:
        self._estimate = estimate
        self._clock = clock
        self._began = clock()
        self._first: Totals | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._began

    def begin(self, totals: Totals, seconds_ago: float = 0.0) -> None:
        """Set the starting point of a resumed run: its totals so far, and how long ago it was resumed. Only the first
        call counts.
        """
        if self._first is None:
            self._first, self._began = totals, self._began - seconds_ago

    def figures(self, run: BackfillRun, totals: Totals) -> dict[str, Any]:
        """Return the figures to show. `round_items` counts the items of this round; `of_items` estimates all items of a
        round of this step. `of_items` and `seconds_left` are None if unknown.
        """
        first = self._first or Totals()
        expected = [self._estimate(step.names) for step in run.steps[run.position.step :]]
        round_items = totals.items - run.before.items
        of_items = (expected[0] or None) if expected and round_items <= expected[0] else None  # else it has grown
        seconds = max(self.seconds, 1e-3)
        done = totals.items - first.items
        left = None if of_items is None or done <= 0 else round((sum(expected) - round_items) / (done / seconds))
        return {
            "step": min(run.position.step + 1, len(run.steps)),
            "steps": len(run.steps),
            "round": run.position.round + 1,
            "items": totals.items,
            "round_items": round_items,
            "of_items": of_items,
            **count_results(totals),
            "reads": round(totals.reads, 1),
            "writes": round(totals.writes),
            "items_before": first.items,
            "writes_before": round(first.writes),
            "writes_per_second": round((totals.writes - first.writes) / seconds, 1),
            "seconds": round(seconds, 1),
            "seconds_left": left,
        }


def open_backfill_display(
    console: Console, *, as_json: bool, clock: Callable[[], float] = time.monotonic
) -> AbstractContextManager[Display[dict[str, Any]]]:
    """Open the display of a backfill: JSON lines on request, a moving line on a terminal, plain lines elsewhere."""
    row = (lambda now: print(json.dumps({"progress": now}), flush=True)) if as_json else None
    return open_display(console, format_progress, row, clock)


def conclude(run: BackfillRun, meter: Meter, *, done: bool, as_json: bool, advice: tuple[str, str]) -> None:
    """Show the result: figures by rule, segments left, a last line. `advice` says how to continue an incomplete run,
    and where the failures are.
    """
    totals = run.totals
    now = meter.figures(run, totals)
    names = frozenset(name for step in run.steps for name in step.names)
    if as_json:
        rules = {name: count_results(totals, frozenset([name])) for name in sorted(names)}
        left = [{"supply": supply, "reason": reason} for supply, reason in run.left.items()]
        print(json.dumps({"summary": {**now, "done": done, "rules": rules, "left": left}}), flush=True)
        return
    make_console().print(make_rule_grid(totals, names))
    for supply, reason in run.left.items():
        print(f"not finished: {supply}: {reason}")
    print(format_summary(now, done=done))
    if not done:
        print(advice[0])
    elif not totals.asked:
        print("No item matched: no rule applies to the scanned items, or --where matched none of them.")
    if now["parked"] or now["failed"]:
        print(advice[1])


def format_progress(now: dict[str, Any]) -> str:
    """Return the step, the round (from the second on), and figures, as a line."""
    of_items = "" if now["of_items"] is None else f" of about {now['of_items']:,}"
    parts = [
        f"step {now['step']} of {now['steps']}" + (f", round {now['round']}" if now["round"] > 1 else ""),
        f"{now['round_items']:,}{of_items} items",
        f"{now['copied']:,} written",
        f"{now['right']:,} right",
        *(f"{now[name]:,} {name}" for name in ("refused", "parked", "failed") if now[name]),
        f"{now['writes_per_second']:,.0f} write units/s",
    ]
    if now["seconds_left"] is not None:
        minutes, seconds = divmod(now["seconds_left"], MINUTE)
        parts.append(f"{minutes}:{seconds:02} left")
    return " · ".join(parts)


def format_summary(now: dict[str, Any], *, done: bool) -> str:
    return (
        f"{'Done' if done else 'Not done'}: {now['items']:,} items checked in {_format_steps(now['steps'])}, "
        f"{now['copied']:,} copies written{bracket_alterations(now['alterations'])}, "
        f"{now['right']:,} already right, {now['kept']:,} kept, "
        f"{now['refused']:,} refused, {now['parked']:,} parked, {now['failed']:,} failed. "
        f"{now['writes']:,} write units, {now['reads']:,.0f} read units, {now['seconds']:,.1f} s"
        f"{_describe_earlier_work(now)}."
    )


def _format_steps(steps: int) -> str:
    """The number of steps, which explains why an item may count more than once."""
    return "one step" if steps == 1 else f"{steps} steps, each with its own tables"


def _describe_earlier_work(now: dict[str, Any]) -> str:
    """The work of earlier runs, which the counts include and the seconds do not."""
    if not now["items_before"]:
        return ""
    return f" in this run; {now['items_before']:,} items and {now['writes_before']:,} write units are from earlier runs"


def make_rule_grid(totals: Totals, names: frozenset[str]) -> Grid:
    shown = [name for name in GROUPS if name != "waiting" or totals.count(Outcome.WAITING)]
    some = [each for each, count in totals.count_alterations().items() if count and each is not Alteration.SET]
    table = columns(["rule"], [*shown, *(each.value for each in some)])
    for rule in sorted(names):
        figures = count_outcomes(totals, frozenset([rule]))
        made = totals.count_alterations(frozenset([rule]))
        cells = [f"{made[each]:,}" for each in some]
        style = "red" if figures["parked"] or figures["failed"] else None
        table.add_row(rule, *(f"{figures[name]:,}" for name in shown), *cells, style=style)
    return table
