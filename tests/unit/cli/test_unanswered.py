"""Nothing answers at --endpoint-url: every verb that asks there names the address, the service and a cure."""

from __future__ import annotations

from socket import socket

import pytest

from sync_rules.cli import main
from tests.unit.lab.test_trial import RULES


@pytest.mark.parametrize(
    ("service", "command"),
    [
        ("DynamoDB", "backfill rules.yaml --failures f.jsonl"),
        ("DynamoDB", "verify rules.yaml"),
        ("DynamoDB", "plan rules.yaml"),
        ("DynamoDB", "tables create rules.yaml"),
        ("CloudFormation", "backfill rules.yaml --remote --stack shop"),
        ("CloudFormation", "verify rules.yaml --remote --stack shop"),
        ("CloudFormation", "redrive rules.yaml --remote --stack shop"),
        ("CloudFormation", "doctor rules.yaml --stack shop"),
        ("CloudFormation", "selftest --yes"),
        ("CloudFormation", "selftest --clean"),
    ],
)
def test_unanswered_names_the_address_the_service_and_a_cure(service, command, tmp_path, monkeypatch, capsys):
    """A refused port."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.yaml").write_text(RULES)
    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    assert main.main([*command.split(), "--endpoint-url", url, "--region", "eu-west-1"]) != 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"no answer from {url} (Region eu-west-1): is {service} running there? Correct --endpoint-url" in said
