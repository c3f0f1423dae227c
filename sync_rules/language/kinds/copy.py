"""Rules of kind `copy`: attributes of a source, on every item that points to it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from sync_rules.language import defaults, links
from sync_rules.language.compiler import RuleCompiler, list_key_types
from sync_rules.language.kinds.options import (
    Kind,
    LinkOption,
    Model,
    Names,
    RenamedFrom,
    Renames,
    Settle,
    Sparse,
    Via,
    choose_by_type,
)
from sync_rules.language.problems import Location
from sync_rules.model.entities import Entity
from sync_rules.model.lookups import Link
from sync_rules.model.values import AttributeValue, Path, show_path
from sync_rules.model.where import Where, compile_where
from sync_rules.rules.kinds.copy import CopyRule

Copied = Annotated[
    Annotated[str, Tag("form:one")] | Annotated[Names, Tag("form:several")] | Annotated[Renames, Tag("form:renamed")],
    choose_by_type(
        {str: "form:one", list: "form:several", dict: "form:renamed"},
        "a path, a list of paths, or a map from path to new name",
    ),
]


class CopyForm(Model):
    """copy: attributes of a source on every item that points to it."""

    copied: Copied = Field(
        alias="copy",
        description="What is copied: one path (user.name), a list of paths, or a map from path to new name. With "
        "on_delete: delete or restrict also an entity (user): then nothing is copied.",
        examples=["user.name", ["author.name", "author.bio"], {"author.name": "author_name"}, "user"],
    )
    into: str = Field(
        description="Where to: for one path the whole path of the copy (order.user_name); for several, the entity or "
        "the map in it that takes them (book, book.author).",
    )
    where: str | None = Field(
        default=None,
        description="JMESPath. Bare names are attributes of the target, user.active is one of the source user.",
        examples=["status == 'OPEN'"],
    )
    mode: Literal["live", "snapshot"] = Field(
        default="live", description="live: kept equal for ever. snapshot: copied once, when the target has none."
    )
    link: LinkOption = {}
    via: Via = None
    sparse: Sparse = False
    on_delete: Literal["keep", "clear", "delete", "restrict"] = Field(
        default="keep",
        description="When the source is deleted: keep the copy, clear it, delete the whole target, or report that "
        "there still are targets.",
    )
    default: Any = Field(
        default=None,
        description="The value where there is none to copy: one value for one path, a map from the copy's name "
        "to its value for several. on_delete is then clear, if it is not said.",
        examples=["unknown", 0],
    )
    strict: bool = Field(
        default=False,
        description="Copy in a transaction that checks the source: exact when it is written, at four times the cost.",
    )
    settle_seconds: Settle = 60
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: CopyForm) -> tuple[CopyRule, ...]:
    of_entity = isinstance(form.copied, str) and form.copied in compiler.known.entities
    mapping = _compile_entities(compiler, form) if of_entity else _compile_mapping(compiler, form)
    if form.mode == "snapshot" and form.on_delete != "keep":
        compiler.add("SR116", "on_delete", f"a snapshot cannot {form.on_delete} with its source")
        mapping = None
    if mapping is None:
        return ()
    source, target, pairs = mapping
    said = defaults.has_default(form)
    if said and form.mode == "snapshot":
        message = "a default would count as the snapshot: no source that comes later would be copied"
        compiler.refuse("default", message, "remove it, or use mode: live")
    given = _compile_defaults(compiler, form, target, pairs) if said else {}
    where = _compile_where(compiler, form, source, target)
    link = compiler.link(form.link, source, target, within=True)
    if link is not None and form.strict and links.is_self_link(source, target, link):
        compiler.add("SR205", "strict", f"{source.name!r} is its own source here")
        link = None
    if link is None:
        return ()
    find = None
    pull_only = _check_pull_only(compiler, form, link, source, target)
    if not pull_only:
        find = compiler.find(link, source, target, form.via, "into", sparse=form.sparse, choose=links.choose)
    if (find is None and not pull_only) or not compiler.sound:
        return ()
    rule = CopyRule(
        name=compiler.name,
        source=source,
        target=target,
        find=find,
        settle_seconds=form.settle_seconds,
        link=link,
        where=where,
        on_delete="clear" if said and "on_delete" not in form.model_fields_set else form.on_delete,
        strict=form.strict,
        defaults=given,
        mapping=pairs,
        mode=form.mode,
    )
    return (rule,)


def _check_pull_only(compiler: RuleCompiler, form: CopyForm, link: Link, source: Entity, target: Entity) -> bool:
    """True for a snapshot whose targets nothing lists: their own records fill them. Says so, and what then does not."""
    if form.mode != "snapshot" or form.via is not None or form.sparse:
        return False
    if (
        links.choose(links.list_ways(source, target, link, compiler.known.list_sure_attributes(target)), None)
        is not None
    ):
        return False
    nothing = f"nothing lists the items of {target.name!r} by their {source.name!r}"
    if "settle_seconds" in form.model_fields_set:
        compiler.refuse("settle_seconds", f"{nothing}: there is no second look", "remove it, or add an index")
    cure = f"if targets may come before their source, {links.suggest_index(source, target, link)}"
    compiler.add("SR419", "mode", f"{nothing}: a target created before its source stays empty", cure)
    return True


def _compile_entities(compiler: RuleCompiler, form: CopyForm) -> tuple[Entity, Entity, tuple[()]] | None:
    """The source and the target of a rule that copies nothing; options for copies are reported."""
    source, into = compiler.entity(str(form.copied), "copy"), compiler.resolve(form.into, "into")
    nothing = f"nothing of {form.copied!r} is copied"
    if form.on_delete not in ("delete", "restrict"):
        message = f"{form.copied!r} is an entity: expected one of its attributes, such as {form.copied}.name"
        cure = f"copy: {form.copied}.ATTRIBUTE; or on_delete: delete or restrict, to delete or report with the source"
        compiler.add("SR108", "copy", message, cure)
        return None
    if into is not None and into.path:
        message = f"{form.into!r} is an attribute, and {nothing}"
        compiler.add("SR108", "into", message, f"into: {into.entity.name}; or copy: {form.copied}.ATTRIBUTE")
    for option in ("default", "strict", "mode"):
        if option in form.model_fields_set:
            compiler.refuse(option, nothing, "remove it")
    return None if source is None or into is None or not compiler.sound else (source, into.entity, ())


def _compile_mapping(
    compiler: RuleCompiler, form: CopyForm
) -> tuple[Entity, Entity, tuple[tuple[Path, Path], ...]] | None:
    """The source, the target, and the paths copied from the one to the other."""
    into = compiler.resolve(form.into, "into")
    given = _list_sources(compiler, form)
    refs = [compiler.resolve(text, location, attribute=True) for text, location, _ in given]
    first = next((ref.entity for ref in refs if ref is not None), None)
    pairs: list[tuple[Path, Path]] = []
    for ref, (text, location, rename) in zip(refs, given, strict=True):
        own = None if ref is None else ref.path[-1:]
        last = own if rename is None else compiler.path(rename, location)
        if ref is None or last is None or into is None or first is None:
            continue
        pairs.append((ref.path, into.path if isinstance(form.copied, str) else into.path + last))
        if rename is not None and not into.path:
            compiler.own(into.entity, rename, "copy", text, written=True)
        if ref.entity != first:
            compiler.add("SR113", location, f"{text!r} is not of {first.name!r}, as the rule's first source is")
    if into is not None and isinstance(form.copied, str) and not into.path:
        name = show_path(refs[0].path[-1:]) if refs[0] else "attribute"
        message = f"{form.into!r} is an entity: expected the attribute that takes the copy"
        compiler.add("SR108", "into", message, f"into: {form.into}.{name}")
    if not compiler.sound or into is None or first is None:
        return None
    return first, into.entity, tuple(pairs)


def _list_sources(compiler: RuleCompiler, form: CopyForm) -> list[tuple[str, Location, str | None]]:
    """Each source as (path, its location, the name its copy takes)."""
    match form.copied:
        case str(text):
            return [(text, compiler.at("copy"), None)]
        case list(texts):
            return [(text, compiler.at("copy", index), None) for index, text in enumerate(texts)]
        case renames:
            return [(text, compiler.at_key("copy", text), new) for text, new in renames.items()]


def _compile_defaults(
    compiler: RuleCompiler, form: CopyForm, target: Entity, pairs: tuple[tuple[Path, Path], ...]
) -> dict[Path, AttributeValue]:
    if isinstance(form.copied, str):
        return defaults.compile_default(compiler, form.default, target, pairs[0][1])
    into = compiler.resolve(form.into, "into")
    outer = len(into.path) if into is not None else 0
    return defaults.compile_defaults(compiler, form.default, target, {copy[outer:]: copy for _, copy in pairs})


def _compile_where(compiler: RuleCompiler, form: CopyForm, source: Entity, target: Entity) -> Where | None:
    if form.where is None:
        return None
    where = compiler.parse("SR114", "where", compile_where, form.where, source.name, list_key_types(target))
    if where is not None and (target.name,) in where.target_paths:
        message = f"{target.name!r} is read as an attribute of the target; names without an entity are the target's"
        compiler.add("SR408", "where", message)
    return where


KIND = Kind(
    "copy",
    CopyForm,
    _compile,
    sentence="copy ENTITY.ATTRIBUTE into ENTITY.ATTRIBUTE",
    example="copy user.name into order.user_name",
    gives=True,
    several=True,
    missing={"into": "say where the copy goes: into: order.user_name"},
)
