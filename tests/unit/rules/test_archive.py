"""The archive kind: which deleted items are kept, and as what."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.model.errors import UserError
from sync_rules.model.items import Change
from sync_rules.model.where import compile_where
from sync_rules.rules.kinds.archive import ArchiveRule, parse_into
from tests.support.builders import entity, key, m, n, s, table

GAMES = table("games", {"PK": "S", "SK": "B"})
GAME = entity("game", GAMES, PK="GAME#{game_id}", SK="{round}")
AT = key(GAMES, "GAME#7", b"\x00\xff")
ITEM = {"PK": s("GAME#7"), "SK": {"B": b"\x00\xff"}, "score": n("12345678901234567890.5"), "bag": m(pic={"B": b"\x01"})}
EXPIRED = Change(AT, ITEM, None, "300", 1_700_000_000_123, expired=True)
DELETED = replace(EXPIRED, expired=False)


def rule(**given: object) -> ArchiveRule:
    return ArchiveRule(name="keep", source=GAME, target=GAME, **{"bucket": "b", "prefix": "games/", **given})


def content(keep) -> dict:
    return json.loads(gzip.decompress(keep.body))


@pytest.mark.parametrize(
    ("when", "change", "kept"),
    [
        ("expired", EXPIRED, True),
        ("expired", DELETED, False),
        ("deleted", EXPIRED, True),
        ("deleted", DELETED, True),
        ("deleted", replace(DELETED, new=ITEM), False),
        ("deleted", replace(DELETED, old=None, new=ITEM), False),
        ("deleted", replace(DELETED, old=None), False),  # nothing is known of it
    ],
)
def test_archive_keeps_what_was_deleted(when, change, kept):
    """A deleted item is archived, by Time to Live alone or by anybody as `when` says; an existing one never is."""
    assert (rule(when=when).effect(change) is not None) is kept


@pytest.mark.parametrize(("text", "kept"), [("game_id == '7'", True), ("score < `5`", False), ("bag.pic", True)])
def test_archive_where_is_of_the_item_as_it_was(text, kept):
    """`where` reads the attributes and the fields in the key of the deleted item."""
    assert (rule(where=compile_where(text, "")).effect(EXPIRED) is not None) is kept


def test_archive_keeps_the_item_as_it_last_was():
    """One line of JSON: table, key, time, who deleted it, and the item as DynamoDB has it, binaries as base64."""
    keep = rule().effect(EXPIRED)
    assert (keep.rule, keep.bucket) == ("keep", "b")
    assert keep.name == f"games/2023/11/14/games-300-{AT.digest()}.json.gz"
    assert gzip.decompress(keep.body).count(b"\n") == 1
    assert content(keep) == {
        "table": "games",
        "key": {"PK": {"S": "GAME#7"}, "SK": {"B": "AP8="}},
        "deleted_at": "2023-11-14T22:13:20.123+00:00",
        "expired": True,
        "item": {**ITEM, "SK": {"B": "AP8="}, "bag": {"M": {"pic": {"B": "AQ=="}}}},
    }


def test_archive_without_a_time_is_undated():
    """A record that does not say when the item was deleted has a folder of its own."""
    keep = rule(prefix="").effect(replace(EXPIRED, created_ms=None))
    assert keep.name.startswith("undated/games-300-")
    assert content(keep)["deleted_at"] is None


@pytest.mark.parametrize("change", [replace(EXPIRED, position=""), replace(EXPIRED, in_order=False)])
def test_archive_without_a_number_goes_by_what_the_record_says(change):
    """Without a sequence number, and in Kinesis, which may carry a change under two, equal records are one object."""
    assert rule().effect(change) == rule().effect(replace(change, position="301" if change.position else ""))
    assert rule().effect(change).name != rule().effect(replace(change, created_ms=1_700_000_000_124)).name
    assert rule().effect(change).name != rule().effect(replace(change, old={**ITEM, "score": n(1)})).name


def test_archive_names_differ_where_shards_give_the_same_number():
    """A sequence number is unique in its shard: two items with the same one are two objects."""
    other = replace(EXPIRED, key=key(GAMES, "GAME#8", b"\x00"))
    assert rule().effect(EXPIRED).name != rule().effect(other).name


@pytest.mark.parametrize(("system", "level"), [(3, 9), (255, 9), (255, 6)])
def test_archive_header_depends_on_the_record_alone(monkeypatch, system, level):
    """The header has no time of day, and the same operating system and level whatever this Python writes by default: 255
    since 3.13, and level 6 since 3.15.
    """
    inner = gzip.compress

    def compress(line, **given):
        body = inner(line, **{"compresslevel": level, **given})
        return body[:9] + bytes([system]) + body[10:]

    monkeypatch.setattr(gzip, "compress", compress)
    keep = rule().effect(EXPIRED)
    assert keep.body[:10] == bytes.fromhex("1f8b0800000000000203")
    assert content(keep)["table"] == "games"


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(), st.text().map(s), max_size=5), st.integers(0, 253_402_300_799_999))
def test_archive_gives_the_same_bytes_for_the_same_record(attributes, created_ms):
    """The same record gives the same object, byte for byte, whatever the order of its attributes."""
    change = replace(EXPIRED, old={**attributes, **ITEM}, created_ms=created_ms)
    again = replace(change, old=dict(reversed(change.old.items())))
    assert rule().effect(change) == rule().effect(again)
    assert content(rule().effect(change))["item"].keys() == change.old.keys()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://bucket", ("bucket", "")),
        ("s3://bucket/", ("bucket", "")),
        ("s3://bucket/games", ("bucket", "games/")),
        ("s3://bucket/a/b/", ("bucket", "a/b/")),
    ],
)
def test_archive_into_is_a_bucket_and_a_folder(text, expected):
    """The prefix ends in a slash, written or not, so that folders are folders."""
    assert parse_into(text) == expected


@pytest.mark.parametrize("text", ["", "bucket/games", "s3://", "s3:///games", "https://bucket"])
def test_archive_into_anything_else_is_refused(text):
    """With the form that was expected."""
    with pytest.raises(UserError, match="expected s3://BUCKET/PREFIX/"):
        parse_into(text)
