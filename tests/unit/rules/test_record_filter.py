"""The record_filter: what it leaves out is a reason for nothing, and it leaves out what most records are."""

from __future__ import annotations

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.pipeline.records import read_event, split_changes
from sync_rules.rules.record_filter import RecordFilter
from sync_rules.rules.ruleset import Rules
from tests.support.builders import n, s
from tests.support.every_kind import order, rules_of, user

BEGIN_ALIKE = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user: {table: shop, key: {PK: "U#{user_id}", SK: PROFILE}}
  head: {table: shop, key: {PK: "U#{user_id}", SK: "O#{order_id}#HEAD"}}
  line: {table: shop, key: {PK: "U#{user_id}", SK: "O#{order_id}#LINE"}}
  note: {table: shop, key: {PK: "U#{user_id}", SK: "{note_id}#NOTE"}}
rules:
  heads: copy user.name into head.user_name
  lines: copy user.rank into line.user_rank
  notes: copy user.age into note.user_age
"""


def record(table, keys, old, new):
    """A record as Lambda delivers it."""
    images = {"OldImage": old, "NewImage": new}
    return {
        "eventSourceARN": f"arn:aws:dynamodb:us-east-1:000000000000:table/{table.physical_name}/stream/x",
        "eventName": "MODIFY" if old and new else "INSERT" if new else "REMOVE",
        "dynamodb": {
            "Keys": keys, "SequenceNumber": "7", **{name: image for name, image in images.items() if image is not None}
        },
    }  # fmt: skip


def sieve_of(rules: Rules, table: str) -> RecordFilter:
    return rules.record_filters[table]


def data(old, new):
    image = new or old
    return {"Keys": {"PK": image["PK"], "SK": image["SK"]}, "OldImage": old, "NewImage": new}


def plain_rules():
    """Only a copy: two entities, with two watched attributes."""
    return rules_of(*(name for name in rules_of().rules if name != "names"), effects=False)


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        (user("1", age=n(1)), user("1", age=n(2)), False),
        (user("1", name=s("a")), user("1", name=s("b")), True),
        (order("1", "1", 5), order("1", "1", 6), False),
        (order("1", "1", 5, user_name=s("a")), order("1", "1", 5, user_name=s("b")), True),
        (order("1", "1", 5, user_name=s("a")), order("1", "1", 5), True),
        (None, order("1", "1", 5), True),
        (order("1", "1", 5), None, True),
        ({"PK": s("CART#1"), "SK": s("x")}, {"PK": s("CART#1"), "SK": s("x"), "name": s("b")}, False),
        ({"PK": s("USER#1"), "SK": s("CART#1")}, {"PK": s("USER#1"), "SK": s("CART#1"), "name": s("b")}, False),
    ],
    ids=["unwatched", "source", "target-unwatched", "copy", "copy-gone", "came", "went", "stranger", "other-sort-key"],
)
def test_sieve_lets_pass_what_a_rule_watches(old, new, passes):
    """A change of an attribute that a rule goes by, and items that came or went; nothing of other entities."""
    assert (sieve_of(plain_rules(), "shop").find_watched_attributes(data(old, new)) is not False) is passes


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"Keys": None},
        {"Keys": {"PK": s("USER#1")}},
        {"Keys": {"PK": {"N": "1"}, "SK": s("x")}},
        {"Keys": {"PK": "x"}},
    ],
    ids=["nothing", "no-keys", "one-key", "other-type", "no-value"],
)
def test_record_that_is_none_is_told_and_not_left_out(broken):
    """A record that the filter cannot read is not left out but read in full, and fails."""
    rules = plain_rules()
    one = record(rules.tables["shop"], {}, None, None) | {"dynamodb": broken}
    changes, failures = split_changes(read_event({"Records": [one]}, rules, filtered=True))
    assert (changes, len(failures)) == ([], 1)


def test_room_that_was_made_in_an_item_is_asked_for():
    """A large item that shrinks may hold a copy now that did not fit, whichever attribute made room."""
    asks = parse_rules(BEGIN_ALIKE).record_filters["shop"].find_watched_attributes
    bare = {"PK": s("U#1"), "SK": s("PROFILE")}
    small, large = ({**bare, "unheard_of": s("x" * size)} for size in (10, 20_000))
    for old, new, asked in ((large, small, True), (small, large, False), (small, bare, False)):
        assert (asks({"Keys": bare, "OldImage": old, "NewImage": new}) is not False) is asked
