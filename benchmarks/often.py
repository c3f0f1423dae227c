"""`python -m benchmarks.often`: a source with 100,000 targets that changes 50 times a second, on the simulated account.

The template's default rate, a warm table, and a minute: once as it is, and once with each batch's fan-out sent at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from benchmarks.scale import table
from benchmarks.simulated import Account, Partitions, Table
from benchmarks.simulation import DEFAULT, PACES, WARM_PARTITIONS
from benchmarks.turns import Clock
from sync_rules.model.limits import Limits

TARGETS: Final = 100_000
SECONDS: Final = 60
AT_ONCE: Final = replace(Limits(), fan_out_again_first_seconds=0, fan_out_again_max_seconds=0)


def row(words: str, limits: Limits, targets: int = TARGETS, seconds: int = SECONDS) -> str:
    """A minute, as a row of the table."""
    clock = Clock()
    account = Account(clock, Table("apart", targets, Partitions(clock, WARM_PARTITIONS)), PACES[DEFAULT], limits)
    account.run_often(seconds, seconds)
    counts = account.counts
    cells = (
        f"{counts['fan-outs']:,}", f"{counts['written'] / seconds:,.0f}", f"{counts['read units'] / seconds:,.0f}",
        f"{account.waiting:,}",
    )  # fmt: skip
    return f"| {words} | {' | '.join(cells)} |"


def main() -> None:
    head = "fan-outs | handed to workers | copies per second | read units per second | messages that wait at the end"
    rows = (row("each batch's at once", AT_ONCE), row("as it is", Limits()))
    print(table(head, "|---|---:|---:|---:|---:|", rows))


if __name__ == "__main__":
    main()
