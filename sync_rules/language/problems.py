"""The problems of a rules file as values: each has a code of `codes.toml`, a location in the file, and a cure.

Invariant: a check never stops at the first problem: each is added to `Problems`, and what is sound is checked further.
"""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sync_rules.model.values import escape_invisible

Severity = Literal["error", "warning"]
INDENT = " " * 2
UNREAD = "SR001"  # the value could not be read, so other problems of its place do not count
WARNINGS = "4"  # the family of codes that let the rules run: SR4..., and those of other packages, such as ACME4...
SECTIONS = {"rules": "rule", "entities": "entity", "tables": "table", "patterns": "pattern"}
EXPLAINED = ("SR2", "SR3", "SR4", "SR5")  # families whose reason is not plain from the message


def find_severity(code: str) -> Severity:
    """Find the severity of a code. Only an error makes a rules file unusable."""
    return "warning" if code.lstrip(string.ascii_letters).startswith(WARNINGS) else "error"


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the rules file. Line and column count from 1, `key_path` leads there through maps and lists."""

    line: int = 1
    column: int = 1
    key_path: tuple[str | int, ...] = ()

    def at(self, *more: str | int) -> Location:
        """Return the same place with a longer key path, for parts of a sentence, which have no place of their own."""
        return Location(self.line, self.column, (*self.key_path, *more))

    def format_path(self) -> str:
        """Format the key path in words: `rule user-name-on-orders · into`."""
        parts = [f"item {part + 1}" if isinstance(part, int) else part for part in self.key_path]
        if len(parts) > 1 and parts[0] in SECTIONS:
            parts[:2] = [f"{SECTIONS[parts[0]]} {parts[1]}"]
        return escape_invisible(" · ".join(parts))


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file. `message` says what was expected and found. `cure`, if given, replaces the code's own."""

    code: str
    message: str
    location: Location = Location()
    cure: str | None = None

    def __post_init__(self) -> None:
        for name in ("message", "cure"):  # names in them may have any character; a problem has none on two lines
            object.__setattr__(self, name, escape_invisible(getattr(self, name) or "") or None)

    @property
    def severity(self) -> Severity:
        return find_severity(self.code)

    def render(self, file: str) -> str:
        way = self.location.format_path()
        head = f"{file}:{self.location.line}:{self.location.column}" + (f" · {way}" if way else "")
        mark = self.code if self.severity == "error" else f"{self.code}, {self.severity}"
        lines = [head, f"{INDENT}{self.message}        [{mark}]"]
        if self.code.startswith(EXPLAINED):
            lines.append(f"{INDENT}why:  {find_code(self.code).why}")
        lines.append(f"{INDENT}cure: {self.cure or find_code(self.code).cure}")
        return "\n".join(lines)

    def as_json(self, file: str) -> dict[str, str | int]:
        """Return the problem for programs: every part by its name."""
        return {
            "code": self.code,
            "severity": self.severity,
            "file": file,
            "line": self.location.line,
            "column": self.location.column,
            "road": self.location.format_path(),
            "message": self.message,
            "why": find_code(self.code).why,
            "cure": self.cure or find_code(self.code).cure,
        }


@dataclass
class Problems:
    found: dict[Problem, None] = field(default_factory=dict)

    def add(self, code: str, location: Location, message: str, cure: str | None = None) -> None:
        """Add a problem. The same problem at the same location counts once."""
        self.extend([Problem(code, message, location, cure)])

    def extend(self, problems: Iterable[Problem]) -> None:
        self.found.update(dict.fromkeys(problems))

    def sort_problems(self) -> list[Problem]:
        """Return all problems in the order of the file. An unreadable value reports no other problem."""
        unread = {(p.location.line, p.location.column) for p in self.found if p.code == UNREAD and p.location.key_path}
        said = (p for p in self.found if p.code == UNREAD or (p.location.line, p.location.column) not in unread)
        return sorted(said, key=lambda p: (p.location.line, p.location.column, p.code, p.message))


def list_errors(problems: Iterable[Problem]) -> list[Problem]:
    """List the problems that make a rules file unusable."""
    return [problem for problem in problems if problem.severity == "error"]


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of problem: what it is called, why it is a problem, and what cures it."""

    title: str
    why: str
    cure: str


TEXT = Path(__file__).with_name("codes.toml").read_text(encoding="utf-8")
CODES: dict[str, Code] = {name: Code(**code) for name, code in tomllib.loads(TEXT).items()}
OF_A_PACKAGE = Code("a problem of a section", "The package that reads this section says so.", "see the package's docs")


def find_code(name: str) -> Code:
    """Find the code of this name. All codes of other packages share one entry."""
    return CODES.get(name, OF_A_PACKAGE)
