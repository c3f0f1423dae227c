"""Nothing answers at --endpoint-url, or a right is missing: every verb that asks there says what, where, and a cure."""

from __future__ import annotations

from socket import socket

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from sync_rules.adapters import aws, patience
from sync_rules.cli import main
from sync_rules.deploy.tables import make_table_parameters
from tests.support import every_kind

KEY = """--key {"PK":"USER#1","SK":"PROFILE"}"""
LOCAL = (
    "backfill",
    "backfill --changed",
    "verify",
    "plan",
    "plan --changed",
    "run --once",
    "record --once --out r.jsonl",
    f"explain {KEY} --table shop",
    "cost --sample 0.5",
    "plan --state table:state",
)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Gives a function that runs a command beside a rules file, and gives what it says on the terminal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.yaml").write_text(every_kind.text_of(every_kind.RULES))

    def told(command: str, *more: str) -> str:
        assert main.main([*command.split(), *more, "--region", "eu-west-1"]) != 0
        return " ".join(capsys.readouterr().err.split())

    return told


@pytest.mark.parametrize(
    ("service", "command"),
    [
        *(("DynamoDB", command) for command in (*LOCAL, "tables create rules.yaml")),
        ("CloudFormation", "backfill rules.yaml --remote"),
        ("CloudFormation", "verify rules.yaml --remote"),
        ("CloudFormation", "redrive rules.yaml --remote"),
        ("CloudFormation", "doctor rules.yaml --stack shop"),
        ("CloudFormation", "selftest --yes"),
        ("CloudFormation", "selftest --clean"),
    ],
)
def test_unanswered_names_the_address_the_service_and_a_cure(service, command, run):
    """A refused port."""
    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    said = run(command, "--endpoint-url", url)
    assert f"no answer from {url} (Region eu-west-1): is {service} running there? Correct --endpoint-url" in said
    assert "waiting since" not in said  # it ends at once, and not with the patience of a command


@pytest.mark.parametrize("command", LOCAL)
def test_unanswered_ends_soon_at_an_address_that_is_silent(command, run, monkeypatch):
    """A port that takes connections and answers nothing, as a firewall makes one of the right address."""
    monkeypatch.setattr(aws, "READ_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(patience, "FIRST_SHOWN_SECONDS", 2.0)
    monkeypatch.setattr(main, "PATIENCE_SECONDS", 3.0)
    with socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        said = run(command, "--endpoint-url", url)
    assert f"ReadTimeoutError: no answer from {url} (Region eu-west-1): is DynamoDB running there?" in said
    assert "waiting since" not in said


@pytest.mark.parametrize(
    ("command", "denied"),
    [
        *(("plan", action) for action in ("DescribeTable", "Scan", "BatchGetItem")),
        *(("backfill", action) for action in ("DescribeTable", "Scan", "GetItem", "BatchGetItem")),
        *(("verify", action) for action in ("DescribeTable", "Scan")),
        (f"explain {KEY} --table shop", "GetItem"),
    ],
)
def test_a_missing_right_is_named_with_its_action_and_a_cure(command, denied, run, monkeypatch):
    """All other requests find what the rules need, and no item."""
    rules = every_kind.rules_of(effects=False)
    tables = {table.physical_name: table for table in rules.tables.values()}

    def call(_client: BaseClient, operation: str, given: dict) -> dict:
        if operation == denied:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": ""}}, operation)
        return answer(operation, given)

    def answer(operation: str, given: dict) -> dict:
        if operation == "DescribeTable":
            return {"Table": make_table_parameters(tables[given["TableName"]], stream=True) | {"ItemCount": 0}}
        return {"Items": [], "Responses": {}, "UnprocessedKeys": {}}

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    said = run(command)
    assert f"AccessDeniedException: {denied} of " in said
    assert "these credentials may not do this" in said
    assert said.count("these credentials") == 1
