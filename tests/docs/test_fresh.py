"""A fresh machine: which Python the project accepts, and what is said where no bare Debian can be made."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_house import ROOT

NEEDED = ("bash", "dirname", "id")  # by .ci/fresh before it decides


def fresh(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run .ci/fresh on a machine that has only a few commands."""
    for name in NEEDED:
        (folder / name).symlink_to(shutil.which(name) or "")
    for name, text in more.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    command = [ROOT / ".ci/fresh", "trixie", "true"]
    return subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True, check=False, timeout=20)


@pytest.mark.parametrize(
    ("commands", "why"),
    [
        ({"id": "echo 1000"}, "debootstrap needs root: run it with sudo"),
        ({"id": "echo 0"}, "debootstrap is not installed: apt install debootstrap"),
        ({"id": "echo 0", "debootstrap": "", "unshare": "exit 1"}, "this container may not mount"),
    ],
)
def test_fresh_says_why_no_bare_debian_can_be_made(tmp_path, commands, why):
    """Exit code 77 and one sentence, so that CI can tell a missing tool from a failed test."""
    done = fresh(tmp_path, **commands)
    assert (done.returncode, done.stdout) == (77, "")
    assert done.stderr.startswith(f"no bare Debian trixie can be made here: {why}")


def test_fresh_clone_has_every_target_of_make_that_a_page_or_ci_names():
    """`make NAME` in code of the documentation is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / ".ci/run", ROOT / ".ci/fresh"]
    text = "\n".join(page.read_text() for page in pages)
    command = r"(?:[`\"]|&& )make ([a-z]+)\b|^make ([a-z]+)(?=$| +#| [A-Z]+=)"
    named = {inside or alone for inside, alone in re.findall(command, text, re.MULTILINE)}
    assert {"demo", "test", "fresh"} <= named <= targets


def test_fresh_installs_by_hash_alone():
    """Whatever make and the action install comes by hash, the build backend too: nothing is resolved on the way."""
    lines = [line for name in ("Makefile", "action.yml") for line in (ROOT / name).read_text().splitlines()]
    installs = [line for line in lines if re.search(r"\bpip\b.* install --|\{pip\[@\]\}", line) and "pip=(" not in line]
    assert len(installs) == 6
    for line in installs:
        assert "--require-hashes" in line or {"--no-deps", "--no-build-isolation"} <= {*line.split()}, line
    assert re.search(r"^hatchling==", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)


def test_fresh_locks_name_no_address_and_hash_everything():
    """Any registry may serve the locked packages, and only these."""
    locks = [path for folder in (".", "infra", ".github", "tests/deploy") for path in (ROOT / folder).glob("req*.txt")]
    assert len(locks) == 7
    for lock in locks:
        text = lock.read_text()
        assert "://" not in text, lock
        for package in re.split(r"\n(?=[\w.-]+==)", text)[1:]:
            assert "--hash=sha256:" in package, f"{lock}: {package}"
