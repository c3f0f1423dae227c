"""Random edits: all of a kind are made, each is one small change, and the tool notices what no test does."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest

from tests.mutation.__main__ import ROOT, every_edit, harmless, near, sampled
from tests.mutation.edits import edits_of
from tests.support.depth import deep

SOURCE = '''
class Box:
    def room(self, most: int = 9) -> bool:
        """1 or 2: said, not done."""
        assert self.size > 0, "1"
        return self.size < most and any(one for one in self.things if one.light)

    def fill(self, *, things):
        self.things = sorted(things, key=len)
        zip(things, things, strict=True)
        if not things:
            raise ValueError(f"nothing: {1}")

    def empty(self):
        raise NotImplementedError
'''
BOTH = "self.size < most and any(one for one in self.things if one.light)"
EXPECTED = {
    "Box.room": [
        (f"return {BOTH}", "return None"),
        (BOTH, "((any((one for one in self.things if one.light))))"),
        (BOTH, "((self.size < most))"),
        (BOTH, "((self.size < most) or (any((one for one in self.things if one.light))))"),
        ("self.size < most", "((self.size) <= (most))"),
        ("any", "all"),
        ("one.light", "True"),
    ],
    "Box.fill": [
        ("self.things = sorted(things, key=len)", "pass"),
        ("sorted(things, key=len)", "sorted(things)"),
        ("zip(things, things, strict=True)", "pass"),
        ("not things", "(not (not things))"),
        ("not things", "(things)"),
        ('raise ValueError(f"nothing: {1}")', "pass"),
    ],
}


def test_edits_are_all_that_may_be_wrong_in_a_function():
    """Conditions, comparisons, names, keywords, statements: each once, and none in what is only said."""
    edits = list(edits_of("box.py", SOURCE))
    for function, expected in EXPECTED.items():
        assert [(edit.before, edit.after) for edit in edits if edit.function == function] == expected
    assert {edit.function for edit in edits} == EXPECTED.keys()


def test_edits_of_the_core_are_programs():
    """Every edit can be compiled, and differs from the file; the same seed chooses the same."""
    some = sampled("", count := deep(300), "s")
    for edit in some:
        source = (ROOT / edit.path).read_text()
        assert ast.dump(ast.parse(edit.made_in(source))) != ast.dump(ast.parse(source))
    assert sampled("", count, "s") == some
    assert sampled("", count, "t") != some


def test_edits_that_are_harmless_can_still_be_made():
    """An entry of harmless.toml names an edit of the code as it is now, and a reason."""
    known = harmless()
    assert known.keys() <= {edit.name for edit in every_edit()}
    assert all(known.values())


@pytest.fixture(scope="module")
def worker():
    """A worker of the model's room."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.mutation.worker", "tests/unit/model"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield process


@pytest.mark.parametrize(
    ("file", "named", "noticed"),
    [
        (
            "limits.py",
            ("Limits.compute_parked_delay_seconds", "10", "11"),
            "survived",
        ),  # 2^10 minutes, and 15 are the most
        ("templates.py", ("Template.parse", "position == len(text)", "((position) != (len(text)))"), "tests"),
    ],
)
def test_worker_says_what_noticed_an_edit(worker, file, named, noticed):
    """An edit that tests notice is told from one that neither tests nor the simulator do."""
    path = f"sync_rules/model/{file}"
    (edit,) = [e for e in every_edit(path) if (e.function, e.before, e.after) == named]
    worker.stdin.write(
        json.dumps({"edit": asdict(edit), "near": near(edit.path), "quick": True, "every": False}) + "\n"
    )
    worker.stdin.flush()
    assert worker.stdout.readline().strip() == noticed
