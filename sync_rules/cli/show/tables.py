"""Tables that were compared with the rules or created, as lines for people and as rows for programs."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, Final

from sync_rules.cli.show.text import format_count
from sync_rules.deploy.tables import ComparedTable

WORDS: Final = {
    "created": "created",
    "missing": "does not exist, and would be created",
    "exists": "exists, and is as the rules need it",
}


def state(one: ComparedTable, created: Container[ComparedTable]) -> str:
    """The state of a table in one word: created, missing, exists or differs."""
    if one.problems:
        return "differs"
    return "exists" if one.exists else "created" if one in created else "missing"


def row(one: ComparedTable, created: Container[ComparedTable]) -> dict[str, Any]:
    """A table as a JSON object."""
    problems = [f"{each.found}. {each.cure}." for each in one.problems]
    return {
        "table": one.table.name,
        "name": one.table.physical_name,
        "state": state(one, created),
        "problems": problems,
    }


def lines(one: ComparedTable, created: Container[ComparedTable]) -> Iterator[str]:
    """A table in words: a line for each difference, or one for all."""
    if one.problems:
        yield from (f"table {one.table.physical_name} differs: {each.found}. {each.cure}." for each in one.problems)
        return
    parts = [] if one.exists else [_form(one)]
    yield f"table {one.table.physical_name} {WORDS[state(one, created)]}{''.join(f' ({part})' for part in parts)}"


def _form(one: ComparedTable) -> str:
    key = ", ".join(f"{attribute.name} ({attribute.type})" for attribute in one.table.key)
    parts = [f"key {key}"]
    parts += [format_count(len(one.table.indexes), "index", "indexes")] if one.table.indexes else []
    parts += [format_count(len(one.table.vectors), "vector index", "vector indexes")] if one.table.vectors else []
    parts += ["stream with both images"] if "StreamSpecification" in one.parameters else []
    parts += [f"Time to Live on {one.ttl}"] if one.ttl else []
    return "; ".join(parts)
