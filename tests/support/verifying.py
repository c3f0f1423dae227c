"""A verify without waits, for tests of what rules keep."""

from __future__ import annotations

from typing import Any

from sync_rules.audit.verifier import Verifier
from sync_rules.audit.verify_tally import DriftFinding, Tally
from tests.support.worlds import Scene


def verify(scene: Scene, *, repair: bool = False, **options: Any) -> tuple[list[DriftFinding], Tally]:
    """The findings of a verify of everything that the rules keep, and its figures."""
    given = {"sleep": lambda _seconds: None, **options}
    verifier = Verifier(scene.rules, scene.world, scene.rules.keeper_names, repair=repair, **given)
    return list(verifier.sweep()), verifier.tally
