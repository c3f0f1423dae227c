"""derive and path, compiled: attributes of an item by itself, and by its parent of the same kind.

Law: as of `desk`. A parent is named by the last field of the key; the fields before it are shared within a hierarchy.
"""

from __future__ import annotations

from decimal import Decimal

from sync_rules.language import links
from sync_rules.language.compiler import Desk
from sync_rules.language.kinds.options import DeriveForm, PathForm
from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.lookups import Find, Link
from sync_rules.model.values import Path
from sync_rules.rules.formula import Formula, joined_formula, parse_formula
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.kinds.path import TreeRule


# ---------------------------------------------------------------- derive
def compile_derive(desk: Desk, form: DeriveForm) -> tuple[DeriveRule, ...]:
    """The compiled rule; none, with everything reported, when something is wrong with it."""
    place = desk.place(form.derive, desk.at("derive"), attribute=True)
    formula = _formula(desk, form)
    if place is None or formula is None or not desk.sound:
        return ()
    rule = DeriveRule(name=desk.name, source=place.entity, target=place.entity, path=place.path, formula=formula)
    return (rule,)


def _formula(desk: Desk, form: DeriveForm) -> Formula | None:
    if form.formula is None and form.join is None:
        cure = 'say what it is made of: as: "{state}#{city}", or join: [first, last]'
        desk.add("SR103", desk.at_key("derive"), "'as' is missing", cure)
        return None
    if form.formula is not None and form.join is not None:
        desk.add("SR120", desk.at_key("join"), "`as` and `join` are two ways to say one thing", "keep one of them")
        return None
    for option, given in (("separator", form.separator), ("map", form.tables or None)):
        if given is not None and (form.join is None) == (option == "separator"):
            goes_with = "join" if option == "separator" else "as"
            desk.add("SR120", desk.at_key(option), f"`{option}` goes with `{goes_with}`", "remove it")
    try:
        if form.join is not None:
            return joined_formula(tuple(form.join), " " if form.separator is None else form.separator)
        tables = {
            name: {text: str(value) if isinstance(value, str) else plain_number(value) for text, value in rows.items()}
            for name, rows in form.tables.items()
        }
        formula = parse_formula(form.formula or "", tables)
    except UserError as error:
        desk.add("SR117", desk.at("join" if form.join is not None else "as"), str(error))
        return None
    for name in tables.keys() - formula.tables.keys():
        desk.add("SR117", desk.at_key("map", name), f"no field of {form.formula!r} goes through the table {name!r}")
    return formula


def plain_number(number: float) -> str:
    """A number of the file without an exponent: 0.1 as it is written there, and not as a machine holds it."""
    return format(Decimal(repr(number)), "f")


# ---------------------------------------------------------------- path
def compile_path(desk: Desk, form: PathForm) -> tuple[TreeRule, ...]:
    """The compiled rule; none, with everything reported, when something is wrong with it."""
    place = desk.place(form.path, desk.at("path"), attribute=True)
    graph, depth = desk.option_path(form.graph, "graph"), desk.option_path(form.depth, "depth")
    carried = [desk.path(text, desk.at("carry", index)) for index, text in enumerate(form.carry or ())]
    if form.graph is None and form.shards > 1:
        desk.add("SR120", desk.at("shards"), "shards are numbered in `graph`, which is not given", "graph: GraphId")
    parent = desk.path(form.parent, desk.at("parent"))
    if place is None or parent is None:
        return ()
    link = _link_to_parent(desk, form, place.entity)
    find = None if link is None else _find_children(desk, form, place.entity, link)
    if not desk.sound or link is None or find is None:
        return ()
    rule = TreeRule(
        name=desk.name,
        source=place.entity,
        target=place.entity,
        find=find,
        settle_seconds=form.settle_seconds,
        link=link,
        on_delete=form.on_delete,
        path=place.path,
        separator=form.separator,
        own=place.entity.ref(place.entity.identity[-1]),
        graph=graph,
        depth=depth,
        carry=tuple(_there(carried)),
        shards=form.shards,
    )
    return (rule,)


def _link_to_parent(desk: Desk, form: PathForm, entity: Entity) -> Link | None:
    """The last field of the key is read from `parent`, the others are the item's own."""
    if not entity.identity:
        message = f"all items of {entity.name!r} have one fixed key: there is no parent among them"
        desk.add("SR214", desk.at("path"), message)
        return None
    *shared, parent = links.infer_link(entity, entity, {entity.identity[-1]: form.parent})
    if parent[1].path[0] in {attribute.name for attribute in entity.table.key}:
        desk.add("SR214", desk.at("parent"), f"{form.parent!r} is part of the item's own key: it cannot name a parent")
        return None
    link = (parent, *shared)
    return link if desk.link_matches(entity, entity, link) else None


def _find_children(desk: Desk, form: PathForm, entity: Entity, link: Link) -> Find | None:
    """How the children of one parent are listed, and not all the items with which it shares the rest of its key."""
    parent = link[0][1].field

    def choose(found: list[links.Way], via: str | None) -> links.Way | None:
        return links.closest([way for way in found if parent in way.fields], via)

    return desk.find(link, entity, entity, form.via, "parent", choose=choose)


def _there(paths: list[Path | None]) -> list[Path]:
    return [path for path in paths if path is not None]
