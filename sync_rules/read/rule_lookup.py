"""Finds the rule that keeps a `Graph` or a `Hierarchy`. A wrong name is an error when the object is made."""

from __future__ import annotations

from typing import TypeVar

from sync_rules.model.errors import UserError
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

Kind = TypeVar("Kind", bound=Rule)


def find_rule(rules: Rules, name: str, kind: type[Kind]) -> Kind:
    """The rule of this name and kind.

    Raises:
        UserError: when there is none; the message lists the rules of that kind.
    """
    rule = rules.rules.get(name)
    if not isinstance(rule, kind):
        known = ", ".join(other.name for other in rules.rules.values() if isinstance(other, kind)) or "none"
        found = "no rule" if rule is None else f"a rule of kind {rule.kind}"
        raise UserError(f"{name!r} is {found}: expected one of kind {kind.kind}. Known: {known}")
    return rule
