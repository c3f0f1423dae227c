"""`sync-rules test`: play scenarios for your own rules in memory, in every order of delivery."""
# ruff: noqa: PT028 - `test` is a verb here, not a case

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sync_rules.cli import options as opt
from sync_rules.cli.show.text import format_count
from sync_rules.cli.verb import Verb
from sync_rules.lab.delivery import Delivery
from sync_rules.lab.scenario import Scenario
from sync_rules.lab.scenario_file import find_scenarios, load_rules_in_memory, load_scenario
from sync_rules.lab.trial import Trial, choose_deliveries, run_trial
from sync_rules.model.errors import UserError
from sync_rules.rules.ruleset import Rules

VERB: Final = Verb(excludes={"--list-variants": ("--rules", "--format")})


def test(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES", help="Scenario files, or folders that contain some at any depth."),
    ] = None,
    *,
    variant: opt.Variants = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed for the delivery variants.")] = 0,
    list_variants: Annotated[
        bool, typer.Option("--list-variants", help="List the delivery variants and exit.")
    ] = False,
    rules_file: Annotated[
        Path | None,
        typer.Option(
            "--rules", metavar="FILE", help="Rules to play them with. Default: those that each scenario names."
        ),
    ] = None,
    form: opt.Lines = opt.LineForm.TEXT,
) -> int:
    """Play scenarios in memory, under every delivery order. The rules are your own."""
    deliveries = choose_deliveries(variant or (), seed)
    if list_variants:
        width = max(len(delivery.name) for delivery in deliveries)
        print("\n".join(f"{delivery.name.ljust(width)}  {delivery.description()}" for delivery in deliveries))
        return 0
    if not paths:
        raise UserError("no scenario given: name scenario files, or folders that contain some")
    rules = None if rules_file is None else load_rules_in_memory(rules_file)
    return _play(load_all(find_scenarios(paths), rules), deliveries, as_json=form is not opt.LineForm.TEXT)


def load_all(files: tuple[Path, ...], rules: Rules | None = None) -> tuple[Scenario, ...]:
    """Load every scenario. Raises UserError with the problems of all files."""
    loaded: list[Scenario] = []
    wrong: dict[str, None] = {}
    for file in files:
        try:
            loaded.append(load_scenario(file, rules))
        except UserError as error:
            wrong[str(error)] = None  # scenarios of one rules file share its problems
    if wrong:
        raise UserError("\n".join(wrong))
    return tuple(loaded)


def _play(scenarios: tuple[Scenario, ...], deliveries: tuple[Delivery, ...], *, as_json: bool) -> int:
    began = time.monotonic()
    failed = 0
    width = max(len(scenario.file) for scenario in scenarios)
    for scenario in scenarios:
        trials = [run_trial(scenario, delivery) for delivery in deliveries]
        failed += not all(trial.ok for trial in trials)
        print(json.dumps(make_row(trials)) if as_json else format_scenario(trials, width), flush=True)
    ok = len(scenarios) - failed
    if as_json:
        print(json.dumps({"scenarios": len(scenarios), "ok": ok, "failed": failed}))
    else:
        ways = "1 variant" if len(deliveries) == 1 else f"{len(deliveries)} variants each"
        seconds = time.monotonic() - began
        print(f"{format_count(len(scenarios), 'scenario')}, {ways}, in {seconds:.1f} s: {ok} ok, {failed} failed")
    return int(failed > 0)


# ---------------------------------------------------------------- output
def format_scenario(trials: list[Trial], width: int) -> str:
    """Return a scenario as text for people: ok, or the variants that failed and an account of the first failure."""
    file = trials[0].file.ljust(width)
    failed = [trial for trial in trials if not trial.ok]
    if not failed:
        return f"{file}  ok"
    names = ", ".join(trial.delivery.name for trial in failed) if len(failed) < len(trials) else "every variant"
    return f"{file}  FAILED under {names}\n{failed[0].report()}\n"


def make_row(trials: list[Trial]) -> dict[str, Any]:
    """Return the results of a scenario, ready for JSON."""
    return {
        "file": trials[0].file,
        "ok": all(trial.ok for trial in trials),
        "variants": [
            {"variant": trial.delivery.name, "seed": trial.delivery.seed, "ok": trial.ok}
            | ({} if trial.ok else {"step": trial.steps[-1].say, "wrong": trial.wrong, "again": trial.again})
            for trial in trials
        ],
    }
