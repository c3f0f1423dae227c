"""The checkpoint file: how far each shard is processed, and the pending messages. One JSON document.

Invariant: the file is always one whole checkpoint, the old one or the new one, and one run at a time uses it
(`files.lock_file`). It holds keys in messages, and the values of an item while a failed call for it waits, so only its
owner may read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from sync_rules.adapters.files import read_if_there, replace_file
from sync_rules.jobs.consume.queue import Pending
from sync_rules.jobs.consume.shards import ShardProgress
from sync_rules.jobs.streams import parse_table_arn
from sync_rules.model.errors import RecordError, UserError
from sync_rules.pipeline.messages import parse_message


@dataclass(frozen=True)
class StoredMessage:
    """A message in the file."""

    due_ms: int
    receives: int
    body: str


@dataclass(frozen=True)
class Checkpoint:
    """The progress of a run. `streams` holds the shards of each stream by the stream's ARN. `began` holds the
    beginnings of rules that call a function. `books` holds the identities of the books that the run kept, `accepted`
    the fingerprints of accepted rules. These are None in the file of a version that did not note them.
    """

    rules_fingerprint: str
    streams: dict[str, list[ShardProgress]]
    messages: list[StoredMessage]
    parked: int = 0
    began: dict[str, int] | None = None
    books: list[str] | None = None
    accepted: dict[str, str] | None = None
    version: Literal[1] = 1

    def list_messages(self) -> tuple[Pending, ...]:
        """Return the stored messages for a LocalQueue."""
        return tuple(Pending(parse_message(stored.body), stored.due_ms, stored.receives) for stored in self.messages)


FILE: Final = TypeAdapter(Checkpoint)


def pack_messages(pending: Iterable[Pending]) -> list[StoredMessage]:
    """Return the messages of a LocalQueue in the form of the file."""
    return [StoredMessage(p.due_ms, p.receives, p.body) for p in pending]


def load(path: Path, stream_arns: Iterable[str]) -> Checkpoint | None:
    """Return the checkpoint in a file, or None if the file does not exist yet. A stream that was disabled and enabled
    again has a new ARN under the same table. Its ARN is not in the file, and the caller reads the stream from its
    beginning.

    Raises:
        UserError: if the file is not a checkpoint, or all its tables differ from those of the given streams.
    """
    text = read_if_there(path, "a checkpoint")
    if text is None:
        return None
    try:
        checkpoint = FILE.validate_json(text)
        checkpoint.list_messages()
        _require_positions(checkpoint)
    except (ValidationError, RecordError) as error:
        raise UserError(
            f"{path}: expected a checkpoint of `sync-rules run`, found something else. "
            "Give another file with --checkpoint, or delete this one to start at the beginning of the streams."
        ) from error
    wanted = {parse_table_arn(arn) for arn in stream_arns}
    found = {parse_table_arn(arn) for arn in checkpoint.streams}
    foreign = sorted(found - wanted)
    if foreign and not found & wanted:  # some in common: tables came or went, and the run says so
        raise UserError(
            f"{path}: this checkpoint is of other streams. Expected only {', '.join(sorted(wanted)) or 'none'}, "
            f"found {', '.join(foreign)}. Give each set of tables a checkpoint of its own with --checkpoint."
        )
    return checkpoint


def _require_positions(checkpoint: Checkpoint) -> None:
    for shard in (shard for shards in checkpoint.streams.values() for shard in shards):
        if shard.after is not None and not (shard.after.isascii() and shard.after.isdecimal()):
            raise RecordError("a position that is no sequence number")


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Replace the file. Return after the new checkpoint would survive a power cut."""
    with replace_file(path) as file:
        file.write(FILE.dump_json(checkpoint))
