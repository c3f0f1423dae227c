"""`sync-rules plan`: the writes a backfill would make now, their cost and duration, and hot keys. Writes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.acceptance import find_applied_rules
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.files import convert_os_errors, open_whole, require_own, require_place
from sync_rules.adapters.state import read_applied_time
from sync_rules.audit.verify_tally import choose_share
from sync_rules.cli import options as opt
from sync_rules.cli.link_sample import sample_new_rules
from sync_rules.cli.saved_state import find_state_file, read_state
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.plan import PlanReport, make_write_row
from sync_rules.cli.signals import stop_signals
from sync_rules.cli.verb import Verb
from sync_rules.jobs.backfill.bulk_loads import list_bulk_loads
from sync_rules.jobs.backfill.job import BackfillRequest, make_job
from sync_rules.jobs.backfill.page import accept_all
from sync_rules.jobs.backfill.scope import list_waiting_titles
from sync_rules.jobs.dryrun.figures import UNCHANGED, PlannedWrite, compare_fingerprints
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.jobs.dryrun.prices import read_own_prices, read_prices
from sync_rules.language.load import load_rules
from sync_rules.model.errors import StoreError
from sync_rules.rules import fingerprints
from sync_rules.rules.selection import select_rules

VERB: Final = Verb(only_reads=True)


def plan(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    rule: opt.RuleNames = None,
    changed: opt.Changed = False,
    accept: opt.Accept = None,
    table: opt.OnlyTable = None,
    where: opt.Where = None,
    sample: opt.Sample = None,
    rate: Annotated[
        float, typer.Option(min=0, help="Write units per second that the duration assumes. 0: no limit.")
    ] = opt.RATE,
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Price file, for Regions that sync-rules has no prices of.")
    ] = None,
    writes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File to write the planned writes to: JSON lines of keys and paths."),
    ] = None,
    state: opt.State = opt.STATE,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 1 when there is something to do.")
    ] = False,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    form: opt.Page = opt.PageForm.TEXT,
) -> int:
    """Show a backfill's writes, reads, cost and duration in advance. Nothing is written."""
    require_own(writes, rules_file, prices, find_state_file(state))
    rules = load_rules(rules_file)
    opt.require_titles(accept or (), rules, option="--accept")
    share, seed = choose_share(*opt.parse_sample(sample), opt.SEGMENTS)
    client = aws.dynamodb(endpoint_url, region)
    place = client.meta.region_name
    known = read_own_prices() if prices is None else read_prices(prices, place)
    documents = read_state(state, client)
    store = DynamoStore(client, rules.tables)
    names = select_rules(rules, rule or [])
    waiting = list_waiting_titles(rules.only(names), store)
    before = find_applied_rules(documents, rules, waiting)
    stands = compare_fingerprints(rules, fingerprints.compute_rule_fingerprints(rules), before)
    if changed:
        names = frozenset(name for name in names if stands.word(rules.rules[name].title) != UNCHANGED)
    job = make_job(client, rules, names, BackfillRequest(opt.SEGMENTS, table, where)) if names else None
    for notice in job.notices() if job else ():
        print(notice, file=sys.stderr)
    with stop_signals() as stopping, open_write_log(writes) as note:
        status = make_console(stderr=True).status("planning", spinner="dots")
        planner = Planner(
            rules,
            names,
            store,
            tables=tuple(job.items) if job else (),
            wanted=job.selection.wanted if job else accept_all,
            share=share,
            completes=job.completes if job else None,
            workers=opt.WORKERS,
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
    at = read_applied_time(documents)
    loads, unknown = ((), "") if at is None else list_bulk_loads(client, rules.streamed_tables, at)
    if unknown:
        print(f"bulk loads since the last backfill are unknown: {unknown}", file=sys.stderr)
    links = sample_new_rules(rules, names, before, accept or (), store)
    for notice in (one.text for one in links if not one.stops):
        print(notice, file=sys.stderr)
    late = [one.title for name, one in rules.rules.items() if one.pull_only and name in made.rules]
    titles = {name: one.title for name, one in rules.rules.items()}
    priced = known if place in known.regions else None
    expiring = {
        titles[name]: attribute
        for name, figures in made.rules.items()
        for _, attribute in rules.rules[name].times_to_live
        if figures.to_write
    }
    shown = PlanReport(
        made,
        stands,
        titles,
        rate,
        place,
        priced,
        seed,
        waiting,
        late,
        expiring,
        [one for one in links if one.stops],
        opt.repeat_options(rules_file, endpoint_url, region, state),
        [] if at is None else [one.describe(at) for one in loads],
    )
    match form:
        case opt.PageForm.JSON:
            print(json.dumps(shown.as_json()))
        case opt.PageForm.MARKDOWN:
            print(shown.as_markdown())
        case opt.PageForm.TEXT:
            shown.print(make_console())
    return int(bool(shown.links) or (detailed_exitcode and bool(made.writes or stands.gone)))


@contextmanager
def open_write_log(path: Path | None) -> Iterator[Callable[[PlannedWrite], object]]:
    """Yield a function that appends a write to a file. The file appears when it is complete. Raises UserError if it
    cannot be written.
    """
    if path is None:
        yield lambda _write: None
        return
    require_place(path)
    with open_whole(path) as file:

        def note(write: PlannedWrite) -> None:
            with convert_os_errors(path):
                file.write(json.dumps(make_write_row(write)).encode() + b"\n")

        yield note
