"""Findings: each something that may be a rule, with its figures and its reasons, before the best are chosen.

Invariant: a finding is judged once, by the module that made it; choosing compares, and changes no figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sync_rules.extras.discover.propose.evidence import GRADES, Grade
from sync_rules.extras.discover.propose.frames import Column, Frame
from sync_rules.extras.discover.propose.link_search import Join
from sync_rules.extras.discover.propose.proposal import Example


@dataclass(eq=False)
class Finding:
    """Something that may be a rule. `writes` are the columns that it explains, `reads` those that it is made of."""

    kind: str
    source: Frame
    target: Frame
    writes: tuple[Column, ...]
    reads: tuple[Column, ...]
    rule: Mapping[str, Any]
    grade: Grade
    checked: int
    agree: int
    orphans: int = 0
    sources: int = 0
    join: Join | None = None
    plainness: int = 0  # less is plainer: what is preferred among findings that agree as well
    spoke_for: list[str] = field(default_factory=list)
    spoke_against: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    named: float = 0.0

    @property
    def differ(self) -> int:
        """The targets that differ."""
        return self.checked - self.agree

    @property
    def rate(self) -> float:
        """The share that agrees."""
        return self.agree / self.checked if self.checked else 0.0

    @property
    def weight(self) -> int:
        """The grade as a number, to compare by."""
        return GRADES[self.grade]

    @property
    def is_likely(self) -> bool:
        """True for what becomes a rule; anything less stands as a comment."""
        return self.weight >= GRADES["likely"]

    def __repr__(self) -> str:
        return f"{self.kind} {dict(self.rule)} {self.agree}/{self.checked} {self.grade}"
