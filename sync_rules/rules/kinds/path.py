"""path: the place of an item in a hierarchy, as the path of ids from the root down, and as a breadcrumb of names.

Invariant: a path is its parent's path and one more segment; the record of one level triggers the next. An id that is
already in the parent's path is never appended, so every walk ends, on a true cycle too. Segments are compared whole:
CM1 is not in CM10. Names may repeat, so one write has the breadcrumb and its path of ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sync_rules.model.entities import Index, Ref
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.numbers import read_text
from sync_rules.model.semantics import apply_write
from sync_rules.model.values import AttributeValue, Item, Path, get, has_changed
from sync_rules.model.writes import Desired, find_differences, find_misfit, make_update
from sync_rules.rules.description import Drawing, TypeOf
from sync_rules.rules.formula import compute_stable_hash
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.rule import Blocked, Node

CYCLE = "Cycle"
PARENT_WITHOUT_PATH = "ParentWithoutPath"
PARENT_WITHOUT_BREADCRUMB = "ParentWithoutBreadcrumb"
SEPARATOR_IN_ID = "SeparatorInId"
LEVELS_MAX: Final = 1_000  # of a hierarchy: the rounds end with the first that writes nothing


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """The names from the root down to an item, as text at `path`. `name`: the place of an item's own name. The text is
    never parsed, so names may contain the separator.
    """

    path: Path
    name: Ref
    separator: str

    def own(self, item: Item) -> str | None:
        """Return the name of an item; None for an item without a text or number at `name`. Breadcrumbs below skip
        it.
        """
        return read_text(self.name.read(item)) or None

    def of(self, item: Item) -> str | None:
        value = get(item, self.path)
        return None if value is None else value.get("S") or None

    def is_due(self, item: Item) -> bool:
        """True if an item will get a breadcrumb that it does not have yet."""
        return self.of(item) is None and self.own(item) is not None

    def make_values(self, parent: Item | None, item: Item) -> dict[Path, AttributeValue | None]:
        """Return the breadcrumb that an item must have; no values while the parent's breadcrumb is not written yet."""
        if parent is not None and self.is_due(parent):
            return {}
        names = [name for name in (parent and self.of(parent), self.own(item)) if name]
        return {self.path: {"S": self.separator.join(names)} if names else None}


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeRule(LinkedRule):
    """Source and target are one entity; the source is the parent, which the first pair of `link` names. `own`: the id
    that becomes the item's segment. `graph` holds `<root id>#<n>`, n from 1 to `shards`. `carry`: attributes taken
    from the parent, or from `defaults`; a root has its own.

    `on_delete` applies to the children of a deleted parent. Items below a cleared child keep their paths and wait,
    because a parent without a path may have been put just now.
    """

    path: Path
    separator: str = "|"
    own: Ref
    graph: Path | None = None
    depth: Path | None = None
    carry: tuple[Path, ...] = ()
    shards: int = 1
    crumb: Breadcrumb | None = None
    kind = "path"
    fills_index_keys = True
    hierarchical = True
    rounds_max = LEVELS_MAX

    @cached_property
    def copies(self) -> tuple[Path, ...]:
        made = (self.path, self.graph, self.depth, self.crumb.path if self.crumb else None)
        return (*(path for path in made if path is not None), *self.carry)

    @cached_property
    def name_paths(self) -> tuple[Path, ...]:
        return () if self.crumb is None else self.target.drop_key_paths((self.crumb.name.path,))

    @cached_property
    def deciding_paths(self) -> tuple[Path, ...]:
        return (*super().deciding_paths, *self.name_paths)

    @cached_property
    def relevant_paths(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((*super().relevant_paths, *self.name_paths)))

    @cached_property
    def source_paths(self) -> tuple[Path, ...]:
        """The path, the breadcrumb and the carried attributes. Graph and depth follow from the path, and are not
        read.
        """
        return (self.path, *((self.crumb.path,) if self.crumb else ()), *self.carry)

    def find_index(self) -> Index | None:
        """Return the index whose keys are the graph and the path; None if the table has no such index."""
        for index in self.target.table.indexes:
            names = [(one.name,) for one in index.partition], [(one.name,) for one in index.sort[:1]]
            if names == ([self.graph], [self.path]):
                return index
        return None

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes, without what each attribute reads of itself one level up: cycles of a hierarchy end."""
        deciding = tuple((self.target, path) for path in self.deciding_paths)
        parent = (self.source, self.path)
        names = [] if self.crumb is None else [(self.target, path) for path in self.name_paths]
        reads = {self.path: ()} if self.crumb is None else {self.path: (), self.crumb.path: (parent, *names)}
        return tuple(Node(self, (self.target, copy), reads.get(copy, (parent,)), deciding) for copy in self.copies)

    def type_of(self, path: Path, known: TypeOf) -> str | None:
        if path in self.carry:
            carried, default = known(self.source, path), self.defaults.get(path)
            return carried if default is None or carried in default else None
        return "N" if path == self.depth else "S"

    def body(self) -> Mapping[str, object]:
        body = {
            **super().body(),
            "path": self.path,
            "separator": self.separator,
            "graph": self.graph,
            "depth": self.depth,
            "carry": sorted(self.carry),
            "shards": self.shards,
        }
        if self.crumb is None:  # the body of versions without breadcrumbs
            return body
        return {**body, "crumb": self.crumb.path, "by": self.crumb.name.path, "between": self.crumb.separator}

    def list_own_copies(self, key: ItemKey, item: Item) -> tuple[Path, ...]:
        """List all copies; for a root without the attributes that its descendants take from it: those are the
        application's.
        """
        is_root = self.pointer(item) in (None, key)
        return tuple(path for path in self.copies if path not in self.carry) if is_root else self.copies

    def levels(self, image: Item) -> int:
        path = get(image, self.path)
        return path["S"].count(self.separator) + 1 if path and "S" in path else 0

    def draw(self) -> Drawing:
        notes = ("default",) if self.defaults else ()
        named = () if self.crumb is None else (self.crumb.name.path,)
        reads = (*(ref.path for _, ref in self.link), *named, *self.carry)
        return Drawing(self.target, reads, self.copies, notes)

    def pushes(self, change: Change) -> bool:
        """True for a deleted parent, and for a parent with a path that was created or changed in what children take.
        Children of a parent without a path take nothing. The parent's own record writes a path, and that write's
        record pushes.
        """
        if change.new is None:
            return self.on_delete != "keep"
        if self._read_path(change.new) is None:
            return False
        if change.old is None or has_changed(change.old, change.new, self.source_paths):
            return True
        return self.crumb is not None and self.crumb.is_due(change.old) and not self.crumb.is_due(change.new)

    def orphans(self, target: Item) -> bool:
        """True unless paths are cleared: a path below a missing parent leads nowhere."""
        return self.on_delete != "clear"

    def compute_values(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked | None:
        own = read_text(self.own.read(target))
        if own is None:
            return None  # a binary id makes no segment
        # also an end that would run into a separator of several characters: "a:" before "::" could be read in two ways
        if self.separator in own + self.separator[:-1]:
            return Blocked(SEPARATOR_IN_ID)
        parent = self.link[0][1].read(target)
        if parent is None or "NULL" in parent or parent.get("S") == "":
            return {**self._make_values((own,), own), **self._names(None, target)}
        if self.find is not None and self.find.leaves_out(target):
            return None
        if read_text(parent) == own:
            return Blocked(CYCLE)
        source = sources[0] if sources else None
        if source is None:
            return self.compute_values_without_source(target)
        path = self._read_path(source)
        if path is None:
            # patient: a parent that was just put gets one within a moment; in a ring, or below a bad id, it never does
            return Blocked(PARENT_WITHOUT_PATH, patient=True)
        segments = path.split(self.separator)
        if own in segments:
            # patient: it may be the path that is late, where an item moved under a former child of its own
            return Blocked(CYCLE, patient=True)
        carried = {copy: get(source, copy) or self.defaults.get(copy) for copy in self.carry}
        return {**self._make_values((*segments, own), own), **self._names(source, target), **carried}

    def apply_to(self, item: Item, sources: Sequence[Item | None]) -> Item:
        """Return the item as the rule will leave it. An item that would lose its path stays as it is, and items below
        it wait.
        """
        key, desired = self.target.table.key_of(item), self.compute_values(sources, item)
        if key is None or not isinstance(desired, Mapping) or desired.get(self.path) is None:
            return item
        changes = find_differences(item, desired)
        if not changes or find_misfit(item, changes):
            return item
        return apply_write(make_update(key, item, changes, ()), item) or item

    def find_omission(self, sources: Sequence[Item | None], target: Item) -> Blocked | None:
        """Report the breadcrumb of an item whose parent has none yet. A parent that is an orphan gets no breadcrumb."""
        parent = sources[0] if sources else None
        due = self.crumb is not None and parent is not None and self.crumb.is_due(parent)
        return Blocked(PARENT_WITHOUT_BREADCRUMB, patient=True) if due else None

    def _names(self, parent: Item | None, target: Item) -> dict[Path, AttributeValue | None]:
        return {} if self.crumb is None else self.crumb.make_values(parent, target)

    def _make_values(self, segments: tuple[str, ...], own: str) -> dict[Path, AttributeValue | None]:
        """The values that follow from the segments of a path, the root's first and the own last."""
        made: dict[Path, AttributeValue | None] = {self.path: {"S": self.separator.join(segments)}}
        if self.graph is not None:
            made[self.graph] = {"S": f"{segments[0]}#{1 + compute_stable_hash(own) % self.shards}"}
        if self.depth is not None:
            made[self.depth] = {"N": str(len(segments) - 1)}
        return made

    def _read_path(self, item: Item) -> str | None:
        value = get(item, self.path)
        return None if value is None else value.get("S") or None
