"""Files that are there as a whole or not at all, for their owner only, as they name keys.

Law: whoever opens the file sees what was there before or all of what is there now (temporary file, rename).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sync_rules.errors import UserError
from sync_rules.failure_log import OWNER_ONLY, open_for_owner


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
    """Make or replace a file.

    Raises:
        UserError: when it cannot be written; what was there before is there still.
    """
    temporary = _beside(path)
    try:
        with open(temporary, "w", encoding="utf-8", opener=open_for_owner) as file:
            os.fchmod(file.fileno(), OWNER_ONLY)  # it may be left from a run that died
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise _refused(path, error) from error


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".new")


def _refused(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: expected a place where a file can be written, found: {error.strerror}. Choose another.")
