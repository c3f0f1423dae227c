"""Rules of kind `history`: an item for each version of an item, as the application numbers them.

The fields of the version's key come from the item's fields of the same names, or of those that `link` gives. Those that
do not name the item say which version it is.
"""

from __future__ import annotations

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.mirror import Mirrored, check_attributes, list_key_fields, note_own_attributes
from sync_rules.language.kinds.options import Kind, Model, OwnWhere, RenamedFrom, format_fields
from sync_rules.model.entities import Entity
from sync_rules.model.lookups import Link
from sync_rules.model.values import show_path
from sync_rules.rules.kinds.history import HistoryRule, list_version_fields


class HistoryForm(Model):
    """history: an item for each version of an item."""

    history: str = Field(description="The source entity.", examples=["product"])
    into: str = Field(description="The entity of the versions.", examples=["product_version"])
    link: dict[str, str] = Field(
        default={},
        description="Which attribute of the source fills a field of the version's key, where the names differ: {field "
        "of the version: attribute of the source}.",
        examples=[{"version": "revision"}],
    )
    attributes: Mirrored = Field(
        default="all",
        description="What a version has besides its key: a list of attributes, a map to new names, or all.",
    )
    where: OwnWhere = None
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: HistoryForm) -> tuple[HistoryRule, ...]:
    source, target = compiler.entity(form.history, "history"), compiler.entity(form.into, "into")
    chosen = form.attributes
    attributes = compiler.parse_renames(chosen, "attributes") if isinstance(chosen, list | dict) else None
    if source is None or target is None:
        return ()
    note_own_attributes(compiler, source, target, chosen)
    if source is target:
        compiler.add("SR310", "into", f"versions of {source.name!r} would be items of {source.name!r}")
    where = compiler.compile_own_where(form.where, source)
    fields = list_key_fields(compiler, source, target, form.link)
    if not compiler.sound or fields is None or not _has_version_key(compiler, source, target, fields):
        return ()
    rule = HistoryRule(
        name=compiler.name, source=source, target=target, fields=fields, attributes=attributes, each=None, where=where
    )
    check_attributes(compiler, rule)
    return (rule,) if compiler.sound else ()


def _has_version_key(compiler: RuleCompiler, source: Entity, target: Entity, fields: Link) -> bool:
    """Report a key that does not say whose version it is, and one that does not say which."""
    own = {source.ref(field): field for field in source.identity}
    in_key = {ref: field for field, ref in fields if field in target.identity}
    missing = [field for ref, field in own.items() if ref not in in_key]
    fixed = [(field, ref) for ref, field in in_key.items() if ref not in own and not source.drop_key_paths([ref.path])]
    if missing:
        message = f"the key of {target.name!r} does not hold {format_fields(missing)} of {source.name!r}"
        cure = f"put {format_fields(missing)} into the key of {target.name!r}, or name by `link` the field with it"
        compiler.add("SR228", "into", message, cure)
    elif not list_version_fields(source, target, fields):
        message = f"nothing in the key of {target.name!r} says which version of {source.name!r} it is"
        if not fixed:
            compiler.add("SR229", "into", message)
        for field, ref in fixed:
            found = f"{message}: {show_path(ref.path)!r} is of the item's own key, which never changes"
            cure = f"name the attribute that changes with each version: link: {{{field}: revision}}"
            compiler.add("SR229", compiler.at("link", field), found, cure)
    return compiler.sound


KIND = Kind(
    "history",
    HistoryForm,
    _compile,
    sentence="history ENTITY into ENTITY",
    example="history product into product_version",
    missing={"into": "name the entity of the versions: into: product_version"},
)
