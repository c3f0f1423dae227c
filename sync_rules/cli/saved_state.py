"""The saved state of backfills: the file or the table that --state names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sync_rules.adapters.effects import parse_table_name
from sync_rules.adapters.files import lock_file
from sync_rules.adapters.state import FileState, State, TableState
from sync_rules.jobs.failure_log import require_writable
from sync_rules.model.errors import UserError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from sync_rules.rules.ruleset import Rules

TABLE: Final = "table:"  # begins the name of a table


def find_state_file(place: str) -> Path | None:
    """Return the file that --state names, or None for a table."""
    return None if place.startswith(TABLE) else Path(place)


def read_state(place: str, client: DynamoDBClient) -> State:
    """Return the state as it is now, for reading. Raises UserError if the file holds something else."""
    file = find_state_file(place)
    return TableState(client, place.removeprefix(TABLE)) if file is None else FileState(file)


@contextmanager
def open_state(place: str, client: DynamoDBClient, rules: Rules) -> Iterator[State]:
    """Open the state for writing. A file stays locked until the end of the block.

    Raises:
        UserError: if the file cannot be written, is in use or holds something else, or the table is of the rules.
    """
    file = find_state_file(place)
    if file is not None:
        require_writable(file)
        with lock_file(file, "backfill", "--state"):
            yield FileState(file)
        return
    table = place.removeprefix(TABLE)
    if parse_table_name(table) in rules.by_physical_name:
        raise UserError(f"table {table} belongs to the rules. Give the state its own table, with the string key 'id'.")
    yield TableState(client, table)
