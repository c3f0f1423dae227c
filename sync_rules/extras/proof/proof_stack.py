"""The stack of one self-test: made, used, removed, and found again by a later run.

Invariant: a file with the stack's name is on disk before the stack is requested, and stays until the stack is deleted.
A stack is removed only if its name and its tag are those of a self-test.
"""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TypeVar

from sync_rules import DOCS
from sync_rules.adapters import aws, aws_errors, retries
from sync_rules.adapters.files import write_whole
from sync_rules.deploy.files import fill_marks
from sync_rules.deploy.yamltext import read_yaml
from sync_rules.extras.proof.probe import DENIED, Polling, RefutedError, find_denied_action, require
from sync_rules.model import json_bytes
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.values import Item

T = TypeVar("T")
TEMPLATE: Final = Path(__file__).with_name("stack.yaml")
CODE: Final = Path(__file__).with_name("deployed.txt").read_text(encoding="utf-8")
TAG: Final = "sync-rules-selftest"
PREFIX: Final = f"{TAG}-"
JOURNAL_PATTERN: Final = f".{PREFIX}*.json"
STACK_SECONDS: Final = 900.0  # to create or delete one: a mapping alone takes minutes
STACK_LOOK_SECONDS: Final = 0.5  # between two looks at a stack
APPEARS_SECONDS: Final = 3.0  # until a stack appears after CreateStack
GONE: Final = "ValidationError"  # DescribeStacks of a name that no stack has
DELETED_AT_ONCE_MAX: Final = 1_000  # of DeleteObjects
BATCH_MAX_ITEMS: Final = 25  # of BatchWriteItem
PAGES_MAX: Final = 20  # a bucket with more objects is not one of a self-test, or does not let them go
QUOTA: Final = re.compile(r"limit|quota|exceeded|too many", re.IGNORECASE)


@dataclass(frozen=True)
class Clients:
    """The clients of one account and Region, or of an emulator."""

    endpoint_url: str | None = None
    region: str | None = None

    def __getattr__(self, service: str) -> Any:
        """The client of a service; `lambdas` is that of Lambda, whose name Python has taken."""
        if service.startswith("_"):
            raise AttributeError(service)
        return aws.find_client("lambda" if service == "lambdas" else service, self.endpoint_url, self.region)


@dataclass(frozen=True)
class ProofSite:
    """A stack that exists, with its clients; `outputs` are its template's."""

    name: str
    clients: Clients
    outputs: Mapping[str, str]
    waiting: Polling[Any] = field(default_factory=Polling)

    def table(self, name: str) -> str:
        """Return the physical name of a table, a function or a queue."""
        return f"{self.name}-{name}"

    def ask(self, call: Callable[..., Any], **parameters: Any) -> Any:
        """Return the answer to a call, which is repeated while a retry may help. Raises what `aws` lists as ERRORS."""
        return retries.make_retry()(call, **parameters)

    @cached_property
    def db(self) -> Any:
        return self.clients.dynamodb

    def see(self, look: Callable[[], T], wanted: Callable[[T], object], said: str) -> T:
        """Return the first answer of `look` that is as wanted. Raises RefutedError with `said` if none comes in
        time.
        """
        seen: T
        seen, came = self.waiting.until(look, wanted)
        require(came, said)
        return seen

    def pages(self, call: Callable[..., Any], **parameters: Any) -> Iterator[Any]:
        """Yield the answers to a query or a scan, page by page."""
        start: dict[str, Any] = {}
        while True:
            page = self.ask(call, **parameters, **start)
            yield page
            if not page.get("LastEvaluatedKey"):
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def put(self, item: Item, table: str = "items", more: Mapping[str, Any] | None = None) -> Any:
        return self.ask(self.db.put_item, TableName=self.table(table), Item=item, **(more or {}))

    def put_all(self, items: Sequence[Item]) -> None:
        """Write items of the table `items`, a batch at a time."""
        for first in range(0, len(items), BATCH_MAX_ITEMS):
            puts = [{"PutRequest": {"Item": item}} for item in items[first : first + BATCH_MAX_ITEMS]]
            left: dict[str, Any] = {self.table("items"): puts}
            while left:
                left = self.ask(self.db.batch_write_item, RequestItems=left)["UnprocessedItems"]

    def update_of(self, key: Item, text: str, values: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Return the parameters of an UpdateItem in the table `items`."""
        given = {"ExpressionAttributeValues": values} if values else {}
        return {"TableName": self.table("items"), "Key": key, "UpdateExpression": text, **given, **more}

    def update(self, key: Item, text: str, values: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Send an UpdateItem in the table `items`."""
        return self.ask(self.db.update_item, **self.update_of(key, text, values, **more))

    def delete(self, key: Item, **more: Any) -> Any:
        return self.ask(self.db.delete_item, TableName=self.table("items"), Key=key, **more)

    def get(self, key: Item, table: str = "items") -> Item:
        """An item, read consistently; empty if there is none."""
        answer = self.ask(self.db.get_item, TableName=self.table(table), Key=key, ConsistentRead=True)
        found: Item = answer.get("Item") or {}
        return found

    def query(self, pk: str, table: str = "items", **more: Any) -> list[Item]:
        """All items under a partition key, in the order of their sort keys, read consistently."""
        asked = {**self.query_of(pk), "TableName": self.table(table), **more}
        return [item for page in self.pages(self.db.query, **asked) for item in page["Items"]]

    def query_of(self, pk: str) -> dict[str, Any]:
        """Return the parameters of a consistent query of a partition key in the table `items`."""
        return {
            "TableName": self.table("items"),
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": pk}},
            "ConsistentRead": True,
        }


def make_length_test(number: int) -> Callable[[Sized], bool]:
    """Return a test for a sequence of more than `number` elements."""
    return lambda seen: len(seen) > number


def make_item(pk: str, sk: str = "-", **more: str) -> Item:
    """Make an item of strings."""
    return {"pk": {"S": pk}, "sk": {"S": sk}, **{name: {"S": value} for name, value in more.items()}}


def make_new_key(prefix: str = "") -> str:
    """Return a partition key that no probe and no earlier run has used."""
    return f"{prefix}{token_hex(6)}"


# ---------------------------------------------------------------- journal
@dataclass(frozen=True)
class Journal:
    """The file that names a stack, from before the stack is requested until it is deleted."""

    path: Path
    stack: str
    endpoint_url: str | None
    region: str | None

    def write(self) -> None:
        """Write the file. Raises UserError if it cannot be written."""
        about = {"stack": self.stack, "endpoint_url": self.endpoint_url, "region": self.region}
        write_whole(self.path, json.dumps(about) + "\n")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the file locked for the block, so that no other process takes the stack for left behind."""
        with self.path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def is_in_use(self) -> bool:
        """Return True while the process that wrote the file runs."""
        with self.path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def forget(self) -> None:
        """Remove the file, because the stack is deleted."""
        self.path.unlink(missing_ok=True)


def make_journal(folder: Path, clients: Clients) -> Journal:
    """Make the journal of a stack with a new random name; it is not written yet."""
    suffix = token_hex(5)
    path = folder / JOURNAL_PATTERN.replace("*", suffix)
    return Journal(path, PREFIX + suffix, clients.endpoint_url, clients.region)


def list_journals(folder: Path) -> Iterator[Journal]:
    """List the journals that earlier runs left. Raises UserError for a file that is not a journal."""
    for path in sorted(folder.glob(JOURNAL_PATTERN)):
        try:
            about = json_bytes.parse_json(path.read_bytes())
            name, endpoint_url, region = about["stack"], about["endpoint_url"], about["region"]
            require(name.startswith(PREFIX), "another name")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RefutedError) as error:
            raise UserError(
                f"{path}: expected a file that selftest wrote. Delete it, and run --clean again."
            ) from error
        yield Journal(path, name, endpoint_url, region)


# ---------------------------------------------------------------- made
def make_template(name: str) -> str:
    """Return the template's JSON for a stack of this name."""
    marks = {"NAME": name, "CODE": json.dumps(CODE)[1:-1]}
    return json.dumps(read_yaml(fill_marks(TEMPLATE.read_text(encoding="utf-8"), marks), TEMPLATE.name))


def require_free(name: str, clients: Clients) -> None:
    """Check that CloudFormation answers and that no stack has the name, before anything is written or made.

    Raises:
        UserError: if a permission is missing, or the name is taken.
        StoreError: if there are no credentials, or no answer.
    """
    if describe_stack(clients.cloudformation, name, first=True) is not None:
        raise _make_taken_error(name)


def _make_taken_error(name: str) -> TakenError:
    return TakenError(f"there is a stack {name} already: run it again, and another name is drawn")


def create(journal: Journal, clients: Clients, waiting: Polling[Any]) -> ProofSite:
    """Make the stack, and wait until it exists. The journal must have been written.

    Raises:
        UserError: if the name is taken, a permission is missing, or a quota is met. `remove` removes all that is left.
        StoreError: if CloudFormation does not answer.
    """
    client = clients.cloudformation
    asked = {
        "StackName": journal.stack,
        "TemplateBody": make_template(journal.stack),
        "Capabilities": ["CAPABILITY_NAMED_IAM"],
        "Tags": [{"Key": TAG, "Value": journal.stack.removeprefix(PREFIX)}],
    }
    try:
        retries.make_retry(first=True)(client.create_stack, **asked)
    except aws_errors.ERRORS as error:
        if aws_errors.read_code(error) != "AlreadyExistsException":
            raise make_refusal_error(error, f"CreateStack of {journal.stack}") from error
        there = describe_stack(client, journal.stack)
        if there is not None and not is_ours(there):  # else it was made by a call whose answer was lost
            raise _make_taken_error(journal.stack) from error
    found, _ = waiting.until(lambda: describe_stack(client, journal.stack), is_settled)
    if found is None or found["StackStatus"] != "CREATE_COMPLETE":
        raise UserError(f"stack {journal.stack} could not be made: {_explain_failure(client, journal.stack)}")
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
    return ProofSite(journal.stack, clients, outputs)


class TakenError(UserError):
    """A stack of the drawn name belongs to somebody else. It is left alone."""


def describe_stack(client: Any, name: str, *, first: bool = False) -> dict[str, Any] | None:
    """Return the description of a stack, or None if it does not exist. `first`: this is a command's first call. Raises
    UserError and StoreError.
    """
    try:
        (found,) = retries.make_retry(first=first)(client.describe_stacks, StackName=name)["Stacks"]
    except aws_errors.ERRORS as error:
        if aws_errors.read_code(error) == GONE:
            return None
        raise make_refusal_error(error, f"DescribeStacks of {name}", client) from error
    return dict(found)


def is_settled(found: Mapping[str, Any] | None) -> bool:
    """Return True for a deleted stack, or a stack without an operation in progress."""
    return found is None or not found["StackStatus"].endswith("IN_PROGRESS")


def make_refusal_error(error: BaseException, where: str, client: Any = None) -> UserError | StoreError:
    """Return the error of a call on the stack, with the missing permission, and its cure."""
    action = find_denied_action(error)
    if action:
        return UserError(
            f"{where} is denied: these credentials need {action} ({DOCS}/proof/selftest.md lists all of them)"
        )
    return aws_errors.make_store_error(error, where, client=client)


def _explain_failure(client: Any, name: str) -> str:
    """The first reasons of a stack that failed, with what cures them."""
    with suppress(*aws_errors.ERRORS):
        events = retries.make_retry()(client.describe_stack_events, StackName=name)["StackEvents"]
        for event in reversed(events):
            if event["ResourceStatus"] == "CREATE_FAILED" and "cancelled" not in event.get("ResourceStatusReason", ""):
                reason = event.get("ResourceStatusReason", "no reason given")
                denied = DENIED.search(reason)
                if denied:
                    return (
                        f"{event['LogicalResourceId']}: these credentials need {denied[1]} ({DOCS}/proof/selftest.md)"
                    )
                cure = " Raise the quota, or remove what is not needed." if QUOTA.search(reason) else ""
                return f"{event['LogicalResourceId']} ({event['ResourceType']}): {reason}.{cure}"
    return "CloudFormation gives no reason. Run it again."


# ---------------------------------------------------------------- removed
def remove(name: str, clients: Clients, waiting: Polling[Any]) -> None:
    """Remove a stack of a self-test in any state, and wait until it is deleted.

    Raises:
        UserError: if something cannot be removed, with its cure.
        StoreError: if CloudFormation does not answer.
    """
    client = clients.cloudformation
    appears: Polling[Any] = replace(waiting, seconds=APPEARS_SECONDS)
    found, _ = appears.until(lambda: describe_stack(client, name), bool)
    if found is None:
        return
    if not is_ours(found):
        raise UserError(f"stack {name} is not of a selftest: it has no tag {TAG}. It is left as it is.")
    if not aws.is_aws(client):  # an emulator may go on making what was deleted meanwhile
        waiting.until(lambda: describe_stack(client, name), is_settled)
    for _ in range(2):  # what is written while the bucket is being emptied is met by the second try
        _empty_bucket(clients, name)
        try:
            retries.make_retry()(client.delete_stack, StackName=name)
        except aws_errors.ERRORS as error:
            raise make_refusal_error(error, f"DeleteStack of {name}") from error
        found, _ = waiting.until(lambda: describe_stack(client, name), is_settled)
        if found is None or found["StackStatus"] == "DELETE_COMPLETE":
            return
    raise UserError(
        f"stack {name} is still there ({found['StackStatus']}): delete it in CloudFormation's console, or run "
        "`sync-rules selftest --clean` again"
    )


def is_ours(found: Mapping[str, Any]) -> bool:
    """Return True for a stack with the name and the tag of a self-test."""
    tags = {one["Key"]: one["Value"] for one in found.get("Tags", ())}
    name: str = found["StackName"]
    return name.startswith(PREFIX) and tags.get(TAG) == name.removeprefix(PREFIX)


def _empty_bucket(clients: Clients, name: str) -> None:
    """Delete the objects of the stack's bucket: CloudFormation deletes only an empty one."""
    client = clients.s3
    with suppress(*aws_errors.ERRORS):  # it may not be there yet, or no more; the stack's own answer tells
        for _ in range(PAGES_MAX):
            page = retries.make_retry()(client.list_objects_v2, Bucket=name, MaxKeys=DELETED_AT_ONCE_MAX)
            objects = [{"Key": one["Key"]} for one in page.get("Contents", ())]
            if not objects:
                return
            retries.make_retry()(client.delete_objects, Bucket=name, Delete={"Objects": objects})


def list_stacks(clients: Clients) -> list[str]:
    """List the stacks of self-tests in the Region, by name and tag. Raises UserError and StoreError."""
    client = clients.cloudformation
    names: list[str] = []
    more: dict[str, str] = {}
    while True:
        try:
            page = retries.make_retry(first=True)(client.describe_stacks, **more)
        except aws_errors.ERRORS as error:
            raise make_refusal_error(error, "DescribeStacks", client) from error
        names += [one["StackName"] for one in page["Stacks"] if is_ours(one)]
        if not page.get("NextToken"):
            return names
        more = {"NextToken": page["NextToken"]}
