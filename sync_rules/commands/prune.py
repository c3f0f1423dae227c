"""`sync-rules prune`: what rules that were removed or renamed have left in the tables; removes it with --apply.

Exit code 0 when nothing is left, 1 when something is (found without --apply, or changed by somebody meanwhile), 2 for
the user's mistake.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from sync_rules import aws
from sync_rules.attributes import Item, show_path
from sync_rules.dynamodb import DynamoStore
from sync_rules.errors import UserError
from sync_rules.failure_log import FailureLog
from sync_rules.failures import printable
from sync_rules.local_run import Files, wall_clock_ms
from sync_rules.problems import unknown
from sync_rules.prune import Leftover, Past, prune_page, remove
from sync_rules.rulefile import load_rules
from sync_rules.store import NobodyLooksAgain, World, drive

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
    """Find what removed or renamed rules left in the tables, and remove it with --apply."""
    old, now = load_rules(before), load_rules(rules_file)
    titles = dict.fromkeys(one.title for one in old.rules.values())
    for name in rule or ():
        if name not in titles:
            raise UserError(unknown("rule", name, titles, str(before)))
    past = Past(old, now, frozenset(rule or ()))
    world = World(
        DynamoStore(aws.dynamodb(endpoint_url, region), old.tables),
        NobodyLooksAgain(),
        FailureLog(Files.failures, wall_clock_ms),
    )
    console = Console(stderr=True)
    found: Counter[str] = Counter()
    items = left = 0
    with console.status("looking", spinner="dots") as status:
        for table in past.tables:
            cursor: Item | None = None
            while True:
                page = drive(prune_page(table, past, cursor), world)
                items += page.items
                for one in page.leftovers:
                    found[one.rule] += 1
                    if found[one.rule] <= SHOWN_PER_RULE_MAX:
                        print(as_line(one), flush=True)
                remaining = drive(remove(page.leftovers), world) if apply else page.leftovers
                left += len(remaining)
                status.update(f"looking through {table.name} · {items} items · {found.total()} leftovers")
                cursor = page.cursor
                if cursor is None:
                    break
    for name, count in sorted(found.items()):
        if count > SHOWN_PER_RULE_MAX:
            print(f"and {count - SHOWN_PER_RULE_MAX} more of rule {name}")
    print(summary(items, found.total(), left, applied=apply))
    return 1 if left else 0


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
