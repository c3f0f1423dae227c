"""The subjects of commits, as .ci/subjects checks them in a repository of a test."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.test_house import ROOT

IDENTITY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@x", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@x"}


class Repository:
    """A git repository with a commit on main, and a branch that is checked out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("anything goes on main.")
        self.git("checkout", "--quiet", "-b", "branch")

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "commit.gpgsign=false", *arguments]
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(
            command, cwd=self.folder, env=environment | IDENTITY, check=True, capture_output=True, text=True
        ).stdout

    def commit(self, subject: str) -> None:
        self.git("commit", "--quiet", "--allow-empty", "-m", subject, "-m", "Why, in as many lines. And longer.")

    def check(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [ROOT / ".ci/subjects", *arguments]
        return subprocess.run(command, cwd=self.folder, check=False, capture_output=True, text=True)


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repository")


@pytest.mark.parametrize(
    "subject",
    [
        "Add a rule",
        "Embed children",
        "Pass the clock",
        "Bring a copy in line",
        "Feed records to the handler",
        "Process a batch",
        f"Add {'a' * 68}",
    ],
)
def test_subjects_of_a_branch_may_be_imperative(repository, subject):
    """An imperative subject of at most 72 characters passes in silence."""
    repository.commit(subject)
    done = repository.check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("subject", "mistake"),
    [
        ("Added a rule", "is not imperative: Added"),
        ("Adding a rule", "is not imperative: Adding"),
        ("Adds a rule", "is not imperative: Adds"),
        ("add a rule", "does not begin with a capital letter"),
        ("fixup! Add a rule", "does not begin with a capital letter"),
        ("Add a rule.", "ends with a period"),
        (f"Add {'a' * 69}", "has 73 characters, more than 72"),
    ],
)
def test_subjects_that_break_a_rule_are_named(repository, subject, mistake):
    """A subject that breaks a rule fails the check, with its text and the rule, and later commits do not hide it."""
    repository.commit(subject)
    repository.commit("Add another rule")
    done = repository.check("main")
    assert done.returncode == 1
    assert f" {subject}\n  {mistake}\n" in done.stderr
    assert "another" not in done.stderr


def test_subjects_of_merges_are_not_checked(repository):
    """A merge commit has the subject that git gives it."""
    repository.git("checkout", "--quiet", "main")
    repository.commit("anything")
    repository.git("checkout", "--quiet", "branch")
    repository.commit("Add a rule")
    repository.git("merge", "--quiet", "--no-edit", "-m", "merged.", "main")
    assert repository.check().returncode == 0


def test_subjects_on_main_are_not_checked(repository):
    """On main itself the command checks nothing, and a line says so."""
    repository.git("checkout", "--quiet", "main")
    done = repository.check()
    assert (done.returncode, done.stdout) == (0, "subjects: nothing checked, no commits beyond main\n")


def test_subjects_of_a_shallow_clone_are_not_checked(repository, tmp_path):
    """In a clone without history, or outside of git, the command checks nothing, and a line says so."""
    repository.commit("added a rule")
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{repository.folder}", shallow], check=True)
    for folder in (shallow, tmp_path):
        done = subprocess.run([ROOT / ".ci/subjects"], cwd=folder, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "subjects: nothing checked, there is no whole git history here\n")


def test_subjects_are_checked_in_ci():
    """.ci/run checks them after lint."""
    assert "make lint\n.ci/subjects\n" in (ROOT / ".ci/run").read_text()
