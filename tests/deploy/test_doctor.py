"""`sync-rules doctor` against a stack that sam deployed to an emulator: well as deployed, and each damage is found.

The emulator has no metric of how old records are, fails no update, and keeps indexes active: unit tests have those.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sync_rules.cli import main
from tests.deploy.stacks import Stack, eventually

Examine = Callable[[], dict[str, list[str]]]
NO_TOPIC = "have no action: they notify no one"  # it was deployed without one


@pytest.fixture
def examine(quiet_stack: Stack, built: Path, capsys: pytest.CaptureFixture[str]) -> Examine:
    """Runs the command; gives what was found in each area that is not well, but for the alarms' missing topic."""

    def run() -> dict[str, list[str]]:
        code = main.main(["doctor", str(built / "rules.yaml"), "--endpoint-url", quiet_stack.url, "--format", "json"])
        rows = json.loads(capsys.readouterr().out)
        assert code == 1
        (alarms,) = (row["findings"] for row in rows if row["area"] == "alarms")
        assert NO_TOPIC in alarms.pop(0)["found"]
        return {row["area"]: [one["found"] for one in row["findings"]] for row in rows if row["findings"]}

    return run


@contextmanager
def mapping_off(stack: Stack) -> Iterator[None]:
    client = stack.client("lambda")
    uuid = stack.resources()["StreamFunctionShop"]
    client.update_event_source_mapping(UUID=uuid, Enabled=False)
    yield
    client.update_event_source_mapping(UUID=uuid, Enabled=True)


@contextmanager
def failure_waiting(stack: Stack) -> Iterator[None]:
    client, url = stack.client("sqs"), stack.outputs["FailuresQueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="{}")
    yield
    client.purge_queue(QueueUrl=url)


@contextmanager
def scan_denied(stack: Stack) -> Iterator[None]:
    client, role = stack.client("iam"), stack.resources()["VerifyRole"]
    statement = {"Effect": "Deny", "Action": "dynamodb:Scan", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client.put_role_policy(RoleName=role, PolicyName="deny", PolicyDocument=policy)
    yield
    client.delete_role_policy(RoleName=role, PolicyName="deny")


@contextmanager
def other_rules(stack: Stack) -> Iterator[None]:
    client, name = stack.client("lambda"), stack.resources()["VerifyFunction"]
    kept = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    client.update_function_configuration(
        FunctionName=name, Environment={"Variables": {**kept, "SYNC_RULES_RULES": "other"}}
    )
    yield
    client.update_function_configuration(FunctionName=name, Environment={"Variables": kept})


@contextmanager
def alarm_on(stack: Stack) -> Iterator[None]:
    client, name = stack.client("cloudwatch"), stack.resources()["FanoutDeadLettersDepthAlarm"]
    client.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="tried")
    yield
    client.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="tried")


DAMAGES = (
    (mapping_off, "mappings", "table shop: its mapping is Disabled"),
    (failure_waiting, "queues", "FailuresQueue: messages that wait: 1"),
    (scan_denied, "roles", "VerifyFunction may not dynamodb:Scan on"),
    (other_rules, "versions", "VerifyFunction: other rules or another version than StreamFunction has"),
    (alarm_on, "alarms", "FanoutDeadLettersDepthAlarm"),
)


@pytest.mark.night
def test_doctor_of_a_deployed_stack(quiet_stack, examine):
    """Everything is well but the alarms' topic, without the variable of the rules file; each damage is found, alone."""
    eventually(examine, lambda found: not found)
    for damage, area, said in DAMAGES:
        with damage(quiet_stack):
            (found,) = eventually(examine, lambda found, area=area: set(found) == {area}).values()
            assert all(said in one for one in found), (damage, found)
        eventually(examine, lambda found: not found)
