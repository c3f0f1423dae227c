"""The report of a self-test: a JSON document, without a value of an item, and the lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sync_rules import __version__
from sync_rules.extras.proof.probe import ASSUMPTIONS, ProbeResult, ProbeVerdict

FORMAT: Final = 1
BAD: Final = frozenset({ProbeVerdict.FALSE, ProbeVerdict.FAILED})


@dataclass(frozen=True, kw_only=True)
class ProofReport:
    """The findings of a run, in the order of their numbers."""

    findings: Sequence[ProbeResult]
    place: str
    stack: str
    started: datetime
    seconds: float

    @property
    def well(self) -> bool:
        """True if every tested fact holds, and no probe failed for a reason that is not about its fact."""
        return not any(finding.verdict in BAD for finding in self.findings)

    def counts(self) -> Counter[ProbeVerdict]:
        return Counter(finding.verdict for finding in self.findings)

    def summary(self) -> str:
        counts = self.counts()
        return ", ".join(f"{counts[verdict]} {WORDS[verdict]}" for verdict in ProbeVerdict if counts[verdict])

    def document(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": __version__,
            "well": self.well,
            "place": self.place,
            "stack": self.stack,
            "started": self.started.astimezone(UTC).isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 1),
            "counts": {verdict.value: count for verdict, count in self.counts().items()},
            "assumptions": [_make_entry(finding) for finding in self.findings],
        }


WORDS: Final = {
    ProbeVerdict.HOLDS: "hold",
    ProbeVerdict.FALSE: "do not hold",
    ProbeVerdict.NOT_TESTED: "not tested",
    ProbeVerdict.FAILED: "could not be tested",
}


def make_untested(number: int) -> ProbeResult:
    """Return the result for a fact that has no probe."""
    return ProbeResult(number, ProbeVerdict.NOT_TESTED, ASSUMPTIONS[number].not_tested)


def _make_entry(finding: ProbeResult) -> dict[str, Any]:
    one = ASSUMPTIONS[finding.number]
    entry = {
        "number": finding.number,
        "fact": one.fact,
        "verdict": finding.verdict.value,
        "seen": finding.seen,
        "seconds": round(finding.seconds, 2),
    }
    if finding.verdict is ProbeVerdict.FALSE:
        entry |= {"if_false": one.if_false, "relied_on": list(one.relied_on), "avoid": one.avoid}
    return entry


def describe_consequence(finding: ProbeResult) -> Iterator[str]:
    """Describe the consequence of a fact that does not hold: what follows, what relies on it, what avoids it."""
    one = ASSUMPTIONS[finding.number]
    yield f"If it is false: {one.if_false}"
    yield f"Relied on by: {', '.join(one.relied_on)}"
    yield f"Avoided with: {one.avoid or 'no setting'}"
