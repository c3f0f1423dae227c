"""The rule graph as SVG, drawn by the Graphviz that PyGraphviz contains. It is optional: `sync-rules[report]`.

Invariant: the picture needs nothing else. It has no script and refers to nothing outside; it brings its own colours,
for light and for dark. The list of rules says the same to those who cannot see it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from xml.etree import ElementTree as ET  # trusted: Graphviz has just written it

from sync_rules.cli.show.rule_graph import RuleGraph, dot
from sync_rules.model.errors import UserError

ARROWS_MAX_ITEMS: Final = 150  # Graphviz takes 5 seconds for these, minutes for 500
DESK_PIXELS: Final = 1_100  # of a page on a screen of 1,280: a wider picture is drawn from top to bottom
SHRINKS_TO: Final = 0.7  # of its size, and to that of a desk: on a smaller screen it scrolls
STDERR: Final = 2
LABEL: Final = "The rules as a picture; the list of rules says the same."
SVG: Final = "http://www.w3.org/2000/svg"  # a name, not an address
HOW: Final = (
    "install sync-rules[report], which has Graphviz for Linux on x86-64 and macOS on Apple silicon. Elsewhere give the "
    "output of `sync-rules graph --format dot` to Graphviz, or that of --format mermaid to a Mermaid viewer"
)
LIBRARIES: Final = (
    "Install the libraries that its wheel expects of the system (on Debian 13: apt install libglib2.0-0t64 libxrender1"
    " libxext6), or give the output of `sync-rules graph --format mermaid` to a Mermaid viewer"
)
STYLE: Final = (
    ".rule-graph{color:#1b1f24;background:#fff;font-family:Helvetica,Arial,sans-serif}"
    "@media screen and (prefers-color-scheme:dark){.rule-graph{color:#e6e9ee;background:#14171c}}"
)
# The attributes kept of Graphviz's output.
ATTRIBUTES: Final = frozenset({
    "class", "cx", "cy", "d", "fill", "font-size", "font-weight", "height", "points", "rx", "ry", "stroke",
    "stroke-dasharray", "stroke-width", "text-anchor", "transform", "viewBox", "width", "x", "y",
})  # fmt: skip


class PictureError(UserError):
    """Graphviz is not installed or does not load, or the graph is too large. The message says what to do."""


def svg(graph: RuleGraph) -> str:
    """The graph as an SVG element, for a file of its own or a page.

    Raises:
        PictureError: when PyGraphviz is not installed or does not load, or there are more arrows than
            `ARROWS_MAX_ITEMS`.
    """
    if len(graph.arrows) > ARROWS_MAX_ITEMS:
        raise PictureError(f"{len(graph.arrows)} rules are too many for a picture: the maximum is {ARROWS_MAX_ITEMS}")
    try:
        from pygraphviz import AGraph  # noqa: PLC0415 - optional, and slow to load
    except ModuleNotFoundError as error:
        raise PictureError(f"no picture without Graphviz: {HOW}") from error
    except ImportError as error:  # the wheel needs libraries that a bare system lacks
        raise PictureError(f"no picture: Graphviz does not load ({error.msg}). {LIBRARIES}") from error
    with _quiet():
        drawn: str = AGraph(string=dot(graph)).draw(format="svg", prog="dot").decode()
        if _width(drawn) > DESK_PIXELS:
            down: str = AGraph(string=dot(graph, "TB")).draw(format="svg", prog="dot").decode()
            drawn = min(drawn, down, key=_width)
    return tidy(drawn)


def _width(drawn: str) -> float:
    found = re.search(r'<svg width="([0-9.]+)pt"', drawn)
    assert found is not None, "Graphviz writes one"
    return float(found[1])


@contextmanager
def _quiet() -> Iterator[None]:
    """Discard standard error: Graphviz's libraries complain there about missing fonts, and draw all the same."""
    try:
        kept = os.dup(STDERR)
    except OSError:  # standard error is closed
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
    """Graphviz's SVG, reduced to the picture itself."""
    ET.register_namespace("", SVG)
    root = ET.fromstring(text)  # noqa: S314 - trusted, see above
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
    least = min(float(root.get("width", "0")) * SHRINKS_TO, DESK_PIXELS)
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
