"""Keeps calls of users' functions with the values of their changes, in a bucket, in a folder, or in memory.

Invariant: the name of a call's place follows from its rule and its change, so a call that is kept twice is stored once.
A kept call holds both images of an item: the bucket must be encrypted and private, and only their owner can read the
files of the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tenacity import Retrying

from sync_rules.adapters.files import OWNER_ONLY, replace_file
from sync_rules.adapters.s3 import S3Bucket
from sync_rules.model.errors import RecordError, StoreError
from sync_rules.model.item_change import make_change_id
from sync_rules.pipeline.messages import CallMessage, format_message, parse_message
from sync_rules.pipeline.requests import NULL_PORTS, KeptCalls

CALLS: Final = "calls/"  # what the names of their objects begin with
SCHEME: Final = "s3://"
GONE: Final = "CallNotKept"


def make_call_name(message: CallMessage) -> str:
    change = message.change
    return f"{message.rule}/{change.key.table}-{make_change_id(change)}.json"


def format_call(message: CallMessage) -> str:
    """Format a call to be kept. The same call always has the same text."""
    return format_message(replace(message, attempt=0, kept=""))


def parse_call(text: str, place: str) -> CallMessage:
    """Parse a kept call. Raises StoreError, CallNotKept, if the text is not a call."""
    try:
        message = parse_message(text)
    except RecordError as error:
        raise StoreError(GONE, f"{place}: {error}") from error
    if not isinstance(message, CallMessage):
        raise StoreError(GONE, f"{place}: the message there is not a call")
    return message


class CallsInBucket:
    """KeptCalls as objects of a bucket. Its lifecycle deletes them; `make_client` makes boto3's S3 client when needed.

    Calls are kept in `bucket`. Without `bucket`, calls are only read, from any bucket that their place names.
    """

    def __init__(self, make_client: Callable[[], Any], bucket: str = "", *, retrying: Retrying | None = None) -> None:
        self._make_client = make_client
        self._bucket = bucket
        self._retrying = retrying

    def keep_call(self, message: CallMessage) -> str:
        if not self._bucket:
            return NULL_PORTS.keep_call(message)
        key = f"{CALLS}{make_call_name(message)}"
        self._open(self._bucket).put(key, format_call(message).encode())
        return f"{SCHEME}{self._bucket}/{key}"

    def fetch_call(self, place: str) -> CallMessage:
        bucket, _, key = place.removeprefix(SCHEME).partition("/")
        try:
            return parse_call(self._open(bucket).read(key).decode(), place)
        except StoreError as error:
            if error.reason != "NoSuchKey":
                raise
            raise StoreError(GONE, f"there is no object {place}") from error

    def _open(self, bucket: str) -> S3Bucket:
        return S3Bucket(self._make_client(), bucket, self._retrying)


class CallsInFolder:
    """KeptCalls as files. They are written to `folder`, and read from `folder` or else from `others`."""

    def __init__(self, folder: Path, others: Sequence[Path] = ()) -> None:
        self._folder = folder
        self._folders = (folder, *others)

    def keep_call(self, message: CallMessage) -> str:
        name = make_call_name(message)
        path = self._folder / name
        try:
            for folder in (self._folder, path.parent):  # the mode is for the last folder of a path only
                folder.mkdir(mode=OWNER_ONLY | 0o100, parents=True, exist_ok=True)
            with replace_file(path) as file:
                file.write(format_call(message).encode())
        except OSError as error:
            raise StoreError("FileNotWritten", f"{path}: {error.strerror}") from error
        return name

    def fetch_call(self, place: str) -> CallMessage:
        for path in self._files(place):
            try:
                return parse_call(path.read_text(encoding="utf-8"), place)
            except OSError as error:
                raise StoreError("FileNotRead", f"{path}: {error.strerror}") from error
        raise StoreError(GONE, f"there is no file {place} in {', '.join(map(str, self._folders))}")

    def remove(self, places: Iterable[str]) -> None:
        """Remove the files of calls that are done. Raises StoreError. Places of a bucket are left."""
        for place in places:
            for path in self._files(place):
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    raise StoreError("FileNotRemoved", f"{path}: {error.strerror}") from error

    def _files(self, place: str) -> Iterator[Path]:
        """The files of a place that there are. None is outside the folders, whatever the place says."""
        for folder in self._folders:
            path = (folder / place).resolve()
            if path.is_relative_to(folder.resolve()) and path.is_file():
                yield path


class CallsAnywhere:
    """KeptCalls that are read from a bucket or a folder, as their places say. It keeps none: a failure that is redriven
    has a place already.
    """

    def __init__(self, bucket: KeptCalls, folder: KeptCalls) -> None:
        self._bucket = bucket
        self._folder = folder

    def keep_call(self, message: CallMessage) -> str:
        return NULL_PORTS.keep_call(message)

    def fetch_call(self, place: str) -> CallMessage:
        return (self._bucket if place.startswith(SCHEME) else self._folder).fetch_call(place)


class CallsInMemory:
    """KeptCalls of a pipeline in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def keep_call(self, message: CallMessage) -> str:
        self.kept[make_call_name(message)] = format_call(message)
        return make_call_name(message)

    def fetch_call(self, place: str) -> CallMessage:
        if place not in self.kept:
            raise StoreError(GONE, f"no call is kept at {place}")
        return parse_call(self.kept[place], place)
