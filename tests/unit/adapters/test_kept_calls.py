"""Calls that are kept with their changes: in a bucket (moto), in a folder, in memory."""

from __future__ import annotations

import stat
from dataclasses import replace

import pytest

from sync_rules.adapters.kept_calls import CallsAnywhere, CallsInBucket, CallsInFolder, CallsInMemory
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change
from sync_rules.pipeline.messages import CallMessage
from tests.support.builders import key, s, table

AT = key(table("shop", {"PK": "S"}), "a/../b")
CHANGE = Change(AT, {"PK": s("a/../b"), "bin": {"B": b"\x00\xff"}}, {"PK": s("a/../b"), "name": s("é\ufffe")}, "100")
CALL = CallMessage("tell", "mypkg.tell", CHANGE, 3)


@pytest.fixture
def client(moto):
    client = moto("s3")
    client.create_bucket(Bucket="kept")
    return client


@pytest.fixture(params=["bucket", "folder", "memory"])
def kept(request, client, tmp_path):
    """Every place where calls can be kept."""
    if request.param == "bucket":
        return CallsInBucket(lambda: client, "kept")
    return CallsInFolder(tmp_path / "new/failures.calls") if request.param == "folder" else CallsInMemory()


def test_kept_calls_come_back_whole(kept):
    """A call is read as it was kept, both images and no count of tries; each change of a rule has one place."""
    place = kept.keep_call(CALL)
    assert kept.fetch_call(place) == replace(CALL, attempt=0)
    assert kept.keep_call(replace(CALL, attempt=7)) == place
    others = [replace(CALL, rule="other"), replace(CALL, change=replace(CHANGE, position="101"))]
    assert len({place, *map(kept.keep_call, others)}) == 3


def test_kept_calls_that_are_gone_are_named(kept):
    """A place where nothing is kept any more fails with a reason of its own."""
    with pytest.raises(StoreError) as gone:
        kept.fetch_call(f"{kept.keep_call(CALL)}.other")
    assert gone.value.reason == "CallNotKept"


def test_kept_calls_in_a_folder_are_for_their_owner(tmp_path):
    """Only the owner may read files with values, and a place leads to no other file of the machine."""
    place = CallsInFolder(tmp_path / "calls").keep_call(CALL)
    file = tmp_path / "calls" / place
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, tmp_path / "calls")]
    assert modes == [0o600, 0o700, 0o700]
    secret = tmp_path / "secret.json"
    (tmp_path / "calls" / place).rename(secret)
    with pytest.raises(StoreError, match="CallNotKept"):
        CallsInFolder(tmp_path / "calls").fetch_call("../secret.json")
    CallsInFolder(tmp_path / "calls").remove(["../secret.json", "s3://kept/calls/x.json"])
    assert secret.exists()


def test_kept_calls_are_read_wherever_they_are(client, tmp_path):
    """A redrive reads a place of a bucket or of any folder beside a file that it was given, and keeps nothing."""
    bucket, folder = CallsInBucket(lambda: client, "kept"), CallsInFolder(tmp_path / "one")
    anywhere = CallsAnywhere(CallsInBucket(lambda: client), CallsInFolder(tmp_path / "two", [tmp_path / "one"]))
    for place in (bucket.keep_call(CALL), folder.keep_call(CALL)):
        assert anywhere.fetch_call(place) == replace(CALL, attempt=0)
    with pytest.raises(StoreError, match="NoPlaceForCalls"):
        anywhere.keep_call(CALL)
    with pytest.raises(StoreError, match="NoPlaceForCalls"):
        CallsInBucket(lambda: client).keep_call(CALL)
