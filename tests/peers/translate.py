"""From a scenario's neutral rules to a rules file of ours, as YAML text that is then parsed like any user's.

Invariant: a rule is translated whole, or the scenario says which of its rules is not. Helpers, which only the
translation needs, are listed, so that their writes are not taken for the scenario's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.peers import chains, gathers, texts
from tests.peers.builder import Builder, Target, UnsupportedError, path_of
from tests.peers.scenarios import Scenario

COPY: Final = {"path", "attr", "missing"}


@dataclass(frozen=True)
class Translation:
    """The rules file, and what in it the scenario does not speak of."""

    text: str
    helpers: frozenset[Target]


def translate(scenario: Scenario) -> Translation:
    """The scenario's rules as ours. Raises UnsupportedError for one that is not translated."""
    builder = Builder(scenario)
    seen: list[Mapping[str, Any]] = []
    for rule in scenario.rules:
        if rule not in seen:  # said twice, it is one rule
            _rule(builder, (rule["table"], path_of(rule["attr"])), rule)
        seen.append(rule)
    for reference in scenario.references:
        _reference(builder, reference)
    return Translation(builder.text(), builder.helpers)


def _rule(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    builder.keys_of(into[0])
    if "copy" in rule:
        _copy(builder, into, rule)
    elif "agg" in rule:
        gathers.gather(builder, into, rule)
    elif "text" in rule:
        texts.text(builder, into, rule)
    else:
        raise UnsupportedError(f"a rule of {', '.join(map(str, rule))}")


def _copy(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    said = rule["copy"]
    if unknown := (rule.keys() - {"table", "attr", "copy"}) | (said.keys() - COPY):
        raise UnsupportedError(f"copy with {', '.join(sorted(map(str, unknown)))}")
    default = {"default": said["missing"]} if "missing" in said else {}
    chains.copy(builder, into, said["path"], path_of(said["attr"]), **default)


def _reference(builder: Builder, reference: Mapping[str, Any]) -> None:
    what = reference["on_delete"]
    if what != "cascade":
        raise UnsupportedError(f"references: {what}")
    chains.cascade(builder, reference["table"], reference["attr"], reference["to"])
