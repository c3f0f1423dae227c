"""Files on this machine: replaced as a whole or not at all, locked, and checked before there is something to write.

Invariant: a path that cannot be written is the user's mistake, and is reported before the work begins; no file that a
command reads is overwritten by what it writes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from sync_rules.model.errors import UserError

OWNER_ONLY: Final = 0o600


def open_for_owner(path: Path | str, flags: int) -> int:
    """Open a file, and return its descriptor. Only its owner can read and write a new file. Fits `open(...,
    opener=...)`.
    """
    return os.open(path, flags | os.O_CREAT, OWNER_ONLY)


def read_if_there(path: Path, what: str) -> bytes | None:
    """Read a file; None if it does not exist. Raises UserError if it cannot be read; `what` names it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path}: expected {what} to read, found {error.strerror}") from error


# ---------------------------------------------------------------- replaced as a whole
def name_temporary(path: Path) -> Path:
    """Return the name of the temporary file that replaces `path` once it is complete."""
    return path.with_name(path.name + ".new")


@contextmanager
def replace_file(path: Path, as_error: Callable[[OSError], Exception] = lambda error: error) -> Iterator[BinaryIO]:
    """Open a file that takes its name when the block ends, and is deleted if the block raises. Until then the former
    file stays.

    Raises:
        OSError: when it cannot be made or renamed, or what `as_error` makes of that. Errors of the block are raised
            as they are.
    """
    temporary = name_temporary(path)
    with _convert(as_error):
        file = open(temporary, "wb", opener=open_for_owner)  # noqa: SIM115 -- closed below
    try:
        try:
            with _convert(as_error):
                os.fchmod(file.fileno(), OWNER_ONLY)  # a process that died may have left the file
            yield file
            with _convert(as_error):
                file.flush()
                os.fsync(file.fileno())
        finally:
            with suppress(OSError):  # the rest of the buffer is not needed any more
                file.close()
        with _convert(as_error):
            temporary.replace(path)
            _sync(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def _convert(as_error: Callable[[OSError], Exception]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise as_error(error) from error


def _sync(folder: Path) -> None:
    """Make the entries of a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_whole(path: Path) -> AbstractContextManager[BinaryIO]:
    """Open a file that replaces `path`, as `replace_file` does. Raise UserError if it cannot be written; the former
    file then stays.
    """
    return replace_file(path, lambda error: _explain_write_error(path, error))


def write_whole(path: Path, text: str) -> None:
    """Make or replace a file. Raises like `open_whole`."""
    with open_whole(path) as file, convert_os_errors(path):
        file.write(text.encode())


def convert_os_errors(path: Path) -> AbstractContextManager[None]:
    """Turn an OSError of the block into a UserError that names the file."""
    return _convert(lambda error: _explain_write_error(path, error))


def _explain_write_error(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: expected a place where a file can be written, found: {error.strerror}. Choose another.")


# ---------------------------------------------------------------- locked
@contextmanager
def lock_file(path: Path, verb: str = "run", option: str = "--checkpoint") -> Iterator[None]:
    """Reserve a file for this process by a lock file next to it. The system releases the lock when the process ends.
    `verb`: the command that uses such files. `option`: the option that gives the command another file.

    Raises:
        UserError: when another process has reserved it, or the lock file cannot be made.
    """
    lock = path.with_name(path.name + ".lock")  # not the file itself, which is replaced by each save
    try:
        descriptor = open_for_owner(lock, os.O_RDWR)
    except OSError as error:
        raise UserError(f"{lock}: the lock file cannot be created: {error.strerror}") from error
    with os.fdopen(descriptor) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"{path}: another `sync-rules {verb}` uses this checkpoint. Stop it, or give another with {option}."
            ) from error
        yield


# ---------------------------------------------------------------- checked before the work
def require_own(path: Path | None, *others: Path | None) -> None:
    """Check that a file to be written is none of the others, under any name. The same command reads or writes those.

    Raises:
        UserError: if it is one of them.
    """
    for other in others:
        if path is None or other is None:
            continue
        for place in (path, name_temporary(path)) if path.name else ():
            if place.resolve() == other.resolve() or (place.exists() and other.exists() and place.samefile(other)):
                raise UserError(f"{path}: {other} is used here too, and would be overwritten. Choose another place.")


def require_ending(path: Path, endings: Collection[str]) -> None:
    """Check the extension of a file name. Raises UserError."""
    if path.suffix.lower() not in endings:
        raise UserError(
            f"{path}: expected a name that ends in {', '.join(endings)}, found {path.suffix or 'no ending'}"
        )


def require_place(path: Path) -> None:
    """Check that a file can be written, before the work begins. Leaves nothing behind. Raises UserError."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: expected a file that can be written, found something else. Choose another place.")
    temporary = name_temporary(path)
    with convert_os_errors(path):
        os.close(open_for_owner(temporary, os.O_WRONLY))
        temporary.unlink()
