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
from sync_rules.adapters.acceptance import set_stack
from sync_rules.adapters.state import TableState
from sync_rules.cli.options import RULES_FILE, STACK, STACK_VARIABLE, place_words
from sync_rules.jobs.account.stack import Machine, Stack, stack_of


@dataclass(frozen=True)
class Account:
    """A deployed stack, one of its state machines, its state table, and how to reach them."""

    stack: Stack
    machine: Machine
    state: TableState
    endpoint_url: str | None
    region: str | None

    def command(self, verb: str, rules_file: Path, *more: str) -> str:
        """A complete command line for this account, to be typed by the user."""
        file = [] if rules_file == RULES_FILE else [str(rules_file)]
        words = ["sync-rules", verb, *file, "--remote", *more, *self._place()]
        return set_stack(self.stack.name) + shlex.join(words)

    def failures_command(self, *more: str) -> str:
        """The command line that shows what failed in this account."""
        queue = self.stack.outputs.get("FailuresQueueUrl", "URL")
        return shlex.join(["sync-rules", "failures", "--queue", queue, *more, *self._place()])

    def copy_command(self, place: str, file: str) -> str:
        """The command line that copies an object of the bucket to a file."""
        return shlex.join(["aws", "s3", "cp", place, file, *self._place()])

    def _place(self) -> list[str]:
        return place_words(self.endpoint_url, self.region)


def find_account(machine: str, endpoint_url: str | None, region: str | None) -> Account:
    """Find the stack; `machine` is the output that names the state machine. Raises UserError, StoreError."""
    stack = stack_of(aws.cloudformation(endpoint_url, region), os.environ.get(STACK_VARIABLE) or STACK)
    arn, table = stack.output(machine), stack.output("StateTableName")
    state = TableState(aws.dynamodb(endpoint_url, region), table)
    return Account(stack, Machine(aws.stepfunctions(endpoint_url, region), arn), state, endpoint_url, region)


def is_typed(context: typer.Context, parameter: str) -> bool:
    """True if a parameter was given on the command line, as opposed to the environment or a default."""
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"
