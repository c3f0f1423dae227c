"""The rules as a graph: a box for each entity, an arrow for each rule, from the data it reads to the data it writes.

Invariant: the graph follows from the rules alone. A rule that compiles into several rules, such as a count with its
ledger, is the single arrow of the rules file. The text is Mermaid; no name can end its string.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


def make_graph(rules: Rules) -> RuleGraph:
    """Make the graph of all rules. Entities that no rule reads or writes have a box too."""
    arrows = tuple(_list_arrows(rules))
    declared = (_make_box(entity) for entity in rules.declared_entities)
    ends = (end for arrow in arrows for end in (arrow.source, arrow.target))
    return RuleGraph(tuple(dict.fromkeys((*declared, *ends))), arrows)


def _list_arrows(rules: Rules) -> Iterator[Arrow]:
    for rule in rules.rules.values():
        drawing = rule.draw()
        if drawing is None:
            continue
        titled = rules.rules.get(rule.title, rule)
        target = _make_box(drawing.to) if isinstance(drawing.to, Entity) else Box(*drawing.to)
        writes = titled.copies if drawing.writes is None else drawing.writes
        note = ", ".join((*drawing.notes, *(f"{option} {where.text}" for option, where in rule.filters.items())))
        yield Arrow(
            rule.title,
            titled.kind,
            _make_box(rule.source),
            target,
            _show_paths(drawing.reads),
            _show_paths(writes),
            note,
        )


def _make_box(entity: Entity) -> Box:
    return Box(entity.name, f"table {entity.table.name}")


def _show_paths(paths: Iterable[Path]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(show_path(path) if path else ALL for path in paths))


def _join_paths(box: Box, paths: tuple[str, ...]) -> str:
    return ", ".join(f"{box.name}.{path}" for path in paths) if paths else box.name


# ---------------------------------------------------------------- the text
def format_mermaid(graph: RuleGraph) -> str:
    """Return the graph as a Mermaid flowchart, which many Markdown viewers draw."""
    ids = {box: f"e{number}" for number, box in enumerate(graph.boxes)}
    lines = ["flowchart LR"]
    lines += [f'  {ids[box]}["{_format_label([box.name, box.within])}"]' for box in graph.boxes]
    for arrow in graph.arrows:
        label = _format_label(_list_arrow_lines(arrow))
        lines.append(f'  {ids[arrow.source]} -->|"{label}"| {ids[arrow.target]}')
    return "\n".join(lines) + "\n"


def _list_arrow_lines(arrow: Arrow) -> tuple[str, ...]:
    reads, writes = (", ".join(_shorten(paths)) for paths in (arrow.reads, arrow.writes))
    paths = f"{reads} → {writes}".strip() if writes else reads
    return tuple(line for line in (f"{arrow.rule} ({arrow.kind})", paths, arrow.note) if line)


def _shorten(paths: tuple[str, ...]) -> tuple[str, ...]:
    more = len(paths) - PATHS_MAX_ITEMS
    return paths if more <= 0 else (*paths[:PATHS_MAX_ITEMS], f"and {more} more")


def _format_label(lines: Iterable[str]) -> str:
    """The lines of a label. Every character that means something to Mermaid or to HTML is written by its number."""
    short = (line if len(line) <= LINE_MAX_CHARACTERS else f"{line[: LINE_MAX_CHARACTERS - 1]}…" for line in lines)
    return "<br>".join("".join(map(_escape, line)) for line in short)


def _escape(letter: str) -> str:
    if not letter.isprintable():
        return "�"
    return letter if letter.isalnum() or letter in PLAIN else f"#{ord(letter)};"


PLAIN: Final = frozenset(" _-.,:/()→…�*=")
