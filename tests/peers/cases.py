"""The cases of a scenario: the whole scenario, or the refusal of a broken rules file.

Invariant: nothing is left out silently. A scenario that cannot be run is a case of its own, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.peers import broken
from tests.peers.builder import UnsupportedError
from tests.peers.runner import Case
from tests.peers.scenarios import Scenario, Unread
from tests.peers.translate import translate


@dataclass(frozen=True)
class Unsupported:
    """A scenario that cannot be run, and why."""

    scenario: Scenario | Unread
    reason: str

    @property
    def id(self) -> str:
        return self.scenario.id


Entry = Case | broken.Refusal | Unsupported


def entries(scenarios: Iterable[Scenario | Unread]) -> list[Entry]:
    """The cases to run, in order."""
    return [of_scenario(scenario) for scenario in scenarios]


def of_scenario(scenario: Scenario | Unread) -> Entry:
    """The entry of a scenario."""
    if isinstance(scenario, Unread):
        return Unsupported(scenario, scenario.reason)
    try:
        if scenario.config_error:
            return broken.refusal(scenario) or Unsupported(scenario, "text only: no broken rules file follows from it")
        return Case(scenario, translate(scenario))
    except UnsupportedError as error:
        return Unsupported(scenario, str(error))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Unsupported(scenario, f"a rule is not of the scenario format: {type(error).__name__} {error}")
