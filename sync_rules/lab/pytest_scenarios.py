"""Collects scenarios as pytest items, and implements the fixtures; `pytest_plugin` imports this module on demand.

A node is named by its file and its way of delivery, `scenarios/rename/scenario.yaml::crashing`, so pytest's selection,
order and parallel runs work for scenarios, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from sync_rules.lab.delivery import VARIANTS, Delivery
from sync_rules.lab.plain_rehearsal import Function, PlainRehearsal
from sync_rules.lab.recording import read_recording
from sync_rules.lab.recording_replay import load_data, replay
from sync_rules.lab.scenario import Scenario
from sync_rules.lab.scenario_file import NAMES, load_rules_in_memory, load_scenario, shorten_path
from sync_rules.lab.trial import choose_deliveries, run_trial
from sync_rules.model.errors import UserError
from sync_rules.rules.ruleset import Rules

Find = Callable[[str | Path], Path]


class Collecting:
    """A pytest plugin that collects scenario files."""

    def __init__(self, config: pytest.Config) -> None:
        self._names = tuple(config.getini("sync_rules_files")) or NAMES
        try:
            self._deliveries = choose_deliveries(
                config.getoption("--sync-rules-variant"), config.getoption("--sync-rules-seed")
            )
        except UserError as error:
            raise pytest.UsageError(str(error)) from error

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a file whose name is that of a scenario file."""
        if not any(fnmatch(file_path.name, name) for name in self._names):
            return None
        file: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path, deliveries=self._deliveries)
        return file


class ScenarioFile(pytest.File):
    """A scenario: a test for each way of delivery, named after it."""

    def __init__(self, *, deliveries: Sequence[Delivery], **given: Any) -> None:
        super().__init__(**given)
        self._deliveries = deliveries

    def collect(self) -> Iterator[ScenarioItem]:
        """Yield the tests. Raises CollectError if the file is wrong."""
        try:
            scenario = load_scenario(shorten_path(self.path))
        except UserError as error:
            raise self.CollectError(str(error)) from None
        for delivery in self._deliveries:
            yield ScenarioItem.from_parent(self, name=delivery.name, scenario=scenario, delivery=delivery)


class ScenarioItem(pytest.Item):
    """A scenario under one way of delivery."""

    def __init__(self, *, scenario: Scenario, delivery: Delivery, **given: Any) -> None:
        super().__init__(**given)
        self._scenario = scenario
        self._delivery = delivery

    def runtest(self) -> None:
        """Play the scenario. Raises ScenarioFailed with the report."""
        trial = run_trial(self._scenario, self._delivery)
        if not trial.ok:
            raise ScenarioFailed(trial.report())

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *given: Any, **named: Any) -> Any:
        """The report, without a traceback."""
        if isinstance(excinfo.value, ScenarioFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *given, **named)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The file and the name of the test."""
        return self.path, 0, self.name


class ScenarioFailed(Exception):  # noqa: N818 - not an error, a test that fails
    """An expectation of a scenario did not hold."""


# ---------------------------------------------------------------- fixtures
def make_engine(
    find: Find,
    rules: str | Path | Rules,
    delivery: str | Delivery = "in-order",
    *,
    seed: int = 0,
    call: Function | None = None,
) -> PlainRehearsal:
    """Make the rehearsal that the fixture `sync_rules_engine` returns."""
    (how,) = _make_deliveries([delivery], seed)
    return PlainRehearsal(_load_rules(rules, find), how, call)


def replay_file(
    find: Find,
    recording: str | Path,
    rules: str | Path | Rules,
    deliveries: Sequence[str | Delivery] = VARIANTS,
    *,
    seed: int = 0,
    data: str | Path | None = None,
    with_copies: bool = False,
) -> None:
    """Replay a recording for the fixture `replay`. Fail the test with the first difference."""
    known = _load_rules(rules, find)
    file = shorten_path(find(recording))
    records = read_recording(file, known).records
    if not records:
        raise UserError(f"{file}: expected records of the tables of the rules, found none")
    there = () if data is None else load_data(shorten_path(find(data)), known)
    for delivery in _make_deliveries(deliveries, seed):
        mismatch = replay(records, known, delivery, there, with_copies=with_copies)
        if mismatch is not None:
            pytest.fail(f"{file}: {mismatch}", pytrace=False)


def _load_rules(given: str | Path | Rules, find: Find) -> Rules:
    return load_rules_in_memory(shorten_path(find(given))) if isinstance(given, str | Path) else given


def _make_deliveries(given: Sequence[str | Delivery], seed: int) -> tuple[Delivery, ...]:
    return tuple(
        choose_deliveries([one], seed)[0] if isinstance(one, str) else replace(one, seed=seed or one.seed)
        for one in given
    )
