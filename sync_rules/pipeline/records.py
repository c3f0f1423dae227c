"""Reads stream records, as they reach a Lambda function, into `Change` values.

Invariant: keys and images are read strictly, everything else leniently: the event's source, name, size and time are
advice. An unreadable record is returned as a failure, never dropped silently.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from sync_rules.model import json_bytes
from sync_rules.model.entities import Table
from sync_rules.model.errors import RecordError
from sync_rules.model.items import Change, Failure, ItemKey
from sync_rules.model.numbers import SPELLING
from sync_rules.model.values import AttributeValue, Item, Names
from sync_rules.rules.record_filter import count_freed_bytes
from sync_rules.rules.ruleset import Rules

# The first bytes of what other producers put into a stream; DynamoDB puts JSON as it is.
# https://github.com/awslabs/amazon-kinesis-producer/blob/master/aggregation-format.md
PACKED: Final[Mapping[bytes, str]] = {
    b"\xf3\x89\x9a\xc2": "aggregated by the Kinesis Producer Library: send each record by itself, without aggregation",
    b"\x1f\x8b": "compressed with gzip: send it as DynamoDB does, as plain JSON",
}
STREAM_ARN = re.compile(r"arn:[^:]+:dynamodb:[^:]*:[^:]*:table/([^/]+)/stream/")
SECONDS_MAX = 10**11  # a later number of seconds is the year 5138: it is milliseconds
STAMP_MAX = 10**20  # beyond any unit of time
MILLISECONDS_MAX = 10**14  # and beyond that microseconds, which Kinesis Data Streams can be set to
DATES = range(253_402_300_800_000)  # the milliseconds that are a date: the years 1970 to 9999
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
LEVELS_MAX = 32
BOTH_IMAGES = "NEW_AND_OLD_IMAGES"
TIME_TO_LIVE = ("Service", "dynamodb.amazonaws.com")  # who deletes what has expired: its type and its principal


def read_event(event: Mapping[str, Any], rules: Rules, *, filtered: bool = False) -> Iterator[Change | Failure]:
    """Read the records of a Lambda event that are of tables of the rules, in order; an unreadable one is a Failure.

    `filtered`: records that no rule can concern are skipped unread, and images have only attributes that rules read.
    """
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list):
        yield Failure("", None, "the event has no list of Records: expected what a stream's event source mapping sends")
        return
    for record in records:
        table = _find_stream_table(record, rules)
        names = _list_names(record, table, rules) if filtered and table is not None else None
        if names is False:
            continue
        position = read_position(record)
        try:
            change = _read_record(record, table, position, rules, names)
        except RecordError as error:
            yield Failure("", None, str(error), position)
        else:
            if change is not None:
                yield change


def _find_stream_table(record: Any, rules: Rules) -> Table | None:
    """Return the table of the stream that a record names; None if the record names no known stream."""
    try:
        arn = record["eventSourceARN"]
        return rules.find_table_of_stream(arn) if "/stream/" in arn else None
    except (KeyError, TypeError, RecordError):
        return None


def _list_names(record: Any, table: Table, rules: Rules) -> Names | Literal[False]:
    """The attributes that rules read of a stream record; False if no rule can concern it."""
    try:
        return rules.record_filters[table.name].find_watched_attributes(record["dynamodb"])
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        # it is read in full, and reported
        return None


def read_position(record: object) -> str:
    """Read the sequence number that names a record in Lambda's answer; "" if the record has none."""
    for part, name in (("dynamodb", "SequenceNumber"), ("kinesis", "sequenceNumber")):
        inner = record.get(part) if isinstance(record, dict) else None
        number = inner.get(name) if isinstance(inner, dict) else None
        if isinstance(number, str):
            return number
    return ""


def _read_record(
    record: object, table: Table | None, position: str, rules: Rules, names: Names
) -> Change | Failure | None:
    if not isinstance(record, dict):
        raise RecordError("a stream record is not a map")
    wrapped = "kinesis" in record
    body = _read_kinesis(record["kinesis"]) if wrapped else record
    data = body.get("dynamodb")
    keys = data.get("Keys") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(keys, dict) or not keys:
        raise RecordError("a stream record has no dynamodb.Keys")
    keys = read_image(keys)
    table = table if table is not None and not wrapped else _find_table(body, keys, rules)
    if table is None:
        return None
    key = table.key_of(keys)
    if key is None:
        expected = ", ".join(f"{attribute.name} ({attribute.type})" for attribute in table.key)
        raise RecordError(f"the keys of a record are not those of table {table.name}: expected {expected}")
    try:
        new = None if not (image := data.get("NewImage")) else read_image(image, names)
        old = None if not (image := data.get("OldImage")) else read_image(image, names)
        room = _read_room(data)
    except RecordError as error:
        return Failure(_name_rules(key, rules), key, str(error), position)
    if (new is None or old is None) and (lacking := _find_lacking_image(body, data, old, new)):
        reason = (
            f"a record of table {table.name} lacks its {lacking} image (stream view type"
            f" {data.get('StreamViewType', 'unknown')}): the table's stream must have NEW_AND_OLD_IMAGES"
        )
        return Failure(_name_rules(key, rules), key, reason, position)
    if new is not None:
        new.update(keys)
    if old is not None:
        old.update(keys)
    created_ms = _read_time(data.get("ApproximateCreationDateTime"))
    expired = new is None and _read_identity(body) == TIME_TO_LIVE
    return Change(key, old, new, position, created_ms, not wrapped, expired, room)  # by name: twice the time


def _read_room(data: Mapping[str, Any]) -> int:
    """The size that a large item had before it shrank. Raises RecordError for a value that is not an item."""
    try:
        return count_freed_bytes(data)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise RecordError("the image of an item is not of the form {name: {type: value}}") from error


def _find_lacking_image(body: Mapping[str, Any], data: Mapping[str, Any], old: Item | None, new: Item | None) -> str:
    """The name of the image that a record lacks, "" if none. An old image is only required where the stream's view type
    excludes it: records made by hand often leave it out.
    """
    if new is None and body.get("eventName") in ("INSERT", "MODIFY"):
        return "new"
    tells_old = data.get("StreamViewType", BOTH_IMAGES) in (BOTH_IMAGES, "OLD_IMAGE")
    return "" if old is not None or tells_old or body.get("eventName") == "INSERT" else "old"


def _read_identity(body: Mapping[str, Any]) -> tuple[object, object]:
    """Type and principal of the service that made a change; Lambda and the streams' API spell it differently."""
    identity = body.get("userIdentity")
    if not isinstance(identity, dict):
        return None, None
    return identity.get("type", identity.get("Type")), identity.get("principalId", identity.get("PrincipalId"))


def _name_rules(key: ItemKey, rules: Rules) -> str:
    """The names of the rules that concern records of this item."""
    entity = rules.entity_of(key)
    if entity is None:
        return ""
    concerned = (*rules.from_source(entity), *rules.into_target(entity), *rules.parts_of(entity))
    return ", ".join(dict.fromkeys(rule.title for rule in concerned))


def _read_kinesis(kinesis: object) -> Mapping[str, Any]:
    """The DynamoDB record inside a Kinesis one: base64 of JSON. Binary attributes in it are base64 once more."""
    data = b""
    try:
        data = base64.b64decode(kinesis["data"])  # type: ignore[index]  # a wrong shape is caught below
        body = json_bytes.parse_json(data)
    except (TypeError, KeyError, ValueError) as error:
        packed = next((words for magic, words in PACKED.items() if data.startswith(magic)), "")
        if packed:
            raise RecordError(f"the data of a Kinesis record is {packed}") from error
        raise RecordError("the data of a Kinesis record is not base64 of a DynamoDB record") from error
    if not isinstance(body, dict):
        raise RecordError("the data of a Kinesis record is not a DynamoDB record")
    return body


def _find_table(body: Mapping[str, Any], keys: Item, rules: Rules) -> Table | None:
    """Find the table by the stream's ARN, the name in a Kinesis record, or the names of the key attributes."""
    arn = str(body.get("eventSourceARN", ""))
    name = arn if STREAM_ARN.match(arn) else body.get("tableName")
    if isinstance(name, str):
        return rules.find_table_of_stream(name)
    fitting = [t for t in rules.streamed_tables if {a.name for a in t.key} == keys.keys() and t.key_of(keys)]
    if len(fitting) > 1:
        names = ", ".join(table.name for table in fitting)
        raise RecordError(f"a stream record needs eventSourceARN or tableName: its keys fit several tables ({names})")
    return fitting[0] if fitting else None


def _read_time(stamp: object) -> int | None:
    if not isinstance(stamp, (int, float)) or isinstance(stamp, bool) or not abs(stamp) < STAMP_MAX:
        return None
    if stamp < SECONDS_MAX:
        milliseconds = int(stamp * 1000)
    else:
        milliseconds = int(stamp) if stamp < MILLISECONDS_MAX else int(stamp) // 1000
    return milliseconds if milliseconds in DATES else None


def read_image(image: object, names: Names = None) -> dict[str, AttributeValue]:
    """Check the image of an item, or these attributes of it, and decode its binaries. Binaries may be decoded already.

    Raises:
        RecordError: when DynamoDB could not hold such an item.
    """
    if not isinstance(image, dict):
        raise RecordError("the image of an item is not a map")
    read: dict[str, AttributeValue] = {}
    if names is None:
        _require_names(image)
    for name in image if names is None else names:
        value = image.get(name)
        if type(value) is dict and len(value) == 1 and type(text := value.get("S")) is str and text.isascii():
            read[name] = value  # as most are: spare them the rest
        elif name in image:
            read[name] = _read_value(value, LEVELS_MAX)
    return read


def _require_names(image: dict[Any, Any]) -> None:
    try:
        plain = "".join(image).isascii()  # all at once: a look at each would double the time
    except TypeError as error:
        raise RecordError("an attribute has a name that is not text") from error
    for name in () if plain else image:
        _require_text(name)


def _require_text(text: object) -> str:
    if not isinstance(text, str):
        raise RecordError("a name, or a value of type S, is not text")
    try:
        json_bytes.require_unicode(text)
    except ValueError as error:
        raise RecordError(f"a text is not Unicode: {error}") from error
    return text


def _read_value(value: object, levels: int) -> AttributeValue:
    """Check a value, and decode its binaries from the base64 of JSON. `levels` is how many more may be inside it."""
    if not isinstance(value, dict) or len(value) != 1:
        raise RecordError("an attribute is not of the form {type: value}")
    match value:
        case {"S": str(text)}:
            return {"S": _require_text(text)}
        case {"BOOL": bool()} | {"NULL": bool()}:
            return value
        case {"N": str(number)} if _is_number(number):
            return value
        case {"B": content}:
            return {"B": _read_binary(content)}
        case {"M": dict()} | {"L": list()} if levels == 0:
            raise RecordError(f"an attribute of a record has more than {LEVELS_MAX} levels of maps and lists")
        case {"M": dict(inner)}:
            return {"M": {_require_text(name): _read_value(content, levels - 1) for name, content in inner.items()}}
        case {"L": list(inner)}:
            return {"L": [_read_value(content, levels - 1) for content in inner]}
    return _read_set(value)


def _read_set(value: dict[str, object]) -> AttributeValue:
    match value:
        case {"SS": list(texts)}:
            return {"SS": [_require_text(text) for text in texts]}
        case {"NS": list(numbers)} if all(isinstance(text, str) and _is_number(text) for text in numbers):
            return value
        case {"BS": list(contents)}:
            return {"BS": [_read_binary(content) for content in contents]}
    raise RecordError("an attribute has an unknown type: expected S, N, B, BOOL, NULL, M, L, SS, NS or BS")


def _is_number(text: str) -> bool:
    """True for what spells a number, even one that is too long: emulators have such."""
    return SPELLING.fullmatch(text) is not None


def _read_binary(content: object) -> bytes:
    if isinstance(content, bytes):
        return content
    try:
        return base64.b64decode(content, validate=True)  # type: ignore[arg-type]  # a value that is not text is caught below
    except (TypeError, binascii.Error, ValueError) as error:
        raise RecordError("a binary attribute of a record is not base64") from error


def split_changes(parsed: Iterable[Change | Failure]) -> tuple[list[Change], list[Failure]]:
    """Split records that were read into changes and failures, each in the order of the records."""
    changes: list[Change] = []
    failures: list[Failure] = []
    for one in parsed:
        if isinstance(one, Change):
            changes.append(one)
        else:
            failures.append(one)
    return changes, failures
