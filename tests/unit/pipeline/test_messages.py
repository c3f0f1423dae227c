"""Messages for later: decoded as they were sent, with keys only, except for a failed call."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.model.errors import RecordError
from sync_rules.model.items import Change, ItemKey
from sync_rules.pipeline.messages import (
    COUNT_MAX,
    CallMessage,
    ChunkMessage,
    PartMessage,
    PullMessage,
    PushMessage,
    format_message,
    parse_message,
)

PARTS = st.one_of(
    st.tuples(st.text(min_size=1), st.just("S"), st.text()),
    st.tuples(st.text(min_size=1), st.just("N"), st.integers().map(str)),
    st.tuples(st.text(min_size=1), st.just("B"), st.binary()),
)
KEYS = st.builds(ItemKey, st.text(min_size=1), st.lists(PARTS, min_size=1, max_size=2).map(tuple))
CURSORS = st.one_of(st.none(), KEYS.map(ItemKey.attributes))
PUSHES = st.builds(
    PushMessage,
    st.lists(st.text(), min_size=1, max_size=3).map(tuple),
    KEYS,
    st.booleans(),
    CURSORS,
    st.integers(0, 900),
    st.booleans(),
    st.booleans(),
)
BOOKS = st.integers().map(lambda number: ItemKey("books", (("book_id", "N", str(number)), ("part", "B", b"\xff"))))
CHUNKS = st.builds(
    ChunkMessage,
    st.lists(st.text(), min_size=1, max_size=3).map(tuple),
    KEYS,
    st.lists(BOOKS, max_size=4).map(tuple) | KEYS.map(lambda key: (key,)),
    st.booleans(),
)
PULLS = st.builds(PullMessage, KEYS, st.integers(0, 20))
KEY_PARTS = st.builds(PartMessage, st.text(), KEYS, st.none() | KEYS, st.text(), st.integers(0, 20))
NAMES = st.sampled_from(["$bytes", "kind", "a"]) | st.text(max_size=3)
VALUES = st.recursive(
    st.one_of(
        st.text().map(lambda v: {"S": v}), st.integers().map(lambda v: {"N": str(v)}), st.just({"NULL": True}),
        st.binary().map(lambda v: {"B": v}), st.lists(st.binary(), max_size=2).map(lambda v: {"BS": v}),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda v: {"L": v}), st.dictionaries(NAMES, inner, max_size=2).map(lambda v: {"M": v})
    ),
    max_leaves=6,
)  # fmt: skip
IMAGES = st.none() | st.dictionaries(NAMES, VALUES, max_size=3)
CHANGES = st.builds(
    Change, KEYS, IMAGES, IMAGES, st.text(), st.none() | st.integers(0, 10**14), st.booleans(), st.booleans()
)
CALLS = st.builds(CallMessage, st.text(), st.text(), CHANGES, st.integers(0, 20))
CALL = CallMessage("r", "f.g", Change(ItemKey("t", (("PK", "S", "a"),)), None, {"PK": {"S": "a"}}, "1", 5), 2)


@settings(max_examples=100, deadline=None)
@given(st.one_of(PUSHES, CHUNKS, PULLS, KEY_PARTS, CALLS))
def test_messages_come_back_as_they_were(message):
    """Any message survives its text, binary keys, cursors and images included, and the same has the same text."""
    assert parse_message(format_message(message)) == message
    assert format_message(parse_message(format_message(message))) == format_message(message)


@pytest.mark.parametrize(
    "text",
    ["", "text", "null", "[]", "5", "{}", '{"kind": "drop"}', '{"kind": "push"}', '{"kind": "pull", "target": 5}',
     '{"kind": "pull", "target": {"table": "t", "values": [1]}}', '{"kind": "pull", "target": {}, "extra": 1}'],
)  # fmt: skip
def test_messages_of_others_are_refused(text):
    """Text that is no message of ours is a RecordError, which is parked and not retried."""
    with pytest.raises(RecordError):
        parse_message(text)


CHUNK = ChunkMessage(("r",), ItemKey("t", (("PK", "S", "a"),)), (ItemKey("b", (("id", "B", b"x"),)),))
CHANGE = json.loads(format_message(CALL))["change"]
DAMAGED = [
    *((CALL, part, by) for part in ("rule", "function") for by in (None, 5, [], {})),
    *((CALL, "change", by) for by in (None, 5, "text", [], {}, {"key": 5})),
    *((CALL, "change", CHANGE | {part: by}) for part in (*CHANGE, "extra") for by in (-1, [], {"PK": 5})),
    *((CHUNK, "rules", by) for by in (None, 5, [5], [[]])),
    *((CHUNK, "source", by) for by in (None, 5, [], {})),
    *((CHUNK, "removed", by) for by in (None, 0, "yes")),
    *((CHUNK, "targets", by) for by in (None, 5, [5], [{}])),
    *((CHUNK, "targets", [{"table": "b", "attributes": [["id", "B"]], "values": [by]}]) for by in ([], ["text"])),
    (CHUNK, "extra", 1),
]


@pytest.mark.parametrize(("message", "part", "by"), DAMAGED, ids=range(len(DAMAGED)))
def test_messages_that_are_damaged_are_refused(message, part, by):
    """A call or a chunk with a part of another shape is a RecordError, also inside the change of a call."""
    body = json.loads(format_message(message))
    with pytest.raises(RecordError):
        parse_message(json.dumps({**body, part: by}))


KEY = CALL.change.key
COUNTED = (PushMessage(("r",), KEY), PullMessage(KEY), PartMessage("r", KEY, None), CALL)
COUNTS = [(message, one.name) for message in COUNTED for one in fields(message) if one.type == "int"]


@pytest.mark.parametrize(
    ("message", "part"), COUNTS, ids=lambda one: one if isinstance(one, str) else type(one).__name__
)
@pytest.mark.parametrize("by", [None, -1, True, False, 1.0, 1.5, "1", [], COUNT_MAX + 1])
def test_messages_with_a_count_that_is_none_are_refused(message, part, by):
    """Each count of each kind of message is an int within its limit."""
    body = {**json.loads(format_message(message)), part: COUNT_MAX}
    assert getattr(parse_message(json.dumps(body)), part) == COUNT_MAX
    with pytest.raises(RecordError):
        parse_message(json.dumps({**body, part: by}))


def test_message_has_no_letter_that_sqs_refuses():
    """U+FFFE and U+FFFF are escaped, and read again as they were; half a surrogate pair, which DynamoDB never has, too, and
    no reader takes it.
    """
    strange = "\ufffe\uffff\U0001f600é"
    at = ItemKey("shop", (("PK", "S", strange),))
    text = format_message(PullMessage(at))
    assert not set(text) & {"\ufffe", "\uffff"}
    assert text.encode()
    assert parse_message(text) == PullMessage(at)
    half = format_message(PullMessage(ItemKey("shop", (("PK", "S", "\ud800"),))))
    assert half.isascii()
    with pytest.raises(RecordError):
        parse_message(half)
