"""Plays an example on the embedded engine: its tables, its scenario, and Time to Live.

No emulator marks a delete by Time to Live. The record of a delete that the scenario calls `expire` is therefore marked
here as DynamoDB marks it, and otherwise left as the engine wrote it.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sync_rules.adapters import aws, retries
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.effects import make_caller
from sync_rules.adapters.expressions import Expressions
from sync_rules.adapters.host import THIS_PROCESS, make_steady_clock
from sync_rules.adapters.preflight import require_tables
from sync_rules.jobs.consume.attempts import MappingSettings
from sync_rules.jobs.consume.local_run import WAIT_SECONDS, LocalRun
from sync_rules.jobs.failure_log import FailureLog
from sync_rules.jobs.local_files import Files, read_wall_clock_ms
from sync_rules.jobs.streams import DynamoDBStreams, RecordsPage, Shard, StreamReader, encode_binary
from sync_rules.lab.rehearsal import CountedCalls
from sync_rules.lab.scenario import Action, Expire, Reported
from sync_rules.lab.scenario_file import RULES, SCENARIO
from sync_rules.model import json_bytes
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey, Outcome
from sync_rules.model.limits import Limits
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import Item
from sync_rules.model.writes import Delete, Put, Update
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.records import TIME_TO_LIVE
from sync_rules.pipeline.requests import NULL_PORTS, Caller, Read, World
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

EXAMPLES: Final = Path("examples")
READS: Final = "read.py"
BATCH_SIZE: Final = 500
POLL_IDLE_MS: Final = 20
OLD_RECORDS_MAX: Final = 100  # per stream
STEP_MAX_MS: Final = 60_000
SOON_MS: Final = 1_500  # second looks are due sooner; retries of parked work are later, and not waited for
LIMITS: Final = Limits(parked_first_delay_seconds=1)


class LocalPipeline:
    """A pipeline that reads the streams of existing tables, and keeps its files in a directory."""

    def __init__(
        self,
        rules: Rules,
        client: DynamoDBClient,
        reader: StreamReader,
        directory: Path,
        *,
        caller: Caller = NULL_PORTS,
    ) -> None:
        self._reader = reader
        self._arns = list(require_tables(client, rules).stream_arns)
        self._now_ms = make_steady_clock()
        self._files = Files(directory / "checkpoint.json", directory / "failures.jsonl")
        self.store = DynamoStore(client, rules.tables)
        self._local = LocalRun(
            stream_arns=self._arns,
            rules_fingerprint=rules.fingerprint,
            reader=reader,
            store=self.store,
            make_consumer=lambda world: Consumer(rules, world, THIS_PROCESS, limits=LIMITS),
            files=self._files,
            settings=MappingSettings(batch_size=BATCH_SIZE, poll_idle_ms=POLL_IDLE_MS),
            caller=caller,
            now_ms=self._now_ms,
        )
        self._local.begin()
        failures = FailureLog(directory / "verify.jsonl", read_wall_clock_ms)
        self.world = World(self.store, self._local.pump.queue, failures, caller)

    def drain(self, max_ms: int) -> bool:
        """Process the streams to their end. Return False if that took too long."""
        return self._local.pump.drain(max_ms)

    def settle(self, max_ms: int) -> bool:
        """Process the streams until no second look is pending. Return False if that took too long."""
        deadline_ms = self._now_ms() + max_ms
        while self._local.pump.drain(deadline_ms - self._now_ms()) and self._has_pending_look():
            time.sleep(WAIT_SECONDS)
        return self._local.pump.idle

    def _has_pending_look(self) -> bool:
        soon_ms = self._now_ms() + SOON_MS
        return any(pending.due_ms <= soon_ms for pending in self._local.pump.queue.pending_messages)

    def redeliver(self) -> None:
        """Deliver the oldest records of every stream, twice."""
        for arn in self._arns:
            for shard in self._reader.shards(arn):
                iterator = self._reader.iterator(arn, shard.shard_id, None)
                event = {"Records": list(self._reader.records(arn, iterator, OLD_RECORDS_MAX).records)}
                for _ in range(2):
                    self._local.consumer.handle_event(event, lambda: STEP_MAX_MS)

    def figures(self) -> Counter[tuple[str, Outcome]]:
        """Count the outcomes since the start, by rule and outcome."""
        return self._local.consumer.telemetry.outcomes.copy()

    def reports(self) -> Sequence[tuple[str, str]]:
        """List the rule and the reason of each failure record so far."""
        if not self._files.failures.exists():
            return []
        records = map(json_bytes.parse_json, self._files.failures.read_text().splitlines())
        return [(record["rule"], record["reason"]) for record in records]


def replace_settle_seconds(rules: Rules, settle_seconds: int) -> Rules:
    """Return the same rules with another delay of their second looks."""
    return replace(rules, rules={n: replace(r, settle_seconds=settle_seconds) for n, r in rules.rules.items()})


# ---------------------------------------------------------------- the folder
def find_folder(example: str, *installed: Path) -> Path:
    """Find the folder of an example, given its path, or its name under ./examples or one of the `installed` folders.

    Raises:
        UserError: if there is no such example; the message lists the examples.
    """
    for folder in (EXAMPLES / example, Path(example), *(place / example for place in installed)):
        if (folder / RULES).is_file() and (folder / SCENARIO).is_file():
            return folder
    if Path(example).is_dir():
        raise UserError(f"{example}: expected a folder with {RULES} and {SCENARIO}")
    names = sorted({path.parent.name for place in (EXAMPLES, *installed) for path in place.glob(f"*/{SCENARIO}")})
    raise UserError(
        explain_unknown_name("example", example, names) + ("" if names else f" There is no folder ./{EXAMPLES} here.")
    )


def read_answers(folder: Path, rules: Rules, client: DynamoDBClient) -> Mapping[str, Any]:
    """Return the answers of `read(rules, client)` in the example's read.py, by question; none without that file.

    Raises:
        UserError: when the file has no such function.
    """
    file = folder / READS
    if not file.exists():
        return {}
    spec = importlib.util.spec_from_file_location(f"read_{folder.name}".replace("-", "_"), file)
    assert spec is not None
    assert spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    read = getattr(module, "read", None)
    if read is None:
        raise UserError(f"{file}: expected a function read(rules, client) that gives answers by question")
    found: Mapping[str, Any] = read(rules, client)
    return found


# ---------------------------------------------------------------- Time to Live
class ExpiringReader:
    """A StreamReader that marks expected deletes as Time to Live marks its own."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self._awaited: list[tuple[str, str]] = []  # table and key
        self._marked: set[tuple[str, str]] = set()  # stream and sequence number: a record may be read again

    def expire(self, table: str, key: ItemKey) -> None:
        """Mark the next delete of this item."""
        self._awaited.append((table, _format_key(encode_binary(key.attributes()))))

    def shards(self, stream_arn: str) -> tuple[Shard, ...]:
        return self._reader.shards(stream_arn)

    def iterator(self, stream_arn: str, shard_id: str, after: str | None) -> str:
        return self._reader.iterator(stream_arn, shard_id, after)

    def records(self, stream_arn: str, iterator: str, limit: int) -> RecordsPage:
        page = self._reader.records(stream_arn, iterator, limit)
        return replace(page, records=tuple(self._mark_expiry(record, stream_arn) for record in page.records))

    def _mark_expiry(self, record: Mapping[str, Any], stream_arn: str) -> Mapping[str, Any]:
        change = record["dynamodb"]
        number = (stream_arn, str(change.get("SequenceNumber")))
        if record.get("eventName") == "REMOVE" and number not in self._marked:
            deleted = (stream_arn.partition(":table/")[2].partition("/")[0], _format_key(change["Keys"]))
            if deleted in self._awaited:
                self._awaited.remove(deleted)
                self._marked.add(number)
        if number not in self._marked:
            return record
        kind, principal = TIME_TO_LIVE
        return {**record, "userIdentity": {"type": kind, "principalId": principal}}


def _format_key(key: Mapping[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


# ---------------------------------------------------------------- the stage
class EngineScene:
    """A Scene on an engine: the application's own client, and the pipeline behind it."""

    def __init__(self, rules: Rules, endpoint: str, directory: Path, folder: Path) -> None:
        self.client = aws.dynamodb(endpoint)
        self.rules = rules
        self._retrying = retries.make_retry()
        self._calls = CountedCalls(make_caller(rules, self.client, None, folder=folder))
        self._reader = ExpiringReader(DynamoDBStreams(aws.dynamodbstreams(endpoint)))
        self.pipeline = LocalPipeline(rules, self.client, self._reader, directory, caller=self._calls)

    def do(self, action: Action) -> None:
        table = self.rules.tables[action.key.table].physical_name
        key = action.key.attributes()
        match action:
            case Put():
                self._retrying(self.client.put_item, TableName=table, Item=action.item)
            case Update():
                expressions = Expressions()
                update = expressions.update(action)
                self._retrying(
                    self.client.update_item,
                    TableName=table,
                    Key=key,
                    UpdateExpression=update,
                    **expressions.parameters(),
                )
            case Delete() | Expire():
                if isinstance(action, Expire):
                    self._reader.expire(table, action.key)
                self._retrying(self.client.delete_item, TableName=table, Key=key)

    def do_all(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.do(action)

    def rest(self) -> bool:
        return self.pipeline.settle(STEP_MAX_MS)

    def item(self, key: ItemKey) -> Item | None:
        """An item, strongly consistent."""
        (item,) = self.pipeline.store.read(Read((key,)))
        return item

    def calls(self, rule: str) -> int:
        return self._calls.times(rule)

    def reports(self) -> Sequence[Reported]:
        return self.pipeline.reports()
