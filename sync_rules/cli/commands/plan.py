"""`sync-rules plan`: what a backfill would do now, what it would take, and where it would be hot. Nothing is written.

Exit code 0; with --detailed-exitcode 1 when there is something to write or a rule is gone. 2 for the user's mistake.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.files import as_mistake, require_own, require_place, writing_whole
from sync_rules.adapters.state import FileState, TableState, applied
from sync_rules.audit.findings import select_rules, share_of
from sync_rules.cli.commands.backfill import RATE, SEGMENTS, STATE, WORKERS, WORKERS_MAX
from sync_rules.cli.commands.run import stop_signals
from sync_rules.cli.show.plan import Shown, as_row
from sync_rules.jobs.backfill.job import BackfillRequest, job_of
from sync_rules.jobs.backfill.page import everything
from sync_rules.jobs.dryrun.figures import UNCHANGED, PlannedWrite, since
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.jobs.dryrun.prices import own_prices, read_prices
from sync_rules.language.load import load_rules
from sync_rules.model.errors import StoreError
from sync_rules.rules import fingerprints

WIDE: Final = 200  # columns where there is no terminal


def plan(
    rules_file: Annotated[Path, typer.Argument(metavar="RULES", help="The rules file.")] = Path("rules.yaml"),
    *,
    rule: Annotated[list[str] | None, typer.Option(help="Only this rule; may be given again.")] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only rules that are new, or say something else than when last done.")
    ] = False,
    table: Annotated[str | None, typer.Option(help="Only items of this table.")] = None,
    where: Annotated[
        str | None, typer.Option(metavar="JMESPATH", help="Only items of which this holds: \"status == 'OPEN'\".")
    ] = None,
    sample: Annotated[
        float | None,
        typer.Option(min=0.1, max=100, metavar="PERCENT", help="Estimate from so much of each table, at random."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same sample again, as far as the tables are the same.")] = None,
    workers: Annotated[int, typer.Option(min=1, max=WORKERS_MAX, help="Segments at the same time.")] = WORKERS,
    rate: Annotated[float, typer.Option(min=0, help="Write units per second; 0: without limit.")] = RATE,
    prices: Annotated[Path | None, typer.Option(help="A price file, for Regions and prices of your own.")] = None,
    writes: Annotated[
        Path | None, typer.Option(help="Where to write each write: JSON lines of keys and paths.")
    ] = None,
    state: Annotated[Path, typer.Option(help="Where backfill keeps which rules were done.")] = STATE,
    state_table: Annotated[
        str | None, typer.Option(help="The table where it keeps that.", envvar="SYNC_RULES_STATE_TABLE")
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 1 when there is something to do.")
    ] = False,
    endpoint_url: Annotated[str | None, typer.Option(help="Another DynamoDB than AWS's, such as an emulator.")] = None,
    region: Annotated[str | None, typer.Option(help="The AWS region.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The whole plan as one JSON object.")] = False,
) -> int:
    """Show what a backfill would write, read, cost and take. Nothing is written."""
    require_own(writes, rules_file, prices, state)
    rules = load_rules(rules_file)
    share, seed = share_of(sample, seed, SEGMENTS)
    client = aws.dynamodb(endpoint_url, region)
    place = client.meta.region_name
    known = own_prices() if prices is None else read_prices(prices, place)
    documents = FileState(state) if state_table is None else TableState(client, state_table)
    stands = since(rules, fingerprints.of_each(rules), applied(documents))
    names = select_rules(rules, rule or [])
    if changed:
        names = frozenset(name for name in names if stands.word(rules.rules[name].title) != UNCHANGED)
    job = job_of(client, rules, names, BackfillRequest(SEGMENTS, table, where)) if names else None
    for notice in job.notices() if job else ():
        print(notice, file=sys.stderr)
    with stop_signals() as stopping, noted_in(writes) as note:
        status = Console(stderr=True).status("planning", spinner="dots")
        planner = Planner(
            rules,
            names,
            DynamoStore(client, rules.tables),
            tables=tuple(job.items) if job else (),
            wanted=job.selection.wanted if job else everything,
            share=share,
            workers=workers,
            stopping=stopping,
            on_page=lambda items: status.update(f"planning · {items:,} items"),
            on_write=note,
        )
        with status:
            try:
                made = planner.run()
            except StoreError:
                if stopping():
                    raise KeyboardInterrupt from None
                raise
    titles = {name: one.title for name, one in rules.rules.items()}
    shown = Shown(made, stands, titles, rate, place, known if place in known.regions else None, seed)
    if as_json:
        print(json.dumps(shown.as_json()))
    else:
        shown.print(Console(width=None if sys.stdout.isatty() else WIDE))
    return int(detailed_exitcode and bool(made.writes or stands.gone))


@contextmanager
def noted_in(path: Path | None) -> Iterator[Callable[[PlannedWrite], object]]:
    """Gives a function that keeps a write in a file, which is there once all are. Raises UserError if it cannot be."""
    if path is None:
        yield lambda _write: None
        return
    require_place(path)
    with writing_whole(path) as file:

        def note(write: PlannedWrite) -> None:
            with as_mistake(path):
                file.write(json.dumps(as_row(write)).encode() + b"\n")

        yield note
