"""Files that a user asked for: looked at before there is something to write, and there as a whole or not at all.

Law: what cannot be written is the user's to mend, and is said before the work; nothing that is read is written over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from sync_rules.model.errors import UserError

OWNER_ONLY: Final = 0o600


def open_for_owner(path: Path | str, flags: int) -> int:
    """A file descriptor; a file that is made is its owner's only. Fits `open(..., opener=...)`."""
    return os.open(path, flags | os.O_CREAT, OWNER_ONLY)


def beside(path: Path) -> Path:
    """Where a file is written before it takes its place."""
    return path.with_name(path.name + ".new")


@contextmanager
def replacing(path: Path, told: Callable[[OSError], Exception] = lambda error: error) -> Iterator[BinaryIO]:
    """A file to write, which is there under its name once this ends, and is not when this ends with an error. What was
    there before is there until then.

    Raises:
        OSError: when it cannot be made or put in its place, or what `told` makes of that. What the caller's own writes
            raise is the caller's.
    """
    temporary = beside(path)
    with _as(told):
        file = open(temporary, "wb", opener=open_for_owner)  # noqa: SIM115 -- closed below
    try:
        try:
            with _as(told):
                os.fchmod(file.fileno(), OWNER_ONLY)  # it may be left from a process that died
            yield file
            with _as(told):
                file.flush()
                os.fsync(file.fileno())
        finally:
            with suppress(OSError):  # what it has not written is not wanted by now
                file.close()
        with _as(told):
            temporary.replace(path)
            _sync(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _as(told: Callable[[OSError], Exception]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise told(error) from error


def _sync(folder: Path) -> None:
    """What a folder lists would survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
