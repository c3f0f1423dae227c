"""Probes of other services: queues, the bucket, the state machine, roles, the stack itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from sync_rules.adapters import aws_errors
from sync_rules.extras.proof.probe import make_probe, require, require_refused
from sync_rules.extras.proof.probes.mapping_facts import list_deliveries
from sync_rules.extras.proof.proof_stack import ProofSite, make_new_key
from sync_rules.model import json_bytes

MESSAGES: Final = 20
DEAD_AFTER_RECEIVES: Final = 2  # as in stack.yaml
MESSAGE_MAX_BYTES: Final = 1_048_576
DELAY_MAX_SECONDS: Final = 900
DELAY_SECONDS: Final = 3
INPUT_MAX_BYTES: Final = 262_144
POLICY_MAX_CHARACTERS: Final = 10_240
TOO_LONG: Final = "InvalidParameterValue InvalidMessageContents MessageTooLong AWS.SimpleQueueService.MessageTooLong"


def send(site: ProofSite, queue: str, pk: str, fail: int = 0, **more: Any) -> None:
    """Send a message. The function that receives it fails `fail` times."""
    body = json.dumps({"pk": pk, "fail": fail})
    site.ask(site.clients.sqs.send_message, QueueUrl=site.outputs[queue], MessageBody=body, **more)


def receive(site: ProofSite, queue: str, pk: str, visible_again_seconds: int = 60) -> str:
    """Receive a message of this key and return its receipt; "" if this receive does not return the message."""
    answer = site.ask(
        site.clients.sqs.receive_message,
        QueueUrl=site.outputs[queue],
        MaxNumberOfMessages=10,
        VisibilityTimeout=visible_again_seconds,
    )
    receipts = [
        one["ReceiptHandle"] for one in answer.get("Messages", ()) if json_bytes.parse_json(one["Body"]).get("pk") == pk
    ]
    return str(receipts[0]) if receipts else ""


def await_message(site: ProofSite, queue: str, pk: str, visible_again_seconds: int = 60) -> str:
    """Receive until the message comes or the time is over. Return its receipt, or ""."""
    found, _ = site.waiting.until(lambda: receive(site, queue, pk, visible_again_seconds), bool)
    return str(found)


# ---------------------------------------------------------------- queues
@make_probe(52)
def probe_every_message(site: ProofSite) -> str:
    pks = [make_new_key("52#") for _ in range(MESSAGES)]
    for pk in pks:
        send(site, "MappedQueue", pk)
    missing, _ = site.waiting.until(
        lambda: [pk for pk in pks if not list_deliveries(site, pk)], lambda missing: not missing
    )
    require(not missing, f"of {MESSAGES} messages, {len(missing)} were not delivered")
    return f"{MESSAGES} messages were delivered"


@make_probe(53)
def probe_message_limits(site: ProofSite) -> str:
    call, url = site.clients.sqs.send_message, site.outputs["WorkQueue"]
    whole = "x" * MESSAGE_MAX_BYTES
    site.ask(call, QueueUrl=url, MessageBody=whole, DelaySeconds=DELAY_MAX_SECONDS)  # never seen by another probe
    require_refused(call, TOO_LONG, "a message of 1 MiB and a byte", QueueUrl=url, MessageBody=whole + "x")
    late = {"QueueUrl": url, "MessageBody": "{}", "DelaySeconds": DELAY_MAX_SECONDS + 1}
    require_refused(call, "InvalidParameterValue", "a delay of 901 seconds", **late)
    pk = make_new_key("53#")
    send(site, "MappedQueue", pk, DelaySeconds=DELAY_SECONDS)
    given = site.see(lambda: list_deliveries(site, pk), len, "a delayed message was not delivered")
    about = given[0].record["attributes"]
    waited = (int(about["ApproximateFirstReceiveTimestamp"]) - int(about["SentTimestamp"])) / 1000
    require(waited >= DELAY_SECONDS - 1, f"a message with a delay of {DELAY_SECONDS} s came after {waited:g} s")
    return "1 MiB and 900 s accepted, more refused; a delay was kept"


@make_probe(54)
def probe_visibility(site: ProofSite) -> str:
    pk = make_new_key("54#")
    send(site, "WorkQueue", pk)
    receipt = await_message(site, "WorkQueue", pk)
    require(receipt, "a message could not be received")
    require(not receive(site, "WorkQueue", pk), "a message that was received is visible before its timeout")
    change, url = site.clients.sqs.change_message_visibility, site.outputs["WorkQueue"]
    site.ask(change, QueueUrl=url, ReceiptHandle=receipt, VisibilityTimeout=0)
    receipt = await_message(site, "WorkQueue", pk)
    require(receipt, "a message whose timeout was set to 0 did not come again")
    site.ask(site.clients.sqs.delete_message, QueueUrl=url, ReceiptHandle=receipt)
    pk = make_new_key("54#")
    send(site, "MappedQueue", pk, fail=1)
    given, again = site.waiting.until(lambda: list_deliveries(site, pk), lambda given: len(given) > 1)
    require(again, f"a message that the function reported as failed came {len(given)} times")
    return "visible again after a timeout of 0, and after a function reported it"


@make_probe(55)
def probe_dead_letters(site: ProofSite) -> str:
    pk = make_new_key("55#")
    send(site, "WorkQueue", pk)
    for n in range(DEAD_AFTER_RECEIVES):
        require(not receive(site, "DeadQueue", pk, 0), f"a message is a dead letter after {n} receives")
        require(await_message(site, "WorkQueue", pk, 0), f"a message could not be received {n + 1} times")

    def look() -> str:
        require(not receive(site, "WorkQueue", pk, 0), f"a message was received {DEAD_AFTER_RECEIVES + 1} times")
        return receive(site, "DeadQueue", pk)

    site.see(look, bool, f"a message is no dead letter after {DEAD_AFTER_RECEIVES} receives")
    return f"a dead letter after {DEAD_AFTER_RECEIVES} receives, not before"


# ---------------------------------------------------------------- the bucket, the state machine, roles, the stack
def _execute(site: ProofSite, units: list[dict[str, bool]]) -> dict[str, Any]:
    client = site.clients.stepfunctions
    asked = json.dumps({"units": units})
    arn = site.ask(client.start_execution, stateMachineArn=site.outputs["Machine"], input=asked)["executionArn"]

    def look() -> dict[str, Any]:
        return dict(site.ask(client.describe_execution, executionArn=arn))

    return site.see(look, lambda found: found["status"] != "RUNNING", "an execution with a few units did not end")


@make_probe(59)
def probe_map_permissions(site: ProofSite) -> str:
    found = _execute(site, [{"fail": False}] * 3)
    require(found["status"] == "SUCCEEDED", f"a distributed map ended {found['status']}: {found.get('error', '')}")
    return "a distributed map ran with StartExecution, DescribeExecution and StopExecution"


@make_probe(60)
def probe_tolerated_failures(site: ProofSite) -> str:
    found = _execute(site, [{"fail": n % 2 == 0} for n in range(4)])
    require(found["status"] == "SUCCEEDED", f"a map with two failed units of four ended {found['status']}")
    return "two of four units failed, and the map ended well"


@make_probe(61)
def probe_input_limit(site: ProofSite) -> str:
    call, arn = site.clients.stepfunctions.start_execution, site.outputs["Machine"]
    text = json.dumps({"units": [], "fill": ""})
    whole = text.replace('"fill": ""', f'"fill": "{"x" * (INPUT_MAX_BYTES - len(text))}"')
    site.ask(call, stateMachineArn=arn, input=whole)
    codes = "InvalidExecutionInput ValidationException"
    more = whole.replace('"}', 'x"}')
    require_refused(call, codes, "an input of 256 KiB and a byte", stateMachineArn=arn, input=more)
    return "256 KiB accepted, a byte more refused"


@make_probe(64)
def probe_policy_limit(site: ProofSite) -> str:
    names = [f"arn:aws:dynamodb:*:*:table/{n:04d}" for n in range(POLICY_MAX_CHARACTERS // 30)]
    statement = {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": names}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    asked = {"RoleName": site.table("limited"), "PolicyName": "too-long"}
    client = site.clients.iam
    try:
        codes = "LimitExceeded LimitExceededException"
        said = "inline policies of more than 10,240 characters"
        require_refused(client.put_role_policy, codes, said, PolicyDocument=document, **asked)
    except Exception:
        # The stack's role could not be removed with a policy that the stack does not know.
        _delete_policy(site, asked)
        raise
    return "inline policies of more than 10,240 characters were refused"


def _delete_policy(site: ProofSite, asked: Mapping[str, str]) -> None:
    try:
        site.ask(site.clients.iam.delete_role_policy, **asked)
    except aws_errors.ERRORS as error:
        if aws_errors.read_code(error) != "NoSuchEntity":
            raise


@make_probe(66)
def probe_custom_resource(site: ProofSite) -> str:
    found = site.outputs.get("State", "")
    require(found == "ACTIVE", f"the custom resource saw its table in state {found or 'unknown'}")
    return "called when its table was there, and its answer was read"
