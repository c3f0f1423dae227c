"""`sync-rules infra`: generate the blocks of template.yaml that depend on the rules; list each function's permissions.

The command replaces the template as a whole or not at all, and writes no other file. After an upgrade of sync-rules it
names, once, the files of your project that differ from those of the new version, and exits with 1.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules import __version__
from sync_rules.adapters.files import replace_file
from sync_rules.cli.verb import Verb
from sync_rules.deploy.blocks import compare_blocks
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.project import find_missing_files, find_outdated_files
from sync_rules.deploy.roles import describe_roles
from sync_rules.deploy.template import (
    fill_template,
    find_rules_file,
    warn_of_consistency,
    warn_of_indexes,
    warn_of_limits,
    warn_of_place,
    warn_of_settings,
)
from sync_rules.model.errors import UserError

TEMPLATE: Final = Path("template.yaml")
COMPARE: Final = (
    "To see what is new, make a project with `sync-rules init NEW` and compare: `git diff --no-index FILE NEW/FILE`. "
    "Take over what you need"
)

VERB: Final = Verb()


class What(StrEnum):
    """Parts of the deployment."""

    TEMPLATE = "template"
    IAM = "iam"


def infra(
    what: Annotated[
        What, typer.Argument(help="template: write its generated blocks. iam: list each function's permissions.")
    ] = What.TEMPLATE,
    *,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The rules file. Default: the one that the template names.")
    ] = None,
    template: Annotated[Path, typer.Option(metavar="FILE", help="The template.")] = TEMPLATE,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; show the differences and exit with 1 if there are any.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="With iam: show which rule needs which permission.")
    ] = False,
) -> int:
    """Generate the template's rule-dependent parts; list permissions."""
    if explain and what is not What.IAM:
        raise UserError("--explain needs `sync-rules infra iam`")
    if check and what is not What.TEMPLATE:
        raise UserError("--check cannot be given with iam")
    if what is What.IAM:
        rules_file = rules or find_rules_file(_read(template), template)
        print("\n".join(describe_roles(read_deployment(rules_file), explain=explain)))
        return 0
    text = _read(template)
    rules_file = rules or find_rules_file(text, template)
    deployment = read_deployment(rules_file)
    new = fill_template(text, deployment, rules_file, template)
    for warning in (
        *warn_of_limits(new, template),
        *warn_of_place(rules_file, template),
        *warn_of_indexes(text, new, template),
        *warn_of_settings(deployment, rules_file),
        *warn_of_consistency(new, deployment, template),
    ):
        print(warning, file=sys.stderr)
    incomplete = _report_files(template, text)
    changed = dict(compare_blocks(text, new, str(template)))
    if check:
        for diff in changed.values():
            print(diff)
        if changed:
            print(f"{template} is not up to date ({', '.join(changed)}): run `sync-rules infra`", file=sys.stderr)
        return int(bool(changed) or incomplete)
    if text != new:
        _write(template, new)
        print(f"updated {template} from {rules_file}: {', '.join(changed) or 'no block'}")
    elif not incomplete:
        print(f"{template} is up to date with {rules_file}")
    return int(incomplete)


def _report_files(template: Path, text: str) -> bool:
    """Print the other files of the project that are missing or of another version, with a cure. True if there are."""
    missing, outdated = find_missing_files(template), find_outdated_files(template, text)
    for path in missing:
        print(f"{path} is missing: restore it, or copy it from a project that `sync-rules init` makes", file=sys.stderr)
    if outdated:
        head = f"these files differ from those of sync-rules {__version__}, and are left as they are:"
        print(head, *(f"  {path}" for path in outdated), COMPARE, sep="\n", file=sys.stderr)
    return bool(missing or outdated)


def _read(template: Path) -> str:
    try:
        return template.read_bytes().decode()
    except FileNotFoundError as error:
        raise UserError(
            f"{template}: no such file. Run it in the folder of template.yaml, or name the file with --template. "
            "`sync-rules init` in an empty folder writes one"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{template}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise UserError(f"{template}: cannot be read: {error.strerror}") from error


def _write(template: Path, text: str) -> None:
    """Replace the template, or the file that a link of its name leads to. Raises UserError when it cannot be written;
    then it is unchanged.
    """
    template = template.resolve()
    mode = template.stat().st_mode & 0o777
    if not mode & 0o222 or not os.access(template, os.W_OK):
        raise UserError(f"{template} is read-only: nothing was written. Make it writable first")

    def mistake(error: OSError) -> UserError:
        return UserError(f"{template} cannot be written: {error.strerror}")

    with replace_file(template, mistake) as file:
        file.write(text.encode())
    template.chmod(mode)
