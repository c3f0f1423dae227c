"""`--remote`: what backfill, verify and redrive share when they are done in the account.

Law: whoever watches changes nothing, and may leave at any time.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.state import TableState
from sync_rules.jobs.account.stack import Machine, Stack, stack_of
from sync_rules.model.errors import UserError

Remote = Annotated[bool, typer.Option("--remote", help="In the account, by the deployed stack's functions.")]
StackName = Annotated[
    str, typer.Option("--stack", metavar="NAME", help="The deployed stack, of --remote.", envvar="SYNC_RULES_STACK")
]
Detach = Annotated[bool, typer.Option("--detach", help="With --remote: start it and leave.")]
STACK = "sync-rules"
RULES_FILE = Path("rules.yaml")  # where none is named


@dataclass(frozen=True)
class Account:
    """Where it is done: a stack, and how to reach it."""

    stack: Stack
    machine: Machine
    state: TableState
    endpoint_url: str | None
    region: str | None

    def command(self, verb: str, rules_file: Path, *more: str) -> str:
        """A command line that does more in this account, as it has to be typed."""
        file = [] if rules_file == RULES_FILE else [str(rules_file)]
        stack = [] if self.stack.name == STACK else ["--stack", self.stack.name]
        return shlex.join(["sync-rules", verb, *file, "--remote", *more, *stack, *self._reached()])

    def failures_command(self, *more: str) -> str:
        """The command line that shows what could not be done, and why."""
        queue = self.stack.outputs.get("FailuresQueueUrl", "URL")
        return shlex.join(["sync-rules", "failures", "--queue", queue, *more, *self._reached()])

    def copy_command(self, place: str, file: str) -> str:
        """The command line that copies an object of the bucket to a file."""
        return shlex.join(["aws", "s3", "cp", place, file, *self._reached()])

    def _reached(self) -> list[str]:
        given = {"--endpoint-url": self.endpoint_url, "--region": self.region}
        return [word for name, value in given.items() if value for word in (name, value)]


def account_of(stack_name: str, machine: str, endpoint_url: str | None, region: str | None) -> Account:
    """The stack, the machine of which an output names, and the state. Raises UserError, StoreError."""
    stack = stack_of(aws.cloudformation(endpoint_url, region), stack_name)
    arn, table = stack.output(machine), stack.output("StateTableName")
    client = aws.stepfunctions(endpoint_url, region)
    return Account(
        stack, Machine(client, arn), TableState(aws.dynamodb(endpoint_url, region), table), endpoint_url, region
    )


def left_alone(account: Account, name: str, there: Callable[[], object], hint: str = "") -> int:
    """Say that an execution was started, once `there` finds that it could begin; `hint` says more. The exit code.

    Raises:
        UserError: when it could not begin, by the user's doing.
        StoreError: when it broke.
    """
    now = account.machine.begun(name, there)
    well = now is None or now.runs or now.well()
    said = ": it has not begun within a minute" if now is None else "" if now.runs else ": it has ended already"
    print(f"started {name}{said}")
    if hint:
        print(hint)
    return 0 if well else 1


def typed(context: typer.Context, *parameters: str) -> frozenset[str]:
    """Those of these parameters that stand on the command line, and not in the environment."""
    sources = {name: context.get_parameter_source(name) for name in parameters}
    return frozenset(name for name, source in sources.items() if source and source.name == "COMMANDLINE")


def require_local(options: Mapping[str, Any], why: str = "it is for this machine") -> None:
    """Raises UserError for the first option given that makes no sense with --remote."""
    for name, value in options.items():
        if value:
            raise UserError(f"{name} cannot be given with --remote: {why}")


def require_remote(options: Mapping[str, Any]) -> None:
    """Raises UserError for the first option given that makes sense with --remote only."""
    for name, value in options.items():
        if value:
            raise UserError(f"{name} is for --remote")
