"""Chooses what installs the packages of the bundle: uv where there is one, else the pip of this Python.

Both install for the machine of Lambda and not for this one, locked packages with hashes, and no source distributions.
"""

from __future__ import annotations

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from sync_rules.model.errors import UserError

MANYLINUX: Final = re.compile(r"(?P<machine>\w+?)-manylinux_2_(?P<glibc>\d+)")  # as uv calls a platform
OLDEST_GLIBC: Final = 17  # of manylinux2014; no wheel for aarch64 is older
LEFTOVERS: Final = ("bin", ".lock", "CACHEDIR.TAG", ".gitignore")  # an installer leaves these beside the packages
LOCKED: Final = ("--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:")


def command(locked: Path, directory: Path, python: str, platform: str) -> list[str]:
    """The command that installs the locked packages into a directory.

    Raises:
        UserError: when this Python has neither uv nor pip, or has pip alone and the platform is one that only uv knows.
    """
    what = ["--python-version", python, "--target", str(directory), "--requirement", str(locked)]
    uv = [sys.executable, "-m", "uv"] if find_spec("uv") else [found] if (found := shutil.which("uv")) else []
    if uv:
        to = ("--link-mode", "copy", "--python", sys.executable, "--python-platform", platform)
        return [*uv, "pip", "install", *LOCKED, *to, *what]
    if not find_spec("pip"):
        raise UserError(f"{sys.executable} has neither uv nor pip to install the packages of the functions: install uv")
    tags = [word for tag in tags_of(platform) for word in ("--platform", tag)]
    return [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-compile",
        *LOCKED,
        *tags,
        *what,
    ]


def tags_of(platform: str) -> list[str]:
    """The tags of the wheels that a platform takes, as pip wants them, best first.

    Raises:
        UserError: when it is no manylinux platform.
    """
    match = MANYLINUX.fullmatch(platform)
    if match is None:
        raise UserError(
            f"pip cannot install for {platform}: expected a platform such as aarch64-manylinux_2_28 in BUNDLE_PLATFORM."
            " Or install uv, which knows others"
        )
    machine = match["machine"]
    newest_first = [f"manylinux_2_{glibc}_{machine}" for glibc in range(int(match["glibc"]), OLDEST_GLIBC - 1, -1)]
    return [*newest_first, f"manylinux2014_{machine}"]


def without_leftovers(directory: Path) -> None:
    """Remove what an installer leaves beside the packages."""
    for name in LEFTOVERS:
        path = directory / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
