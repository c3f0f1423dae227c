"""Texts that several verbs print alike. Tables and live lines need rich, and are in `console`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from sync_rules.adapters.files import convert_os_errors
from sync_rules.model.items import Alteration
from sync_rules.model.values import escape_invisible

Row = tuple[dict[str, Any], str | tuple[str, ...]]  # for machines; and for people, a line or several
SHOWN_PER_RULE_MAX: Final = 20
SECOND_MS: Final = 1_000
UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


VERBS: Final = {
    Alteration.SET: "sets",
    Alteration.REPLACED: "replaces",
    Alteration.ZEROED: "zeroes",
    Alteration.REMOVED: "removes",
}


def describe_alterations(counts: Mapping[Any, float], estimate: str = "") -> str:
    """Return how writes alter values, such as "replaces 2, removes 4"; "" if they alter nothing. `counts` are by
    Alteration, or by its value.
    """
    return ", ".join(f"{VERBS[each]} {estimate}{counts[each]:,.0f}" for each in Alteration if counts.get(each))


def bracket_alterations(counts: Mapping[Any, float], subject: str = "") -> str:
    """Return how writes alter values in brackets, after a space; "" if they alter nothing."""
    found = describe_alterations(counts)
    return f" ({subject}{found})" if found else ""


def format_count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: no rules, 1 rule, 2,000 rules."""
    return f"{f'{number:,}' if number else 'no'} {one if number == 1 else many or f'{one}s'}"


def format_duration(ms: int) -> str:
    """Return milliseconds as text for people: 850 ms, 12 s, 2 min 51 s, 3 h 5 min, 2 d 3 h."""
    if ms < SECOND_MS:
        return f"{ms} ms"
    seconds = round(ms / SECOND_MS)
    for (unit, size), (next_unit, next_size) in pairwise(UNITS):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            rest = rest // next_size
            return f"{whole:,} {unit} {rest} {next_unit}" if rest else f"{whole:,} {unit}"
    return f"{seconds} s"


def put_out(text: str, out: Path | None, hint: str = "") -> None:
    """Write a text to a file, or to standard output if `out` is None. Raises UserError if the file cannot be
    written.
    """
    if out is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return
    with convert_os_errors(out):
        out.write_text(text, encoding="utf-8")
    print(f"wrote {out}{hint}")


def show_rows(rows: Iterable[Row], *, as_json: bool) -> None:
    """Print each row as soon as it is known."""
    for row, text in rows:
        lines = map(escape_invisible, (text,) if isinstance(text, str) else text)
        print(json.dumps(row) if as_json else "\n".join(lines), flush=True)


class FirstPerRule:
    """A printer of at most SHOWN_PER_RULE_MAX lines of each rule and, at the end, of the number of the others."""

    def __init__(self, hint: str = "") -> None:
        self.counts: Counter[str] = Counter()
        self._hint = hint

    def add(self, rule: str, line: str) -> None:
        """Print the line, or count it."""
        self.counts[rule] += 1
        if self.counts[rule] <= SHOWN_PER_RULE_MAX:
            print(escape_invisible(line), flush=True)

    def end(self) -> None:
        """Print how many lines of each rule were not shown."""
        for rule, count in sorted(self.counts.items()):
            if count > SHOWN_PER_RULE_MAX:
                print(f"and {count - SHOWN_PER_RULE_MAX} more of rule {rule}{self._hint}")


ADDRESS: Final = re.compile(r"^(?P<plain>[A-Za-z][\w+.-]*://)(?:[^/?#]*@)?(?P<rest>[^?#]*).*$", re.DOTALL)


def remove_secrets(argument: str) -> str:
    """Return the value of an option without secrets. A URL keeps only scheme, host and path."""
    return ADDRESS.sub(r"\g<plain>\g<rest>", argument)
