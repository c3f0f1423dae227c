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
from tests.peers.builder import Builder, path_of
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


def refusal_of(scenario: Scenario) -> Refusal:
    """The broken files of a scenario."""
    said = f"{scenario.title} {scenario.notes}".lower()
    return next(make(scenario) for words, make in CLASSES.items() if any(word in said for word in words))


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


def _cycle(scenario: Scenario) -> Refusal:
    """Each copy of one hop turned round. The same rules said twice are no cycle, and no conflict."""
    attempts = []
    for rule in scenario.rules:
        ((hop,), attribute) = rule["copy"]["path"], path_of(rule["copy"]["attr"])
        builder = Builder(scenario)
        there = path_of(rule["attr"])
        chains.copy(builder, (rule["table"], there), [hop], attribute)
        chains.copy(builder, (hop["to"], attribute), [{"to": rule["table"], "by": f"{rule['table']}_id"}], there)
        attempts.append(_text(builder.text(), "SR305"))
    return Refusal(scenario, tuple(attempts), translate(replace(scenario, rules=scenario.rules * 2)).text)


def _text(text: str, fitting: str) -> Attempt:
    return Attempt(lambda: parse_rules(text, environ=ENVIRON), fitting)


def _load_file(text: str) -> object:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rules.yaml"
        path.write_text(text, encoding="utf-8")
        return load_rules(path, ENVIRON)


CLASSES: Final[Mapping[tuple[str, ...], Callable[[Scenario], Refusal]]] = {
    ("unknown rule kind",): _unknown_kind,
    ("input must be rule or config",): _number,
    ("rules file not found",): _no_file,
    ("cyclic", "cycle", "circular"): _cycle,
}
