"""Rules of kind `path`: the way from the root of a hierarchy to each of its items.

The last field of a key names the item; the fields before it are shared within a hierarchy. With `by` the path is made
of another attribute, such as a name, and the rule keeps a path of ids beside it: by that alone rings are found.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sync_rules.language import defaults, links
from sync_rules.language.compiler import AttributeRef, RuleCompiler
from sync_rules.language.kinds.options import Kind, Model, RenamedFrom, Settle, Shards, Sparse, require_text
from sync_rules.model.entities import Entity, Ref
from sync_rules.model.lookups import Find, Link
from sync_rules.model.values import AttributeValue, Path, has_overlap
from sync_rules.rules.kinds.path import Breadcrumb, TreeRule


class PathForm(Model):
    """path: the way from the root of a hierarchy to each of its items."""

    path: str = Field(description="The attribute that holds the path: entity.attribute.", examples=["component.Path"])
    parent: str = Field(
        description="The attribute with the parent's id: the parent has it as the last field of its key.",
        examples=["ParentId"],
    )
    separator: str = Field(default="|", min_length=1, description="The text between the ids, or the names, of a path.")
    by: str | None = Field(
        default=None,
        description="The attribute whose values make the path, instead of the ids: a breadcrumb of names.",
        examples=["name"],
    )
    ids: str | None = Field(
        default=None,
        description="With `by`: the attribute that holds the path of ids. Default: the path's name and _ids.",
        examples=["category_ids"],
    )
    ids_separator: str = Field(default="|", min_length=1, description="With `by`: the text between the ids.")
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
    via: str | None = Field(default=None, description="The index that lists the children of an item.")
    sparse: Sparse = False
    on_delete: Literal["keep", "clear", "delete", "restrict"] = Field(
        default="keep",
        description="When a parent is deleted: keep its children's paths, clear them, delete the children, or report.",
    )
    settle_seconds: Settle = 60
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: PathForm) -> tuple[TreeRule, ...]:
    ref = compiler.resolve(form.path, "path", attribute=True)
    graph, depth = compiler.parse_option_path(form.graph, "graph"), compiler.parse_option_path(form.depth, "depth")
    carried = compiler.paths(form.carry, "carry")
    if form.graph is None and form.shards > 1:
        compiler.add(
            "SR120", compiler.at("shards"), "shards are numbered in `graph`, which is not given", "graph: GraphId"
        )
    given: dict[Path, AttributeValue] = {}
    if defaults.has_default(form) and form.carry is None:
        compiler.refuse("default", "`default` goes with `carry`, which is not given", "remove it")
    elif ref is not None and defaults.has_default(form):
        paths = {path: path for path in carried}
        given = defaults.compile_defaults(compiler, form.default, ref.entity, paths, "carried attribute")
    parent = compiler.path(form.parent, "parent")
    entity = None if ref is None else ref.entity
    for option in ("parent", "by", "carry"):
        compiler.own(entity, getattr(form, option), option)
    for option in ("ids", "graph", "depth"):
        compiler.own(entity, getattr(form, option), option, written=True)
    if ref is None or parent is None:
        return ()
    crumb = _compile_breadcrumb(compiler, form, ref)
    path = ref.path if crumb is None else _compile_ids(compiler, form, ref.path)
    link = _compile_link_to_parent(compiler, form, ref.entity)
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
        path=path,
        separator=form.separator if crumb is None else form.ids_separator,
        own=ref.entity.ref(ref.entity.identity[-1]),
        graph=graph,
        depth=depth,
        carry=carried,
        defaults=given,
        shards=form.shards,
        crumb=crumb,
    )
    if crumb is not None and any(has_overlap(crumb.name.path, path) for path in rule.copies):
        message = f"{ref.entity.name}.{form.by} is written by this rule, which would make it of itself"
        compiler.add("SR305", "by", message, "name an attribute that the rule does not write")
    return (rule,)


def _compile_breadcrumb(compiler: RuleCompiler, form: PathForm, ref: AttributeRef) -> Breadcrumb | None:
    """The breadcrumb that `by` asks for. A field of the item's key is read from the key."""
    if form.by is None:
        for option in ("ids", "ids_separator"):
            if option in form.model_fields_set:
                message = f"`{option}` goes with `by`, which is not given: `path` holds the ids"
                compiler.refuse(option, message, "remove it, or say by: name")
        return None
    name = compiler.path(form.by, "by")
    if name is None:
        return None
    require_text(compiler, ref.entity, [form.by], "by")
    own = ref.entity.ref(form.by) if form.by in ref.entity.identity else Ref(form.by, name)
    return Breadcrumb(ref.path, own, form.separator)


def _compile_ids(compiler: RuleCompiler, form: PathForm, path: Path) -> Path:
    ids = compiler.parse_option_path(form.ids, "ids") or (*path[:-1], f"{path[-1]}_ids")
    if has_overlap(ids, path):
        compiler.add("SR301", "ids", f"{form.path} holds the names already", "name another attribute for the ids")
    return ids


def _compile_link_to_parent(compiler: RuleCompiler, form: PathForm, entity: Entity) -> Link | None:
    """The link to the parent: the last field of its key is in `parent`, the others are the item's own."""
    if not entity.identity:
        message = f"all items of {entity.name!r} have one fixed key: there is no parent among them"
        compiler.add("SR214", "path", message)
        return None
    *shared, parent = links.infer_link(entity, entity, {entity.identity[-1]: form.parent})
    if parent[1].path[0] in {attribute.name for attribute in entity.table.key}:
        message = f"{form.parent!r} is part of the item's own key: it cannot name a parent"
        cure = "name an attribute outside the key that has the parent's id, such as parent: parent_id"
        compiler.add("SR214", "parent", message, cure)
        return None
    link = (parent, *shared)
    return link if compiler.link_matches(entity, entity, link) else None


def _find_children(compiler: RuleCompiler, form: PathForm, entity: Entity, link: Link) -> Find | None:
    """The Query for the children of one parent: one that holds the parent's id, not only the rest of its key."""
    parent = link[0][1].field

    def choose(found: list[links.Way], via: str | None) -> links.Way | None:
        return links.choose_closest([way for way in found if parent in way.fields], via)

    return compiler.find(link, entity, entity, form.via, "parent", sparse=form.sparse, choose=choose)


KIND = Kind("path", PathForm, _compile, missing={"parent": "name the attribute with the parent's id: parent: ParentId"})
