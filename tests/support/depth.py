"""The share of many like cases that a change tries; the others wait for the night."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import pytest

SHARE: Final = 3
Case = TypeVar("Case")
Parameters: Final = type(pytest.param())


def deep(examples: int) -> int:
    """This many random examples with `DEEP_TESTS=1`, as `make night` sets it; a third of them for a change."""
    return examples if os.environ.get("DEEP_TESTS") else max(1, examples // SHARE)


def take_share(cases: Iterable[Case]) -> list[Case]:
    """All cases with `DEEP_TESTS=1`; every third one for a change."""
    return list(cases)[:: SHARE // deep(SHARE)]


def spread_over_night(cases: Iterable[Any], share: int = SHARE) -> list[Any]:
    """The cases as parameters, a tuple as several: one of `share` runs with each change, the others at night."""
    spread = []
    for place, case in enumerate(cases):
        given = case if isinstance(case, Parameters) else pytest.param(*(case if isinstance(case, tuple) else (case,)))
        marks = given.marks if place % share == 0 else (*given.marks, pytest.mark.night)
        spread.append(pytest.param(*given.values, id=given.id, marks=marks))
    return spread
