"""Rules of kind `archive`: deleted items are kept in S3.

Whether the bucket exists shows only when it is used.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.kind import Kind
from sync_rules.language.kinds.options import Model, OwnWhere, RenamedFrom
from sync_rules.language.variables import without
from sync_rules.rules.kinds.archive import ArchiveRule, misnamed, parse_into


class ArchiveForm(Model):
    """archive: items that go are kept in S3 as they last were."""

    archive: str = Field(description="The entity whose items are kept.", examples=["game"])
    when: Literal["expired", "deleted"] = Field(
        default="expired", description="expired: removed by Time to Live. deleted: removed by anybody."
    )
    into: str = Field(
        description="The bucket and the beginning of the objects' names; ${VAR} is taken from the environment.",
        examples=["s3://${BUCKET}/games/"],
    )
    where: OwnWhere = None
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: ArchiveForm) -> tuple[ArchiveRule, ...]:
    source = compiler.entity(form.archive, "archive")
    filled = compiler.known.filled(form.into, compiler.at("into"))
    address = compiler.parse("SR118", "into", parse_into, without(form.into) if filled is None else filled)
    if address is not None and (wrong := misnamed(address[0])):
        compiler.add("SR118", "into", wrong)
    where = None if source is None else compiler.own_where(form.where, source)
    if source is None or address is None or not compiler.sound:
        return ()
    bucket, prefix = address
    rule = ArchiveRule(
        name=compiler.name, source=source, target=source, bucket=bucket, prefix=prefix, when=form.when, where=where
    )
    return (rule,)


KIND = Kind("archive", ArchiveForm, _compile, missing={"into": "name the bucket: into: s3://${BUCKET}/games/"})
