"""How many random examples a test draws that plays a whole history for each of them."""

from __future__ import annotations

import os

SHARE = 3


def deep(examples: int) -> int:
    """This many examples with `DEEP_TESTS=1`, as `.ci/run` sets it; a third of them in a run of every day."""
    return examples if os.environ.get("DEEP_TESTS") else max(1, examples // SHARE)
