"""A real browser for tests: which one, how it is started, and a page of it that sees nothing but what it is given.

CHROMIUM_BIN names one; else one that is installed, else the one that `make engines` unpacked. As with the other engines
a missing browser skips its tests, and fails them under REQUIRE_ENGINES=1.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

from tests.support.engines import ROOT

NAMES = ("chromium", "chromium-browser", "google-chrome")
UNPACKED = ROOT / ".engines/chromium"  # with the libraries and fonts that a bare machine lacks
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
]  # containers have no user namespaces, little /dev/shm


def found() -> Path | None:
    """The browser to use, if there is one."""
    named = os.environ.get("CHROMIUM_BIN")
    if named:
        return Path(named)
    installed = next(filter(None, map(shutil.which, NAMES)), None)
    ours = UNPACKED / "chromium"
    return Path(installed) if installed else ours if ours.is_file() else None


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless browser. Skips the test where there is none, or fails it where all engines are required."""
    binary = found()
    if binary is None:
        _missing(f"no browser: set CHROMIUM_BIN, install one of {', '.join(NAMES)}, or run `make engines`")
    assert binary is not None
    env = dict(os.environ)
    if binary.parent == UNPACKED:
        env |= {"LD_LIBRARY_PATH": str(UNPACKED / "lib"), "FONTCONFIG_FILE": str(UNPACKED / "fonts.xml")}
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=binary, args=FLAGS, env=env)
        except Error as error:
            _missing(f"{binary} does not start: {error.message.splitlines()[0]}")
        try:
            yield started
        finally:
            started.close()


def _missing(why: str) -> None:
    if os.environ.get("REQUIRE_ENGINES") == "1":
        pytest.fail(why)
    pytest.skip(why)
