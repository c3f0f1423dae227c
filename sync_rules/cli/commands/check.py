"""`sync-rules check`: every problem of a rules file at once, in the order of the file.

Exit code 0 when there are no errors (warnings do not count), 1 when there are, 2 when the file cannot be read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sync_rules.language import lint
from sync_rules.language.codes import CODES
from sync_rules.language.load import check_rules, read_text
from sync_rules.language.problems import Problem, errors, severity
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import unknown
from sync_rules.rules.ruleset import Rules


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The rules file.")] = Path("rules.yaml"),
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the problems as a JSON array.")] = False,
    strict_warnings: Annotated[bool, typer.Option("--strict-warnings", help="Exit with 1 for warnings too.")] = False,
    explain: Annotated[
        str | None, typer.Option(metavar="CODE", help="Say what a code means, why, and its cure.")
    ] = None,
) -> int:
    """Say what is wrong with a rules file, why, and what cures it."""
    if explain is not None:
        print(explained(explain))
        return 0
    rules, problems = check_rules(read_text(file))
    if as_json:
        print(json.dumps([problem.as_json(str(file)) for problem in problems], indent=2, ensure_ascii=False))
    else:
        print(report(str(file), rules, problems))
    return int(rules is None or (strict_warnings and bool(problems)))


def report(file: str, rules: Rules | None, problems: list[Problem]) -> str:
    """The problems for people, and one line that sums up."""
    wrong = errors(problems)
    warnings = _counted(len(problems) - len(wrong), "warning")
    if rules is None:
        verdict = ", ".join(filter(None, [_counted(len(wrong), "error"), warnings]))
    else:
        parts = (
            _counted(len({rule.title for rule in rules.rules.values()}), "rule") or "no rules",
            _counted(len(lint.declared(rules)), "entity", "entities") or "no entities",
            _counted(len(rules.tables), "table") or "no tables",
        )
        verdict = f"{', '.join(parts)}: well" + (f", {warnings}" if warnings else "")
    return "\n\n".join([*(problem.render(file) for problem in problems), f"{file}: {verdict}"])


def explained(code: str) -> str:
    """What a code means.

    Raises:
        UserError: when there is no such code.
    """
    entry = CODES.get(code.upper())
    if entry is None:
        raise UserError(unknown("code", code, CODES))
    return f"{code.upper()} ({severity(code.upper())}): {entry.title}\n  why:  {entry.why}\n  cure: {entry.cure}"


def _counted(number: int, one: str, many: str = "") -> str:
    return "" if number == 0 else f"{number} {one if number == 1 else many or one + 's'}"
