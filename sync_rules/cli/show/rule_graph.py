"""The rules as a graph: a box for each entity, an arrow for each rule, from the data it reads to the data it writes.

Invariant: the graph follows from the rules alone. A rule that compiles into several, such as a count with its ledger,
is the one arrow of the rules file. The texts are Mermaid and DOT; no name can end the string it stands in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sync_rules.model.entities import Entity
from sync_rules.model.values import Path, show_path
from sync_rules.rules.ruleset import Rules

PATHS_MAX_ITEMS: Final = 4  # at one end of an arrow in the picture; `Arrow.keeps` has them all
LINE_MAX_CHARACTERS: Final = 48  # of a text in the picture
ALL: Final = "*"  # every attribute


@dataclass(frozen=True, slots=True)
class Box:
    """An end of arrows: an entity with its table, or a place outside the tables."""

    name: str
    within: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """A rule: the paths of the source, the paths of the target made from them, and a note."""

    rule: str
    kind: str
    source: Box
    target: Box
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    note: str = ""

    @property
    def keeps(self) -> str:
        """The arrow as a line: user.name → order.user_name."""
        ends = f"{_join_paths(self.source, self.reads)} → {_join_paths(self.target, self.writes)}"
        return f"{ends} ({self.note})" if self.note else ends


@dataclass(frozen=True, slots=True)
class RuleGraph:
    """The boxes in the order of the rules file, and the arrows in that of its rules."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def graph_of(rules: Rules) -> RuleGraph:
    """The graph of all rules. Entities that no rule reads or writes have a box too."""
    arrows = tuple(_arrows(rules))
    declared = (_box(entity) for entity in rules.declared_entities)
    ends = (end for arrow in arrows for end in (arrow.source, arrow.target))
    return RuleGraph(tuple(dict.fromkeys((*declared, *ends))), arrows)


def _arrows(rules: Rules) -> Iterator[Arrow]:
    for rule in rules.rules.values():
        drawing = rule.draw()
        if drawing is None:
            continue
        titled = rules.rules.get(rule.title, rule)
        target = _box(drawing.to) if isinstance(drawing.to, Entity) else Box(*drawing.to)
        writes = titled.copies if drawing.writes is None else drawing.writes
        note = ", ".join((*drawing.notes, *(f"{option} {where.text}" for option, where in rule.filters.items())))
        yield Arrow(
            rule.title, titled.kind, _box(rule.source), target, _show_paths(drawing.reads), _show_paths(writes), note
        )


def _box(entity: Entity) -> Box:
    return Box(entity.name, f"table {entity.table.name}")


def _show_paths(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(show_path(path) if path else ALL for path in paths))


def _join_paths(box: Box, paths: tuple[str, ...]) -> str:
    return ", ".join(f"{box.name}.{path}" for path in paths) if paths else box.name


# ---------------------------------------------------------------- texts
def mermaid(graph: RuleGraph) -> str:
    """The graph as a Mermaid flowchart, which many Markdown viewers draw."""
    ids = {box: f"e{number}" for number, box in enumerate(graph.boxes)}
    lines = ["flowchart LR"]
    lines += [f'  {ids[box]}["{_join_lines(_box_lines(box), _for_mermaid, "<br>")}"]' for box in graph.boxes]
    for arrow in graph.arrows:
        label = _join_lines(_arrow_lines(arrow), _for_mermaid, "<br>")
        lines.append(f'  {ids[arrow.source]} -->|"{label}"| {ids[arrow.target]}')
    return "\n".join(lines) + "\n"


def dot(graph: RuleGraph) -> str:
    """The graph in the language of Graphviz. A rule's text is a node within its arrow: nothing is drawn across nodes.
    The first rule between two boxes says which of them is on the left.
    """
    ids = {box: f"e{number}" for number, box in enumerate(graph.boxes)}
    lines = [
        "digraph rules {",
        "  graph [rankdir=LR, bgcolor=transparent, ranksep=0.6, nodesep=0.4];",
        '  node [shape=box, style=rounded, fontname="Helvetica,Arial,sans-serif", fontsize=12, margin="0.2,0.1"];',
    ]
    lines += [f'  {ids[box]} [label="{_join_lines(_box_lines(box), _for_dot, NEW_LINE)}"];' for box in graph.boxes]
    places: dict[frozenset[Box], tuple[Box, Box]] = {}
    for number, arrow in enumerate(graph.arrows):
        label = _join_lines(_arrow_lines(arrow), _for_dot, NEW_LINE)
        lines.append(f'  r{number} [label="{label}", shape=plaintext, fontsize=10, margin="0.05,0.02"];')
        ends = (arrow.source, arrow.target)
        first, last = places.setdefault(frozenset(ends), ends)
        here, there = ("none", "forward") if (first, last) == ends else ("back", "none")
        lines.append(f"  {ids[first]} -> r{number} [dir={here}];")
        lines.append(f"  r{number} -> {ids[last]} [dir={there}];")
    return "\n".join([*lines, "}"]) + "\n"


NEW_LINE: Final = "\\n"  # as DOT writes the end of a line inside a label


def _box_lines(box: Box) -> tuple[str, ...]:
    return (box.name, box.within)


def _arrow_lines(arrow: Arrow) -> tuple[str, ...]:
    reads, writes = (", ".join(_shorten(paths)) for paths in (arrow.reads, arrow.writes))
    paths = f"{reads} → {writes}".strip() if writes else reads
    return tuple(line for line in (f"{arrow.rule} ({arrow.kind})", paths, arrow.note) if line)


def _shorten(paths: tuple[str, ...]) -> tuple[str, ...]:
    more = len(paths) - PATHS_MAX_ITEMS
    return paths if more <= 0 else (*paths[:PATHS_MAX_ITEMS], f"and {more} more")


def _join_lines(lines: Iterable[str], escape: Callable[[str], str], between: str) -> str:
    short = (line if len(line) <= LINE_MAX_CHARACTERS else f"{line[: LINE_MAX_CHARACTERS - 1]}…" for line in lines)
    return between.join(escape("".join(one if one.isprintable() else "�" for one in line)) for line in short)


def _for_mermaid(text: str) -> str:
    """Every character that means something to Mermaid or to HTML, by its number."""
    return "".join(one if one.isalnum() or one in PLAIN else f"#{ord(one)};" for one in text)


def _for_dot(text: str) -> str:
    """Labels know escapes that begin with a backslash, and entities as HTML has them."""
    return text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')


PLAIN: Final = frozenset(" _-.,:/()→…�*=")
