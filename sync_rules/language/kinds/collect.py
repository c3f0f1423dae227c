"""Rules of kind `collect`: a set on a node with an element for each of its edges, or values of children."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pydantic import Field

from sync_rules.language.compiler import AttributeRef, RuleCompiler
from sync_rules.language.kinds.books import UNLISTED, BookedForm, find_deleted_children, find_ledger_table, make_ledger
from sync_rules.language.kinds.options import Chosen, Kind, format_fields, make_parent_rule, parse_fields, require_text
from sync_rules.model.entities import Entity
from sync_rules.model.lookups import Link
from sync_rules.model.values import Path, show_path
from sync_rules.model.where import compile_where
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.kinds.element import Element, parse_element
from sync_rules.rules.kinds.gathered_rule import MEMBERS_MAX_ITEMS
from sync_rules.rules.kinds.values import Shape, ValueRule, ValuesRule
from sync_rules.rules.rule import Rule

SHAPES: Final[dict[str | None, Shape]] = {None: "set", "set": "set", "list": "list"}


class ValuesForm(BookedForm):
    """The options of collect that are for values, or for values and edges alike."""

    collect: str = Field(
        description="Whose values: entity.attribute. Or the edge entity, for a set of elements made by `as`.",
        examples=["order.tag", "membership"],
    )
    into: str = Field(
        description="Where to: entity, then a path. A set of elements is a top-level attribute.",
        examples=["user.tags", "goal.edges"],
    )
    element: str | None = Field(
        default=None,
        alias="as",
        description="Of values: set, which is the default, or list. Of edges: an edge's element, made of its fields; "
        "together with the node's key it must name the edge.",
        examples=["list", "{target}-{memberRole}"],
    )
    join: str | None = Field(
        default=None, description="Values as one text, with this between each two.", examples=[", "]
    )
    order: str | None = Field(
        default=None,
        description="The field that orders a list or a text; - before it: the other way. Default: the value itself.",
        examples=["-created_at"],
    )
    fields: Chosen | None = Field(
        default=None,
        description="Several fields of each child, as a map: a list, or a map to new names. With limit: 1 the parent "
        "holds the map of the first child, with as: list a list of maps.",
        examples=[["text", "author"], {"body": "text"}],
    )
    distinct: bool = Field(default=False, description="Each value once in a list or a text.")
    limit: int | None = Field(
        default=None, ge=1, le=MEMBERS_MAX_ITEMS, description="The greatest number of values; the first in order stay."
    )
    numbers: bool = Field(default=False, description="A set of numbers instead of texts; then `as` is one field.")


VALUES_ONLY: Final = ("join", "order", "distinct", "limit", "ledger")  # without `fields`, which make values of a rule
NOT_OF_FIELDS: Final = ("join", "distinct", "numbers")


def is_of_values(form: ValuesForm) -> bool:
    """True if a rule collects values of an attribute or of fields, and not edges."""
    return "." in form.collect or form.fields is not None


def compile_values(compiler: RuleCompiler, form: ValuesForm) -> tuple[Rule, ...]:
    into, shape = compiler.into(form.into), _choose_shape(compiler, form)
    child, path, fields = _resolve_values(compiler, form)
    order = None if form.order is None else compiler.path(form.order.removeprefix("-"), "order")
    compiler.own(child, form.order, "order")
    compiler.own(child, form.fields, "fields")
    table = find_ledger_table(compiler, form.ledger, "collect")
    if child is None or into is None:
        return ()
    where = compiler.compile_own_where(form.where, child)
    link = compiler.link(form.link, into.entity, child)
    if link is None:
        return ()
    find = find_deleted_children(compiler, form, link, into.entity, child)
    if form.via is not None and form.on_delete == "keep":
        compiler.refuse("via", UNLISTED, "remove it, or say on_delete")
    # the books keep the name that they began with
    books = make_ledger(compiler, form.renamed_from or compiler.name, (child, into.entity), table)
    order = order or path
    if not compiler.sound or books is None or shape is None or order is None:
        return ()
    distinct = form.distinct or shape == "set"
    # if not ranked, no key of the ledger shows a value
    ranked = form.limit is not None and form.order is not None and not distinct
    value = ValueRule(
        name=f"{compiler.name}.ledger",
        source=child,
        target=books.ranks,
        parent=into.entity,
        marks=books.marks,
        link=link,
        where=where,
        of=path,
        fields=fields,
        order=order,
        ranked=ranked,
        numbers=form.numbers,
    )
    values = ValuesRule(
        name=compiler.name,
        source=books.ranks,
        target=into.entity,
        find=books.find,
        into=into.path,
        link=books.link,
        shape=shape,
        ranked=ranked,
        numbers=form.numbers,
        join=form.join or "",
        distinct=distinct,
        max_items=form.limit,
        descending=(form.order or "").startswith("-"),
        books=value.books,
    )
    beside = make_parent_rule(compiler, values, link, find, where=where, on_delete=form.on_delete, child=child)
    return values, value, *beside


def _resolve_values(
    compiler: RuleCompiler, form: ValuesForm
) -> tuple[Entity | None, Path | None, tuple[tuple[Path, str], ...]]:
    """Return the child, its attribute, and its fields: a rule has an attribute or fields."""
    if form.fields is not None:
        entity = None if "." in form.collect else compiler.entity(form.collect, "collect")
        return entity, None, parse_fields(compiler, form.fields)
    of = compiler.resolve(form.collect, "collect", attribute=True)
    if of is None:
        return None, None, ()
    _warn_of_map(compiler, of)
    return of.entity, of.path, ()


def refuse_options(compiler: RuleCompiler, form: ValuesForm, options: Iterable[str], message: str, cure: str) -> None:
    """Report each of these options that the form gives."""
    for option in options:
        if option in form.model_fields_set:
            compiler.refuse(option, message, cure)


def _choose_shape(compiler: RuleCompiler, form: ValuesForm) -> Shape | None:
    """The shape of the values; options that mean nothing in it are reported."""
    refuse_options(
        compiler, form, ("omit", "strict"), "this is for edges, and values are collected", "remove it, or say where"
    )
    if form.on_delete == "keep":
        refuse_options(compiler, form, ("sparse",), UNLISTED, "remove it, or say on_delete")
    if form.fields is not None:
        return _choose_shape_of_fields(compiler, form)
    shape: Shape | None = "text" if form.join is not None else SHAPES.get(form.element)
    if form.join is not None and form.element is not None:
        compiler.refuse("join", "`join` makes a text, and `as` a set or a list", "keep one of them")
    elif shape is None:
        entity = form.collect.partition(".")[0]
        cure = f"as: list; join: ', ' for a text; or collect: {entity} for a set of elements made by `as`"
        compiler.add("SR106", "as", f"expected set or list, found {form.element!r}", cure)
    if shape == "set":
        refuse_options(compiler, form, ("distinct",), "a set has each value once", "remove it, or say as: list")
        if form.limit is None:
            refuse_options(compiler, form, ("order",), "a set has no order", "remove it, or say as: list")
    elif shape is not None:
        refuse_options(
            compiler, form, ("numbers",), "this is for sets: a list keeps the types of its values", "remove it"
        )
    return shape


def _choose_shape_of_fields(compiler: RuleCompiler, form: ValuesForm) -> Shape | None:
    """Return the shape of maps of fields: a list, or the map of the first child."""
    if "." in form.collect:
        entity = form.collect.partition(".")[0]
        compiler.refuse("fields", "the rule names one attribute already", f"remove it, or say collect: {entity}")
    refuse_options(compiler, form, NOT_OF_FIELDS, "this is for values, and each child gives a map", "remove it")
    if form.order is None:
        message = "'order' is missing: it says which child is the first"
        compiler.add("SR103", compiler.at_key("fields"), message, "order: -created_at")
    if form.element not in (None, "list"):
        compiler.add("SR106", "as", f"expected list, found {form.element!r}", "as: list, or remove it and say limit: 1")
        return None
    if form.element is None and form.limit != 1:
        message = f"{'no limit' if form.limit is None else f'limit {form.limit}'}: a map is of one child only"
        compiler.add("SR120", compiler.at_key("fields"), message, "limit: 1, or as: list")
    return "list" if form.element else "map"


def _warn_of_map(compiler: RuleCompiler, of: AttributeRef) -> None:
    """Report a path that is likely meant to go on to another item, and offer the chain that does."""
    child, (name, *path) = of.entity, of.path
    if not path or name not in compiler.known.entities or name in child.bound_fields:
        return
    kept, read = f"{child.name}.{name}_{path[-1]}", show_path(of.path)
    message = f"{read!r} is read as an attribute in a map of {child.name!r}"
    cure = f"if the item {name!r} is meant: copy {read} into {kept}, and here collect: {kept}"
    compiler.add("SR420", "collect", message, cure)


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
    refuse_options(
        compiler, form, VALUES_ONLY, "this is for values", f"remove it, or collect: {form.collect}.ATTRIBUTE"
    )
    names = _list_names(edge, into)
    if form.element is None:
        made = f": as: {_join_names(names)}" if names else ""
        cure = f"say what an element is made of{made}; or whose values: collect: {form.collect}.ATTRIBUTE"
        compiler.add("SR103", compiler.at_key(), "'as' is missing", cure)
    cures = [f"name the edge by fields of its key: as: {_join_names(names)}"] if names else []
    element = None if form.element is None else compiler.parse("SR109", "as", parse_element, form.element, *cures)
    if element is not None and form.numbers and element.template.whole is None:
        message = f"{form.element!r} is not a number: expected one field and no text"
        cure = f"as: {_join_names(names)}, or drop numbers" if len(names) == 1 else "drop numbers"
        compiler.add("SR120", "as", message, cure)
    if edge is None or into is None:
        return ()
    if element is not None:
        require_text(compiler, edge, element.fields, "as")
        compiler.own(edge, element.fields, "as", quotes=False)
    where, omit = compiler.compile_own_where(form.where, edge), compiler.compile_own_where(form.omit, edge, "omit")
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
    beside = make_parent_rule(compiler, rule, link, find, where=collected, on_delete=form.on_delete)
    return rule, *beside


def _list_names(edge: Entity | None, into: AttributeRef | None) -> list[str]:
    """List the fields of an edge's key that the key of its node does not have; all of them, if the node has each."""
    if edge is None or into is None:
        return []
    return [field for field in edge.identity if field not in into.entity.identity] or [*edge.identity]


def _join_names(names: Iterable[str]) -> str:
    return repr("-".join(f"{{{name}}}" for name in names))


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
