"""The effect of a write on a value, as the image showed it: it sets, replaces, zeroes or removes the value.

Invariant: only the two values decide. A guarded write makes exactly this alteration or none.
"""

from __future__ import annotations

from enum import StrEnum

from sync_rules.model.numbers import number_of
from sync_rules.model.values import AttributeValue


class Alteration(StrEnum):
    """The effect of a write on the value at one path."""

    SET = "set"  # nothing was there
    REPLACED = "replaced"  # another value was there
    ZEROED = "zeroed"  # the number 0 takes the place of another value
    REMOVED = "removed"  # a value was there, and nothing is there now


def alteration(before: AttributeValue | None, after: AttributeValue | None) -> Alteration:
    """The effect of a write that turns `before` into `after`. None: no value. The two values differ."""
    assert before is not None or after is not None, "a write changes something"
    if before is None:
        return Alteration.SET
    if after is None:
        return Alteration.REMOVED
    return Alteration.ZEROED if number_of(after) == 0 else Alteration.REPLACED
