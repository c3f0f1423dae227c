"""HTML for the pages that verbs write: they open from disk and load nothing, neither from the network nor as a script.

Invariant: every text is escaped here and nowhere else. Nothing is shown by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import Final

from sync_rules import __version__
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
class RuleReport:
    """A rule in a report: a row of figures, by their headings, that leads to a section. `word` is the class of the
    verdict, `detail` adds to it in the section, and `parts` are HTML around it.
    """

    name: str
    kind: str
    word: str
    verdict: str
    detail: str
    figures: Mapping[str, str]
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class HtmlReport:
    """The report of a verb. `word` is the class of the headline. `remarks` and `facts` are text, `parts` are HTML;
    `facts` say when and how the report was made, `meanings` explain its words.
    """

    verb: str
    word: str
    headline: str
    remarks: Iterable[str]
    rules: Sequence[RuleReport]
    parts: Iterable[str]
    facts: Iterable[tuple[str, str]]
    meanings: Mapping[str, str]

    def render(self) -> str:
        """The page as HTML."""
        body = "".join((
            f'<header class="{self.word}"><h1>{SIGNS[self.word]} {text(self.headline)}</h1>',
            *(f'<p class="dim">{text(line)}</p>' for line in self.remarks),
            "</header><main>",
            *(("<h2>Figures</h2>", self._figures(), "<h2>Rule by rule</h2>") if self.rules else ()),
            *(_rule_section(number, rule) for number, rule in enumerate(self.rules)),
            *self.parts,
            "<h2>When and how</h2>",
            list_terms((name, text(value)) for name, value in self.facts),
            "<h2>What the words mean</h2>",
            list_terms((text(name), text(meaning)) for name, meaning in self.meanings.items()),
            "</main>",
        ))  # fmt: skip
        return document(f"{self.headline} · sync-rules {self.verb}", body)

    def _figures(self) -> str:
        """The table of rules, each with a link to its section, its verdict and its figures."""
        rows = (
            f'<tr><th scope="row"><a href="#rule-{number}">{text(rule.name)}</a></th>'
            f'<td class="{rule.word}">{SIGNS[rule.word]} {text(rule.verdict)}</td>'
            + "".join(f'<td class="number">{text(figure)}</td>' for figure in rule.figures.values())
            + "</tr>"
            for number, rule in enumerate(self.rules)
        )
        columns = "".join(f'<th scope="col" class="number">{text(head)}</th>' for head in self.rules[0].figures)
        head = f'<tr><th scope="col">rule</th><th scope="col">verdict</th>{columns}</tr>'
        return wide("Figures of each rule", f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>")


def _rule_section(number: int, rule: RuleReport) -> str:
    return (
        f'<section id="rule-{number}"><h3>{text(rule.name)} <span class="kind">{text(rule.kind)}</span></h3>'
        f'{rule.before}<p class="{rule.word}">{SIGNS[rule.word]} {text(rule.verdict + rule.detail)}</p>{rule.after}'
        "</section>"
    )


def examples(summary: str, label: str, heads: Iterable[str], rows: Sequence[Iterable[str]], total: int) -> str:
    """A table of examples, which is closed at first; its summary has their number, of a total. Cells are HTML."""
    if not rows:
        return ""
    count = f"{len(rows):,} of {total:,}" if len(rows) < total else f"{len(rows):,}"
    return f"<details><summary>{text(summary)} ({count})</summary>{table(label, heads, rows)}</details>"


def list_facts(started: datetime, seconds: float, command: str, more: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """When and how a report was made: begin, duration and command line, then `more`, then the version."""
    yield "Started", f"{started.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    yield "Took", f"{seconds:,.1f} s"
    yield "Command", command
    yield from more.items()
    yield "Version", f"sync-rules {__version__}"


def document(title: str, body: str) -> str:
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


def list_terms(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of terms, each with what it is. Both are HTML."""
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{value}</dd>' for name, value in pairs)}</dl>"


def table(label: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells, which are HTML, with a line of heads, which are text."""
    head = "".join(f'<th scope="col">{text(one)}</th>' for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return wide(label, f'<table class="examples"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')


def describe_graph(graph: RuleGraph) -> str:
    """The graph as a list, and as Mermaid text."""
    rows = (
        f"<li>{text(arrow.rule)} ({text(arrow.kind)}): <code>{text(arrow.keeps)}</code></li>" for arrow in graph.arrows
    )
    inside = wide("The rules as Mermaid text", f"<pre>{text(mermaid(graph), keep=NEW_LINE)}</pre>")
    return f"<ul>{''.join(rows)}</ul><details><summary>The same as Mermaid text</summary>{inside}</details>"
