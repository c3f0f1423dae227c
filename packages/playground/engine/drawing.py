"""The graph of the rules as a drawing: boxes in layers from left to right, and a line with a name for each rule.

Invariant: a line leaves its box to the right and enters its target from the left, except where rules form a ring. In
layers between its ends a line has a place of its own, so it crosses no box. All numbers are pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from sync_rules.cli.show.rule_graph import Arrow, RuleGraph

LETTER: Final = 7.4  # the width of a letter of 12 pixels
PADDING: Final = 10
BOX_HEIGHT, LABEL_HEIGHT, PORT_HEIGHT = 40, 18, 12
COLUMN_GAP, ROW_GAP = 30, 14
TURN: Final = 4  # half the distance of the two lines of a rule that reads and writes one box
SWEEPS: Final = 4  # over the columns, until few lines cross


@dataclass(eq=False)
class Node:
    """A box, the name of a rule, or a place where a line passes a layer: `height` 0 for the latter."""

    text: str = ""
    within: str = ""
    width: float = 0
    height: float = 0
    x: float = 0
    y: float = 0  # of its middle
    order: float = 0
    left: list[Node] = field(default_factory=list)
    right: list[Node] = field(default_factory=list)

    def find_port(self, other: Node, *, right: bool, last: bool = False) -> tuple[float, float]:
        """The point where the line to another node begins. A box has a port for each line, in their order."""
        x = self.x + self.width if right else self.x
        if not self.within:
            return x, self.y
        others = sorted(self.right if right else self.left, key=lambda one: one.y)
        place = others.index(other) + (last and others.count(other) > 1)
        return x, self.y + self.height * ((place + 1) / (len(others) + 1) - 0.5)


def draw_graph(graph: RuleGraph) -> dict[str, Any]:
    """Return a drawing of the graph: its size, boxes, names and lines. Each line is a path of SVG."""
    boxes = [Node(box.name, box.within, _measure(box.name, box.within)) for box in graph.boxes]
    ends = [(graph.boxes.index(arrow.source), graph.boxes.index(arrow.target)) for arrow in graph.arrows]
    layers, turned = _choose_layers(len(boxes), ends)
    columns: list[list[Node]] = [[] for _ in range(2 * max(layers, default=0) + 2)]
    for box, layer in zip(boxes, layers, strict=True):
        columns[2 * layer].append(box)
    chains = []
    for arrow, (source, target) in zip(graph.arrows, ends, strict=True):
        first, last = (target, source) if (source, target) in turned else (source, target)
        chains.append(_make_chain(arrow, columns, (boxes[first], 2 * layers[first]), (boxes[last], 2 * layers[last])))
    for box in boxes:
        box.height = max(BOX_HEIGHT, PORT_HEIGHT * (1 + max(len(box.left), len(box.right))))
    width, height = _place(columns)
    return {
        "width": round(width),
        "height": round(height),
        "boxes": [
            {"x": round(one.x), "y": round(one.y - one.height / 2), "width": round(one.width), "height": one.height,
             "name": one.text, "within": one.within}
            for one in boxes
        ],
        "names": [
            {"x": round(chain[1].x), "y": round(chain[1].y), "width": round(chain[1].width), "name": arrow.rule,
             "keeps": arrow.keeps}
            for arrow, chain in zip(graph.arrows, chains, strict=True)
        ],
        "lines": [
            line
            for end, chain in zip(ends, chains, strict=True)
            for line in _list_lines(chain, turned=end in turned)
        ],
    }  # fmt: skip


def _measure(*texts: str) -> float:
    return max(map(len, texts)) * LETTER + 2 * PADDING


# ---------------------------------------------------------------- layers
def _choose_layers(count: int, ends: list[tuple[int, int]]) -> tuple[list[int], set[tuple[int, int]]]:
    """The layer of each box, and the ends of the lines that run from right to left, because they close a ring."""
    ahead: dict[tuple[int, int], None] = {}
    turned: set[tuple[int, int]] = set()
    for source, target in ends:
        if source == target:
            continue
        if source in _list_reachable(target, ahead):
            turned.add((source, target))
        else:
            ahead[source, target] = None
    layers = [0] * count
    for _ in range(count):
        for source, target in ahead:
            layers[target] = max(layers[target], layers[source] + 1)
    return layers, turned


def _list_reachable(start: int, ahead: Iterable[tuple[int, int]]) -> set[int]:
    found = {start}
    while more := {target for source, target in ahead if source in found} - found:
        found |= more
    return found


def _make_chain(arrow: Arrow, columns: list[list[Node]], begin: tuple[Node, int], end: tuple[Node, int]) -> list[Node]:
    """The nodes of a line from left to right: a box, the name of the rule, the places between, a box. A line that
    comes back to its box has the box at both ends.
    """
    (first, column), (last, last_column) = begin, end
    between = [Node(arrow.rule, width=_measure(arrow.rule), height=LABEL_HEIGHT)]
    between += [Node() for _ in range(column + 2, last_column)]
    for at, node in enumerate(between, column + 1):
        columns[at].append(node)
    chain = [first, *between, last]
    for one, other in pairwise(chain):
        left, right = (other, one) if one is not first is last else (one, other)  # both are to the right of their box
        left.right.append(right)
        right.left.append(left)
    return chain


# ---------------------------------------------------------------- places
def _place(columns: list[list[Node]]) -> tuple[float, float]:
    """Give each node its place. Return the width and height of all."""
    for column in columns:
        for at, node in enumerate(column):
            node.order = at
    for sweep in range(SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            _sort(column, "left" if sweep % 2 == 0 else "right")
    heights = [sum(max(node.height, LABEL_HEIGHT) + ROW_GAP for node in column) for column in columns]
    height, x = max(heights, default=0), 0.0
    for column, own in zip(columns, heights, strict=True):
        y = (height - own) / 2
        width = max((node.width for node in column), default=-COLUMN_GAP)
        for node in column:
            row = max(node.height, LABEL_HEIGHT) + ROW_GAP
            node.x, node.y, y = x, y + row / 2, y + row
            node.width = node.width or width  # a line passes all of its layer
        x += width + COLUMN_GAP
    return x - COLUMN_GAP, height


def _sort(column: list[Node], side: str) -> None:
    """Sort a column by the means of its neighbours on one side. Places are counted from the middle of each column."""
    means = {
        node: sum(one.order for one in near) / len(near) if (near := getattr(node, side)) else node.order
        for node in column
    }
    column.sort(key=lambda node: means[node])
    for at, node in enumerate(column):
        node.order = at - (len(column) - 1) / 2


# ---------------------------------------------------------------- lines
def _list_lines(chain: list[Node], *, turned: bool) -> Iterator[dict[str, Any]]:
    """The line to the name of the rule, and the line from it. `begins` and `ends`: an arrowhead is there."""
    first, name, *rest = chain
    if rest == [first]:
        (x, y), back = first.find_port(name, right=True), first.find_port(name, right=True, last=True)
        yield _make_line([(x, y), (name.x, name.y - TURN)])
        yield _make_line([back, (name.x, name.y + TURN)], begins=True)
        return
    yield _make_line([first.find_port(name, right=True), name.find_port(first, right=False)], begins=turned)
    points = [name.find_port(rest[0], right=True)]
    for before, one in pairwise([name, *rest]):
        points += [one.find_port(before, right=False), (one.x + one.width, one.y)]
    yield _make_line(points[:-1], ends=not turned)


def _make_line(points: list[tuple[float, float]], *, begins: bool = False, ends: bool = False) -> dict[str, Any]:
    (x, y), *rest = points
    path = f"M{x:.0f} {y:.0f}"
    for to_x, to_y in rest:
        middle = (x + to_x) / 2
        path += f" C{middle:.0f} {y:.0f} {middle:.0f} {to_y:.0f} {to_x:.0f} {to_y:.0f}"
        x, y = to_x, to_y
    return {"path": path, "begins": begins, "ends": ends}
