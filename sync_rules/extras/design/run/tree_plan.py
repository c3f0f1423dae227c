"""Run `tree`: descendants by path or level by level, children by the index on the parent, ancestors by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from sync_rules.extras.design.patterns.answers import BATCH_KEYS_MAX, PatternAnswer
from sync_rules.extras.design.patterns.declarations import TreePattern
from sync_rules.extras.design.patterns.proof_input import ProofInput
from sync_rules.extras.design.patterns.trees import find_tree_rule
from sync_rules.extras.design.run.arguments import CallValues
from sync_rules.extras.design.run.projection import Sight, list_key_paths
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item, Path
from sync_rules.read.hierarchy import Hierarchy
from sync_rules.read.listing import Listing
from sync_rules.read.reader import Reader
from sync_rules.rules.kinds.path import TreeRule
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class TreePlan:
    """A proved `tree` pattern, ready to run. Rows come from a raw `Hierarchy`, in every mode of the reader."""

    rules: Rules
    answer: PatternAnswer
    pattern: TreePattern
    reader: Reader

    @cached_property
    def _rule(self) -> TreeRule:
        rule = find_tree_rule(ProofInput.of(self.rules), self.rules.entities[self.pattern.entity])
        assert rule is not None, "a pattern is proved by a rule"
        return rule

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        return Hierarchy.of(self.rules, self._rule.name, self.reader.as_raw())

    @cached_property
    def _sight(self) -> Sight:
        return Sight(self.rules, self.rules.entities[self.pattern.entity])

    @cached_property
    def _projects(self) -> tuple[Path, ...] | None:
        """The paths of items that are read by key; None for all."""
        return self._sight.paths(self.pattern.returns)

    def children(self, given: CallValues) -> Listing:
        return self._hierarchy.children(given.fields)

    def page(self, given: CallValues, limit: int, cursor: str | None) -> tuple[list[Item], str | None]:
        """Return some children, and the token of the next page."""
        rows, after = self.children(given).page_of_rows(limit, cursor)
        return [*map(self._view, self._complete_items(rows))], after

    def all(self, given: CallValues) -> Iterator[Item]:
        """Yield every item, in the pattern's form."""
        return map(self._view, self.whole(given))

    def whole(self, given: CallValues) -> Iterator[Item]:
        """Yield every item, or its row, with all that was read of it."""
        match self.pattern.direction:
            case "children":
                yield from self._complete_items(self.children(given).rows())
            case "above":
                yield from self._list_above(given)
            case "under":
                yield from self._list_under(given)

    def _read_own_item(self, given: CallValues, *, whole: bool) -> Item | None:
        """The item that is named: all of it, or its path alone."""
        entity, rule = self._sight.entity, self._rule
        paths = None if whole or rule.graph is None else (*list_key_paths(entity), rule.path, rule.graph)
        return self.reader.item(entity.table, entity.key_of(given.fields), projects=paths)

    def _list_above(self, given: CallValues) -> Iterator[Item]:
        item = self._read_own_item(given, whole=self.pattern.itself)
        if item is None:
            return
        above = self.reader.get(self._sight.entity.table, self._hierarchy.keys_above(item), projects=self._projects)
        itself = [item] if self.pattern.itself else []
        yield from (found for found in (*above, *itself) if found is not None)

    def _list_under(self, given: CallValues) -> Iterator[Item]:
        queries = (step for step in self.answer.steps if step.request == "Query")
        by_path = any(term.form == "begins_with" for step in queries for term in step.terms)
        if by_path or self.pattern.itself:
            item = self._read_own_item(given, whole=self.pattern.itself)
            if item is None:
                return
            yield from [item] if self.pattern.itself else []
            if by_path:
                yield from self._complete_items(self._list_by_path(item))
                return
        levels = self._hierarchy.levels(given.fields, self.pattern.depth)
        yield from self._complete_items(row for level in levels for row in level)

    def _list_by_path(self, item: Item) -> Iterator[Item]:
        """The rows below an item, down to the depth that is asked for."""
        path, separator, depth = self._rule.path, self._rule.separator, self.pattern.depth
        above = _count_levels(item, path, separator)
        for row in self._hierarchy.descendants(item):
            if depth is None or _count_levels(row, path, separator) - above <= depth:
                yield row

    def _complete_items(self, rows: Iterable[Item]) -> Iterator[Item]:
        """The items of rows; read by key where an index does not show all that is needed."""
        if self.answer.steps[-1].request != "BatchGetItem":
            yield from rows
            return
        table = self._sight.entity.table
        left = iter(rows)
        while some := [*islice(left, BATCH_KEYS_MAX)]:
            keys: list[ItemKey | None] = [table.key_of(row) for row in some]
            found = self.reader.get(table, keys, projects=self._projects)
            yield from (item for item in found if item is not None)

    def _view(self, item: Item) -> Item:
        return self._sight.view(item, self.pattern.returns)


def _count_levels(item: Mapping[str, Any], path: Path, separator: str) -> int:
    return str(item[path[0]]["S"]).count(separator)
