"""copy: attributes of a source, kept equal on every target that points to it.

Invariant: a copy is a function of the two items as they are now, never of their history. `mode: snapshot` fills only
empty targets, and its guard checks that. A default takes the place of a missing value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from sync_rules.model.entities import Table
from sync_rules.model.items import Change
from sync_rules.model.sizes import KeyLimit, find_index_key_limits
from sync_rules.model.templates import is_possible
from sync_rules.model.values import AttributeValue, Item, Path, get, has_changed
from sync_rules.model.writes import Condition, Desired, expect_value
from sync_rules.rules.description import Connection, Drawing, TypeOf
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.rule import Blocked, Node


@dataclass(frozen=True, eq=False, kw_only=True)
class CopyRule(LinkedRule):
    """A rule that copies attributes. `mapping` pairs source paths with target paths. Without pairs, the rule only
    handles deletes.
    """

    mapping: tuple[tuple[Path, Path], ...]
    mode: Literal["live", "snapshot"] = "live"
    kind = "copy"

    @cached_property
    def copies(self) -> tuple[Path, ...]:
        return tuple(target for _, target in self.mapping)

    @cached_property
    def source_paths(self) -> tuple[Path, ...]:
        reads = self.where.source_paths if self.where else ()
        named = [*(source for source, _ in self.mapping), *reads]
        return tuple(dict.fromkeys(self.source.locate_field(path) for path in named))

    @property
    def connection(self) -> Connection:
        read = (path for path, to in self.mapping if to not in self.defaults)  # a default says that it may be missing
        return replace(super().connection, reads=tuple((self.source, path) for path in read))

    def nodes(self) -> tuple[Node, ...]:
        decides = tuple((self.source, path) for path in (self.where.source_paths if self.where else ()))
        deciding = tuple((self.target, path) for path in self.deciding_paths)
        return tuple(
            Node(self, (self.target, to), ((self.source, path), *decides), deciding) for path, to in self.mapping
        )

    def type_of(self, path: Path, known: TypeOf) -> str | None:
        copied = next((known(self.source, read) for read, written in self.mapping if written == path), None)
        default = self.defaults.get(path)
        return copied if default is None or copied in default else None

    @property
    def always_writes(self) -> tuple[str, ...]:
        """The copies that have a default, where no condition could fail."""
        return tuple(path[0] for path in self.defaults if len(path) == 1 and self.where is None)

    def fills(self, path: Path, item: Item) -> bool | None:
        return True if path in self.defaults and self.where is None else None

    def body(self) -> Mapping[str, object]:
        return {
            **super().body(),
            "mapping": sorted(self.mapping),
            "where": self.where and self.where.text,
            "mode": self.mode,
            "strict": self.strict,
        }

    @cached_property
    def _read(self) -> tuple[Path, ...]:
        return tuple(path for path, _ in self.mapping)

    @cached_property
    def snapshot(self) -> bool:
        return self.mode == "snapshot"

    @property
    def pull_only(self) -> bool:
        return self.find is None

    @property
    def streamed_tables(self) -> tuple[Table, ...]:
        return (self.target.table,) if self.pull_only else super().streamed_tables

    def draw(self) -> Drawing:
        note: str = "" if self.mode == "live" else f"{self.mode}, no listing" if self.pull_only else self.mode
        if not self.mapping:
            note = f"on_delete: {self.on_delete}"
        notes = (note, "default" if self.defaults else "")
        return Drawing(self.target, self._read, self.copies, tuple(filter(None, notes)))

    def pushes(self, change: Change) -> bool:
        """True for a created, deleted or changed source. A snapshot is pushed only to fill empty targets."""
        if self.pull_only:
            return False
        if change.new is None:
            return self.mode == "live" and self.on_delete != "keep"
        if change.old is None:
            return bool(self.mapping)
        if self.snapshot:
            return self._may_fill(change.old, change.new)
        return has_changed(change.old, change.new, self.source_paths)

    def _may_fill(self, old: Item, new: Item) -> bool:
        """True if an attribute appeared in the source that earlier targets still lack."""
        appeared = any(get(old, path) is None and get(new, path) is not None for path, _ in self.mapping)
        return appeared or (self.where is not None and has_changed(old, new, self.where.source_paths))

    def compute_values(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked | None:
        """Return the source's values or defaults. Without a source, or if `where` does not hold, `on_delete`
        decides.
        """
        if self.alike and sources and sources[0] is not None:
            return self.values(sources[0])
        if self.snapshot and any(get(target, copy) is not None for copy in self.copies):
            return None
        source = sources[0] if sources else None
        if source is None and (not sources or self.on_delete in ("keep", "clear")):
            return self.compute_values_without_source(target)
        speaks = self.where_holds(source or {}, target)
        if isinstance(speaks, Blocked):
            return speaks
        return self.values(source) if source is not None and speaks else self.compute_values_without_source(target)

    @cached_property
    def alike(self) -> bool:
        return not self.snapshot and self.where is None and not (self.find is not None and self.find.sparse)

    def values(self, source: Item) -> dict[Path, AttributeValue | None]:
        view = self.source.view(source, self._read)
        found = {to: get(view, path) for path, to in self.mapping}
        if not self.defaults:
            return found
        return {to: value if self._is_copyable(to, value) else self.defaults.get(to) for to, value in found.items()}

    def _is_copyable(self, to: Path, value: AttributeValue | None) -> bool:
        """True for a value that can be copied. Where there is a default, an index whose key it is must take it too."""
        limit = self._limits.get(to)
        return value is not None and (limit is None or (limit[0] in value and is_possible(value, limit[1])))

    @cached_property
    def _limits(self) -> Mapping[Path, KeyLimit]:
        """The limits of the copies that have a default and are part of an index's key."""
        limits = find_index_key_limits(self.target.table)
        return {to: limits[to[0]] for to in self.defaults if len(to) == 1 and to[0] in limits}

    def outlives(self, image: Item) -> bool:
        return not self.snapshot and super().outlives(image)

    def link_guard(self, image: Item) -> tuple[Condition, ...]:
        still_empty = tuple(expect_value(path, None) for path in self.copies) if self.snapshot else ()
        return super().link_guard(image) + still_empty
