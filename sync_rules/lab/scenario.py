"""Scenarios: the writes of an application, step by step, and the expected tables whenever the pipeline is at rest.

A scenario names tables, items and rules, and nothing of the pipeline. docs/testing.md shows the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from sync_rules.language.problems import Location
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import make_plain_value
from sync_rules.model.values import AttributeValue, Item, Path, get, is_same_value, show_path
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.rules.ruleset import Rules

Wanted = Mapping[Path, AttributeValue | None]  # the value at each path; None: no value
Reported = tuple[str, str]  # a rule and a reason


class Marker(Enum):
    """The mark of a scenario file for no value."""

    ABSENT = "<absent>"


@dataclass(frozen=True, slots=True)
class Expire:
    """A delete of an item as Time to Live makes it."""

    key: ItemKey


Action = Put | Update | Delete | Expire  # of an application, so without guards


@dataclass(frozen=True, slots=True)
class ExpectedItem:
    """The expected values of an item; `wanted` is None for an item that must not exist."""

    location: Location
    key: ItemKey
    wanted: Wanted | None


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """The number of calls that a call rule must have made so far."""

    location: Location
    rule: str
    times: int


@dataclass(frozen=True)
class ScenarioStep:
    """A step of a scenario. `reports`: all failures that the step must cause."""

    say: str
    location: Location = field(default_factory=Location)
    actions: tuple[Action, ...] = ()
    items: tuple[ExpectedItem, ...] = ()
    calls: tuple[ExpectedCalls, ...] = ()
    reports: frozenset[Reported] = frozenset()


@dataclass(frozen=True)
class Scenario:
    """A scenario file and its rules. The first step loads the data. `answers` has location and answer by question."""

    file: str
    rules: Rules
    steps: tuple[ScenarioStep, ...]
    answers: Mapping[str, tuple[Location, Any]] = field(default_factory=dict)


class Scene(Protocol):
    """Tables with a pipeline behind them, on which a scenario is played. Any call may raise StoreError."""

    def do(self, action: Action) -> None:
        """Make a write of the application."""

    def rest(self) -> bool:
        """Run the pipeline until no work is left. Return False if that took too long."""

    def item(self, key: ItemKey) -> Item | None:
        """Return an item as it is now; None if it does not exist."""

    def calls(self, rule: str) -> int:
        """Count the changes that made a call rule call its function."""

    def reports(self) -> Sequence[Reported]:
        """List the failure records, oldest first."""


def play(scenario: Scenario, scene: Scene) -> Iterator[tuple[ScenarioStep, tuple[str, ...]]]:
    """Play each step, and yield it with the differences after it, in words."""
    for step in scenario.steps:
        before = len(scene.reports())
        for action in step.actions:
            scene.do(action)
        rested = scene.rest()
        where = format_step_location(scenario.file, step)
        unrest = f"{where}\n  the pipeline does not come to rest: do two rules undo each other?"
        restless = () if rested else (unrest,)
        yield step, (*restless, *list_step_differences(scenario.file, step, scene, before))


# ---------------------------------------------------------------- differences
def list_step_differences(file: str, step: ScenarioStep, scene: Scene, reports_before: int) -> Iterator[str]:
    """List the differences from what a step expects: location, expected, found."""
    for expected in step.items:
        for path, want, found in _list_differences(expected, scene.item(expected.key)):
            place = f"{expected.key} {show_path(path)}".strip()
            yield _format_difference(file, expected.location, f"{step.say} · {place}", want, found)
    for called in step.calls:
        times = scene.calls(called.rule)
        if times != called.times:
            yield _format_difference(
                file, called.location, f"{step.say} · calls of {called.rule}", str(called.times), str(times)
            )
    reported = frozenset(scene.reports()[reports_before:])
    for rule, reason in sorted(step.reports ^ reported):
        missing = (rule, reason) in step.reports
        texts = (reason, "no such failure") if missing else ("no failure", reason)
        yield _format_difference(file, step.location, f"{step.say} · failures of {rule}", *texts)


def list_wrong_answers(scenario: Scenario, found: Mapping[str, Any]) -> Iterator[str]:
    """List the questions whose answer differs from that of the scenario, with both answers."""
    for question in dict.fromkeys((*scenario.answers, *found)):
        location, want = scenario.answers.get(question, (Location(), Marker.ABSENT))
        answer = found.get(question, Marker.ABSENT)
        if want != answer:
            yield _format_difference(scenario.file, location, question, show_plain(want), show_plain(answer))


def format_step_location(file: str, step: ScenarioStep) -> str:
    """Format the location and the name of a step."""
    return f"{file}:{step.location.line}:{step.location.column} · {step.say}"


def _format_difference(file: str, location: Location, place: str, want: str, found: str) -> str:
    return f"{file}:{location.line}:{location.column} · {place}\n  expected {want}\n  found    {found}"


def _list_differences(expected: ExpectedItem, item: Item | None) -> Iterator[tuple[Path, str, str]]:
    if item is None or expected.wanted is None:
        if (item is None) != (expected.wanted is None):
            yield (), *(("no item", "an item") if expected.wanted is None else ("an item", "no item"))
        return
    for path, want in expected.wanted.items():
        for inner, wants, found in _list_inner_differences(path, want, get(item, path)):
            yield inner, show(wants), show(found)


def _list_inner_differences(
    path: Path, want: AttributeValue | None, found: AttributeValue | None
) -> Iterator[tuple[Path, AttributeValue | None, AttributeValue | None]]:
    """The deepest paths inside maps at which two values differ."""
    if is_same_value(want, found):
        return
    if want is None or found is None or "M" not in want or "M" not in found:
        yield path, want, found
        return
    for name in dict.fromkeys((*want["M"], *found["M"])):
        yield from _list_inner_differences((*path, name), want["M"].get(name), found["M"].get(name))


def show(value: AttributeValue | None) -> str:
    """Format a value as a scenario file has it."""
    return Marker.ABSENT.value if value is None else show_plain(make_plain_value(value))


def show_plain(value: Any) -> str:
    """Format a plain value as a scenario file has it, on one line."""
    match value:
        case Marker():
            return str(value.value)
        case str() | bool() | None:
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return f"{len(value)} bytes"
        case Mapping():
            return f"{{{', '.join(f'{name}: {show_plain(inner)}' for name, inner in sorted(value.items()))}}}"
        case set() | frozenset():
            return f"!set [{', '.join(sorted(map(show_plain, value)))}]"
        case list() | tuple():
            return f"[{', '.join(map(show_plain, value))}]"
    return str(value)
