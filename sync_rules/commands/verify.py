"""`sync-rules verify`: is every copy what its rule says? Looks twice before it calls anything drift; can repair.

Exit code 0 when there is no drift, or none left after --repair; 1 when there is; 2 for the user's mistake.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table as Grid

from sync_rules import aws
from sync_rules.attributes import AttributeValue, show_path
from sync_rules.compare import Drift
from sync_rules.dynamodb import DynamoStore
from sync_rules.entities import Table
from sync_rules.errors import UserError
from sync_rules.failure_log import FailureLog
from sync_rules.failures import plain_key, printable
from sync_rules.families import EffectRule, PartRule
from sync_rules.local_run import Files, wall_clock_ms
from sync_rules.model import ItemKey
from sync_rules.preflight import require
from sync_rules.problems import unknown
from sync_rules.rulefile import load_rules
from sync_rules.rules import Rules
from sync_rules.store import NobodyLooksAgain, World
from sync_rules.verify import GRACE_SECONDS, Finding, Tally, Verifier

SHOWN_PER_RULE_MAX: Final = 20
MENDABLE: Final = (Drift.WRONG, Drift.MISSING, Drift.EXTRA)


def verify(
    rules_file: Annotated[Path, typer.Argument(metavar="RULES", help="The rules file.")] = Path("rules.yaml"),
    *,
    rule: Annotated[list[str] | None, typer.Option(help="Only this rule; may be given again.")] = None,
    key: Annotated[
        str | None, typer.Option(metavar="JSON", help='Only the item with this key: \'{"PK": "USER#1", "SK": "..."}\'.')
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table of --key, where its attributes do not tell.")] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what drifted; never over a newer write.")] = False,
    grace_seconds: Annotated[
        float, typer.Option(min=0, help="How long a copy may differ before it is drift and not lag.")
    ] = GRACE_SECONDS,
    endpoint_url: Annotated[str | None, typer.Option(help="Another DynamoDB than AWS's, such as an emulator.")] = None,
    region: Annotated[str | None, typer.Option(help="The AWS region.")] = None,
    failures: Annotated[Path, typer.Option(help="Where to append what cannot be repaired.")] = Files.failures,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line per drift, then one with the totals.")] = False,
) -> int:
    """Compare every copy with its source; mend it with --repair."""
    rules = load_rules(rules_file)
    only = chosen(rules, rule or [])
    item = None if key is None else parse_key(key, table, rules)
    client = aws.dynamodb(endpoint_url, region)
    require(client, replace(rules, rules={name: rules.rules[name] for name in sorted(only)}), streams=False)
    store = DynamoStore(client, rules.tables)
    console = Console(stderr=True)
    with console.status("verifying", spinner="dots") as status:

        def progress(tally: Tally, doing: str) -> None:
            if console.is_terminal:
                status.update(f"{doing} · {tally.items} items")
            elif "looking again in" in doing:  # or a log would stay silent for minutes
                console.print(doing, highlight=False)

        verifier = Verifier(
            rules,
            World(store, NobodyLooksAgain(), FailureLog(failures, wall_clock_ms)),
            only,
            repair=repair,
            grace_seconds=grace_seconds,
            on_progress=progress,
        )
        findings = verifier.sweep() if item is None else verifier.one(item)
        show(findings, verifier.tally, only, as_json=as_json, whole=item is None, repair=repair)
        if item is None and not as_json:
            for line in unseen(rules, verifier.tally, only):
                print(line)
    return 1 if verifier.tally.left else 0


def chosen(rules: Rules, names: list[str]) -> frozenset[str]:
    """The rules to verify: all that keep something, or those named, each with its parts. The name of a part, as it is
    shown with what drifted, stands for its rule. Raises UserError for a name that is no rule's, and for a rule whose
    effects nobody can look at.
    """
    kept = {name: rule.title for name, rule in rules.rules.items() if not isinstance(rule, EffectRule)}
    asked: set[str] = set()
    for name in names:
        title = rules.rules[name].title if name in rules.rules else name
        if name in rules.rules and title not in kept.values():
            raise UserError(f"rule {name} keeps nothing in a table that could be verified")
        if title not in kept.values():
            raise UserError(unknown("rule", name, dict.fromkeys(kept.values())))
        asked.add(title)
    return frozenset(name for name, title in kept.items() if not names or title in asked)


def parse_key(text: str, table: str | None, rules: Rules) -> ItemKey:
    """The key a user gave as JSON, typed by the key schema of its table.

    Raises:
        UserError: when it is not JSON, or its attributes are those of no table, or of several.
    """
    try:
        given = json.loads(text, parse_float=Decimal)  # a float would lose digits
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given:
        raise UserError(f'{text!r} is not a key: expected a JSON object of key attributes, such as {{"book_id": "b1"}}')
    if table is not None and table not in rules.tables:
        raise UserError(unknown("table", table, rules.tables))
    candidates = [rules.tables[table]] if table is not None else list(rules.tables.values())
    fitting = [one for one in candidates if {attribute.name for attribute in one.key} == given.keys()]
    if len(fitting) != 1:
        keys = "; ".join(f"{one.name}: {', '.join(a.name for a in one.key)}" for one in candidates)
        cure = "say which with --table" if fitting else f"the keys are {keys}"
        raise UserError(f"a key with {', '.join(given)} is of {'several tables' if fitting else 'no table'}: {cure}")
    return _typed(given, fitting[0])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal) or not Decimal(str(value)).is_finite():
        raise TypeError
    return str(value)


AS_KEY: Final[Mapping[str, Callable[[Any], str | bytes]]] = {"S": _text, "N": _number, "B": bytes.fromhex}
EXPECTED: Final = {"S": "text", "N": "a number", "B": "hexadecimal digits"}


def _typed(given: dict[str, Any], table: Table) -> ItemKey:
    item: dict[str, AttributeValue] = {}
    for attribute in table.key:
        try:
            item[attribute.name] = {attribute.type: AS_KEY[attribute.type](given[attribute.name])}
        except (TypeError, ValueError, ArithmeticError) as error:
            raise UserError(
                f"{attribute.name} is of type {attribute.type}: expected {EXPECTED[attribute.type]}"
            ) from error
    key = table.key_of(item)
    assert key is not None
    return key


# ---------------------------------------------------------------- output
def show(
    findings: Iterable[Finding],
    tally: Tally,
    only: frozenset[str],
    *,
    as_json: bool,
    whole: bool = True,
    repair: bool = False,
) -> None:
    """Each drift as it is found (for people only the first of each rule), the totals at the end; for a single item,
    which is not the `whole`, those of the rules that had something to look at.
    """
    shown: Counter[str] = Counter()
    for finding in findings:
        rule = finding.difference.rule
        shown[rule] += 1
        if as_json:
            print(json.dumps(as_row(finding)), flush=True)
        elif shown[rule] <= SHOWN_PER_RULE_MAX:
            print(as_line(finding), flush=True)
    looked = only if whole else frozenset(name for name in only if tally.seen(name))
    if as_json:
        print(json.dumps({"items": tally.items, "rules": {name: totals(tally, name) for name in sorted(looked)}}))
        return
    for rule, count in sorted(shown.items()):
        if count > SHOWN_PER_RULE_MAX:
            print(f"and {count - SHOWN_PER_RULE_MAX} more of rule {rule}; --json prints them all")
    Console().print(grid(tally, looked))
    print(summary(tally, repair=repair))


def summary(tally: Tally, *, repair: bool) -> str:
    """The last word, for people: how much is left of what kind, and what to do about each."""
    checked = f"{tally.items} items checked, "
    if not tally.left:
        return f"{checked}no drift left" if tally.drift else f"{checked}no drift"
    kinds = {drift: sum(tally.unmended[rule, drift] for rule in tally.drift) for drift in Drift}
    advice = []
    if any(kinds[drift] for drift in MENDABLE):
        names = ", ".join(drift.value for drift in MENDABLE if kinds[drift])
        again = "could not be mended now: run it again, and see the failures file for why"
        advice.append(f"What is {names} {again}." if repair else f"--repair mends what is {names}.")
    if kinds[Drift.STUCK]:
        advice.append("What is stuck says why: nothing mends it but you.")
    if kinds[Drift.ORPHAN]:
        advice.append("An orphan has no source: bring that back, or remove the orphan.")
    counts = ", ".join(f"{count} {drift.value}" for drift, count in kinds.items() if count)
    return " ".join([f"{checked}{tally.left} drift left: {counts}.", *advice])


def unseen(rules: Rules, tally: Tally, only: frozenset[str]) -> Iterator[str]:
    """A line for each rule that had nothing to look at: no drift there proves nothing."""
    lines: dict[str, None] = {}
    for name in sorted(only):
        if not tally.seen(name):
            rule = rules.rules[name]
            what, entity = ("sources", rule.source) if isinstance(rule, PartRule) else ("targets", rule.target)
            where = f"no key in table {entity.table.physical_name} is of entity {entity.name}"
            lines[f"rule {rule.title} saw no {what}: {where}"] = None
    yield from lines


def totals(tally: Tally, rule: str) -> dict[str, int]:
    """The figures of one rule, in (rule, target) pairs."""
    columns = {"right": tally.right, "kept": tally.kept, "lag": tally.lag, "drift": tally.drift}
    return {name: counter[rule] for name, counter in {**columns, "repaired": tally.repaired}.items()}


def grid(tally: Tally, only: frozenset[str]) -> Grid:
    """The figures of all rules for people."""
    table = Grid(box=None, header_style="bold", pad_edge=False)
    table.add_column("rule", no_wrap=True)
    names = ("right", "kept", "lag", "drift", "repaired")
    for name in names:
        table.add_column(name, justify="right")
    for rule in sorted(only):
        figures = totals(tally, rule)
        style = "red" if figures["drift"] > figures["repaired"] else None
        table.add_row(rule, *(str(figures[name]) for name in names), style=style)
    return table


def as_row(finding: Finding) -> dict[str, Any]:
    """A drift for machines: keys and paths, never a value."""
    found = finding.difference
    return {
        "rule": found.rule,
        "drift": found.drift.value,
        "target": _key(found.target),
        "source": None if found.source is None else _key(found.source),
        "paths": [show_path(path) for path in found.paths],
        "reason": found.reason or None,
        "repaired": finding.repaired,
    }


def _key(key: ItemKey) -> dict[str, Any]:
    return {"table": key.table, "key": plain_key(key)}


def as_line(finding: Finding) -> str:
    """A drift for people."""
    found = finding.difference
    paths = "".join(f"{', ' if number else ' '}{show_path(path)}" for number, path in enumerate(found.paths))
    source = f" from {printable(found.source)}" if found.source else ""
    mended = " · repaired" if finding.repaired else ""
    why = f" ({found.reason})" if found.reason else ""
    return f"{found.drift.value}{why}: {printable(found.target)}{paths}{source} · rule {found.rule}{mended}"
