"""Rules of kind `path`: the way from the root of a hierarchy to each of its items.

The last field of a key names the item; the fields before it are shared within a hierarchy.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sync_rules.language import defaults, links
from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.kind import Kind
from sync_rules.language.kinds.options import Model, RenamedFrom, Settle, Shards, Sparse
from sync_rules.model.entities import Entity
from sync_rules.model.lookups import Find, Link
from sync_rules.model.values import AttributeValue, Path
from sync_rules.rules.kinds.path import TreeRule


class PathForm(Model):
    """path: the way from the root of a hierarchy to each of its items."""

    path: str = Field(description="The attribute that holds the path: entity.attribute.", examples=["component.Path"])
    parent: str = Field(
        description="The attribute with the parent's id: the parent has it as the last field of its key.",
        examples=["ParentId"],
    )
    separator: str = Field(default="|", min_length=1, description="What stands between the ids of a path.")
    graph: str | None = Field(
        default=None, description="An attribute for the root's id with a shard number: CM1#1.", examples=["GraphId"]
    )
    shards: Shards = Field(default=1, description="How many shards the items of one root are spread over by `graph`.")
    depth: str | None = Field(default=None, description="An attribute for the depth: 0 for a root.")
    carry: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="Attributes that every item has from its root."
    )
    default: Any = Field(
        default=None,
        description="What an item has where its parent lacks what is carried: a map from the carried attribute.",
        examples=[{"Model": "unknown"}],
    )
    via: str | None = Field(default=None, description="The index by which the children of an item are listed.")
    sparse: Sparse = False
    on_delete: Literal["keep", "clear", "delete", "restrict"] = Field(
        default="keep",
        description="When a parent is deleted: keep its children's paths, clear them, delete the children, or report.",
    )
    settle_seconds: Settle = 60
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: PathForm) -> tuple[TreeRule, ...]:
    ref = compiler.resolve(form.path, "path", attribute=True)
    graph, depth = compiler.option_path(form.graph, "graph"), compiler.option_path(form.depth, "depth")
    carried = compiler.paths(form.carry, "carry")
    if form.graph is None and form.shards > 1:
        compiler.add(
            "SR120", compiler.at("shards"), "shards are numbered in `graph`, which is not given", "graph: GraphId"
        )
    given: dict[Path, AttributeValue] = {}
    if defaults.said(form) and form.carry is None:
        message = "`default` goes with `carry`, which is not given"
        compiler.add("SR120", compiler.at_key("default"), message, "remove it")
    elif ref is not None and defaults.said(form):
        paths = {path: path for path in carried}
        given = defaults.of_several(compiler, form.default, ref.entity, paths, "carried attribute")
    parent = compiler.path(form.parent, "parent")
    if ref is None or parent is None:
        return ()
    link = _link_to_parent(compiler, form, ref.entity)
    find = None if link is None else _find_children(compiler, form, ref.entity, link)
    if not compiler.sound or link is None or find is None:
        return ()
    rule = TreeRule(
        name=compiler.name,
        source=ref.entity,
        target=ref.entity,
        find=find,
        settle_seconds=form.settle_seconds,
        link=link,
        on_delete=form.on_delete,
        path=ref.path,
        separator=form.separator,
        own=ref.entity.ref(ref.entity.identity[-1]),
        graph=graph,
        depth=depth,
        carry=carried,
        defaults=given,
        shards=form.shards,
    )
    return (rule,)


def _link_to_parent(compiler: RuleCompiler, form: PathForm, entity: Entity) -> Link | None:
    """The link to the parent: the last field of its key is in `parent`, the others are the item's own."""
    if not entity.identity:
        message = f"all items of {entity.name!r} have one fixed key: there is no parent among them"
        compiler.add("SR214", "path", message)
        return None
    *shared, parent = links.infer_link(entity, entity, {entity.identity[-1]: form.parent})
    if parent[1].path[0] in {attribute.name for attribute in entity.table.key}:
        compiler.add(
            "SR214", compiler.at("parent"), f"{form.parent!r} is part of the item's own key: it cannot name a parent"
        )
        return None
    link = (parent, *shared)
    return link if compiler.link_matches(entity, entity, link) else None


def _find_children(compiler: RuleCompiler, form: PathForm, entity: Entity, link: Link) -> Find | None:
    """The Query for the children of one parent: one that holds the parent's id, not only the rest of its key."""
    parent = link[0][1].field

    def choose(found: list[links.Way], via: str | None) -> links.Way | None:
        return links.closest([way for way in found if parent in way.fields], via)

    return compiler.find(link, entity, entity, form.via, "parent", sparse=form.sparse, choose=choose)


KIND = Kind("path", PathForm, _compile, missing={"parent": "name the attribute with the parent's id: parent: ParentId"})
