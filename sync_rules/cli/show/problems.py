"""The problems of a rules file in the forms that other tools read: SARIF for code scanning, annotations for GitHub.

SARIF 2.1.0: https://docs.oasis-open.org/sarif/sarif/v2.1.0/. Annotations:
https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from sync_rules import DOCS, HOME, __version__
from sync_rules.language.problems import Problem, code_of

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(file: str, problems: Iterable[Problem]) -> dict[str, Any]:
    """A SARIF log with one run: a rule for each code that occurs, a result for each problem."""
    found = list(problems)
    codes = sorted({problem.code for problem in found})
    driver = {
        "name": "sync-rules",
        "version": __version__,
        "informationUri": HOME,
        "rules": [
            {
                "id": code,
                "shortDescription": {"text": code_of(code).title},
                "fullDescription": {"text": code_of(code).why},
                "help": {"text": code_of(code).cure},
                "helpUri": f"{DOCS}/checks.md",
            }
            for code in codes
        ],
    }
    results = [
        {
            "ruleId": problem.code,
            "ruleIndex": codes.index(problem.code),
            "level": problem.severity,
            "message": {"text": _sentence(problem)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": Path(file).as_posix()},
                        "region": {"startLine": problem.location.line, "startColumn": problem.location.column},
                    },
                }
            ],
        }
        for problem in found
    ]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def github(file: str, problems: Iterable[Problem]) -> Iterator[str]:
    """A workflow command for each problem: GitHub shows it at its line of the pull request."""
    for problem in problems:
        place = f"file={_property(file)},line={problem.location.line},col={problem.location.column}"
        yield f"::{problem.severity} {place},title={_property(problem.code)}::{_data(_sentence(problem))}"


def _sentence(problem: Problem) -> str:
    way = problem.location.format_path()
    return f"{f'{way}: ' if way else ''}{problem.message}\ncure: {problem.cure or code_of(problem.code).cure}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
