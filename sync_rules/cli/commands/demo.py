"""`sync-rules demo`: the whole story on an embedded engine, without an account or docker; it leaves nothing behind.

With EXAMPLE it plays that example instead: its tables, data and scenario, step by step, and checks its expectations.
EXAMPLE is the name of one of the examples that are installed with sync-rules, the name of a folder under ./examples, or
the path of a folder with rules.yaml, data.yaml and scenario.yaml.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.live import Live

from sync_rules.adapters import aws
from sync_rules.audit.verifier import Verifier
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.console import make_grid as figures
from sync_rules.cli.show.drift import format_finding, tabulate
from sync_rules.cli.show.rule_graph import make_graph
from sync_rules.cli.show.text import format_count
from sync_rules.cli.verb import Verb
from sync_rules.deploy import files
from sync_rules.deploy.tables import compare_tables, create_missing_tables
from sync_rules.lab.demo.example import EngineScene, find_folder, read_answers, replace_settle_seconds
from sync_rules.lab.demo.story import FOLDER, StepResult, play_story, run_step
from sync_rules.lab.embedded_engine import run_engine
from sync_rules.lab.scenario import Expire, Scenario, list_step_differences, list_wrong_answers, show_plain
from sync_rules.lab.scenario_file import RULES, load_scenario
from sync_rules.language.load import load_rules
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import select_rules

GRACE_SECONDS: Final = 2.0
SETTLE_SECONDS: Final = 1  # the engine's indexes do not lag

VERB: Final = Verb()


def demo(
    example: Annotated[str | None, typer.Argument(metavar="EXAMPLE", help="An example: its name, or a folder.")] = None,
) -> int:
    """Run the demo, or one example, on an embedded DynamoDB engine. It needs no account and no docker."""
    console = make_console()
    return _play_demo(console) if example is None else _play_example(console, find_folder(example, files.EXAMPLES))


# ---------------------------------------------------------------- the story
def _play_demo(console: Console) -> int:
    with _open_stage(console, FOLDER) as (scenario, stage):
        with _open_table(console, "what the application does") as add:
            for line in play_story(scenario, stage):
                add(line)
        return _verify(console, stage)


# ---------------------------------------------------------------- an example
def _play_example(console: Console, folder: Path) -> int:
    with _open_stage(console, folder) as (scenario, stage):
        wrong = _play_steps(console, scenario, stage)
        wrong += _show_answers(console, scenario, stage, folder)
        for line in wrong:
            console.print(line, style="red", markup=False, soft_wrap=True)
        if wrong:
            console.print()
        if any(isinstance(action, Expire) for step in scenario.steps for action in step.actions):
            console.print(
                "No emulator runs Time to Live: for each `expire` of the scenario the item was deleted, and its stream"
                " record marked as DynamoDB marks its own deletes.\n",
                soft_wrap=True,
            )
        code = _verify(console, stage)
    if wrong:
        console.print(f"\n{format_count(len(wrong), 'expectation')} did not hold: see above")
    return 1 if wrong else code


def _play_steps(console: Console, scenario: Scenario, stage: EngineScene) -> list[str]:
    wrong: list[str] = []
    with _open_table(console, "what the application does", "as expected") as add:
        for step in scenario.steps:
            before = len(stage.reports())
            line = run_step(step.say, partial(stage.do_all, step.actions), stage.pipeline)
            found = list(list_step_differences(scenario.file, step, stage, before))
            wrong += found
            expected = bool(step.items or step.reports)
            add(line, "[red]no[/red]" if found else "yes" if expected else "")
    return wrong


def _show_answers(console: Console, scenario: Scenario, stage: EngineScene, folder: Path) -> list[str]:
    """Show the answers that the application reads at the end; gives those that are wrong."""
    found = read_answers(folder, stage.rules, stage.client)
    if found:
        table = figures(["what the application reads (read.py)", "and finds"])
        for question, answer in found.items():
            table.add_row(question, show_plain(answer).replace("[", "\\["))
        console.print(table)
        console.print()
    return list(list_wrong_answers(scenario, found))


# ---------------------------------------------------------------- shared by both
@contextmanager
def _open_stage(console: Console, folder: Path) -> Iterator[tuple[Scenario, EngineScene]]:
    """Print the rules of a folder; give its scenario, and a stage with its tables on an engine."""
    rules = replace_settle_seconds(load_rules(folder / RULES), SETTLE_SECONDS)
    scenario = load_scenario(folder, rules)
    shown = [rule for rule in rules.rules.values() if rule.name == rule.title]
    size = f"{format_count(len(shown), 'rule')} over {format_count(len(rules.tables), 'table')}"
    console.print(f"{size}, in an embedded DynamoDB on this machine:\n")
    for rule in shown:
        console.print(f"  {rule.name}: {_summarize_rule(rule, rules)}", markup=False)
    console.print()
    with tempfile.TemporaryDirectory(prefix="sync-rules-demo-") as directory, run_engine() as server:
        aws.isolate_engine(server.url)
        client = aws.dynamodb(server.url)
        create_missing_tables(client, compare_tables(client, rules))
        yield scenario, EngineScene(rules, server.url, Path(directory), folder)


def _summarize_rule(rule: Rule, rules: Rules) -> str:
    """A rule on one line: its kind, what it reads, and what it keeps."""
    arrow = next((arrow for arrow in make_graph(rules).arrows if arrow.rule == rule.title), None)
    return rule.kind if arrow is None else f"{rule.kind} {arrow.keeps}"


@contextmanager
def _open_table(console: Console, what: str, *more: str) -> Iterator[Callable[..., None]]:
    """Give a function that adds the line of a step, and more cells, to a table that grows line by line."""
    table = figures([what, "reached"], ["writes", "already right", "lag ms"])
    for name in more:
        table.add_column(name)
    with Live(table, console=console, auto_refresh=False) as live:

        def add(line: StepResult, *cells: str) -> None:
            reached = ("\n" if console.is_terminal else ", ").join(line.reached) or "nothing"
            table.add_row(line.what, reached, str(line.writes), str(line.right), str(line.lag_ms), *cells)
            live.refresh()

        yield add
    console.print()
    if not console.is_terminal:
        console.print()


def _verify(console: Console, stage: EngineScene) -> int:
    console.print("verify: every copy against its source\n")
    only = select_rules(stage.rules, [])
    verifier = Verifier(stage.rules, stage.pipeline.world, only, grace_seconds=GRACE_SECONDS)
    for finding in verifier.sweep():
        console.print(format_finding(finding), markup=False)
    console.print(tabulate(verifier.tally, only))
    drift = verifier.tally.remaining_count
    console.print(f"\n{verifier.tally.items} items checked, {drift} drift" + ("" if drift else ": every copy is right"))
    return 1 if drift else 0
