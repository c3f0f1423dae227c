"""mirror with `mode: move`: an item gets another key, once and for good.

Invariant: one transaction puts the item under its new key and deletes it under its old key. The new item has every
attribute of the old one, its former key included, and the delete checks that each still has the value that was read.
The rule rebuilds only index keys with a template of the new entity. It reports another item under the new key and
leaves it alone. Nothing moves back: the moved item belongs to the application.

An attribute that was set after the read is deleted with the old item. The record of the delete shows it, and it is
reported by name. The rule never restores it: the application may have removed it before a late record arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self

from sync_rules.model.entities import Entity
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.json_bytes import compact, parse_json
from sync_rules.model.values import Item, Path, same, show_path
from sync_rules.model.writes import Delete, Transaction, Write, expect_item
from sync_rules.rules.description import Drawing, Moment, Operation, Use, name_of
from sync_rules.rules.families import Part
from sync_rules.rules.kinds.mirror import CHECK_MAX_ATTRIBUTES, MirrorRule, put_of
from sync_rules.rules.rule import Blocked, Node, Rule, let_in

TAKEN: Final = "KeyTaken"
LATE: Final = "AttributeLeftBehind"


@dataclass(frozen=True, eq=False, kw_only=True)
class MoveRule(MirrorRule):
    """The source is the item under its old key, the target the same item under its new key. `theirs`: attributes that
    other rules write on the target.
    """

    theirs: tuple[str, ...] = ()
    moves = True
    transacts = True
    rounds_max = 1

    def body(self) -> Mapping[str, object]:
        return {**super().body(), "mode": "move"}

    def adapt_to(self, others: Iterable[Rule]) -> Self:
        writes = [node.writes for rule in others if not rule.moves for node in rule.nodes()]
        names = {path[0] for entity, path in writes if entity is self.target and len(path) == 1}  # a map stays
        return replace(self, theirs=tuple(sorted(names)))

    @cached_property
    def copies(self) -> tuple[Path, ...]:
        return ()

    @property
    def owned_entities(self) -> tuple[Entity, ...]:
        return ()

    def owns(self, item: Item) -> bool:
        return False

    def list_own_copies(self, key: ItemKey, item: Item) -> tuple[Path, ...]:
        return ()

    def is_known_by_key(self, entity: Entity) -> bool:
        return entity is not self.source  # what it had when it went

    @property
    def swept_entities(self) -> tuple[Entity, ...]:
        return (self.source,)

    def nodes(self) -> tuple[Node, ...]:
        return (Node(self, (self.target, ()), ((self.source, ()),)),)

    def draw(self) -> Drawing:
        return Drawing(self.target, ((),), ((),), ("moves",))

    def list_uses_to_write(self) -> Iterator[Use]:
        old, new = name_of(self.source), name_of(self.target)
        yield Use(Moment.WRITTEN, Operation.PUT, self.target.table, f"{new}, where {old} moves")
        yield Use(Moment.WRITTEN, Operation.DELETE, self.source.table, f"{old}, which moves")

    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        """The new key of an existing item. For a deleted item, its new key with the names of its attributes, to report
        those left behind; an expired item did not move. A deleted target may free the key for a waiting source.
        """
        if entity is self.target and change.new is None:
            waiting = None if change.old is None else self.pointer(change.old)
            return () if waiting is None else (Part(self, change.key, waiting),)
        if entity is not self.source:
            return ()
        if change.new is None:
            had = _element(set(change.old or ()) - self._anew(change.key)) if not change.expired else ""
            return tuple(Part(self, key, change.key, had) for key in self.mirrors(change.old) if had)
        if (let_in(self.where, change.new, self.source)) is False:
            return ()
        moves = tuple(Part(self, key, change.key) for key in self.mirrors(change.new))
        return moves or ((Part(self, change.key, change.key),) if self._has_impossible_key(change.new) else ())

    def label(self, part: Part) -> str:
        return part.element  # names of attributes

    def expand_part(self, part: Part, target: Item | None, source: Item | None) -> Iterable[Part]:
        """The part; of a deleted item, with the names of the attributes that the moved item lacks."""
        if not part.element:
            return (part,)
        moved = target if target is not None and self.pointer(target) == part.source else None
        there = {*(moved or ()), *self.theirs}
        late = [] if moved is None else [name for name in attributes_in(part.element) if name not in there]
        return (replace(part, element=_element(late)),) if late else ()

    def write_for(self, part: Part, target: Item | None, source: Item | None) -> Write | Blocked | None:
        if part.source is None:
            return None
        if part.element:
            names = ", ".join(show_path((name,)) for name in attributes_in(part.element))
            return Blocked(f"{LATE}: {names}", member=part.source)
        if source is None:
            return None
        lets_in = let_in(self.where, source, self.source)
        if isinstance(lets_in, Blocked):
            return Blocked(lets_in.reason, member=part.source)
        if not lets_in:
            return None
        named = self.mirrors(source)
        if part.target not in named or part.target == part.source:
            return Blocked("NoMirrorKey", member=part.source) if self._has_impossible_key(source) else None
        if target is not None:
            return Blocked(TAKEN, member=part.source)
        absent = expect_item(self.target.table.partition.name, None, ())
        moved = put_of(part.target, self._make_values(part.target, named[part.target], source), absent)
        if lost := self._overwritten(part.source, source, moved.item):
            return Blocked(f"{lost} would be overwritten by a part of a key", member=part.source)
        if len(source) > CHECK_MAX_ATTRIBUTES:
            return Blocked("TooManyAttributes", member=part.source)
        seen = self.source.drop_key_paths((name,) for name in sorted(source))
        still = expect_item(self.source.table.partition.name, source, seen)
        return Transaction((Delete(part.source, still), moved))

    def _overwritten(self, key: ItemKey, source: Item, moved: Item) -> str:
        """An attribute that the move would overwrite: its name is a field of the old or the new key; "" if none."""
        kept = (name for name in source if name not in self._anew(key))
        return next((show_path((name,)) for name in kept if not same(moved.get(name), source[name])), "")

    def _anew(self, key: ItemKey) -> frozenset[str]:
        """The attributes of a source that its moved self has not as they were: its key, and what templates make."""
        built = (name for name, (template, _, _) in self.index_keys.items() if template.text != f"{{{name}}}")
        return frozenset((*(name for name, _, _ in key.values), *built))


def _element(names: Iterable[str]) -> str:
    """The element of a part that asks for attributes, as a text that a message can carry; "" for none."""
    return compact(sorted(names)) if names else ""


def attributes_in(element: str) -> list[str]:
    """The names in an element; a text of another origin is taken for a name, so that it is never right in silence."""
    try:
        names = parse_json(element)
    except ValueError:
        return [element]
    told = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return names if told else [element]
