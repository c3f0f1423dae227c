"""The report of a self-test: a JSON document, and a page in Markdown for people. Neither holds a value of an item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sync_rules import __version__
from sync_rules.extras.proof.latency import Latency
from sync_rules.extras.proof.probe import ASSUMPTIONS, ProbeResult, Verdict

FORMAT: Final = 1
BAD: Final = frozenset({Verdict.FALSE, Verdict.FAILED})


@dataclass(frozen=True, kw_only=True)
class ProofReport:
    """The findings of a run, in the order of their numbers, and what was measured; None if nothing was."""

    findings: Sequence[ProbeResult]
    measured: Latency | None
    not_measured: str
    place: str
    stack: str
    started: datetime
    seconds: float

    @property
    def well(self) -> bool:
        """True if every fact that was tested holds, and none could not be tested for a reason that is not its own."""
        return not any(finding.verdict in BAD for finding in self.findings)

    def counts(self) -> Counter[Verdict]:
        """The findings by their verdict."""
        return Counter(finding.verdict for finding in self.findings)

    def summary(self) -> str:
        """The result in one line."""
        counts = self.counts()
        return ", ".join(f"{counts[verdict]} {WORDS[verdict]}" for verdict in Verdict if counts[verdict])

    def document(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "format": FORMAT,
            "version": __version__,
            "well": self.well,
            "place": self.place,
            "stack": self.stack,
            "started": self.started.astimezone(UTC).isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 1),
            "counts": {verdict.value: count for verdict, count in self.counts().items()},
            "measured": None if self.measured is None else _round(asdict(self.measured)),
            "assumptions": [_entry(finding) for finding in self.findings],
        }


WORDS: Final = {
    Verdict.HOLDS: "hold",
    Verdict.FALSE: "do not hold",
    Verdict.NOT_TESTED: "not tested",
    Verdict.FAILED: "could not be tested",
}


def untested(number: int) -> ProbeResult:
    """The finding on a fact that has no probe."""
    return ProbeResult(number, Verdict.NOT_TESTED, ASSUMPTIONS[number].not_tested)


def _round(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 2) if isinstance(value, float) else value for name, value in figures.items()}


def _entry(finding: ProbeResult) -> dict[str, Any]:
    one = ASSUMPTIONS[finding.number]
    entry = {
        "number": finding.number,
        "fact": one.fact,
        "verdict": finding.verdict.value,
        "seen": finding.seen,
        "seconds": round(finding.seconds, 2),
    }
    if finding.verdict is Verdict.FALSE:
        entry |= {"if_false": one.if_false, "relied_on": list(one.relied_on), "avoid": one.avoid}
    return entry


def consequence(finding: ProbeResult) -> Iterator[str]:
    """The consequence of a fact that does not hold: what follows, what relies on it, what avoids it."""
    one = ASSUMPTIONS[finding.number]
    yield f"If it is false: {one.if_false}"
    yield f"Relied on by: {', '.join(one.relied_on)}"
    yield f"Avoided with: {one.avoid or 'no setting'}"


# ---------------------------------------------------------------- the page
def page(report: ProofReport) -> str:
    """The report as Markdown."""
    return "\n".join(_page(report)) + "\n"


def _page(report: ProofReport) -> Iterator[str]:
    yield f"# sync-rules selftest: {'every tested fact holds' if report.well else 'not every fact holds'}"
    yield ""
    yield f"{report.summary()[0].upper()}{report.summary()[1:]}. {report.place}, stack {report.stack}."
    yield f"Started {report.started.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, took {report.seconds:,.0f} s."
    yield f"sync-rules {__version__}."
    for verdict, title in TITLES.items():
        chosen = [finding for finding in report.findings if finding.verdict is verdict]
        if not chosen:
            continue
        yield from ("", f"## {title}", "")
        if verdict is Verdict.FALSE:
            for finding in chosen:
                yield f"**{finding.number}.** {ASSUMPTIONS[finding.number].fact}"
                yield ""
                yield f"- Seen: {finding.seen}"
                yield from (f"- {line}" for line in consequence(finding))
                yield ""
        else:
            yield "| number | fact | seen | seconds |"
            yield "| --- | --- | --- | --- |"
            for finding in chosen:
                cells = (ASSUMPTIONS[finding.number].fact, finding.seen)
                fact, seen = (cell.replace("|", "\\|") for cell in cells)
                yield f"| {finding.number} | {fact} | {seen} | {finding.seconds:.1f} |"
    yield from ("", "## Latency", "")
    yield from measured_lines(report)


TITLES: Final = {
    Verdict.FALSE: "Facts that do not hold",
    Verdict.FAILED: "Facts that could not be tested",
    Verdict.HOLDS: "Facts that hold",
    Verdict.NOT_TESTED: "Facts that were not tested",
}


def measured_lines(report: ProofReport) -> Iterator[str]:
    """The figures, each with what it is of."""
    found = report.measured
    if found is None:
        yield f"Nothing was measured: {report.not_measured}."
        return
    lags = f"p50 {found.p50_ms:,.0f} ms, p95 {found.p95_ms:,.0f} ms, p99 {found.p99_ms:,.0f} ms"
    yield (
        f"From a write to its copy, over {found.writes} writes: {lags}. "
        f"A read from here takes {found.round_trip_ms:,.0f} ms of each."
    )
    yield (
        f"{found.targets} copies of one change: {found.targets_seconds:.1f} s from the write to the last copy, "
        f"{found.copies_per_second:,.0f} copies a second."
    )
