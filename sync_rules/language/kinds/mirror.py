"""Rules of kind `mirror`: a second item for each item, under another key.

The fields of the mirror's key come from the source's fields of the same names, or of those that `link` or `each` give.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, Tag

from sync_rules.language import links
from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import Kind, Model, Names, OwnWhere, RenamedFrom, Renames, choose_by_type
from sync_rules.model.entities import Entity, Ref
from sync_rules.model.lookups import Link
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import Path, has_overlap, show_path
from sync_rules.rules.kinds.mirror import MirrorRule

MARKS: Final = {"__edb_e__": "", "__edb_v__": '"1"'}  # ElectroDB ignores items without: entity (its name), version
Mirrored = Annotated[
    Annotated[Literal["all"], Tag("form:word")]
    | Annotated[Names, Tag("form:several")]
    | Annotated[Renames, Tag("form:renamed")],
    choose_by_type(
        {str: "form:word", list: "form:several", dict: "form:renamed"},
        "all, a list of attributes, or a map from attribute to new name",
    ),
]


class MirrorForm(Model):
    """mirror: an item for an item, under another key."""

    mirror: str = Field(description="The source entity.", examples=["user"])
    into: str = Field(description="The entity of the mirrored items.", examples=["user_by_email"])
    link: dict[str, str] = Field(
        default={},
        description="Which field of the source fills a field of the mirror's key, where the names differ: {field of "
        "the mirror: field of the source}.",
        examples=[{"owner": "user_id"}],
    )
    attributes: Mirrored | None = Field(
        default=None,
        description="What is mirrored besides the keys: a list of attributes, a map to new names, or all; default "
        "nothing. The source's own key fields always are.",
    )
    each: Annotated[dict[str, str], Field(min_length=1, max_length=1)] | None = Field(
        default=None,
        description="One mirror per element of a list or set: {field of the mirror: attribute of the source}.",
        examples=[{"post_id": "postIds"}],
    )
    where: OwnWhere = None
    renamed_from: RenamedFrom = None


def _compile(compiler: RuleCompiler, form: MirrorForm) -> tuple[MirrorRule, ...]:
    source, target = compiler.entity(form.mirror, "mirror"), compiler.entity(form.into, "into")
    chosen = form.attributes
    attributes = compiler.parse_renames(chosen, "attributes") if isinstance(chosen, list | dict) else ()
    if source is None or target is None:
        return ()
    if source is target:
        compiler.add("SR310", "into", f"{source.name!r} would be mirrored into itself")
    if not target.identity:
        message = f"{target.name!r} has one fixed key: all items of {source.name!r} would be mirrored into one"
        compiler.add("SR209", "into", message)
    note_own_attributes(compiler, source, target, chosen)
    each = _compile_each(compiler, form, source, target)
    fields = list_key_fields(compiler, source, target, form.link, form.each or {})
    where = compiler.compile_own_where(form.where, source)
    if not compiler.sound or fields is None:
        return ()
    rule = MirrorRule(
        name=compiler.name,
        source=source,
        target=target,
        fields=fields,
        attributes=None if chosen == "all" else attributes,
        each=each,
        where=where,
    )
    _check_names(compiler, rule)
    check_attributes(compiler, rule)
    return (rule,) if compiler.sound else ()


def _check_names(compiler: RuleCompiler, rule: MirrorRule) -> None:
    """Report a field that names the source where the mirror's key holds something else: no mirror would be its own."""
    filled = dict(rule.fields)
    for field, ref in rule.names:
        if ref.field not in rule.target.identity:
            held = rule.target.templates[ref.path[0]].text if not rule.target.drop_key_paths([ref.path]) else ""
            taken = held and f"made of {held!r}"
        elif filled.get(ref.field) != rule.source.ref(field):
            given = rule.each[1] if rule.each and rule.each[0] == ref.field else filled[ref.field].path
            taken = repr(show_path(given))
        else:
            taken = ""
        if taken:
            message = f"{field!r} names the mirrored {rule.source.name!r}, and is {taken} in the mirror's key"
            compiler.add("SR209", "into", message, f"link: {{source_{field}: {field}}}, besides the other fields")


def note_own_attributes(compiler: RuleCompiler, source: Entity, target: Entity, chosen: object) -> None:
    """Note attributes that begin with the name of their own entity, for a warning."""
    if isinstance(chosen, list | dict):
        compiler.own(source, chosen, "attributes")
    for text, name in chosen.items() if isinstance(chosen, dict) else ():
        compiler.own(target, name, "attributes", text, written=True)


def check_attributes(compiler: RuleCompiler, rule: MirrorRule) -> None:
    """Report attributes that would overwrite a key or a field that names the source, and required attributes that are
    missing.
    """
    owner = {ref.path: field for field, ref in rule.names}
    for path, to in rule.attributes or ():
        if _is_in_key(compiler, rule, path, to):
            continue
        if any(has_overlap(to, place) and (to, path) != (place, (field,)) for place, field in owner.items()):
            taken = "already names the source of the mirror"
        elif to[0] in rule.index_keys:
            taken = f"is made of {rule.index_keys[to[0]][0].text!r} already"
        else:
            continue
        message = f"{rule.target.name}.{show_path(to)} {taken}"
        compiler.add("SR301", "attributes", message, "give the attribute another name")
    _check_required_attributes(compiler, rule)


def _check_required_attributes(compiler: RuleCompiler, rule: MirrorRule) -> None:
    """Report attributes that every target item has by the file, and that the rule does not write. The source's marks
    of ElectroDB do not count: they name its own entity.
    """
    source, target = rule.source, rule.target
    held = {*rule.index_keys, *(ref.path[0] for _, ref in rule.names), *(to[0] for _, to in rule.attributes or ())}
    held |= compiler.known.written.get(target.name, set()) | {attribute.name for attribute in target.table.key}
    if rule.attributes is None:
        held |= compiler.known.list_sure_attributes(source) - MARKS.keys()
        held |= {field for field, ref in rule.fields if ref.path == (field,)}
    wanted = [*target.required, *filter(target.is_attribute, target.identity)]
    lacking = [name for name in dict.fromkeys(wanted) if name not in held]
    marks = [name for name in lacking if name in MARKS]
    listed = [name for name in lacking if name not in MARKS]
    cures = [f"let attributes have {', '.join(listed)}"] if listed else []
    if marks and rule.attributes is None:
        cures = ["list the attributes in place of all"]
    cures += [f"add a rule {{derive: {target.name}.{name}, as: {MARKS[name] or target.name}}}" for name in marks]
    if lacking:
        message = f"each {target.name!r} has {', '.join(lacking)}, and this rule creates items without"
        cures += ["or as: what the model of ElectroDB calls its entity and version"] if marks else []
        compiler.add("SR232", "into", message, "; ".join(cures))


def _is_in_key(compiler: RuleCompiler, rule: MirrorRule, path: Path, to: Path) -> bool:
    """True for an attribute of the table's own key; reports one that has another value there."""
    if rule.target.drop_key_paths([to]):
        return False
    template, filled = rule.target.templates[to[0]], dict(rule.fields)
    same = rule.source.ref(path[0]) if len(path) == 1 else Ref(show_path(path), path)
    if len(to) > 1 or filled.get(template.whole or "") != same:
        what = f"{rule.target.name}.{show_path(to)}"
        message = f"{what} is part of the key of table {rule.target.table.name!r}, made of {template.text!r}"
        cure = f"leave it out, or give it another name: {{{show_path(path)}: source_{to[-1]}}}"
        compiler.add("SR302", "attributes", message, cure)
    return True


def _compile_each(compiler: RuleCompiler, form: MirrorForm, source: Entity, target: Entity) -> tuple[str, Path] | None:
    """The field of the mirror's key that an element fills, and the path of the list or set."""
    for field, text in (form.each or {}).items():
        compiler.own(source, text, "each", field)
        path = compiler.path(text, compiler.at("each", field))
        if field not in target.identity:
            message = explain_unknown_name("key field", field, target.identity, f"entity {target.name!r}")
            compiler.add("SR209", compiler.at_key("each", field), message, "name one of the key fields shown")
        elif field in form.link:
            compiler.add("SR120", compiler.at_key("each", field), f"{field!r} is in `link` too", "keep one of them")
        elif path is not None:
            return field, path
    return None


def list_key_fields(
    compiler: RuleCompiler, source: Entity, target: Entity, given: Mapping[str, str], each: Collection[str] = ()
) -> Link | None:
    """List the fields of the mirror's key templates (index keys included) and of `given`, each with its place on the
    source. The field of `each` is left out. Return None after a reported problem.
    """
    bound = dict.fromkeys(field for template in target.templates.values() for field in template.fields)
    named = [field for field in (*target.identity, *bound) if field not in each]
    sound = True
    for field in (one for one in bound if one not in given):
        compiler.own(source, field, "into", quotes=False)
    for field, text in given.items():
        compiler.own(source, text, "link", field)
        if compiler.path(text, compiler.at("link", field)) is None:
            sound = False
        elif field not in bound and text not in source.identity:
            message = explain_unknown_name("key field", field, bound, f"entity {target.name!r}")
            compiler.add("SR202", compiler.at_key("link", field), message)
            sound = False
    if not sound:
        return None
    fields = tuple(
        (name, links.find_ref(source, given.get(name, ""), name)) for name in dict.fromkeys([*named, *given])
    )
    identity = tuple(pair for pair in fields if pair[0] in target.identity)
    return fields if compiler.link_matches(target, source, identity) else None


KIND = Kind(
    "mirror",
    MirrorForm,
    _compile,
    sentence="mirror ENTITY into ENTITY",
    example="mirror user into user_by_email",
    missing={"into": "name the entity of the mirrored items: into: user_by_email"},
    meant={"each": "name the mirror's field: each: {{field: {}}}"},
)
