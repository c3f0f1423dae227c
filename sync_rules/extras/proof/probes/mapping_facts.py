"""Probes of event source mappings: the records that a function gets, their order, and retries after it failed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from sync_rules.adapters import aws_errors
from sync_rules.extras.proof.probe import UnseenError, make_probe, require
from sync_rules.extras.proof.probes.stream_facts import ProofStreamReader
from sync_rules.extras.proof.proof_stack import ProofSite, make_item, make_new_key
from sync_rules.model import json_bytes

HOPS: Final = 18  # Lambda stops a loop that it sees after about 16
ITEMS: Final = 6
VERSIONS: Final = 20
DAY_SECONDS: Final = 86_400
METRIC_PERIOD_SECONDS: Final = 60
METRIC_LOOK_SECONDS: Final = 2.0  # each look costs
HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """A record as the function received it, and the number of its batch."""

    batch: str
    record: Mapping[str, Any]

    @property
    def number(self) -> int:
        return int(self.record["dynamodb"]["SequenceNumber"])

    @property
    def image(self) -> Mapping[str, Any]:
        image: Mapping[str, Any] = self.record["dynamodb"].get("NewImage", {})
        return image


def list_deliveries(site: ProofSite, pk: str) -> list[LoggedRecord]:
    """List all deliveries so far of a partition key, in order."""
    return [
        LoggedRecord(item["batch"]["S"], json_bytes.parse_json(item["record"]["S"]))
        for item in site.query(pk, table="log")
    ]


# ---------------------------------------------------------------- judged without a service
def explain_missing_rest(given: Sequence[LoggedRecord], failed: int) -> str:
    """Return why fact 12 fails: records from the reported record on that did not come again; "" if all came."""
    first = next((one.batch for one in given if one.number == failed), None)
    if first is None:
        return "the record that is to fail was not delivered"
    from_it = {one.number for one in given if one.batch == first and one.number >= failed}
    again = {one.number for one in given if one.batch != first}
    lost = len(from_it - again)
    return f"of {len(from_it)} records from the reported one on, {lost} did not come again" if lost else ""


def explain_missing_batch(given: Sequence[LoggedRecord], failed: int) -> str:
    """Return why fact 13 fails: records of a failed batch that did not come again; "" if all came."""
    first = next((one.batch for one in given if one.number == failed), None)
    if first is None:
        return "the record that is to fail was not delivered"
    batch = {one.number for one in given if one.batch == first}
    lost = len(batch - {one.number for one in given if one.batch != first})
    return f"of a failed batch of {len(batch)} records, {lost} did not come again" if lost else ""


def is_in_order(numbers: Iterable[int]) -> bool:
    """Return True if each record that is delivered for the first time is newer than all before it (fact 14)."""
    newest = -1
    seen: set[int] = set()
    for number in numbers:
        if number not in seen and number < newest:
            return False
        seen.add(number)
        newest = max(newest, number)
    return True


# ---------------------------------------------------------------- probes
@make_probe(10)
def probe_event_form(site: ProofSite) -> str:
    pk, reading = make_new_key("in#10#"), ProofStreamReader(site, "mapped")
    site.put({**make_item(pk), "b": {"B": b"\x00\xff"}, "bs": {"BS": [b"\x01"]}}, "mapped")
    found = site.see(lambda: list_deliveries(site, pk), len, "a record was not delivered to the function")
    image, created = found[0].image, found[0].record["dynamodb"]["ApproximateCreationDateTime"]
    require(image["b"] == {"B": "AP8="} and image["bs"] == {"BS": ["AQ=="]}, "binary values are no base64 text")
    right = isinstance(created, int | float) and abs(created - time.time()) < DAY_SECONDS
    require(right, "the creation time is no number of seconds")
    read = site.see(lambda: reading.of(pk), len, "GetRecords does not show the record")[0]["dynamodb"]
    require(read["NewImage"]["b"] == {"B": b"\x00\xff"}, "GetRecords has no bytes")
    require(isinstance(read["ApproximateCreationDateTime"], datetime), "GetRecords has no date")
    return "the event has base64 text and seconds, GetRecords has bytes and a date"


def _judge_deliveries(site: ProofSite, do: str, judge: Callable[[Sequence[LoggedRecord], int], str]) -> None:
    """Write items, one with the order to fail, and judge the deliveries."""
    pk = make_new_key(f"in#{do}#")
    for n in range(ITEMS):
        site.put({**make_item(pk, str(n)), **({"do": {"S": do}} if n == 2 else {})}, "mapped")  # noqa: PLR2004

    def reason() -> str:
        given = list_deliveries(site, pk)
        failed = [one.number for one in given if one.image.get("do")]
        lacking = ITEMS - len({one.number for one in given})
        return judge(given, failed[0]) if failed and not lacking else f"{lacking} of {ITEMS} records were not delivered"

    said, _ = site.waiting.until(reason, lambda said: not said)
    require(not said, f"a function that was asked to {do}: {said}")


@make_probe(12)
def probe_partial_response(site: ProofSite) -> str:
    _judge_deliveries(site, "report", explain_missing_rest)
    return "everything from the reported record on came again"


@make_probe(13)
def probe_whole_failure(site: ProofSite) -> str:
    for do in ("empty", "unknown", "raise"):
        _judge_deliveries(site, do, explain_missing_batch)
    return "an empty and an unknown identifier and an exception each brought the whole batch again"


@make_probe(14)
def probe_order_of_items(site: ProofSite) -> str:
    pks = [make_new_key("in#14#") for _ in range(3)]
    for n in range(VERSIONS):
        for pk in pks:
            site.put({**make_item(pk), "n": {"N": str(n)}}, "mapped")
    for pk in pks:
        given, came = site.waiting.until(
            partial(list_deliveries, site, pk), lambda given: len(_list_numbers(given)) >= VERSIONS
        )
        require(came, f"{len(_list_numbers(given))} of {VERSIONS} records of an item were delivered")
        require(is_in_order(one.number for one in given), "records of one item were delivered out of order")
    return f"{VERSIONS} records each of three items, in their order"


def _list_numbers(given: Iterable[LoggedRecord]) -> set[int]:
    return {one.number for one in given}


@make_probe(15)
def probe_start_at_oldest(site: ProofSite) -> str:
    pks = [make_new_key("15#") for _ in range(3)]
    for pk in pks:
        site.put(make_item(pk), "early")
    uuid = site.outputs["EarlyMapping"]

    def enabled() -> bool:
        try:
            site.ask(site.clients.lambdas.update_event_source_mapping, UUID=uuid, Enabled=True)
        except aws_errors.ERRORS as error:
            if aws_errors.read_code(error) != "ResourceInUseException":  # it is still being made
                raise
            return False
        return True

    site.waiting.until(enabled, bool)
    for pk in pks:
        lost = "a record from before the mapping was enabled was not delivered"
        site.see(partial(list_deliveries, site, pk), len, lost)
    return "records from before the mapping was enabled were delivered"


@make_probe(16)
def probe_given_up_batches(site: ProofSite) -> str:
    pk, s3 = make_new_key("16#"), site.clients.s3
    site.put({**make_item(pk), "do": {"S": "always"}}, "poisoned")

    def holds() -> bool:
        for entry in site.ask(s3.list_objects_v2, Bucket=site.name, Prefix="aws/lambda/").get("Contents", ()):
            body = site.ask(s3.get_object, Bucket=site.name, Key=entry["Key"])["Body"].read()
            payload = json_bytes.parse_json(json_bytes.parse_json(body).get("payload", "{}"))
            keys = [record["dynamodb"]["Keys"]["pk"].get("S") for record in payload.get("Records", ())]
            if pk in keys:
                return True
        return False

    _, came = replace(site.waiting, pause=METRIC_LOOK_SECONDS).until(holds, bool)
    require(came, "the bucket holds no records of a batch that always fails")
    return "the bucket holds the records of the batch that was given up"


@make_probe(17)
def probe_filters(site: ProofSite) -> str:
    pk = make_new_key("in#17#")
    exact = [make_new_key("in#"), "whole"]
    site.put(make_item(pk), "mapped")
    for sk in exact:
        site.put({**make_item("exactly", sk), "at": {"S": pk}}, "mapped")
    out = make_new_key("out#17#")
    site.put(make_item(out), "mapped")
    site.see(lambda: list_deliveries(site, pk), len, "a record whose key matches a prefix was not delivered")

    def matched() -> set[str]:
        given = [one for one in list_deliveries(site, "exactly") if one.image.get("at") == {"S": pk}]
        return {one.record["dynamodb"]["Keys"]["sk"]["S"] for one in given}

    found, came = site.waiting.until(matched, lambda found: found >= set(exact))
    require(came, f"of two records whose keys match a filter of equal strings, {len(found)} were delivered")
    also = "others too" if list_deliveries(site, out) else "others not"
    return f"records that match a prefix or equal strings were delivered, {also}"


@make_probe(19)
def probe_undetected_loop(site: ProofSite) -> str:
    pk = make_new_key("in#19#")
    site.put({**make_item(pk), "do": {"S": "hop"}, "n": {"N": str(HOPS)}}, "mapped")

    def rounds() -> int:
        return len({one.image["n"]["N"] for one in list_deliveries(site, pk)})

    found, came = site.waiting.until(rounds, lambda found: found > HOPS)
    require(came, f"a loop through a table ended after {found} of {HOPS + 1} rounds")
    return f"a loop of {HOPS} rounds through a table was not stopped"


@make_probe(20)
def probe_iterator_age(site: ProofSite) -> str:
    dimensions = [{"Name": "FunctionName", "Value": site.table("deliver")}]
    points = _await_points(site, "AWS/Lambda", "IteratorAge", dimensions)
    if not points:
        raise UnseenError("CloudWatch had no IteratorAge in the time there was")
    units = {point["Unit"] for point in points}
    require(units == {"Milliseconds"}, f"IteratorAge is in {sorted(units)}")
    oldest = max(point["Maximum"] for point in points)
    require(0 < oldest < HOUR_MS, f"IteratorAge is {oldest:g} ms in a stack that is minutes old")
    return f"published, at most {oldest:g} ms"


@make_probe(65)
def probe_embedded_metric(site: ProofSite) -> str:
    name = make_new_key("sync-rules-selftest/")
    asked = json.dumps({"emf": name}).encode()
    answer = site.ask(site.clients.lambdas.invoke, FunctionName=site.table("deliver"), Payload=asked)
    require(not answer.get("FunctionError"), "the function that writes the line failed")
    points = _await_points(site, name, "told", [])
    if not points:
        raise UnseenError("CloudWatch had no metric of the log line in the time there was")
    total = sum(point["SampleCount"] for point in points)
    require(total == 1, f"one log line became {total:g} samples")
    return "one log line became one sample"


def _await_points(
    site: ProofSite, namespace: str, metric: str, dimensions: list[dict[str, str]]
) -> list[dict[str, Any]]:
    """The data points of the last hour, as soon as there are any; none if they do not come in time."""

    def look() -> list[dict[str, Any]]:
        now = datetime.now(UTC)
        answer = site.ask(
            site.clients.cloudwatch.get_metric_statistics,
            Namespace=namespace,
            MetricName=metric,
            Dimensions=dimensions,
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(minutes=1),
            Period=METRIC_PERIOD_SECONDS,
            Statistics=["Maximum", "SampleCount"],
        )
        found: list[dict[str, Any]] = answer["Datapoints"]
        return found

    points: list[dict[str, Any]] = replace(site.waiting, pause=METRIC_LOOK_SECONDS).until(look, len)[0]
    return points
