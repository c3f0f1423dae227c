"""`--remote`: what backfill, verify and redrive share when they are done in the account.

Law: whoever watches changes nothing, and may leave at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sync_rules import aws
from sync_rules.errors import UserError
from sync_rules.remote.documents import SharedTable
from sync_rules.remote.stack import Machine, Stack, stack_of

Remote = Annotated[bool, typer.Option("--remote", help="In the account, by the deployed stack's functions.")]
StackName = Annotated[
    str, typer.Option("--stack", metavar="NAME", help="The deployed stack, of --remote.", envvar="SYNC_RULES_STACK")
]
Detach = Annotated[bool, typer.Option("--detach", help="With --remote: start it and leave.")]
STACK = "sync-rules"


@dataclass(frozen=True)
class Account:
    """Where it is done: a stack, and how to reach it."""

    stack: Stack
    machine: Machine
    state: SharedTable
    endpoint_url: str | None
    region: str | None


def account_of(stack_name: str, machine: str, endpoint_url: str | None, region: str | None) -> Account:
    """The stack, the machine of which an output names, and the state. Raises UserError, StoreError."""
    stack = stack_of(aws.cloudformation(endpoint_url, region), stack_name)
    arn, table = stack.output(machine), stack.output("StateTableName")
    client = aws.stepfunctions(endpoint_url, region)
    return Account(
        stack, Machine(client, arn), SharedTable(aws.dynamodb(endpoint_url, region), table), endpoint_url, region
    )


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
