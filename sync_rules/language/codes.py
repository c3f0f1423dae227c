"""The codes of problems in a rules file, as `codes.toml` has them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of problem: what it is called, why it is a problem, and what cures it."""

    title: str
    why: str
    cure: str


TEXT = Path(__file__).with_name("codes.toml").read_text(encoding="utf-8")
CODES: dict[str, Code] = {name: Code(**code) for name, code in tomllib.loads(TEXT).items()}
OF_A_PACKAGE = Code("a problem of a section", "The package that reads this section says so.", "see its documentation")


def code_of(name: str) -> Code:
    """The code of this name; one that other packages report has the same title as all of theirs."""
    return CODES.get(name, OF_A_PACKAGE)
