"""What some rules need outside the tables: an archive, a caller. Made only where a rule asks for one.

Law: what a rule needs is there before the first record is read, or the user is told at once what is missing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tenacity import Retrying

from sync_rules import aws
from sync_rules.caller import CALL_MAX_MS, FunctionCaller, RemainingMs, RememberedInMemory, RememberedInTable
from sync_rules.kinds.archive import ArchiveRule
from sync_rules.kinds.call import functions_of
from sync_rules.rules import Rules
from sync_rules.s3 import S3Archive
from sync_rules.store import NOBODY, Archive, Caller

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def archive_of(
    rules: Rules, *, endpoint_url: str | None = None, region: str | None = None, retrying: Retrying | None = None
) -> Archive:
    """The archive on S3, if a rule archives. Raises UserError when no client can be made."""
    if not any(isinstance(rule, ArchiveRule) for rule in rules.rules.values()):
        return NOBODY
    return S3Archive(aws.s3(endpoint_url, region), retrying=retrying)


def caller_of(
    rules: Rules,
    client: DynamoDBClient,
    calls_table: str | None,
    *,
    folder: Path | None = None,
    retrying: Retrying | None = None,
    remaining_ms: RemainingMs = lambda: CALL_MAX_MS,
) -> Caller:
    """The caller of the rules' functions, if a rule calls one. Calls are remembered in `calls_table`, or else only in
    this process. Modules are looked for wherever Python does, and then in `folder`.

    Raises:
        UserError: when a function cannot be called.
    """
    functions = functions_of(rules.rules.values())
    if not functions:
        return NOBODY
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))  # last: a file beside the rules must not stand in for an installed module
    memory = RememberedInTable(client, calls_table, retrying=retrying) if calls_table else RememberedInMemory()
    caller = FunctionCaller(memory, remaining_ms=remaining_ms)
    caller.require(functions)
    return caller
