"""A proposal as one HTML page that opens from disk and loads nothing: rules with their evidence, and a map of entities.

Invariant: the page names rules, attributes and keys. It holds no other value of an item unless `values` is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

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


def write_page(searched: Searched) -> str:
    """The page."""
    shown, proposal = searched.shown, searched.shown.proposal
    values = "shown" if shown.values else "not shown: --show-values shows those of examples"
    facts = {"Read": searched.origin, "Values": values, "Applied": "nothing"}
    return html.HtmlReport(
        verb="propose",
        word="well" if shown.written else "dim",
        headline=f"{shown.headline[:1].upper()}{shown.headline[1:]}",
        remarks=map(entities_line, proposal.tables),
        rules=[_report_rule(rule, shown) for rule in (*shown.written, *shown.held_back)],
        parts=(
            "<h2>Entities and rules</h2>",
            html.describe_graph(graph_of(searched.rules)),
            "<h2>What a repair costs</h2>",
            *(f"<p>{html.text(line)}</p>" for line in _costs(searched)),
            _indexes(proposal),
            _links(proposal.links),
            _entities(proposal),
        ),
        facts=html.list_facts(searched.started, searched.seconds, searched.how, facts),
        meanings=MEANINGS,
    ).render()


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
def _report_rule(rule: Proposed, shown: ShownProposal) -> html.RuleReport:
    """A rule with its text, its evidence, the cost of its repair, and items that differ."""
    figures = shown.repair.rules.get(rule.name) if shown.repair is not None else None
    said = f"{rule.agree:,} of {rule.checked:,} agree ({percent(rule)})" if rule.checked else "nothing to compare"
    if rule.differ:
        said += f"; {rule.differ:,} differ"
    if rule.orphans:
        said += f"; {rule.orphans:,} name a source that does not exist"
    lines = [f"<p>{html.text(said)}</p>", *(f'<p class="dim">{html.text(remark)}</p>' for remark in rule.remarks)]
    if figures is not None:
        lines.append(f"<p>A repair: {figures.to_write:,.0f} to write, {figures.write_units:,.0f} write units.</p>")
    if rule.index is not None:
        lines.append(f"<p>It needs an index: <code>{html.text(rule.index.text)}</code></p>")
    counts = {name: f"{getattr(rule, name):,}" for name in ("checked", "agree", "differ", "orphans")}
    units = f"{figures.write_units:,.0f}" if figures is not None else ""
    code = f"<pre>{html.text(rule_text(rule), keep=html.NEW_LINE)}</pre>"
    return html.RuleReport(
        name=rule.name,
        kind=rule.kind,
        word="well" if rule.held_back is None else "dim",
        verdict=f"{rule.confidence} confidence" if rule.held_back is None else "held back",
        detail=f": {rule.held_back}" if rule.held_back else "",
        figures={"agreement": percent(rule), **counts, "write units": units},
        before=html.wide(f"{rule.name} in the rules file", code),
        after="".join(lines) + _examples(rule, shown),
    )


def _examples(rule: Proposed, shown: ShownProposal) -> str:
    some = [shown.example(one) for one in rule.examples[:EXAMPLES_MAX_ITEMS]]
    heads = ["item", *list(some[0])[1:]] if some else []
    cells = [[html.text(cell) for cell in one.values()] for one in some]
    return html.examples("Differ", f"Differ from {rule.name}", heads, cells, rule.differ)


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
    return f"<h2>Links</h2>{_table('Links between entities', heads, rows)}"


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
    return f"<h2>Entities</h2>{checks}{_table('Entities', heads, rows)}" if rows else checks


def _table(label: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    return html.table(label, heads, (map(html.text, row) for row in rows))
