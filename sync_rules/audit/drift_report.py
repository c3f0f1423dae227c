"""The report of a verify: a header, a row for each drift, the totals. Written as JSON lines, and read for a repair. A
list from `--format json` is read too.

Invariant: a row gives rule, keys, element and paths. It holds no value of an attribute, so a repair reads the values
itself. Rows with equal text are one row. A report is read to its end before use. A report of other rules or tables, or
a truncated report, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sync_rules.audit.compare import Difference, Drift
from sync_rules.audit.ledger_balance import find_slot
from sync_rules.audit.verify_tally import BY_RULE, DriftFinding, Tally
from sync_rules.model import json_bytes
from sync_rules.model.errors import RecordError, UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.values import parse_path, show_path
from sync_rules.pipeline.failure_records import format_time, make_plain_key, restore_key
from sync_rules.pipeline.messages import PartMessage
from sync_rules.pipeline.tasks import find_part
from sync_rules.rules.families import Part, PartRule
from sync_rules.rules.fingerprints import compute_rule_fingerprints
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Share

NAME: Final = "sync-rules verify"
VERSION: Final = 1
CURE: Final = "Run verify --format jsonl again"
BRACKETS: Final = (b"[", b"]")
LEFT_ALONE: Final = ("repaired", "came_right")  # rows with nothing left to do


# ---------------------------------------------------------------- written
def make_header(rules: Rules, only: Collection[str], at: datetime, share: Share) -> dict[str, Any]:
    """Make the first line: the rules and tables of the report. `sampled` is a percentage, null for everything."""
    about = [rule for name, rule in rules.rules.items() if name in only]
    titles = {rule.title for rule in about}
    tables = {side.table.name: side.table.physical_name for rule in about for side in (rule.source, rule.target)}
    return {
        "report": NAME,
        "version": VERSION,
        "rules": {title: digest for title, digest in compute_rule_fingerprints(rules).items() if title in titles},
        "tables": tables,
        "at": format_time(at),
        "sampled": share.percent if share.is_sample else None,
    }


def make_row(finding: DriftFinding) -> dict[str, Any]:
    """Make the row of a drift, with all that another check needs. `element` is null if the rule keeps no parts."""
    found = finding.difference
    return {
        "rule": found.rule,
        "drift": found.drift.value,
        "target": _format_key(found.target),
        "source": None if found.source is None else _format_key(found.source),
        "element": None if found.part is None else found.part.rule.label(found.part),
        "paths": [show_path(path) for path in found.paths],
        "reason": found.reason or None,
        "repaired": finding.repaired,
        "came_right": finding.came_right,
    }


def make_footer(tally: Tally, names: Iterable[str], at: datetime) -> dict[str, Any]:
    """Make the last line: the totals. `waiting` lists only rules whose numbers were not compared, because they wait for
    a backfill. `alterations` lists only rules whose values were repaired.
    """
    names = sorted(names)
    waiting = {name: tally.waiting[name] for name in names if tally.waiting[name]}
    altered = {
        name: {each.value: n for each, n in found.items()} for name in names if (found := tally.count_alterations(name))
    }
    return {
        "items": tally.items,
        "rules": {name: collect_totals(tally, name) for name in names},
        **({"waiting": waiting} if waiting else {}),
        **({"alterations": altered} if altered else {}),
        "at": format_time(at),
    }


def report(
    findings: Iterable[DriftFinding],
    tally: Tally,
    head: Mapping[str, Any],
    shown: Callable[[], Iterable[str]],
    clock: Callable[[], datetime],
) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of a report as soon as they are known. The header comes with the first finding, so that an
    earlier error leaves no report. `shown` returns the rules whose totals the last line holds.
    """
    begun = False
    for finding in findings:
        if not begun:
            yield head
        begun = True
        yield make_row(finding)
    if not begun:
        yield head
    yield make_footer(tally, shown(), clock())


def collect_totals(tally: Tally, rule: str) -> dict[str, int]:
    """Return the figures of one rule, in (rule, target) pairs. `orphaned` pairs are also counted in `kept`."""
    return {name: getattr(tally, name)[rule] for name in BY_RULE}


def _format_key(key: ItemKey) -> dict[str, Any]:
    return {"table": key.table, "key": make_plain_key(key)}


# ---------------------------------------------------------------- read
@dataclass(frozen=True)
class DriftReport:
    """A report of these rules that was read to its end. `names` are its rules, `at` is the time of its end."""

    path: Path
    rules: Rules
    names: frozenset[str]
    at: datetime

    def read_differences(self, names: frozenset[str]) -> Iterator[Difference]:
        """Read the unrepaired differences of some rules, line by line: a report may be larger than memory."""
        for number, body in _read_lines(self.path):
            if "drift" in body and not any(body.get(word) for word in LEFT_ALONE) and body.get("rule") in names:
                yield _parse_difference(body, f"{self.path}:{number}", self.rules)

    def compute_age_seconds(self, now: datetime) -> float:
        """Return the seconds since the report ended, at least 0."""
        return max(0.0, (now - self.at).total_seconds())


def open_report(path: Path, rules: Rules) -> DriftReport:
    """Read and check a report from end to end.

    Raises:
        UserError: with the line, if it is not a report, has other rules or tables, or was cut off.
    """
    titles: Mapping[str, Any] = {}
    at: datetime | None = None
    last = 0
    for number, body in _read_lines(path):
        where, last = f"{path}:{number}", number
        if number == 1:
            titles = _check_header(body, where, rules)
        elif at is not None:
            raise UserError(
                f"{where}: expected nothing after the totals, found another line. Give one report at a time"
            )
        elif "items" in body:
            at = _parse_time(body.get("at"), where)
        else:
            one = _parse_difference(body, where, rules)
            if rules.rules[one.rule].title not in titles:
                raise UserError(f"{where}: rule {one.rule} is not among the rules of the first line")
    if at is None:
        found = "an empty file" if not last else f"the file ends at line {last}"
        raise UserError(f"{path}: expected a report that ends with its totals, found {found}. {CURE}, to its end")
    names = frozenset(name for name, rule in rules.rules.items() if rule.title in titles)
    return DriftReport(path, rules, names, at)


def parse_finding(body: Mapping[str, Any], where: str, rules: Rules) -> DriftFinding:
    """Parse a row into a finding. Raises UserError for a row of other rules."""
    found = _parse_difference(body, where, rules)
    return DriftFinding(found, repaired=bool(body.get("repaired")), came_right=bool(body.get("came_right")))


def _read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each line of a file, from 1, as a JSON object. A list has one on each line too, between its brackets."""
    try:
        with path.open("rb") as file:
            rows = (line.rstrip(b",\r\n") for line in file)
            for number, line in enumerate((row for row in rows if row not in BRACKETS), start=1):
                try:
                    body = json_bytes.parse_json(line)
                except ValueError:
                    body = None
                if not isinstance(body, dict):
                    expected = f"a report of {NAME} --format jsonl" if number == 1 else "a line of a report"
                    raise UserError(f"{path}:{number}: expected {expected}, found something else. {CURE}")
                yield number, body
    except OSError as error:
        raise UserError(f"{path}: expected a report to read, found {error.strerror}") from error


def _check_header(body: Mapping[str, Any], where: str, rules: Rules) -> Mapping[str, Any]:
    """The fingerprints of the rules of a report. Raises UserError if the rules or the tables are others."""
    titles, tables = body.get("rules"), body.get("tables")
    if body.get("report") != NAME or not isinstance(titles, dict) or not isinstance(tables, dict):
        raise UserError(f"{where}: expected a report of {NAME} --format jsonl, found something else")
    if body.get("version") != VERSION:
        raise UserError(f"{where}: expected a report of version {VERSION}, found another. {CURE}")
    known = compute_rule_fingerprints(rules)
    for title, digest in titles.items():
        if known.get(title) != digest:
            what = "no rule of that name" if title not in known else "another one"
            raise UserError(f"{where}: the report is of a rule {title!r}, and the rules file has {what}. {CURE}")
    for name, physical in tables.items():
        table = rules.tables.get(name)
        if table is None or table.physical_name != physical:
            found = "no such table" if table is None else f"{table.physical_name!r}"
            raise UserError(f"{where}: the report is of {name} = {physical!r}, the rules file has {found}. {CURE}")
    return titles


def _parse_time(text: object, where: str) -> datetime:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise UserError(f"{where}: expected a time in 'at', found something else. {CURE}") from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _parse_difference(body: Mapping[str, Any], where: str, rules: Rules) -> Difference:
    """The difference of a row. It has no digests, so it cannot be compared with another look."""
    try:
        rule, drift = rules.rules[body["rule"]], Drift(body["drift"])
        target, source = (
            _parse_key(body["target"], rules),
            None if body["source"] is None else _parse_key(body["source"], rules),
        )
        paths = tuple(map(_parse_path, body["paths"]))
        part = _parse_part(rule, target, source, body["element"], rules)
    except (KeyError, TypeError, ValueError, AttributeError, RecordError) as error:
        raise UserError(f"{where}: expected a drift of one of the rules, found something else. {CURE}") from error
    return Difference(rule.name, drift, target, source, paths, "", "", body.get("reason") or "", part)


def _parse_path(text: str) -> tuple[str, ...]:
    """A path, to be shown again; one that cannot be parsed is shown as it is."""
    try:
        return parse_path(text)
    except UserError:
        return (text,)


def _parse_key(body: Mapping[str, Any], rules: Rules) -> ItemKey:
    return restore_key(body["table"], body["key"], rules.tables)


def _parse_part(rule: Rule, target: ItemKey, source: ItemKey | None, element: str | None, rules: Rules) -> Part | None:
    """The part of a row, if its rule keeps parts. Raises ValueError for one that the rule does not keep."""
    if not isinstance(rule, PartRule):
        if rules.entity_of(target) is not rule.target or element is not None:
            raise ValueError
        return None
    if not isinstance(element, str):
        raise TypeError
    part = Part(rule, target, source, element)
    total = Difference(rule.name, Drift.WRONG, target, source, (), "", "", part=part)
    if find_slot(total) is None and find_part(PartMessage(rule.name, target, source, element), rules) is None:
        raise ValueError
    return part
