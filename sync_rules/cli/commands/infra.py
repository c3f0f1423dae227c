"""`sync-rules infra`: generate the blocks of template.yaml that depend on the rules; list each function's permissions.

The template is replaced as a whole or not at all. In a project that `sync-rules init` made, and after an upgrade of
sync-rules, the command also brings what the new version changes into the template, infra/machine.asl.json and
requirements.txt, line by line, and shows it. Lines that you changed stay: where both changed the same ones, it shows
those of the new version and exits with 1, once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules import __version__
from sync_rules.adapters.files import replace_file
from sync_rules.cli.verb import Verb
from sync_rules.deploy import originals
from sync_rules.deploy.blocks import differences
from sync_rules.deploy.deployment import deployment_of
from sync_rules.deploy.roles import role_lines
from sync_rules.deploy.template import (
    consistency_warnings,
    index_warnings,
    place_warnings,
    rules_noted,
    settings_warnings,
    warnings,
    written,
)
from sync_rules.model.errors import UserError

TEMPLATE: Final = Path("template.yaml")

VERB: Final = Verb(
    well="it was written, or nothing differs",
    found="--check found a difference, or an upgrade left lines that you had changed",
)


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
        return _permissions(rules or rules_noted(_read(template), template), explain=explain)
    text = _read(template)
    rules_file = rules or rules_noted(text, template)
    upgrade = originals.upgraded(template, text)
    deployment = deployment_of(rules_file)
    new = written(upgrade[0].new if upgrade else text, deployment, rules_file, template)
    for warning in (
        *warnings(new, template),
        *place_warnings(rules_file, template),
        *index_warnings(text, new, template),
        *settings_warnings(deployment, rules_file),
        *consistency_warnings(new, deployment, template),
    ):
        print(warning, file=sys.stderr)
    missing = _missing(template)
    found = _differences(text, new, template, upgrade)
    if missing and not found:
        return 1
    if check:
        return _checked(found, template)
    if not found:
        print(f"{template} is up to date with {rules_file}")
        return 0
    if text != new:
        _write(template, new)
        print(f"updated {template} from {rules_file}: {', '.join(_blocks(text, new, template)) or 'no block'}")
    return _finished(template, upgrade) if upgrade else 0


def _permissions(rules_file: Path, *, explain: bool) -> int:
    for line in role_lines(deployment_of(rules_file), explain=explain):
        print(line)
    return 0


def _missing(template: Path) -> bool:
    """Print the files of the project that are gone, each with its cure."""
    missing = originals.missing(template)
    for path in missing:
        print(f"{path} is missing: restore it, or copy it from a project that `sync-rules init` makes", file=sys.stderr)
    return bool(missing)


def _blocks(text: str, new: str, template: Path) -> dict[str, str]:
    return dict(differences(text, new, str(template)))


def _differences(text: str, new: str, template: Path, upgrade: list[originals.Changed]) -> dict[str, str]:
    """The differences as diffs: of each block, and of what an upgrade changes."""
    return _blocks(text, new, template) | {f"sync-rules {__version__}, {one.path}": one.diff() for one in upgrade}


def _finished(template: Path, upgrade: list[originals.Changed]) -> int:
    """Write the other files of an upgrade, and show what it changed and what it left."""
    for one in upgrade:
        if one.diff():
            if one.path != template:
                _write(one.path, one.new)
            print(f"updated {one.path} to sync-rules {__version__}:\n{one.diff()}")
    originals.keep(template)
    left = [note for one in upgrade for note in one.notes()]
    for note in left:
        print(note, file=sys.stderr)
    return int(bool(left))


def _checked(found: Mapping[str, str], template: Path) -> int:
    for diff in filter(None, found.values()):
        print(diff)
    if found:
        print(f"{template} is not up to date ({', '.join(found)}): run `sync-rules infra`", file=sys.stderr)
    return int(bool(found))


def _read(template: Path) -> str:
    try:
        return template.read_bytes().decode()
    except FileNotFoundError as error:
        kept = template.parent / originals.FOLDER / TEMPLATE.name
        again = f". Or begin with it again: cp {kept} {template}" if kept.is_file() else ""
        raise UserError(
            f"{template}: no such file. Run it in the folder of template.yaml, or name the file with --template{again}"
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
