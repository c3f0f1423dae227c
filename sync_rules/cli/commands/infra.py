"""`sync-rules infra`: the blocks of template.yaml, written from the rules; and what each function may do, and why.

Exit code 0 well; 1 when --check finds that a block differs; 2 for the user's mistake. The template is replaced as a
whole or not at all.
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
    """What of the deployment."""

    TEMPLATE = "template"
    IAM = "iam"


def infra(
    what: Annotated[What, typer.Argument(help="The template's blocks, or what each function may do.")] = What.TEMPLATE,
    *,
    rules: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The rules file; else the one the template is for.")
    ] = None,
    template: Annotated[Path, typer.Option(metavar="FILE", help="The template.")] = TEMPLATE,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; show what differs, and exit with 1.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="With iam: which rule needs which line.")] = False,
) -> int:
    """Write what the template needs of the rules; say what is allowed."""
    if explain and what is not What.IAM:
        raise UserError("--explain is for `sync-rules infra iam`")
    if check and what is not What.TEMPLATE:
        raise UserError("--check is for `sync-rules infra`, without iam")
    if what is What.IAM:
        rules_file = rules or rules_noted(_read(template), template)
        for line in explain_iam.lines(deployment_of(rules_file), explain=explain):
            print(line)
        return 0
    text = _read(template)
    rules_file = rules or rules_noted(text, template)
    new = written(text, deployment_of(rules_file), rules_file, template)
    told = (*warnings(new, template), *place_warnings(rules_file, template), *index_warnings(text, new, template))
    for warning in told:
        print(warning, file=sys.stderr)
    if check:
        return _checked(text, new, template)
    if not _changed(text, new, template):
        print(f"{template} is up to date with {rules_file}")
        return 0
    _write(template, new)
    print(f"{template} is now that of {rules_file}: {_changed(text, new, template)}")
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
        raise UserError(f"{template}: no such file. Run it beside template.yaml, or name that: --template") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{template}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise UserError(f"{template}: cannot be read: {error.strerror}") from error


def _write(template: Path, text: str) -> None:
    """Raises UserError when it cannot be written; then it is as it was. What a link leads to is written."""
    template = template.resolve()
    mode = template.stat().st_mode & 0o777
    if not mode & 0o222 or not os.access(template, os.W_OK):
        raise UserError(f"{template} is read-only: nothing is written. Make it writable first")

    def told(error: OSError) -> UserError:
        return UserError(f"{template} cannot be written: {error.strerror}")

    with replacing(template, told) as file:
        file.write(text.encode())
    template.chmod(mode)
