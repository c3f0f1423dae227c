"""`sync-rules propose`: find rules in the data that is there, with what speaks for each. It applies nothing.

It reads whole tables (--table), in parallel scans whose cost and rate it shows before it asks, or full exports to S3
(--from-export). The folder --workspace keeps the items: after Ctrl-C or a crash the same command goes on, and
another run, such as one with --why, reads nothing again. Delete the folder in the end: it holds your items.

The file passes `check`. Each rule has a comment with its figures; what is not sure is a comment with the reason.
docs/discover/propose.md has an example.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules.adapters.files import require_own, require_place, write_whole
from sync_rules.cli import options as opt
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.display import open_display
from sync_rules.cli.verb import Verb
from sync_rules.extras.discover.commands.show_proposal import (
    ShownProposal,
    list_candidates,
    list_why_lines,
    make_why_rows,
)
from sync_rules.extras.discover.propose import search
from sync_rules.extras.discover.propose.database import require_duckdb
from sync_rules.extras.discover.propose.item_collection import GOES_ON, ItemCollection, format_remaining_time
from sync_rules.extras.discover.propose.item_sources import Workspace, open_workspace
from sync_rules.extras.discover.propose.proposal import Proposal
from sync_rules.extras.discover.propose.proposal_writer import hide_texts, write_proposal
from sync_rules.extras.discover.propose.table_files import Gathered
from sync_rules.model.errors import UserError
from sync_rules.model.sizes import PARTITION_MAX_READ_UNITS

WORKSPACE: Final = Path(".sync-rules-propose")
READ_RATE: Final = PARTITION_MAX_READ_UNITS / 2  # the other half is the application's
MEMORY_GB: Final = 1.0
NOTHING_NAMED: Final = "name what to read: --table NAME for a live table, or --from-export PLACE for an export"


VERB: Final = Verb(needs={"--key": ("--from-export",)})


def propose(
    *,
    table: Annotated[
        list[str] | None, typer.Option(metavar="TABLE", help="A live table, by name or ARN. Repeatable.")
    ] = None,
    from_export: Annotated[
        list[str] | None,
        typer.Option(metavar="PLACE", help="Full exports to S3: a folder or s3://bucket/prefix. Repeatable."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=PK,SK", help="Key of an exported table, or TABLE/INDEX=PK,SK of an index. Repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Rules file to write, instead of standard output.")
    ] = None,
    why: Annotated[
        str | None,
        typer.Option(metavar="ATTRIBUTE", help="Show what was looked at for order.user_name, or for a rule in quotes."),
    ] = None,
    rate: Annotated[float, typer.Option(min=0, help="Maximum read units per second. 0: no limit.")] = READ_RATE,
    workspace: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the items that were read. It is yours to delete.")
    ] = WORKSPACE,
    memory: Annotated[
        float, typer.Option(min=0.25, metavar="GB", help="Memory for joins. What does not fit goes to the workspace.")
    ] = MEMORY_GB,
    values: Annotated[bool, typer.Option("--values", help="Write formulas with texts that your items share.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before tables on AWS are read.")] = False,
    form: opt.Document = opt.DocumentForm.TEXT,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
) -> int:
    """Propose rules from the data that is there, with evidence. Nothing is applied."""
    as_json = form is opt.DocumentForm.JSON
    if not (table or from_export):
        raise UserError(NOTHING_NAMED)
    require_duckdb()
    _require_new(out)
    source = ItemCollection(
        tables=table or (), exports=from_export or (), keys=key or (), endpoint_url=endpoint_url,
        region=region, rate=rate, yes=yes,
    )  # fmt: skip
    with open_workspace(workspace) as at:
        gathered = source.gather(at)
        if gathered is None:
            print("nothing was read", file=sys.stderr)
            return 0
        found = _search(gathered, at, memory)
    found = found if values else hide_texts(found)
    candidates = list_candidates(found, why) if why is not None else []
    text = write_proposal(found, source.description)
    shown = ShownProposal(found, text)
    if not found.tables and not as_json:
        shown.print(make_console())  # there is no table to write a file of
        return 0
    if out is not None:
        write_whole(out, text)
    if why is not None:
        print(json.dumps(make_why_rows(candidates)) if as_json else "\n".join(list_why_lines(found, why, candidates)))
    elif as_json:
        print(json.dumps(shown.as_json()))
    elif out is None:
        print(text, end="")
    else:
        shown.print(make_console())
    if out is not None:
        print(f"wrote {out}", file=sys.stderr)
        if why is None and not as_json:
            print(f"Look at each rule; then: sync-rules check {out} && sync-rules plan {out}", file=sys.stderr)
    return 0


def _require_new(out: Path | None) -> None:
    """Check the file to write, before anything is read: a rules file that is there may have been edited by hand."""
    require_own(out)
    if out is None:
        return
    if out.exists():
        raise UserError(f"{out} exists, and is not overwritten. Choose another name with --out, or move it away.")
    require_place(out)


def _search(gathered: Gathered, at: Workspace, memory: float) -> Proposal:
    """The search, with its progress. What it computes is removed in the end."""
    began = time.monotonic()

    def line(now: tuple[str, float]) -> str:
        stage, share = now
        return " · ".join([stage, f"{share:.0%}", *format_remaining_time(share, 1.0, began)])

    try:
        with open_display(make_console(stderr=True), line) as display:
            return search.propose(
                gathered,
                at.stage,
                progress=lambda stage, share: display.update(lambda: (stage, share)),
                threads=min(os.cpu_count() or 1, opt.WORKERS_MAX),
                memory=f"{memory:g}GB",
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted: {GOES_ON}") from None
    finally:
        shutil.rmtree(at.stage, ignore_errors=True)
