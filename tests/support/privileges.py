"""A stack on an engine whose functions are held to their generated roles, and a story for each kind of rule.

`Account` does what the template, the application and Lambda do; the handlers are the real ones.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from botocore.exceptions import ClientError

from handlers import backfill, fanout, redrive, stream, verify
from sync_rules.adapters import aws
from sync_rules.adapters.beginnings import FUNCTION_NAME
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.kept_calls import CallsInBucket
from sync_rules.adapters.state import TableState, save_applied_fingerprints
from sync_rules.deploy.deployment import format_logical_id
from sync_rules.deploy.permissions import BACKFILL, FANOUT, FUNCTIONS, REDRIVE, STREAM, VERIFY, WRITE
from sync_rules.deploy.roles import format_role_id, make_roles
from sync_rules.deploy.tables import make_table_parameters
from sync_rules.functions import runtime
from sync_rules.jobs.streams import make_event_record
from sync_rules.lab.scenario_file import load_scenario
from sync_rules.language.problems import Problems
from sync_rules.language.yaml_source import read_document
from sync_rules.model.errors import SyncRulesError
from sync_rules.model.items import Call, Change, Failure, ItemKey
from sync_rules.model.values import Item
from sync_rules.model.writes import Put
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.failure_records import make_failure_record
from sync_rules.pipeline.messages import CallMessage, Message, PullMessage, format_message
from sync_rules.pipeline.parts import make_part_message
from sync_rules.pipeline.requests import World, run_work
from sync_rules.pipeline.tasks import make_tasks
from sync_rules.rules import compiled_file, fingerprints
from sync_rules.rules.ruleset import Rules
from tests.support import engines
from tests.support.builders import n, s
from tests.support.cold import start_cold
from tests.support.compiled import deployed
from tests.support.policy import ACCOUNT, REGION, Guard, Pair, arn, pairs_of
from tests.support.worlds import context

POSITIONS = count(10**21)  # sequence numbers: no two changes of a session are the same
BATCH_MAX_ITEMS = 25
QUEUES = ("FanoutQueue", "FanoutDeadLetters", "FailuresQueue", "AsyncDeadLetters")
SCHEMA = """
tables:
  users:  {name: "${PREFIX}users", key: {user_id: S}}
  orders: {name: "${PREFIX}orders", key: {user_id: S, order_id: S}}
  posts:  {name: "${PREFIX}posts", key: {post_id: S}, indexes: {by_user: {user_id: S}}}
  parts:  {name: "${PREFIX}parts", key: {part_id: S}, indexes: {by_parent: {parent_id: S}}}
  emails: {name: "${PREFIX}emails", key: {email: S}}
  ledger: {name: "${PREFIX}ledger", key: {PK: S, SK: S}}
entities:
  user: {table: users}
  order: {table: orders}
  post: {table: posts}
  part: {table: parts}
  by_email: {table: emails}
rules:
"""
USER = {"user_id": s("1"), "name": s("Ada"), "rank": n(1), "email": s("a@x")}
ORDERS = [{"user_id": s("1"), "order_id": s(name), "total": n(total)} for name, total in (("a", 5), ("b", 7))]
POST = {"post_id": s("p"), "user_id": s("1"), "title": s("Hello")}
OTHER = {**USER, "user_id": s("2"), "email": s("b@x")}

THIRD = {**USER, "user_id": s("3"), "email": s("c@x")}


def told(change: Any) -> None:
    """The function that a `call` rule calls; it fails for an order without a total."""
    if change.new["total"] == 0:
        raise ValueError


class StoppedError(Exception):
    """A function failed or was refused a request."""


@dataclass(frozen=True)
class Story:
    """Some rules, the items first put, and then changes, with deleted items as keys in `gone`.

    One item cannot take its copy, so that it is parked, or cannot be told to a function. `rules` is one rule, or a whole file as JSON.
    """

    rules: str
    puts: dict[str, list[Item]]
    then: dict[str, list[Item]] = field(default_factory=dict)
    gone: dict[str, list[Item]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The rules file."""
        return self.rules if '"tables"' in self.rules else f"{SCHEMA}  rule: {self.rules}\n"


def _key(item: Item, *names: str) -> Item:
    return {name: item[name] for name in names}


USERS_GONE = {"users": [_key(USER, "user_id")]}
ORDER_GONE = {"orders": [_key(ORDERS[0], "user_id", "order_id")]}
# A message about this order is larger than what every queue takes: the queue is asked what it takes.
STUCK_ORDER = {"user_id": s("1"), "order_id": s("c" * 1_024), "total": s("many"), "meta": s("no map")}
STUCK_USER = {**OTHER, "meta": s("no map")}
BASE = {"users": [USER, OTHER], "orders": [*ORDERS, STUCK_ORDER, {**ORDERS[0], "user_id": s("2")}]}
STUCK = {"users": [USER, STUCK_USER], "orders": ORDERS}
PARTS = [
    {"part_id": s("c"), "parent_id": s("b")},
    {"part_id": s("b"), "parent_id": s("a")},
    {"part_id": s("a")},
    {"part_id": s("d")},
]
POSTED = {
    "users": [USER, OTHER],
    "posts": [POST, {**POST, "post_id": s("q")}, {**POST, "post_id": s("r"), "user_id": s("2")}],
}
LIMITED = f"""{SCHEMA.replace("order_id: S}", "order_id: S}, max_write_units_per_second: 1000").replace("tables:", '"tables":')}
  rule: copy user.name into order.meta.user_name
"""
STORIES = {
    "copy": Story("copy user.name into order.meta.user_name", BASE, {"users": [{**USER, "name": s("Eve")}]}),
    "copy-limited": Story(LIMITED, BASE, {"users": [{**USER, "name": s("Eve")}]}),
    "copy-strict-delete": Story(
        "{copy: user.name, into: order.meta.name, strict: true, on_delete: delete}", BASE, gone=USERS_GONE
    ),
    "copy-index-clear": Story(
        "{copy: user.name, into: post.user_name, on_delete: clear}", POSTED, gone=USERS_GONE
    ),
    "copy-restrict": Story(
        "{copy: user.name, into: order.meta.name, on_delete: restrict}", BASE, gone=USERS_GONE
    ),
    "derive": Story("{derive: user.meta.head, as: '{name}-{rank}'}", {"users": [USER, STUCK_USER]}),
    "embed": Story("{embed: order, into: user.meta.orders, fields: [total], limit: {items: 9}}", STUCK, gone=ORDER_GONE),
    "embed-index-delete": Story(
        "{embed: post, into: user.posts, fields: [title], limit: {items: 9}, settle_seconds: 60, on_delete: delete}",
        POSTED,
        gone=USERS_GONE,
    ),
    "collect": Story(
        "{collect: order, into: user.orders, as: '{order_id}'}",
        {**BASE, "users": [USER, {**OTHER, "orders": s("x")}]},
        gone=ORDER_GONE,
    ),
    "collect-index-strict": Story("{collect: post, into: user.posts, as: '{post_id}', strict: true}", POSTED),
    "collect-values": Story("{collect: order.total, into: user.totals, numbers: true}", BASE, gone=ORDER_GONE),
    "path": Story("{path: part.path, parent: parent_id, on_delete: delete}", {"parts": PARTS}, gone={"parts": PARTS[2:3]}),
    "mirror": Story(
        "{mirror: user, into: by_email, attributes: [name]}",
        {"users": [USER, THIRD, {**USER, "user_id": s("4")}, OTHER]},
        {"users": [{**USER, "name": s("Eve")}]},
        {"users": [_key(THIRD, "user_id")]},
    ),
    "count": Story("sum order.total into user.spent", BASE, gone=ORDER_GONE),
    "min": Story("min order.total into user.least", BASE, gone=ORDER_GONE),
    "recount": Story(
        "{max: order.total, into: user.most, mode: recount}",
        {"users": [USER, OTHER], "orders": [*ORDERS, {**STUCK_ORDER, "user_id": s("2")}]},
        gone=ORDER_GONE,
    ),
    "call": Story(
        f"{{call: {__name__}.told, on: order, when: [created], where: 'abs(total) >= `0`', since: horizon}}",
        {"orders": [*ORDERS, {"user_id": s("1"), "order_id": s("d"), "total": n(0)}]},
        {"orders": [{"user_id": s("1"), "order_id": s("e"), "total": n(1)}, STUCK_ORDER]},
    ),
}  # fmt: skip


class Stack:
    """The resources that the template creates whatever the rules are, shared by all stories of a session."""

    def __init__(self, url: str) -> None:
        self.url, self.prefix = url, engines.unique_prefix()
        self.dynamodb, self.streams, self.sqs, self.s3, self.lambdas = (
            aws.dynamodb(url), aws.dynamodbstreams(url), aws.sqs(url), aws.s3(url), aws.lambdas(url),
        )  # fmt: skip
        self.bucket, self.state = self.prefix + "bucket", self.prefix + "state"
        self.s3.create_bucket(Bucket=self.bucket)
        self.dynamodb.create_table(
            TableName=self.state,
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        self.queues = {name: self.sqs.create_queue(QueueName=self.prefix + name)["QueueUrl"] for name in QUEUES}

    def given(self) -> dict[str, str]:
        """The values of the template's attributes and pseudo parameters."""
        logs = {
            format_role_id(f).replace("Role", "Logs") + ".Arn": arn("logs", f"log-group:{group_of(f)}:*")
            for f in (*FUNCTIONS, WRITE)
        }
        queues = {f"{name}.Arn": arn("sqs", self.prefix + name) for name in QUEUES}
        return {
            "AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": ACCOUNT,
            "AWS::StackName": "stack", "Bucket": self.bucket, "Bucket.Arn": f"arn:aws:s3:::{self.bucket}",
            "StateTable.Arn": arn("dynamodb", f"table/{self.state}"), **logs, **queues,
        }  # fmt: skip

    def forget(self) -> None:
        """Empty the state table: nothing was called yet, and no beginning is noted."""
        for item in self.dynamodb.scan(TableName=self.state)["Items"]:
            self.dynamodb.delete_item(TableName=self.state, Key=_key(item, "id"))

    def environment(self) -> dict[str, str]:
        """The functions' variables, without those of the rules."""
        return {
            runtime.ENDPOINT_URL: self.url,
            runtime.QUEUE_URL: self.queues["FanoutQueue"],
            runtime.FAILURES_URL: self.queues["FailuresQueue"],
            runtime.CALLS_TABLE: self.state,
            "SYNC_RULES_STATE_TABLE": self.state,
            "SYNC_RULES_BUCKET": self.bucket,
            "SYNC_RULES_DEAD_LETTERS_URL": self.queues["FanoutDeadLetters"],
        }


def group_of(function: str) -> str:
    """The name of a function's log group."""
    return f"/aws/lambda/stack/{function.removesuffix('Function').lower()}"


@cache
def policies_of(text: str) -> dict[str, Any]:
    """The policy of each role for the rules of a text."""
    found = {}
    for role, resource in make_roles(deployed(text)[0]).items():
        (policy,) = resource["Properties"]["Policies"]
        found[role] = policy["PolicyDocument"]
    return found


class Account:
    """One story: its tables, its functions, and what they may do."""

    def __init__(self, stack: Stack, story: Story, folder: Path, environ: Callable[[str, str], object]) -> None:
        self.stack, self.story, self.prefix, self.environ = stack, story, engines.unique_prefix(), environ
        stack.forget()
        file = folder / "rules.yaml"
        deployment, built = deployed(story.text)
        compiled_file.name_compiled_file(file).write_bytes(built)
        variables = {**stack.environment(), "PREFIX": self.prefix, runtime.RULES_FILE: str(file)}
        for name, value in variables.items():
            environ(name, value)
        self.rules: Rules = compiled_file.read(built, str(file), variables)
        self.accept()
        self.items: dict[ItemKey, Item] = {}
        self.left = 0  # by the last document of a verify or a redrive
        self.iterators: dict[str, dict[str, str]] = {}  # by table and shard
        given = stack.given() | {variable.parameter: self.prefix for variable in deployment.variables}
        self.stream_arns: dict[str, str] = {}
        for table in self.rules.streamed_tables:
            made = stack.dynamodb.create_table(**make_table_parameters(table, stream=True))["TableDescription"]
            name = format_logical_id(table.name)
            self.stream_arns[table.name] = given[f"{name}Table.StreamArn"] = made["LatestStreamArn"]
            given |= {f"Creates{name}": "yes", f"{name}StreamArn": ""}
        documents = policies_of(story.text).items()
        self.guard = Guard({role: pairs_of(document, given) for role, document in documents})
        nobody: Any = None  # nothing fails, and nothing is left for later
        ports = World(DynamoStore(stack.dynamodb, self.rules.tables), nobody, nobody)
        run_work(finish_empty(self.rules), ports)  # as a stack does that makes the tables

    def accept(self) -> None:
        """Note all rules as applied, as a backfill in the account does."""
        state = TableState(self.stack.dynamodb, self.stack.state)
        save_applied_fingerprints(state, fingerprints.compute_rule_fingerprints(self.rules), datetime.now(UTC))

    def named(self, pair: Pair) -> Pair:
        """A pair without what only this account has: its prefixes, the labels of its streams."""
        action, resource = pair
        label = resource.rpartition("/stream/")
        resource = f"{label[0]}/stream" if label[1] else resource
        return action, resource.replace(self.prefix, "").replace(self.stack.prefix, "")

    def forbid(self, function: str, some: Iterable[Pair]) -> None:
        """Take permissions away, by what they are named."""
        role = format_role_id(function)
        left = frozenset(pair for pair in self.guard.policies[role] if self.named(pair) not in some)
        self.guard.policies = {**self.guard.policies, role: left}

    def run(self, function: str) -> str:
        """Do all that a function does in this story, in its role. Gives what it said; raises what it raises."""
        start_cold()
        self.environ(FUNCTION_NAME, f"stack-{function}-AB12")
        said = io.StringIO()
        clients = (self.stack.dynamodb, self.stack.streams, self.stack.sqs, self.stack.s3, self.stack.lambdas)
        with redirect_stdout(said), self.guard.watching(*clients), self.guard.acting(format_role_id(function)):
            try:
                self._logs(function)
                PLAYED[function](self)
            except (ClientError, StoppedError, SyncRulesError) as error:
                said.write(f"\n{type(error).__name__}: {error}")
        return said.getvalue()

    # ------------------------------------------------------------ the application
    def changes(self, *, first: bool, held_back: int = 0) -> list[Change]:
        """Write the first items of the story, or the later ones, and return the changes that this makes.

        `held_back`: number of items of each table that are not written.
        """
        found = []
        for name, items in (self.story.puts if first else self.story.then).items():
            found += self.put(name, *items[: max(1, len(items) - held_back)])
        for name, keys in ({} if first else self.story.gone).items():
            for key in keys:
                names = {attribute.name for attribute in self.rules.tables[name].key}
                key = {part: key[part] for part in names}  # noqa: PLW2901 -- an item will do for its key
                self.stack.dynamodb.delete_item(TableName=self.prefix + name, Key=key)
                found.append(self._change(name, key, None))
        return found

    def put(self, table: str, *items: Item) -> list[Change]:
        waiting: dict[ItemKey | None, Item] = {}  # no request has an item twice
        for item in items:
            key = self.rules.tables[table].key_of(item)
            if key in waiting or len(waiting) == BATCH_MAX_ITEMS:
                self._put_all(table, waiting)
            waiting[key] = item
        self._put_all(table, waiting)
        return [self._change(table, item, item) for item in items]

    def _put_all(self, table: str, waiting: dict[ItemKey | None, Item]) -> None:
        """Write the items that wait, and forget them."""
        if waiting:
            requests: Any = {self.prefix + table: [{"PutRequest": {"Item": item}} for item in waiting.values()]}
            assert not self.stack.dynamodb.batch_write_item(RequestItems=requests)["UnprocessedItems"]
            waiting.clear()

    def messages_of(self, changes: list[Change]) -> Iterator[Message]:
        """Messages that ask for all that these changes ask for, each by itself; the change of a call is also in the
        bucket.
        """
        bucket = CallsInBucket(lambda: self.stack.s3, self.stack.bucket)
        for message in messages_of(changes, self.rules):
            yield message
            if isinstance(message, CallMessage):
                with self.guard.acting(""):
                    yield message.move_images(bucket.keep_call(message))

    def disorder(self) -> list[Change]:
        """Make work for verify and backfill: changes without records, deleted sources, whole items put without their
        copies.

        Returns the changes whose records were not delivered.
        """
        self.changes(first=True, held_back=1)
        self.deliver()
        changes = self.changes(first=False)
        gone = {change.key for change in changes if change.new is None}
        for name, items in self.story.puts.items():
            keys = {self.rules.tables[name].key_of(item): item for item in items}
            changes += self.put(name, *(self.items.get(key, item) for key, item in keys.items() if key not in gone))
        start_cold()
        return changes

    def _change(self, table: str, key: Item, new: Item | None) -> Change:
        at = self.rules.tables[table].key_of(key)
        assert at is not None
        old = self.items.pop(at, None)
        if new is not None:
            self.items[at] = new
        return Change(at, old, new, str(next(POSITIONS)))

    # ------------------------------------------------------------ what Lambda does with a function's role
    def _logs(self, function: str) -> None:
        for action in ("CreateLogStream", "PutLogEvents"):
            self.guard.require((f"logs:{action}", arn("logs", f"log-group:{group_of(function)}:log-stream:2026/1")))

    def poll(self) -> list[dict[str, Any]]:
        """The new records of all streams, as Lambda's mappings read them."""
        found: list[dict[str, Any]] = []
        for name, stream_arn in self.stream_arns.items():
            if name not in self.iterators:
                shards = self.stack.streams.describe_stream(StreamArn=stream_arn)["StreamDescription"]["Shards"]
                self.iterators[name] = {one["ShardId"]: self._iterator(stream_arn, one["ShardId"]) for one in shards}
            for shard, iterator in self.iterators[name].items():
                answer = self.stack.streams.get_records(ShardIterator=iterator)
                self.iterators[name][shard] = answer["NextShardIterator"]
                found += [make_event_record(one, stream_arn) for one in answer["Records"]]
        return found

    def spans(self) -> Iterator[dict[str, str]]:
        """A span of each stream, as in a batch that was given up without its records."""
        for name, stream_arn in self.stream_arns.items():
            shard = next(iter(self.iterators[name]))
            page = self.stack.streams.get_records(ShardIterator=self._iterator(stream_arn, shard))["Records"]
            position = page[0]["dynamodb"]["SequenceNumber"] if page else "1" * 21
            numbers = {"startSequenceNumber": position, "endSequenceNumber": position}
            yield {"streamArn": stream_arn, "shardId": shard, **numbers}

    def _iterator(self, stream_arn: str, shard_id: str) -> str:
        place = {"StreamArn": stream_arn, "ShardId": shard_id, "ShardIteratorType": "TRIM_HORIZON"}
        return str(self.stack.streams.get_shard_iterator(**place)["ShardIterator"])

    def deliver(self) -> None:
        """The stream handler, until the streams are empty."""
        for _ in range(20):
            records = self.poll()
            if not records:
                return
            self._done(stream.handler({"Records": records}, context()))

    def stream_function(self) -> None:
        """Send all changes through the stream handler, with a batch that fails into the bucket and an unreadable
        record.
        """
        self.stack.streams.list_streams()
        for first in (True, False):
            with self.guard.acting(""):
                self.changes(first=first)
            self.deliver()
        self.stack.s3.list_objects_v2(Bucket=self.stack.bucket, Prefix="aws/lambda/", MaxKeys=1)
        self.stack.s3.put_object(Bucket=self.stack.bucket, Key="aws/lambda/mapping/shard/1", Body=b"{}")
        self._done(stream.handler({"Records": [{"eventName": "INSERT", "dynamodb": {}}]}, context()))

    def fanout_function(self) -> None:
        """Send all changes as messages, and one unreadable message."""
        messages: list[str] = []
        for first in (True, False):
            with self.guard.acting(""):
                changes = self.changes(first=first)
            messages = [format_message(message) for message in self.messages_of(changes)]
            self._done(fanout.handler(_received(messages), context()))
        url = self.stack.queues["FanoutQueue"]
        with self.guard.acting(""):
            self.stack.sqs.send_message(QueueUrl=url, MessageBody="nonsense")
        self.stack.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        for message in self.stack.sqs.receive_message(QueueUrl=url).get("Messages", []):
            runtime.make_receipts().shorten_timeout(message["ReceiptHandle"], 1)
            self.stack.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        self._done(fanout.handler(_received(["nonsense"]), context()))

    def verify_function(self) -> None:
        """A verify that repairs, a sample, and a run by schedule that failed."""
        with self.guard.acting(""):
            self.disorder()
        self.machine(verify.handler, repair=True, numbers=None, segments=1, grace_seconds=0, seed=None, workers=1)
        verify.handler({"do": "sample", "percent": 0.1}, context(900_000))
        self.stack.sqs.send_message(QueueUrl=self.stack.queues["AsyncDeadLetters"], MessageBody="{}")

    def backfill_function(self) -> None:
        """A backfill."""
        with self.guard.acting(""):
            self.disorder()
        how = {"changed": False, "table": None, "where": None, "restart": True, "resume": False}
        self.machine(backfill.handler, segments=1, workers=1, rate=1_000_000.0, **how)

    def redrive_function(self) -> None:
        """Redrive all changes as batches that Lambda gave up, with and without records, and as dead messages.

        A failure record is redriven too, and an unreadable entry from each store.
        """
        with self.guard.acting(""):
            self._lies_there()
        self.machine(redrive.handler)

    def _lies_there(self) -> None:
        stack, letters = self.stack, self.stack.queues["FanoutDeadLetters"]
        for name in ("FanoutDeadLetters", "FailuresQueue"):
            stack.sqs.purge_queue(QueueUrl=stack.queues[name])
            stack.sqs.send_message(QueueUrl=stack.queues[name], MessageBody="nonsense")
        for found in stack.s3.list_objects_v2(Bucket=stack.bucket, Prefix="aws/lambda/").get("Contents", ()):
            stack.s3.delete_object(Bucket=stack.bucket, Key=found["Key"])
        changes = self.disorder()
        stack.forget()  # as a new rule finds it, whose first function is the redrive
        self.accept()
        bodies: list[dict[str, Any]] = [{"payload": json.dumps({"Records": self.poll()})}]
        for one in changes:
            for message in self.messages_of([one]):
                stack.sqs.send_message(QueueUrl=letters, MessageBody=format_message(message))
        bodies += [{"DDBStreamBatchInfo": span} for span in self.spans()]
        for number, body in enumerate(bodies):
            info = {"DDBStreamBatchInfo": {}, **body}
            stack.s3.put_object(Bucket=stack.bucket, Key=f"aws/lambda/m/{number}", Body=json.dumps(info).encode())
        plan = make_tasks(changes, self.rules)
        failures = [Failure(rule.name, pull.key, "Failed") for pull in plan.pulls for rule in pull.rules]
        parts = [look.part for look in plan.parts]
        failures += [Failure(p.rule.name, p.target, "Failed", member=p.source, element=p.element) for p in parts]
        for failure in failures:
            body = json.dumps(make_failure_record(failure, datetime.now(UTC)))
            stack.sqs.send_message(QueueUrl=stack.queues["FailuresQueue"], MessageBody=body)

    def machine(self, handler: Callable[[dict[str, Any], Any], dict[str, Any]], **asked: Any) -> None:
        """Call a function as the state machine does (infra/machine.asl.json), from begin to end."""
        asked = {"prints": fingerprints.compute_rule_fingerprints(self.rules), "rules": [], **asked}
        execution = uuid4().hex
        answer = handler({"do": "begin", "execution": execution, "asked": asked}, context(900_000))
        while answer["more"]:
            run = answer["run"]
            for unit in answer["units"]:
                for _ in range(20):
                    if handler({"do": "unit", "unit": unit, "run": run}, context(900_000))["done"]:
                        break
            answer = handler({"do": "end", "run": run}, context(900_000))
        if answer["error"]:
            print(answer["cause"])
            raise StoppedError
        with self.guard.acting(""):
            self.left = sum(map(_left, self._documents(execution)))

    def _documents(self, execution: str) -> Iterator[dict[str, Any]]:
        """The documents of an execution in the state table."""
        for item in self.stack.dynamodb.scan(TableName=self.stack.state)["Items"]:
            if execution in item["id"]["S"]:
                yield json.loads(item["document"]["S"])

    def _done(self, answer: dict[str, Any]) -> None:
        """Stop the story after a refusal, which the output so far must name."""
        if answer != {"batchItemFailures": []} or self.guard.denied:
            raise StoppedError


def _left(document: dict[str, Any]) -> int:
    """Count the differences that a verify did not repair, or the entries that a redrive left."""
    tally = document.get("tally", {})
    return sum(count for *_, count in tally.get("unmended", ())) + tally.get("again", 0)


def _received(bodies: list[str]) -> dict[str, Any]:
    return {"Records": [{"messageId": str(number), "body": body} for number, body in enumerate(bodies)]}


def messages_of(changes: list[Change], rules: Rules) -> Iterator[Message]:
    """Messages that ask for all that these changes ask for, each by itself."""
    plan = make_tasks(changes, rules)
    yield from (make_part_message(look.part) for look in plan.parts)
    yield from (push.message() for push in plan.pushes)
    yield from (PullMessage(pull.key) for pull in plan.pulls)
    for change in changes:
        one = make_tasks([change], rules)
        calls = (effect for _, effect in one.effects if isinstance(effect, Call))
        yield from (CallMessage(call.rule, call.function, call.change) for call in calls)


def whole_story(text: str, folder: Path | None = None, puts: dict[str, list[Item]] | None = None) -> Story:
    """A story of a whole rules file, on tables of its own: its items come, those of a scenario in `folder`
    where none are given, and all of them go.
    """
    document = read_document(text, Problems())
    assert document is not None
    for name, table in document.data["tables"].items():
        table["name"] = "${PREFIX}" + name
    rules = json.dumps(document.data)
    if folder is not None:
        puts = {}
        for step in load_scenario(folder).steps:
            for action in step.actions:
                if isinstance(action, Put):
                    puts.setdefault(action.key.table, []).append(action.item)
    return Story(rules, puts or {}, gone=puts or {})


PLAYED: dict[str, Callable[[Account], None]] = {
    STREAM: Account.stream_function,
    FANOUT: Account.fanout_function,
    VERIFY: Account.verify_function,
    BACKFILL: Account.backfill_function,
    REDRIVE: Account.redrive_function,
}
