"""The cases of a scenario: the whole scenario, or the refusal of a broken rules file.

Invariant: nothing is left out silently. A scenario that cannot be run is a case that fails, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sync_rules.model.errors import UserError
from tests.peers import broken
from tests.peers.builder import UnsupportedError
from tests.peers.runner import Case
from tests.peers.scenarios import Scenario
from tests.peers.translate import translate


@dataclass(frozen=True)
class Unsupported:
    """A scenario that cannot be run, and why."""

    scenario: Scenario
    reason: str

    @property
    def id(self) -> str:
        return self.scenario.id

    def check(self) -> None:
        """Raises AssertionError."""
        raise AssertionError(f"cannot be run: {self.reason}")


Entry = Case | broken.Refusal | Unsupported


def entries(scenarios: Iterable[Scenario]) -> list[Entry]:
    """The cases to run, in order."""
    return [of_scenario(scenario) for scenario in scenarios]


def of_scenario(scenario: Scenario) -> Entry:
    """The entry of a scenario. Raises UserError for an unreadable rule."""
    try:
        if scenario.config_error:
            refusal = broken.refusal(scenario)
            return refusal or Unsupported(scenario, "text only: no broken rules file follows from it")
        return Case(scenario, translate(scenario))
    except UnsupportedError as error:
        return Unsupported(scenario, str(error))
    except (KeyError, TypeError, AttributeError) as error:
        said = f"{type(error).__name__} {error}"
        raise UserError(f"{scenario.file} {scenario.id}: a rule is not of the scenario format: {said}") from error
