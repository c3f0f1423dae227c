"""Moves in a replay: the records of the recorded pipeline, and the place of what the application wrote.

A rule with `mode: move` changes the place of an item and nothing of its content. Invariant: after a move, what the
application wrote stands under the new key exactly as it was under the old one, with the fields of that key. A move that
no rule asks for is none: then an item is missing, and another one is too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sync_rules.adapters.memory import MemoryStore
from sync_rules.lab.provenance import Provenance
from sync_rules.lab.recording import Recorded
from sync_rules.model.items import Change, Failure, ItemKey
from sync_rules.model.values import Item, same
from sync_rules.rules.kinds.move import LATE, MoveRule, attributes_in
from sync_rules.rules.rule import let_in
from sync_rules.rules.ruleset import Rules


@dataclass
class Moves:
    """The moves of a replay. `applied` holds the application's writes, `going` what the rules have just removed."""

    rules: Rules
    provenance: Provenance
    applied: MemoryStore
    going: dict[ItemKey, Item] = field(default_factory=dict)

    def recorded(self, records: Iterable[Recorded]) -> frozenset[int]:
        """The numbers of the records that the recorded pipeline wrote to move items: a delete, and a put of the same
        item under the key that a rule names.
        """
        went: dict[ItemKey, list[Recorded]] = {}
        came: list[Recorded] = []
        for one in records:
            if one.change.new is None and not one.change.expired:
                went.setdefault(one.change.key, []).append(one)
            elif one.change.old is None:
                came.append(one)
        found: set[int] = set()
        for put in came:
            rule, source = self._from(put.change.key, put.change.new)
            for delete in went.get(source, ()) if rule and source else ():
                if rule and _is_whole(rule, put.change, delete.change):
                    found |= {put.number, delete.number}
                    went[delete.change.key].remove(delete)
                    break
        return frozenset(found)

    def note(self, change: Change, past: Iterable[Change]) -> None:
        """Note a write of the rules: after a move, the application's item stands elsewhere. `past` has all changes."""
        if change.new is None and change.old is not None:
            self.going[change.key] = change.old
            return
        rule, source = self._from(change.key, change.new) if change.old is None else (None, None)
        gone = self.going.pop(source, None) if source else None
        wrote = self.applied.item(source) if source else None
        if rule is None or source is None or gone is None or wrote is None or not _asks(rule, change.key, gone):
            return
        images = [one.new for one in past if one.key == source and one.new is not None]
        item = self._carried(source, gone, wrote, images)
        made = {ref.path[0]: rule.source.ref(name).read(gone) for name, ref in rule.names}
        made |= {name: (change.new or {}).get(name) for name in rule.index_keys}
        made |= change.key.attributes()
        self.applied.delete(source)
        self.applied.put(change.key.table, {name: value for name, value in {**item, **made}.items() if value})

    def excuse(self, parked: Iterable[Failure], store: MemoryStore, changes: Sequence[Change]) -> None:
        """Forget attributes of the application that a move left behind, as the rule has reported: those that the item
        did not always have, so that a look may have missed them.
        """
        for failure in parked:
            if failure.key is None or not failure.reason.startswith(LATE) or self.applied.item(failure.key) is None:
                continue
            there = store.item(failure.key) or {}
            images = [one.new for one in changes if one.key == failure.member and one.new is not None]
            names = [name for name in attributes_in(failure.element or "[]") if name not in there]
            late = [(name,) for name in names if any(name not in image for image in images)]
            self.applied.update(failure.key, (), late)

    def _from(self, key: ItemKey, item: Item | None) -> tuple[MoveRule | None, ItemKey | None]:
        """The rule that may have moved an item to this key, and the key under which it was before."""
        entity = self.rules.entity_of(key)
        for rule in self.rules.rules.values():
            if isinstance(rule, MoveRule) and rule.target is entity and item is not None:
                source = rule.pointer(item)
                if source is not None:
                    return rule, source
        return None, None

    def _carried(self, key: ItemKey, gone: Item, wrote: Item, images: Sequence[Item]) -> Item:
        """The attributes with which an item must come to its place: those of the application as it wrote them, and
        those that rules kept on it.
        """
        theirs, ours = (self.provenance.of_application(key, item, at_times=images) for item in (gone, wrote))
        names = (name for name in {**gone, **wrote} if name not in key.attributes())
        right = {name: (gone if same(theirs.get(name), ours.get(name)) else wrote).get(name) for name in names}
        return {name: value for name, value in right.items() if value is not None}


def _asks(rule: MoveRule, to: ItemKey, item: Item) -> bool:
    """True if a rule moves this item to this key."""
    return let_in(rule.where, item, rule.source) is True and to in rule.mirrors(item)


def _is_whole(rule: MoveRule, put: Change, delete: Change) -> bool:
    """True if a put and a delete look like a move: the new item has nothing that the old one had not."""
    old, new = delete.old or {}, put.new or {}
    made = {*put.key.attributes(), *(path[0] for path in rule.identity_paths), *rule.index_keys}
    return _asks(rule, put.key, old) and all(same(new[name], old.get(name)) for name in new if name not in made)
