"""`--remote`: the parts that backfill, verify and redrive share when they run in the account.

Invariant: watching changes nothing, and a watcher may leave at any time.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.state import TableState
from sync_rules.cli.options import RULES_FILE, STACK
from sync_rules.cli.show.text import without_secrets
from sync_rules.jobs.account.stack import Machine, Stack, stack_of
from sync_rules.model.errors import UserError


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
        stack = [] if self.stack.name == STACK else ["--stack", self.stack.name]
        return shlex.join(["sync-rules", verb, *file, "--remote", *more, *stack, *self._reached()])

    def failures_command(self, *more: str) -> str:
        """The command line that shows what failed in this account."""
        queue = self.stack.outputs.get("FailuresQueueUrl", "URL")
        return shlex.join(["sync-rules", "failures", "--queue", queue, *more, *self._reached()])

    def copy_command(self, place: str, file: str) -> str:
        """The command line that copies an object of the bucket to a file."""
        return shlex.join(["aws", "s3", "cp", place, file, *self._reached()])

    def _reached(self) -> list[str]:
        given = {"--endpoint-url": self.endpoint_url, "--region": self.region}
        return [word for name, value in given.items() if value for word in (name, without_secrets(value))]


def account_of(stack_name: str, machine: str, endpoint_url: str | None, region: str | None) -> Account:
    """Find the stack; `machine` is the output that names the state machine. Raises UserError, StoreError."""
    stack = stack_of(aws.cloudformation(endpoint_url, region), stack_name)
    arn, table = stack.output(machine), stack.output("StateTableName")
    state = TableState(aws.dynamodb(endpoint_url, region), table)
    return Account(stack, Machine(aws.stepfunctions(endpoint_url, region), arn), state, endpoint_url, region)


def report_started(account: Account, name: str, there: Callable[[], object], hint: str = "") -> int:
    """Report that an execution was started, once `there` finds that it has begun, then `hint`. Gives the exit code.

    Raises:
        UserError: when it could not begin because of the request.
        StoreError: when it broke.
    """
    now = account.machine.begun(name, there)
    well = now is None or now.runs or now.well()
    state = ": not begun within a minute" if now is None else "" if now.runs else ": already ended"
    print(f"started {name}{state}")
    if hint:
        print(hint)
    return 0 if well else 1


def typed(context: typer.Context, *parameters: str) -> frozenset[str]:
    """The parameters that were given on the command line, as opposed to the environment or a default."""
    sources = {name: context.get_parameter_source(name) for name in parameters}
    return frozenset(name for name, source in sources.items() if source and source.name == "COMMANDLINE")


def require_local(options: Mapping[str, Any], why: str = "it applies to a run on this machine") -> None:
    """Raises UserError for the first option given that makes no sense with --remote."""
    for name, value in options.items():
        if value:
            raise UserError(f"{name} cannot be given with --remote: {why}")
