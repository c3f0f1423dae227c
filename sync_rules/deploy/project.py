"""A project: the files that `sync-rules init` writes into a user's own repository, and what an upgrade finds in them.

Invariant: no file is overwritten. If one of the files exists, `init` writes none, except that it leaves a Makefile and
a .pre-commit-config.yaml as they are and shows the lines to add. After an upgrade `infra` names the files that differ.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sync_rules import DOCS, __version__
from sync_rules.adapters.files import read_if_there
from sync_rules.deploy import files
from sync_rules.deploy.blocks import find_blocks, read_block
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.resources import VERSION
from sync_rules.deploy.template import clear_template, empty_any_blocks, empty_blocks, fill_template
from sync_rules.deploy.yamltext import read_yaml
from sync_rules.language.kinds.registry import KINDS
from sync_rules.language.schema import format_schema
from sync_rules.model.errors import UserError

PARTS: Final = Path(__file__).parent / "project"
RULES: Final = "rules.yaml"
SCENARIO: Final = "scenarios/first.scenario.yaml"
WORKFLOWS: Final = Path(".github/workflows")
PRE_COMMIT: Final = ".pre-commit-config.yaml"
SCHEMA: Final = "sync-rules.schema.json"  # a project has it, a clone of sync-rules does not
LOCK: Final = "requirements.txt"
PAGE: Final = "docs/deploy.md"  # which comments of the template name
LOCK_HEAD: Final = """\
# The packages in the functions, locked. Packages that your `call` functions import go below, with their hashes too.
# boto3 and botocore are not among them: Lambda has them.
"""


@dataclass(frozen=True)
class Project:
    """The files of a project. Write those in `new`; the user adds `lines` to files that exist."""

    folder: Path
    new: Mapping[Path, str]
    lines: Mapping[Path, str]


def make_project(folder: Path, rules: str | None = None) -> Project:
    """Make the project for a folder, with this rules file, or with a rules file of one example rule.
    The CI workflow and the pre-commit configuration belong to the root of the git repository around the folder.

    Raises:
        UserError: if the rules are wrong or no template can be made from them.
    """
    root = _find_root(folder)
    place = folder.resolve().relative_to(root.resolve()).as_posix()
    marks = {"VERSION": __version__, "FOLDER": place, "RULES": (Path(place) / RULES).as_posix()}
    scenario = read_project_text("first.scenario.yaml" if rules is None else "empty.scenario.yaml")
    rules = files.fill_marks(read_project_text("rules.yaml"), {"KINDS": ", ".join(KINDS)}) if rules is None else rules
    own = {
        RULES: rules,
        SCENARIO: scenario,
        files.SAM_CONFIG: files.read_file(files.SAM_CONFIG),
        **make_current_files(),
        files.TEMPLATE: _make_template(rules),
    }
    shared = {
        folder / "Makefile": read_project_text("Makefile"),
        root / PRE_COMMIT: files.fill_marks(read_project_text("pre-commit.yaml"), marks),
    }
    new = {folder / name: text for name, text in own.items()}
    new[_choose_workflow_file(root, place)] = files.fill_marks(read_project_text("workflow.yml"), marks)
    new |= {path: text for path, text in shared.items() if not os.path.lexists(path)}
    left = {path: text.removeprefix("repos:\n") for path, text in shared.items() if path not in new}
    return Project(folder, new, left)


def make_current_files() -> dict[str, str]:
    """Make the files of a project that may change with the version of sync-rules, by name. The template has no
    rules.
    """
    template = empty_blocks(files.read_file(files.TEMPLATE), Path(files.TEMPLATE))
    lock = [line for line in files.read_file(files.REQUIREMENTS).splitlines() if not line.startswith("#")]
    return {
        files.TEMPLATE: template.replace(PAGE, f"{DOCS}/deploy.md"),
        SCHEMA: format_schema(),
        LOCK: LOCK_HEAD + "\n".join(lock) + "\n",
        files.MACHINE: files.read_file(files.MACHINE),
        files.CLI_REQUIREMENTS: files.read_file(files.CLI_REQUIREMENTS),
    }


def find_missing_files(template: Path) -> list[Path]:
    """List the files that a deployment needs in the folder of a project's template, and that do not exist."""
    folder = template.parent
    needed = (LOCK, files.MACHINE) if (folder / SCHEMA).exists() else ()
    return [folder / name for name in needed if not (folder / name).exists()]


def find_outdated_files(template: Path, text: str) -> list[Path]:
    """List the files of a project that differ from those of this version, if another version wrote the template's
    blocks.

    Raises:
        UserError: if a file cannot be read, or the template's blocks are not in order.
    """
    name = str(template)
    environment = read_block(text, "environment", name) if "environment" in find_blocks(text, name) else ""
    if (read_yaml(environment, name) or {}).get(VERSION, __version__) == __version__:
        return []
    folder, current = template.parent, make_current_files()
    if not (folder / SCHEMA).exists():
        return []
    found = {other: read_if_there(folder / other, "a text") for other in current if other != files.TEMPLATE}
    differing = [template] if _differ(empty_any_blocks(text, template), current[files.TEMPLATE]) else []
    return differing + [
        folder / other
        for other, content in found.items()
        if content is not None and _differ(content.decode(errors="replace"), current[other])
    ]


def _differ(one: str, other: str) -> bool:
    """True if texts differ in more than the ends of their lines."""
    return one.splitlines() != other.splitlines()


def read_project_text(name: str) -> str:
    """Return a text file of a new project."""
    return (PARTS / name).read_text(encoding="utf-8")


def _make_template(rules: str) -> str:
    with tempfile.TemporaryDirectory(prefix="sync-rules-init-") as directory:
        rules_file, template = Path(directory, RULES), Path(directory, files.TEMPLATE)
        rules_file.write_text(rules, encoding="utf-8")
        text, deployment = make_current_files()[files.TEMPLATE], read_deployment(rules_file)
        if not deployment.rules.rules:
            return clear_template(text, rules_file, template)
        return fill_template(text, deployment, rules_file, template)


def _find_root(folder: Path) -> Path:
    """The root of the git repository around a folder, or the folder itself. Given as a path from the same start."""
    whole = folder.resolve()
    for above in (whole, *whole.parents):
        if os.path.lexists(above / ".git"):
            return Path(os.path.relpath(above)) if not folder.is_absolute() else above
    return folder


def _choose_workflow_file(root: Path, place: str) -> Path:
    """The workflow's file: named after the folder where another project of the repository has the plain name."""
    plain = root / WORKFLOWS / "sync-rules.yml"
    if place == "." or not os.path.lexists(plain):
        return plain
    return plain.with_name(f"sync-rules-{re.sub(r'[^A-Za-z0-9]+', '-', place).strip('-')}.yml")


# ---------------------------------------------------------------- writing
def write_project(project: Project) -> None:
    """Write the new files of a project, all of them or none.

    Raises:
        UserError: with the list, if files of these names exist; or if a file cannot be written.
    """
    taken = [path for path in project.new if os.path.lexists(path)]
    taken += sorted({above for path in project.new for above in path.parents if above.exists() and not above.is_dir()})
    if taken:
        listed = "".join(f"\n  {path}" for path in taken)
        raise UserError(
            f"these files exist, and nothing was written:{listed}\nMove them away, or name a folder for the project:"
            " sync-rules init FOLDER"
        )
    with _undo_on_error() as (made_folders, made_files):
        for path, text in project.new.items():
            _make_folder(path.parent, made_folders)
            try:
                with path.open("x", encoding="utf-8", newline="") as file:
                    made_files.append(path)
                    file.write(text)
            except OSError as error:
                raise UserError(f"{path} cannot be written: {error.strerror}. Nothing was written") from error


@contextmanager
def _undo_on_error() -> Iterator[tuple[list[Path], list[Path]]]:
    """Lists for the folders and files that are made; they are removed again when the block raises."""
    folders: list[Path] = []
    found: list[Path] = []
    try:
        yield folders, found
    except BaseException:
        for path in found:
            with suppress(OSError):
                path.unlink()
        for path in reversed(folders):
            with suppress(OSError):
                path.rmdir()
        raise


def _make_folder(folder: Path, made: list[Path]) -> None:
    for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        try:
            missing.mkdir()
        except OSError as error:
            raise UserError(f"{missing} cannot be made: {error.strerror}. Nothing was written") from error
        made.append(missing)
