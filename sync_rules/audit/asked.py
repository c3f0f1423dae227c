"""What a user asks for: rules by their names, a share of the tables.

Law: a name that is no rule's is an error; it is never left out in silence.
"""

from __future__ import annotations

from random import Random
from secrets import randbelow
from typing import Final

from sync_rules.audit.findings import SAMPLE_SEGMENTS, Share
from sync_rules.language.problems import unknown
from sync_rules.model.errors import UserError
from sync_rules.rules.rule import EffectRule
from sync_rules.rules.ruleset import Rules

SEEDS: Final = 1_000_000


def share_of(percent: float | None, seed: int | None, workers: int) -> tuple[Share, int | None]:
    """The segments to look at: each worker's, or a sample drawn by the seed, which is given back."""
    if percent is None or percent == 100:  # noqa: PLR2004 - percent
        if seed is not None:
            raise UserError("--seed is for a sample: give --sample PERCENT too")
        return Share(workers, tuple(range(workers))), None
    seed = randbelow(SEEDS) if seed is None else seed
    numbers = drawn(percent, Random(seed))  # noqa: S311 - nobody gains by guessing it
    return Share(SAMPLE_SEGMENTS, tuple(sorted(numbers))), seed


def drawn(percent: float, random: Random) -> tuple[int, ...]:
    """The segments of a sample, one at least, in the order in which they were drawn."""
    count = min(SAMPLE_SEGMENTS, max(1, round(SAMPLE_SEGMENTS * percent / 100)))
    return tuple(random.sample(range(SAMPLE_SEGMENTS), count))


def chosen(rules: Rules, names: list[str]) -> frozenset[str]:
    """The rules to verify: all that keep something, or those named, each with its parts. The name of a part, as it is
    shown with what drifted, stands for its rule. Raises UserError for a name that is no rule's, and for a rule whose
    effects nobody can look at.
    """
    kept = {name: rule.title for name, rule in rules.rules.items() if not isinstance(rule, EffectRule)}
    asked: set[str] = set()
    for name in names:
        title = rules.rules[name].title if name in rules.rules else name
        if name in rules.rules and title not in kept.values():
            raise UserError(f"rule {name} keeps nothing in a table that could be verified")
        if title not in kept.values():
            raise UserError(unknown("rule", name, dict.fromkeys(kept.values())))
        asked.add(title)
    return frozenset(name for name, title in kept.items() if not names or title in asked)
