"""A plan for people and machines: the work of each rule, units, money, time, and hot keys.

Invariant: it shows counts, names, keys and paths, never a value. Every estimate is marked as one. Money is shown with
the Region and the date of its prices, or not at all, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from rich.console import Console
from rich.table import Table as Grid

from sync_rules import DOCS
from sync_rules.audit.link_check import LinkFinding
from sync_rules.cli.show.console import format_markdown, make_grid, print_parts
from sync_rules.cli.show.output import escape_markdown
from sync_rules.cli.show.text import VERBS, describe_alterations
from sync_rules.jobs.dryrun.figures import Plan, PlannedWrite, Since
from sync_rules.jobs.dryrun.money import compute_on_demand_price, plan_capacity
from sync_rules.jobs.dryrun.prices import Prices
from sync_rules.model.items import Alteration
from sync_rules.model.sizes import PARTITION_MAX_WRITE_UNITS
from sync_rules.model.values import show_path
from sync_rules.pipeline.books import describe_waits
from sync_rules.pipeline.failure_records import format_key, show_key

COLUMNS: Final = {
    "checked": "looked_at", "to write": "to_write", "right": "right", "kept": "kept", "parked": "parked",
    "write units": "write_units",
}  # fmt: skip
LOSING: Final = (Alteration.REPLACED, Alteration.ZEROED, Alteration.REMOVED)
LOSSES: Final = {Alteration.ZEROED: "puts 0 in the place of {} values", Alteration.REMOVED: "removes {} values"}
MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
WHOLE_RATE: Final = 10  # rates from here on are shown without decimals
CENT: Final = Decimal("0.01")
SHOWN_MONEY: Final = Decimal("0.000001")


@dataclass(frozen=True)
class PlanReport:
    """A plan with everything that its display needs. `titles`: the names in the rules file, by names of rules. `prices`
    has the Region, or is None. `seed`: that of a sample. `waiting`: rules whose numbers wait for a backfill.
    `pull_only`: rules whose source records find no targets. `expiring`: the Time to Live attribute of each rule that
    would write it. `links`: findings of a sample. `options`: those of a backfill here. `loads`: bulk loads since the
    last backfill.
    """

    plan: Plan
    since: Since
    titles: Mapping[str, str]
    rate: float
    region: str
    prices: Prices | None
    seed: int | None = None
    waiting: frozenset[str] = frozenset()
    pull_only: Sequence[str] = ()
    expiring: Mapping[str, str] = field(default_factory=dict)
    links: Sequence[LinkFinding] = ()
    options: str = ""
    loads: Sequence[str] = ()

    # ------------------------------------------------------------ for machines
    def as_json(self) -> dict[str, Any]:
        """Return the whole plan, ready for JSON. Figures of a sample are scaled up, except fan-outs and hottest
        keys.
        """
        plan, share = self.plan, self.plan.share
        written = plan.seconds(self.rate)
        sample = {"percent": share.percent, "segments": share.segments, "drawn": len(share.numbers), "seed": self.seed}
        return {
            "rules": {
                name: {
                    "rule": self.titles[name],
                    "is": self.since.word(self.titles[name]),
                    **{
                        key: _round_figure(value)
                        for key, value in vars(figures).items()
                        if not isinstance(value, Mapping)
                    },
                    "alterations": {each.value: _round_figure(count) for each, count in figures.alterations.items()},
                    "reasons": {reason: _round_figure(count) for reason, count in sorted(figures.reasons.items())},
                    **(
                        {"ended": {one: _round_figure(count) for one, count in figures.ended.items()}}
                        if figures.ended
                        else {}
                    ),
                }
                for name, figures in plan.rules.items()
            },
            "gone": sorted(self.since.gone),
            "waiting": sorted(self.waiting),
            "no_listing": sorted(self.pull_only),
            **({"expiring": dict(self.expiring)} if self.expiring else {}),
            **(
                {"links": [{"rule": one.title, "found": one.found, "cure": one.cure} for one in self.links]}
                if self.links
                else {}
            ),
            **({"bulk_loads": list(self.loads)} if self.loads else {}),
            "estimate": share.is_sample,
            "sample": sample if share.is_sample else None,
            "items": _round_figure(plan.items),
            "writes": _round_figure(plan.writes),
            "tables": {
                name: {"read_units": _round_figure(reads), "write_units": _round_figure(writes)}
                for name, reads, writes in self._list_table_units()
            },
            "money": self._compute_money(),
            "time": {"rate": self.rate, "seconds": _round_figure(written), "hottest_key_seconds": plan.hottest_seconds},
            "fan_outs": [
                {"rule": rule, "source": {"table": key.table, "key": show_key(key)}, "targets": _round_figure(count)}
                for (rule, key), count in plan.fan_outs
            ],
            "hottest": [
                {"table": key.table, "partition": show_key(key), "write_units": _round_figure(units)}
                for key, units in plan.hottest
            ],
        }

    def _compute_money(self) -> dict[str, Any] | None:
        if self.prices is None:
            return None
        prices, plan = self.prices.regions[self.region], self.plan
        capacity = plan_capacity(prices, plan.reads, plan.total_write_units, plan.seconds(self.rate))
        return {
            "region": self.region,
            "date": self.prices.date.isoformat(),
            "source": self.prices.source,
            "currency": self.prices.currency,
            "on_demand": str(compute_on_demand_price(prices, plan.reads, plan.total_write_units).quantize(SHOWN_MONEY)),
            "provisioned": {
                "write_units_second": capacity.write_units_second,
                "read_units_second": capacity.read_units_second,
                "hours": capacity.hours,
                "money": str(capacity.money.quantize(SHOWN_MONEY)),
            },
        }

    # ------------------------------------------------------------ for people
    def print(self, console: Console) -> None:
        print_parts(console, self._list_parts())

    def as_markdown(self) -> str:
        """Return the plan as Markdown for a comment of a pull request."""
        parts = [
            format_markdown(part) if isinstance(part, Grid) else escape_markdown(part.strip())
            for part in self._list_parts()
        ]
        return "\n\n".join(["### sync-rules plan", *filter(None, parts)])

    def _list_parts(self) -> Iterator[Grid | str]:
        yield from (one.text for one in self.links)
        yield from (f"{load}: a backfill without --changed checks its items" for load in self.loads)
        if self.plan.rules:
            yield self._make_rule_grid()
            yield from self._list_parked_items()
            yield from self._list_losses()
            yield ""
            yield self._make_unit_grid()
            yield ""
            yield from self._list_costs()
            yield from self._list_hot_keys()
        yield from (*describe_waits(self.waiting, self.options), *self._list_effects(), self._format_last_line())

    def _list_effects(self) -> Iterator[str]:
        """Yield what figures do not show: late sources, items that expire, rules that are gone."""
        for name in self.pull_only:
            yield f"{name}: sources that come after their targets reach them by a backfill or verify --repair alone"
        for name, attribute in self.expiring.items():
            yield f"{name}: {attribute} is the Time to Live: DynamoDB deletes items whose time is past, old ones too"
        for name in sorted(self.since.gone):
            yield (
                f"\nrule {name} was deleted: `sync-rules prune BEFORE RULES --apply` removes its copies, and drops it "
                "from the saved state"
            )

    def _make_rule_grid(self) -> Grid:
        values = self.plan.rules.values()
        some = [each for each in LOSING if any(one.alterations.get(each) for one in values)]
        table = make_grid(["rule", "is"], [*COLUMNS, *(VERBS[each] for each in some)])
        for name, figures in self.plan.rules.items():
            cells = [self._format_figure(getattr(figures, key)) for key in COLUMNS.values()]
            cells += [self._format_figure(figures.alterations.get(each, 0)) for each in some]
            table.add_row(name, self.since.word(self.titles[name]), *cells, style="red" if figures.parked else None)
        return table

    def _list_parked_items(self) -> Iterator[str]:
        for name, figures in self.plan.rules.items():
            why = ", ".join(
                f"{self._format_figure(count)} {reason}" for reason, count in sorted(figures.reasons.items())
            )
            if why:
                yield f"parked by {name}: {why}"

    def _list_losses(self) -> Iterator[str]:
        for name, figures in self.plan.rules.items():
            for each, what in LOSSES.items():
                if count := figures.alterations.get(each):
                    yield f"{name} {what.format(self._format_figure(count))}"
            for relation, count in sorted(figures.ended.items()):
                yield f"{name} ends a relation of {self._format_figure(count)} items: {relation}"

    def _make_unit_grid(self) -> Grid:
        table = make_grid(["table"], ["read units", "write units"])
        for name, reads, writes in self._list_table_units():
            table.add_row(name, self._format_figure(reads), self._format_figure(writes))
        table.add_row("all", self._format_figure(self.plan.reads), self._format_figure(self.plan.total_write_units))
        return table

    def _list_table_units(self) -> Iterator[tuple[str, float, float]]:
        reads, writes = self.plan.read_units, self.plan.write_units
        for name in sorted({*reads, *writes}):
            yield name, reads.get(name, 0), writes.get(name, 0)

    def _list_costs(self) -> Iterator[str]:
        money, estimate = self._compute_money(), "~" if self.plan.share.is_sample else ""
        if money is None:
            yield (
                f"money: the prices of Region {self.region} are unknown; name a price file with --prices "
                f"({DOCS}/plan.md describes it)"
            )
        else:
            capacity, currency = money["provisioned"], money["currency"]
            yield f"on demand: {_format_money(money['on_demand'], estimate)} {currency}"
            yield (
                f"provisioned: {_format_money(capacity['money'], estimate)} {currency} for {capacity['hours']} h of "
                f"{capacity['write_units_second']:,} write and {capacity['read_units_second']:,} read units a second "
                "beyond the present capacity"
            )
            yield f"prices of {self.region}, {money['date']}: {money['source']}"
        digits = f"{self.rate:,.0f}" if self.rate >= WHOLE_RATE else f"{self.rate:g}"
        rate = f"{digits} write units a second" if self.rate else "no rate limit"
        seconds, hottest = self.plan.seconds(self.rate), self.plan.hottest_seconds
        bound = f", which the hottest key takes at {PARTITION_MAX_WRITE_UNITS:,} units a second"
        bound = bound if hottest and seconds == hottest else ""
        time = f"{estimate}{round_duration(seconds)}"
        yield f"time: {time} {'at' if self.rate else 'with'} {rate}{bound}"

    def _list_hot_keys(self) -> Iterator[str]:
        of_sample = " in the sample" if self.plan.share.is_sample else ""
        if self.plan.fan_outs:
            yield f"\nwidest fan-outs{of_sample}:"
        for (rule, source), count in self.plan.fan_outs:
            yield f"  {count:,.0f} targets of {format_key(source)} · rule {rule}"
        if self.plan.hottest:
            yield f"\nhottest partition keys{of_sample}:"
        for key, units in self.plan.hottest:
            yield f"  {units:,.0f} write units on {format_key(key)}"

    def _format_last_line(self) -> str:
        plan = self.plan
        if not plan.rules:
            return "no rule was added or changed"
        over = f"\n{self._format_figure(plan.items)} items scanned"
        if plan.share.is_sample:
            over += (
                f" (estimated from {plan.share.percent:g} % of each table, --sample {plan.share.percent:g}:{self.seed})"
            )
        if not plan.writes:
            return f"{over}, nothing to write"
        copies = sum(figures.to_write for figures in plan.rules.values())
        sums = {each: sum(one.alterations.get(each, 0) for one in plan.rules.values()) for each in Alteration}
        does = describe_alterations(sums, "~" if plan.share.is_sample else "")
        return f"{over}, {self._format_figure(copies)} to write in {self._format_figure(plan.writes)} requests" + (
            f": {does}" if does else ""
        )

    def _format_figure(self, figure: float) -> str:
        """A figure, marked if it is an estimate."""
        return f"{'~' if self.plan.share.is_sample and figure else ''}{figure:,.0f}"


def make_write_row(write: PlannedWrite) -> dict[str, Any]:
    """Return a write, ready for JSON: keys and paths, never a value. Lines with the same `write` are one request."""
    return {
        "write": write.number,
        "rule": write.rule,
        "does": write.does,
        "table": write.key.table,
        "key": show_key(write.key),
        "paths": [show_path(path) for path in write.paths],
        "alterations": {show_path(path): each.value for path, each in write.alterations.items()},
    }


def round_duration(seconds: float) -> str:
    if seconds < MINUTE:
        return f"{max(1, round(seconds))} s" if seconds else "0 s"
    if seconds < HOUR:
        return f"{round(seconds / MINUTE)} min"
    hours, minutes = divmod(round(seconds / MINUTE), MINUTE)
    return f"{hours} h {minutes} min"


def _format_money(money: str, estimate: str) -> str:
    """Money in hundredths, or less than one."""
    amount = Decimal(money)
    return f"{estimate}{amount:,.2f}" if amount >= CENT or not amount else f"less than {CENT}"


def _round_figure(figure: float) -> float:
    """A figure with at most one decimal."""
    rounded = round(figure, 1)
    return int(rounded) if rounded == int(rounded) else rounded
