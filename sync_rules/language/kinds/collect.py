"""Rules of kind `collect`: a set on a node with an element for each of its edges; or values, which are in `values`."""

from __future__ import annotations

from pydantic import Field

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Kind, format_fields, parent_rule, require_text
from sync_rules.language.kinds.values import VALUES_ONLY, ValuesForm, compile_values, is_of_values, refuse
from sync_rules.model.entities import Entity
from sync_rules.model.lookups import Link
from sync_rules.model.values import show_path
from sync_rules.model.where import compile_where
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.kinds.element import Element, parse_element
from sync_rules.rules.rule import Rule


class CollectForm(ValuesForm):
    """collect: the values of children, or an element for each edge."""

    omit: str | None = Field(
        default=None, description="JMESPath over the edge: those left out.", examples=["kind == 'COMMENT'"]
    )
    strict: bool = Field(
        default=False, description="Write in a transaction that checks the edge, at four times the cost."
    )


def _compile(compiler: RuleCompiler, form: CollectForm) -> tuple[Rule, ...]:
    return compile_values(compiler, form) if is_of_values(form) else _compile_elements(compiler, form)


def _compile_elements(compiler: RuleCompiler, form: CollectForm) -> tuple[Rule, ...]:
    edge, into = compiler.entity(form.collect, "collect"), compiler.into(form.into)
    if into is not None and len(into.path) > 1:
        message = f"{show_path(into.path)!r} is inside a map: expected a top-level attribute of {into.entity.name!r}"
        compiler.add("SR309", "into", message, f"into: {into.entity.name}.{show_path(into.path[-1:])}")
    refuse(compiler, form, VALUES_ONLY, "this is for values", f"remove it, or collect: {form.collect}.ATTRIBUTE")
    if form.element is None:
        cure = "say what an element is made of: as: '{target}'; or whose values: collect: ENTITY.ATTRIBUTE"
        compiler.add("SR103", compiler.at_key(), "'as' is missing", cure)
    element = None if form.element is None else compiler.parse("SR109", "as", parse_element, form.element)
    if element is not None and form.numbers and element.template.whole is None:
        message = f"{form.element!r} is not a number: expected one field and no text"
        compiler.add("SR120", "as", message, "as: '{field}', or drop numbers")
    if edge is None or into is None:
        return ()
    if element is not None:
        require_text(compiler, edge, element.fields, "as")
        compiler.own(edge, element.fields, "as", quotes=False)
    where, omit = compiler.own_where(form.where, edge), compiler.own_where(form.omit, edge, "omit")
    link = compiler.link(form.link, into.entity, edge)
    if link is not None and element is not None:
        _require_edge(compiler, element, edge, into.entity, link)
    find = None if link is None else compiler.find(link, into.entity, edge, form.via, "into", sparse=form.sparse)
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
    beside = parent_rule(compiler, rule, link, find, where=collected, on_delete=form.on_delete)
    return rule, *beside


def _require_edge(compiler: RuleCompiler, element: Element, edge: Entity, node: Entity, link: Link) -> None:
    """Report an element that, with the node's key, does not name its edge."""
    known = {ref.field for _, ref in link} | set(element.fields)
    for attribute in edge.table.key:
        if attribute.name in known:  # the key attribute by its own name
            known |= set(edge.templates[attribute.name].fields)
    missing = [field for field in edge.identity if field not in known]
    if missing:
        message = f"the key of {node.name!r} and {element.template.text!r} do not hold {format_fields(missing)}"
        cure = f"as: {element.template.text + ''.join(f'-{{{field}}}' for field in missing)!r}"
        compiler.add("SR207", "as", message, cure)


KIND = Kind("collect", CollectForm, _compile, sentence="collect ENTITY.ATTRIBUTE into ENTITY.ATTRIBUTE")
