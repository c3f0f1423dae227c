"""Finds scenario files and loads them: rules, data and steps. `scenario` describes the format.

The result is a scenario that can be played, or an error that lists all mistakes, each with its location.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path as File
from typing import Final

from pydantic import TypeAdapter

from sync_rules.lab.scenario import Scenario
from sync_rules.lab.scenario_reader import ScenarioForm, ScenarioReader
from sync_rules.language.load import RulesFileError, check_rules, read_text
from sync_rules.language.problems import Location, list_errors
from sync_rules.language.yaml_source import KeyPath
from sync_rules.model.errors import UserError
from sync_rules.model.writes import Put
from sync_rules.rules.ruleset import Rules

RULES: Final = "rules.yaml"
DATA: Final = "data.yaml"
SCENARIO: Final = "scenario.yaml"
NAMES: Final = (SCENARIO, f"*.{SCENARIO}")  # of scenario files in a folder
LOAD: Final = "load the data"


# ---------------------------------------------------------------- finding
def find_scenarios(paths: Iterable[File]) -> tuple[File, ...]:
    """Find the scenario files at these paths, each once: a file, or all below a folder. Folders whose name begins with
    a dot are skipped.

    Raises:
        UserError: for a path without a scenario file.
    """
    found: dict[File, None] = {}
    for path in paths:
        files = [path] if path.is_file() else sorted({file for name in NAMES for file in path.rglob(name)})
        seen = [file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts)]
        if not seen:
            expected = f"expected {' or '.join(NAMES)} in it, or below"
            raise UserError(f"{path}: " + (expected if path.is_dir() else "no such file or folder"))
        found.update(dict.fromkeys(seen))
    return tuple(found)


# ---------------------------------------------------------------- reading
def load_rules_in_memory(file: File) -> Rules:
    """Load the rules of a file for tables in memory. Names of tables do not matter there, so environment variables need
    not be set.

    Raises:
        RulesFileError: with every error in it.
        UserError: when the file cannot be read.
    """
    return _parse_rules(str(file), read_text(file), tuple(sorted(os.environ.items())))


def load_scenario(path: File, rules: Rules | None = None) -> Scenario:
    """Load the scenario in a file, or in a folder with `scenario.yaml`. Load its rules too, unless rules are given.

    Raises:
        UserError: if the file does not exist, or with every mistake in the scenario or the rules.
    """
    reader = ScenarioReader(path / SCENARIO if path.is_dir() else path)
    form = reader.read_form(TypeAdapter(ScenarioForm))
    if form is None:
        raise reader.error()
    reader.rules = rules or _load_rules(reader, form.rules)
    beside = ScenarioReader(reader.file.parent / DATA, reader.rules)
    puts: tuple[Put, ...] = ()
    if form.data is not None:
        puts = tuple(reader.puts(("data",), form.data))
    elif beside.file.exists():
        puts = beside.data()
    steps = [reader.step((), LOAD, puts, form)]
    for number, step in enumerate(form.steps):
        here: KeyPath = ("steps", number)
        steps.append(reader.step(here, step.say, tuple(reader.actions(here, step)), step))
    if reader.wrong or beside.wrong:
        raise reader.error(beside)
    answers = {name: (reader.location("answers", name), answer) for name, answer in form.answers.items()}
    return Scenario(str(reader.file), reader.rules, tuple(steps), answers)


def shorten_path(file: File) -> File:
    """Return a path relative to the working directory if it is inside, so that one file has one name."""
    whole = file.resolve()
    return whole.relative_to(File.cwd()) if whole.is_relative_to(File.cwd()) else whole


def _load_rules(reader: ScenarioReader, named: str | None) -> Rules:
    file = shorten_path(reader.file.parent / (RULES if named is None else named))
    if named is None and not file.exists():
        reader.say(
            Location(),
            f"the scenario names no rules file, and its folder has no {RULES}: add `rules: ../{RULES}`, for instance",
        )
        raise reader.error()
    if not file.exists():
        reader.say(reader.location("rules"), f"no such file: {file}")
        raise reader.error()
    return load_rules_in_memory(file)


@lru_cache(maxsize=32)
def _parse_rules(name: str, text: str, environ: tuple[tuple[str, str], ...]) -> Rules:
    rules, problems = check_rules(text, dict(environ))
    if rules is None:
        raise RulesFileError(name, list_errors(problems))
    return rules
