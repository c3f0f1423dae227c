"""Tells which rules lose an item that a rule moves: they know it under its old key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sync_rules.rules.families import EffectRule, ListingRule, TargetRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

POINTS: Final = "reads the old key"
HOLDS: Final = "holds what the item said under its old key"
SEES: Final = "takes the move for a delete"
KEPT: Final = "is not kept on the moved item"
WORDS: Final = (POINTS, HOLDS, SEES, KEPT)  # of a rule with several parts, the first that fits


def left_by_moves(rules: Rules) -> Mapping[str, Mapping[str, str]]:
    """By the title of each rule that moves items, the titles of the rules that lose them, with what each does."""
    moves = [rule for rule in rules.rules.values() if rule.moves]
    return {move.title: _losing(rules, move) for move in moves}


def _losing(rules: Rules, move: Rule) -> dict[str, str]:
    known: dict[str, set[str]] = {}
    for rule in rules.rules.values():
        if rule.title != move.title and (word := _loses(rule, move)):
            known.setdefault(rule.title, set()).add(word)
    return {title: next(word for word in WORDS if word in words) for title, words in known.items()}


def _loses(rule: Rule, move: Rule) -> str:
    """The way in which a rule knows the items that move; "" for one that does not."""
    if rule.source is rule.target:
        word = SEES if isinstance(rule, EffectRule) else KEPT
        return word if rule.target is move.source else ""
    if rule.source is move.source:
        return POINTS if isinstance(rule, TargetRule) and not rule.gathers else HOLDS
    if rule.target is move.source:
        made_of_children = isinstance(rule, TargetRule) and (rule.gathers or rule.books is not None)
        return POINTS if made_of_children or isinstance(rule, ListingRule) else KEPT
    return ""
