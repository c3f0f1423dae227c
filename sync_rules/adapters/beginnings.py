"""The beginning of each rule that calls a function. The rule ignores older changes, unless it says `since: horizon`.

A new event source mapping, and `sync-rules run` without a checkpoint, read a stream from its oldest record, which may
be 24 hours older than the rule.

Invariant: the table of calls stores the beginning of a rule once, and it never changes. The first process that writes
it wins, and all others read it. A renamed rule keeps its beginning. If the table already has calls but no beginnings,
its rules call for all changes, so that an upgrade loses none.

DynamoDB rounds the time of a change down to the second: a change of the same second as the beginning does call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tenacity import Retrying

from sync_rules.adapters import aws, retries
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Call
from sync_rules.pipeline.requests import Caller
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ITEM: Final = "sync-rules.beginnings"  # the id of the one item that has them
NOTES: Final = "sync-rules#"  # what the ids of calls begin with
RULE: Final = "rule "  # what the names of its attributes begin with; the rest is the rule
FUNCTION_NAME: Final = "AWS_LAMBDA_FUNCTION_NAME"  # set by Lambda
NOT_KNOWN_MS: Final = 0  # the beginning of a rule that called before beginnings were noted
SECOND_MS: Final = 1000

Beginnings = Mapping[str, int]  # by the name of the rule: milliseconds since the epoch


class CallsSince:
    """A Caller that makes no call for a change from before the beginning of its rule."""

    def __init__(self, behind: Caller, beginnings: Beginnings) -> None:
        self._behind = behind
        self._since = {name: ms // SECOND_MS * SECOND_MS for name, ms in beginnings.items()}

    def call(self, call: Call) -> bool | None:
        """Make the call. Return False without a call if the change is older than the rule's beginning."""
        at, since = call.change.created_ms, self._since.get(call.rule)
        if at is not None and since is not None and at < since:
            return False
        return self._behind.call(call)


def list_beginnings(rules: Rules, beginnings: Beginnings) -> dict[str, int]:
    """List the beginnings of the rules that do not ask for all changes."""
    return {name: beginnings[name] for name in rules.functions if not rules.rules[name].calls_from_horizon}


def complete_beginnings(rules: Rules, known: Beginnings, beginning_ms: Callable[[], int]) -> dict[str, int]:
    """Return the beginnings of all rules that call: known beginnings, also under a former name, and `beginning_ms` for
    the others.
    """
    found: dict[str, int] = {}
    for name in rules.functions:
        former = rules.rules[name].former_name
        given = [known[one] for one in (name, former) if one is not None and one in known]
        found[name] = min(given) if given else beginning_ms()
    return found


def describe_beginnings(rules: Rules, beginnings: Beginnings) -> dict[str, str]:
    """Describe, for each rule that calls, the changes that it calls for."""
    given = list_beginnings(rules, beginnings)
    return {
        name: f"changes since {datetime.fromtimestamp(given[name] / SECOND_MS, UTC):%Y-%m-%d %H:%M:%S} UTC"
        if given.get(name)
        else "all changes in the streams"
        for name in sorted(rules.functions)
    }


# ---------------------------------------------------------------- in the table of calls
def note_in_table(
    client: DynamoDBClient,
    rules: Rules,
    calls_table: str,
    beginning_ms: Callable[[], int],
    *,
    upgraded: bool = False,
    retrying: Retrying | None = None,
) -> dict[str, int]:
    """Read the beginnings of all rules that call from the table of calls, and add those of new rules.

    `upgraded`: earlier versions called, and stored no beginnings. Without it, the calls in the table show whether they
    did.

    Raises:
        StoreError: if the table does not answer.
        UserError: if the table may not be read.
    """
    table = _Table(client, calls_table, retrying or retries.make_retry())
    known = table.read()
    if known is not None and rules.functions.keys() <= known.keys():
        return complete_beginnings(rules, known, beginning_ms)
    if known is None and (upgraded or table.has_calls()):
        fresh = complete_beginnings(rules, {}, lambda: NOT_KNOWN_MS)
    else:
        fresh = complete_beginnings(rules, known or {}, beginning_ms)
    return complete_beginnings(rules, table.note(fresh), beginning_ms)


def read_beginnings(client: DynamoDBClient, rules: Rules, calls_table: str | None) -> dict[str, int]:
    """Read the beginnings from the table of calls without adding any. Rules without a beginning call for all
    changes.
    """
    if not calls_table or not rules.functions:
        return {}
    known = _Table(client, calls_table, retries.make_retry()).read() or {}
    return complete_beginnings(rules, known, lambda: NOT_KNOWN_MS)


class _Table:
    def __init__(self, client: Any, name: str, retrying: Retrying) -> None:
        self._client, self._name, self._retrying = client, name, retrying

    def read(self) -> dict[str, int] | None:
        """Read what is noted; None when nothing ever was."""
        key = {"id": {"S": ITEM}}
        item = self._ask(self._client.get_item, Key=key, ConsistentRead=True).get("Item")
        return None if item is None else _parse_times(item)

    def note(self, beginnings: Beginnings) -> dict[str, int]:
        """Note what is not noted yet. Returns what is noted then."""
        names = {f"#{place}": f"{RULE}{name}" for place, name in enumerate(beginnings)}
        values = {f":{place}": {"N": str(ms)} for place, ms in enumerate(beginnings.values())}
        sets = ", ".join(f"#{place} = if_not_exists(#{place}, :{place})" for place in range(len(names)))
        answer = self._ask(
            self._client.update_item,
            Key={"id": {"S": ITEM}},
            UpdateExpression=f"SET {sets}",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
            ReturnValues="ALL_NEW",
        )
        if "Attributes" not in answer:  # an unknown beginning loses changes, or calls for old ones
            raise StoreError("ResponseParserError", f"the beginnings of call rules in {self._name}")
        return _parse_times(answer["Attributes"])

    def has_calls(self) -> bool:
        """True if a call was ever noted in the table."""
        start: dict[str, Any] = {}
        while True:
            page = self._ask(
                self._client.scan,
                FilterExpression="begins_with(id, :calls)",
                ExpressionAttributeValues={":calls": {"S": NOTES}},
                ConsistentRead=True,
                **start,
            )
            if page.get("Items"):
                return True
            if not page.get("LastEvaluatedKey"):
                return False
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _ask(self, call: Callable[..., Any], **parameters: Any) -> Any:
        what = f"the beginnings of call rules in {self._name}"
        needed = "dynamodb:GetItem, dynamodb:UpdateItem and dynamodb:Scan"
        denied = f"table {self._name} remembers since when rules call: allow {needed} on it"
        mistakes = {"AccessDeniedException": denied}
        return retries.ask(self._retrying, what, call, mistakes=mistakes, TableName=self._name, **parameters)


def _parse_times(item: Mapping[str, Any]) -> dict[str, int]:
    return {name.removeprefix(RULE): int(value["N"]) for name, value in item.items() if name.startswith(RULE)}


# ---------------------------------------------------------------- when something is deployed
def read_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def read_deploy_time_ms(endpoint_url: str | None = None) -> int:
    """Read when this Lambda function was deployed: a change may wait long before the first process starts. Return the
    present time outside of Lambda, if the answer has no time, and for an emulator without functions.

    Raises:
        StoreError: if Lambda does not answer. A beginning is noted for ever: a beginning that is too late loses the
            changes that started this very process.
        UserError: if this process may not ask Lambda.
    """
    name = os.environ.get(FUNCTION_NAME)
    if not name:
        return read_clock_ms()
    denied = f"function {name} asks since when its rules are deployed: allow lambda:GetFunctionConfiguration on it"
    mistakes = {"AccessDeniedException": denied}
    ask = aws.lambdas(endpoint_url).get_function_configuration
    try:
        answer = retries.ask(retries.make_retry(), f"function {name}", ask, mistakes=mistakes, FunctionName=name)
        return int(datetime.fromisoformat(answer["LastModified"]).timestamp() * SECOND_MS)
    except StoreError:
        if endpoint_url:
            return read_clock_ms()
        raise
    except (KeyError, ValueError):
        return read_clock_ms()
