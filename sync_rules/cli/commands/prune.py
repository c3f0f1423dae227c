"""`sync-rules prune`: what rules that were removed or renamed have left in the tables; removes it with --apply.

Exit code 0 when nothing is left, 1 when something is (found without --apply, or changed by somebody meanwhile), 2 for
the user's mistake, 130 when it was interrupted: then the last word says how many were removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from sync_rules.adapters import aws
from sync_rules.adapters.budget import Budget, within_budget
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.failure_log import FailureLog
from sync_rules.adapters.preflight import require_answer
from sync_rules.audit.prune import Leftover, Past, prune_page, remove
from sync_rules.cli.commands.run import stop_signals
from sync_rules.jobs.consume.run import Files, wall_clock_ms
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import unknown
from sync_rules.model.values import Item, show_path
from sync_rules.pipeline.failure_records import printable
from sync_rules.pipeline.requests import NobodyLooksAgain, World, run_work
from sync_rules.rules.ruleset import Rules

SHOWN_PER_RULE_MAX: Final = 20


def prune(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="The rules file as it was.")],
    rules_file: Annotated[Path, typer.Argument(metavar="RULES", help="The rules file of today.")] = Path("rules.yaml"),
    *,
    rule: Annotated[
        list[str] | None, typer.Option(help="Only what this rule of BEFORE left; may be given again.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Remove it. Without, it is only shown.")] = False,
    endpoint_url: Annotated[str | None, typer.Option(help="Another DynamoDB than AWS's, such as an emulator.")] = None,
    region: Annotated[str | None, typer.Option(help="The AWS region.")] = None,
) -> int:
    """Find what removed rules left; remove it with --apply. A renamed rule counts as removed."""
    old, now = _before(before, rule or ()), load_rules(rules_file)
    past = Past(old, now, frozenset(rule or ()))
    client = aws.dynamodb(endpoint_url, region)
    for table in past.tables[:1]:
        require_answer(client, table)
    world = World(
        within_budget(DynamoStore(client, old.tables), old.tables, Budget({**old.tables, **now.tables})),
        NobodyLooksAgain(),
        FailureLog(Files.failures, wall_clock_ms),
    )
    console = Console(stderr=True)
    found: Counter[str] = Counter()
    items = left = 0
    with console.status("looking", spinner="dots") as status, stop_signals() as stopping:
        for table in past.tables:
            cursor: Item | None = None
            while True:
                page = run_work(prune_page(table, past, cursor), world)
                items += page.items
                for one in page.leftovers:
                    found[one.rule] += 1
                    if found[one.rule] <= SHOWN_PER_RULE_MAX:
                        print(as_line(one), flush=True)
                remaining = run_work(remove(page.leftovers), world) if apply else page.leftovers
                left += len(remaining)
                status.update(f"looking through {table.name} · {items} items · {found.total()} leftovers")
                if stopping():
                    removed = f"{found.total() - left} leftovers were removed" if apply else "nothing was removed"
                    raise KeyboardInterrupt(f"interrupted: {removed}. Run it again for the rest")
                cursor = page.cursor
                if cursor is None:
                    break
    for name, count in sorted(found.items()):
        if count > SHOWN_PER_RULE_MAX:
            print(f"and {count - SHOWN_PER_RULE_MAX} more of rule {name}")
    print(summary(items, found.total(), left, applied=apply))
    return 1 if left else 0


def _before(file: Path, names: Iterable[str]) -> Rules:
    """The rules as they were. Raises UserError when there is no such file, or one of the names is no rule of it."""
    if not file.exists():
        raise UserError(
            f"{file}: no such file. Expected the rules file as it was, from a backup or such as "
            "`git show COMMIT:rules.yaml` prints it"
        )
    rules = load_rules(file)
    titles = dict.fromkeys(one.title for one in rules.rules.values())
    for name in names:
        if name not in titles:
            raise UserError(unknown("rule", name, titles, str(file)))
    return rules


def as_line(one: Leftover) -> str:
    """A leftover for people: key and paths, never a value."""
    what = ", ".join(show_path(path) for path in one.paths) or "the whole item"
    return f"{printable(one.key)} {what} · rule {one.rule}"


def summary(items: int, found: int, left: int, *, applied: bool) -> str:
    """The last word."""
    if not found:
        return f"{items} items looked at, nothing left behind"
    if not applied:
        return f"{items} items looked at, {found} leftovers: --apply removes them"
    if left:
        return f"{found - left} leftovers removed, {left} changed meanwhile or could not be written: run it again"
    return f"{found} leftovers removed"
