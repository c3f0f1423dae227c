"""A verify without waits, and a scenario under one delivery, for tests of what rules keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sync_rules.audit.verifier import Verifier
from sync_rules.audit.verify_tally import DriftFinding, Tally
from sync_rules.lab.scenario_file import load_scenario
from sync_rules.lab.trial import run_trial
from tests.support.worlds import Scene


def verify(scene: Scene, *, repair: bool = False, **options: Any) -> tuple[list[DriftFinding], Tally]:
    """The findings of a verify of everything that the rules keep, and its figures."""
    given = {"sleep": lambda _seconds: None, **options}
    verifier = Verifier(scene.rules, scene.world, scene.rules.keeper_names, repair=repair, **given)
    return list(verifier.sweep()), verifier.tally


def require_scenario(folder: Path, rules: str, scenario: str, delivery: Any) -> None:
    """Fail where a scenario of these rules does not end as it expects under this delivery."""
    (folder / "rules.yaml").write_text(rules)
    (folder / "test.scenario.yaml").write_text(scenario)
    trial = run_trial(load_scenario(folder / "test.scenario.yaml"), delivery)
    assert trial.ok, trial.report()[-3_000:]
