"""Tests of what a write does to a value."""

from __future__ import annotations

import pytest

from sync_rules.model.items import Alteration, classify_alteration
from sync_rules.model.values import AttributeValue


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (None, {"N": "0"}, Alteration.SET),
        ({"S": "a"}, {"S": "b"}, Alteration.REPLACED),
        ({"N": "2"}, {"N": "3"}, Alteration.REPLACED),
        ({"N": "0"}, {"N": "3"}, Alteration.REPLACED),
        ({"N": "2"}, {"N": "0"}, Alteration.ZEROED),
        ({"S": "two"}, {"N": "0.0"}, Alteration.ZEROED),
        ({"NULL": True}, None, Alteration.REMOVED),
    ],
)
def test_an_alteration_follows_from_both_values(
    before: AttributeValue | None, after: AttributeValue | None, effect: Alteration
) -> None:
    """Absent, other, zero and gone are four effects; a 0 where nothing was takes no value away."""
    assert classify_alteration(before, after) is effect
