"""Rules of kind `archive`: deleted items are kept in S3."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler, key_types
from sync_rules.language.kinds.options import Kind, Model, OwnWhere, RenamedFrom
from sync_rules.language.variables import blank_variables
from sync_rules.model.entities import Entity
from sync_rules.rules.kinds.archive import ArchiveRule, check_bucket_name, parse_into


class ArchiveForm(Model):
    """archive: items that go are kept in S3 as they last were."""

    archive: str = Field(description="The entity whose items are kept.", examples=["game"])
    when: Literal["expired", "deleted"] = Field(
        default="expired", description="expired: removed by Time to Live. deleted: removed by anybody."
    )
    ttl: str | None = Field(
        default=None,
        description="The table's attribute of Time to Live: tables that are created get it, run and doctor check it.",
        examples=["expires_at"],
    )
    into: str = Field(
        description="The bucket and the beginning of the objects' names; ${VAR} is taken from the environment.",
        examples=["s3://${BUCKET}/games/"],
    )
    where: OwnWhere = None
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: ArchiveForm) -> tuple[ArchiveRule, ...]:
    source = compiler.entity(form.archive, "archive")
    filled = compiler.known.fill_variables(form.into, compiler.at("into"))
    address = compiler.parse("SR118", "into", parse_into, blank_variables(form.into) if filled is None else filled)
    if address is not None and (wrong := check_bucket_name(address[0])):
        compiler.add("SR118", "into", wrong)
    where = None if source is None else compiler.own_where(form.where, source)
    ttl = None if source is None else time_to_live(compiler, source, form.ttl)
    if source is None or address is None or not compiler.sound:
        return ()
    bucket, prefix = address
    rule = ArchiveRule(
        name=compiler.name,
        source=source,
        target=source,
        bucket=bucket,
        prefix=prefix,
        when=form.when,
        where=where,
        ttl=ttl,
    )
    return (rule,)


def time_to_live(compiler: RuleCompiler, entity: Entity, text: str | None, option: str = "ttl") -> str | None:
    """The attribute of Time to Live that an option names; None, with the problem reported, for what cannot be one."""
    path = compiler.option_path(text, option)
    if path is None:
        return None
    if len(path) > 1:
        message = f"{text} is inside of a map: DynamoDB takes an attribute of the item itself"
        compiler.add("SR125", option, message)
        return None
    types = {**{one.name: one.type for one in entity.table.key_attributes}, **key_types(entity)}
    if types.get(path[0], "N") != "N":
        message = f"keys type {text} as {types[path[0]]}, but Time to Live needs a number (seconds since 1970)"
        compiler.add("SR125", option, message)
        return None
    return path[0]


KIND = Kind("archive", ArchiveForm, _compile, missing={"into": "name the bucket: into: s3://${BUCKET}/games/"})
