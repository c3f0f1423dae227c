"""Names of tables that are known only after a deployment: they become variables of the rules file. `${VAR:-default}` if
the source has a default, else `${VAR}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sync_rules.extras.discover.imports.identifiers import make_table_slug, make_variable_name
from sync_rules.extras.discover.imports.imported_model import FoundTable
from sync_rules.model.entities import KeyAttribute

REFERENCE: Final = re.compile(r"\$\{([^}]*)\}")
UNSET: Final = re.compile(r"\$\{([A-Z0-9_a-z]+)\}")
DEFAULT: Final = re.compile(r"[^{}$]+")


@dataclass(frozen=True)
class TableName:
    """A table's name in DynamoDB, as the rules file has it, and what to check of it."""

    text: str
    checks: list[str] = field(default_factory=list)


def format_variable(name: str, default: object) -> str:
    """Return a variable of the rules file, with its default if that can be written."""
    text = str(default) if isinstance(default, str | int) and not isinstance(default, bool) else ""
    return f"${{{make_variable_name(name)}:-{text}}}" if DEFAULT.fullmatch(text) else f"${{{make_variable_name(name)}}}"


def make_variable(called: str, why: str) -> TableName:
    """Make the name of a table that the source does not give: a variable of its own."""
    name = make_variable_name(make_table_slug(called), "table")
    return TableName(f"${{{name}:-{pad_name(make_table_slug(called))}}}", [f"{why}: set {name}, or write the name"])


def make_table(called: str, given: str, why: str, key: tuple[KeyAttribute, ...], at: str) -> FoundTable:
    """Make a table by the name that a source gives; `given` is "" if it gives none, and `why` says why."""
    name = TableName(given) if given else make_variable(called, why)
    return FoundTable(called, name.text, key, checks=list(name.checks), at=at)


def pad_name(name: str) -> str:
    """Return a name that is long enough for a table."""
    return name if len(name) > 2 else f"{name}-table"  # noqa: PLR2004 - DynamoDB takes three letters or more


def check_variables(text: str) -> TableName:
    """Return the name of a table in a text, with a check for each variable without a default."""
    unset = ", ".join(dict.fromkeys(UNSET.findall(text)))
    return TableName(text, [f"set {unset}: the template has no default for it"] if unset else [])


def substitute(text: str, value: Callable[[str], str]) -> str:
    """Return a text with the value of each ${name} in it; "" if a value is missing."""
    values = [value(name.strip()) for name in REFERENCE.findall(text)]
    given = iter(values)
    return REFERENCE.sub(lambda _: next(given), text) if all(values) else ""
