"""The archive and the functions that some rules need outside the tables are made only if a rule needs them."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import boto3
import pytest
from moto import mock_aws

from sync_rules.adapters import aws
from sync_rules.adapters.effects import make_archive, make_caller, require_buckets
from sync_rules.adapters.function_calls import RememberedInMemory, RememberedInTable, function_of
from sync_rules.adapters.s3 import S3Archive
from sync_rules.cli import main
from sync_rules.cli.commands.run import calls_notices
from sync_rules.functions import runtime
from sync_rules.jobs.consume.local_run import LocalRun
from sync_rules.jobs.local_files import Files
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Change, ItemKey, Keep
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.messages import CallMessage, PushMessage
from sync_rules.pipeline.requests import NULL_PORTS, World
from sync_rules.rules import compiled_file
from sync_rules.rules.kinds.archive import ArchiveRule
from sync_rules.rules.kinds.call import CallRule
from sync_rules.rules.ruleset import Rules
from tests.support.builders import entity, rules_of, shop, table
from tests.support.cold import start_cold
from tests.support.worlds import Untouchable, record_of

GAMES = table("games", {"PK": "S"})
GAME = entity("game", GAMES)
ARCHIVE = ArchiveRule(name="keep", source=GAME, target=GAME, bucket="kept", when="deleted")
CALL = CallRule(name="tell", source=GAME, target=GAME, function="outside_hooks.tell")
BOTH = rules_of(ARCHIVE, CALL)
MODULE = "TOLD = []\n\ndef tell(change):\n    TOLD.append(change)\n"


@pytest.fixture
def world(monkeypatch):
    """AWS, as moto plays it, with a bucket; each test is a process of its own."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    for name in (runtime.QUEUE_URL, runtime.FAILURES_URL, runtime.CALLS_TABLE, runtime.ENDPOINT_URL, "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        start_cold()
        aws._client.cache_clear()
        boto3.client("s3", "us-east-1").create_bucket(Bucket="kept")
        create("calls", id="S")
        yield monkeypatch
    start_cold()
    aws._client.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a rules file and the user's module beside it."""
    (tmp_path / "outside_hooks.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "outside_hooks", raising=False)
    function_of.cache_clear()
    yield tmp_path
    sys.modules.pop("outside_hooks", None)
    function_of.cache_clear()


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
    """Rules that only copy get no S3 client and no table of calls, whatever is set."""
    monkeypatch.setattr(aws, "_client", lambda *_: pytest.fail("a client was made"))
    assert make_archive(shop()) is NULL_PORTS
    assert make_caller(shop(), Untouchable(), "calls") is NULL_PORTS
    with pytest.raises(StoreError, match="NoArchive"):
        NULL_PORTS.keep(Keep("r", "b", "n", b""))


def test_outside_functions_are_found_beside_the_rules_file(world, folder):
    """A module in the folder of the rules file is found; where it is not, the rule and its function are named."""
    assert make_caller(BOTH, client(), None, folder=folder) is not NULL_PORTS
    elsewhere = rules_of(replace(CALL, function="outside_hooks_missing.tell"))
    with pytest.raises(UserError, match=r"rule tell: outside_hooks_missing\.tell cannot be called"):
        make_caller(elsewhere, client(), None, folder=folder)


def test_outside_calls_are_remembered_in_the_table_that_is_given(world, folder, monkeypatch):
    """Calls are remembered in the table named, else in this process, and `run` says which."""
    seen = []
    monkeypatch.setattr("sync_rules.adapters.function_calls.FunctionCaller.require", lambda *_: None)
    monkeypatch.setattr(
        "sync_rules.adapters.function_calls.FunctionCaller.__init__", lambda _self, memory, **_: seen.append(memory)
    )
    make_caller(BOTH, client(), "calls", folder=folder)
    make_caller(BOTH, client(), None, folder=folder)
    assert [type(memory) for memory in seen] == [RememberedInTable, RememberedInMemory]
    assert seen[0].table_name == "calls"
    assert [*calls_notices(shop(), None), *calls_notices(BOTH, "calls")] == []
    assert "--calls-table" in next(calls_notices(BOTH, None))


# ---------------------------------------------------------------- looked at before anything is done
def test_outside_a_table_of_the_rules_cannot_remember_calls(world, folder):
    """Each note would be a change to call for, without end: refused by name and by ARN, also where only the rules know."""
    create("games", id="S")
    arn = client().describe_table(TableName="games")["Table"]["TableArn"]
    for name in ("games", arn):
        with pytest.raises(UserError, match=r"is a table of the rules.*Give the calls a table of their own"):
            make_caller(BOTH, client(), name, folder=folder)
    with pytest.raises(UserError, match="is a table of the rules"):
        make_caller(BOTH, Refusing("AccessDeniedException"), arn, folder=folder)


def test_outside_the_table_of_calls_is_looked_at(world, folder):
    """A table of calls that does not exist, or has another key, is refused before the first call."""
    with pytest.raises(UserError, match="table typo, which is to remember the calls, does not exist"):
        make_caller(BOTH, client(), "typo", folder=folder)
    create("pairs", PK="S", SK="S")
    with pytest.raises(UserError, match=r"its key is PK \(S\), SK \(S\), and must be the string 'id' alone"):
        make_caller(BOTH, client(), "pairs", folder=folder)
    create("numbers", id="N")
    with pytest.raises(UserError, match=r"its key is id \(N\)"):
        make_caller(BOTH, client(), "numbers", folder=folder)


def test_outside_what_may_not_be_looked_at_is_taken_for_right(world, folder):
    """A role without DescribeTable or ListBucket starts; any other error is said."""
    assert make_caller(BOTH, Refusing("AccessDeniedException"), "calls", folder=folder) is not NULL_PORTS
    with pytest.raises(StoreError, match="UnrecognizedClientException"):
        make_caller(BOTH, Refusing("UnrecognizedClientException"), "calls", folder=folder)
    for code in ("403", "301"):
        world.setattr(aws, "s3", lambda *_, code=code: Refusing(code))
        require_buckets(BOTH)
    world.setattr(aws, "s3", lambda *_: Refusing("400"))
    with pytest.raises(StoreError, match="400"):
        require_buckets(BOTH)


def test_outside_a_bucket_that_is_missing_is_told_with_its_rule(world):
    """Each once, before a delete holds up its shard."""
    require_buckets(BOTH)
    lost, again = replace(ARCHIVE, name="lost", bucket="nowhere"), replace(ARCHIVE, name="again", bucket="nowhere")
    with pytest.raises(UserError, match="bucket nowhere, of rule lost, does not exist") as caught:
        require_buckets(rules_of(ARCHIVE, lost, again))
    assert str(caught.value).count("nowhere") == 1


def test_outside_run_refuses_before_it_reads(world, folder, capsys):
    """`run` exits with 2 for a bucket that is missing; nothing was read or called yet."""
    rules = rules_of(replace(ARCHIVE, bucket="nowhere"))
    world.setattr("sync_rules.cli.commands.run.load_rules", lambda _file: rules)
    world.setattr("sync_rules.cli.commands.run.require", lambda *_, **_options: SimpleNamespace(stream_arns=()))
    world.chdir(folder)
    assert main.main(["run", "rules.yaml", "--once"]) == 2
    assert "bucket nowhere, of rule keep, does not exist" in capsys.readouterr().err


class Refusing:
    """A client that answers every question with one error."""

    def __init__(self, code: str) -> None:
        self.error = aws.ClientError({"Error": {"Code": code}}, "Any")

    def describe_table(self, **_parameters):
        raise self.error

    head_bucket = describe_table


# ---------------------------------------------------------------- Lambda
def deployed(monkeypatch, folder, rules: Rules, **environment: str) -> Consumer:
    compiled_file.name_compiled_file(folder / "rules.yaml").write_bytes(compiled_file.dump(rules, {}))
    monkeypatch.setenv(runtime.RULES_FILE, str(folder / "rules.yaml"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return runtime.consumer()


def test_outside_a_function_has_what_its_rules_need(world, folder):
    """The archive is S3, calls go to the user's module with the time that is left."""
    consumer = deployed(
        world,
        folder,
        BOTH,
        **{runtime.QUEUE_URL: "https://sqs.us-east-1.amazonaws.com/1/q", runtime.CALLS_TABLE: "calls"},
    )
    assert isinstance(consumer.world.archive, S3Archive)
    assert consumer.world.caller is not NULL_PORTS


@pytest.mark.parametrize("missing", [runtime.QUEUE_URL, runtime.CALLS_TABLE])
def test_outside_a_function_with_calls_needs_a_queue_and_a_table(world, folder, missing):
    """Without either it does not start, and says which variable to set."""
    given = {runtime.QUEUE_URL: "https://sqs.us-east-1.amazonaws.com/1/q", runtime.CALLS_TABLE: "calls"}
    del given[missing]
    with pytest.raises(UserError, match=f"{missing} is not set.*tell"):
        deployed(world, folder, rules_of(CALL), **given)


def test_outside_a_function_that_only_archives_needs_neither(world, folder):
    """An archive wants no queue and no table."""
    assert isinstance(deployed(world, folder, rules_of(ARCHIVE)).world.archive, S3Archive)


def test_outside_without_a_queue_a_call_is_not_lost():
    """A runtime without a queue reports a message that it cannot send as failed, and never looks again at parked items."""
    at = ItemKey("games", (("PK", "S", "1"),))
    assert runtime.WITHOUT_QUEUE.parked_max_looks == 0
    for message in (CallMessage("r", "f.g", Change(at, None, {})), PushMessage(("r",), at)):
        with pytest.raises(StoreError, match="NoQueue"):
            runtime.NoQueue().send(message, 0)


# ---------------------------------------------------------------- sync-rules run
def test_outside_run_gives_its_consumer_archive_and_caller(tmp_path):
    """A run passes the archive and the caller to its consumer; without them, effects fail."""
    worlds: list[World] = []
    common = {"stream_arns": [], "rules_fingerprint": "", "reader": None, "store": None, "make_consumer": worlds.append}
    archive, caller = object(), object()
    LocalRun(**common, files=Files(tmp_path / "a", tmp_path / "b"), archive=archive, caller=caller)
    LocalRun(**common, files=Files(tmp_path / "c", tmp_path / "d"))
    assert (worlds[0].archive, worlds[0].caller) == (archive, caller)
    with pytest.raises(StoreError, match="NoArchive"):
        worlds[1].archive.keep(Keep("r", "b", "n", b""))


# ---------------------------------------------------------------- from records to effects


def deliver(consumer: Consumer, changes: list[Change], sizes: list[int]) -> None:
    """Deliver changes in batches of these sizes, and again from the lowest reported failure, as Lambda does."""
    left = list(changes)
    for _ in range(200):
        if not left:
            return
        batch, sizes = left[: sizes[0]], [*sizes[1:], sizes[0]]
        event = {"Records": [record_of(BOTH, change) for change in batch]}
        failed = consumer.handle_event(event, lambda: 60_000)["batchItemFailures"]
        first = failed[0]["itemIdentifier"] if failed else None
        done = [change.position for change in batch].index(first) if first else len(batch)
        left = left[done:]
    pytest.fail("the records do not come to an end")
