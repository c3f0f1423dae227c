"""HTML for the pages that verbs write: they open from disk and load nothing, neither from the network nor as a script.

Invariant: every text is escaped here and nowhere else. Nothing is shown by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Final, NamedTuple

from sync_rules.cli.show.rule_graph import RuleGraph, mermaid
from sync_rules.model.values import visible

STYLE: Final = files("sync_rules.cli.show").joinpath("page.css").read_text()
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SIGNS: Final[Mapping[str, str]] = {
    word: f'<span class="sign" aria-hidden="true">{sign}</span>'
    for word, sign in {"well": "✓", "bad": "✗", "dim": "○"}.items()
}
NEW_LINE: Final = "\n"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A report of a verb. `word` is the class of the headline. `remarks` and `facts` are text, `parts` are HTML;
    `facts` say when and how the report was made, `meanings` explain its words.
    """

    verb: str
    word: str
    headline: str
    remarks: Iterable[str]
    parts: Iterable[str]
    facts: Iterable[tuple[str, str]]
    meanings: Mapping[str, str]

    def render(self) -> str:
        """The page as HTML."""
        body = "".join((
            f'<header class="{self.word}"><h1>{SIGNS[self.word]} {text(self.headline)}</h1>',
            *(f'<p class="dim">{text(line)}</p>' for line in self.remarks),
            "</header><main>",
            *self.parts,
            "<h2>When and how</h2>",
            defined((name, text(value)) for name, value in self.facts),
            "<h2>What the words mean</h2>",
            defined((text(name), text(meaning)) for name, meaning in self.meanings.items()),
            "</main>",
        ))  # fmt: skip
        return document(f"{self.headline} · sync-rules {self.verb}", body)


class RuleLine(NamedTuple):
    """A line of the table of rules: the number of the rule's section, its name, its verdict with its class, numbers."""

    section: int
    name: str
    word: str
    verdict: str
    numbers: Iterable[str]


def rules_table(heads: Iterable[str], lines: Iterable[RuleLine]) -> str:
    """The table of rules, each with a link to its section, its verdict and its figures."""
    rows = (
        f'<tr><th scope="row"><a href="#rule-{line.section}">{text(line.name)}</a></th>'
        f'<td class="{line.word}">{SIGNS[line.word]} {text(line.verdict)}</td>'
        + "".join(f'<td class="number">{text(number)}</td>' for number in line.numbers)
        + "</tr>"
        for line in lines
    )
    columns = "".join(f'<th scope="col" class="number">{text(head)}</th>' for head in heads)
    head = f'<tr><th scope="col">rule</th><th scope="col">verdict</th>{columns}</tr>'
    return wide("Figures of each rule", f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>")


def folded(summary: str, shown: int, total: int, inside: str) -> str:
    """A part that is closed at first; its summary has the number of lines, and of how many."""
    count = f"{shown:,} of {total:,}" if shown < total else f"{shown:,}"
    return f"<details><summary>{text(summary)} ({count})</summary>{inside}</details>"


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


def describe_graph(graph: RuleGraph) -> str:
    """The graph as a list, and as Mermaid text."""
    rows = (
        f"<li>{text(arrow.rule)} ({text(arrow.kind)}): <code>{text(arrow.keeps)}</code></li>" for arrow in graph.arrows
    )
    inside = wide("The rules as Mermaid text", f"<pre>{text(mermaid(graph), keep=NEW_LINE)}</pre>")
    return f"<ul>{''.join(rows)}</ul><details><summary>The same as Mermaid text</summary>{inside}</details>"
