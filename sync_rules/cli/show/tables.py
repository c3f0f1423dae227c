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


def choose_state(one: ComparedTable, created: Container[ComparedTable]) -> str:
    """Return the state of a table in one word: created, missing, exists or differs."""
    if one.problems:
        return "differs"
    return "exists" if one.exists else "created" if one in created else "missing"


def make_row(one: ComparedTable, created: Container[ComparedTable]) -> dict[str, Any]:
    """Return a table as a JSON object."""
    problems = [f"{each.found}. {each.cure}." for each in one.problems]
    return {
        "table": one.table.name,
        "name": one.table.physical_name,
        "state": choose_state(one, created),
        "problems": problems,
    }


def list_lines(one: ComparedTable, created: Container[ComparedTable]) -> Iterator[str]:
    """List a table's lines for people: a line for each difference, or a single line."""
    if one.problems:
        yield from (f"table {one.table.physical_name} differs: {each.found}. {each.cure}." for each in one.problems)
        return
    parts = [] if one.exists else [_describe_form(one)]
    state = WORDS[choose_state(one, created)]
    yield f"table {one.table.physical_name} {state}{''.join(f' ({part})' for part in parts)}"


def _describe_form(one: ComparedTable) -> str:
    key = ", ".join(f"{attribute.name} ({attribute.type})" for attribute in one.table.key)
    parts = [f"key {key}"]
    parts += [format_count(len(one.table.indexes), "index", "indexes")] if one.table.indexes else []
    parts += [format_count(len(one.table.vectors), "vector index", "vector indexes")] if one.table.vectors else []
    parts += ["stream with both images"] if "StreamSpecification" in one.parameters else []
    parts += [f"Time to Live on {one.ttl}"] if one.ttl else []
    return "; ".join(parts)
