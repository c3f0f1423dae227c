"""Files that are there as a whole or not at all, for their owner only, as they name keys.

Law: whoever opens the file sees what was there before or all of what is there now (temporary file, rename).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from sync_rules.errors import UserError
from sync_rules.failure_log import OWNER_ONLY, open_for_owner


def require_own(path: Path | None, *others: Path | None) -> None:
    """See that a file to be written is none of the others, which the same command reads or writes, under any name.

    Raises:
        UserError: when it is.
    """
    for other in others:
        if path is None or other is None:
            continue
        for place in (path, _beside(path)) if path.name else ():
            if place.resolve() == other.resolve() or (place.exists() and other.exists() and place.samefile(other)):
                raise UserError(f"{path}: {other} is used here too, and would be written over. Choose another place.")


def require_ending(path: Path, endings: Collection[str]) -> None:
    """See that the name of a file says what will be in it. Raises UserError when it does not."""
    if path.suffix.lower() not in endings:
        raise UserError(
            f"{path}: expected a name that ends in {', '.join(endings)}, found {path.suffix or 'no ending'}"
        )


def require_place(path: Path) -> None:
    """See that a file can be written, before there is something to write. Leaves nothing behind.

    Raises:
        UserError: when it cannot.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: expected a file that can be written, found something else. Choose another place.")
    temporary = _beside(path)
    try:
        os.close(open_for_owner(temporary, os.O_WRONLY))
        temporary.unlink()
    except OSError as error:
        raise _refused(path, error) from error


def write_whole(path: Path, text: str) -> None:
    """Make or replace a file. Raises like `writing_whole`."""
    with writing_whole(path) as file, as_mistake(path):
        file.write(text)


@contextmanager
def writing_whole(path: Path) -> Iterator[TextIO]:
    """A file to write, which is there under its name once this ends, and is not when this ends with an error.

    Raises:
        UserError: when it cannot be written; what was there before is there still.
    """
    temporary = _beside(path)
    with as_mistake(path):
        file = open(temporary, "w", encoding="utf-8", opener=open_for_owner)  # noqa: SIM115 -- closed below
    try:
        try:
            with as_mistake(path):
                os.fchmod(file.fileno(), OWNER_ONLY)  # it may be left from a run that died
            yield file
            with as_mistake(path):
                file.flush()
                os.fsync(file.fileno())
        finally:
            with suppress(OSError):  # what it has not written is not wanted by now
                file.close()
        with as_mistake(path):
            temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def as_mistake(path: Path) -> Iterator[None]:
    """An error of the file as the UserError that names it."""
    try:
        yield
    except OSError as error:
        raise _refused(path, error) from error


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _refused(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: expected a place where a file can be written, found: {error.strerror}. Choose another.")
