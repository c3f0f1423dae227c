"""`sync-rules replay`: replay a recording in memory under every delivery order."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sync_rules.cli import options as opt
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.text import format_count
from sync_rules.cli.verb import Verb
from sync_rules.lab.delivery import Delivery
from sync_rules.lab.recording import Recording, read_recordings
from sync_rules.lab.recording_replay import Mismatch, load_data
from sync_rules.lab.replay_case import Case, ReplayResult, replay_all
from sync_rules.lab.scenario_file import load_rules_in_memory
from sync_rules.lab.trial import choose_deliveries
from sync_rules.model.errors import UserError
from sync_rules.rules.ruleset import Rules

SHOWN_MAX_EVENTS: Final = 60
SKIPPED: Final = {
    "copies": "written by the recorded pipeline",
    "ledger": "of a ledger",
    "gone": "of items that no longer exist by then",
    "refused": "that no table accepts",
}

VERB: Final = Verb(
    only_reads=True,
    excludes={"--seed": ("--seeds",)},
)


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Recordings, Lambda events, or objects of an on-failure destination."),
    ],
    *,
    rules_file: Annotated[Path, typer.Option("--rules", metavar="FILE", help="The rules file.")] = opt.RULES_FILE,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Items that existed without records, in the form of data.yaml."),
    ] = None,
    with_copies: Annotated[
        bool, typer.Option("--with-copies", help="Also replay records that changed copies only.")
    ] = False,
    variant: opt.Variants = None,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of seeds to run each variant with.")] = 3,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Run with this seed only.")] = None,
    values: Annotated[
        bool, typer.Option("--values", help="Show values of attributes in the history of a failure.")
    ] = False,
    form: opt.Document = opt.DocumentForm.TEXT,
) -> int:
    """Replay a recording in memory, under every delivery order. Stop at the first that ends wrong."""
    as_json = form is opt.DocumentForm.JSON
    known = load_rules_in_memory(rules_file)
    case = Case(known, load_data(data, known) if data else (), with_copies)
    recording = read_recordings(files, known)
    if not recording.records:
        raise UserError(explain_no_records(recording, known))
    deliveries = [
        one for n in (range(seeds) if seed is None else [seed]) for one in choose_deliveries(variant or (), n)
    ]
    with make_console(stderr=True).status("replaying", spinner="dots") as status:
        outcome = replay_all(case, recording, deliveries, status.update)
        if outcome.mismatch is None:
            print(json.dumps(make_row(outcome, recording)) if as_json else format_success(outcome, recording))
            return 0
    mismatch = outcome.mismatch
    again = _format_command(files, rules_file, data, mismatch.delivery, with_copies=with_copies)
    if as_json:
        print(json.dumps({**make_row(outcome, recording), **mismatch.body(values=values), "again": again}))
    else:
        print("\n".join(format_mismatch(outcome, recording, mismatch, values=values)))
        print(f"again: {again}")
    return 1


def _format_command(
    files: Sequence[Path], rules_file: Path, data: Path | None, delivery: Delivery, *, with_copies: bool
) -> str:
    words = ["sync-rules", "replay", *map(str, files), "--rules", str(rules_file)]
    words += ["--data", str(data)] if data else []
    words += ["--with-copies"] if with_copies else []
    return shlex.join([*words, "--variant", delivery.name, "--seed", str(delivery.seed)])


# ---------------------------------------------------------------- output
def explain_no_records(recording: Recording, rules: Rules) -> str:
    """Return the message for a recording without records of the rules' tables."""
    names = ", ".join(sorted(table.physical_name for table in rules.tables.values()))
    found = ", ".join(sorted(recording.others)) or "no records"
    return f"no record is of a table of the rules: expected {names}; found {found}. Nothing was replayed."


def format_success(outcome: ReplayResult, recording: Recording) -> str:
    """Return the result without a mismatch as text for people."""
    replays = format_count(outcome.replays, "replay")
    return f"{format_records(outcome, recording)}\n{replays} in {outcome.seconds:.1f} s: every copy is right at the end"


def format_records(outcome: ReplayResult, recording: Recording) -> str:
    """Return the number of replayed records, and of skipped records by reason."""
    others = sum(recording.others.values())
    parts = [f"{outcome.counts.get(name, 0):,} {what}" for name, what in SKIPPED.items() if outcome.counts.get(name)]
    parts += [f"{others:,} of other tables"] if others else []
    parts += [f"{recording.repeated:,} repeated"] if recording.repeated else []
    skipped = f"; skipped: {', '.join(parts)}" if parts else ""
    return f"{outcome.counts.get('done', 0):,} of {len(recording.records):,} records replayed{skipped}"


def format_mismatch(outcome: ReplayResult, recording: Recording, mismatch: Mismatch, *, values: bool) -> list[str]:
    """Return the mismatch and its history as lines for people."""
    events = list(mismatch.list_history_lines(values=values))
    if len(events) > SHOWN_MAX_EVENTS:
        half = SHOWN_MAX_EVENTS // 2
        events[half:-half] = [f"  ... {len(events) - SHOWN_MAX_EVENTS:,} more ..."]
    return [
        format_records(outcome, recording),
        mismatch.subject,
        f"  under {describe_delivery(mismatch.delivery)}",
        "history:",
        *events,
    ]


def describe_delivery(delivery: Delivery) -> str:
    return f"{delivery.name}: {delivery.description()}; seed {delivery.seed}"


def make_row(outcome: ReplayResult, recording: Recording) -> dict[str, Any]:
    counts = {name: outcome.counts.get(name, 0) for name in ("done", *SKIPPED)}
    of_recording = {"records": len(recording.records), "others": dict(recording.others), "repeated": recording.repeated}
    return {"ok": outcome.mismatch is None, "replays": outcome.replays, **of_recording, **counts}
