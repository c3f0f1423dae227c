"""The deployed stack, as who starts something in it sees it: its outputs, and its state machines.

Law: whatever is missing is named, with what to do about it. Nothing of the stack is changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Final

from sync_rules.adapters import aws
from sync_rules.jobs.account.protocol import LEFT, REFUSED, Body
from sync_rules.model.errors import StoreError, UserError

POLL_SECONDS: Final = 2.0
BEGUN_LOOKS: Final = 30  # a minute: a function that is called for the first time takes seconds
RUNNING: Final = "RUNNING"
WELL: Final = "SUCCEEDED"
BROKEN_OFF: Final = ("ABORTED", "TIMED_OUT")
STOPPED: Final = "Stopped"


@dataclass(frozen=True)
class Stack:
    """A deployed stack, by name and region; `outputs` of its template."""

    name: str
    region: str
    outputs: Mapping[str, str]

    def output(self, name: str) -> str:
        """One of them. Raises UserError where the stack is another one's."""
        if name not in self.outputs:
            raise UserError(f"stack {self.name} in {self.region} has no output {name}: is it one of sync-rules?")
        return self.outputs[name]


def stack_of(client: Any, name: str) -> Stack:
    """The stack of this name. Raises UserError when there is none, StoreError."""
    region = client.meta.region_name
    try:
        (found,) = aws.retrying(first=True)(client.describe_stacks, StackName=name)["Stacks"]
    except aws.ERRORS as error:
        if aws.code(error) == "ValidationError":
            message = f"no stack {name} in region {region}: deploy it (sam build, sam deploy), or name it with --stack"
            raise UserError(message) from error
        raise aws.store_error(error, f"stack {name} in {region}") from error
    return Stack(name, region, {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())})


@dataclass(frozen=True)
class Execution:
    """How a run of a state machine stands; `error` and `cause` also of one that ended well with such an answer."""

    name: str
    status: str
    error: str = ""
    cause: str = ""

    @property
    def runs(self) -> bool:
        return self.status == RUNNING

    def well(self) -> bool:
        """Whether it came to its end with nothing left; False when something was, or it was stopped.

        Raises:
            UserError: when it could not begin, by the user's doing.
            StoreError: when it broke.
        """
        if self.error == REFUSED:
            raise UserError(self.cause)
        if self.status == WELL:
            return True
        if self.status in BROKEN_OFF or self.error in (LEFT, STOPPED):
            return False
        raise StoreError(self.error or self.status, f"{self.name}: {_message(self.cause)}")


class Machine:
    """One of the state machines of a stack. Each call raises StoreError."""

    def __init__(self, client: Any, arn: str) -> None:
        self._client = client
        self._arn = arn

    def start(self, verb: str, asked: Body) -> str:
        """Start it. Gives the name of the execution."""
        name = f"{verb}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{token_hex(3)}"
        self._ask("start_execution", stateMachineArn=self._arn, name=name, input=json.dumps(asked))
        return name

    def running(self) -> list[str]:
        """The executions that run."""
        found = self._ask("list_executions", stateMachineArn=self._arn, statusFilter=RUNNING)
        return [one["name"] for one in found["executions"]]

    def execution(self, name: str) -> Execution:
        """How an execution stands."""
        found = self._ask("describe_execution", executionArn=self._execution_arn(name))
        said = found if found["status"] != WELL else _answer(found.get("output", ""))
        return Execution(name, found["status"], said.get("error", ""), said.get("cause", ""))

    def stop(self, name: str) -> None:
        """End an execution; what its functions are at they still finish."""
        self._ask("stop_execution", executionArn=self._execution_arn(name), error=STOPPED, cause="by the user")

    def begun(
        self, name: str, there: Callable[[], object], sleep: Callable[[float], None] = time.sleep
    ) -> Execution | None:
        """Wait until `there` finds what is there once it has begun, or it has ended, for about a minute. None when
        neither was seen.
        """
        try:
            for _ in range(BEGUN_LOOKS):
                found, now = there(), self.execution(name)
                if found or not now.runs:
                    return now
                sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{name} goes on in the account; whether it could begin was not seen") from None
        return None

    def watch(self, name: str, look: Callable[[], object], sleep: Callable[[float], None] = time.sleep) -> Execution:
        """Look again and again, until it has ended; and once more then. Ctrl-C leaves it running, and says so."""
        try:
            while (now := self.execution(name)).runs:
                look()
                sleep(POLL_SECONDS)
            look()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{name} goes on in the account, without being watched") from None
        return now

    def _execution_arn(self, name: str) -> str:
        return f"{self._arn.replace(':stateMachine:', ':execution:')}:{name}"

    def _ask(self, call: str, **parameters: Any) -> Any:
        try:
            return aws.retrying(first=True)(getattr(self._client, call), **parameters)
        except aws.ERRORS as error:
            raise aws.store_error(error, f"state machine {self._arn.rpartition(':')[2]}") from error


def _message(cause: str) -> str:
    """What a function said; Step Functions gives it as JSON."""
    return str(_answer(cause).get("errorMessage", cause))


def _answer(text: str) -> dict[str, Any]:
    """What a function answered; nothing where that is not JSON."""
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
