"""The checkpoint file: how far every shard is finished, and which messages wait. One JSON file, replaced as a whole.

Law: the file on disk is always one whole checkpoint, the old one or the new one (temporary file, fsync, rename), and
one run at a time has it. It names keys in messages, and has the values of an item while a call for it failed and waits,
so only its owner may read it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from sync_rules.adapters.files import open_for_owner, replacing
from sync_rules.adapters.streams import table_of
from sync_rules.jobs.consume.queue import Pending
from sync_rules.jobs.consume.shards import ShardProgress
from sync_rules.model.errors import RecordError, UserError
from sync_rules.pipeline.messages import decode


@dataclass(frozen=True)
class StoredMessage:
    """A message as it stands in the file."""

    due_ms: int
    receives: int
    body: str


@dataclass(frozen=True)
class Checkpoint:
    """Where a run had come to. `streams` holds the shards of each stream by the stream's ARN."""

    rules_fingerprint: str
    streams: dict[str, list[ShardProgress]]
    messages: list[StoredMessage]
    parked: int = 0
    version: Literal[1] = 1

    def pending(self) -> tuple[Pending, ...]:
        """The messages, ready for a LocalQueue."""
        return tuple(Pending(decode(stored.body), stored.due_ms, stored.receives) for stored in self.messages)


FILE: Final = TypeAdapter(Checkpoint)


def stored(pending: Iterable[Pending]) -> list[StoredMessage]:
    """Messages of a LocalQueue, ready for the file."""
    return [StoredMessage(p.due_ms, p.receives, p.body) for p in pending]


def load(path: Path, stream_arns: Iterable[str]) -> Checkpoint | None:
    """The checkpoint in a file; None when there is no file yet.

    A stream that was disabled and enabled again has a new ARN under the same table; the caller sees that its ARN is not
    in the file, and starts it from its beginning.

    Raises:
        UserError: when the file is not a checkpoint, or names a table that is not among those of the given streams.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path}: expected a checkpoint to read, found {error.strerror}") from error
    try:
        checkpoint = FILE.validate_json(text)
        checkpoint.pending()
    except (ValidationError, RecordError) as error:
        raise UserError(
            f"{path}: expected a checkpoint of `sync-rules run`, found something else. "
            "Give another file with --checkpoint, or delete this one to start at the beginning of the streams."
        ) from error
    wanted = {table_of(arn) for arn in stream_arns}
    found = {table_of(arn) for arn in checkpoint.streams}
    foreign = sorted(found - wanted)
    if foreign and not found & wanted:  # some in common: tables came or went, and the run says so
        raise UserError(
            f"{path}: this checkpoint is of other streams. Expected only {', '.join(sorted(wanted)) or 'none'}, "
            f"found {', '.join(foreign)}. Give each set of tables a checkpoint of its own with --checkpoint."
        )
    return checkpoint


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Replace the file. Returns once the new checkpoint would survive a power cut."""
    with replacing(path) as file:
        file.write(FILE.dump_json(checkpoint))


@contextmanager
def locked(path: Path, verb: str = "run", option: str = "--checkpoint") -> Iterator[None]:
    """Hold a checkpoint file for this process, by a lock file beside it that the system frees when the process ends.
    `verb` is the command that uses such files, `option` names another.

    Raises:
        UserError: when another process has it, or the lock file cannot be made.
    """
    beside = path.with_name(path.name + ".lock")  # the checkpoint itself is replaced by every save
    try:
        descriptor = open_for_owner(beside, os.O_RDWR)
    except OSError as error:
        raise UserError(f"{beside}: expected to make a lock file here, found {error.strerror}") from error
    with os.fdopen(descriptor) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"{path}: another `sync-rules {verb}` uses this checkpoint. Stop it, or give another with {option}."
            ) from error
        yield
