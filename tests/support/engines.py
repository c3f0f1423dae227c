"""Engines for tests: which ones run, how they are started, what each is known not to do, tables of a test's own.

TEST_ENGINE chooses: memory, ministack, dynoxide, a URL, or all (the default). A missing engine skips its tests, and
fails them under REQUIRE_ENGINES=1, so that CI cannot go green having tested nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from sync_rules.adapters import aws
from sync_rules.deploy.tables import make_table_parameters
from sync_rules.lab import embedded_engine as emulator
from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.model.items import Change

ROOT = Path(__file__).resolve().parents[2]
DYNOXIDE = ROOT / ".engines/node_modules/@dynoxide/linux-x64/dynoxide"


class Gap(NamedTuple):
    """A behaviour of DynamoDB, and the engines known to do otherwise; `-batch`: in statements of PartiQL."""

    dynamodb: str
    lacking: frozenset[str]


BOTH = frozenset({"dynoxide", "ministack"})
# Capabilities a test may need. A marked test is a strict xfail on an engine that lacks it, so that an engine that improves,
# or a wrong entry, fails the run. docs/contributing.md lists them. The writer sends no statement that would meet a gap.
GAPS: dict[str, Gap] = {
    "multi_attribute_gsi": Gap("an index key may have several attributes", frozenset({"dynoxide"})),
    "silent_no_op": Gap("a write that changes nothing leaves no stream record", frozenset({"dynoxide"})),
    "silent_set_reorder": Gap("a set in another order is not a change", BOTH),
    "overlapping_paths": Gap("an update of overlapping paths is invalid", frozenset({"ministack"})),
    "overlapping_paths_in_transaction": Gap("the same in a transaction", BOTH),
    "overlapping_paths_in_statement": Gap("the same in a statement", frozenset({"dynoxide-batch"})),
    "checked_path_into_list": Gap("SET a.b in a transaction is invalid if `a` is a list", frozenset({"ministack"})),
    "checked_path_into_null": Gap("SET a.b is invalid if `a` is NULL", frozenset({"dynoxide"})),
    "checked_remove_path": Gap("REMOVE a.b is invalid if `a` is not a map", BOTH),
    "parent_in_statement": Gap("a statement makes no map that is missing", frozenset({"dynoxide-batch"})),
    "index_key_size": Gap("an index key over 2,048 bytes is invalid", BOTH),
    "key_size_in_query": Gap("a query by a key that is too long is invalid", BOTH),
    "key_size_in_transaction": Gap("a transaction with a key that is too long is invalid", frozenset({"ministack"})),
    "key_in_statement": Gap("a statement cannot change a key", frozenset({"dynoxide-batch", "ministack-batch"})),
    "elements_by_value": Gap("1.0 is in a set that holds 1", BOTH),
    "element_twice_in_statement": Gap("a statement with an element twice in a set is invalid", frozenset({"ministack-batch"})),
    "empty_elements": Gap("an empty set to add or to discard is invalid", frozenset({"ministack"})),
    "empty_elements_in_transaction": Gap("the same in a transaction", BOTH),
    "empty_set_in_transaction": Gap("an empty set in a transaction is invalid", frozenset({"ministack"})),
    "empty_set_in_statement": Gap("an empty set in a statement is invalid", frozenset({"ministack-batch"})),
    "exact_sums": Gap("a sum has up to 38 digits and is exact, or is refused", frozenset({"ministack"})),
}  # fmt: skip


# Wraps a server that does not notice the death of its parent: it ends with the standard input of this process.
SUPERVISE = """
import os, subprocess, sys, threading
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
threading.Thread(target=lambda: (sys.stdin.buffer.read(), server.kill()), daemon=True).start()
os._exit(server.wait() & 255)
"""


def chosen() -> tuple[str, ...]:
    """The engines that TEST_ENGINE names. Without it: memory and ministack, and with DEEP_TESTS=1 dynoxide too."""
    every = ("memory", "ministack", "dynoxide") if os.environ.get("DEEP_TESTS") else ("memory", "ministack")
    choice = os.environ.get("TEST_ENGINE", "all")
    return every if choice == "all" else (choice,)


@contextmanager
def dynoxide() -> Iterator[emulator.Engine]:
    """Run dynoxide. Raises UserError when its binary is not there."""
    binary = Path(os.environ.get("DYNOXIDE_BIN", DYNOXIDE))
    if not binary.is_file():
        raise UserError(f"no dynoxide at {binary}: npm i --no-save --prefix .engines @dynoxide/linux-x64@1.2.1")
    port = emulator.find_free_port()
    command = [sys.executable, "-c", SUPERVISE, str(binary), "--host", emulator.LOOPBACK, "--port", str(port)]
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="dynoxide-", ignore_cleanup_errors=True))
        server = emulator.Server("dynoxide", command, port, "/", Path(directory), os.environ)
        yield stack.enter_context(emulator.run_server(server))


class Endpoints:
    """The engines of one session, each started when first asked for; one that is missing is not tried again."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._found: dict[str, str | UserError] = {}

    def of(self, name: str) -> str:
        """The endpoint URL of an engine. Skips the test when it is missing, or fails it where all are required."""
        if name not in self._found:
            try:
                self._found[name] = self._stack.enter_context(started(name))
            except UserError as error:
                self._found[name] = error
        found = self._found[name]
        if isinstance(found, str):
            return found
        if os.environ.get("REQUIRE_ENGINES") == "1":
            pytest.fail(str(found))
        pytest.skip(str(found))


@contextmanager
def started(name: str) -> Iterator[str]:
    """The endpoint of a named engine, started if need be. Raises UserError when it is missing."""
    if name.startswith("http"):
        yield name
        return
    runs = {"ministack": emulator.run_engine, "dynoxide": dynoxide}
    with runs[name]() as engine:
        yield engine.url


def unique_prefix() -> str:
    """A prefix for physical table names, so that tests share an engine and not a table."""
    return f"t{uuid.uuid4().hex[:12]}-"


def with_prefix(tables: Mapping[str, Table], prefix: str) -> dict[str, Table]:
    """The tables under physical names of a test's own."""
    return {name: replace(table, physical_name=prefix + name) for name, table in tables.items()}


def create(endpoint_url: str, tables: Mapping[str, Table]) -> None:
    """Create tables with streams on an engine. Emulators have them ready at once."""
    client = aws.dynamodb(endpoint_url)
    for table in tables.values():
        client.create_table(**make_table_parameters(table, stream=True))


def stream_records(endpoint_url: str, table: Table) -> list[Change]:
    """Every record of a table's stream so far, in the order of its shards."""
    client = aws.dynamodbstreams(endpoint_url)
    arn = aws.dynamodb(endpoint_url).describe_table(TableName=table.physical_name)["Table"]["LatestStreamArn"]
    changes: list[Change] = []
    for shard in client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = client.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")[
            "ShardIterator"
        ]
        while iterator:
            answer = client.get_records(ShardIterator=iterator)
            if not answer["Records"]:
                break
            for record in (entry["dynamodb"] for entry in answer["Records"]):
                key = table.key_of(record["Keys"])
                assert key is not None
                changes.append(Change(key, record.get("OldImage"), record.get("NewImage"), record["SequenceNumber"]))
            iterator = answer.get("NextShardIterator")
    return changes
