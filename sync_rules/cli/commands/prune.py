"""`sync-rules prune`: find copies that deleted or renamed rules left in the tables; remove them with --apply."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.budget import Budget
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.meter import limit_store
from sync_rules.adapters.preflight import require_answer
from sync_rules.adapters.state import read_applied_fingerprints, read_applied_time, save_applied_fingerprints
from sync_rules.audit.leftovers import FormerRules, Leftover, PrunePage, prune_page, remove
from sync_rules.cli import options as opt
from sync_rules.cli.saved_state import open_state, read_state
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.text import FirstPerRule, format_count
from sync_rules.cli.signals import stop_signals
from sync_rules.cli.verb import Verb
from sync_rules.jobs.failure_log import FailureLog
from sync_rules.jobs.local_files import Files, read_wall_clock_ms
from sync_rules.language.load import load_rules
from sync_rules.model.entities import Table
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.values import Item, show_path
from sync_rules.pipeline.failure_records import format_key
from sync_rules.pipeline.requests import NULL_PORTS, World, run_work
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

VERB: Final = Verb()


def prune(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="The rules file before the change.")],
    rules_file: Annotated[Path, typer.Argument(metavar="RULES", help="The current rules file.")] = opt.RULES_FILE,
    *,
    rule: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only what this rule of BEFORE left. Repeatable.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Remove what is found. Default: only show it.")] = False,
    state: opt.State = opt.STATE,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
) -> int:
    """Find what deleted rules left in the tables; --apply removes it. A renamed rule counts as deleted."""
    old, now = _load_former_rules(before, rule or ()), load_rules(rules_file)
    past = FormerRules(old, now, frozenset(rule or ()))
    client = aws.dynamodb(endpoint_url, region)
    for table in past.tables[:1]:
        require_answer(client, table)
    world = World(
        limit_store(DynamoStore(client, old.tables), old.tables, Budget({**old.tables, **now.tables})),
        NULL_PORTS,
        FailureLog(Files.failures, read_wall_clock_ms),
    )
    console = make_console(stderr=True)
    found = FirstPerRule()
    items = left = 0
    with console.status("scanning", spinner="dots") as status, stop_signals() as stopping:
        for table, page in _scan_pages(past, world, before):
            items += page.items
            for one in page.leftovers:
                found.add(one.rule, format_leftover(one))
            remaining = run_work(remove(page.leftovers), world) if apply else page.leftovers
            left += len(remaining)
            count = found.counts.total()
            status.update(f"scanning {table.name} · {items} items · {count} leftovers")
            if stopping():
                removed = f"{count - left} leftovers were removed" if apply else "nothing was removed"
                raise KeyboardInterrupt(f"interrupted: {removed}. Run it again for the rest")
    found.end()
    print(format_summary(items, found.counts.total(), left, applied=apply))
    if apply and not left:
        _drop_applied_rules(past.deleted_rules, state, client, now)
    return 1 if left else 0


def _scan_pages(past: FormerRules, world: World, before: Path) -> Iterator[tuple[Table, PrunePage]]:
    """Scan the tables, page by page. A table that does not exist is skipped if the rules of today do not name it.

    Raises:
        UserError: when no table of the old rules exists: this may be the wrong Region.
        StoreError: when a table cannot be read.
    """
    missing = 0
    for table in past.tables:
        cursor: Item | None = None
        try:
            while True:
                page = run_work(prune_page(table, past, cursor), world)
                yield table, page
                cursor = page.cursor
                if cursor is None:
                    break
        except StoreError as error:
            if error.reason != "TableNotFound" or not past.is_deleted(table):
                raise
            print(f"table {table.physical_name} does not exist, nor in the rules of today: skipped", file=sys.stderr)
            missing += 1
    if missing and missing == len(past.tables):
        raise UserError(f"no table of {before} exists in this place: correct --region or --endpoint-url")


def _drop_applied_rules(deleted: frozenset[str], place: str, client: DynamoDBClient, rules: Rules) -> None:
    """Drop the deleted rules from the saved state: a plan no longer reports them."""
    if not deleted & read_applied_fingerprints(read_state(place, client)).keys():
        return
    with open_state(place, client, rules) as documents:
        before = read_applied_fingerprints(documents)
        at = read_applied_time(documents) or datetime.now(UTC)
        save_applied_fingerprints(
            documents, {title: digest for title, digest in before.items() if title not in deleted}, at
        )
    print(f"dropped from the saved state: {', '.join(sorted(deleted & before.keys()))}")


def _load_former_rules(file: Path, names: Iterable[str]) -> Rules:
    """The rules before the change. Raises UserError when the file does not exist or has no rule of one of the names."""
    if not file.exists():
        raise UserError(
            f"{file}: no such file. Expected the rules file before the change, from a backup or from "
            "`git show COMMIT:rules.yaml`"
        )
    rules = load_rules(file)
    opt.require_titles(names, rules, str(file))
    return rules


def format_leftover(one: Leftover) -> str:
    """Return a leftover as text for people: key and paths, never a value."""
    what = ", ".join(show_path(path) for path in one.paths) or "the whole item"
    return f"{format_key(one.key)} {what} · rule {one.rule}"


def format_summary(items: int, found: int, left: int, *, applied: bool) -> str:
    if not found:
        return f"{format_count(items, 'item')} scanned, nothing left behind"
    if not applied:
        return f"{format_count(items, 'item')} scanned, {format_count(found, 'leftover')}: --apply removes them"
    if left:
        return f"{found - left} leftovers removed, {left} changed meanwhile or could not be written: run it again"
    return f"{format_count(found, 'leftover')} removed"
