"""Scenarios that say: loading these rules must fail. Each class of mistake is made in a rules file of ours.

Invariant: loading must fail with the error that fits, recognised by its code or its words.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sync_rules.language.load import load_rules, parse_rules
from sync_rules.model.errors import UserError
from tests.peers import chains
from tests.peers.builder import Builder, UnsupportedError, path_of
from tests.peers.scenarios import Scenario
from tests.peers.translate import translate

HEAD: Final = """\
tables:
  things: {key: {id: S}}
entities:
  thing: {table: things}
rules:
"""
ENVIRON: Final = {"PEER_PREFIX": "peer-"}


@dataclass(frozen=True)
class Attempt:
    """One broken rules file: a function that loads it, and a word of the expected error."""

    load: Callable[[], object]
    fitting: str

    def error(self) -> str:
        """The error of loading the rules, or an empty text."""
        try:
            self.load()
        except UserError as error:
            return str(error)
        return ""


@dataclass(frozen=True)
class Refusal:
    """A scenario whose rules must be refused. `allowed`, if given, is the text of a file that must not be."""

    scenario: Scenario
    attempts: tuple[Attempt, ...]
    allowed: str | None = None

    @property
    def id(self) -> str:
        return self.scenario.id

    def check(self) -> None:
        """Raises AssertionError when something loads that must not, or fails for another reason."""
        for attempt in self.attempts:
            said = attempt.error()
            assert said, f"expected an error with {attempt.fitting!r}, but the rules file was loaded"
            assert attempt.fitting in said, f"expected an error with {attempt.fitting!r}, found: {said}"
        if self.allowed is not None:
            parse_rules(self.allowed, environ=ENVIRON)


def refusal(scenario: Scenario) -> Refusal | None:
    """The broken files of a scenario; None when neither its rules nor its text names a mistake that is known here."""
    said = f"{scenario.title} {scenario.notes}".lower()
    for words, make in CLASSES.items():
        if any(word in said for word in words):
            return make(scenario)
    attempt = _as_given(scenario)
    return Refusal(scenario, (attempt,)) if attempt is not None and attempt.error() else None


def _as_given(scenario: Scenario) -> Attempt | None:
    """The scenario's own rules; None if there are none, or they are not translated."""
    try:
        return _text(translate(scenario).text, "") if scenario.rules else None
    except UnsupportedError as error:
        named = re.search(r"path (?:to|through) (\w+), which is no table", str(error))
        return _text(f"{HEAD}  rule: {{copy: {named[1]}.name, into: thing.name}}\n", "SR102") if named else None


def _unknown_kind(scenario: Scenario) -> Refusal:
    quoted = re.search(r"'([^']+)'", scenario.title)
    kind = quoted[1] if quoted else "BAD_RULE"
    text = f"{HEAD}  rule: {{{kind}: thing.name, into: thing.title}}\n"
    return Refusal(scenario, (_text(text, "SR112"), Attempt(lambda: _load_file(text), "SR112")))


def _number(scenario: Scenario) -> Refusal:
    return Refusal(scenario, (_text("42\n", "SR104"), _text(f"{HEAD}  rule: 42\n", "SR104")))


def _no_file(scenario: Scenario) -> Refusal:
    def load() -> object:
        with tempfile.TemporaryDirectory() as directory:
            return load_rules(Path(directory) / "rules.yaml")

    return Refusal(scenario, (Attempt(load, "no such file"),))


def _cycle(scenario: Scenario) -> Refusal | None:
    """Each copy of one hop turned round. The same rules said twice are no cycle, and no conflict."""
    given = _as_given(scenario)
    if given is not None and "SR305" in given.error():
        return Refusal(scenario, (replace(given, fitting="SR305"),))
    attempts = []
    for rule in scenario.rules:
        path = rule.get("copy", {}).get("path", ())
        if len(path) != 1 or "to" not in path[0]:
            continue
        builder = Builder(scenario)
        there, back = path_of(rule["attr"]), path_of(rule["copy"]["attr"])
        try:
            chains.copy(builder, (rule["table"], there), path, back)
            chains.copy(builder, (path[0]["to"], back), [{"to": rule["table"], "by": f"{rule['table']}_id"}], there)
        except UnsupportedError:
            continue
        attempts.append(_text(builder.text(), "SR305"))
    twice = replace(scenario, rules=scenario.rules * 2)
    return Refusal(scenario, tuple(attempts), translate(twice).text) if attempts else None


def _text(text: str, fitting: str) -> Attempt:
    return Attempt(lambda: parse_rules(text, environ=ENVIRON), fitting)


def _load_file(text: str) -> object:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rules.yaml"
        path.write_text(text, encoding="utf-8")
        return load_rules(path, ENVIRON)


def _unknown_option(scenario: Scenario) -> Refusal:
    return Refusal(scenario, (_text(f"{HEAD}  rule: {{copy: thing.name, into: thing.title, colour: red}}\n", "SR101"),))


def _missing_option(scenario: Scenario) -> Refusal:
    return Refusal(scenario, (_text(f"{HEAD}  rule: {{copy: thing.name}}\n", "SR103"),))


CLASSES: Final[Mapping[tuple[str, ...], Callable[[Scenario], Refusal | None]]] = {
    ("unknown rule kind",): _unknown_kind,
    ("input must be rule or config",): _number,
    ("rules file not found",): _no_file,
    ("cyclic", "cycle", "circular"): _cycle,
    ("unknown option", "invalid option", "unknown key"): _unknown_option,
    ("missing option", "required option", "missing key"): _missing_option,
}
