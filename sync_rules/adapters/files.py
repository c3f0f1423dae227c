"""Files that a user asked for: looked at before there is something to write, and there as a whole or not at all.

Law: what cannot be written is the user's to mend, and is said before the work; nothing that is read is written over.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from sync_rules.adapters.ownfile import beside, open_for_owner, replacing
from sync_rules.model.errors import UserError


def require_own(path: Path | None, *others: Path | None) -> None:
    """See that a file to be written is none of the others, which the same command reads or writes, under any name.

    Raises:
        UserError: when it is.
    """
    for other in others:
        if path is None or other is None:
            continue
        for place in (path, beside(path)) if path.name else ():
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
    temporary = beside(path)
    try:
        os.close(open_for_owner(temporary, os.O_WRONLY))
        temporary.unlink()
    except OSError as error:
        raise _refused(path, error) from error


def write_whole(path: Path, text: str) -> None:
    """Make or replace a file. Raises like `writing_whole`."""
    with writing_whole(path) as file, as_mistake(path):
        file.write(text.encode())


def writing_whole(path: Path) -> AbstractContextManager[BinaryIO]:
    """A file to write, which is there under its name once this ends, and is not when this ends with an error.

    Raises:
        UserError: when it cannot be written; what was there before is there still.
    """
    return replacing(path, lambda error: _refused(path, error))


@contextmanager
def as_mistake(path: Path) -> Iterator[None]:
    """An error of the file as the UserError that names it."""
    try:
        yield
    except OSError as error:
        raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: expected a place where a file can be written, found: {error.strerror}. Choose another.")
