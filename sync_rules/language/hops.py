"""A link over several items, `link: order.customer.region`, as a chain of copy rules.

For each hop but the last, a copy rule keeps the fields that name the next item on the pointing item. Another rule with
the same path must link by these attributes, so that it names the rule on which it depends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

from sync_rules.language import links
from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.problems import Location
from sync_rules.model.entities import Entity, Ref
from sync_rules.model.lookups import Link
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import Path
from sync_rules.rules.kinds.copy import CopyRule, HopRule

FEWEST: Final = 3  # entities on a link over several: a pointing one, one between, the one that is meant
Names = Mapping[str, str]


class Linked(Protocol):
    """The options of a form whose link may go over several items."""

    @property
    def link(self) -> str | Mapping[str, str | Names]: ...
    @property
    def through(self) -> Names: ...
    @property
    def via(self) -> str | Names | None: ...
    @property
    def settle_seconds(self) -> int: ...


@dataclass(frozen=True)
class Route:
    """The link from the pointing items to the last item, and the rules that keep it. `via`: the index that the file
    chooses.
    """

    link: Link
    rules: tuple[CopyRule, ...] = ()
    via: str | None = None


def route(compiler: RuleCompiler, form: Linked, one: Entity, many: Entity, *, within: bool = False) -> Route | None:
    """The route from items of `many` to the item of `one`; None if a problem was reported. `within`: see `link`."""
    path = _entities(compiler, form.link, one, many)
    if path is None:
        return None
    via = _indexes(compiler, form, path)
    if len(path) >= FEWEST:
        return _over_several(compiler, form, path, via)
    for name in form.through:
        message = f"nothing is kept as {name!r}: this link names its item directly"
        compiler.add("SR120", compiler.at_key("through", name), message, "remove it")
    ((_, names),) = path[1:]
    link = compiler.link(names, one, many, within=within)
    return None if link is None else Route(link, via=via.get(one.name))


def _entities(
    compiler: RuleCompiler, given: str | Mapping[str, str | Names], one: Entity, many: Entity
) -> Sequence[tuple[Entity, Names]] | None:
    """The entities from the one that points to the one that is meant, each with the names that differ on its hop."""
    if isinstance(given, str):
        path = compiler.path(given, "link", entity=True)
        if path is None:
            return None
        if len(path) == 1:
            message = f"{given!r} is one name, and a text is a path through entities"
            compiler.add(
                "SR218", "link", message, f"link: {{{', '.join(f'{field}: {given}' for field in one.identity)}}}"
            )
            return None
        named: dict[str, Names] = {name: {} for name in path}
        if len(named) < len(path):
            compiler.add("SR218", "link", f"{given!r} names an entity twice")
            return None
        if path[0] != many.name:
            meant = path[::-1] if path[-1] == many.name else (many.name, *path)
            compiler.add("SR218", "link", f"{given!r} begins with {path[0]!r}", f"link: {'.'.join(meant)}")
            return None
        del named[many.name]
    else:
        direct = {field: name for field, name in given.items() if isinstance(name, str)}
        named = {name: names for name, names in given.items() if not isinstance(names, str)}
        if not named:
            return (many, {}), (one, direct)
        for name in direct:
            message = f"{name!r} has one name, beside entities that have maps of names"
            compiler.add(
                "SR218",
                compiler.at_key("link", name),
                message,
                "give each entity on the way a map, {} if no name differs",
            )
    found = [(many, {}), *_find_entities(compiler, named)]
    if not compiler.sound:
        return None
    if found[-1][0] is not one or len(found) == 1:
        shown = ".".join(entity.name for entity, _ in found)
        cure = None if one in (entity for entity, _ in found) else f"link: {shown}.{one.name}"
        compiler.add("SR218", "link", f"the link ends with {found[-1][0].name!r}", cure)
        return None
    return found


def _find_entities(compiler: RuleCompiler, named: Mapping[str, Names]) -> Iterator[tuple[Entity, Names]]:
    entities = compiler.known.entities
    for name, names in named.items():
        if name in entities:
            yield entities[name], names
        elif name in compiler.known.broken:
            compiler.sound = False
        else:
            compiler.add(
                "SR102", "link", explain_unknown_name("entity", name, compiler.known.document.names("entities"))
            )


def _indexes(compiler: RuleCompiler, form: Linked, path: Sequence[tuple[Entity, Names]]) -> Names:
    """The indexes that the file chooses, by the entity of the hop; one without an entity is for the last hop."""
    if form.via is None or isinstance(form.via, str):
        return {path[-1][0].name: form.via} if form.via else {}
    known = [entity.name for entity, _ in path[1:]]
    for name in form.via:
        if name not in known:
            message = explain_unknown_name("entity", name, known, "this link")
            compiler.add("SR102", compiler.at_key("via", name), message, "name an entity on the way, or remove it")
    return form.via


def _over_several(
    compiler: RuleCompiler, form: Linked, path: Sequence[tuple[Entity, Names]], via: Names
) -> Route | None:
    """The rules of each hop but the last, and the link that they keep on the pointing items."""
    many, (first, names) = path[0][0], path[1]
    link = compiler.link(names, first, many, within=True)
    rules: list[CopyRule] = []
    unused = set(form.through)
    for (near, _), (far, names) in pairwise(path[1:]):
        there = compiler.link(names, far, near)
        if link is None or there is None:
            return None
        here, mapping = dict(link), dict[Path, Path]()
        onward: list[tuple[str, Ref]] = []
        if not there:
            message = f"{near.name!r} does not name {far.name!r}, which has a fixed key"
            compiler.add("SR218", "link", message, f"remove {near.name!r} from the link")
            return None
        # What the key of `near` holds is named already; but one field must be read on `near`, or it need not exist.
        named = {field for field, ref in there if ref.field in near.identity and ref == near.ref(ref.field)}
        if len(named) == len(there):
            named.remove(there[-1][0])
        for field, ref in there:
            if field in named:
                onward.append((field, here[ref.field]))
                continue
            said = next((name for name in (f"{far.name}.{field}", field) if name in form.through), None)
            unused.discard(said or "")
            name = f"{near.name}_{field}" if said is None else form.through[said]
            kept = _attribute(compiler, many, name, "link" if said is None else compiler.at("through", said))
            mapping[ref.path if ref.template is None else (ref.field,)] = kept
            onward.append((field, Ref(kept[0], kept)))
        if not compiler.sound or not compiler.link_matches(far, many, tuple(onward)):
            return None
        before, link = link, tuple(onward)
        if not _is_kept_alone(compiler, many, link, mapping.values()):
            return None
        rules += _compile_hop(compiler, form, (near, many), before, tuple(mapping.items()), via=via.get(near.name))
    for name in sorted(unused):
        message = f"the items of {many.name!r} keep nothing for {name!r}"
        compiler.add(
            "SR202", compiler.at_key("through", name), message, "name a field of an entity behind the first hop"
        )
    return None if link is None or not compiler.sound else Route(link, tuple(rules), via.get(path[-1][0].name))


def _attribute(compiler: RuleCompiler, many: Entity, name: str, location: Location | str) -> Path:
    """The attribute that is kept; reported where it cannot be."""
    path = compiler.path(name, location) or ("",)
    if path[0] in many.identity:
        message = f"{name!r} is part of the key of {many.name!r}"
        compiler.add("SR218", location, message, "give what is kept another name: through: {field: name}")
    elif len(path) > 1:
        compiler.add("SR218", location, f"{name!r} is inside a map, where no index reaches", "name an attribute")
    return path[:1]


def _is_kept_alone(compiler: RuleCompiler, many: Entity, onward: Link, kept: Iterable[Path]) -> bool:
    """True if no other rule keeps these attributes on the pointing items; reported where one does."""
    fields = {ref.path: field for field, ref in onward}
    for path in kept:
        first = compiler.known.hops.setdefault((many.name, path), compiler.name)
        if first != compiler.name:
            message = f"rule {first} keeps {many.name}.{path[0]} already"
            cure = f"link by it: link: {{{fields[path]}: {path[0]}}}; or name another in through"
            compiler.add("SR218", "link", message, cure)
    return compiler.sound


def _compile_hop(
    compiler: RuleCompiler,
    form: Linked,
    hop: tuple[Entity, Entity],
    link: Link,
    mapping: tuple[tuple[Path, Path], ...],
    *,
    via: str | None,
) -> Iterator[CopyRule]:
    near, many = hop
    find = compiler.find(link, near, many, via, "link", choose=links.choose, whole=True)
    if find is None:
        return
    yield HopRule(
        name=f"{compiler.name}.through_{near.name}",
        source=near,
        target=many,
        find=find,
        settle_seconds=form.settle_seconds,
        link=link,
        on_delete="clear",
        mapping=mapping,
    )
