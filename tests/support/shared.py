"""The data that lies beside this repository, for tests that go through all of it; nothing of it is copied here.

SHARED_CASES names its directory. Where there is none, what needs it is skipped.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from tests.support.engines import ROOT

CASES = Path(os.environ.get("SHARED_CASES", ROOT.parent / "shared/cases"))


def case(*names: str) -> Path:
    """A file or directory of the shared data. Skips the test where it is not there."""
    path = CASES.joinpath(*names)
    if not path.exists():
        pytest.skip(f"no shared data at {path.name}: set SHARED_CASES to its directory")
    return path


def rows(*names: str) -> list[dict[str, str]]:
    """The rows of a CSV file of the shared data, without what is empty in them."""
    with case(*names).open(encoding="utf-8-sig", newline="") as file:
        return [{name: text for name, text in row.items() if text} for row in csv.DictReader(file)]
