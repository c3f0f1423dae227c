"""Which rules a backfill is of, and the note that they were brought in line.

Law: a rule counts as done only as it was when it was, and only if all that it keeps was gone over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from sync_rules.adapters.state import State, applied, save_applied
from sync_rules.audit.asked import chosen
from sync_rules.model.errors import UserError
from sync_rules.rules import fingerprints
from sync_rules.rules.rule import EffectRule
from sync_rules.rules.ruleset import Rules

NOTHING_THERE: Final = "There is nothing in the tables that it keeps, so nothing to bring in line."
NOTHING_NEW: Final = "no rule that keeps something in a table is new or changed"


def picked(rules: Rules, names: list[str], before: Mapping[str, str] | None) -> tuple[frozenset[str], frozenset[str]]:
    """The rules to bring in line, each with its parts, and all that were asked for, by their names in the rules file:
    those that act on changes only have nothing to be brought in line.

    Raises:
        UserError: when a name is no rule's, or there are none but of that sort.
    """
    effects = {rule.title: rule for rule in rules.rules.values() if isinstance(rule, EffectRule)}
    for name in names:
        if name in effects:
            raise UserError(f"rule {name} is one of kind {effects[name].kind}: it acts on changes. {NOTHING_THERE}")
    kept = chosen(rules, names)
    if before is not None:
        prints = fingerprints.of_each(rules)
        new = frozenset(title for title, digest in prints.items() if before.get(title) != digest)
        return frozenset(name for name in kept if rules.rules[name].title in new), new
    if not kept:
        raise UserError(f"all rules are of kinds that act on changes. {NOTHING_THERE}")
    return kept, titles_of(rules, kept) | (frozenset() if names else frozenset(effects))


def titles_of(rules: Rules, names: Iterable[str]) -> frozenset[str]:
    """By their names in the rules file."""
    return frozenset(rules.rules[name].title for name in names)


def note_applied(documents: State, rules: Rules, titles: Iterable[str]) -> None:
    """These rules were brought in line, as they are now; what is known of others stays."""
    prints = fingerprints.of_each(rules)
    done = {title: prints[title] for title in titles}
    if done:
        save_applied(documents, applied(documents) | done, datetime.now(UTC))
