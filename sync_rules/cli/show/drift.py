"""A verify for people: each drift as a line, the figures as a table, and a last line that says what to do.

Invariant: keys and paths are shown, never a value.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table as Grid

from sync_rules.audit.compare import Drift
from sync_rules.audit.drift_report import collect_totals
from sync_rules.audit.ledger_balance import list_ledgers
from sync_rules.audit.verify_tally import DriftFinding, Tally
from sync_rules.cli.show.console import make_grid as columns
from sync_rules.cli.show.text import bracket_alterations
from sync_rules.model.values import show_path
from sync_rules.pipeline.books import describe_waits
from sync_rules.pipeline.failure_records import format_key
from sync_rules.rules.families import PartRule
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Share


def summarize(tally: Tally, *, repair: bool, kept: str = "the failures file") -> str:
    """Return the last line: what a repair did to values, the remaining drift by kind, and what to do about it. `kept`
    names the place with the reasons.
    """
    checked = f"{tally.items} items checked{bracket_alterations(tally.count_alterations(), 'the repair ')}, "
    if not tally.remaining_count:
        return f"{checked}no drift left" if tally.drift.total() else f"{checked}no drift"
    kinds = {drift: sum(tally.unmended[rule, drift] for rule in tally.drift) for drift in Drift}
    lost = sum(tally.hopeless[rule, Drift.ORPHAN] for rule in tally.drift)
    repairable = kinds | {Drift.ORPHAN: kinds[Drift.ORPHAN] - lost, Drift.STUCK: 0}
    advice = []
    if names := ", ".join(drift.value for drift, count in repairable.items() if count):
        failed = f"Not repaired: {names}. Run it again; {kept} has the reasons."
        advice.append(failed if repair else f"--repair corrects: {names}.")
    if kinds[Drift.STUCK]:
        advice.append("No repair corrects what is stuck: see its reason.")
    if lost:
        which = "orphans" if lost == kinds[Drift.ORPHAN] else f"{lost} of the orphans"
        advice.append(f"No repair removes {which}: restore the source, or delete the orphan.")
    counts = ", ".join(f"{count} {drift.value}" for drift, count in kinds.items() if count)
    return " ".join([f"{checked}{tally.remaining_count} drift left: {counts}.", *advice])


def describe_sample(share: Share, seed: int | None, rules: Rules, only: frozenset[str]) -> Iterator[str]:
    """Yield lines about the coverage of a sample; none for a full verify."""
    if share.is_sample:
        of = f"{len(share.numbers)} of {share.segments} segments"
        yield f"a sample: {share.percent:g} % of each table was checked ({of}; --sample {share.percent:g}:{seed})"
        if any(True for _ in list_ledgers(rules, only)):
            yield "totals of ledgers were not checked: they are sums of all entries, not of a sample"


def list_unseen_rules(rules: Rules, tally: Tally, only: frozenset[str], share: Share) -> Iterator[str]:
    """Yield a line for each rule without an item to check: zero drift then proves nothing."""
    lines: dict[str, None] = {}
    for name in sorted(only):
        rule = rules.rules[name]
        if not tally.count_targets(name):
            what, entity = ("sources", rule.source) if isinstance(rule, PartRule) else ("targets", rule.target)
            where = f"no key in table {entity.table.physical_name} matches entity {entity.name}"
            lines[f"rule {rule.title} found no {what}: {'none is in the sample' if share.is_sample else where}"] = None
    yield from lines


def list_waiting_rules(rules: Rules, tally: Tally, options: str) -> Iterator[str]:
    """Yield a line about the rules whose numbers were not compared, because they wait for a backfill."""
    yield from describe_waits((rules.rules[name].title for name, count in tally.waiting.items() if count), options)


def tabulate(tally: Tally, only: frozenset[str]) -> Grid:
    names = ("right", "kept", "orphaned", "lag", "drift", "repaired")
    table = columns(["rule"], names)
    for rule in sorted(only):
        figures = collect_totals(tally, rule)
        style = "red" if figures["drift"] > figures["repaired"] else None
        table.add_row(rule, *(str(figures[name]) for name in names), style=style)
    return table


def format_finding(finding: DriftFinding) -> str:
    found = finding.difference
    paths = "".join(f"{', ' if number else ' '}{show_path(path)}" for number, path in enumerate(found.paths))
    source = f" from {format_key(found.source)}" if found.source else ""
    state = " · repaired" if finding.repaired else " · right by now" if finding.came_right else ""
    why = f" ({found.reason})" if found.reason else ""
    return f"{found.drift.value}{why}: {format_key(found.target)}{paths}{source} · rule {found.rule}{state}"
