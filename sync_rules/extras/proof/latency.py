"""Measures what users feel: the time from a write to its copy, and copies per second of one change.

The function of the stack sends the statements that the product sends; it reads no sources and compares nothing, so
the figures are those of AWS. They are seen from this machine: each has the way there and back in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import quantiles
from typing import Final

from sync_rules.extras.proof.probe import UnseenError
from sync_rules.extras.proof.proof_stack import ProofSite, fresh, keyed

WRITES: Final = 30
TARGETS: Final = 500


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from a write to its copy over `writes` writes, and copies per second of a change with `targets`."""

    writes: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    round_trip_ms: float
    targets: int
    targets_seconds: float
    copies_per_second: float


def measure(site: ProofSite, clock: Callable[[], float] = time.monotonic) -> Latency:
    """Measure. Raises UnseenError when a copy does not come, and what `aws` lists as ERRORS."""
    pk = fresh("in#measure#")
    site.put_all([keyed(pk, f"{n:05d}", name="-") for n in range(TARGETS)])
    lags = sorted(_one(site, pk, n, clock) for n in range(WRITES))
    began = clock()
    site.get(keyed(pk, "00000"))
    round_trip = clock() - began
    points = quantiles(lags, n=100, method="inclusive")
    seconds = _all(site, pk, clock)
    p50, p95, p99 = (points[percent - 1] * 1000 for percent in (50, 95, 99))
    return Latency(WRITES, p50, p95, p99, round_trip * 1000, TARGETS, seconds, TARGETS / seconds)


def _source(site: ProofSite, pk: str, name: str, targets: int) -> None:
    """Change a source, whose name the function copies."""
    site.put({**keyed(pk, name=name), "do": {"S": "copy"}, "n": {"N": str(targets)}}, "mapped")


def _one(site: ProofSite, pk: str, n: int, clock: Callable[[], float]) -> float:
    began = clock()
    _source(site, pk, str(n), 1)
    _, there = site.waiting.until(lambda: site.get(keyed(pk, "00000")), lambda item: item.get("name") == {"S": str(n)})
    if not there:
        raise UnseenError("a copy did not come in the time there was")
    return clock() - began


def _all(site: ProofSite, pk: str, clock: Callable[[], float]) -> float:
    began = clock()
    _source(site, pk, "all", TARGETS)
    _, there = site.waiting.until(
        lambda: site.query(pk), lambda items: all(item["name"] == {"S": "all"} for item in items)
    )
    if not there:
        raise UnseenError(f"{TARGETS} copies of one change did not come in the time there was")
    return clock() - began
