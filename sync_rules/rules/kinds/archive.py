"""archive: deleted items, kept in S3 as they last were, as one gzipped line of JSON each.

Invariant: a record has one object, whose name and bytes follow from the record alone, so a repeated record changes
nothing. The item has DynamoDB's form, {"S": "x"}, with binaries as base64 text. Only the Region where an item
expired sees the expiry; other replicas of a global table see a delete by the replication.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.model.item_change import identity
from sync_rules.model.items import Change, Keep
from sync_rules.model.json_bytes import canonical
from sync_rules.model.where import Where
from sync_rules.rules.description import ArchivePlace, Drawing
from sync_rules.rules.families import EffectRule
from sync_rules.rules.rule import Blocked, let_in

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
UNDATED: Final = "undated/"  # for records that do not say when the change was made
SCHEME: Final = "s3://"
OS_BYTE: Final = 9  # of a gzip header, RFC 1952: the operating system
UNIX: Final = b"\x03"
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
BUCKET: Final = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"


@dataclass(frozen=True, eq=False, kw_only=True)
class ArchiveRule(EffectRule):
    """`prefix`: of all objects' names, ends in a slash or is empty. `ttl`: the table's attribute of Time to Live; it
    changes no object, so it is not in the body.
    """

    bucket: str
    prefix: str = ""
    when: Literal["expired", "deleted"] = "expired"
    where: Where | None = None
    ttl: str | None = None
    kind = "archive"

    def body(self) -> Mapping[str, object]:
        return {
            "when": self.when,
            "into": self.archive.text,
            "where": self.where and self.where.text,
        }

    @property
    def archive(self) -> ArchivePlace:
        return ArchivePlace(self.bucket, self.prefix, self.when)

    def draw(self) -> Drawing:
        notes = () if self.ttl is None else (f"Time to Live {self.ttl}",)
        return Drawing((self.archive.text, "S3"), ((),), (), (f"when {self.when}", *notes))

    @property
    def times_to_live(self) -> tuple[tuple[Table, str], ...]:
        return () if self.ttl is None else ((self.source.table, self.ttl),)

    def resolve_variables(self, name: str) -> ArchiveRule:
        """The rule with its place taken apart now: a variable may hold a bucket and a part of the prefix."""
        bucket, prefix = parse_into(self.archive.text)
        if wrong := check_bucket_name(bucket):
            raise UserError(f"{name}: rule {self.name}: {wrong}")
        return replace(self, bucket=bucket, prefix=prefix)

    def effect(self, change: Change) -> Keep | None:
        """The object for a deleted item, if the rule speaks of it or its condition fails, so that no item is lost."""
        if change.new is not None or change.old is None or (self.when == "expired" and not change.expired):
            return None
        lets_in = let_in(self.where, change.old, self.source)
        if not lets_in:
            return None
        at = None if change.created_ms is None else EPOCH + timedelta(milliseconds=change.created_ms)
        line = {
            "table": change.key.table,
            "key": change.key.attributes(),
            "deleted_at": at and at.isoformat(timespec="milliseconds"),
            "expired": change.expired,
            "item": change.old,
        }
        folder = UNDATED if at is None else f"{at:%Y/%m/%d}/"
        name = f"{self.prefix}{folder}{change.key.table}-{identity(change)}.json.gz"
        body = compress_line(f"{canonical(line)}\n".encode())
        return Keep(self.name, self.bucket, name, body, lets_in.reason if isinstance(lets_in, Blocked) else "")


def compress_line(line: bytes) -> bytes:
    """The gzip file of a line: the same bytes for the same record, at any time and on every version of Python."""
    body = gzip.compress(line, compresslevel=9, mtime=0)  # no time in the header; Python 3.15 has another default level
    return body[:OS_BYTE] + UNIX + body[OS_BYTE + 1 :]  # Python 3.13 writes 255 (unknown), earlier versions Unix


def parse_into(text: str) -> tuple[str, str]:
    """The bucket and the prefix in ``s3://bucket/prefix/``. The prefix ends in a slash, written or not.

    Raises:
        UserError: when it is not such an address.
    """
    bucket, _, prefix = text.removeprefix(SCHEME).partition("/")
    if not text.startswith(SCHEME) or not bucket:
        raise UserError(f"{text!r} is not a place to archive to: expected s3://BUCKET/PREFIX/")
    return bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""


def check_bucket_name(bucket: str) -> str:
    return (
        "" if re.fullmatch(BUCKET, bucket) else f"{bucket!r} is not a name of a bucket: expected 3 to 63 of a-z 0-9 . -"
    )
