"""A selection for a job: the rules that keep something in a table, and the share of each table to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class Share:
    """The part of each table that is looked at: `numbers` of the `segments` of a parallel scan."""

    segments: int = 1
    numbers: tuple[int, ...] = (0,)

    @property
    def is_sample(self) -> bool:
        """True if the share is less than the whole table."""
        return len(self.numbers) < self.segments

    @property
    def percent(self) -> float:
        """The percentage of the whole, as far as segments are equal."""
        return 100 * len(self.numbers) / self.segments


WHOLE: Final = Share()


def select_rules(rules: Rules, names: list[str]) -> frozenset[str]:
    """The rules that keep something in a table: all, or those named, by their own name or that of a part. Raises
    UserError for an unknown name, and for a rule with effects only.
    """
    kept = {name: rule.title for name, rule in rules.rules.items() if rule.swept_entities}
    asked: set[str] = set()
    for name in names:
        title = rules.rules[name].title if name in rules.rules else name
        if name in rules.rules and title not in kept.values():
            raise UserError(f"rule {name} keeps nothing in a table that could be verified")
        if title not in kept.values():
            raise UserError(explain_unknown_name("rule", name, dict.fromkeys(kept.values())))
        asked.add(title)
    return frozenset(name for name, title in kept.items() if not names or title in asked)
