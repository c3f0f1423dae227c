"""Parents that hold values of their first child in an order, such as the newest: which columns may fill them.

Invariant: parents whose children mostly agree tell nothing of an order. A column needs others to speak for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from sync_rules.extras.discover.propose.evidence import AGREE_MIN, CASES_MIN
from sync_rules.extras.discover.propose.frames import Column
from sync_rules.extras.discover.propose.parents import Parent, Row
from sync_rules.extras.discover.propose.value_texts import MAP, read_plain_map

TELLING: Final = 0.3  # of the parents have children that differ
USUAL_MAX: Final = 0.7  # of their children have the usual value
FIELDS_MAX: Final = 12  # of a child, in a map
PARENTS_MAX: Final = 160
PROBE: Final = 30  # parents on which a column is tried first
Cells = list[tuple[str, int]]  # the name of each field, and the place of its column


class FirstChildren:
    """The parents of a sample with several children, and the columns whose values they hold in one attribute."""

    def __init__(self, column: Column, columns: Sequence[Column], sample: Sequence[Parent]) -> None:
        self.columns, self.is_map = columns, MAP in column.profile.types
        self.parents = [one for one in sample if one.held and len(one.children) > 1][:PARENTS_MAX]
        maps = [read_plain_map(one.held) if self.is_map else {"": one.held} for one in self.parents]
        names = dict.fromkeys(name for one in maps for name in one) if len(maps) >= CASES_MIN else {}
        self.held = {name: [text if isinstance(text := one.get(name), str) else None for one in maps] for name in names}
        self.differ: dict[int, list[bool]] = {}  # by column: if the children of each parent differ
        self.filled: dict[str, list[int]] = {}  # by name: the columns that may fill it
        for place in range(len(columns)) if len(names) <= FIELDS_MAX else ():
            if self.is_map or columns[place].profile.is_text:
                self._look(place)

    def _look(self, place: int) -> None:
        values = [{row[place] for row in one.children} for one in self.parents[:PROBE]]
        held = {name: sum(map(set.__contains__, values, texts)) for name, texts in self.held.items()}
        names = [name for name, hits in held.items() if hits >= AGREE_MIN * len(values)]
        if names:
            counts = [Counter(row[place] for row in one.children) for one in self.parents]
            self.differ[place] = [each.most_common(1)[0][1] <= USUAL_MAX * each.total() for each in counts]
        for name in names if self.is_map or (names and self._is_telling(place)) else ():
            self.filled.setdefault(name, []).append(place)

    def _is_telling(self, place: int) -> bool:
        return sum(self.differ[place]) >= TELLING * len(self.parents)

    def find_cells(
        self, orders: Iterator[tuple[str, Callable[[Row], Any], bool]]
    ) -> Iterator[tuple[str, Callable[[Row], Any], bool, Cells]]:
        """Orders whose first child fills all fields, each with its columns."""
        for order, key, reverse in orders if self.held and len(self.filled) == len(self.held) else ():
            chosen = [(max if reverse else min)(one.children, key=key) for one in self.parents]
            best = {
                name: max((*self._score(name, place, chosen), place) for place in places)
                for name, places in self.filled.items()
            }
            if any(one[0] for one in best.values()) and all(
                one[2] >= AGREE_MIN * len(self.parents) for one in best.values()
            ):
                yield order, key, reverse, [(name, place) for name, (*_, place) in best.items()]

    def _score(self, name: str, place: int, chosen: Sequence[Row]) -> tuple[bool, bool, int]:
        """Score a column for a field: if children that differ tell it, if its name does, the parents that agree."""
        hits = [text == row[place] for text, row in zip(self.held[name], chosen, strict=True)]
        right = sum(hit for hit, differ in zip(hits, self.differ[place], strict=True) if differ)
        tells = self._is_telling(place) and right >= AGREE_MIN * sum(self.differ[place])
        return tells, self.columns[place].path == name, sum(hits)
