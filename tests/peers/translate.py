"""From a scenario's neutral rules to a rules file of ours, as YAML text that is then parsed like any user's.

Invariant: a rule is translated whole, or the scenario says which of its rules is not. Helpers, which only the
translation needs, are listed, so that their writes are not taken for the scenario's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sync_rules.model.values import show_path
from tests.peers import chains, gathers
from tests.peers.builder import Builder, Target, UnsupportedError, path_of
from tests.peers.scenarios import ABSENT, Scenario


@dataclass(frozen=True)
class Translation:
    """The rules file, and what in it the scenario does not speak of."""

    text: str
    helpers: frozenset[Target]


def translate(scenario: Scenario) -> Translation:
    """The scenario's rules as ours. Raises UnsupportedError for one that is not translated."""
    builder = Builder(scenario)
    for rule in scenario.rules:
        _rule(builder, (rule["table"], path_of(rule["attr"])), rule)
    for reference in scenario.references:
        _reference(builder, reference)
    return Translation(builder.text(), builder.helpers)


def _rule(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    if "copy" in rule:
        copy = rule["copy"]
        missing = rule.get("missing", copy.get("missing", ABSENT))
        default = {} if missing == ABSENT else {"default": missing}
        chains.copy(builder, into, copy["path"], path_of(copy["attr"]), **default)
    elif "agg" in rule:
        gathers.gather(builder, into, rule)
    elif "text" in rule:
        _text(builder, into, rule)
    else:
        raise UnsupportedError(f"a rule of {', '.join(map(str, rule))}")


def _text(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    """Own attributes, joined."""
    if any(part.keys() != {"attr"} if isinstance(part, dict) else True for part in rule["text"]):
        raise UnsupportedError("text of more than own attributes")
    fields = [show_path(path_of(part["attr"])) for part in rule["text"]]
    builder.rule(into, {"derive": show_path((into[0], *into[1])), "join": fields, "separator": rule.get("sep", "")})


def _reference(builder: Builder, reference: Mapping[str, Any]) -> None:
    if reference["on_delete"] != "cascade":
        # `clear` would have to write the attribute that links, which no rule may (SR303, and its cycle SR305)
        raise UnsupportedError(f"references: {reference['on_delete']}")
    chains.cascade(builder, reference["table"], reference["attr"], reference["to"])
