"""The report of a verify as one HTML page.

Invariant: the page names rules, keys and paths, and holds no value of an item.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Final, Literal
from urllib.parse import urlsplit

from sync_rules.audit.compare import Drift
from sync_rules.audit.drift_report import totals
from sync_rules.audit.verifier import Verifier
from sync_rules.audit.verify_tally import DriftFinding
from sync_rules.cli.show import html
from sync_rules.cli.show.drift import describe_sample, list_unseen_rules, summarize
from sync_rules.cli.show.rule_graph import Arrow, graph_of
from sync_rules.model.items import ItemKey
from sync_rules.model.values import show_path
from sync_rules.pipeline.failure_records import show_key

EXAMPLES_MAX_ITEMS: Final = 20  # of each rule
HEADS: Final = ("drift", "target", "paths", "source", "reason", "now")
MEANINGS: Final = tomllib.loads(files("sync_rules.cli.show").joinpath("verify_words.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    """A complete verify. `names`: the rules it checked; `how`: its command line, without secrets; `seed`: that of its
    sample; `only`: a smaller part of the tables, if it was asked for one.
    """

    verifier: Verifier
    names: frozenset[str]
    examples: Mapping[str, Sequence[DriftFinding]]
    started: datetime
    seconds: float
    how: str
    endpoint: str
    region: str | None
    seed: int | None = None
    only: Literal["", "one item", "what an earlier report lists"] = ""


def note_examples(findings: Iterable[DriftFinding], examples: dict[str, list[DriftFinding]]) -> Iterator[DriftFinding]:
    """Pass the findings on, and note the first of each rule as examples."""
    for finding in findings:
        noted = examples.setdefault(finding.difference.rule, [])
        if len(noted) < EXAMPLES_MAX_ITEMS:
            noted.append(finding)
        yield finding


def find_host(address: str) -> str:
    """Host and port of an address, without user name and password."""
    return urlsplit(address).netloc.rpartition("@")[2]


# ---------------------------------------------------------------- the page
def write_page(verified: VerifyReport) -> str:
    graph = graph_of(verified.verifier.rules)
    word, headline = _headline(verified)
    return html.HtmlReport(
        verb="verify",
        word=word,
        headline=headline,
        remarks=(summarize(verified.verifier.tally, repair=verified.verifier.repair), *_coverage(verified)),
        rules=[_report_rule(title, graph.arrows, verified) for title in _titles(verified)],
        parts=("<h2>All rules of the file</h2>", html.describe_graph(graph)),
        facts=html.list_facts(verified.started, verified.seconds, verified.how, _circumstances(verified)),
        meanings=MEANINGS,
    ).render()


def _headline(verified: VerifyReport) -> tuple[str, str]:
    tally = verified.verifier.tally
    if tally.remaining_count:
        return "bad", f"Drift left: {tally.remaining_count}"
    if not any(tally.count_targets(name) for name in verified.names):
        return "dim", "No items were found to check"
    return "well", f"OK: {tally.drift.total()} drift, all repaired" if tally.drift.total() else "OK: no drift"


def _coverage(verified: VerifyReport) -> Iterator[str]:
    if verified.only:
        yield f"Only {verified.only} was checked."
    for line in describe_sample(verified.verifier.share, verified.seed, verified.verifier.rules, verified.names):
        yield f"{line[0].upper()}{line[1:]}."


def _titles(verified: VerifyReport) -> list[str]:
    """The checked rules of the file, those with remaining drift first."""
    tally, titles = (
        verified.verifier.tally,
        {name: verified.verifier.rules.rules[name].title for name in verified.names},
    )
    bad = {titles[name] for name in verified.names if tally.drift[name] > tally.repaired[name]}
    return sorted(set(titles.values()), key=lambda title: (title not in bad, title))


def _report_rule(title: str, arrows: Iterable[Arrow], verified: VerifyReport) -> html.RuleReport:
    """One rule of the file, with the figures of all rules that it is compiled into."""
    tally, rules = verified.verifier.tally, verified.verifier.rules.rules
    names = sorted(name for name in verified.names if rules[name].title == title)
    drift, repaired, seen = (
        sum(counts)
        for counts in zip(*((tally.drift[n], tally.repaired[n], tally.count_targets(n)) for n in names), strict=True)
    )
    word, verdict = ("bad", "drift") if drift > repaired else ("well", "OK") if seen else ("dim", "no items")
    totals_of = [totals(tally, name) for name in names]
    figures = {"left": drift - repaired, "drift": drift, "checked": seen}  # worst first
    figures |= {name: sum(one[name] for one in totals_of) for name in totals_of[0] if name != "drift"}
    kinds = {kind: sum(tally.unmended[name, kind] for name in names) for kind in Drift}
    counts = ", ".join(f"{count:,} {kind.value}" for kind, count in kinds.items() if count)
    mine = [arrow for arrow in arrows if arrow.rule == title]
    empty = list_unseen_rules(verified.verifier.rules, tally, frozenset(names), verified.verifier.share)
    unlooked = "".join(f'<p class="dim">{html.text(line)}. So no drift there proves nothing.</p>' for line in empty)
    found = [[*_cells(finding)] for name in names for finding in verified.examples.get(name, ())]
    return html.RuleReport(
        name=title,
        kind=mine[0].kind if mine else rules[names[0]].kind,
        word=word,
        verdict=verdict,
        detail=(f": {counts}" if counts else "") + (f", {repaired:,} repaired" if repaired else ""),
        figures={name: f"{figure:,}" for name, figure in figures.items()},
        before="".join(f"<p><code>{html.text(arrow.keeps)}</code></p>" for arrow in mine),
        after=unlooked + html.examples("Drift", f"Drift of {title}", HEADS, found, drift),
    )


def _cells(finding: DriftFinding) -> Iterator[str]:
    found = finding.difference
    yield found.drift.value
    yield _key(found.target)
    yield ", ".join(f"<code>{html.text(show_path(path))}</code>" for path in found.paths)
    yield "" if found.source is None else _key(found.source)
    yield html.text(found.reason)
    yield "repaired" if finding.repaired else "right by now" if finding.came_right else "left"


def _circumstances(verified: VerifyReport) -> dict[str, str]:
    return {
        "DynamoDB at": verified.endpoint,
        "Region": verified.region or "unknown",
        "Checked": " ".join(_coverage(verified)) or "every item of the tables",
        "Grace": f"{verified.verifier.grace_seconds:g} s between the two checks of a difference",
        "Repair": "yes" if verified.verifier.repair else "no: nothing was written",
        "Rules": verified.verifier.rules.fingerprint or "unknown",
    }


def _key(key: ItemKey) -> str:
    """A key as `verify --key` takes it, after the name of its table."""
    return f"{html.text(key.table)} <code>{html.text(json.dumps(show_key(key), ensure_ascii=False))}</code>"
