"""The deployed stack for its clients: its outputs and its state machines. An error names what is missing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Final

from sync_rules.adapters import aws_errors, retries
from sync_rules.jobs.account.protocol import LEFT, REFUSED, Body
from sync_rules.model import json_bytes
from sync_rules.model.errors import StoreError, UserError

POLL_SECONDS: Final = 2.0
RUNNING: Final = "RUNNING"
WELL: Final = "SUCCEEDED"
BROKEN_OFF: Final = ("ABORTED", "TIMED_OUT")
STOPPED: Final = "Stopped"


@dataclass(frozen=True)
class Stack:
    """A deployed stack, by name and region; `outputs` and `parameters` of its template."""

    name: str
    region: str
    outputs: Mapping[str, str]
    arn: str = ""
    status: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    def output(self, name: str) -> str:
        """Return an output by name. Raises UserError if the stack lacks it."""
        if name not in self.outputs:
            raise UserError(f"stack {self.name} in {self.region} has no output {name}: is it one of sync-rules?")
        return self.outputs[name]


def read_stack(client: Any, name: str) -> Stack:
    """Read the stack of this name. Raises StoreError, and UserError if CloudFormation has no such stack."""
    region = client.meta.region_name
    try:
        stacks = retries.make_retry(first=True)(client.describe_stacks, StackName=name)["Stacks"]
    except aws_errors.ERRORS as error:
        if aws_errors.read_code(error) == "ValidationError":
            cure = "deploy it (sam build, sam deploy), or name it with SYNC_RULES_STACK"
            raise UserError(f"no stack {name} in region {region}: {cure}") from error
        raise aws_errors.make_store_error(error, f"stack {name} in {region}", client=client) from error
    found = stacks[0] if stacks else {}
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
    parameters = {one["ParameterKey"]: one.get("ParameterValue", "") for one in found.get("Parameters", ())}
    return Stack(name, region, outputs, found.get("StackId", ""), found.get("StackStatus", ""), parameters)


@dataclass(frozen=True)
class Execution:
    """The status of an execution of a state machine, with the `error` and `cause` of its answer."""

    name: str
    status: str
    error: str = ""
    cause: str = ""

    def well(self) -> bool:
        """Return True if the job ended with nothing left, False if something was left or the user stopped it.

        Raises:
            UserError: if the job could not begin, by the user's mistake.
            StoreError: if the execution failed.
        """
        if self.error == REFUSED:
            raise UserError(self.cause)
        if self.status == WELL:
            return True
        if self.status in BROKEN_OFF or self.error in (LEFT, STOPPED):
            return False
        message = _answer(self.cause).get("errorMessage", self.cause)  # a function's error comes as JSON
        raise StoreError(self.error or self.status, f"{self.name}: {message}")


@dataclass(frozen=True)
class Machine:
    """One of the state machines of a stack. Each method raises StoreError."""

    client: Any
    arn: str

    def start(self, verb: str, asked: Body) -> str:
        """Start an execution. Returns its name."""
        name = f"{verb}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{token_hex(3)}"
        self._ask("start_execution", stateMachineArn=self.arn, name=name, input=json.dumps(asked))
        return name

    def list_running_executions(self) -> list[str]:
        """Return the names of the executions that are running."""
        found = self._ask("list_executions", stateMachineArn=self.arn, statusFilter=RUNNING)
        return [one["name"] for one in found["executions"]]

    def execution(self, name: str) -> Execution:
        found = self._ask("describe_execution", executionArn=self._format_execution_arn(name))
        said = found if found["status"] != WELL else _answer(found.get("output", ""))
        return Execution(name, found["status"], said.get("error", ""), said.get("cause", ""))

    def stop(self, name: str) -> None:
        """End an execution; its functions still finish their calls."""
        self._ask("stop_execution", executionArn=self._format_execution_arn(name), error=STOPPED, cause="by the user")

    def watch(self, name: str, look: Callable[[], object], sleep: Callable[[float], None] = time.sleep) -> Execution:
        """Call `look` every two seconds until the execution ends, and once after that. Ctrl-C leaves the execution
        running, and says so.
        """
        try:
            while (now := self.execution(name)).status == RUNNING:
                look()
                sleep(POLL_SECONDS)
            look()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{name} goes on in the account, without being watched") from None
        return now

    def _format_execution_arn(self, name: str) -> str:
        return f"{self.arn.replace(':stateMachine:', ':execution:')}:{name}"

    def _ask(self, call: str, **parameters: Any) -> Any:
        where = f"state machine {self.arn.rpartition(':')[2]}"
        return retries.ask(retries.make_retry(first=True), where, getattr(self.client, call), **parameters)


def _answer(text: str) -> dict[str, Any]:
    try:
        body = json_bytes.parse_json(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
