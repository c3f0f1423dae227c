"""Durations as a rules file writes them: 30s, 15m, 12h, 60d."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from sync_rules.model.errors import UserError

UNITS: Final = MappingProxyType({"s": 1, "m": 60, "h": 3_600, "d": 86_400})
DAYS_MAX: Final = 36_525  # a hundred years


def parse_duration(text: str) -> int:
    """Parse a duration into seconds.

    Raises:
        UserError: if the text is not a duration, or is longer than a hundred years.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,11})([smhd])", text, re.ASCII)
    if found is None:
        raise UserError(f"{text!r} is not a duration: expected a number and a unit, such as 30s, 15m, 12h or 60d")
    seconds = int(found[1]) * UNITS[found[2]]
    if seconds > DAYS_MAX * UNITS["d"]:
        raise UserError(f"{text!r} is too long: expected at most {DAYS_MAX}d, a hundred years")
    return seconds
