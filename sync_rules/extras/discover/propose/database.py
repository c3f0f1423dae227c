"""DuckDB, which joins what was staged and spills to disk: the one module that imports it.

Invariant: memory is bounded, and everything lies in the workspace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from sync_rules.model.errors import UserError

MISSING: Final = "DuckDB is not installed, and rules are proposed by its joins"
CURE: Final = 'install it: pip install "sync-rules[propose]"'
CHUNK: Final = 10_000
INTERRUPTED: Final = "Query interrupted"  # DuckDB's answer to Ctrl-C
FULL: Final = "the joins need more memory, or more room on the disk of the workspace"
FULL_CURE: Final = "give more with --memory, or another --workspace"
LINE_MAX_BYTES: Final = 64_000_000  # a row of the spools; DuckDB wants to know


class Database:
    """A new database in a directory; an older one there is deleted."""

    def __init__(self, directory: Path, *, threads: int, memory: str) -> None:
        """Raises UserError without the extra that installs DuckDB, or when the disk is full."""
        try:
            import duckdb  # noqa: PLC0415 - an extra: only this verb needs it
        except ImportError as error:
            raise UserError(MISSING, CURE) from error
        directory.mkdir(parents=True, exist_ok=True)
        file = directory / "staged.duckdb"
        for old in (file, file.with_suffix(".duckdb.wal")):
            old.unlink(missing_ok=True)
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory,
            "threads": threads,
            "temp_directory": str(directory / "spill"),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self._full: tuple[type[Exception], ...] = (
            duckdb.OutOfMemoryException,
            duckdb.IOException,
            duckdb.TransactionException,  # a commit that does not fit on the disk: there is no other writer
            duckdb.FatalException,  # what follows that
        )
        with self._translate_errors():
            self._connection = duckdb.connect(str(file), config=config)

    def run(self, sql: str, *values: object) -> None:
        """Run a statement. Raises UserError when memory or disk are full, KeyboardInterrupt."""
        with self._translate_errors():
            self._connection.execute(sql, list(values) or None)

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """All rows of a query. Raises like `run`."""
        with self._translate_errors():
            return self._connection.execute(sql, list(values) or None).fetchall()

    def each(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, with few of them in memory. No other query may run meanwhile. Raises like
        `run`.
        """
        with self._translate_errors():
            answer = self._connection.execute(sql)
            while some := answer.fetchmany(CHUNK):
                yield from some

    def row(self, sql: str, *values: object) -> tuple[Any, ...]:
        """The first row of a query that always has one."""
        return self.rows(sql, *values)[0]

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Say in our words what ends a query. DuckDB's own may quote values."""
        try:
            yield
        except RuntimeError as error:
            if str(error) != INTERRUPTED:
                raise
            raise KeyboardInterrupt from None
        except self._full as error:
            raise UserError(FULL, FULL_CURE) from error

    def load(self, table: str, file: Path, columns: Mapping[str, str]) -> None:
        """Append a spool: lines of texts between tabs, with nothing for a missing value."""
        types = ", ".join(f"{quote_sql(name)}: {quote_sql(kind)}" for name, kind in columns.items())
        names = ", ".join(columns)
        self.run(
            f"INSERT INTO {table} BY NAME SELECT {names} FROM read_csv({quote_sql(str(file))}, delim='\t', quote='', "
            f"escape='', comment='', header=false, nullstr='', null_padding=true, auto_detect=false, "
            f"max_line_size={LINE_MAX_BYTES}, buffer_size={2 * LINE_MAX_BYTES}, columns={{{types}}})"
        )

    def close(self) -> None:
        """Close the file. What it holds is not needed any more, so a full disk does not matter."""
        with suppress(*self._full):
            self._connection.close()


@contextmanager
def explain_full_disk(directory: Path) -> Iterator[None]:
    """Turn the error of a full disk into a UserError with the cure."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{directory}: the items cannot be written: {error.strerror or 'no room'}", FULL_CURE
        ) from error


def require_duckdb() -> None:
    """Raise UserError if the extra that installs DuckDB is missing."""
    if find_spec("duckdb") is None:
        raise UserError(MISSING, CURE)


def quote_sql(value: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"
