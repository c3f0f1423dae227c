"""Runs every scenario of a directory under every variant, and prints which passed and which failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.peers.bench import MakeBench, MemoryBench
from tests.peers.cases import Entry, Unsupported
from tests.peers.runner import Case, run
from tests.peers.variants import VARIANTS, Variant


class Verdict(Enum):
    """The result of a scenario."""

    PASSED = "passed"
    NOT_TRANSLATED = "not translated"
    FAILED = "failed"


@dataclass(frozen=True)
class Row:
    """One line of the table. `why`: the first difference and the variant it was found under, or what is not translated."""

    file: str
    id: str
    verdict: Verdict
    why: str = ""


def check_variant(case: Case, variant: Variant, make: MakeBench = MemoryBench) -> None:
    """Play a case under each schedule of a variant. Raises what is wrong; an AssertionError when it is the outcome."""
    for schedule in variant.schedules:
        try:
            run(case, schedule, make, case.reference)
        except AssertionError as error:
            error.add_note(f"under {schedule}, with these rules:\n{case.translation.text}")
            raise


def row_of(entry: Entry, variants: Iterable[Variant] = VARIANTS, make: MakeBench = MemoryBench) -> Row:
    """Run one entry to its verdict."""
    file = entry.scenario.file
    if isinstance(entry, Unsupported):
        return Row(file, entry.id, Verdict.NOT_TRANSLATED, entry.reason)
    if not isinstance(entry, Case):
        try:
            entry.check()
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in one scenario is a line of the table
            return Row(file, entry.id, Verdict.FAILED, _said(error))
        return Row(file, entry.id, Verdict.PASSED, "refused as it must be")
    for variant in variants:
        try:
            check_variant(entry, variant, make)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in one scenario is a line of the table
            why = f"variant {variant.number} ({variant.name}): {_said(error)}"
            return Row(file, entry.id, Verdict.FAILED, why)
    return Row(file, entry.id, Verdict.PASSED)


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"


def rows_of(entries: Iterable[Entry]) -> Iterator[Row]:
    """Run everything, in order."""
    return (row_of(entry) for entry in entries)


def show(rows: Iterable[Row], console: Console) -> bool:
    """Print the table and its totals; says whether nothing failed."""
    rows = list(rows)
    table = Table("file", "scenario", "verdict", "why", box=box.SIMPLE_HEAD)
    style = {Verdict.PASSED: "green", Verdict.NOT_TRANSLATED: "yellow", Verdict.FAILED: "bold red"}
    for row in rows:
        verdict = f"[{style[row.verdict]}]{row.verdict.value}[/]"
        table.add_row(escape(row.file), escape(row.id), verdict, escape(row.why))
    console.print(table)
    totals = (f"{sum(row.verdict is verdict for row in rows)} {verdict.value}" for verdict in Verdict)
    console.print(f"{len(rows)} cases: {', '.join(totals)}, under {len(VARIANTS)} delivery variants each")
    return all(row.verdict is not Verdict.FAILED for row in rows)
