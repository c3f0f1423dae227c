"""The functions that some rules call outside the tables are made ready only if a rule needs them."""

from __future__ import annotations

import sys
from dataclasses import replace

import boto3
import pytest
from moto import mock_aws

from sync_rules.adapters import aws
from sync_rules.adapters.effects import make_caller
from sync_rules.adapters.function_calls import import_function
from sync_rules.functions import runtime
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Change, ItemKey
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import CallMessage, PushMessage
from sync_rules.pipeline.requests import NULL_PORTS
from sync_rules.rules import compiled_file
from sync_rules.rules.kinds.call import CallRule
from sync_rules.rules.ruleset import Rules
from tests.support.builders import entity, rules_of, shop, table
from tests.support.cold import start_cold
from tests.support.worlds import Untouchable
from tests.unit.adapters.test_dynamodb import Client, failed

GAMES = table("games", {"PK": "S"})
GAME = entity("game", GAMES)
CALL = CallRule(name="tell", source=GAME, target=GAME, function="outside_hooks.tell")
RULES = rules_of(CALL)
MODULE = "TOLD = []\n\ndef tell(change):\n    TOLD.append(change)\n"


@pytest.fixture
def world(monkeypatch):
    """AWS, as moto plays it; each test is a process of its own."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    for name in (runtime.QUEUE_URL, runtime.FAILURES_URL, runtime.CALLS_TABLE, runtime.ENDPOINT_URL, "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        start_cold()
        aws._make_client.cache_clear()
        create("calls", id="S")
        yield monkeypatch
    start_cold()
    aws._make_client.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a rules file and the user's module beside it."""
    (tmp_path / "outside_hooks.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "outside_hooks", raising=False)
    import_function.cache_clear()
    yield tmp_path
    sys.modules.pop("outside_hooks", None)
    import_function.cache_clear()


def create(name: str, **key: str) -> None:
    """A table of this name and key."""
    kinds = zip(key, ("HASH", "RANGE"), strict=False)
    boto3.client("dynamodb", "us-east-1").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": one, "KeyType": kind} for one, kind in kinds],
        AttributeDefinitions=[{"AttributeName": one, "AttributeType": kind} for one, kind in key.items()],
        BillingMode="PAY_PER_REQUEST",
    )


def client():
    return aws.dynamodb(region="us-east-1")


# ---------------------------------------------------------------- only where a rule asks
def test_outside_nothing_is_made_that_no_rule_needs(monkeypatch):
    """Rules that only copy get no table of calls, whatever is set."""
    monkeypatch.setattr(aws, "_make_client", lambda *_: pytest.fail("a client was made"))
    assert make_caller(shop(), Untouchable(), "calls") is NULL_PORTS


def test_outside_functions_are_found_beside_the_rules_file(world, folder):
    """A module in the folder of the rules file is found; where it is not, the rule and its function are named."""
    assert make_caller(RULES, client(), None, folder=folder) is not NULL_PORTS
    elsewhere = rules_of(replace(CALL, function="outside_hooks_missing.tell"))
    with pytest.raises(UserError, match=r"rule tell: outside_hooks_missing\.tell cannot be called"):
        make_caller(elsewhere, client(), None, folder=folder)


# ---------------------------------------------------------------- looked at before anything is done
def test_outside_a_table_of_the_rules_cannot_remember_calls(world, folder):
    """Each note would be a change to call for, without end: refused by name and by ARN, also where only the rules know."""
    create("games", id="S")
    arn = client().describe_table(TableName="games")["Table"]["TableArn"]
    for name in ("games", arn):
        with pytest.raises(UserError, match=r"is a table of the rules.*Give the calls a table of their own"):
            make_caller(RULES, client(), name, folder=folder)
    with pytest.raises(UserError, match="is a table of the rules"):
        make_caller(RULES, Client(failed("AccessDeniedException")), arn, folder=folder)


def test_outside_the_table_of_calls_is_looked_at(world, folder):
    """A table of calls that does not exist, or has another key, is refused before the first call."""
    with pytest.raises(UserError, match="table typo, which is to remember the calls, does not exist"):
        make_caller(RULES, client(), "typo", folder=folder)
    create("pairs", PK="S", SK="S")
    with pytest.raises(UserError, match=r"its key is PK \(S\), SK \(S\), and must be the string 'id' alone"):
        make_caller(RULES, client(), "pairs", folder=folder)
    create("numbers", id="N")
    with pytest.raises(UserError, match=r"its key is id \(N\)"):
        make_caller(RULES, client(), "numbers", folder=folder)


def test_outside_what_may_not_be_looked_at_is_taken_for_right(world, folder):
    """A role without DescribeTable starts; any other error is reported."""
    assert make_caller(RULES, Client(failed("AccessDeniedException")), "calls", folder=folder) is not NULL_PORTS
    with pytest.raises(StoreError, match="UnrecognizedClientException"):
        make_caller(RULES, Client(failed("UnrecognizedClientException")), "calls", folder=folder)


# ---------------------------------------------------------------- Lambda
def deployed(monkeypatch, folder, rules: Rules, **environment: str) -> Consumer:
    compiled_file.name_compiled_file(folder / "rules.yaml").write_bytes(compiled_file.dump(rules, {}))
    monkeypatch.setenv(runtime.RULES_FILE, str(folder / "rules.yaml"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return runtime.make_consumer()


@pytest.mark.parametrize("missing", [runtime.QUEUE_URL, runtime.CALLS_TABLE])
def test_outside_a_function_with_calls_needs_a_queue_and_a_table(world, folder, missing):
    """Without either it does not start, and says which variable to set."""
    given = {runtime.QUEUE_URL: "https://sqs.us-east-1.amazonaws.com/1/q", runtime.CALLS_TABLE: "calls"}
    del given[missing]
    with pytest.raises(UserError, match=f"{missing} is not set.*tell"):
        deployed(world, folder, rules_of(CALL), **given)


def test_outside_without_a_queue_a_call_is_not_lost():
    """A runtime without a queue reports a message that it cannot send as failed, and never looks again at parked items."""
    at = ItemKey("games", (("PK", "S", "1"),))
    assert runtime.WITHOUT_QUEUE.parked_max_looks == 0
    for message in (CallMessage("r", "f.g", Change(at, None, {})), PushMessage(("r",), at)):
        with pytest.raises(StoreError, match="NoQueue"):
            runtime.NoQueue().send(message, 0)
