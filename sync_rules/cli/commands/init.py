"""`sync-rules init`: begin a project in a repository of your own, from the installed package alone.

It writes rules.yaml with one working rule, the schema for your editor, a scenario, and what SAM deploys: template.yaml,
samconfig.toml, a Makefile, the state machine and the locked requirements of the functions. The CI workflow and the
pre-commit hook go to the root of the git repository around the folder. It asks nothing and overwrites nothing.

With --from or --from-account, rules.yaml has the tables and entities of what you have, and no rule yet. Every place
that is not sure has a `# CHECK:` comment. Of items, only key forms and names of attributes are written, never values.

With --skill it prints a page that teaches coding agents to write, test and deploy rules, and writes nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sync_rules.adapters import aws
from sync_rules.cli import options as opt
from sync_rules.cli.modules import load_module
from sync_rules.cli.show.text import format_count
from sync_rules.cli.verb import Verb
from sync_rules.deploy.project import Project, make_project, read_project_text, write_project
from sync_rules.model.errors import UserError

STDIN: Final = Path("-")
SAMPLES: Final = 100
# Of the extras: loaded when an option needs them.
IMPORTER: Final = "sync_rules.extras.discover.imports.importer"
ACCOUNT_IMPORTER: Final = "sync_rules.extras.discover.imports.live_tables"

VERB: Final = Verb(
    needs=dict.fromkeys(("--samples", "--region", "--endpoint-url"), ("--from-account",)),
    excludes={"--from": ("--from-account",), "--skill": ("folder", "--from", "--from-account")},
)


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder of the project; made if it is missing.")
    ] = Path(),
    *,
    sources: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="FILE", help="Model, template or schema with your tables; - for stdin."),
    ] = None,
    account: Annotated[
        list[str] | None, typer.Option("--from-account", metavar="TABLE", help="A live table. Repeatable.")
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", min=0, metavar="N", help="Read at most this number of items of each live table.")
    ] = SAMPLES,
    skill: Annotated[bool, typer.Option("--skill", help="Only print the skill for coding agents (SKILL.md).")] = False,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
) -> int:
    """Begin a project of your own: rules, a scenario, template, CI. Overwrites nothing."""
    if skill:
        print(read_project_text("skill.md"), end="")
        return 0
    if sources and len(sources) > 1:
        raise UserError(f"--from takes one file, found {len(sources)}: begin with one, and add the others by hand")
    imported = _read(sources[0]) if sources else None
    if account:
        importer = load_module(ACCOUNT_IMPORTER, "sync-rules", "init --from-account")
        imported = importer.rules_from_account(aws.dynamodb(endpoint_url, region), account, samples)
    project = make_project(folder, imported.text if imported else None)
    write_project(project)
    for path in sorted(project.new):
        print(f"wrote {path}")
    for path, lines in project.lines.items():
        print(f"\n{path} exists and is left as it is. Add to it:\n\n{lines}")
    if imported and imported.notes:
        print("\n".join([f"\nrules.yaml is made from {imported.origin}. Check:", *(f"  {n}" for n in imported.notes)]))
    print(describe_next_steps(project, with_rules=imported is None))
    return 0


def describe_next_steps(project: Project, *, with_rules: bool) -> str:
    """Describe the first things to do in a new project, in at most five lines."""
    there = os.path.relpath(project.folder)
    by_hand = "look at each CHECK in rules.yaml, write a rule or let `sync-rules propose` find some"
    first = "edit rules.yaml" if with_rules else by_hand
    return "\n".join(
        [
            f"\n{format_count(len(project.new), 'file')} written. Next{'' if there == '.' else f', in {there}'}:",
            f"  {first}, then: sync-rules check && sync-rules infra",
            "  sync-rules test scenarios     # plays scenarios/first.scenario.yaml in memory",
            "  sam build && sam deploy --guided",
            "  sync-rules backfill --remote     # items that exist already",
        ]
    )


def _read(source: Path) -> Any:
    """The rules file that the importer makes of a source, with its origin and notes."""
    importer = load_module(IMPORTER, "sync-rules", "init --from")
    if source == STDIN:
        return importer.rules_from_text(sys.stdin.read(), "standard input")
    return importer.rules_from(source)
