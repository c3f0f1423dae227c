"""Checks each write of the pipeline at the moment when it is made, whatever becomes right again later.

Invariant: no item is created or deleted that is not the pipeline's to make or delete, no attribute of an application is
touched, no copy takes a value that its source never had, and what an item's own values make is made of those that it
holds. What is strict is right when it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.simulation.kept_versions import is_version
from tests.simulation.oracle import (
    Copy,
    children_of,
    copy_holds,
    copy_of,
    derived,
    element_of,
    has_more,
    lets_in,
    members_of,
    mirror_of,
    mirror_values,
    owned_paths,
    path_link,
    value_of,
)
from tests.simulation.plain import RaisingError, same, word_of
from tests.simulation.spec import Body, Entity, Item, Link, Path, Place, Spec, get

BETWEEN = "\x1f"  # the keys in one key of the ledger


class UnsafeError(AssertionError):
    """A write of the pipeline that may not be."""


class Safety:
    """The watch over writes."""

    def __init__(self, spec: Spec, items: Mapping[Place, Item], past: Mapping[Place, list[Item]]) -> None:
        self._spec, self._items, self._past = spec, items, past
        self.at_once = False  # a copy has the value that its source has now
        self.judge: Callable[[Place, Item, Item, Mapping[Place, Item]], None] | None = None  # of numbers
        self._owned: dict[str, list[Path]] = {}
        self._mirrors: dict[str, list[Body]] = {}
        self._copies: dict[str, list[tuple[Body, Copy]]] = {}
        self._derived: dict[str, list[tuple[Body, Path]]] = {}
        self._sets: dict[str, list[Body]] = {}  # strict ones
        self._deleting: dict[str, list[tuple[Body, Entity, Link]]] = {}
        for name, entity in spec.entities.items():
            self._owned[name] = [path for paths in owned_paths(spec, entity).values() for path in paths]
        counters = [rule for rule in spec.rules.values() if rule["kind"] in ("count", "sum", "mean", "min", "max")]
        self._makers = {name: [r for r in counters if spec.ref(r["into"])[0].name == name] for name in spec.entities}
        for rule in spec.rules.values():
            self._take(rule)

    def _take(self, rule: Body) -> None:
        spec, policy = self._spec, rule.get("on_delete")
        if rule["kind"] == "collect" and rule.get("strict"):
            self._sets.setdefault(members_of(spec, rule).parent.name, []).append(rule)
        match rule["kind"]:
            case "mirror":
                self._mirrors.setdefault(rule["into"], []).append(rule)
            case "copy":
                copy = copy_of(spec, rule)
                self._copies.setdefault(copy.target.name, []).append((rule, copy))
                if policy == "delete":
                    self._deleting.setdefault(copy.target.name, []).append((rule, copy.source, copy.link))
            case "derive":
                entity, path = spec.ref(rule["derive"])
                self._derived.setdefault(entity.name, []).append((rule, path))
            case "path" if policy == "delete":
                entity, link = path_link(spec, rule)
                self._deleting.setdefault(entity.name, []).append((rule, entity, link))
            case "embed" | "collect" | "count" | "sum" | "mean" | "min" | "max" | "values" if policy == "delete":
                members = members_of(spec, rule)
                self._deleting.setdefault(members.child.name, []).append((rule, members.parent, members.link))

    def deletes(self, entity: Entity) -> bool:
        """True if a rule deletes items of an entity."""
        return entity.name in self._deleting

    def owned(self, place: Place, path: Path) -> bool:
        """True if a path of an item is one that a rule writes."""
        entity = self._spec.entity_of(place)
        return entity is not None and any(_overlap(path, one) for one in self._owned[entity.name])

    def check(self, place: Place, old: Item | None, new: Item | None) -> None:
        """Raises UnsafeError for a change that the pipeline may not make."""
        if place[0] in self._spec.ledgers:
            self._check_rank(place, new)
            return
        entity = self._spec.entity_of(place)
        if entity is None:
            raise UnsafeError(f"the pipeline writes {place}, which is of no entity")
        if entity.made and self._comes_or_goes(entity, place, old, new):
            return
        mirrors = self._mirrors.get(entity.name, [])
        if new is None:
            assert old is not None, "a change"
            if not self._was_mirror(mirrors, place, old) and not self._goes(entity, place, old):
                raise UnsafeError(f"the pipeline deletes {place}, and no rule says so")
            return
        if old is None:
            self._check_new(mirrors, place, new)
            return
        changed = [
            path for path in _differences(old, new) if not any(_overlap(path, one) for one in self._owned[entity.name])
        ]
        if changed and not any(self._is_mirror(rule, place, new, changed) for rule in mirrors):
            raise UnsafeError(f"the pipeline changes {changed} of {place}")
        self._check_owner(mirrors, place, old, new)
        self._check_values(entity, place, old, new)
        if self.judge is not None:
            self.judge(place, old, new, self._items)

    def _check_new(self, mirrors: Sequence[Body], place: Place, new: Item) -> None:
        made = is_version(self._spec, place, new, self._past)
        if not made and not any(self._is_mirror(rule, place, new) for rule in mirrors):
            raise UnsafeError(f"the pipeline creates {place}")

    def _comes_or_goes(self, entity: Entity, place: Place, old: Item | None, new: Item | None) -> bool:
        """True if an item that rules make comes or goes. Raises UnsafeError if it comes with anything else, or goes with
        something else that was not just added to what the pipeline saw.
        """
        if old is None and new is not None and has_more(self._spec, entity, new):
            raise UnsafeError(f"the pipeline creates {place} with something that no rule makes")
        if new is None and old is not None and has_more(self._spec, entity, old):
            images = (image for image in self._past.get(place, ()) if not has_more(self._spec, entity, image))
            if not any(all(same(value, old.get(name)) for name, value in image.items()) for image in images):
                raise UnsafeError(f"the pipeline deletes {place} with something that no rule makes")
        for rule in self._makers[entity.name] if new is None else ():
            mark = (rule.get("ledger", "ledger"), (("S", f"{rule['name']}/B"), ("S", "-")))
            if not any(image.get("complete") == {"BOOL": True} for image in self._past.get(mark, ())):
                raise UnsafeError(f"the pipeline deletes {place} before the books of {rule['name']} were complete")
        return old is None or new is None

    def _check_values(self, entity: Entity, place: Place, old: Item, new: Item) -> None:
        for rule, copy in self._copies.get(entity.name, ()):
            self._check_copy(rule, copy, place, old, new)
        for rule, path in self._derived.get(entity.name, ()):
            if not same(get(old, path), get(new, path)) and not same(get(new, path), derived(rule, entity, path, new)):
                raise UnsafeError(f"rule {rule['name']} derives {path} of {place} = {get(new, path)} of what it is not")
        for rule in self._sets.get(entity.name, ()):
            self._check_set(rule, place, old, new)

    # ---------------------------------------------------------------- what is made of other items, and must be right
    def _check_set(self, rule: Body, place: Place, old: Item, new: Item) -> None:
        """An element comes to a strict set if an edge has it now, and goes if none has."""
        members, (_, into) = members_of(self._spec, rule), self._spec.ref(rule["into"])
        was, held = ({*(get(item, into) or {}).get("SS", ())} for item in (old, new))
        try:
            elements = [
                element_of(rule, members.child, edge)
                for at, edge in self._items.items()
                if self._spec.entity_of(at) is members.child
                and at != place
                and self._spec.named(members.parent, members.link, edge) == place
                and lets_in(rule, members.child, edge)
            ]
        except RaisingError:
            return
        now = {one[0]: one[1] for one in elements if one is not None}  # False for one that does not come apart
        if odd := [one for one in was ^ held if now.get(one, True) and (one in now) is not (one in held)]:
            raise UnsafeError(f"rule {rule['name']} is strict, and {odd} of {place} are not as their edges are")

    def _check_rank(self, place: Place, new: Item | None) -> None:
        """The place that a child takes among others is that of a child which is there now, and has this value. Where
        two versions of the rules are deployed, one may have another value.
        """
        name, ranks, parent = place[1][0][1].partition("/R/")
        if self.judge is not None or not ranks or new is None or name not in self._spec.rules:
            return
        rule = self._spec.rules[name]
        members, child = members_of(self._spec, rule), children_of(self._spec, rule)
        key = place[1][1][1].split(BETWEEN)[1:]
        found = next(
            (item for at, item in self._items.items() if self._spec.entity_of(at) is child and _texts(at) == key), None
        )
        named = {None} if found is None else self._spec.all_named(members.parent, members.link, found)
        value = None if found is None else value_of(rule, self._spec, found)
        held = new["n"]["L"][0] if "L" in new.get("n", {}) else new.get("n")
        equal = same(value, held) if "fields" in rule else word_of(value) == word_of(held)
        if parent.split(BETWEEN) not in [_texts(one) for one in named if one is not None] or not equal:
            raise UnsafeError(f"rule {name} puts {held} at {place}, and its child has {value}")

    # ---------------------------------------------------------------- mirrors
    def _check_owner(self, mirrors: Sequence[Body], place: Place, old: Item, new: Item) -> None:
        """A mirror becomes that of another source only if its own has let it go."""
        for rule in mirrors:
            mirror = mirror_of(self._spec, rule)
            owner, heir = (self._spec.named(mirror.source, mirror.owner, item) for item in (old, new))
            if owner != heir and (owner is None or not self._was_mirror([rule], place, old)):
                raise UnsafeError(f"the pipeline takes {place} from {owner or 'its application'} for {heir}")

    def _was_mirror(self, mirrors: Sequence[Body], place: Place, old: Item) -> bool:
        """True if a mirror goes that names a source which, now, has none of this key."""
        for rule in mirrors:
            mirror = mirror_of(self._spec, rule)
            owner = self._spec.named(mirror.source, mirror.owner, old)
            if owner is None or owner == place:
                continue
            source = self._items.get(owner)
            if source is None or place not in [at for at, _ in mirror.named(rule, source)]:
                return True
            try:
                if not lets_in(rule, mirror.source, source):
                    return True
            except RaisingError:
                return False
        return False

    def _is_mirror(self, rule: Body, place: Place, new: Item, changed: Sequence[Path] = ()) -> bool:
        """True if an item is, now, the mirror of the source that it names: where it changed, or all of it."""
        mirror = mirror_of(self._spec, rule)
        owner = self._spec.named(mirror.source, mirror.owner, new)
        source = None if owner is None else self._items.get(owner)
        if source is None or not lets_in(rule, mirror.source, source):
            return False
        for at, fields in mirror.named(rule, source):
            if at == place:
                wanted = mirror_values(self._spec, rule, mirror, source, fields)
                paths = [path for path in wanted if not changed or any(_overlap(path, one) for one in changed)]
                if rule.get("attributes") == "all":  # what the source did not have yet when it was read is not checked
                    paths = [path for path in paths if get(new, path) is not None]
                known = all(any(_overlap(path, one) for path in wanted) or get(new, one) is None for one in changed)
                return known and all(same(get(new, path), wanted[path]) for path in paths)
        return False

    # ---------------------------------------------------------------- deletes
    def _goes(self, entity: Entity, place: Place, old: Item) -> bool:
        """True if a rule deletes this item, because its source was deleted and does not exist now."""
        for rule, one, link in self._deleting.get(entity.name, ()):
            named = self._spec.named(one, link, old)
            if named is None or named in self._items or named not in self._past or named == place:
                continue  # a source that never was has not been deleted
            try:
                if rule["kind"] == "copy":
                    goes = copy_holds(copy_of(self._spec, rule), rule, None, old)
                else:
                    goes = rule["kind"] == "path" or lets_in(rule, entity, old)
            except RaisingError:  # a failure of this rule, which then deletes nothing; another one may
                continue
            if goes:
                return True
        return False

    # ---------------------------------------------------------------- copies
    def _check_copy(self, rule: Body, copy: Copy, place: Place, old: Item, new: Item) -> None:
        """A copy takes a value that its source has had, and a strict one a value that it has."""
        for path, to in copy.pairs:
            value = get(new, to)
            if value is None or same(get(old, to), value):
                continue
            if rule.get("mode") == "snapshot" and get(old, to) is not None:
                raise UnsafeError(f"rule {rule['name']} overwrites the snapshot {to} of {place}")
            named = self._spec.named(copy.source, copy.link, new)
            images = [] if named is None else self._past.get(named, [])
            if rule.get("strict") or (self.at_once and rule.get("mode") != "snapshot"):
                images = [new] if named == place else [self._items[named]] if named in self._items else []
            self._check_order(rule, copy, (path, to), place, (old, new))
            if same(value, copy.defaults.get(to)):
                found = [copy.source.read(image, path) for image in self._past.get(named or place, ())]
                due = any(one is None or same(one, value) for one in found)
                if copy.policy != "clear" and get(old, to) is not None and not due:
                    raise UnsafeError(
                        f"rule {rule['name']} writes its default over {to} of {place}, which is to be kept"
                    )
                continue
            if not any(same(copy.source.read(image, path), value) for image in images):
                raise UnsafeError(f"rule {rule['name']} writes {to} of {place} = {value}, which {named} never had")

    def _check_order(
        self, rule: Body, copy: Copy, pair: tuple[Path, Path], place: Place, images: tuple[Item, Item]
    ) -> None:
        """A copy does not go back to an earlier value of its source: a newer value comes from a later read."""
        (path, to), (old, new) = pair, images
        held, value = get(old, to), get(new, to)
        named = self._spec.named(copy.source, copy.link, new)
        fresh = held is not None and " #" in held.get("S", "")  # a value that an application writes into one item once
        if not fresh or named is None or self._spec.named(copy.source, copy.link, old) != named or named == place:
            return
        if self.owned(named, path):
            return
        past = [copy.source.read(image, path) for image in self._past.get(named, [])]
        if held in past and value in past[: past.index(held)] and value not in past[past.index(held) :]:
            raise UnsafeError(f"rule {rule['name']} takes {to} of {place} back from {held} to {value}")


def _texts(place: Place) -> list[str | None]:
    return [word_of({kind: content}) for kind, content in place[1]]


def _overlap(one: Path, other: Path) -> bool:
    size = min(len(one), len(other))
    return one[:size] == other[:size]


def _differences(old: Item, new: Item, at: Path = ()) -> list[Path]:
    found: list[Path] = []
    for name in {**old, **new}:
        left, right = old.get(name), new.get(name)
        if same(left, right):
            continue
        if left is not None and right is not None and "M" in left and "M" in right:
            found += _differences(left["M"], right["M"], (*at, name))
        elif left is None and right is not None and "M" in right and right["M"]:
            found += _differences({}, right["M"], (*at, name))
        else:
            found.append((*at, name))
    return found
