"""embed and collect, compiled: what is made of many items on the one that they point to.

Law: as of `desk`. What is kept of an item must name it again: an entry its child, an element its edge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sync_rules.language import links
from sync_rules.language.compiler import Desk
from sync_rules.language.kinds.registry import CollectForm, EmbedForm
from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.lookups import Link
from sync_rules.model.templates import Template, parse_template
from sync_rules.model.values import Path, show_path
from sync_rules.model.where import compile_where
from sync_rules.rules.kinds.collect import CollectRule, Element, parse_element
from sync_rules.rules.kinds.embed import EmbedRule
from sync_rules.rules.rule import Rule

UNITS = {"B": 1, "KB": 1024}
ITEM_MAX_BYTES = 400 * 1024


# ---------------------------------------------------------------- embed
def compile_embed(desk: Desk, form: EmbedForm) -> tuple[Rule, ...]:
    """The rule, and the one beside it for parents that are deleted; none when something is wrong."""
    child, into = desk.entity(form.embed, "embed"), desk.into(form.into)
    max_items, max_bytes = _limits(desk, form)
    order = _order(desk, form)
    fields = None if form.fields is None else desk.renamed(form.fields, "fields")
    for _, name in fields or ():
        if len(name) > 1:
            message = f"{show_path(name)!r} is inside a map: an entry is flat"
            desk.add("SR120", desk.at("fields"), message, f"give it a name of its own: {name[-1]}")
    if child is None or into is None:
        return ()
    where = desk.own_where(form.where, child)
    link = desk.link(form.link, into.entity, child)
    by = None if link is None else _by(desk, form.by, child, link)
    choose = _base_first if form.form == "list" else links.closest
    find = None if link is None else desk.find(link, into.entity, child, form.via, "into", choose=choose)
    if form.form == "list" and find is not None and find.index:
        message = f"the children are listed through index {find.index!r}, which does not show the newest of them yet"
        desk.add("SR215", desk.at("as"), message)
    if not desk.sound or link is None or find is None or by is None:
        return ()
    rule = EmbedRule(
        name=desk.name,
        source=child,
        target=into.entity,
        find=find,
        settle_seconds=form.settle_seconds,
        into=into.path,
        link=link,
        where=where,
        by=by,
        fields=None if fields is None else tuple((path, name[0]) for path, name in fields),
        shape=form.form,
        order=order,
        max_items=max_items,
        max_bytes=max_bytes,
        on_overflow=form.on_overflow,
    )
    return rule, *desk.when_parent_goes(rule, link, find, where=where, on_delete=form.on_delete)


def _limits(desk: Desk, form: EmbedForm) -> tuple[int | None, int | None]:
    """How many entries and bytes there may be."""
    items, size = (form.limit.items, form.limit.bytes) if form.limit else (None, None)
    if items is None and size is None:
        spot = desk.at("limit") if form.limit else desk.at_key("embed")
        desk.add("SR308", spot, f"{form.embed!r} is embedded without a limit")
    if isinstance(size, str):
        number, unit = re.findall(r"\d+|[A-Z]+", size)
        size = int(number) * UNITS[unit]
    if size is not None and size > ITEM_MAX_BYTES:
        desk.add("SR106", desk.at("limit", "bytes"), f"expected at most 400KB, found {size} bytes")
    return items, size


def _order(desk: Desk, form: EmbedForm) -> tuple[Path, bool] | None:
    if form.order is not None:
        path = desk.path(form.order.removeprefix("-"), desk.at("order"))
        return None if path is None else (path, form.order.startswith("-"))
    if form.form == "list":
        desk.add("SR413", desk.at("as"), "the list has no order: it is sorted by what `by` makes of each child")
    elif form.on_overflow == "oldest":
        desk.add("SR413", desk.at("on_overflow"), "there is no order: `oldest` goes by what `by` makes of each child")
    return None


def _base_first(found: list[links.Way], via: str | None) -> links.Way | None:
    """How the entries of a list are found: by their own table, if its key lists them at all."""
    base = [way for way in found if way.find.index is None]
    return links.closest(base if base and via is None else found, via)


def _by(desk: Desk, text: str | None, child: Entity, link: Link) -> Template | None:
    """What an entry is called: it must tell a child from its siblings."""
    known = {ref.field for _, ref in link}
    own = [field for field in child.identity if field not in known]
    if text is None:
        text = "#".join(f"{{{field}}}" for field in own) or child.name
    try:
        by = parse_template(text)
    except UserError as error:
        desk.add("SR109", desk.at("by"), str(error))
        return None
    _has_texts(desk, child, by.fields, "by")
    missing = [field for field in own if field not in by.fields]
    if missing:
        message = f"{text!r} does not hold {_braced(missing)}: two children could have one entry"
        desk.add("SR208", desk.at("by"), message, f"by: {'#'.join(f'{{{field}}}' for field in own)!r}")
        return None
    return by


# ---------------------------------------------------------------- collect
def compile_collect(desk: Desk, form: CollectForm) -> tuple[Rule, ...]:
    """The rule, and the one beside it for nodes that are deleted; none when something is wrong."""
    edge, into = desk.entity(form.collect, "collect"), desk.into(form.into)
    if into is not None and len(into.path) > 1:
        message = f"{show_path(into.path)!r} is inside a map: expected a top-level attribute of {into.entity.name!r}"
        desk.add("SR309", desk.at("into"), message, f"into: {into.entity.name}.{show_path(into.path[-1:])}")
    element = _element(desk, form)
    if edge is None or into is None:
        return ()
    if element is not None:
        _has_texts(desk, edge, element.fields, "as")
    where, omit = desk.own_where(form.where, edge), desk.own_where(form.omit, edge, "omit")
    link = desk.link(form.link, into.entity, edge)
    if link is not None and element is not None:
        _names_edge(desk, element, edge, into.entity, link)
    find = None if link is None else desk.find(link, into.entity, edge, form.via, "into")
    if not desk.sound or link is None or find is None or element is None:
        return ()
    rule = CollectRule(
        name=desk.name,
        source=edge,
        target=into.entity,
        find=find,
        settle_seconds=form.settle_seconds,
        into=into.path[0],
        element=element,
        numbers=form.numbers,
        where=where,
        omit=omit,
        link=link,
        strict=form.strict,
    )
    parts = [f"({form.where})"] * (where is not None) + [f"!({form.omit})"] * (omit is not None)
    collected = compile_where(" && ".join(parts), "") if parts else None
    return rule, *desk.when_parent_goes(rule, link, find, where=collected, on_delete=form.on_delete)


def _element(desk: Desk, form: CollectForm) -> Element | None:
    try:
        element = parse_element(form.element)
    except UserError as error:
        desk.add("SR109", desk.at("as"), str(error))
        return None
    if form.numbers and element.template.whole is None:
        message = f"{form.element!r} is no number: expected one field and no text"
        desk.add("SR120", desk.at("as"), message, "as: '{field}', or drop numbers")
    return element


def _names_edge(desk: Desk, element: Element, edge: Entity, node: Entity, link: Link) -> None:
    """Whoever has the node's key and an element must be able to read the edge."""
    known = {ref.field for _, ref in link} | set(element.fields)
    for attribute in edge.table.key:
        if attribute.name in known:  # the key attribute by its own name
            known |= set(edge.templates[attribute.name].fields)
    missing = [field for field in edge.identity if field not in known]
    if missing:
        message = f"the key of {node.name!r} and {element.template.text!r} do not hold {_braced(missing)}"
        cure = f"as: {element.template.text + ''.join(f'-{{{field}}}' for field in missing)!r}"
        desk.add("SR207", desk.at("as"), message, cure)


def _has_texts(desk: Desk, entity: Entity, fields: Iterable[str], option: str) -> None:
    """What is called by some fields needs a text of each."""
    attributes = (*entity.table.key, *(a for index in entity.table.indexes for a in index.attributes))
    binary = {name for a in attributes if a.type == "B" for name in (a.name, *links.template_of(entity, a).fields)}
    found = [field for field in fields if field in binary]
    if found:
        desk.add("SR216", desk.at(option), f"{_braced(found)} of {entity.name!r} is binary")


def _braced(fields: Iterable[str]) -> str:
    return ", ".join(f"{{{field}}}" for field in fields)
