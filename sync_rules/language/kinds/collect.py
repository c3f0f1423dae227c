"""Rules of kind `collect`: their form in YAML and their compiler."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from sync_rules.language import links
from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import (
    LinkOption,
    Model,
    OnDelete,
    OwnWhere,
    Settle,
    Via,
)
from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.lookups import Link
from sync_rules.model.values import show_path
from sync_rules.model.where import compile_where
from sync_rules.rules.kinds.collect import CollectRule, Element, parse_element
from sync_rules.rules.rule import Rule


class CollectForm(Model):
    """collect: a set on a node, with an element for each of its edges."""

    collect: str = Field(description="The edge entity.", examples=["membership"])
    into: str = Field(description="The set: node entity, then a top-level attribute.", examples=["goal.edges"])
    element: str = Field(
        alias="as",
        description="An edge's element, made of its fields. Together with the node's key it must name the edge.",
        examples=["{target}-{memberRole}"],
    )
    numbers: bool = Field(default=False, description="A set of numbers instead of texts; then `as` is one field.")
    where: OwnWhere = None
    omit: str | None = Field(
        default=None, description="JMESPath over the edge: those left out.", examples=["kind == 'COMMENT'"]
    )
    strict: bool = Field(
        default=False, description="Write in a transaction that checks the edge, at four times the cost."
    )
    link: LinkOption = {}
    via: Via = None
    on_delete: OnDelete = "keep"
    settle_seconds: Settle = 60


# ---------------------------------------------------------------- collect
def compile_collect(compiler: RuleCompiler, form: CollectForm) -> tuple[Rule, ...]:
    """The rule, and the one beside it for nodes that are deleted; none when something is wrong."""
    edge, into = compiler.entity(form.collect, "collect"), compiler.into(form.into)
    if into is not None and len(into.path) > 1:
        message = f"{show_path(into.path)!r} is inside a map: expected a top-level attribute of {into.entity.name!r}"
        compiler.add("SR309", compiler.at("into"), message, f"into: {into.entity.name}.{show_path(into.path[-1:])}")
    element = _element(compiler, form)
    if edge is None or into is None:
        return ()
    if element is not None:
        _has_texts(compiler, edge, element.fields, "as")
    where, omit = compiler.own_where(form.where, edge), compiler.own_where(form.omit, edge, "omit")
    link = compiler.link(form.link, into.entity, edge)
    if link is not None and element is not None:
        _names_edge(compiler, element, edge, into.entity, link)
    find = None if link is None else compiler.find(link, into.entity, edge, form.via, "into")
    if not compiler.sound or link is None or find is None or element is None:
        return ()
    rule = CollectRule(
        name=compiler.name,
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
    return rule, *compiler.when_parent_goes(rule, link, find, where=collected, on_delete=form.on_delete)


def _element(compiler: RuleCompiler, form: CollectForm) -> Element | None:
    try:
        element = parse_element(form.element)
    except UserError as error:
        compiler.add("SR109", compiler.at("as"), str(error))
        return None
    if form.numbers and element.template.whole is None:
        message = f"{form.element!r} is no number: expected one field and no text"
        compiler.add("SR120", compiler.at("as"), message, "as: '{field}', or drop numbers")
    return element


def _names_edge(compiler: RuleCompiler, element: Element, edge: Entity, node: Entity, link: Link) -> None:
    """Whoever has the node's key and an element must be able to read the edge."""
    known = {ref.field for _, ref in link} | set(element.fields)
    for attribute in edge.table.key:
        if attribute.name in known:  # the key attribute by its own name
            known |= set(edge.templates[attribute.name].fields)
    missing = [field for field in edge.identity if field not in known]
    if missing:
        message = f"the key of {node.name!r} and {element.template.text!r} do not hold {_braced(missing)}"
        cure = f"as: {element.template.text + ''.join(f'-{{{field}}}' for field in missing)!r}"
        compiler.add("SR207", compiler.at("as"), message, cure)


def _has_texts(compiler: RuleCompiler, entity: Entity, fields: Iterable[str], option: str) -> None:
    """What is called by some fields needs a text of each."""
    attributes = (*entity.table.key, *(a for index in entity.table.indexes for a in index.attributes))
    binary = {name for a in attributes if a.type == "B" for name in (a.name, *links.template_of(entity, a).fields)}
    found = [field for field in fields if field in binary]
    if found:
        compiler.add("SR216", compiler.at(option), f"{_braced(found)} of {entity.name!r} is binary")


def _braced(fields: Iterable[str]) -> str:
    return ", ".join(f"{{{field}}}" for field in fields)
