"""`sync-rules infra`: generate the blocks of template.yaml that depend on the rules; list each function's permissions.

The template is replaced as a whole or not at all.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules.adapters.files import replacing
from sync_rules.deploy import explain_iam
from sync_rules.deploy.blocks import differences
from sync_rules.deploy.deployment import deployment_of
from sync_rules.deploy.template import index_warnings, place_warnings, rules_noted, warnings, written
from sync_rules.model.errors import UserError

TEMPLATE: Final = Path("template.yaml")


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
        rules_file = rules or rules_noted(_read(template), template)
        for line in explain_iam.lines(deployment_of(rules_file), explain=explain):
            print(line)
        return 0
    text = _read(template)
    rules_file = rules or rules_noted(text, template)
    new = written(text, deployment_of(rules_file), rules_file, template)
    for warning in (
        *warnings(new, template),
        *place_warnings(rules_file, template),
        *index_warnings(text, new, template),
    ):
        print(warning, file=sys.stderr)
    if check:
        return _checked(text, new, template)
    if not _changed(text, new, template):
        print(f"{template} is up to date with {rules_file}")
        return 0
    _write(template, new)
    print(f"updated {template} from {rules_file}: {_changed(text, new, template)}")
    return 0


def _checked(text: str, new: str, template: Path) -> int:
    found = dict(differences(text, new, str(template)))
    for diff in found.values():
        print(diff)
    if found:
        blocks = ", ".join(found)
        print(f"{template} is not up to date ({blocks}): run `sync-rules infra`", file=sys.stderr)
    return int(bool(found))


def _changed(text: str, new: str, template: Path) -> str:
    return ", ".join(name for name, _ in differences(text, new, str(template)))


def _read(template: Path) -> str:
    try:
        return template.read_bytes().decode()
    except FileNotFoundError as error:
        raise UserError(
            f"{template}: no such file. Run it in the folder of template.yaml, or name the file with --template"
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

    with replacing(template, mistake) as file:
        file.write(text.encode())
    template.chmod(mode)
