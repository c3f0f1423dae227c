"""`sync-rules replay`: do again what was recorded, in memory, under every way of delivery; shrink what ends wrong.

Exit code 0 when every end is right, 1 when one is not, 2 when a file is wrong: then nothing is replayed.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from sync_rules.cli.commands.run import stop_signals
from sync_rules.lab.delivery import Delivery
from sync_rules.lab.recording import Recorded, Recording, read_all, writing
from sync_rules.lab.replay import Mismatch, Replay, load_data
from sync_rules.lab.scenario_file import rules_in_memory
from sync_rules.lab.shrink import shrunk
from sync_rules.lab.trial import variants
from sync_rules.model.errors import UserError
from sync_rules.model.writes import Put
from sync_rules.rules.ruleset import Rules

SHOWN_MAX_EVENTS: Final = 60
NOT_DONE: Final = {
    "copies": "the recorded pipeline's own",
    "ledger": "of a ledger",
    "gone": "of items that are gone by then",
    "refused": "that no table takes",
}


@dataclass(frozen=True)
class Case:
    """All that a replay depends on, but for the records and the delivery."""

    rules_file: Path
    rules: Rules
    data_file: Path | None
    data: tuple[Put, ...]
    with_copies: bool

    def replay(self, delivery: Delivery) -> Replay:
        """A replay of it."""
        return Replay(self.rules, delivery, with_copies=self.with_copies)

    def command(self, files: Sequence[Path], delivery: Delivery) -> str:
        """The command that replays files under a delivery, and nothing else."""
        words = ["sync-rules", "replay", *map(str, files), "--rules", str(self.rules_file)]
        words += ["--data", str(self.data_file)] if self.data_file else []
        words += ["--with-copies"] if self.with_copies else []
        return shlex.join([*words, "--variant", delivery.name, "--seed", str(delivery.seed)])


def replay(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES", help="Recordings, Lambda events, on-failure objects.")
    ],
    *,
    rules: Annotated[Path, typer.Option(metavar="FILE", help="The rules file.")] = Path("rules.yaml"),
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Items that were there and are not recorded, as in data.yaml.")
    ] = None,
    with_copies: Annotated[
        bool, typer.Option("--with-copies", help="Do also what changed nothing but copies: a recorded pipeline's work.")
    ] = False,
    variant: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this way of delivery. Repeat it for several.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="How many times each, differently drawn.")] = 3,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Only with this seed.")] = None,
    values: Annotated[bool, typer.Option("--values", help="Show values in the history.")] = False,
    shrink_tries: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many replays to spend on shrinking. 0: do not.")
    ] = 500,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write the shrunk recording.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Do again in memory what was recorded; shrink what ends wrong. Under every way of delivery."""
    if out is not None and out.exists():
        raise UserError(f"{out}: it is there already, and no recording is written over. Another name, please.")
    known = rules_in_memory(rules)
    case = Case(rules, known, data, load_data(data, known) if data else (), with_copies)
    recording = read_all(files, known)
    if not recording.records:
        raise UserError(nothing_of(recording, known))
    deliveries = [one for n in (range(seeds) if seed is None else [seed]) for one in variants(variant or (), n)]
    with Console(stderr=True).status("replaying", spinner="dots") as status:
        outcome = replayed(case, recording, deliveries, status.update)
        if outcome.mismatch is None:
            print(json.dumps(row(outcome, recording)) if as_json else right(outcome, recording))
            return 0
        status.update("shrinking; Ctrl-C shows how far it is")
        with stop_signals() as stopping:
            least = shrink(case, recording, outcome.mismatch, shrink_tries, stopping)
    if out is not None:
        with writing(out, replace(recording.header, ordered=True)) as write:
            write(one.body for one in least.records)
    again = case.command([out], least.delivery) if out else case.command(files, outcome.mismatch.delivery)
    if as_json:
        print(
            json.dumps({**row(outcome, recording), **least.mismatch.body(values=values), **least.row(), "again": again})
        )
    else:
        print("\n".join(wrong(outcome, recording, least, values=values)))
        print(f"again: {again}" + ("" if out else "\n--out FILE keeps the records that are left."))
    return 1


@dataclass(frozen=True)
class Outcome:
    """What replays came to: the first mismatch, how many there were, and what became of the records in the last."""

    mismatch: Mismatch | None
    replays: int
    seconds: float
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Least:
    """What shrinking left, and what is wrong with that."""

    records: tuple[Recorded, ...]
    delivery: Delivery
    mismatch: Mismatch
    tries: int

    def row(self) -> dict[str, int]:
        """For machines."""
        return {"shrunk_to": len(self.records), "tries": self.tries}


def replayed(
    case: Case, recording: Recording, deliveries: Sequence[Delivery], doing: Callable[[str], object]
) -> Outcome:
    """Replay under one delivery after the other, until something is wrong."""
    began = time.monotonic()
    number, mismatch, run = 0, None, case.replay(deliveries[0])
    for number, delivery in enumerate(deliveries, 1):
        doing(f"replaying · {delivery.name}, seed {delivery.seed} · {number} of {len(deliveries)}")
        run = case.replay(delivery)
        mismatch = next(run.mismatches(recording.records, case.data), None)
        if mismatch is not None:
            break
    return Outcome(mismatch, number, time.monotonic() - began, run.counts)


def shrink(
    case: Case,
    recording: Recording,
    found: Mismatch,
    tries_max: int,
    stopping: Callable[[], bool] = lambda: False,
) -> Least:
    """The least that is found of which the first thing that is wrong is of the same rule."""

    def same_wrong(records: Sequence[Recorded], delivery: Delivery) -> Mismatch | None:
        first = next(case.replay(delivery).mismatches(records, case.data), None)
        return first if first is not None and (first.rule, first.check) == (found.rule, found.check) else None

    def fails(records: Sequence[Recorded], delivery: Delivery) -> bool:
        return not stopping() and same_wrong(records, delivery) is not None

    less = shrunk(recording.records, found.delivery, fails, tries_max)
    return Least(less.records, less.delivery, same_wrong(less.records, less.delivery) or found, less.tries)


# ---------------------------------------------------------------- output
def nothing_of(recording: Recording, rules: Rules) -> str:
    """Why there is nothing to replay."""
    names = ", ".join(sorted(table.physical_name for table in rules.tables.values()))
    found = ", ".join(sorted(recording.others)) or "none at all"
    return f"no record is of a table of the rules: expected some of {names}; found {found}. Nothing was done."


def right(outcome: Outcome, recording: Recording) -> str:
    """That all is right, for people."""
    times = "1 replay" if outcome.replays == 1 else f"{outcome.replays:,} replays"
    return f"{counted(outcome, recording)}\n{times} in {outcome.seconds:.1f} s: every end is right"


def counted(outcome: Outcome, recording: Recording) -> str:
    """How many records there are, and what was not done of them."""
    others = sum(recording.others.values())
    parts = [f"{outcome.counts.get(name, 0):,} {what}" for name, what in NOT_DONE.items() if outcome.counts.get(name)]
    parts += [f"{others:,} of other tables"] if others else []
    parts += [f"{recording.repeated:,} repeated"] if recording.repeated else []
    left = f"; left out: {', '.join(parts)}" if parts else ""
    return f"{outcome.counts.get('done', 0):,} of {len(recording.records):,} records done again{left}"


def wrong(outcome: Outcome, recording: Recording, least: Least, *, values: bool) -> list[str]:
    """What is wrong, how it came to that, and how little it takes, for people."""
    first, last = outcome.mismatch, least.mismatch
    assert first is not None, "there is something wrong"
    told = list(last.history_lines(values=values))
    if len(told) > SHOWN_MAX_EVENTS:
        half = SHOWN_MAX_EVENTS // 2
        told[half:-half] = [f"  ... {len(told) - SHOWN_MAX_EVENTS:,} more ..."]
    lines = [counted(outcome, recording), first.subject, f"  under {how(first.delivery)}"]
    if least.tries:
        few = f"{len(least.records):,} of {len(recording.records):,} records"
        lines += [f"shrunk to {few} in {least.tries:,} tries:", last.subject, f"  under {how(last.delivery)}"]
    return [*lines, "history:", *told]


def how(delivery: Delivery) -> str:
    """A delivery in words."""
    return f"{delivery.name}: {delivery.description()}; seed {delivery.seed}"


def row(outcome: Outcome, recording: Recording) -> dict[str, Any]:
    """What the replays came to, for machines."""
    counts = {name: outcome.counts.get(name, 0) for name in ("done", *NOT_DONE)}
    of_recording = {"records": len(recording.records), "others": dict(recording.others), "repeated": recording.repeated}
    return {"ok": outcome.mismatch is None, "replays": outcome.replays, **of_recording, **counts}
