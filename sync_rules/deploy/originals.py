"""Keeps what sync-rules wrote of a project, beside what the user made of it, so that an upgrade loses neither.

`infra/originals` of a project holds its template, without the parts of the rules, and two more files, as the installed
version wrote them. A newer version brings what it changed since into the user's files, line by line.

Invariant: no line that the user changed is overwritten. Where both changed the same lines, the user's stay, and those
of the newer version are shown. There are no marks of conflicts.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from sync_rules import DOCS, __version__
from sync_rules.adapters.files import read_if_there, write_whole
from sync_rules.deploy import files
from sync_rules.deploy.template import fixed_part, fixed_part_of_any
from sync_rules.language.schema import schema_text

FOLDER: Final = "infra/originals"
README: Final = "README.md"
SCHEMA: Final = "sync-rules.schema.json"
LOCK: Final = "requirements.txt"
PAGE: Final = "docs/deploy.md"  # which comments of the template name
LOCK_HEAD: Final = """\
# The packages in the functions, locked. Packages that your `call` functions import go below, with their hashes too.
# boto3 and botocore are not among them: Lambda has them.
"""
NOTE: Final = """\
# Originals

These files are as sync-rules {version} wrote them. After an upgrade `sync-rules infra` compares yours with them, so
that it keeps what you changed. Commit this folder, and change nothing in it.
"""


@dataclass(frozen=True)
class Kept:
    """Lines of `mine` that stayed although `theirs` has others in their place."""

    mine: tuple[str, ...]
    theirs: tuple[str, ...]


class Common(NamedTuple):
    """A run of lines that all three texts have."""

    base: int
    mine: int
    theirs: int
    size: int


@dataclass(frozen=True)
class Changed:
    """A file of a project before and after an upgrade. Of the template only the part outside the generated blocks."""

    path: Path
    old: str
    new: str
    kept: tuple[Kept, ...] = ()

    def diff(self) -> str:
        """The changes as a unified diff; empty when there are none."""
        titles = (str(self.path), f"{self.path} (sync-rules {__version__})")
        return "\n".join(difflib.unified_diff(self.old.splitlines(), self.new.splitlines(), *titles, lineterm=""))

    def notes(self) -> Iterator[str]:
        """The lines of the user's that stayed, each with those that the installed version has in their place."""
        for kept in self.kept:
            theirs = "".join(f"\n  {line}" for line in kept.theirs) or "\n  (no such lines)"
            place = f"{self.path}: these lines changed in sync-rules {__version__}, and you have changed them"
            mine = "".join(f"\n  {line}" for line in kept.mine) or "\n  (you removed them)"
            yield f"{place}. Yours stay:{mine}\nsync-rules {__version__} has:{theirs}"


def as_written() -> dict[str, str]:
    """The files of a project that an upgrade looks after, as this version writes them, by name."""
    template = fixed_part(files.text_of(files.TEMPLATE), Path(files.TEMPLATE))
    lock = [line for line in files.text_of(files.REQUIREMENTS).splitlines() if not line.startswith("#")]
    return {
        files.TEMPLATE: template.replace(PAGE, f"{DOCS}/deploy.md"),
        files.MACHINE: files.text_of(files.MACHINE),
        LOCK: LOCK_HEAD + "\n".join(lock) + "\n",
    }


def kept() -> Mapping[str, str]:
    """The content of the folder of originals, by name."""
    return {README: NOTE.format(version=__version__), **as_written()}


def upgraded(template: Path, text: str) -> list[Changed]:
    """The files beside a template that this version changes or would change; the template is the first of them.

    None where nothing was kept, as in a clone, or where this version wrote what was kept.

    Raises:
        UserError: when a file cannot be read, or the template's blocks are not in order.
    """
    folder = template.parent
    found: list[Changed] = []
    for name, new in as_written().items():
        base = _read(folder / FOLDER / name)
        is_template = name == files.TEMPLATE
        path = template if is_template else folder / name
        old = fixed_part_of_any(text, template) if is_template else _read(path)
        if base is not None and old is not None and base.splitlines() != new.splitlines():
            lines, stayed = merged(base.splitlines(), old.splitlines(), new.splitlines())
            found.append(Changed(path, old, _ended(lines, old), stayed))
    if found:
        for name, new in whole().items():
            old = _read(folder / name)
            if old is not None and old != new:
                found.append(Changed(folder / name, old, new))
    return found


def whole() -> dict[str, str]:
    """The files of a project that no user edits, by name: an upgrade replaces them."""
    return {SCHEMA: schema_text(), files.CLI_REQUIREMENTS: files.text_of(files.CLI_REQUIREMENTS)}


def missing(template: Path) -> list[Path]:
    """The files beside a template that an upgrade compares, and that are gone. None where no originals are kept."""
    folder = template.parent
    if not (folder / FOLDER).is_dir():
        return []
    names = [*as_written(), *(f"{FOLDER}/{name}" for name in as_written())]
    return [path for name in names if name != files.TEMPLATE and not (path := folder / name).exists()]


def keep(template: Path) -> None:
    """Keep what this version writes, beside a template. Raises UserError when it cannot be written."""
    for name, text in kept().items():
        path = template.parent / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
        path.chmod(0o644)


def _ended(lines: list[str], old: str) -> str:
    """Lines as one text, ended as those of the old one."""
    end = "\r\n" if "\r\n" in old else "\n"
    return "".join(f"{line}{end}" for line in lines)


def _read(path: Path) -> str | None:
    found = read_if_there(path, "a text")
    return None if found is None else found.decode(errors="surrogateescape")


# ---------------------------------------------------------------- merging
def merged(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> tuple[list[str], tuple[Kept, ...]]:
    """The lines of `mine` with the changes that `theirs` made to `base`, and what was kept against them."""
    result: list[str] = []
    kept: list[Kept] = []
    at = Common(0, 0, 0, 0)
    for common in _common(base, mine, theirs):
        was = base[at.base : common.base]
        here, there = mine[at.mine : common.mine], theirs[at.theirs : common.theirs]
        if here not in (was, there) and was != there:
            kept.append(Kept(tuple(here), tuple(there)))
        result += there if here == was else here
        result += base[common.base : common.base + common.size]
        base_at, mine_at, theirs_at = (start + common.size for start in common[:3])
        at = Common(base_at, mine_at, theirs_at, 0)
    return result, tuple(kept)


def _common(base: Sequence[str], mine: Sequence[str], theirs: Sequence[str]) -> Iterator[Common]:
    """The runs of lines that all three have, in order; the last one is empty, at the end of all."""
    ours, others = (
        difflib.SequenceMatcher(None, base, other, autojunk=False).get_matching_blocks() for other in (mine, theirs)
    )
    for one in ours:
        for other in others:
            start = max(one.a, other.a)
            size = min(one.a + one.size, other.a + other.size) - start
            if size > 0:
                yield Common(start, one.b + start - one.a, other.b + start - other.a, size)
    yield Common(len(base), len(mine), len(theirs), 0)
