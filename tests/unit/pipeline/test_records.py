"""Stream records as they really come: every known form is read, everything else becomes a failure, nothing raises."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.language.load import parse_rules
from sync_rules.model.entities import Ref, Table
from sync_rules.model.items import Change, Failure
from sync_rules.model.lookups import Find
from sync_rules.pipeline.records import read_event, read_position, split_changes
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.ruleset import Rules
from tests.support.builders import entity, key, mapping, n, order_item, rules_of, s, shop, table, user_item
from tests.support.worlds import event_of, record_of

EVENTS = Path(__file__).parents[4] / "shared" / "cases" / "events"
SHOP = shop()
USER = key(SHOP.tables["shop"], "USER#1", "PROFILE")
WRITTEN = Change(USER, user_item("1", name=s("old")), user_item("1", name=s("new")), "100", 1_700_000_000_000)


def read(event: Any, rules: Rules = SHOP) -> tuple[list[Change], list[Failure]]:
    return split_changes(read_event(event, rules))


def rules_on(*tables: Table) -> Rules:
    """Rules that need the stream of each table: an attribute copied within one item."""
    rules = []
    for one in tables:
        item = entity(f"item-of-{one.name}", one)
        link = tuple((a.name, Ref(a.name, (a.name,))) for a in one.key)
        find = Find(None, tuple((a, item.templates[a.name]) for a in one.key[:1]))
        rules.append(
            CopyRule(name=f"rule-{one.name}", source=item, target=item, mapping=mapping(a="b"), link=link, find=find)
        )
    return rules_of(*rules)


# ---------------------------------------------------------------- real events
def events_in(content: Any) -> Iterator[dict[str, Any]]:
    """Every map with a list of stream records in a document."""
    if isinstance(content, dict):
        records = content.get("Records")
        if isinstance(records, list) and any("dynamodb" in one or "kinesis" in one for one in records):
            yield content
        for inner in content.values():
            yield from events_in(inner)
    elif isinstance(content, list):
        for inner in content:
            yield from events_in(inner)


def real_events() -> list[Any]:
    files = sorted(EVENTS.rglob("*.json")) if EVENTS.is_dir() else []
    found = [
        pytest.param(event, id=f"{file.relative_to(EVENTS)}-{number}")
        for file in files
        for number, event in enumerate(events_in(json.loads(file.read_text())))
    ]
    return found or [pytest.param(None, marks=pytest.mark.skip(reason="the shared events are not here"))]


def rules_for(event: dict[str, Any]) -> Rules:
    """Rules on a table with the key of the event's records, under the name they give it."""
    body = event["Records"][0]
    if "kinesis" in body:
        body = json.loads(base64.b64decode(body["kinesis"]["data"]))
    name = body.get("tableName") or body.get("eventSourceARN", "").partition("table/")[2].partition("/")[0]
    keys = {attribute: next(iter(value)) for attribute, value in body["dynamodb"]["Keys"].items()}
    return rules_on(replace(table("real", keys), physical_name=name or "real"))


@pytest.mark.parametrize("event", real_events())
def test_records_reads_real_events(event):
    """Events from AWS's guides, Powertools, SAM and LocalStack are read whole, each record under its own number."""
    changes, failures = read(event, rules_for(event))
    assert failures == []
    assert [change.position for change in changes] == [read_position(record) for record in event["Records"]]
    assert all(change.new is not None or change.old is not None for change in changes)


# ---------------------------------------------------------------- every form
NUMBERS = st.integers(-(10**30), 10**30).map(str)
TEXT = st.text(max_size=5)
SCALARS = st.one_of(
    TEXT.map(lambda v: {"S": v}), NUMBERS.map(lambda v: {"N": v}), st.binary(max_size=5).map(lambda v: {"B": v}),
    st.booleans().map(lambda v: {"BOOL": v}), st.just({"NULL": True}),
    st.lists(TEXT, min_size=1, max_size=3, unique=True).map(lambda v: {"SS": v}),
    st.lists(NUMBERS, min_size=1, max_size=3, unique=True).map(lambda v: {"NS": v}),
    st.lists(st.binary(max_size=5), min_size=1, max_size=3, unique=True).map(lambda v: {"BS": v}),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda v: {"L": v}),
        st.dictionaries(TEXT, inner, max_size=3).map(lambda v: {"M": v}),
    ),
    max_leaves=8,
)
IMAGES = st.dictionaries(TEXT.filter(lambda name: name not in ("PK", "SK")), VALUES, max_size=4)


def in_kinesis(record: dict[str, Any], number: str, **changed: Any) -> dict[str, Any]:
    """A record as Kinesis Data Streams carries it: by table name, without an ARN or a number of its own."""
    body = {**record, "tableName": "shop", **changed}
    body.pop("eventSourceARN")
    data = base64.b64encode(json.dumps(body).encode()).decode()
    return {"kinesis": {"data": data, "sequenceNumber": number}, "eventSource": "aws:kinesis"}


@settings(max_examples=60, deadline=None)
@given(IMAGES, IMAGES)
def test_records_keeps_every_value_as_it_is(old, new):
    """Both images come through JSON unchanged, binaries in maps, lists and sets included, straight or in Kinesis."""
    change = replace(WRITTEN, old=user_item("1", **old), new=user_item("1", **new))
    assert read(event_of(SHOP, change)) == ([change], [])
    wrapped = in_kinesis(record_of(SHOP, change), "7")
    assert read({"Records": [wrapped]}) == ([replace(change, position="7", in_order=False)], [])


@pytest.mark.parametrize(
    ("stamp", "milliseconds"),
    [
        (1_700_000_000, 1_700_000_000_000),
        (1_700_000_000.5, 1_700_000_000_500),
        (1_700_000_000_123, 1_700_000_000_123),
        (1_700_000_000_123_456, 1_700_000_000_123),
        ("2026-01-01T00:00:00Z", None),
        (-1, None),
        (1e30, None),
        (True, None),
        (float("nan"), None),
    ],
)
def test_records_reads_the_time_in_any_unit(stamp, milliseconds):
    """A record's time is read in seconds, fractions, milliseconds or microseconds, told apart by size."""
    event = event_of(SHOP, WRITTEN)
    event["Records"][0]["dynamodb"]["ApproximateCreationDateTime"] = stamp
    ((change,), _) = read(event)
    assert change.created_ms == milliseconds


@pytest.mark.parametrize("source", ["ydb:document-table", "scylladb:alternator", None])
def test_records_does_not_care_who_sends(source):
    """Records of other services that speak DynamoDB Streams, without the optional fields, are records all the same."""
    record = record_of(SHOP, WRITTEN)
    data = {name: record["dynamodb"][name] for name in ("Keys", "OldImage", "NewImage")}
    bare = {"eventSource": source, "eventSourceARN": "somewhere", "dynamodb": data}
    assert read({"Records": [bare]}) == ([replace(WRITTEN, position="", created_ms=None)], [])


def test_records_without_arn_are_of_the_one_table_that_fits():
    """A record without an ARN belongs to the single table with its key; with two such tables it fails."""
    record = record_of(SHOP, WRITTEN)
    del record["eventSourceARN"]
    assert read({"Records": [record]})[0] == [WRITTEN]
    two = rules_on(table("one", {"PK": "S", "SK": "S"}), table("two", {"PK": "S", "SK": "S"}))
    ((), (failure,)) = read({"Records": [record]}, two)
    assert failure == Failure(
        "", None, "a stream record needs eventSourceARN or tableName: its keys fit several tables (one, two)", "100"
    )


def test_records_of_a_foreign_table_are_ignored():
    """A table that no rule speaks of gives neither a change nor a failure, whatever its keys and images."""
    foreign = event_of(SHOP, WRITTEN)["Records"][0]
    foreign["eventSourceARN"] = foreign["eventSourceARN"].replace("table/shop", "table/other")
    del foreign["dynamodb"]["NewImage"]
    assert read({"Records": [foreign]}) == ([], [])


@pytest.mark.parametrize(
    ("name", "view", "there", "lacking"),
    [
        ("MODIFY", "NEW_IMAGE", ("NewImage",), "old"),
        ("REMOVE", "NEW_IMAGE", (), "old"),
        ("MODIFY", "OLD_IMAGE", ("OldImage",), "new"),
        ("INSERT", "NEW_IMAGE", ("NewImage",), ""),
        ("MODIFY", "NEW_IMAGE", ("NewImage", "OldImage"), ""),
        ("MODIFY", "NEW_AND_OLD_IMAGES", ("NewImage",), ""),
        ("REMOVE", "NEW_AND_OLD_IMAGES", (), ""),
        ("REMOVE", "OLD_IMAGE", (), ""),
    ],
)
def test_records_say_which_image_their_stream_does_not_have(name, view, there, lacking):
    """A new image is missed wherever there must be one, an old one only where the view of the stream leaves it out."""
    record = record_of(SHOP, WRITTEN)
    images = {image: record["dynamodb"][image] for image in there}
    data = {key: value for key, value in record["dynamodb"].items() if not key.endswith("Image")} | images
    record |= {"eventName": name, "dynamodb": data | ({} if view is None else {"StreamViewType": view})}
    changes, failures = read({"Records": [record]})
    assert len(changes) == (not lacking)
    assert [f"lacks its {lacking} image" in failure.reason for failure in failures] == [True] * bool(lacking)
    cure = f"{view}): the table's stream must have NEW_AND_OLD_IMAGES"
    assert [failure.reason.endswith(cure) for failure in failures] == [True] * bool(lacking)


# ---------------------------------------------------------------- time to live
REMOVED = Change(USER, user_item("1"), None, "100", 1_700_000_000_000)
BY_DYNAMODB = [
    {"type": "Service", "principalId": "dynamodb.amazonaws.com"},
    {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"},
]
BY_OTHERS = [
    None,
    {},
    "Service",
    [],
    {"principalId": "dynamodb.amazonaws.com"},
    {"type": "Service", "principalId": "application-autoscaling.amazonaws.com"},
    {"type": "AssumedRole", "principalId": "dynamodb.amazonaws.com"},
    {"type": {}, "principalId": []},
]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("identity", [*BY_DYNAMODB, *BY_OTHERS])
def test_records_tell_what_expired_from_what_a_user_deleted(identity, wrapped):
    """Only DynamoDB itself deletes what has expired, in both spellings, straight or in Kinesis."""
    record = {**record_of(SHOP, REMOVED), "userIdentity": identity}
    ((change,), ()) = read({"Records": [in_kinesis(record, "100") if wrapped else record]})
    assert change == replace(REMOVED, expired=identity in BY_DYNAMODB, in_order=not wrapped)


# ---------------------------------------------------------------- damage


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, from the outermost in."""
    if at:
        yield at
    if isinstance(value, dict | list):
        for name in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[name], (*at, name))


def damaged(value: Any, at: tuple[Any, ...], by: Any) -> Any:
    """The value with another one in one place."""
    copy = value.copy()
    copy[at[0]] = by if len(at) == 1 else damaged(value[at[0]], at[1:], by)
    return copy


WHOLE = event_of(
    SHOP,
    Change(
        key(SHOP.tables["shop"], "USER#1", "ORDER#1"),
        None,
        order_item("1", "1", tags={"SS": ["a"]}, total=n(1), blob={"B": b"x"}, sizes={"NS": ["1"]}, on={"BOOL": True}),
        "100",
        1,
    ),
)
WHOLE["Records"][0] |= {"tableName": "shop", "userIdentity": BY_DYNAMODB[0]}
DAMAGE = [None, True, 5, -1.5, "text", "", [], [1], [[]], {}, {"S": 5}, {"N": "no number"}, {"S": []}, {"X": {}}]


def test_records_whose_image_cannot_be_read_name_their_item():
    """A record with readable keys is a failure of that item and of its rules, whatever is wrong with its images."""
    found, order = 0, key(SHOP.tables["shop"], "USER#1", "ORDER#1")
    for image in ("NewImage", "OldImage"):
        whole = damaged(WHOLE["Records"][0], ("dynamodb", "OldImage"), WHOLE["Records"][0]["dynamodb"]["NewImage"])
        for at in places(whole["dynamodb"][image]):
            for by in DAMAGE:
                _, failures = read({"Records": [damaged(whole, ("dynamodb", image, *at), by)]})
                assert {(one.key, one.rule, one.position) for one in failures} <= {
                    (order, "user-name-on-orders", "100")
                }
                found += len(failures)
    assert found > 100  # some damage is another item that DynamoDB could hold


def test_records_of_two_tables_of_one_name_are_told_apart_by_their_streams():
    """The ARN of a stream says which of them changed; what says less is reported, and never dropped or guessed."""
    arn = "arn:aws:dynamodb:{}:table/main"
    tables = {
        name: arn.format(where)
        for name, where in {"one": "eu-west-1:1", "two": "eu-west-1:2", "far": "us-east-1:1"}.items()
    }
    named = ", ".join(f"{name}: {{name: '{at}', key: {{id: S}}}}" for name, at in tables.items())
    entities = ", ".join(f"{name}_item: {{table: {name}}}" for name in tables)
    rules = parse_rules(
        f"tables: {{{named}}}\nentities: {{{entities}}}\nrules: {{r: {{derive: one_item.x, as: '{{y}}'}}}}", environ={}
    )
    data = {"Keys": {"id": {"S": "1"}}, "NewImage": {"id": {"S": "1"}, "y": {"S": "7"}}}
    records = [{"eventSourceARN": f"{at}/stream/2026", "dynamodb": data} for at in tables.values()]
    assert [change.key.table for change in read_event({"Records": records}, rules)] == [*tables]
    assert [change.key.table for change in read_event({"Records": records}, rules, filtered=True)] == ["one"]
    unknown = {"eventSourceARN": arn.format("eu-west-1:3") + "/stream/2026", "dynamodb": data}
    by_name = {"tableName": "main", "dynamodb": data}
    for record in (unknown, by_name):
        (failure,) = read_event({"Records": [record]}, rules, filtered=True)
        assert isinstance(failure, Failure)
        assert "one and two and far" in failure.reason


OTHER_KEY = event_of(SHOP, WRITTEN)
OTHER_KEY["Records"][0]["dynamodb"]["Keys"] = {"PK": n(1), "SK": s("PROFILE")}


def of_kinesis(data: bytes) -> dict[str, Any]:
    return {"Records": [{"kinesis": {"data": base64.b64encode(data).decode(), "sequenceNumber": "100"}}]}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        *((event, "list of Records") for event in ([], None, "text", 5)),
        (OTHER_KEY, "the keys of a record are not those of table shop: expected PK (S), SK (S)"),
        (of_kinesis(b"\xf3\x89\x9a\xc2\n\x01a"), "aggregated by the Kinesis Producer Library"),
        (of_kinesis(gzip.compress(b"{}", mtime=0)), "compressed with gzip"),
        (of_kinesis(b"\xff{}"), "not base64 of a DynamoDB record"),
    ],
)
def test_records_that_cannot_be_read_say_what_they_hold(event, words):
    """An event of another shape, a key of another table, and a record that another producer packed, are each a failure."""
    ((), (failure,)) = read(event)
    assert words in failure.reason
