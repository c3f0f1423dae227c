"""Plays a scenario in memory under one delivery, and after each step compares every copy with its source.

A trial stops at the first step with a difference, because later differences may follow from it. Stuck copies (reported
as failures), orphans that are kept on purpose, and snapshots that may still be late are not differences.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sync_rules.audit.compare import Drift, can_be_late
from sync_rules.lab.delivery import VARIANTS, Delivery
from sync_rules.lab.recompute import list_differences
from sync_rules.lab.rehearsal import Rehearsal
from sync_rules.lab.scenario import Scenario, ScenarioStep, format_step_location, play
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import show_path
from sync_rules.pipeline.failure_records import format_key
from sync_rules.pipeline.requests import World
from sync_rules.rules.ruleset import Rules

TOLERATED: Final = frozenset({Drift.STUCK, Drift.ORPHAN})
VERB: Final = "sync-rules test"


@dataclass(frozen=True)
class Trial:
    """The result of a scenario under one delivery: the steps played, and the differences after the last of these
    steps.
    """

    file: str
    delivery: Delivery
    steps: tuple[ScenarioStep, ...]
    wrong: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True without differences."""
        return not self.wrong

    @property
    def again(self) -> str:
        """The command that runs this trial again."""
        chosen = f"--variant {self.delivery.name}" + (f" --seed {self.delivery.seed}" if self.delivery.seed else "")
        return f"{VERB} {shlex.quote(self.file)} {chosen}"

    def report(self) -> str:
        """Format the differences, the way of delivery, the steps before, and the command that repeats the trial."""
        steps = (f"    {self.file}:{step.location.line} {step.say}" for step in self.steps)
        how = f"  under {self.delivery.name}: {self.delivery.description()}; after"
        return "\n".join([*self.wrong, how, *steps, f"  again: {self.again}"])


def choose_deliveries(names: Sequence[str] = (), seed: int = 0) -> tuple[Delivery, ...]:
    """Choose the deliveries of these names, or all, with a seed.

    Raises:
        UserError: for an unknown name.
    """
    known = {delivery.name: replace(delivery, seed=seed) for delivery in VARIANTS}
    for name in names:
        if name not in known:
            raise UserError(explain_unknown_name("variant", name, known))
    return tuple(delivery for name, delivery in known.items() if not names or name in names)


def run_trial(scenario: Scenario, delivery: Delivery) -> Trial:
    """Play a scenario under a delivery."""
    stage = Rehearsal(scenario.rules, delivery=delivery)
    taken = 0
    wrong: tuple[str, ...] = ()
    try:
        for step, missed in play(scenario, stage):
            taken += 1
            wrong = missed or tuple(
                f"{format_step_location(scenario.file, step)}\n  expected every copy to be right\n  found    {drift}"
                for drift in describe_drifts(scenario.rules, stage.world)
            )
            if wrong:
                break
    except StoreError as error:
        wrong = (
            f"{format_step_location(scenario.file, scenario.steps[taken])}\n  expected no error\n  found    {error}",
        )
        taken += 1
    return Trial(scenario.file, delivery, scenario.steps[:taken], wrong)


def describe_drifts(rules: Rules, world: World) -> Iterator[str]:
    """Describe each drift that verify finds while no work is pending, in a few words. Nothing is repaired."""
    for found in list_differences(rules, world.store):
        if found.drift not in TOLERATED and not can_be_late(found, rules):
            paths = ", ".join(map(show_path, found.paths))
            yield f"what is {found.drift.value}: {f'{format_key(found.target)} {paths}'.strip()} (rule {found.rule})"
