"""From a scenario's neutral rules to a rules file of ours, as YAML text that is then parsed like any user's.

Invariant: a rule is translated whole, or an assertion stops the translation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.peers import chains, gathers, texts
from tests.peers.builder import Builder, Target, path_of
from tests.peers.scenarios import Scenario

COPY: Final = {"path", "attr", "missing"}


def translate(scenario: Scenario) -> str:
    """Return the scenario's rules as a file of ours."""
    builder = Builder(scenario)
    seen: list[Mapping[str, Any]] = []
    for rule in scenario.rules:
        if rule not in seen:  # said twice, it is one rule
            _rule(builder, (rule["table"], path_of(rule["attr"])), rule)
        seen.append(rule)
    for reference in scenario.references:
        assert reference["on_delete"] == "cascade", reference
        chains.cascade(builder, reference["table"], reference["attr"], reference["to"])
    return builder.text()


def _rule(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    builder.keys_of(into[0])
    if "copy" in rule:
        _copy(builder, into, rule)
    elif "agg" in rule:
        gathers.gather(builder, into, rule)
    else:
        texts.text(builder, into, rule)


def _copy(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    said = rule["copy"]
    assert rule.keys() == {"table", "attr", "copy"}, rule
    assert said.keys() <= COPY, rule
    default = {"default": said["missing"]} if "missing" in said else {}
    chains.copy(builder, into, said["path"], path_of(said["attr"]), **default)
