"""The measures by name, in the order of their table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from benchmarks.bench import Bench
from benchmarks.checking import check, shell
from benchmarks.fanouts import base, index, latency, limited, memory, note_fan_out
from benchmarks.figures import Figure
from benchmarks.groups import hot_group
from benchmarks.proposing import propose_for_wide_items, propose_rules
from benchmarks.reading import scan, start
from benchmarks.records import irrelevant, own
from benchmarks.tools import tools
from benchmarks.writing import transaction

MEASURES: Final[Mapping[str, Callable[[Bench], Iterator[Figure]]]] = {
    "base": base,
    "sent": note_fan_out,
    "index": index,
    "latency": latency,
    "limited": limited,
    "irrelevant": irrelevant,
    "own": own,
    "transaction": transaction,
    "group": hot_group,
    "start": start,
    "scan": scan,
    "tools": tools,
    "memory": memory,
    "check": check,
    "shell": shell,
    "propose": propose_rules,
    "propose-wide": propose_for_wide_items,
}
