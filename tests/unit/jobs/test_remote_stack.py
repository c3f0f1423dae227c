"""The deployed stack as a user finds it: missing parts are named, and an execution's end is explained."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from sync_rules.jobs.account.stack import Execution, Machine, Stack, read_stack
from sync_rules.model.errors import StoreError, UserError
from tests.unit.adapters.test_dynamodb import Client

ARN = "arn:aws:states:us-east-1:111122223333:stateMachine:s-backfill"


class Regional(Client):
    """A client in a Region."""

    meta = SimpleNamespace(region_name="eu-west-1", endpoint_url="https://x")


def test_stack_that_is_not_there_is_named():
    """The message says name, region and cure."""
    error = ClientError({"Error": {"Code": "ValidationError", "Message": "x"}}, "DescribeStacks")
    with pytest.raises(UserError, match=r"no stack shop in region eu-west-1: deploy it .* SYNC_RULES_STACK"):
        read_stack(Regional(error), "shop")


def test_stack_that_is_another_ones_is_named():
    """A stack without the output is none of ours."""
    outputs = [{"OutputKey": "A", "OutputValue": "1"}]
    stack = read_stack(Regional({"Stacks": [{"Outputs": outputs}]}), "shop")
    assert stack == Stack("shop", "eu-west-1", {"A": "1"})
    assert stack.output("A") == "1"
    with pytest.raises(UserError, match="no output BackfillMachineArn"):
        stack.output("BackfillMachineArn")


@pytest.mark.parametrize(
    ("status", "error", "well"),
    [
        ("SUCCEEDED", "", True),
        ("FAILED", "NotAllDone", False),
        ("FAILED", "Stopped", False),
        ("ABORTED", "", False),
        ("TIMED_OUT", "", False),
    ],
)
def test_execution_is_well_when_all_is_done(status, error, well):
    """An execution that was stopped or left something is neither a success nor an error."""
    assert Execution("x", status, error, "why").well() is well


def test_execution_that_broke_says_why():
    """An execution that broke raises the function's refusal as a UserError, or its exception's text without the JSON."""
    with pytest.raises(UserError, match=r"^no such rule$"):
        Execution("x", "FAILED", "Refused", "no such rule").well()
    cause = json.dumps({"errorMessage": "TableNotFound: state", "errorType": "StoreError", "stackTrace": []})
    with pytest.raises(StoreError, match=r"^StoreError: x: TableNotFound: state$"):
        Execution("x", "FAILED", "StoreError", cause).well()


def test_execution_that_was_refused_ends_well_and_is_the_users_mistake():
    """A refused execution succeeds, so no alarm goes off, and raises the refusal as a UserError."""
    output = json.dumps({"more": False, "units": [], "error": "Refused", "cause": "no such rule"})
    machine = Machine(Regional({"status": "SUCCEEDED", "output": output}), ARN)
    with pytest.raises(UserError, match=r"^no such rule$"):
        machine.execution("x").well()
    for text in ("", "[]", json.dumps({"error": "", "cause": ""})):
        machine = Machine(Regional({"status": "SUCCEEDED", "output": text}), ARN)
        assert machine.execution("x").well()


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ({"more": True, "error": ""}, "Map"),
        ({"more": False, "error": ""}, "Succeed"),
        ({"more": False, "error": "Refused"}, "Succeed"),
        ({"more": False, "error": "NotAllDone"}, "Fail"),
        ({"more": False, "error": "Stopped"}, "Fail"),
    ],
    ids=["more", "done", "refused", "left", "stopped"],
)
def test_machine_fails_for_what_is_left_and_not_for_what_is_refused(answer, state):
    """The state machine fails if something is left, and succeeds if the request was refused."""
    states = json.loads((Path(__file__).parents[3] / "infra/machine.asl.json").read_text())["States"]

    def holds(choice: dict) -> bool:
        if "Not" in choice:
            return not holds(choice["Not"])
        (expected,) = (choice[name] for name in ("BooleanEquals", "StringEquals") if name in choice)
        return answer[choice["Variable"].removeprefix("$.")] == expected

    there = next((one["Next"] for one in states["Look"]["Choices"] if holds(one)), states["Look"]["Default"])
    assert states[there]["Type"] == state


def test_machine_that_is_left_goes_on():
    """Ctrl-C ends the watching and says that the execution continues."""

    def left(_seconds):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="one goes on in the account"):
        Machine(Regional({"status": "RUNNING"}), ARN).watch("one", lambda: None, sleep=left)


def test_machine_starts_and_stops_executions_by_name():
    """The name says what it is, and the input what was asked."""
    client = Client({}, {}, {"executions": [{"name": "a"}]})
    machine = Machine(client, ARN)
    name = machine.start("backfill", {"rate": 5})
    assert name.startswith("backfill-")
    assert json.loads(client.calls[0][1]["input"]) == {"rate": 5}
    machine.stop(name)
    assert client.calls[1][1]["executionArn"].endswith(f":execution:s-backfill:{name}")
    assert machine.list_running_executions() == ["a"]
