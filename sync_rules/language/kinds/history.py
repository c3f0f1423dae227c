"""Rules of kind `history`: an item for each version of an item, as the application numbers them.

The fields of the version's key come from the item's fields of the same names, or of those that `link` gives. Those that
do not name the item say which version it is.
"""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.mirror import Mirrored, check_attributes, key_fields, own_attributes
from sync_rules.language.kinds.options import Kind, Model, OwnWhere, RenamedFrom, format_fields
from sync_rules.model.entities import Entity
from sync_rules.model.lookups import Link
from sync_rules.model.values import show_path
from sync_rules.rules.kinds.gathered_rule import MEMBERS_MAX_ITEMS
from sync_rules.rules.kinds.history import HistoryRule, KeepRule, NewestRule, VersionRule, list_version_fields

Beside = TypeVar("Beside", NewestRule, KeepRule)


class KeepForm(Model):
    """keep: the versions that stay."""

    count: int = Field(
        ge=1, le=MEMBERS_MAX_ITEMS, description="The number of newest versions of an item.", examples=[20]
    )


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
        description="What a version holds beside its key: a list of attributes, a map to new names, or all.",
    )
    newest: bool = Field(
        default=False,
        description="Keep the newest state under version 0 too, such as SK: V#000000, with its number beside.",
    )
    keep: KeepForm | None = Field(
        default=None, description="Delete the versions of an item beyond the newest.", examples=[{"count": 20}]
    )
    where: OwnWhere = None
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: HistoryForm) -> tuple[VersionRule, ...]:
    source, target = compiler.entity(form.history, "history"), compiler.entity(form.into, "into")
    chosen = form.attributes
    attributes = compiler.parse_renames(chosen, "attributes") if isinstance(chosen, list | dict) else None
    if source is None or target is None:
        return ()
    own_attributes(compiler, source, target, chosen)
    if source is target:
        compiler.add("SR310", "into", f"versions of {source.name!r} would be items of {source.name!r}")
    where = compiler.own_where(form.where, source)
    fields = key_fields(compiler, source, target, form.link)
    if not compiler.sound or fields is None or not _names_versions(compiler, source, target, fields):
        return ()
    version = _version(compiler, source, target, fields) if form.newest else ""
    if form.keep is not None:
        _check_keep(compiler, source, target, fields)
    rule = HistoryRule(
        name=compiler.name,
        source=source,
        target=target,
        fields=fields,
        attributes=attributes,
        each=None,
        where=where,
        version=version,
    )
    check_attributes(compiler, rule)
    if not compiler.sound:
        return ()
    newest = (_newest(rule),) if version else ()
    if form.keep is None:
        return (rule, *newest)
    kept = _beside(KeepRule, rule, "keep", keep=form.keep.count)
    return (replace(rule, kept=kept), *newest, kept)


def _check_keep(compiler: RuleCompiler, source: Entity, target: Entity, fields: Link) -> None:
    """Report versions of one item that a Query does not list by their numbers."""
    found = list_version_fields(source, target, fields)
    partition, *sort = (target.templates[one.name] for one in target.table.key)
    ttl = f"; or let versions expire by a rule: {{derive: {target.name}.expires_at, as: 'ttl(changed_at, 90d)'}}"
    name = target.table.sort.name if target.table.sort is not None else ""
    cure = f'put it into the sort key alone, such as {name or "SK"}: "V#{{{found[0]}:pad(6)}}"'
    if len(found) > 1:
        message = f"{format_fields(found)} together identify a version of {source.name!r}, and have no single order"
        cure = "put one of them into the key"
    elif not sort or found[0] in partition.fields:
        message = f"the versions of one {source.name!r} are in partitions of their own: {{{found[0]}}} is in their key"
    elif target.table.sort is not None and target.table.sort.type == "S" and found[0] not in dict(sort[0].pads):
        message = f"{sort[0].text!r} sorts as text, 10 before 9: nothing says which versions are the newest"
        cure = f"write {{{found[0]}:pad(6)}}"
        if sort[0].text.startswith(f"{{{found[0]}"):
            cure = f'write {name}: "V#{{{found[0]}:pad(6)}}"'
    elif target.table.sort is not None and target.table.sort.type == "B":
        message = f"{name!r} is of type B: nothing says which versions are the newest"
        cure = f"declare {name} as N"
    elif target.table.sort is not None and target.table.sort.type == "S" and sort[0].text.startswith(f"{{{found[0]}"):
        message = f"no text in {sort[0].text!r} tells versions from other items before their number is known"
        cure = f'put a text before it: {name}: "V#{{{found[0]}:pad(6)}}"'
    elif sort[0].fields[-1] != found[0]:
        message = f"{sort[0].text!r} lists the versions of all {source.name!r} by number, and not those of one"
        behind = sort[0].fields[sort[0].fields.index(found[0]) + 1 :]
        cure = f"put {{{found[0]}}} behind {format_fields(behind)}"
    else:
        return
    compiler.add("SR230", "keep", message, cure + ttl)


def _beside(kind: type[Beside], rule: HistoryRule, part: str, **changes: Any) -> Beside:
    """A rule of another kind with the same versions."""
    given = {one.name: getattr(rule, one.name) for one in dataclass_fields(VersionRule)}
    return kind(**(given | {"name": f"{rule.name}.{part}"} | changes))


def _version(compiler: RuleCompiler, source: Entity, target: Entity, fields: Link) -> str:
    """The one field of the key that says which version it is; reports several, and one that cannot be 0."""
    found = list_version_fields(source, target, fields)
    binary = [one.name for one in target.table.key if one.type == "B" and target.templates[one.name].whole in found]
    if len(found) > 1:
        message = (
            f"{format_fields(found)} together identify a version of {source.name!r}, but version 0 needs a single field"
        )
        compiler.add("SR120", "newest", message, "remove newest; or put one of them into the key")
        return ""
    if binary:
        message = f"{binary[0]!r} is of type B, and version 0 is a number or a text"
        compiler.add("SR120", "newest", message, f"remove newest; or declare {binary[0]} as S or N")
        return ""
    return found[0]


def _newest(rule: HistoryRule) -> NewestRule:
    """The rule for version 0, with the version number as an attribute unless that name is taken."""
    attributes, (number,) = rule.attributes, (ref for field, ref in rule.fields if field == rule.version)
    shown = (rule.version,)
    taken = {to[0] for _, to in attributes or ()} | {attribute.name for attribute in rule.target.table.key_attributes}
    if attributes is not None and number.template is None and rule.version not in taken:
        attributes = (*attributes, (number.path, shown))
    own = tuple(pair for pair in rule.fields if pair[0] != rule.version)
    return _beside(NewestRule, rule, "newest", fields=own, attributes=attributes)


def _names_versions(compiler: RuleCompiler, source: Entity, target: Entity, fields: Link) -> bool:
    """Report a key that does not say whose version it is, and one that does not say which."""
    own = {source.ref(field): field for field in source.identity}
    in_key = {ref: field for field, ref in fields if field in target.identity}
    missing = [field for ref, field in own.items() if ref not in in_key]
    fixed = [(field, ref) for ref, field in in_key.items() if ref not in own and not source.drop_key_paths([ref.path])]
    if missing:
        message = f"the key of {target.name!r} does not hold {format_fields(missing)} of {source.name!r}"
        cure = f"put {format_fields(missing)} into the key of {target.name!r}, or say by link which field holds it"
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
    meant={"keep": "keep: {{count: {}}}"},
)
