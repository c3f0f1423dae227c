"""A proposal as one HTML page that opens from disk and loads nothing: rules with their evidence, and a map of entities.

Invariant: the page names rules, attributes and keys. It holds no other value of an item unless `values` is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sync_rules import __version__
from sync_rules.cli.show import html
from sync_rules.cli.show.rule_graph import graph_of
from sync_rules.extras.discover.commands.show_proposal import (
    EXAMPLES_MAX_ITEMS,
    ShownProposal,
    entities_line,
    missing_indexes,
    percent,
)
from sync_rules.extras.discover.propose.proposal import Link, Proposal, Proposed
from sync_rules.extras.discover.propose.proposal_writer import rule_text
from sync_rules.jobs.dryrun.money import on_demand
from sync_rules.jobs.dryrun.prices import Prices
from sync_rules.model.units import PARTITION_MAX_WRITE_UNITS
from sync_rules.rules.ruleset import Rules

COLUMNS: Final = ("agreement", "checked", "agree", "differ", "orphans", "write units")
NOT_PLANNED: Final = (
    "What a repair costs was not computed, because there are too many items: `sync-rules plan` computes it."
)
MEANINGS: Final[Mapping[str, str]] = {
    "checked": "targets that name a source which exists, or parents with their children",
    "agree": "targets that are as the rule says",
    "differ": "targets that are not: drift, or the rule is not the whole truth",
    "orphans": "targets whose source does not exist",
    "confidence": "how sure it is that the rule was meant: by agreement, by names, against chance",
    "held back": "the rule stands as a comment in the file, with the reason",
    "write units": "what a backfill of the rule would write now, as sync-rules plan computes it",
}


@dataclass(frozen=True, kw_only=True)
class Searched:
    """A search for the page. `rules`: those of the file that was written; `how`: the command line, without secrets;
    `origin`: where the items came from; `prices` has the Region, or is None.
    """

    shown: ShownProposal
    rules: Rules
    started: datetime
    seconds: float
    how: str
    origin: str
    region: str | None = None
    prices: Prices | None = None


def page(searched: Searched) -> str:
    """The page."""
    shown, proposal = searched.shown, searched.shown.proposal
    return html.Page(
        verb="propose",
        word="well" if shown.written else "dim",
        headline=_sentence(shown.headline),
        remarks=map(entities_line, proposal.tables),
        parts=(
            _figures(shown),
            "<h2>Entities and rules</h2>",
            html.describe_graph(graph_of(searched.rules)),
            "<h2>What a repair costs</h2>",
            *(f"<p>{html.text(line)}</p>" for line in _costs(searched)),
            _indexes(proposal),
            "<h2>Rule by rule</h2>" if proposal.rules else "",
            *(_of_rule(number, rule, shown) for number, rule in enumerate(_in_order(shown))),
            _links(proposal.links),
            _entities(proposal),
        ),
        facts=_when_and_how(searched),
        meanings=MEANINGS,
    ).render()


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _in_order(shown: ShownProposal) -> list[Proposed]:
    return [*shown.written, *shown.held_back]


# ---------------------------------------------------------------- figures
def _figures(shown: ShownProposal) -> str:
    """The table of all rules."""
    if not shown.proposal.rules:
        return ""
    lines = (
        html.RuleLine(number, rule.name, *_verdict(rule, ""), _cells(rule, shown))
        for number, rule in enumerate(_in_order(shown))
    )
    return f"<h2>Figures</h2>{html.rules_table(COLUMNS, lines)}"


def _verdict(rule: Proposed, reason: str) -> tuple[str, str]:
    """The class and the verdict of a rule, with the reason why it is held back."""
    if rule.held_back is None:
        return "well", f"{rule.confidence} confidence"
    return "dim", f"held back{reason}"


def _cells(rule: Proposed, shown: ShownProposal) -> Iterator[str]:
    yield percent(rule)
    yield from (f"{number:,}" for number in (rule.checked, rule.agree, rule.differ, rule.orphans))
    figures = shown.repair.rules.get(rule.name) if shown.repair is not None else None
    yield f"{figures.write_units:,.0f}" if figures is not None else ""


def _costs(searched: Searched) -> Iterator[str]:
    """The cost of a backfill of all rules that were written."""
    repair = searched.shown.repair
    if repair is None:
        yield NOT_PLANNED if searched.shown.written else "There is no rule to repair by."
        return
    plan = repair.plan
    yield (
        f"A backfill of all rules would write {plan.writes:,.0f} items now: {plan.reads:,.0f} read units and "
        f"{plan.written:,.0f} write units."
    )
    if searched.prices is not None and searched.region in searched.prices.regions:
        money = on_demand(searched.prices.regions[searched.region], plan.reads, plan.written)
        prices = searched.prices
        yield (
            f"On demand in {searched.region}: {money:,.4f} {prices.currency} (prices of {prices.date.isoformat()}, "
            f"{prices.source})."
        )
    if plan.hottest_seconds >= 1:
        yield (
            f"The hottest partition key takes at least {plan.hottest_seconds:,.0f} s, at "
            f"{PARTITION_MAX_WRITE_UNITS:,} write units a second."
        )
    yield "sync-rules plan says the same of the tables as they are then, with the time that it takes."


def _indexes(proposal: Proposal) -> str:
    lines = [f"<li>{html.text(line)}</li>" for line in missing_indexes(proposal.rules)]
    return f"<h2>Indexes to add</h2><ul>{''.join(lines)}</ul>" if lines else ""


# ---------------------------------------------------------------- rule by rule
def _of_rule(number: int, rule: Proposed, shown: ShownProposal) -> str:
    word, verdict = _verdict(rule, f": {rule.held_back}")
    said = f"{rule.agree:,} of {rule.checked:,} agree ({percent(rule)})" if rule.checked else "nothing to compare"
    if rule.differ:
        said += f"; {rule.differ:,} differ"
    if rule.orphans:
        said += f"; {rule.orphans:,} name a source that does not exist"
    remarks = "".join(f'<p class="dim">{html.text(remark)}</p>' for remark in rule.remarks)
    figures = shown.repair.rules.get(rule.name) if shown.repair is not None else None
    cost = (
        f"<p>A repair: {figures.to_write:,.0f} to write, {figures.write_units:,.0f} write units.</p>"
        if figures is not None
        else ""
    )
    index = f"<p>It needs an index: <code>{html.text(rule.index.text)}</code></p>" if rule.index is not None else ""
    return (
        f'<section id="rule-{number}"><h3>{html.text(rule.name)} <span class="kind">{html.text(rule.kind)}</span></h3>'
        f"{html.wide(f'{rule.name} in the rules file', f'<pre>{html.text(rule_text(rule), keep=html.NEW_LINE)}</pre>')}"
        f'<p class="{word}">{html.SIGNS[word]} {html.text(verdict)}</p><p>{html.text(said)}</p>{remarks}{cost}{index}'
        f"{_examples(rule, shown)}</section>"
    )


def _examples(rule: Proposed, shown: ShownProposal) -> str:
    some = [shown.example(one) for one in rule.examples[:EXAMPLES_MAX_ITEMS]]
    if not some:
        return ""
    heads = {"key": "item", "expected": "expected", "found": "found"}
    columns = [name for name in heads if name in some[0]]
    table = _table([heads[name] for name in columns], [[one[name] for name in columns] for one in some])
    return html.folded("Differ", len(some), rule.differ, html.wide(f"Differ from {rule.name}", table))


# ---------------------------------------------------------------- entities and links
def _links(links: Sequence[Link]) -> str:
    if not links:
        return ""
    rows = [
        [
            link.target, link.source, ", ".join(f"{path} = {name}" for name, path in link.fields),
            f"{link.targets:,}", f"{link.held:.1%}", f"{link.reached:.1%}",
        ]
        for link in links
    ]  # fmt: skip
    heads = ["of", "to", "by", "items", "lead somewhere", "are reached"]
    return f"<h2>Links</h2>{html.wide('Links between entities', _table(heads, rows))}"


def _entities(proposal: Proposal) -> str:
    rows = [
        [
            entity.name, table.name, f"{entity.items:,}",
            ", ".join(f"{name}: {template}" for name, template in entity.key.items()), "; ".join(entity.checks),
        ]
        for table in proposal.tables
        for entity in table.entities
    ]  # fmt: skip
    checks = "".join(
        f'<p class="dim">table {html.text(table.name)}: {html.text(check)}</p>'
        for table in proposal.tables
        for check in table.checks
    )
    heads = ["entity", "table", "items", "key", "to check"]
    return f"<h2>Entities</h2>{checks}{html.wide('Entities', _table(heads, rows))}" if rows else checks


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    return html.table(heads, (map(html.text, row) for row in rows), "examples")


def _when_and_how(searched: Searched) -> Iterator[tuple[str, str]]:
    yield "Started", f"{searched.started.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    yield "Took", f"{searched.seconds:,.1f} s"
    yield "Command", searched.how
    yield "Read", searched.origin
    yield "Values", "shown" if searched.shown.values else "not shown: --show-values shows those of examples"
    yield "Applied", "nothing"
    yield "Version", f"sync-rules {__version__}"
