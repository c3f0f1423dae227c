"""Locks and installations of a fresh machine."""

from __future__ import annotations

import json
import re

import pytest

from tests.test_house import ROOT


def test_fresh_clone_has_every_target_of_make_that_a_page_or_ci_names():
    """`make NAME` in code of the documentation is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / ".ci/run", ROOT / ".ci/fresh"]
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
    assert len(locks) == 8
    for lock in locks:
        text = lock.read_text()
        assert "://" not in text, lock
        for package in re.split(r"\n(?=[\w.-]+==)", text)[1:]:
            assert "--hash=sha256:" in package, f"{lock}: {package}"


def test_fresh_construct_bundles_no_code_of_others():
    """The package for TypeScript has its own output alone: what it imports is the app's, with its own licences."""
    package = json.loads((ROOT / "packages/cdk/package.json").read_text())
    assert package["files"] == ["dist"]
    assert package.keys().isdisjoint({"dependencies", "bundleDependencies", "bundledDependencies"})


@pytest.mark.parametrize(
    "lock", sorted((ROOT / "packages").glob("*/package-lock.json")), ids=lambda path: path.parent.name
)
def test_fresh_npm_locks_name_no_address_and_run_no_script(lock):
    """The same of npm's locks; no package of them has a script that installation would run."""
    for name, package in json.loads(lock.read_text())["packages"].items():
        assert not package.keys() & {"resolved", "hasInstallScript"}, name
        assert not name or package.get("inBundle") or package["integrity"].startswith("sha512-"), name
