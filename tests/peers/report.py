"""Plays a case under a variant of delivery."""

from __future__ import annotations

from tests.peers.bench import MakeBench, MemoryBench
from tests.peers.runner import Case, run
from tests.peers.variants import Variant


def check_variant(case: Case, variant: Variant, make: MakeBench = MemoryBench) -> None:
    """Play a case under each schedule of a variant. Raises what is wrong; an AssertionError when it is the outcome."""
    for schedule in variant.schedules:
        try:
            run(case, schedule, make, case.reference)
        except AssertionError as error:
            error.add_note(f"under {schedule}, with these rules:\n{case.translation.text}")
            raise
