"""The rule graph drawn as SVG, by the Graphviz that PyGraphviz brings along. It is optional: `sync-rules[report]`.

Law: the picture stands for itself. It has no script and names nothing outside; its colours are its own, for light and
for dark; and it is only as good as the list of rules, which says the same to whoever cannot see it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from xml.etree import ElementTree as ET  # ours to read: Graphviz has just written it

from sync_rules.cli.show.rule_graph import RuleGraph, dot
from sync_rules.model.errors import UserError

ARROWS_MAX_ITEMS: Final = 150  # Graphviz takes seconds for 250, minutes for 500, and nobody reads so many
SHRINKS_TO: Final = 0.7  # of its size: its text can still be read, and what is wider is for its place to scroll
STDERR: Final = 2
LABEL: Final = "The rules as a picture; the list of rules says the same."
SVG: Final = "http://www.w3.org/2000/svg"  # a name, not an address
HOW: Final = (
    "install sync-rules[report] for it; it has Graphviz for Linux on x86-64 and macOS on Apple silicon. Elsewhere give "
    "the text of `sync-rules graph --format dot` to Graphviz, or that of --format mermaid to what draws Mermaid"
)
STYLE: Final = (
    ".rule-graph{color:#1b1f24;background:#fff;font-family:Helvetica,Arial,sans-serif}"
    "@media screen and (prefers-color-scheme:dark){.rule-graph{color:#e6e9ee;background:#14171c}}"
)
# Of what Graphviz writes, what is wanted; colours become the picture's own.
ATTRIBUTES: Final = frozenset({
    "class", "cx", "cy", "d", "fill", "font-size", "font-weight", "height", "points", "rx", "ry", "stroke",
    "stroke-dasharray", "stroke-width", "text-anchor", "transform", "viewBox", "width", "x", "y",
})  # fmt: skip


class PictureError(UserError):
    """There is no Graphviz here, or the graph is too large for a picture. The message says what to do."""


def svg(graph: RuleGraph) -> str:
    """The graph as an SVG element that can stand in a file of its own or in a page.

    Raises:
        PictureError: when PyGraphviz is not installed, or there are more arrows than `ARROWS_MAX_ITEMS`.
    """
    if len(graph.arrows) > ARROWS_MAX_ITEMS:
        raise PictureError(
            f"{len(graph.arrows)} rules are too many for a picture: at most {ARROWS_MAX_ITEMS} are drawn"
        )
    try:
        from pygraphviz import AGraph  # noqa: PLC0415 - optional, and slow to load
    except ImportError as error:
        raise PictureError(f"no picture without Graphviz: {HOW}") from error
    with _quiet():
        drawn: bytes = AGraph(string=dot(graph)).draw(format="svg", prog="dot")
    return tidy(drawn.decode())


@contextmanager
def _quiet() -> Iterator[None]:
    """Without standard error: where no fonts are configured the libraries of Graphviz say so there, and draw."""
    try:
        kept = os.dup(STDERR)
    except OSError:  # there is none
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, STDERR)
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(nowhere)
        os.close(kept)


def tidy(text: str) -> str:
    """What Graphviz wrote, without everything that is not the picture itself."""
    ET.register_namespace("", SVG)
    root = ET.fromstring(text)  # noqa: S314 - not from outside
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{SVG}}}title":
                parent.remove(child)
    for one in root.iter():
        kept = {name: value for name, value in one.attrib.items() if name in ATTRIBUTES}
        one.attrib.clear()
        one.attrib.update({name: _own(name, value) for name, value in kept.items()})
        if one.tag == f"{{{SVG}}}text":
            one.set("fill", "currentColor")
    least = float(root.get("width", "0")) * SHRINKS_TO
    fits = f"max-width:100%;height:auto;min-width:{least:.0f}px"
    root.attrib |= {"class": "rule-graph", "role": "img", "aria-label": LABEL, "style": fits}
    style = ET.Element(f"{{{SVG}}}style")
    style.text = STYLE
    root.insert(0, style)
    return ET.tostring(root, encoding="unicode")


def _own(name: str, value: str) -> str:
    if name in ("fill", "stroke") and value == "black":
        return "currentColor"
    return re.sub(r"pt$", "", value) if name in ("width", "height") else value
