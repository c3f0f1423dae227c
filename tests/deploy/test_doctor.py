"""`sync-rules doctor` against a stack that sam deployed to an emulator: well as deployed; a missing right is found.

Unit tests have every other damage.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sync_rules.cli import main
from tests.deploy.stacks import Stack, eventually

NO_TOPIC = "have no action: they notify no one"  # it was deployed without one


@pytest.mark.night
def test_doctor_finds_what_is_wrong_with_a_deployed_stack(quiet_stack: Stack, built: Path, capsys):
    """Everything is well but the alarms' topic, without the variable of the rules file; a denied right is found, alone."""

    def examine() -> dict[str, list[str]]:
        code = main.main(["doctor", str(built / "rules.yaml"), "--endpoint-url", quiet_stack.url, "--format", "json"])
        assert code == 1
        rows = json.loads(capsys.readouterr().out)
        return {row["area"]: [one["found"] for one in row["findings"]] for row in rows if row["findings"]}

    (topic,) = eventually(examine, lambda found: found.keys() == {"alarms"})["alarms"]
    assert NO_TOPIC in topic
    statement = {"Effect": "Deny", "Action": "dynamodb:Scan", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client, denied = (
        quiet_stack.client("iam"),
        {"RoleName": quiet_stack.resources()["VerifyRole"], "PolicyName": "deny"},
    )
    client.put_role_policy(**denied, PolicyDocument=policy)
    found = eventually(examine, lambda found: found.keys() == {"alarms", "roles"})["roles"]
    client.delete_role_policy(**denied)
    assert all("VerifyFunction may not dynamodb:Scan on" in one for one in found)
