"""`sync-rules check`: every problem of a rules file at once, in the order of the file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Final

import typer

from sync_rules.cli import options as opt
from sync_rules.cli.show.text import format_count
from sync_rules.cli.verb import Verb
from sync_rules.language.load import check_rules, read_text
from sync_rules.language.problems import CODES, Problem, find_code, find_severity, list_errors
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.rules.ruleset import Rules

VERB: Final = Verb(excludes={"--explain": ("--format", "--strict-warnings")})


class Form(StrEnum):
    """The forms that the problems are printed in."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def check(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    form: Annotated[
        Form,
        typer.Option("--format", help="text: for people. json: a list. github: annotations."),
    ] = Form.TEXT,
    strict_warnings: Annotated[
        bool, typer.Option("--strict-warnings", help="Exit with 1 if there are warnings.")
    ] = False,
    explain: Annotated[
        str | None, typer.Option(metavar="CODE", help="Show the meaning, reason and cure of a code, e.g. SR201.")
    ] = None,
) -> int:
    """Check a rules file: every problem with its reason and its cure."""
    if explain is not None:
        print(explain_code(explain))
        return 0
    rules, problems = check_rules(read_text(rules_file))
    file = str(rules_file)
    match form:
        case Form.JSON:
            print(json.dumps([problem.as_json(file) for problem in problems], indent=2, ensure_ascii=False))
        case Form.GITHUB:
            print("\n".join([*annotate(file, problems), f"{file}: {format_verdict(rules, problems)}"]))
        case Form.TEXT:
            print(format_report(file, rules, problems))
    return int(rules is None or (strict_warnings and bool(problems)))


def format_report(file: str, rules: Rules | None, problems: list[Problem]) -> str:
    """Return the problems as text for people, with the result in the last line."""
    return "\n\n".join([*(problem.render(file) for problem in problems), f"{file}: {format_verdict(rules, problems)}"])


def format_verdict(rules: Rules | None, problems: list[Problem]) -> str:
    """Return the result in a few words: the counts of what the file declares, or of errors and warnings."""
    wrong = len(list_errors(problems))
    warnings = format_count(len(problems) - wrong, "warning") if len(problems) > wrong else ""
    if rules is None:
        return ", ".join(filter(None, [format_count(wrong, "error"), warnings]))
    parts = (
        format_count(len({rule.title for rule in rules.rules.values()}), "rule"),
        format_count(len(rules.declared_entities), "entity", "entities"),
        format_count(len(rules.tables), "table"),
    )
    return f"{', '.join(parts)}: " + (f"OK, {warnings}" if warnings else "OK")


def explain_code(code: str) -> str:
    """Return a code's meaning, reason and cure. Raises UserError for an unknown code."""
    entry = CODES.get(code.upper())
    if entry is None:
        raise UserError(explain_unknown_name("code", code, CODES))
    return f"{code.upper()} ({find_severity(code.upper())}): {entry.title}\n  why:  {entry.why}\n  cure: {entry.cure}"


# ---------------------------------------------------------------- annotations
# https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
def annotate(file: str, problems: Iterable[Problem]) -> Iterator[str]:
    """Yield a workflow command for each problem: GitHub shows it at its line of the pull request."""
    for problem in problems:
        place = f"file={_escape_property(file)},line={problem.location.line},col={problem.location.column}"
        title, data = _escape_property(problem.code), _escape_data(_format_sentence(problem))
        yield f"::{problem.severity} {place},title={title}::{data}"


def _format_sentence(problem: Problem) -> str:
    way = problem.location.format_path()
    return f"{f'{way}: ' if way else ''}{problem.message}\ncure: {problem.cure or find_code(problem.code).cure}"


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
