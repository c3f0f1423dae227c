"""A store in memory over a real store: it keeps every write to itself, and reads items that it does not know.

Invariant: each item is read once, strongly consistent, and its image is kept next to the item as it is now. A listing
is complete, or answers only for the rows before the end of its first page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.entities import Table
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.limits import Limits
from sync_rules.model.semantics import Place, is_same_item, list_actions, make_place
from sync_rules.model.sizes import is_possible_key
from sync_rules.model.values import Item, Path, get, is_same_value
from sync_rules.model.writes import Action, Condition, Increment, Put, Result, Status, Update
from sync_rules.pipeline.requests import Apply, List, Page, Read, Scan, Store

LISTED_MAX_ITEMS: Final = 100  # of one Query: a transaction has room for no more
IN_MEMORY: Final = Limits(  # nothing is put off: there is no queue
    fan_out_page_max_items=LISTED_MAX_ITEMS, fan_out_inline_max_items=LISTED_MAX_ITEMS, parked_max_looks=0
)
TOO_MANY: Final = "TooManyItems"


@dataclass
class Applied:
    """The work of rules on an item: the conditions on the item as it was read, the paths, and the kinds of writes."""

    guard: list[Condition] = field(default_factory=list)
    paths: dict[Path, None] = field(default_factory=dict)
    elements: dict[str, None] = field(default_factory=dict)  # attributes with a set that only grew or shrank
    numbers: dict[str, None] = field(default_factory=dict)  # attributes that were only added to
    whole: bool = False  # it was put as a whole


class ReadThrough(MemoryStore):
    """A store in memory over a real store. `before` holds the items as they were read, None for missing items.
    `outdated`: a listing returned another image of an item than an earlier read. `new`: places where the application
    asserts that no item exists. `given`: places whose images the application gave, until they are compared.
    """

    def __init__(self, store: Store, tables: Mapping[str, Table]) -> None:
        self._below = store
        self._of_rules = tables
        self.before: dict[Place, Item | None] = {}
        self.keys: dict[Place, ItemKey] = {}
        self.outdated = False
        self.new: set[Place] = set()
        self.given: set[Place] = set()
        self._pages: dict[str, Page] = {}
        self.start_over()

    def start_over(self) -> None:
        """Forget the writes, and keep the images."""
        super().__init__(self._of_rules, self._note)
        self.applied: dict[Place, Applied] = {}
        self.writes = 0
        self._changes: list[Change] = []
        for place, item in self.before.items():
            if item is not None:
                self.hold(self.keys[place], item)

    def changes(self) -> list[Change]:
        """Return the changes since the last call."""
        found, self._changes = self._changes, []
        return found

    def now(self, place: Place) -> Item | None:
        """Return the item as it is in memory."""
        return self.item(self.keys[place])

    def know(self, key: ItemKey, item: Item | None) -> None:
        """Note an item as it was read."""
        place = make_place(key)
        self.before[place], self.keys[place] = item, key
        if item is not None:
            self.hold(key, item)

    def list_known_items(self, request: List) -> Page:
        """Return a page of the items in memory."""
        return super().list(request)

    def load(self, keys: Iterable[ItemKey]) -> None:
        """Read the items of these keys that are not known yet."""
        unknown = {place: key for key in keys if (place := make_place(key)) not in self.before}
        if unknown:
            wanted = tuple(unknown.values())
            if not all(map(is_possible_key, wanted)):
                raise StoreError(
                    "ValidationException", "no item can have this key: a value is empty, too long or out of range"
                )
            for key, item in zip(wanted, self._below.read(Read(wanted)), strict=True):
                self.know(key, item)

    # ------------------------------------------------------------ requests of the pipeline
    def read(self, request: Read) -> tuple[Item | None, ...]:
        """Return whole items, whatever attributes are asked for."""
        self.load(request.keys)
        return tuple([self.item(key) for key in request.keys])

    def list(self, request: List) -> Page:
        """Return a page of the items in memory, after a Query of the real store."""
        table = self._of_rules[request.table]
        page = self._query_below(request)
        rows = tuple(key for item in page.items if (key := table.key_of(item)) is not None)
        if request.index is None:
            for key, item in zip(rows, page.items, strict=True):
                if make_place(key) not in self.before:
                    self.know(key, item)
                elif make_place(key) not in self.new and not is_same_item(self.before[make_place(key)], item):
                    self.outdated = True
        else:
            self._compare_given_items(rows)
        self.load(rows)
        if page.cursor is None:
            return self.list_known_items(request)
        return self._list_beginning(request, {make_place(key) for key in rows}, table)

    def _compare_given_items(self, rows: Iterable[ItemKey]) -> None:
        """Read the given items that an index lists: its rows are no images to compare them with."""
        keys = tuple(key for key in rows if make_place(key) in self.given)
        for key, item in zip(keys, self._below.read(Read(keys)) if keys else (), strict=True):
            before = self.before[make_place(key)]
            self.given.discard(make_place(key))
            self.outdated |= before is None or item is None or not is_same_item(before, item)

    def _query_below(self, request: List) -> Page:
        """One page of the real store, from the beginning, however much was asked for."""
        asked = replace(request, limit=LISTED_MAX_ITEMS, cursor=None, attributes=None)
        known = repr(asked)
        if known not in self._pages:
            self._pages[known] = self._below.list(asked)
        return self._pages[known]

    def _list_beginning(self, request: List, rows: set[object], table: Table) -> Page:
        """The first rows of a listing, if only its beginning was read."""
        everything = self.list_known_items(replace(request, limit=10 * LISTED_MAX_ITEMS, cursor=None))
        last = 0
        for number, item in enumerate(everything.items, 1):
            key = table.key_of(item)
            last = number if key is not None and make_place(key) in rows else last
        if request.cursor is not None or last < request.limit:
            raise StoreError(TOO_MANY, f"more than {LISTED_MAX_ITEMS} items are listed in table {request.table}")
        return self.list_known_items(request)

    def scan(self, request: Scan) -> Page:
        raise StoreError("NoScan", f"table {request.table} is not scanned in a transaction")

    def apply(self, request: Apply) -> tuple[Result, ...]:
        results = []
        for write in request.writes:
            actions = list_actions(write)
            self.load(action.key for action in actions)
            guards = [(action, self._list_unchanged_conditions(action)) for action in actions]
            (result,) = super().apply(Apply((write,)))
            if result.status is Status.WRITTEN:
                self.writes += 1
                for action, guard in guards:
                    self._remember(action, guard)
            results.append(result)
        return tuple(results)

    def _list_unchanged_conditions(self, action: Action) -> tuple[Condition, ...]:
        """The conditions on values that are still as they were read."""
        place = make_place(action.key)
        before, now = self.before[place], self.item(action.key)
        if before is now:
            return action.guard
        return tuple(one for one in action.guard if is_same_value(get(before, one.path), get(now, one.path)))

    def _remember(self, action: Action, guard: tuple[Condition, ...]) -> None:
        one = self.applied.setdefault(make_place(action.key), Applied())
        one.guard += (condition for condition in guard if condition not in one.guard)
        match action:
            case Put():
                one.whole = True
            case Increment():
                one.numbers |= dict.fromkeys(name for name, _ in action.amounts)
            case Update():
                one.paths |= dict.fromkeys((*(path for path, _ in action.sets), *action.removes))
                one.elements |= dict.fromkeys(path[0] for path, _ in (*action.adds, *action.discards))

    def _note(self, key: ItemKey, old: Item | None, new: Item | None) -> None:
        self.keys.setdefault(make_place(key), key)
        self._changes.append(Change(key, old, new))
