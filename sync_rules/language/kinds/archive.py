"""archive and call, compiled: what a change does outside the tables.

Nothing outside is looked up: whether bucket and function are there shows when they are used.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Model, OwnWhere
from sync_rules.language.variables import without
from sync_rules.model.errors import UserError
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


def compile_archive(compiler: RuleCompiler, form: ArchiveForm) -> tuple[ArchiveRule, ...]:
    """The compiled rule; none, with everything reported, when something is wrong with it."""
    source = compiler.entity(form.archive, "archive")
    bucket, prefix = _address(compiler, form.into)
    where = None if source is None else compiler.own_where(form.where, source)
    if source is None or not compiler.sound:
        return ()
    rule = ArchiveRule(
        name=compiler.name, source=source, target=source, bucket=bucket, prefix=prefix, when=form.when, where=where
    )
    return (rule,)


def _address(compiler: RuleCompiler, text: str) -> tuple[str, str]:
    """The bucket, and what the objects' names begin with."""
    filled = compiler.known.filled(text, compiler.at("into"))
    try:
        bucket, prefix = parse_into(without(text) if filled is None else filled)
    except UserError as error:
        compiler.add("SR118", compiler.at("into"), str(error))
        return "", ""
    if wrong := misnamed(bucket):
        compiler.add("SR118", compiler.at("into"), wrong)
    return bucket, prefix
