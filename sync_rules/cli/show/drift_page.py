"""The report of a verify as one HTML page that opens from disk and loads nothing: no network, no script.

Invariant: the page names rules, keys and paths, and holds no value of an item. Every text is escaped here and nowhere
else. Nothing is shown by colour alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal
from urllib.parse import urlsplit

from sync_rules import __version__
from sync_rules.audit.compare import Drift
from sync_rules.audit.drift_report import totals
from sync_rules.audit.verify_tally import Finding, Tally
from sync_rules.cli.show import html
from sync_rules.cli.show.drift import sampled, summary, unseen
from sync_rules.cli.show.rule_graph import Arrow, graph_of
from sync_rules.model.items import ItemKey
from sync_rules.model.values import show_path
from sync_rules.pipeline.failure_records import shown_key
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Share

EXAMPLES_MAX_ITEMS: Final = 20  # of each rule
MEANINGS: Final[Mapping[str, str]] = {
    "checked": "pairs of a rule and a target that were checked (or of a rule and an element, mirror or ledger entry)",
    "right": "the copy is as its rule says",
    "kept": "the rule does not apply: there is no source, or its where does not hold",
    "orphaned": "the part of kept whose source was deleted, where the rule keeps such copies",
    "lag": "it differed at the first check and not, or otherwise, at the second: the change was on its way",
    "drift": "it differed at both checks, and nothing changed it in between",
    "repaired": "drift that was corrected, without overwriting anything newer",
    "left": "drift that remains",
    Drift.WRONG.value: "the copy has another value than its source says",
    Drift.MISSING.value: "the source has a value, and the copy does not exist",
    Drift.EXTRA.value: "the copy exists, and the source has no such value",
    Drift.ORPHAN.value: "the copy exists and its source does not: restore the source, or remove the copy",
    Drift.STUCK.value: "no write can make it right; the reason is shown, and needs a change by you",
}


@dataclass(frozen=True, kw_only=True)
class Verified:
    """A complete verify. `names`: the rules it checked; `how`: its command line, without secrets; `share` and `seed`:
    the part of the tables it read; `only`: a smaller part, if it was asked for one.
    """

    rules: Rules
    names: frozenset[str]
    tally: Tally
    examples: Mapping[str, Sequence[Finding]]
    started: datetime
    seconds: float
    how: str
    endpoint: str
    region: str | None
    grace_seconds: float
    repair: bool
    share: Share
    seed: int | None = None
    only: Literal["", "one item", "what an earlier report lists"] = ""


def note_examples(findings: Iterable[Finding], examples: dict[str, list[Finding]]) -> Iterator[Finding]:
    """Pass the findings on, and note the first of each rule as examples."""
    for finding in findings:
        noted = examples.setdefault(finding.difference.rule, [])
        if len(noted) < EXAMPLES_MAX_ITEMS:
            noted.append(finding)
        yield finding


def host_of(address: str) -> str:
    """Host and port of an address, without user name and password."""
    return urlsplit(address).netloc.rpartition("@")[2]


# ---------------------------------------------------------------- the page
def page(verified: Verified) -> str:
    graph = graph_of(verified.rules)
    titles = _titles(verified)
    word, headline = _headline(verified)
    return html.Page(
        verb="verify",
        word=word,
        headline=headline,
        remarks=(summary(verified.tally, repair=verified.repair), *_coverage(verified)),
        parts=(
            "<h2>Figures</h2>",
            _figures(titles, verified),
            "<h2>Rule by rule</h2>",
            *(_of_rule(number, title, graph.arrows, verified) for number, title in enumerate(titles)),
            "<h2>All rules of the file</h2>",
            html.describe_graph(graph),
        ),
        facts=_when_and_how(verified),
        meanings=MEANINGS,
    ).render()


def _headline(verified: Verified) -> tuple[str, str]:
    """The class of the headline, and the headline."""
    tally = verified.tally
    if tally.left:
        return "bad", f"Drift left: {tally.left}"
    if not any(tally.seen(name) for name in verified.names):
        return "dim", "No items were found to check"
    return "well", f"OK: {tally.drift.total()} drift, all repaired" if tally.drift.total() else "OK: no drift"


def _coverage(verified: Verified) -> Iterator[str]:
    """The part of the tables that was checked, if not everything."""
    if verified.only:
        yield f"Only {verified.only} was checked."
    for line in sampled(verified.share, verified.seed, verified.rules, verified.names):
        yield f"{line[0].upper()}{line[1:]}."


def _titles(verified: Verified) -> list[str]:
    """The checked rules of the file, those with remaining drift first."""
    rules, left = verified.rules.rules, {name for name in verified.names if _left(name, verified.tally)}
    bad = {rules[name].title for name in left}
    return sorted({rules[name].title for name in verified.names}, key=lambda title: (title not in bad, title))


def _named(title: str, verified: Verified) -> list[str]:
    """The compiled rules of one rule of the file."""
    return sorted(name for name in verified.names if verified.rules.rules[name].title == title)


def _left(name: str, tally: Tally) -> int:
    return tally.drift[name] - tally.repaired[name]


def _figures(titles: Sequence[str], verified: Verified) -> str:
    """The table of figures, a line per compiled rule."""
    tally = verified.tally
    heads = ("left", "drift", "checked", *(name for name in totals(tally, "") if name != "drift"))  # worst first

    def lines() -> Iterator[html.RuleLine]:
        for number, title in enumerate(titles):
            for name in _named(title, verified):
                found = {**totals(tally, name), "checked": tally.seen(name), "left": _left(name, tally)}
                yield html.RuleLine(number, name, *_verdict((name,), tally), [f"{found[head]:,}" for head in heads])

    return html.rules_table(heads, lines())


def _verdict(names: Sequence[str], tally: Tally) -> tuple[str, str]:
    """The class and the verdict for some compiled rules."""
    if any(_left(name, tally) for name in names):
        return "bad", "drift"
    return ("well", "OK") if any(tally.seen(name) for name in names) else ("dim", "no items")


# ---------------------------------------------------------------- rule by rule
def _of_rule(number: int, title: str, arrows: Iterable[Arrow], verified: Verified) -> str:
    """The section of one rule of the file: its arrows, its verdict, and examples of drift."""
    tally, names = verified.tally, _named(title, verified)
    word, verdict = _verdict(names, tally)
    kinds = {drift: sum(tally.unmended[name, drift] for name in names) for drift in Drift}
    counts = [f"{count:,} {drift.value}" for drift, count in kinds.items() if count]
    repaired = sum(tally.repaired[name] for name in names)
    result = [f"{verdict}: {', '.join(counts)}" if counts else verdict, f"{repaired:,} repaired" if repaired else ""]
    mine = [arrow for arrow in arrows if arrow.rule == title]
    kind = mine[0].kind if mine else verified.rules.rules[names[0]].kind
    keeps = "".join(f"<p><code>{html.text(arrow.keeps)}</code></p>" for arrow in mine)
    empty = unseen(verified.rules, tally, frozenset(names), verified.share)
    unlooked = "".join(f'<p class="dim">{html.text(line)}. So no drift there proves nothing.</p>' for line in empty)
    examples = [finding for name in names for finding in verified.examples.get(name, ())]
    return (
        f'<section id="rule-{number}"><h3>{html.text(title)} <span class="kind">{html.text(kind)}</span></h3>{keeps}'
        f'<p class="{word}">{html.SIGNS[word]} {html.text(", ".join(filter(None, result)))}</p>{unlooked}'
        f"{_examples(title, examples, sum(tally.drift[name] for name in names))}</section>"
    )


def _examples(title: str, findings: Sequence[Finding], drift: int) -> str:
    if not findings:
        return ""
    heads = ("drift", "target", "paths", "source", "reason", "now")
    table = html.wide(f"Drift of {title}", html.table(heads, map(_cells, findings), "examples"))
    return html.folded("Drift", len(findings), drift, table)


def _cells(finding: Finding) -> Iterator[str]:
    found = finding.difference
    yield found.drift.value
    yield _key(found.target)
    yield ", ".join(f"<code>{html.text(show_path(path))}</code>" for path in found.paths)
    yield "" if found.source is None else _key(found.source)
    yield html.text(found.reason)
    yield "repaired" if finding.repaired else "right by now" if finding.came_right else "left"


# ---------------------------------------------------------------- when and how
def _when_and_how(verified: Verified) -> Iterator[tuple[str, str]]:
    yield "Started", f"{verified.started.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    yield "Took", f"{verified.seconds:,.1f} s"
    yield "Command", verified.how
    yield "DynamoDB at", verified.endpoint
    yield "Region", verified.region or "unknown"
    yield "Checked", " ".join(_coverage(verified)) or "every item of the tables"
    yield "Grace", f"{verified.grace_seconds:g} s between the two checks of a difference"
    yield "Repair", "yes" if verified.repair else "no: nothing was written"
    yield "Rules", verified.rules.fingerprint or "unknown"
    yield "Version", f"sync-rules {__version__}"


def _key(key: ItemKey) -> str:
    """A key as `verify --key` takes it, after the name of its table."""
    return f"{html.text(key.table)} <code>{html.text(json.dumps(shown_key(key), ensure_ascii=False))}</code>"
