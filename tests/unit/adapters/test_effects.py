"""The functions that some rules call outside the tables are made ready only if a rule needs them."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from sync_rules.adapters import aws
from sync_rules.adapters.effects import make_caller
from sync_rules.adapters.function_calls import import_function
from sync_rules.functions import runtime
from sync_rules.model.errors import StoreError, UserError
from sync_rules.pipeline.consumer import Consumer
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
def create(monkeypatch, table_of_ids):
    """Makes tables of AWS, as moto plays it; each test is a process of its own."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    for name in (runtime.QUEUE_URL, runtime.FAILURES_URL, runtime.CALLS_TABLE, runtime.ENDPOINT_URL, "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    start_cold()
    aws._make_client.cache_clear()
    table_of_ids("calls")
    yield table_of_ids
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


def client():
    return aws.dynamodb(region="us-east-1")


# ---------------------------------------------------------------- only where a rule asks
def test_outside_nothing_is_made_that_no_rule_needs(monkeypatch):
    """Rules that only copy get no table of calls, whatever is set."""
    monkeypatch.setattr(aws, "_make_client", lambda *_: pytest.fail("a client was made"))
    assert make_caller(shop(), Untouchable(), "calls") is NULL_PORTS


def test_outside_functions_are_found_beside_the_rules_file(create, folder):
    """A module in the folder of the rules file is found; where it is not, the rule and its function are named."""
    assert make_caller(RULES, client(), None, folder=folder) is not NULL_PORTS
    elsewhere = rules_of(replace(CALL, function="outside_hooks_missing.tell"))
    with pytest.raises(UserError, match=r"rule tell: outside_hooks_missing\.tell cannot be called"):
        make_caller(elsewhere, client(), None, folder=folder)


# ---------------------------------------------------------------- looked at before anything is done
def test_outside_a_table_of_the_rules_cannot_remember_calls(create, folder):
    """Each note would be a change to call for, without end: refused by name and by ARN, also where only the rules know."""
    create("games")
    arn = client().describe_table(TableName="games")["Table"]["TableArn"]
    for name in ("games", arn):
        with pytest.raises(UserError, match=r"is a table of the rules.*Give the calls a table of their own"):
            make_caller(RULES, client(), name, folder=folder)
    with pytest.raises(UserError, match="is a table of the rules"):
        make_caller(RULES, Client(failed("AccessDeniedException")), arn, folder=folder)


def test_outside_the_table_of_calls_is_looked_at(create, folder):
    """A table of calls that does not exist, or has another key, is refused before the first call."""
    with pytest.raises(UserError, match="table typo, which is to remember the calls, does not exist"):
        make_caller(RULES, client(), "typo", folder=folder)
    create("pairs", PK="S", SK="S")
    with pytest.raises(UserError, match=r"its key is PK \(S\), SK \(S\), and must be the string 'id' alone"):
        make_caller(RULES, client(), "pairs", folder=folder)
    create("numbers", id="N")
    with pytest.raises(UserError, match=r"its key is id \(N\)"):
        make_caller(RULES, client(), "numbers", folder=folder)


def test_outside_what_may_not_be_looked_at_is_taken_for_right(create, folder):
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
def test_outside_a_function_with_calls_needs_a_queue_and_a_table(create, folder, monkeypatch, missing):
    """Without either it does not start, and says which variable to set."""
    given = {runtime.QUEUE_URL: "https://sqs.us-east-1.amazonaws.com/1/q", runtime.CALLS_TABLE: "calls"}
    del given[missing]
    with pytest.raises(UserError, match=f"{missing} is not set.*tell"):
        deployed(monkeypatch, folder, rules_of(CALL), **given)
