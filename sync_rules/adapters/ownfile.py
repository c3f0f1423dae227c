"""Files of ours on disk: for their owner only, since they name keys, and replaced as a whole.

Law: whoever opens a file sees what was there before or all of what is there now, also after a power cut (temporary
file beside it, fsync, rename, fsync of the folder).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

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
