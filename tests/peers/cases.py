"""What can be run of a scenario: all of it, only its copies, the refusal of a broken rules file, or nothing yet.

Law: nothing is left out silently. A scenario with rules that are not supported is reported as such with every reason;
its copies are run all the same, as a case of their own, with the expectations that speak of nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sync_rules.attributes import overlaps
from sync_rules.errors import UserError
from tests.peers import broken
from tests.peers.runner import Case
from tests.peers.scenarios import Expectation, Scenario, Step
from tests.peers.translate import Target, Translation, translate


@dataclass(frozen=True)
class Unsupported:
    """A scenario that cannot be run yet, and why."""

    scenario: Scenario
    reason: str

    @property
    def id(self) -> str:
        return self.scenario.id


Runnable = Case | broken.Refusal
Entry = Runnable | Unsupported


def entries(scenarios: Iterable[Scenario]) -> list[Entry]:
    """What there is to run, and what there is not, in order."""
    return [entry for scenario in scenarios for entry in of_scenario(scenario)]


def of_scenario(scenario: Scenario) -> list[Entry]:
    """One entry, or two when only the copies of a scenario can be run. Raises UserError for a rule nobody can read."""
    try:
        return _of_scenario(scenario)
    except (KeyError, TypeError, AttributeError) as error:
        said = f"{type(error).__name__} {error}"
        raise UserError(f"{scenario.file} {scenario.id}: a rule is not of the scenario format: {said}") from error


def _of_scenario(scenario: Scenario) -> list[Entry]:
    if scenario.config_error:
        refusal = broken.refusal(scenario)
        return [refusal or Unsupported(scenario, "text only: no broken rules file follows from it")]
    translation = translate(scenario)
    if not translation.unsupported:
        return [Case(scenario, translation, scenario.id)]
    found: list[Entry] = [Unsupported(scenario, "; ".join(translation.unsupported))]
    if translation.copies:
        found.append(Case(copies_only(scenario, translation), translation, f"{scenario.id} (copies only)"))
    return found


def copies_only(scenario: Scenario, translation: Translation) -> Scenario:
    """The scenario with the expectations that no rule left out has a part in.

    A step's count of target writes stays (fewer rules write no more); its count of discrepancies goes, since it cannot
    be taken apart.
    """

    def touched(target: Target) -> bool:
        table, path = target
        return any(of == table and (not path or not out or overlaps(out, path)) for of, out in translation.left_out)

    def kept(expect: tuple[Expectation, ...]) -> tuple[Expectation, ...]:
        # an item that must (not) exist is only in doubt where a reference was left out, which has no path
        return tuple(one for one in expect if not touched((one.table, one.path)) or _is_item(one, translation))

    def of_copies(step: Step) -> Step:
        fixed = step.fixed
        if fixed is not None:
            fixed = tuple(one for one in fixed if not touched((one["table"], tuple(one["attr"].split(".")))))
        return replace(step, expect=kept(step.expect), fixed=fixed, fixed_count=None)

    return replace(
        scenario,
        expect_initial=kept(scenario.expect_initial),
        steps=tuple(of_copies(step) for step in scenario.steps),
    )


def _is_item(expectation: Expectation, translation: Translation) -> bool:
    return not expectation.path and (expectation.table, ()) not in translation.left_out
