"""The sorts of histories, and the oracles that check each sort.

Convergence alone (O1) misses some faults; O2 to O6 exist for those. O7 to O9 concern work of people beside the
pipeline; in the other histories nobody works beside it, because a backfill would hide what the pipeline forgets. In O11
applications write by transactions, follow their writes and look by `fresh`, beside plain writers, people and pipeline.
In O12 one source has most targets and changes several times in a row, so that its fan-outs wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation import worlds_often
from tests.simulation.configurations import CONFIGURATIONS

OFTEN = tuple(one.name for one in worlds_often.WORLDS)
MOST = tuple(one for one in CONFIGURATIONS.values() if one.name not in OFTEN)
INDEXED = tuple(one.name for one in MOST if one.indexed)
LATE = tuple(one.name for one in MOST if any(fact.unlisted for fact in one.facts))
LISTED = tuple(one.name for one in MOST if one.name not in LATE)
ATTACHING = frozenset({"create target", "point elsewhere", "move", "put what was read"})


@dataclass(frozen=True)
class Oracle:
    """A way to judge histories, and the histories it needs."""

    name: str
    configurations: tuple[str, ...] = LISTED
    only: frozenset[str] | None = None  # the operations allowed; None: all
    without: frozenset[str] = frozenset()
    unique: bool = False  # every value of a source is new, and later ones are counted higher
    lag: bool = True
    second_look: bool = True
    serial: bool = False  # one change at a time, no faults: the number of writes is known
    prompt: bool = False  # an index is never behind when a target is changed by its application
    without_faults: frozenset[str] = frozenset()
    errands: bool = False  # people start backfills, verifies and redrives meanwhile
    late_start: bool = False  # for some days nobody listened: what is there is wrong until a backfill has ended
    apart: bool = False  # not among the oracles that histories are spread over by their numbers
    writers: bool = False  # applications write by transactions, follow their writes, and read by fresh
    waits: bool = False  # large fan-outs of a source that changes several times in a row wait for each other
    losses: bool = False  # some changes leave no record: what is wrong by then, only a verify mends


ORACLES = {
    "O1": Oracle("O1"),
    "O2": Oracle(
        "O2",
        tuple(one.name for one in MOST if one.plain),
        only=frozenset({"rename", "unrelated"}),
        unique=True,
    ),
    "O3": Oracle("O3", INDEXED, without=ATTACHING, second_look=False),
    "O4": Oracle("O4", INDEXED, lag=False, second_look=False),
    "O5": Oracle("O5", without=frozenset({"fill", "replace map"}), lag=False, serial=True),
    # what an index does not show yet is told by its own record: nobody has to look again, but for what was parked
    "O6": Oracle(
        "O6",
        ("embed-index", "embed-claimed-index"),
        only=frozenset({"create target", "delete target", "remove copy", "point elsewhere", "create source", "rename"}),
        second_look=False,
        prompt=True,
        without_faults=frozenset({"contended"}),
    ),
    "O7": Oracle("O7", errands=True, late_start=True),
    "O8": Oracle("O8", errands=True, losses=True),
    "O9": Oracle(
        "O9",
        tuple(one.name for one in MOST if one.plain),
        only=frozenset({"rename", "unrelated"}),
        unique=True,
        errands=True,
    ),
    # where nothing lists targets, any look at one may fill it with what came late: what is delivered once more, a verify
    "O10": Oracle("O10", LATE, apart=True),
    "O11": Oracle("O11", errands=True, writers=True, apart=True),
    "O12": Oracle("O12", OFTEN, apart=True, waits=True),
}
