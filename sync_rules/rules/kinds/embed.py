"""embed: the children of a parent, kept as a map or a list inside it.

Invariant: the copy is what its children say, within its limits; without children it is an empty map, never a missing
one. In a map only the entries that differ are written and guarded, so work on two children of one parent does not
collide. Of several children that claim one entry, the first by key has it, so that the order of records does not
matter. The others are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Final, Literal

from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import translate_identity
from sync_rules.model.sizes import count_value_bytes
from sync_rules.model.templates import Template
from sync_rules.model.values import AttributeValue, Item, Path, get, nest
from sync_rules.model.writes import Desired, find_differences
from sync_rules.rules.description import Connection, Drawing, TypeOf
from sync_rules.rules.families import Members
from sync_rules.rules.kinds.gathered_rule import WHOLE, GatheredRule
from sync_rules.rules.rule import Blocked

OnOverflow = Literal["fail", "oldest", "omit"]
TOO_MANY: Final[AttributeValue] = {"NULL": True}  # `omit`: there are too many to keep here, query them

# More than these are written as one attribute: a condition may have 4 KB, an entry takes about 40 bytes of them, and
# other rules write to the same parent.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
ENTRIES_MAX_WRITES: Final = 40


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry of a child in its parent."""

    child: ItemKey
    name: str
    value: AttributeValue


@dataclass(frozen=True, eq=False, kw_only=True)
class EmbedRule(GatheredRule):
    """A rule that keeps children as a map or list inside their parent. `by` makes the name of a child's entry. `fields`
    pairs a child's attributes with their names in the entry; None: all but the table's key. `order`: a field, and
    True for descending. `defaults`: by name, for missing fields. `claimed`: two children may claim one entry; then
    `ids` pairs the child's key fields with their names in the entry.
    """

    by: Template
    fields: tuple[tuple[Path, str], ...] | None = None
    shape: Literal["map", "list"] = "map"
    order: tuple[Path, bool] | None = None
    max_items: int | None = None
    max_bytes: int | None = None
    on_overflow: OnOverflow = "fail"
    claimed: bool = False
    ids: tuple[tuple[str, str], ...] = ()
    defaults: Mapping[str, AttributeValue] = field(default_factory=dict)
    kind = "embed"

    @property
    def reads(self) -> Iterable[Path]:
        shown = (WHOLE,) if self.fields is None else tuple(path for path, _ in self.fields)
        ordered = (self.order[0],) if self.order else ()
        return (*shown, *ordered, *(self.source.ref(field).path for field in self.by.fields))

    def type_of(self, path: Path, known: TypeOf) -> str:
        return "M" if self.shape == "map" else "L"

    def body(self) -> Mapping[str, object]:
        return {
            **super().body(),
            "by": self.by.text,
            "fields": None if self.fields is None else sorted(self.fields),
            "as": self.shape,
            "order": self.order,
            "max_items": self.max_items,
            "max_bytes": self.max_bytes,
            "on_overflow": self.on_overflow,
            **({"default": self.defaults} if self.defaults else {}),
        }

    def members(self, key: ItemKey, target: Item) -> Members | None:
        """Return the Query for all children. If every row has an entry, and the rule need not choose the last children,
        `max_items` + 1 of them are enough.
        """
        listing = super().members(key, target)
        if listing is None or self.max_items is None:
            return listing
        if listing.index is None and self.on_overflow != "oldest" and not self.may_leave_out:
            return replace(listing, max_items=self.max_items + 1, enough=True)
        return replace(listing, max_items=max(listing.max_items, self.max_items + 1))

    def list_present_members(self, key: ItemKey, target: Item) -> tuple[ItemKey, ...]:
        """List the children that the entries of the map name."""
        parent = translate_identity(self.link, self.target, key)
        entries: Mapping[str, AttributeValue] = (get(target, self.into) or {}).get("M", {})
        if self.claimed:
            fields = (self._read_ids(entry) for entry in entries.values())
        else:
            fields = (self.by.parse({"S": name}) for name in entries)
        children = (self.source.key_of({**found, **parent}) for found in fields if found is not None)
        return tuple(dict.fromkeys(child for child in children if child is not None))

    def _read_ids(self, entry: AttributeValue) -> Mapping[str, AttributeValue] | None:
        shown = entry.get("M", {})
        return {field: shown[name] for field, name in self.ids} if all(name in shown for _, name in self.ids) else None

    def find_value_sources(self, key: ItemKey, image: Item, paths: Iterable[Path]) -> tuple[ItemKey, ...] | None:
        """Find the children that entries at these paths name; None if two children may claim an entry."""
        if self.claimed:
            return None
        entries: AttributeValue = {"M": {path[-1]: {"M": {}} for path in paths}}
        return self.list_present_members(key, {self.into[0]: nest(self.into[1:], entries)})

    def mask_paths(self, desired: Desired) -> tuple[Path, ...]:
        """Return these paths for reports. The name of an entry is shown only if the entry exists, and the child's key
        alone makes the name.
        """
        keys = not self.source.drop_key_paths(self.source.ref(field).path for field in self.by.fields)
        paths = (path if keys and value is not None else self._copy_at(path) for path, value in desired.items())
        return tuple(dict.fromkeys(paths))

    def draw(self) -> Drawing:
        shown = ((),) if self.fields is None else tuple(path for path, _ in self.fields)
        return Drawing(self.target, shown, self.copies, ("default",) if self.defaults else ())

    @property
    def connection(self) -> Connection | None:
        """The link of the rule, without the fields that have a default: those may be missing."""
        found, defaulted = super().connection, {path for path, name in self.fields or () if name in self.defaults}
        return found and replace(found, reads=tuple(read for read in found.reads if read[1] not in defaulted))

    @cached_property
    def may_leave_out(self) -> bool:
        """True if a child may have no entry in a map: another child claims it, or `by` cannot make its name."""
        attributes = self.source.drop_key_paths(self.source.ref(field).path for field in self.by.fields)
        return self.shape == "map" and (self.claimed or bool(attributes) or len(self.by.fields) > 1)

    def compute_values(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked:
        """Return the entries of the children that fit. `on_overflow` decides about the other children."""
        entries = self._entries(sources)
        if self.may_leave_out:
            entries = self._drop_duplicates(entries)
        excess = self._find_excess(entries)
        if excess and self.on_overflow == "fail":
            return Blocked(excess, member=entries[-1].child)
        if excess and self.on_overflow == "omit":
            return {self.into: TOO_MANY}
        return self._make_changes(self._select_within_limit(entries) if excess else entries, target)

    def find_omission(self, sources: Sequence[Item | None], target: Item) -> Blocked | None:
        """Find the first child without an entry: another child has the entry that it claims, or it names none."""
        if not self.may_leave_out:
            return None
        entries = self._entries(sources)
        held = {entry.child for entry in self._drop_duplicates(entries)}
        left = min((entry for entry in entries if entry.child not in held), key=_make_sort_key, default=None)
        return None if left is None else Blocked("EntryTwice" if left.name else "NoEntryKey", member=left.child)

    def _drop_duplicates(self, entries: Sequence[Entry]) -> list[Entry]:
        """Drop entries without a name, and entries whose name an earlier child has."""
        holders: dict[str, ItemKey] = {}
        for entry in sorted(entries, key=_make_sort_key):
            holders.setdefault(entry.name, entry.child)
        return [entry for entry in entries if entry.name and holders[entry.name] == entry.child]

    def _entries(self, children: Iterable[Item | None]) -> list[Entry]:
        """The children in order: by the value of its field, those without one first; equal ones by their keys."""
        keyed = self.in_key_order(children)
        if self.order is None:
            return sorted((self._entry(key, child) for key, child in keyed), key=lambda entry: entry.name)
        path, descending = self.order
        ranked = [
            (_make_rank(get(self.source.view(child, [path]), path)), self._entry(key, child)) for key, child in keyed
        ]
        least = [entry for rank, entry in ranked if rank is None]
        placed = [(rank, entry) for rank, entry in ranked if rank is not None]
        others = [entry for _, entry in sorted(placed, key=lambda one: one[0], reverse=descending)]
        return others + least if descending else least + others

    def copies_of(self, source: Item, target: Item) -> tuple[Path, ...]:
        """Return the path of this child's entry if the target has a map, else the path of the whole value."""
        name = self._make_name(source)
        there = self.shape == "map" and "M" in (get(target, self.into) or {})
        return ((*self.into, name),) if name and there else self.copies

    def _entry(self, key: ItemKey, child: Item) -> Entry:
        return Entry(key, self._make_name(child), {"M": dict(self._list_attributes(child))})

    def _make_name(self, child: Item) -> str:
        read = {field: self.source.ref(field).read(child) for field in self.by.fields}
        name = self.by.build({field: value for field, value in read.items() if value is not None}, "S")
        return "" if name is None else name["S"]

    def _list_attributes(self, child: Item) -> Iterable[tuple[str, AttributeValue]]:
        if self.fields is None:
            keys = {attribute.name for attribute in self.source.table.key}
            return ((name, value) for name, value in child.items() if name not in keys)
        view = self.source.view(child, (path for path, _ in self.fields))
        found = ((name, get(view, path) or self.defaults.get(name)) for path, name in self.fields)
        return ((name, value) for name, value in found if value is not None)

    def _find_excess(self, entries: Sequence[Entry]) -> str:
        """The limit that the entries exceed; "" for none."""
        if self.max_items is not None and len(entries) > self.max_items:
            return "TooManyItems"
        if self.max_bytes is not None and count_value_bytes(self._whole(entries)) > self.max_bytes:
            return "TooManyBytes"
        return ""

    def _select_within_limit(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the last entries in order that fit into the target."""
        if self.order is not None and self.order[1]:
            return tuple(reversed(self._last(tuple(reversed(entries)))))
        return self._last(entries)

    def _last(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        if self.max_items is not None:
            entries = entries[max(0, len(entries) - self.max_items) :]
        if self.max_bytes is None:
            return entries
        empty = count_value_bytes(self._whole(()))
        left = self.max_bytes - empty
        for position in reversed(range(len(entries))):
            left -= count_value_bytes(self._whole(entries[position : position + 1])) - empty
            if left < 0:
                return entries[position + 1 :]
        return entries

    def _whole(self, entries: Iterable[Entry]) -> AttributeValue:
        if self.shape == "list":
            return {"L": [entry.value for entry in entries]}
        return {"M": {entry.name: entry.value for entry in entries}}

    def _make_changes(self, entries: Sequence[Entry], target: Item) -> Desired:
        """Return a change for each entry if the target has the map and few entries differ; else one for the map."""
        whole = {self.into: self._whole(entries)}
        present = get(target, self.into)
        if self.shape == "list" or present is None or "M" not in present:
            return whole
        each: dict[Path, AttributeValue | None] = {(*self.into, name): None for name in present["M"]}
        each.update({(*self.into, entry.name): entry.value for entry in entries})
        return each if len(find_differences(target, each)) <= ENTRIES_MAX_WRITES else whole


def _make_sort_key(entry: Entry) -> tuple[str | bytes, ...]:
    return tuple(value for _, _, value in entry.child.values)


def _make_rank(value: AttributeValue | None) -> tuple[str, str | bytes | Decimal | bool] | None:
    """A value as it sorts: by type, then as DynamoDB sorts keys of that type; maps, lists and sets are all alike."""
    if value is None:
        return None
    ((kind, content),) = value.items()
    if kind == "N":
        return kind, Decimal(content)
    return kind, content if isinstance(content, (str, bytes, bool)) else ""
