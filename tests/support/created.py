"""The tables of some rules, created on an engine that has none of them."""

from __future__ import annotations

from typing import Any

from sync_rules.deploy.tables import compare_tables, create_missing_tables, make_table_parameters
from sync_rules.rules.ruleset import Rules


def create_tables(client: Any, rules: Rules) -> None:
    """Create every table of the rules, and wait until each is active."""
    create_missing_tables(client, compare_tables(client, rules))


def all_parameters(rules: Rules) -> tuple[dict[str, Any], ...]:
    """CreateTable's parameters for every table of the rules."""
    return tuple(make_table_parameters(table, stream=table in rules.streamed_tables) for table in rules.tables.values())
