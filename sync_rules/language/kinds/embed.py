"""Rules of kind `embed`: children as a map or a list inside their parent."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import Field, Tag

from sync_rules.language import defaults, links
from sync_rules.language.compiler import AttributeRef, RuleCompiler
from sync_rules.language.kinds.options import (
    Chosen,
    Kind,
    LinkOption,
    Model,
    OnDelete,
    OwnWhere,
    RenamedFrom,
    Settle,
    Sparse,
    Via,
    choose_by_type,
    format_fields,
    make_parent_rule,
    parse_fields,
    require_text,
)
from sync_rules.model.entities import Entity
from sync_rules.model.lookups import Link
from sync_rules.model.templates import Template, parse_template
from sync_rules.model.values import AttributeValue, Path
from sync_rules.rules.kinds.embed import EmbedRule
from sync_rules.rules.rule import Rule

EMBED_ITEMS_MAX: Final = 10_000
ITEM_MAX_BYTES: Final = 400 * 1024
UNITS: Final = {"B": 1, "KB": 1024}

Size = Annotated[
    Annotated[int, Field(ge=1), Tag("form:number")]
    | Annotated[str, Field(pattern=r"^[1-9][0-9]* ?(B|KB)$"), Tag("form:size")],
    choose_by_type({int: "form:number", str: "form:size"}, "a size such as 100KB"),
]


class Limit(Model):
    """How much an embedded map or list may hold; at least one of the two."""

    items: int | None = Field(default=None, ge=1, le=EMBED_ITEMS_MAX, description="The greatest number of entries.")
    bytes: Size | None = Field(default=None, description="The greatest size in bytes.", examples=["100KB", 50000])


class EmbedForm(Model):
    """embed: children as a map or a list inside their parent."""

    embed: str = Field(description="The child entity.", examples=["address"])
    into: str = Field(description="Where to: parent entity, then a path.", examples=["customer.MailingAddresses"])
    by: str | None = Field(
        default=None,
        description="What each entry is called; default: the child's key fields that its parent does not have. Of "
        "several children that claim one entry, the first by key has it, and the others are reported.",
        examples=["{address_id}", "{Label}"],
    )
    fields: Chosen | None = Field(
        default=None,
        description="Which attributes: a list, or a map to new names; default all but the child's key.",
        examples=[["street", "city"], {"line1": "street"}],
    )
    default: Any = Field(
        default=None,
        description="What an entry shows of what its child lacks: a map from the name in the entry.",
        examples=[{"city": "unknown"}],
    )
    form: Literal["map", "list"] = Field(default="map", alias="as", description="A map by `by`, or a list in `order`.")
    order: str | None = Field(
        default=None,
        description="The child's field that orders a list, and that `oldest` goes by; - before it: the other way.",
        examples=["-created_at"],
    )
    limit: Limit | None = Field(
        default=None,
        description="How much is embedded. An item cannot hold more than 400 KB.",
        examples=[{"items": 20}],
    )
    on_overflow: Literal["fail", "oldest", "omit"] = Field(
        default="fail",
        description="When there are more: fail leaves all as it was and reports it, oldest leaves out the first in "
        "order, omit writes NULL, so that readers query the children.",
    )
    where: OwnWhere = None
    link: LinkOption = {}
    via: Via = None
    sparse: Sparse = False
    on_delete: OnDelete = "keep"
    settle_seconds: Settle = 60
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: EmbedForm) -> tuple[Rule, ...]:
    child, into = compiler.entity(form.embed, "embed"), compiler.into(form.into)
    max_items, max_bytes = _compile_limits(compiler, form)
    order = _compile_order(compiler, form)
    fields = None if form.fields is None else parse_fields(compiler, form.fields)
    given = _compile_defaults(compiler, form, into, fields) if defaults.has_default(form) else {}
    if child is None or into is None:
        return ()
    compiler.own(child, form.order, "order")
    compiler.own(child, form.fields, "fields")
    where = compiler.compile_own_where(form.where, child)
    link = compiler.link(form.link, into.entity, child)
    by = None if link is None else _compile_by(compiler, form, child, link)
    choose = _choose_base_first if form.form == "list" else links.choose_closest
    find = None
    if link is not None:
        find = compiler.find(link, into.entity, child, form.via, "into", sparse=form.sparse, choose=choose)
    if form.form == "list" and find is not None and find.index:
        message = f"the children are listed through index {find.index!r}, which does not show the newest of them yet"
        compiler.add("SR215", "as", message)
    if not compiler.sound or link is None or find is None or by is None:
        return ()
    own = _list_own_fields(child, link)
    claimed = any(field not in by.fields for field in own)
    ids = tuple((field, name) for field in own for path, name in fields or () if path == (field,))
    if claimed and find.index and len(ids) < len(own):
        _report_nameless(compiler, form, find.index, own)
        return ()
    rule = EmbedRule(
        name=compiler.name,
        source=child,
        target=into.entity,
        find=find,
        settle_seconds=form.settle_seconds,
        into=into.path,
        link=link,
        where=where,
        by=by,
        fields=fields,
        shape=form.form,
        order=order,
        max_items=max_items,
        max_bytes=max_bytes,
        on_overflow=form.on_overflow,
        claimed=claimed,
        ids=ids if claimed and find.index else (),
        defaults=given,
    )
    return rule, *make_parent_rule(compiler, rule, link, find, where=where, on_delete=form.on_delete)


def _compile_defaults(
    compiler: RuleCompiler, form: EmbedForm, into: AttributeRef | None, fields: tuple[tuple[Path, str], ...] | None
) -> dict[str, AttributeValue]:
    if fields is None:
        message = "`default` goes by the names of `fields`, which are not given"
        compiler.refuse("default", message, "remove it, or name the fields")
        return {}
    if into is None:
        return {}
    entry = (*into.path, "")  # each has another name there
    paths: dict[Path, Path] = {(name,): (*entry, name) for _, name in fields}
    found = defaults.compile_defaults(compiler, form.default, into.entity, paths, "field of an entry")
    return {path[-1]: value for path, value in found.items()}


def _compile_limits(compiler: RuleCompiler, form: EmbedForm) -> tuple[int | None, int | None]:
    items, size = (form.limit.items, form.limit.bytes) if form.limit else (None, None)
    if items is None and size is None:
        location = compiler.at("limit") if form.limit else compiler.at_key("embed")
        compiler.add("SR308", location, f"{form.embed!r} is embedded without a limit")
    if isinstance(size, str):
        number, unit = re.findall(r"\d+|[A-Z]+", size)
        size = int(number) * UNITS[unit]
    if size is not None and size > ITEM_MAX_BYTES:
        compiler.add("SR106", compiler.at("limit", "bytes"), f"expected at most 400KB, found {size} bytes")
    return items, size


def _compile_order(compiler: RuleCompiler, form: EmbedForm) -> tuple[Path, bool] | None:
    if form.order is not None:
        path = compiler.path(form.order.removeprefix("-"), "order")
        return None if path is None else (path, form.order.startswith("-"))
    if form.form == "list":
        compiler.add("SR413", "as", "the list has no order: it is sorted by what `by` makes of each child")
    elif form.on_overflow == "oldest":
        compiler.add("SR413", "on_overflow", "there is no order: `oldest` goes by what `by` makes of each child")
    return None


def _choose_base_first(found: list[links.Way], via: str | None) -> links.Way | None:
    """Choose the Query for a list: that of the children's own table, if its key lists them at all."""
    base = [way for way in found if way.find.index is None]
    return links.choose_closest(base if base and via is None else found, via)


def _list_own_fields(child: Entity, link: Link) -> list[str]:
    """The fields of a child's key that its parent does not have: they tell it from its siblings."""
    known = {ref.field for _, ref in link}
    return [field for field in child.identity if field not in known]


def _compile_by(compiler: RuleCompiler, form: EmbedForm, child: Entity, link: Link) -> Template | None:
    """The template of an entry's name. In a list it must tell a child from its siblings; two entries of a map may be
    claimed by one name, but not all.
    """
    own = _list_own_fields(child, link)
    named = "#".join(f"{{{field}}}" for field in own)
    text = named or child.name if form.by is None else form.by
    by = compiler.parse("SR109", "by", parse_template, text)
    if by is None:
        return None
    require_text(compiler, child, by.fields, "by")
    compiler.own(child, by.fields, "by", quotes=False)
    missing = [field for field in own if field not in by.fields]
    parents = {ref.field for _, ref in link}
    if missing and (form.form == "list" or parents.issuperset(by.fields)):
        message = f"{text!r} does not hold {format_fields(missing)}: two children could have one entry"
        compiler.add("SR208", "by", message, f"by: {named!r}")
        return None
    return by


def _report_nameless(compiler: RuleCompiler, form: EmbedForm, index: str, own: list[str]) -> None:
    """Report entries that do not say whose they are, which a lagging index could not tell either."""
    said = [*form.fields] if isinstance(form.fields, list) else []
    message = (
        f"the children are listed through index {index!r}, and an entry does not show its child's {format_fields(own)}"
    )
    fields = ", ".join([*(field for field in own if field not in said), *said] or own)
    cure = f"fields: [{fields}{', ...' if not said else ''}]"
    if isinstance(form.fields, dict):
        cure = f"add to fields: {', '.join(f'{field}: {field}' for field in own if field not in form.fields)}"
    compiler.add("SR219", "by", message, cure)


KIND = Kind("embed", EmbedForm, _compile, meant={"limit": "limit: {{items: {}}}"})
