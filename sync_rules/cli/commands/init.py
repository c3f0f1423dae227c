"""`sync-rules init`: begin a project in a repository of your own, from the installed package alone.

It writes rules.yaml with one working rule, the schema for your editor, a scenario, and what SAM deploys: template.yaml,
samconfig.toml, a Makefile, the state machine and the locked requirements of the functions. The CI workflow and the
pre-commit hook go to the root of the git repository around the folder. It asks nothing and overwrites nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sync_rules.cli.show.text import counted
from sync_rules.deploy.project import Project, project_in, write


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder of the project; made if it is missing.")
    ] = Path(),
) -> int:
    """Begin a project of your own: rules, a scenario, template, CI. Overwrites nothing."""
    project = project_in(folder)
    write(project)
    for path in sorted(project.new):
        print(f"wrote {path}")
    for path, lines in project.lines.items():
        print(f"\n{path} exists and is left as it is. Add to it:\n\n{lines}")
    print(next_steps(project))
    return 0


def next_steps(project: Project) -> str:
    """The first things to do in a new project, in at most five lines."""
    there = os.path.relpath(project.folder)
    return "\n".join(
        [
            f"\n{counted(len(project.new), 'file')} written. Next{'' if there == '.' else f', in {there}'}:",
            "  edit rules.yaml, then: sync-rules check && sync-rules infra",
            "  sync-rules test scenarios     # plays scenarios/first.scenario.yaml in memory",
            "  sam build && sam deploy --guided",
            "  sync-rules backfill --remote     # items that exist already",
        ]
    )
