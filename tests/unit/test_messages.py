"""Messages for later: they come back as they were sent, and carry keys only."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.errors import RecordError
from sync_rules.messages import PullMessage, PushMessage, decode, encode
from sync_rules.model import ItemKey

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
)
PULLS = st.builds(PullMessage, KEYS, st.integers(0, 20))


@settings(max_examples=100, deadline=None)
@given(st.one_of(PUSHES, PULLS))
def test_messages_come_back_as_they_were(message):
    """Any message survives its text, binary keys and cursors included, and the same message has the same text."""
    assert decode(encode(message)) == message
    assert encode(decode(encode(message))) == encode(message)


@pytest.mark.parametrize(
    "text",
    ["", "text", "null", "[]", "5", "{}", '{"kind": "drop"}', '{"kind": "push"}', '{"kind": "pull", "target": 5}',
     '{"kind": "pull", "target": {"table": "t", "values": [1]}}', '{"kind": "pull", "target": {}, "extra": 1}'],
)  # fmt: skip
def test_messages_of_others_are_refused(text):
    """Text that is no message of ours is a RecordError, which is parked and not retried."""
    with pytest.raises(RecordError):
        decode(text)
