"""HTML for the pages that verbs write: they open from disk and load nothing, neither from the network nor as a script.

Invariant: every text is escaped here and nowhere else. Nothing is shown by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files
from typing import Final

from sync_rules.cli.show.picture import PictureError, svg
from sync_rules.cli.show.rule_graph import RuleGraph, mermaid
from sync_rules.model.values import visible

STYLE: Final = files("sync_rules.cli.show").joinpath("page.css").read_text()
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SIGNS: Final[Mapping[str, str]] = {
    word: f'<span class="sign" aria-hidden="true">{sign}</span>'
    for word, sign in {"well": "✓", "bad": "✗", "dim": "○"}.items()
}
NEW_LINE: Final = "\n"


def document(title: str, body: str) -> str:
    """A page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head>\n"
        f"<body>{body}</body></html>\n"
    )


def text(given: str, keep: str = "") -> str:
    """Any text as HTML, visible but for what it shall `keep`."""
    return escape(visible(given, keep))


def wide(label: str, inside: str) -> str:
    """A box for content wider than the screen: it scrolls, by keyboard too."""
    return f'<div class="wide" role="region" aria-label="{text(label)}" tabindex="0">{inside}</div>'


def defined(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of terms, each with what it is. Both are HTML."""
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{value}</dd>' for name, value in pairs)}</dl>"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], kind: str = "") -> str:
    """A table of cells, which are HTML, with a line of heads, which are text."""
    head = "".join(f'<th scope="col">{text(one)}</th>' for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    named = f' class="{kind}"' if kind else ""
    return f"<table{named}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def drawn(graph: RuleGraph) -> str:
    """The graph as a list, and as a picture if Graphviz is installed."""
    rows = (
        f"<li>{text(arrow.rule)} ({text(arrow.kind)}): <code>{text(arrow.keeps)}</code></li>" for arrow in graph.arrows
    )
    listed = f"<ul>{''.join(rows)}</ul>"
    try:
        picture = svg(graph)
    except PictureError as error:
        inside = wide("The rules as Mermaid text", f"<pre>{text(mermaid(graph), keep=NEW_LINE)}</pre>")
        source = f"<details><summary>The same as Mermaid text</summary>{inside}</details>"
        return f'<p class="dim">{text(str(error))}</p>{listed}{source}'
    figure = f'<figure class="wide" role="region" aria-label="The rules as a picture" tabindex="0">{picture}</figure>'
    return f"{figure}<details><summary>The same as a list</summary>{listed}</details>"
