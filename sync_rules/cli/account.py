"""`--remote`: the parts that backfill, verify and redrive share when they run in the account.

Invariant: watching changes nothing, and a watcher may leave at any time.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.acceptance import format_stack_variable
from sync_rules.adapters.state import TableState
from sync_rules.cli.options import RULES_FILE, STACK, STACK_VARIABLE, list_place_words
from sync_rules.jobs.account.stack import Machine, Stack, read_stack


@dataclass(frozen=True)
class Account:
    """A deployed stack as a remote command sees it: the command's state machine, the state table, Region and
    endpoint.
    """

    stack: Stack
    machine: Machine
    state: TableState
    endpoint_url: str | None
    region: str | None

    def command(self, verb: str, rules_file: Path, *more: str) -> str:
        """Return a complete command line for this account, for the user to type."""
        file = [] if rules_file == RULES_FILE else [str(rules_file)]
        words = ["sync-rules", verb, *file, "--remote", *more, *self._list_place_words()]
        return format_stack_variable(self.stack.name) + shlex.join(words)

    def format_failures_command(self, *more: str) -> str:
        """Return the command line that shows the failures of this account."""
        queue = self.stack.outputs.get("FailuresQueueUrl", "URL")
        return shlex.join(["sync-rules", "failures", "--queue", queue, *more, *self._list_place_words()])

    def format_copy_command(self, place: str, file: str) -> str:
        """Return the command line that copies an object of the bucket to a file."""
        return shlex.join(["aws", "s3", "cp", place, file, *self._list_place_words()])

    def _list_place_words(self) -> list[str]:
        return list_place_words(self.endpoint_url, self.region)


def find_account(machine: str, endpoint_url: str | None, region: str | None) -> Account:
    """Return the deployed stack that the environment names; `machine` is the output that names the state machine.
    Raises UserError and StoreError.
    """
    stack = read_stack(aws.cloudformation(endpoint_url, region), os.environ.get(STACK_VARIABLE) or STACK)
    arn, table = stack.output(machine), stack.output("StateTableName")
    state = TableState(aws.dynamodb(endpoint_url, region), table)
    return Account(stack, Machine(aws.stepfunctions(endpoint_url, region), arn), state, endpoint_url, region)


def is_typed(context: typer.Context, parameter: str) -> bool:
    """Return True if a parameter was given on the command line, not by the environment or a default."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"
