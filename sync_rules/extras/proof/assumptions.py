"""The numbered facts about AWS that code relies on, as `assumptions.toml` has them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Assumption:
    """One fact: its number, where it is documented, what follows if it is false, and the code that relies on it.

    `avoid`: the setting that makes the product independent of it, "" if there is none. `not_tested`: the reason why
    minutes in an account cannot show it, "" for a fact that has a probe.
    """

    number: int
    section: str
    fact: str
    source: str
    if_false: str
    relied_on: tuple[str, ...]
    avoid: str = ""
    not_tested: str = ""


TEXT: Final = Path(__file__).with_name("assumptions.toml").read_text(encoding="utf-8")
ASSUMPTIONS: Final = {
    int(number): Assumption(int(number), **{**one, "relied_on": tuple(one["relied_on"])})
    for number, one in tomllib.loads(TEXT).items()
}
