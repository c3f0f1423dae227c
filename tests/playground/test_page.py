"""Every button of the playground, pressed in a browser by packages/playground/test/page.mjs.

Needs node, Chromium and the folder that `make playground` builds. What is missing skips these tests, and fails them
under REQUIRE_ENGINES=1. CHROMIUM names another browser, PLAYGROUND_SHOTS a folder for pictures.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.playground.test_command import serve
from tests.test_house import ROOT

PACKAGE = ROOT / "packages/playground"
BUILT = PACKAGE / "dist"
SCRIPT = PACKAGE / "test/page.mjs"
SIZE_MAX_BYTES = 22_000_000
CHECKS = [
    *re.findall(r'check\("([^"]+)"', SCRIPT.read_text()),
    *(f"{name} {switch}" for name in ("guard", "second-look", "re-check") for switch in ("on", "off")),
]


def require(found: object, what: str) -> None:
    if not found:
        (pytest.fail if os.environ.get("REQUIRE_ENGINES") == "1" else pytest.skip)(f"{what} is missing")


@pytest.fixture(scope="module")
def built() -> Path:
    require((BUILT / "recording.json").is_file(), "the built playground (make playground)")
    return BUILT


@pytest.fixture(scope="module")
def results(built) -> dict[str, dict[str, object]]:
    """The result of each check, by its name."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium")
    require(shutil.which("node"), "node")
    require(browser, "chromium")
    with serve(built) as (url, _):
        command = ["node", str(SCRIPT), url, str(browser), *filter(None, [os.environ.get("PLAYGROUND_SHOTS")])]
        run = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert run.returncode == 0, run.stderr
    return {one["name"]: one for one in map(json.loads, run.stdout.splitlines())}


@pytest.mark.night
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("check", CHECKS)
def test_page(results, check):
    """The check of this name holds in the browser."""
    assert "mistake" not in results[check], results[check]["mistake"]


def test_page_has_the_licences_that_its_documentation_names():
    """docs/playground.md has the list of the build, which stops at a package with another licence."""
    found = re.search(r"const LICENCES = \[(.*)\];", (PACKAGE / "build.mjs").read_text())
    assert found
    *most, last = re.findall(r'"([^"]+)"', found[1])
    page = " ".join((ROOT / "docs/playground.md").read_text().split())
    assert f"a licence other than {', '.join(most)} and {last}." in page


def test_page_is_small(built):
    """The whole folder is small enough for any host of static files."""
    assert sum(path.stat().st_size for path in built.rglob("*") if path.is_file()) <= SIZE_MAX_BYTES
