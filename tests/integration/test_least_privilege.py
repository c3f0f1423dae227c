"""The generated roles: each suffices for its function under every rule, and none allows more than is used."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from botocore.exceptions import ClientError

from sync_rules.adapters import aws, sqs
from sync_rules.deploy.permissions import BACKFILL, FANOUT, REDRIVE, STREAM, VERIFY
from sync_rules.deploy.roles import format_role_id
from sync_rules.functions import logs
from sync_rules.jobs.account import verify_unit
from sync_rules.jobs.backfill import page
from tests.support import engines
from tests.support.builders import s
from tests.support.cold import start_cold
from tests.support.depth import spread_over_night
from tests.support.policy import Pair, arn, matches, together
from tests.support.privileges import PLAYED, STORIES, USER, Account, Stack, whole_story
from tests.support.worlds import Stdout


@pytest.fixture(scope="module")
def stack(engine):
    return Stack(engine)


@pytest.fixture
def account(stack, monkeypatch, tmp_path):
    """Makes the account of a story."""
    monkeypatch.setattr(logs.logger.registered_handler, "stream", Stdout())
    monkeypatch.setattr(page, "TRIES_MAX", 1)
    monkeypatch.setattr(sqs, "RECEIVE_WAIT_SECONDS", 0)
    monkeypatch.setattr(verify_unit, "GRACE_SECONDS", 0.0)
    yield lambda story: Account(stack, story, tmp_path, monkeypatch.setenv)
    start_cold()


ALL = [
    (name, function)
    for name in STORIES
    for function in PLAYED
    if not (function in (BACKFILL, VERIFY) and name == "call")  # which keeps nothing in a table
]
# A change plays each story with the stream function, and one of three with the others.
BY_DAY = [*(one for one in ALL if one[1] == STREAM), *spread_over_night(one for one in ALL if one[1] != STREAM)]
every_story = pytest.mark.parametrize(("name", "function"), BY_DAY, ids=lambda text: text.removesuffix("Function"))
# What every role has, whatever its rules are, is looked at in one story.
ONCE = "copy"


def told_by(name: str, unit: Iterable[Pair]) -> bool:
    """True if a story must use these permissions."""
    action, resource = min(unit)
    of_rule = action.startswith("dynamodb:") and "/stream" not in resource and resource != "*"
    of_rule = of_rule and ("table/state" not in resource or name == "call")
    of_call = name == "call" and (action.startswith("lambda:") or "/calls/" in resource)
    return name == ONCE or of_rule or of_call or ":::kept/" in resource


def units_of(made: Account, function: str) -> list[frozenset[Pair]]:
    """The permissions of a function, by what they are named in every account."""
    return [frozenset(map(made.named, unit)) for unit in together(made.guard.policies[format_role_id(function)])]


@every_story
def test_least_privilege_is_enough_and_nothing_is_spare(account, name, function):
    """A function does all of a story in its role, and needs each permission that the role has for it."""
    made = account(STORIES[name])
    said = made.run(function)
    assert made.guard.denied == [], said
    assert "StoppedError" not in said, said
    used = {made.named(pair) for role, pair in made.guard.used if role == format_role_id(function)}
    assert [unit for unit in units_of(made, function) if told_by(name, unit) and not unit & used] == [], said


# What is refused while all goes on and ends the same, by functions, action and resource; and what is lost by it.
CALLING = (STREAM, FANOUT, REDRIVE)
MISSED = {
    (CALLING, "dynamodb:DescribeTable", "table/state"): "a look at the table, which the template made as it should be",
    ((REDRIVE,), "dynamodb:DeleteItem", "table/state"): "time: a call that failed stays, and counts as being made",
    ((STREAM, REDRIVE), "sqs:GetQueueAttributes", "FanoutQueue"): "nothing but a reason: SQS refuses what is too large",
    ((REDRIVE,), "sqs:ChangeMessageVisibility", ""): "an hour, for which what failed again is hidden",
    ((FANOUT,), "sqs:ChangeMessageVisibility", ""): "time: what failed comes again by the queue's timeout",
    ((VERIFY,), "sqs:SendMessage", "FailuresQueue"): "a second record of what the report lists as not mended",
}


STATE_USES = "allow dynamodb:GetItem, dynamodb:UpdateItem and dynamodb:Scan on it"


# Stream and fan-out go through all stories; the others run the same code, and of themselves have what is in these.
SOME = {VERIFY: ("copy", "count"), BACKFILL: ("copy", "mirror"), REDRIVE: ("copy", "call")}


@pytest.mark.night
@pytest.mark.parametrize(
    ("name", "function"),
    [one for one in ALL if one[0] in SOME.get(one[1], STORIES)],
    ids=lambda text: text.removesuffix("Function"),
)
def test_least_privilege_lacks_are_told(account, name, function):
    """Each permission that is taken away stops the work that needs it, and log, answer, error or report says so."""
    silent = []
    whole = account(STORIES[name])
    if function in (VERIFY, REDRIVE):  # which go on, and count what they left
        whole.run(function)
    for unit in units_of(whole, function):
        if not told_by(name, unit):
            continue
        lacking = account(STORIES[name])
        lacking.forbid(function, unit)
        said = lacking.run(function)
        denied = [lacking.named(pair) for _, pair in lacking.guard.denied]
        asked = all(any(one == action and matches(of, resource) for one, of in unit) for action, resource in denied)
        action, resource = min(unit)
        missed = any(function in who and action == one and resource.endswith(of) for who, one, of in MISSED)
        told = any(words in said for words in ("AccessDenied", "StoppedError", f"allow {action} ", STATE_USES))
        told = told or lacking.left > whole.left
        if not denied or not asked or not (told or missed):
            silent.append((unit, denied, said))
    assert silent == []


FOLDERS = sorted(path.parent for path in (engines.ROOT / "examples").glob("*/rules.yaml"))


@pytest.mark.night
@pytest.mark.parametrize("function", [STREAM, FANOUT])
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_least_privilege_is_enough_for_every_example(account, folder, function):
    """The examples, their items coming and going, ask for nothing that their roles do not allow."""
    made = account(whole_story((folder / "rules.yaml").read_text(), folder))
    said = made.run(function)
    assert made.guard.denied == [], said
    assert "StoppedError" not in said, said
    assert made.guard.used


@pytest.mark.parametrize("function", PLAYED)
def test_least_privilege_is_enough_for_updates_in_batches(account, monkeypatch, function):
    """The roles allow PartiQL updates in batches, as used on AWS."""
    monkeypatch.setattr(aws, "is_aws", lambda _client: True)
    made = account(STORIES["copy"])
    said = made.run(function)
    assert made.guard.denied == [], said
    assert "StoppedError" not in said, said
    used = {made.named(pair) for _, pair in made.guard.used}
    assert ("dynamodb:PartiQLUpdate", arn("dynamodb", "table/orders")) in used


def by_statement(made: Account, statement: str) -> None:
    made.stack.dynamodb.execute_statement(Statement=statement)


FOREIGN = {
    "delete the table": lambda a: a.stack.dynamodb.delete_table(TableName=a.prefix + "users"),
    "scan": lambda a: a.stack.dynamodb.scan(TableName=a.prefix + "posts"),
    "write the source": lambda a: a.stack.dynamodb.put_item(TableName=a.prefix + "users", Item=USER),
    "delete a target": lambda a: a.stack.dynamodb.delete_item(TableName=a.prefix + "posts", Key={"post_id": s("p")}),
    "query the table": lambda a: a.stack.dynamodb.query(TableName=a.prefix + "posts", **BY_POST),
    "query another index": lambda a: a.stack.dynamodb.query(TableName=a.prefix + "posts", IndexName="others", **BY_POST),
    "read another table": lambda a: a.stack.dynamodb.get_item(TableName=a.prefix + "orders", Key=USER),
    "read two tables": lambda a: a.stack.dynamodb.batch_get_item(
        RequestItems={a.prefix + name: {"Keys": [{"user_id": s("1")}]} for name in ("users", "orders")}
    ),
    "a table whose name begins alike": lambda a: a.stack.dynamodb.get_item(TableName=a.prefix + "users2", Key=USER),
    "check in a transaction": lambda a: a.stack.dynamodb.transact_write_items(
        TransactItems=[{"ConditionCheck": {"TableName": a.prefix + "posts", "Key": USER, "ConditionExpression": "x"}}]
    ),
    "update the source by statement": lambda a: by_statement(a, f'UPDATE "{a.prefix}users" SET a=1 {ONE}'),
    "update another table by statement": lambda a: by_statement(a, f'UPDATE "{a.prefix}orders" SET a=1 {ONE}'),
    "insert by statement": lambda a: by_statement(a, f"""INSERT INTO "{a.prefix}posts" VALUE {{'post_id': 'p'}}"""),
    "delete by statement": lambda a: by_statement(a, f'DELETE FROM "{a.prefix}posts" {ONE}'),
    "read by statement": lambda a: by_statement(a, f'SELECT * FROM "{a.prefix}posts" {ONE}'),
    "the memory of calls": lambda a: a.stack.dynamodb.put_item(TableName=a.stack.state, Item={"id": s("x")}),
    "purge the queue": lambda a: a.stack.sqs.purge_queue(QueueUrl=a.stack.queues["FanoutQueue"]),
    "take a failure": lambda a: a.stack.sqs.receive_message(QueueUrl=a.stack.queues["FailuresQueue"]),
    "read a batch": lambda a: a.stack.s3.get_object(Bucket=a.stack.bucket, Key="aws/lambda/x"),
    "write elsewhere in the bucket": lambda a: a.stack.s3.put_object(Bucket=a.stack.bucket, Key="reports/x", Body=b""),
    "write to another bucket": lambda a: a.stack.s3.put_object(Bucket="another", Key="aws/lambda/x", Body=b""),
}  # fmt: skip
ONE = "WHERE post_id='p'"
BY_POST = {"KeyConditionExpression": "post_id = :p", "ExpressionAttributeValues": {":p": s("p")}}


@pytest.mark.parametrize("function", [STREAM, FANOUT])
def test_least_privilege_denies_what_is_foreign(account, function):
    """A role denies other tables, indexes, actions, queues and objects than those of the rules."""
    made = account(STORIES["copy-index-clear"])
    with (
        made.guard.watching(made.stack.dynamodb, made.stack.sqs, made.stack.s3),
        made.guard.acting(format_role_id(function)),
    ):
        for what, request in FOREIGN.items():
            with pytest.raises(ClientError) as error:
                request(made)
            assert error.value.response["Error"]["Code"].startswith("AccessDenied"), what
