"""copy, compiled: whose attributes go where, by which link, found how.

The source is what the copied paths begin with, the target what `into` begins with.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from sync_rules.language import links
from sync_rules.language.compiler import AttributeRef, RuleCompiler
from sync_rules.language.kinds.options import LinkOption, Model, Names, Renames, Settle
from sync_rules.language.problems import Location
from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.values import Path, parse_path, show_path
from sync_rules.model.where import Where, compile_where
from sync_rules.rules.kinds.copy import CopyRule

# What may be written in several forms is told apart by the type of its value.
COPY_FORMS: dict[type[Any], str] = {str: "form:one", list: "form:several", dict: "form:renamed"}


def copy_form(value: Any) -> str | None:
    """Which form `copy` is written in."""
    return COPY_FORMS.get(type(value))


Copied = Annotated[
    Annotated[str, Tag("form:one")] | Annotated[Names, Tag("form:several")] | Annotated[Renames, Tag("form:renamed")],
    Discriminator(copy_form),
]


class CopyForm(Model):
    """copy: attributes of a source on every item that points to it."""

    copied: Copied = Field(
        alias="copy",
        description="What is copied: one path (user.name), a list of paths, or a map from path to new name.",
        examples=["user.name", ["author.name", "author.bio"], {"author.name": "author_name"}],
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
    via: str | None = Field(default=None, description="The index of the target's table by which targets are found.")
    on_delete: Literal["keep", "clear", "delete", "restrict"] = Field(
        default="keep",
        description="When the source is deleted: keep the copy, clear it, delete the whole target, or report that "
        "there still are targets.",
    )
    strict: bool = Field(
        default=False,
        description="Copy in a transaction that checks the source: exact when it is written, at four times the cost.",
    )
    settle_seconds: Settle = 60


def compile_copy(compiler: RuleCompiler, form: CopyForm) -> tuple[CopyRule, ...]:
    """The compiled rule; none, with everything reported, when something is wrong with it."""
    mapping = _mapping(compiler, form)
    if form.mode == "snapshot" and form.on_delete != "keep":
        compiler.add("SR116", compiler.at("on_delete"), f"a snapshot cannot {form.on_delete} with its source")
        mapping = None
    if mapping is None:
        return ()
    source, target, pairs = mapping
    where = _where(compiler, form, source, target)
    link = compiler.link(form.link, source, target)
    if link is not None and form.strict and links.is_self_link(source, target, link):
        compiler.add("SR205", compiler.at("strict"), f"{source.name!r} is its own source here")
        link = None
    find = None if link is None else compiler.find(link, source, target, form.via, "into", choose=links.choose)
    if link is None or find is None or where is False:
        return ()
    rule = CopyRule(
        name=compiler.name,
        source=source,
        target=target,
        find=find,
        settle_seconds=form.settle_seconds,
        link=link,
        where=where,
        on_delete=form.on_delete,
        strict=form.strict,
        mapping=pairs,
        mode=form.mode,
    )
    return (rule,)


def _mapping(compiler: RuleCompiler, form: CopyForm) -> tuple[Entity, Entity, tuple[tuple[Path, Path], ...]] | None:
    """The source, the target, and which path of the one goes to which of the other."""
    into = compiler.resolve(form.into, compiler.at("into"))
    given = _sources(compiler, form)
    sources = [(compiler.resolve(text, location, attribute=True), rename) for text, location, rename in given]
    pairs: list[tuple[Path, Path]] = []
    sound = into is not None
    for (ref, rename), (text, location, _) in zip(sources, given, strict=True):
        last = _last_name(compiler, ref, rename, location)
        if ref is None or last is None or into is None:
            sound = False
            continue
        pairs.append((ref.path, into.path if isinstance(form.copied, str) else into.path + last))
        first = next(other.entity for other, _ in sources if other is not None)
        if ref.entity != first:
            compiler.add("SR113", location, f"{text!r} is not of {first.name!r}, as the rule's first source is")
            sound = False
    if into is not None and isinstance(form.copied, str) and not into.path:
        name = show_path(sources[0][0].path[-1:]) if sources[0][0] else "attribute"
        message = f"{form.into!r} is an entity: expected the attribute that takes the copy"
        compiler.add("SR108", compiler.at("into"), message, f"into: {form.into}.{name}")
        sound = False
    if not sound or into is None:
        return None
    source = next(ref.entity for ref, _ in sources if ref is not None)
    return source, into.entity, tuple(pairs)


def _sources(compiler: RuleCompiler, form: CopyForm) -> list[tuple[str, Location, str | None]]:
    """Each source as (path, where it stands, the name it takes)."""
    match form.copied:
        case str(text):
            return [(text, compiler.at("copy"), None)]
        case list(texts):
            return [(text, compiler.at("copy", index), None) for index, text in enumerate(texts)]
        case renames:
            return [(text, compiler.at_key("copy", text), new) for text, new in renames.items()]


def _last_name(compiler: RuleCompiler, ref: AttributeRef | None, rename: str | None, location: Location) -> Path | None:
    if rename is None:
        return ref.path[-1:] if ref is not None else None
    try:
        return parse_path(rename)
    except UserError as error:
        compiler.add("SR108", location, str(error))
        return None


def _where(compiler: RuleCompiler, form: CopyForm, source: Entity, target: Entity) -> Where | Literal[False] | None:
    """The compiled condition, None where none is given, False when it is not one."""
    if form.where is None:
        return None
    try:
        where = compile_where(form.where, source.name)
    except UserError as error:
        compiler.add("SR114", compiler.at("where"), str(error))
        return False
    if (target.name,) in where.target_paths:
        message = f"{target.name!r} is read as an attribute of the target; names without an entity are the target's"
        compiler.add("SR408", compiler.at("where"), message)
    return where
