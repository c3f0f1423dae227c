"""A lie for each fact that `selftest` tests, and corrections for what ministack does otherwise than AWS.

A lie makes one fact false, and as little else as it can. A correction makes a fact true that the engine makes false.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any

from tests.support.lying_proxy import Answer, Asked, Engine, Lie

JSON_TYPE = (("Content-Type", "application/x-amz-json-1.0"),)
XML_TYPE = (("Content-Type", "text/xml"),)
LOG = "-log"


# ---------------------------------------------------------------- kinds of lies
def on(operations: str, lie: Lie) -> Lie:
    """A lie about some operations alone, separated by blanks."""
    return lambda asked, engine: (lie if asked.operation in operations.split() else _truth)(asked, engine)


def _truth(asked: Asked, engine: Engine) -> Answer:
    return engine(asked)


def answered(operations: str, change: Callable[[Any, Any], Any]) -> Lie:
    """Changes the JSON of an answer, given the JSON of the request; errors too."""

    def lie(asked: Asked, engine: Engine) -> Answer:
        answer = engine(asked)
        body = answer.json
        return answer.saying(change(asked.json, body) or body)

    return on(operations, lie)


def asked_as(operations: str, change: Callable[[Any], Any]) -> Lie:
    """Changes the JSON of a request."""

    def lie(asked: Asked, engine: Engine) -> Answer:
        body = json.loads(asked.body)
        return engine(asked.saying(change(body) or body))

    return on(operations, lie)


def error(code: str, message: str = "lied") -> Answer:
    return Answer(400, json.dumps({"__type": f"com.amazonaws#{code}", "message": message}).encode(), JSON_TYPE)


def refused(operations: str, code: str, when: Callable[[Any], object] = bool) -> Lie:
    """Refuses some requests."""
    return on(operations, lambda asked, engine: error(code) if when(asked.json) else engine(asked))


def accepted(operations: str, when: Callable[[Any], object] = bool) -> Lie:
    """Answers as if some requests were carried out, where the engine refuses them."""

    def lie(asked: Asked, engine: Engine) -> Answer:
        answer = engine(asked)
        return Answer(200, b"{}", JSON_TYPE) if answer.status >= 400 and when(asked.json) else answer

    return on(operations, lie)


def about(fact: int, item: Mapping[str, Any]) -> bool:
    """True for an item that the probe of a fact made."""
    pk = str(item.get("pk", {}).get("S", ""))
    return pk.removeprefix("in#").startswith(f"{fact}#")


def of_log(fact: str, change: Callable[[list[Any]], list[Any]]) -> Lie:
    """Changes what was noted of deliveries under keys that begin so."""

    def logged(asked: Any, answer: Any) -> None:
        pk = asked.get("ExpressionAttributeValues", {}).get(":pk", {}).get("S", "")
        if asked["TableName"].endswith(LOG) and pk.startswith(fact):
            answer["Items"] = change(answer["Items"])

    return answered("Query", logged)


def of_records(fact: int, change: Callable[[list[Any]], list[Any]]) -> Lie:
    """Changes the records that the stream shows of a probe's items."""

    def read(_: Any, answer: Any) -> None:
        records = answer.get("Records", [])
        mine = [record for record in records if about(fact, record["dynamodb"]["Keys"])]
        if mine:
            others = [record for record in records if record not in mine]
            answer["Records"] = [*others, *change(mine)]

    return answered("GetRecords", read)


# ---------------------------------------------------------------- corrections
def statements_stream(asked: Asked, engine: Engine) -> Answer:
    """1: the engine makes no record for a statement: send the one of the probe as an UpdateItem."""
    if asked.operation == "BatchExecuteStatement" and about(1, {"pk": asked.json["Statements"][0]["Parameters"][1]}):
        (statement,) = asked.json["Statements"]
        value, pk, sk = statement["Parameters"]
        update = {
            "TableName": statement["Statement"].split('"')[1],
            "Key": {"pk": pk, "sk": sk},
            "UpdateExpression": "SET v = :v",
            "ExpressionAttributeValues": {":v": value},
        }
        sent = asked.saying(update)
        sent.headers["x-amz-target"] = "DynamoDB_20120810.UpdateItem"
        engine(sent)
        return Answer(200, b'{"Responses": [{}]}', JSON_TYPE)
    return engine(asked)


def expiring(**identity: str) -> Lie:
    """9: the engine makes no record of an expiry: make one."""
    keys = {"pk": {"S": "9#"}, "sk": {"S": "-"}}
    record = {
        "eventName": "REMOVE",
        "userIdentity": identity,
        "dynamodb": {"Keys": keys, "OldImage": {**keys, "expires": {"N": "1"}}, "SequenceNumber": "1" * 21},
    }

    def read(_: Any, answer: Any) -> None:
        if not any(one.get("userIdentity") for one in answer.get("Records", [])):
            answer.setdefault("Records", []).append(record)
            answer.pop("NextShardIterator", None)

    return answered("GetRecords", read)


def delivered_again(fact: str, which: Callable[[Any], bool] = lambda record: True) -> Lie:
    """12, 13: the engine takes a batch that was reported as failed for done: note it as delivered again."""

    def again(items: list[Any]) -> list[Any]:
        more = [
            {**item, "batch": {"S": item["batch"]["S"] + "-again"}}
            for item in items
            if which(json.loads(item["record"]["S"])["dynamodb"])
        ]
        return [*items, *more]

    return of_log(fact, again)


def given_up(*, whole: bool) -> Lie:
    """16: the engine gives up no batch: put an object into the bucket for each item that always fails."""
    seen: list[Any] = []

    def lie(asked: Asked, engine: Engine) -> Answer:
        if asked.operation == "PutItem" and asked.json["TableName"].endswith("-poisoned"):
            seen.append(asked.json["Item"])
        if asked.operation == "GET" and "list-type=2" in asked.path and "prefix=aws" in asked.path:
            contents = "".join(
                f"<Contents><Key>aws/lambda/{n}</Key><Size>1</Size></Contents>" for n in range(len(seen))
            )
            return Answer(200, f"<ListBucketResult>{contents}</ListBucketResult>".encode(), XML_TYPE)
        if asked.operation == "GET" and "/aws/lambda/" in asked.path:
            item = seen[int(asked.path.rpartition("/")[2].partition("?")[0])]
            records = [{"dynamodb": {"Keys": {"pk": item["pk"], "sk": item["sk"]}}}]
            payload = {"payload": json.dumps({"Records": records})} if whole else {}
            return Answer(200, json.dumps({"DDBStreamBatchInfo": {}, **payload}).encode())
        return engine(asked)

    return lie


def points(metric: str, unit: str, maximum: float, samples: float) -> Lie:
    """20, 65: the engine has no such metrics: make a data point."""
    point = {"Timestamp": datetime.now(UTC).timestamp(), "Unit": unit, "Maximum": maximum, "SampleCount": samples}

    def made(asked: Any, answer: Any) -> None:
        if asked["MetricName"] == metric:
            answer["Datapoints"] = [point]

    return answered("GetMetricStatistics", made)


def conflicting(code: str) -> Lie:
    """33: the engine has no conflicts: answer the first updates of the probe with one."""
    numbers = count()

    def conflict(asked: Any) -> bool:
        return about(33, asked.get("Key", {})) and next(numbers) < 5

    return refused("UpdateItem", code, conflict)


def throttling(code: str) -> Lie:
    """37: the engine does not throttle: refuse the second write to the small table."""
    return refused("PutItem", code, lambda asked: asked["TableName"].endswith("-small"))


def statement_units(units: float) -> Lie:
    """44: the engine counts a statement as one unit."""

    def counted(asked: Any, answer: Any) -> None:
        if asked.get("ReturnConsumedCapacity"):
            answer["ConsumedCapacity"] = [{"TableName": "items", "CapacityUnits": units}]

    return answered("BatchExecuteStatement", counted)


def policies_refused(asked: Asked, engine: Engine) -> Answer:
    """64: the engine takes a policy of any length."""
    if asked.operation == "PutRolePolicy":
        said = "<ErrorResponse><Error><Code>LimitExceeded</Code><Message>too long</Message></Error></ErrorResponse>"
        return Answer(409, said.encode(), XML_TYPE)
    return engine(asked)


def bulk_loaded() -> Lie:
    """71: the engine has no bulk loads: put the item of the object that was written for it."""
    items: list[Any] = []

    def lie(asked: Asked, engine: Engine) -> Answer:
        if asked.operation == "PUT" and (line := re.search(rb'\{"Item": .*"71#.*\}', asked.body)):
            items.append(json.loads(line[0])["Item"])
        if "BulkPutItems" not in asked.operation and "BulkOperation" not in asked.operation:
            return engine(asked)
        if asked.operation == "StartBulkPutItems":
            put = asked.saying({"TableName": asked.json["TableName"], "Item": items[-1]})
            put.headers["x-amz-target"] = "DynamoDB_20120810.PutItem"
            engine(put)
        about = {"BulkOperationArn": "arn:aws:dynamodb:us-east-1:0:bulk/71", "BulkOperationStatus": "COMPLETED"}
        return Answer(200, json.dumps({"BulkOperationDescription": about}).encode(), JSON_TYPE)

    return lie


def exported(*, whole: bool) -> Lie:
    """63: the engine writes no objects of an export: make them, of the items that pass the filter, or of all."""
    items: list[Any] = []
    about: dict[str, Any] = {}

    def write() -> dict[str, bytes]:
        """The objects by their names."""
        kept = [item for item in items if whole or item["exported"] == {"S": "yes"}]
        summary = {"exportArn": "arn:63", "tableArn": about["TableArn"], "exportTime": "2026-01-01T00:00:00.000Z"}
        summary |= {"outputFormat": "DYNAMODB_JSON", "exportType": "FULL_EXPORT"}
        entry = {"itemCount": len(kept), "dataFileS3Key": "export/data/1.json.gz"}
        lines = "".join(json.dumps({"Item": item}) + "\n" for item in kept)
        return {
            "export/manifest-summary.json": json.dumps(summary).encode(),
            "export/manifest-files.json": json.dumps(entry).encode(),
            "export/data/1.json.gz": gzip.compress(lines.encode()),
        }

    def lie(asked: Asked, engine: Engine) -> Answer:
        if asked.operation == "PutItem" and "exported" in asked.json["Item"] and asked.json["Item"] not in items:
            items.append(asked.json["Item"])
        if asked.operation in ("ExportTableToPointInTime", "DescribeExport"):
            about.update(asked.json if "TableArn" in asked.json else {})
            found = {
                "ExportArn": "arn:63",
                "ExportStatus": "COMPLETED",
                "FilterSpecification": about["FilterSpecification"],
            }
            return Answer(200, json.dumps({"ExportDescription": found}).encode(), JSON_TYPE)
        if asked.operation == "GET" and "list-type=2" in asked.path and "prefix=export" in asked.path:
            contents = "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in write())
            return Answer(200, f"<ListBucketResult>{contents}</ListBucketResult>".encode(), XML_TYPE)
        if asked.operation == "GET" and "/export/" in asked.path:
            return Answer(200, write()[asked.path[asked.path.index("export/") :].partition("?")[0]])
        return engine(asked)

    return lie


def replicated(answer: Answer) -> Lie:
    """73: the engine would make a replica: answer in its place."""

    def lie(asked: Asked, engine: Engine) -> Answer:
        return answer if asked.operation == "UpdateTable" and "ReplicaUpdates" in asked.json else engine(asked)

    return lie


def _same_number_twice(asked: Any) -> bool:
    (request,) = asked["RequestItems"].values()
    numbers = [float(key["pk"]["N"]) for key in request["Keys"] if "N" in key["pk"]]
    return len(set(numbers)) < len(numbers)


SERVICE = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
CORRECTIONS: Mapping[int, Callable[[], Lie]] = {
    1: lambda: statements_stream,
    9: lambda: expiring(**SERVICE),
    12: lambda: delivered_again("in#report#"),
    13: lambda: together(*(delivered_again(f"in#{do}#") for do in ("empty", "unknown", "raise"))),
    16: lambda: given_up(whole=True),
    20: lambda: points("IteratorAge", "Milliseconds", 1500.0, 3.0),
    23: lambda: refused("BatchGetItem", "ValidationException", _same_number_twice),
    33: lambda: conflicting("TransactionConflictException"),
    37: lambda: throttling("ProvisionedThroughputExceededException"),
    44: lambda: statement_units(3.0),
    50: lambda: refused(
        "UpdateItem", "ValidationException", lambda asked: asked.get("ConditionExpression", "").count(" AND ") >= 299
    ),
    53: lambda: refused("SendMessage", "InvalidParameterValue", lambda asked: asked.get("DelaySeconds", 0) > 900),
    61: lambda: refused("StartExecution", "ValidationException", lambda asked: len(asked["input"]) > 262_144),
    63: lambda: exported(whole=False),
    64: lambda: policies_refused,
    65: lambda: points("told", "Count", 1.0, 1.0),
    71: bulk_loaded,
    73: lambda: replicated(
        error("ValidationException", "a table of 123456789012: Time to Live is not supported with MRSC")
    ),
}


def together(*lies: Lie) -> Lie:
    """Several lies as one."""

    def lie(asked: Asked, engine: Engine) -> Answer:
        for one in lies:
            engine = _behind(one, engine)
        return engine(asked)

    return lie


def _behind(lie: Lie, engine: Engine) -> Engine:
    return lambda asked: lie(asked, engine)


# ---------------------------------------------------------------- lies
def _older(_: Any, answer: Any) -> None:
    item = answer.get("Item") or {}
    if about(3, item):
        item["n"] = {"N": str(int(item["n"]["N"]) - 1)}


def first_answer(fact: int) -> Lie:
    """The first answer to GetItem of a probe's items, for ever."""
    first: list[Any] = []

    def stale(_: Any, answer: Any) -> Any:
        if about(fact, answer.get("Item") or {}):
            first.append(answer)
            return first[0]
        return None

    return answered("GetItem", stale)


def first_stream() -> Lie:
    """The first ARN of a stream, for ever."""
    first: dict[str, str] = {}

    def stale(asked: Any, answer: Any) -> None:
        table = answer["Table"]
        if "LatestStreamArn" in table:
            table["LatestStreamArn"] = first.setdefault(asked["TableName"], table["LatestStreamArn"])

    return answered("DescribeTable", stale)


def _renamed(asked: Any, answer: Any) -> None:
    for name in asked["RequestItems"]:
        if name.startswith("arn:") and name in answer["Responses"]:
            answer["Responses"][name.rpartition("/")[2]] = answer["Responses"].pop(name)


def _each_once(asked: Any) -> None:
    for request in asked["RequestItems"].values():
        request["Keys"] = [key for n, key in enumerate(request["Keys"]) if key not in request["Keys"][:n]]


def _unfinished(_: Any, answer: Any) -> None:
    if any(about(24, item) for item in answer.get("Items", ())):
        answer.pop("LastEvaluatedKey", None)


def _without_some(asked: Any, answer: Any) -> None:
    if asked.get("Segment") == 0:
        answer["Items"] = [item for item in answer["Items"] if not about(25, item)]


def _dense(asked: Any, answer: Any) -> None:
    pk = asked.get("ExpressionAttributeValues", {}).get(":link", {}).get("S", "")
    if asked.get("IndexName") and about(27, {"pk": {"S": pk}}):
        answer["Items"].append({"pk": {"S": pk}, "sk": {"S": "without"}, "link": {"S": pk}})


def _unguarded(fact: int, part: str) -> Callable[[Any], None]:
    """Takes the condition out of a request about a probe's key or item."""

    def unguarded(asked: Any) -> None:
        if about(fact, asked.get(part, {})):
            asked.pop("ConditionExpression", None)
            asked.get("ExpressionAttributeValues", {}).pop(":seen", None)

    return unguarded


def _itemless(_: Any, answer: Any) -> None:
    for one in (
        answer,
        *answer.get("CancellationReasons", ()),
        *(r.get("Error", {}) for r in answer.get("Responses", ())),
    ):
        one.pop("Item", None)


def _backwards(_: Any, answer: Any) -> None:
    reasons = answer.get("CancellationReasons", [])
    answer["CancellationReasons"] = reasons[::-1]


def _one_unit(_: Any, answer: Any) -> None:
    if "ConsumedCapacity" in answer:
        answer["ConsumedCapacity"] |= {"CapacityUnits": 1.0}
        answer["ConsumedCapacity"].pop("Table", None)


def _index_unit(_: Any, answer: Any) -> None:
    if "ConsumedCapacity" in answer:
        answer["ConsumedCapacity"]["GlobalSecondaryIndexes"] = {"by_link": {"CapacityUnits": 1.0}}


def _reversed(_: Any, answer: Any) -> None:
    answer["Responses"] = answer["Responses"][::-1]


def _all_well(_: Any, answer: Any) -> None:
    answer["Responses"] = [{} for _ in answer["Responses"]]


def _all_invalid(_: Any, answer: Any) -> None:
    answer["Responses"] = [{"Error": {"Code": "ValidationError"}} for _ in answer["Responses"]]


def _denied(asked: Asked, engine: Engine) -> Answer:
    return engine(asked).saying({"error": "AccessDeniedException"})


def _spelt(_: Any, answer: Any) -> None:
    item = answer.get("Item") or {}
    if about(47, item) and item["n"] == {"N": "1"}:
        item["n"] = {"N": "1.0"}


def _numbered(records: list[Any]) -> list[Any]:
    for record in records:
        record["dynamodb"]["SequenceNumber"] = str(10**30 - int(record["dynamodb"]["SequenceNumber"]) % 10**29)
    return records


def _doubled(records: list[Any]) -> list[Any]:
    return [again for one in records for again in (one, {**one, "eventName": "MODIFY"})]


def _no_base64(items: list[Any]) -> list[Any]:
    return [{**item, "record": {"S": item["record"]["S"].replace("AP8=", "00ff")}} for item in items]


def _at_once(items: list[Any]) -> list[Any]:
    for item in items:
        record = json.loads(item["record"]["S"])
        record["attributes"]["ApproximateFirstReceiveTimestamp"] = record["attributes"]["SentTimestamp"]
        item["record"] = {"S": json.dumps(record)}
    return items


def _unmatched(items: list[Any]) -> list[Any]:
    return [item for item in items if '"whole"' not in item["record"]["S"]]


def lost_message() -> Lie:
    """The first message that is asked about was never delivered."""
    first: list[str] = []

    def lost(asked: Any, answer: Any) -> None:
        pk = asked.get("ExpressionAttributeValues", {}).get(":pk", {}).get("S", "")
        if asked["TableName"].endswith(LOG) and pk.startswith("52#"):
            first.append(pk)
            answer["Items"] = [] if pk == first[0] else answer["Items"]

    return answered("Query", lost)


def _no_dead_letter(asked: Any, answer: Any) -> None:
    if asked["QueueUrl"].endswith("-dead"):
        answer.pop("Messages", None)


def _failed(code: str) -> Lie:
    return answered("DescribeExecution", lambda _, answer: {**answer, "status": "FAILED", "error": code})


def _put_is(test: Callable[[Any], object]) -> Callable[[Any], object]:
    return lambda asked: test(asked["Item"])


# Each lie, with words of the reason why its fact is then found false.
LIES: Mapping[int, tuple[Callable[[], Lie], str]] = {
    1: (lambda: of_records(1, lambda records: [r for r in records if r["dynamodb"].get("NewImage", {}).get("v") != {"S": "2"}]), "made the records"),
    2: (lambda: of_records(2, _doubled), "made the records"),
    3: (lambda: answered("GetItem", _older), "shows change"),
    5: (lambda: of_records(5, _numbered), "do not grow"),
    8: (first_stream, "stream of before"),
    9: (lambda: expiring(Type="User", PrincipalId="somebody"), "has the identity"),
    10: (lambda: of_log("in#10#", _no_base64), "no base64"),
    12: (lambda: delivered_again("in#report#", lambda _: False), "did not come again"),
    13: (lambda: delivered_again("in#empty#", lambda _: False), "did not come again"),
    14: (lambda: of_log("in#14#", lambda items: items[::-1]), "out of order"),
    15: (lambda: of_log("15#", lambda _: []), "before the mapping"),
    16: (lambda: given_up(whole=False), "holds no records"),
    17: (lambda: of_log("exactly", _unmatched), "1 were delivered"),
    19: (lambda: of_log("in#19#", lambda items: items[:3]), "ended after"),
    20: (lambda: points("IteratorAge", "Seconds", 1.5, 3.0), "is in ['Seconds']"),
    21: (lambda: first_answer(21), "GetItem did not show"),
    22: (lambda: answered("BatchGetItem", _renamed), "another name for the table"),
    23: (lambda: asked_as("BatchGetItem", _each_once), "a key twice: accepted"),
    24: (lambda: answered("Query", _unfinished), "more: False"),
    25: (lambda: answered("Scan", _without_some), "are in no segment"),
    26: (lambda: asked_as("Query", lambda asked: {k: v for k, v in asked.items() if k != "ConsistentRead"} if "IndexName" in asked else None), "accepted"),
    27: (lambda: answered("Query", _dense), "without"),
    28: (lambda: asked_as("UpdateItem", _unguarded(28, "Key")), "were accepted"),
    29: (lambda: answered("UpdateItem TransactWriteItems BatchExecuteStatement", _itemless), "without the item"),
    31: (lambda: asked_as("TransactWriteItems", lambda asked: {k: v for k, v in asked.items() if k != "ClientRequestToken"}), "added 3"),
    32: (lambda: answered("TransactWriteItems", _backwards), "the reasons are"),
    33: (lambda: conflicting("CollisionException"), "CollisionException"),
    34: (lambda: answered("UpdateItem", _one_unit), "[3.0, 1.0, 3.0]"),
    35: (lambda: answered("UpdateItem", _index_unit), "a row's units"),
    37: (lambda: throttling("TooBusyException"), "TooBusyException"),
    38: (lambda: answered("BatchExecuteStatement", _reversed), "the answers are"),
    39: (lambda: refused("BatchExecuteStatement", "ValidationException", lambda asked: "SETT" in str(asked)), "ValidationException"),
    40: (lambda: refused("BatchExecuteStatement", "ValidationException", lambda asked: "40#" in str(asked)), "ValidationException"),
    41: (lambda: answered("BatchExecuteStatement", _itemless), "without the item"),
    42: (lambda: answered("BatchExecuteStatement", _all_well), "the answers are"),
    43: (lambda: answered("BatchExecuteStatement", _all_invalid), "SET with commas"),
    44: (lambda: statement_units(6.0), "costs 6"),
    45: (lambda: on("Invoke", _denied), "AccessDeniedException"),
    46: (lambda: accepted("PutItem", _put_is(lambda item: "it" in item)), "one byte over"),
    47: (lambda: answered("GetItem", _spelt), "came back as"),
    48: (lambda: refused("PutItem", "ValidationException", _put_is(lambda item: len(item["pk"]["S"]) == 2048)), "PutItem was refused"),
    49: (lambda: accepted("PutItem", _put_is(lambda item: "N" in item.get("link", {}))), "a number where"),
    50: (lambda: accepted("PutItem", _put_is(lambda item: "deep" in item)), "32 levels: accepted"),
    51: (lambda: accepted("PutItem", _put_is(lambda item: item.get("set") == {"SS": ["a", "a"]})), "twice: accepted"),
    52: (lost_message, "1 were not delivered"),
    53: (lambda: of_log("53#", _at_once), "came after 0 s"),
    54: (lambda: on("ChangeMessageVisibility", lambda asked, engine: Answer(200, b"{}", JSON_TYPE)), "set to 0"),
    55: (lambda: answered("ReceiveMessage", _no_dead_letter), "is no dead letter"),
    58: (lambda: asked_as("PutItem", _unguarded(58, "Item")), "of 8 claims"),
    59: (lambda: _failed("States.Runtime"), "States.Runtime"),
    60: (lambda: _failed("States.ExceedToleratedFailureThreshold"), "ended FAILED"),
    61: (lambda: refused("StartExecution", "ValidationException", lambda asked: len(asked["input"]) > 200_000), "was refused"),
    63: (lambda: exported(whole=True), "lets one item pass holds 2"),
    64: (lambda: _truth, "accepted"),
    65: (lambda: points("told", "Count", 1.0, 2.0), "2 samples"),
    71: (lambda: of_records(71, lambda _: []), "made no record"),
    73: (lambda: replicated(Answer(200, b"{}", JSON_TYPE)), "accepted with Time to Live"),
}  # fmt: skip
