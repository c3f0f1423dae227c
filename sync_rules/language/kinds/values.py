"""Rules of kind `collect` that name an attribute: its values on the children, as a set, a list or a text on the parent.

NAME.ledger keeps an item for each child in the ledger, and NAME writes the parent's attribute.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pydantic import Field

from sync_rules.language.compiler import AttributeRef, RuleCompiler
from sync_rules.language.hops import route
from sync_rules.language.kinds.books import UNLISTED, BookedForm, find_deleted_children, ledger_table, make_ledger
from sync_rules.language.kinds.options import parent_rule
from sync_rules.model.values import show_path
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
    distinct: bool = Field(default=False, description="Each value once in a list or a text.")
    limit: int | None = Field(
        default=None, ge=1, le=MEMBERS_MAX_ITEMS, description="The greatest number of values; the first in order stay."
    )
    numbers: bool = Field(default=False, description="A set of numbers instead of texts; then `as` is one field.")


VALUES_ONLY: Final = ("join", "order", "distinct", "limit", "ledger")


def is_of_values(form: ValuesForm) -> bool:
    """True if a rule names an attribute, and not edges."""
    return "." in form.collect


def compile_values(compiler: RuleCompiler, form: ValuesForm) -> tuple[Rule, ...]:
    of, into = compiler.resolve(form.collect, "collect", attribute=True), compiler.into(form.into)
    shape = _shape(compiler, form)
    order = None if form.order is None else compiler.path(form.order.removeprefix("-"), "order")
    compiler.own(None if of is None else of.entity, form.order, "order")
    table = ledger_table(compiler, form.ledger, "collect")
    if of is None or into is None:
        return ()
    _warn_of_map(compiler, of)
    child, where = of.entity, compiler.own_where(form.where, of.entity)
    way = route(compiler, form, into.entity, child)
    if way is None:
        return ()
    find = find_deleted_children(compiler, form, way, into.entity, child)
    if way.via is not None and form.on_delete == "keep":
        compiler.refuse("via", UNLISTED, "remove it, or say on_delete")
    # the books keep the name that they began with
    books = make_ledger(compiler, form.renamed_from or compiler.name, (child, into.entity), table)
    if not compiler.sound or books is None or shape is None:
        return ()
    distinct = form.distinct or shape == "set"
    ranked = form.limit is not None and order is not None and not distinct  # else no key of the ledger shows a value
    value = ValueRule(
        name=f"{compiler.name}.ledger",
        source=child,
        target=books.ranks,
        parent=into.entity,
        marks=books.marks,
        link=way.link,
        where=where,
        of=of.path,
        order=order or of.path,
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
    beside = parent_rule(compiler, values, way.link, find, where=where, on_delete=form.on_delete, child=child)
    return values, value, *beside, *way.rules


def refuse(compiler: RuleCompiler, form: ValuesForm, options: Iterable[str], message: str, cure: str) -> None:
    """Report those of these options that a form gives."""
    for option in options:
        if option in form.model_fields_set:
            compiler.refuse(option, message, cure)


def _shape(compiler: RuleCompiler, form: ValuesForm) -> Shape | None:
    """The shape of the values; options that mean nothing in it are reported."""
    refuse(compiler, form, ("omit", "strict"), "this is for edges, and values are collected", "remove it, or say where")
    if form.on_delete == "keep":
        refuse(compiler, form, ("sparse",), UNLISTED, "remove it, or say on_delete")
    shape: Shape | None = "text" if form.join is not None else SHAPES.get(form.element)
    if form.join is not None and form.element is not None:
        compiler.refuse("join", "`join` makes a text, and `as` a set or a list", "keep one of them")
    elif shape is None:
        entity = form.collect.partition(".")[0]
        cure = f"as: list; join: ', ' for a text; or collect: {entity} for a set of elements made by `as`"
        compiler.add("SR106", "as", f"expected set or list, found {form.element!r}", cure)
    if shape == "set":
        refuse(compiler, form, ("distinct",), "a set has each value once", "remove it, or say as: list")
        if form.limit is None:
            refuse(compiler, form, ("order",), "a set has no order", "remove it, or say as: list")
    elif shape is not None:
        refuse(compiler, form, ("numbers",), "this is for sets: a list keeps the types of its values", "remove it")
    return shape


def _warn_of_map(compiler: RuleCompiler, of: AttributeRef) -> None:
    """Report a path that is likely meant to go on to another item, and offer the chain that does."""
    child, (name, *path) = of.entity, of.path
    if not path or name not in compiler.known.entities or name in child.bound_fields:
        return
    kept, read = f"{child.name}.{name}_{path[-1]}", show_path(of.path)
    message = f"{read!r} is read as an attribute in a map of {child.name!r}"
    cure = f"if the item {name!r} is meant: copy {read} into {kept}, and here collect: {kept}"
    compiler.add("SR420", "collect", message, cure)
