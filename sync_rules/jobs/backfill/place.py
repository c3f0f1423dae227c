"""Where a backfill is on its way down the cascade, and where it goes next.

Law: no copy is made before what it is made from. A step whose rules feed each other goes on round after round, until
one writes nothing; what is stuck then gets one more look, which says so. On a table that is being written to it ends
all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sync_rules.jobs.backfill.progress import Totals
from sync_rules.model.items import Outcome
from sync_rules.rules.kinds.path import TreeRule
from sync_rules.rules.order import Step
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class Place:
    """The step down the cascade, and the round in it. `recording`: what is parked now is stuck, so failure records say
    so. In a round that others follow, it may only have come too early.
    """

    step: int
    round: int = 0
    recording: bool = False


def beginning_of(step: int, steps: Sequence[Step]) -> Place:
    """The first round of a step; behind the last one nothing is left to do."""
    return Place(step, recording=step < len(steps) and steps[step].max_rounds == 1)


def next_place(place: Place, steps: Sequence[Step], rules: Rules, ended: Totals, *, resumed: bool) -> Place:
    """Where to go after a round that came to this much. `resumed`: what was written just before it was broken off is
    counted nowhere.
    """
    if not place.recording:
        if (ended.wrote or resumed) and place.round + 1 < _max_rounds(steps[place.step], rules, ended):
            return Place(place.step, place.round + 1)
        if ended.count(Outcome.PARKED):
            return Place(place.step, place.round + 1, recording=True)
    return beginning_of(place.step + 1, steps)


def _max_rounds(step: Step, rules: Rules, ended: Totals) -> int:
    """Each round makes another level of a hierarchy right. Once there have been more rounds than it has levels, what is
    still being written is what the application changes meanwhile, and the records of that see to it.
    """
    some = [rules.rules[name] for name in step.names]
    if not any(isinstance(rule, TreeRule) for rule in some):
        return step.max_rounds
    return min(step.max_rounds, (ended.levels + 1) * sum(len(rule.nodes()) for rule in some) + 1)
