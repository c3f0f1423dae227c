"""Probes of streams, read without a function: records, their order, their numbers, a second stream of a table."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from sync_rules.extras.proof.probe import UnseenError, make_probe, require
from sync_rules.extras.proof.proof_stack import ProofSite, make_item, make_length_test, make_new_key
from sync_rules.model.values import Item

ROUNDS: Final = 10
READ_SECONDS: Final = 0.2  # a shard takes five reads a second, a stream ten descriptions
LIST_SECONDS: Final = 1.0
DIGITS: Final = range(21, 41)
EXPIRED_SECONDS: Final = 60  # so long ago the item had to expire
BULK_CALLS: Final = (("start", "put_items"), ("describe", "operation"))
AT_WORK: Final = ("IN_PROGRESS", "CANCELLING")  # of a bulk load
BY_TIME_TO_LIVE: Final = {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"}


class ProofStreamReader:
    """A reader of a table's stream, from its oldest record. Each call of `more` reads further."""

    def __init__(self, site: ProofSite, table: str = "items") -> None:
        self._site, self._client = site, site.clients.dynamodbstreams
        self.arn: str = find_latest_stream(site, table)
        self._iterators: dict[str, str | None] = {}
        self._listed: tuple[float, list[str]] = (-math.inf, [])
        self.records: dict[str, list[dict[str, Any]]] = {}  # by shard

    def more(self) -> list[dict[str, Any]]:
        """Return all records so far, after another read of each shard."""
        for shard in self._find_shards():
            if shard not in self._iterators:
                first = {"ShardIteratorType": "TRIM_HORIZON"}
                answer = self._ask(self._client.get_shard_iterator, StreamArn=self.arn, ShardId=shard, **first)
                self._iterators[shard] = answer["ShardIterator"]
            while iterator := self._iterators[shard]:
                self._site.waiting.sleep(READ_SECONDS)
                page = self._ask(self._client.get_records, ShardIterator=iterator)
                self._iterators[shard] = page.get("NextShardIterator")
                self.records.setdefault(shard, []).extend(page["Records"])
                if not page["Records"]:
                    break
        return [record for shard in self.records.values() for record in shard]

    def of(self, pk: str) -> list[dict[str, Any]]:
        """Return the records so far of one partition key, after another read."""
        return [record for record in self.more() if record["dynamodb"]["Keys"]["pk"].get("S") == pk]

    def _ask(self, call: Callable[..., Any], **parameters: Any) -> Any:
        return self._site.ask(call, **parameters)

    def _find_shards(self) -> list[str]:
        """The shards, asked for no more often than a stream answers."""
        now = time.monotonic()
        if now - self._listed[0] > LIST_SECONDS:
            self._listed = (now, list(self._list_shards()))
        return self._listed[1]

    def _list_shards(self) -> Iterator[str]:
        start: dict[str, str] = {}
        while True:
            about = self._ask(self._client.describe_stream, StreamArn=self.arn, **start)["StreamDescription"]
            yield from (shard["ShardId"] for shard in about["Shards"])
            if not about.get("LastEvaluatedShardId"):
                return
            start = {"ExclusiveStartShardId": about["LastEvaluatedShardId"]}


def find_latest_stream(site: ProofSite, table: str) -> str:
    """Return the ARN of the stream that DescribeTable names, or ""."""
    described: dict[str, Any] = site.ask(site.db.describe_table, TableName=site.table(table))["Table"]
    arn: str = described.get("LatestStreamArn", "")
    return arn


def _change_item(site: ProofSite, pk: str) -> list[tuple[str, Item | None, Item | None]]:
    """Change one item in every way that the pipeline does; gives the records that must follow."""
    key, name = make_item(pk), site.table("items")
    first, second = {**key, "v": {"S": "1"}}, {**key, "v": {"S": "2"}}
    third, fourth = {**key, "v": {"S": "3"}}, {**key, "v": {"S": "4"}}
    site.put(first)
    site.update(key, "SET v = :v", {":v": {"S": "2"}})
    text = f'UPDATE "{name}" SET "v"=? WHERE "pk"=? AND "sk"=?'  # noqa: S608 - the table is its own
    statement = {"Statement": text, "Parameters": [{"S": "3"}, key["pk"], key["sk"]]}
    site.ask(site.db.batch_execute_statement, Statements=[statement])
    site.ask(site.db.transact_write_items, TransactItems=[{"Put": {"TableName": name, "Item": fourth}}])
    site.delete(key)
    return [
        ("INSERT", None, first), ("MODIFY", first, second), ("MODIFY", second, third), ("MODIFY", third, fourth),
        ("REMOVE", fourth, None),
    ]  # fmt: skip


@make_probe(1)
def probe_every_change(site: ProofSite) -> str:
    pk, reading = make_new_key("1#"), ProofStreamReader(site)
    wanted = _change_item(site, pk)
    site.waiting.until(lambda: reading.of(pk), lambda found: len(found) >= len(wanted))
    mark = make_new_key("1#")  # a later record of the same stream: what came before it has come
    site.put(make_item(mark))
    site.waiting.until(lambda: reading.of(mark), len)
    found = [
        (one["eventName"], one["dynamodb"].get("OldImage"), one["dynamodb"].get("NewImage")) for one in reading.of(pk)
    ]
    names, expected = [one[0] for one in found], [one[0] for one in wanted]
    require(names == expected, f"five changes of an item made the records {names}, expected {expected}")
    require(found == wanted, "the images of the records are not the item before and after its changes")
    return "put, update, statement, transaction and delete: a record each, in order, with both images"


@make_probe(2)
def probe_silent_no_op(site: ProofSite) -> str:
    pk, mark, reading = make_new_key("2#"), make_new_key("2#"), ProofStreamReader(site)
    key = make_item(pk)
    item = {**key, "v": {"S": "1"}, "s": {"SS": ["a", "b"]}}
    site.put(item)
    site.put(item)
    site.update(key, "SET v = :v", {":v": {"S": "1"}})
    site.delete(make_item(pk, "none"))
    site.put({**item, "v": {"S": "2"}})
    site.put(make_item(mark))
    site.waiting.until(lambda: reading.of(mark), len)
    _, there = site.waiting.until(lambda: reading.of(pk), lambda found: len(found) > 1)
    names = [record["eventName"] for record in reading.of(pk)]
    require(there and names == ["INSERT", "MODIFY"], f"two changes among five writes made the records {names}")
    return "of five writes the two that changed something made a record"


@make_probe(3)
def probe_read_after_record(site: ProofSite) -> str:
    pk, reading = make_new_key("3#"), ProofStreamReader(site)
    for n in range(ROUNDS):
        site.put({**make_item(pk), "n": {"N": str(n)}})
        site.see(lambda: reading.of(pk), make_length_test(n), "a change made no record")
        found = site.get(make_item(pk)).get("n", {}).get("N", "-1")
        require(int(found) >= n, f"a read after the record of change {n} shows change {found}")
    return f"{ROUNDS} records, each change seen by a read at its delivery"


@make_probe(5)
def probe_sequence_numbers(site: ProofSite) -> str:
    pk, reading = make_new_key("5#"), ProofStreamReader(site)
    for n in range(ROUNDS):
        site.put({**make_item(pk), "n": {"N": str(n)}})
    said = f"{ROUNDS} changes did not make {ROUNDS} records"
    site.see(lambda: reading.of(pk), lambda found: len(found) >= ROUNDS, said)
    for records in reading.records.values():
        texts = [record["dynamodb"]["SequenceNumber"] for record in records]
        odd = sorted({len(text) for text in texts if not text.isdecimal() or len(text) not in DIGITS})
        require(not odd, f"sequence numbers have {odd} digits")
        values = list(map(int, texts))
        require(values == sorted(set(values)), "sequence numbers of a shard do not grow")
    return f"{sum(map(len, reading.records.values()))} records, their numbers grow within each shard"


@make_probe(8)
def probe_second_stream(site: ProofSite) -> str:
    name, before = site.table("switched"), find_latest_stream(site, "switched")
    for on in (False, True):
        wanted = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"} if on else {"StreamEnabled": False}
        site.ask(site.db.update_table, TableName=name, StreamSpecification=wanted)

        def ready() -> bool:
            described = site.ask(site.db.describe_table, TableName=name)["Table"]
            return bool(described["TableStatus"] == "ACTIVE")

        site.waiting.until(ready, bool)
    after = find_latest_stream(site, "switched")
    require(after and after != before, "DescribeTable names the stream of before")
    site.put(make_item(make_new_key("8#")), "switched")
    reading = ProofStreamReader(site, "switched")
    site.see(reading.more, len, "the stream that DescribeTable names gets no records")
    return "another ARN, and records come under it"


def expire(site: ProofSite) -> str:
    """Write an item that should expire. Return its partition key, for the probe of fact 9."""
    pk = make_new_key("9#")
    long_ago = str(int(time.time()) - EXPIRED_SECONDS)
    site.put({**make_item(pk), "expires": {"N": long_ago}})
    return pk


@make_probe(9)
def probe_expiry(site: ProofSite) -> str:
    """Probe the record of an expired item; unseen if no item expires in time."""
    reading = ProofStreamReader(site)
    known = {"PrincipalId", "Type"}

    def removed() -> list[dict[str, Any]]:
        return [
            record
            for record in reading.more()
            if record["eventName"] == "REMOVE" and "expires" in record["dynamodb"].get("OldImage", {})
        ]

    found = removed()
    if not found:
        raise UnseenError("no item expired while the selftest ran: Time to Live may take two days")
    said = {name: value for name, value in found[0].get("userIdentity", {}).items() if name in known}
    require(said == BY_TIME_TO_LIVE, f"a delete by Time to Live has the identity {said}")
    return "an item expired, and its record names the service"


@make_probe(71)
def probe_bulk_load(site: ProofSite) -> str:
    """Probe the records of a bulk load; unseen if the load does not end in time without an error."""
    start, describe = (getattr(site.db, f"{name}_bulk_{what}", None) for name, what in BULK_CALLS)
    if start is None or describe is None:
        raise UnseenError("this botocore cannot start a bulk load: upgrade boto3")
    pk, reading = make_new_key("71#"), ProofStreamReader(site)
    item, bucket = make_item(pk), {"S3Bucket": site.name, "S3KeyPrefix": f"bulk/{pk}"}
    line = json.dumps({"Item": item}).encode()
    site.ask(site.clients.s3.put_object, Bucket=site.name, Key=f"bulk/{pk}/items.json", Body=line)
    begun = site.ask(
        start,
        TableName=site.table("items"),
        InputS3Configuration={**bucket, "InputFormat": "DYNAMODB_JSON"},
        OutputS3Configuration={**bucket, "S3KeyPrefix": f"output/{pk}", "OutputType": ["ERROR"]},
    )
    arn = begun["BulkOperationDescription"]["BulkOperationArn"]

    def status() -> str:
        site.waiting.sleep(LIST_SECONDS)
        about = site.ask(describe, BulkOperationArn=arn)["BulkOperationDescription"]
        return str(about["BulkOperationStatus"])

    found, _ = site.waiting.until(status, lambda found: found not in AT_WORK)
    if found != "COMPLETED":
        raise UnseenError(f"a bulk load of one item is {found}")
    require(site.get(item) == item, "a bulk load that is complete put no item")
    site.see(lambda: reading.of(pk), len, "an item that a bulk load put made no record")
    return "a bulk load put an item, and its record came"
