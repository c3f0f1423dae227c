"""`sync-rules cost`: the price of a month of the access patterns and rules of a file, on demand and provisioned.

It computes from the rates of `patterns`, and from the sizes and numbers of items that the file states or `--sample`
measures. It names each number that is not stated. Without `--sample` it reads no table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table as Grid

from sync_rules import DOCS
from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.files import require_own
from sync_rules.audit.verify_tally import choose_share
from sync_rules.cli import options as opt
from sync_rules.cli.show.console import make_console, make_grid, print_parts
from sync_rules.cli.verb import Verb
from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.measures import MEASURES, list_subjects
from sync_rules.extras.design.costs.bill import TARGET_PERCENT
from sync_rules.extras.design.costs.estimate import CostLine, Estimate, EstimateOptions, estimate
from sync_rules.extras.design.costs.volumes import MeasuredEntity, SizeSampler
from sync_rules.jobs.dryrun.money import MONTH_HOURS
from sync_rules.jobs.dryrun.prices import Prices, read_own_prices, read_prices
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import escape_invisible
from sync_rules.pipeline.requests import Scan
from sync_rules.rules.ruleset import Rules

CENT: Final = Decimal("0.01")
SHOWN_MONEY: Final = Decimal("0.0001")
GIGABYTES: Final = Decimal("0.001")
WIDE: Final = Context(prec=100)
LEAST_SHOWN: Final = 0.001  # of units, and of times
WHOLE_UNITS: Final = 100  # units from here on are shown without decimals
WAYS: Final = {"on demand": "on_demand", "provisioned": "provisioned"}
SHOWN_GROUPS: Final = ("on_demand", "provisioned", "storage", "lambda", "sqs", "cloudwatch")
FLAT: Final = "Lambda, SQS and CloudWatch had one price in"  # begins the note of these Regions
DERIVED: Final = ("derived", "price of storage")
NOT_STATED: Final = "not stated"
UNITS: Final = ("reads/s", "writes/s", "indexes", "transactions")


@dataclass(frozen=True)
class CostReport:
    """An estimate with what its display needs. `percent` is the measured share of the tables, or None if none was
    measured.
    """

    made: Estimate
    prices: Prices
    region: str
    percent: float | None = None

    # ------------------------------------------------------------ for machines
    def as_json(self) -> dict[str, Any]:
        """Return the whole estimate, ready for JSON. Money is text, in the currency of the prices."""
        made = self.made
        return {
            "region": self.region,
            "date": self.prices.date.isoformat(),
            "source": self.prices.source,
            "how": self._list_derived_sources(),
            "currency": self.prices.currency,
            "month_hours": MONTH_HOURS,
            "target": TARGET_PERCENT,
            "sample": self.percent,
            "patterns": {
                one.name: {"requests": one.does, "rate": one.rate, **_make_line(one)} for one in made.patterns
            },
            "rules": {one.name: {"kind": one.does, **_make_line(one)} for one in made.rules},
            "all": _make_line(made.whole),
            "capacity": {
                one.place.place_name: {"read_units": one.read_units, "write_units": one.write_units}
                for one in made.provisions
            },
            "storage": {
                one.table: {
                    "table_gb": str(_round_amount(one.table_gb, GIGABYTES)),
                    "indexes_gb": str(_round_amount(one.indexes_gb, GIGABYTES)),
                    "storage": _format_exact_money(one.storage),
                    "recovery": _format_exact_money(one.recovery),
                }
                for one in made.stored
            },
            "alarms": _format_exact_money(made.alarms),
            "not_stated": list(made.gaps),
            "taken": list(made.notes),
        }

    def _list_derived_sources(self) -> dict[str, str]:
        """The sources of the groups of prices that were derived."""
        how = self.prices.regions[self.region].how
        return {group: self.prices.how(self.region, group) for group in how}

    def _is_derived(self, group: str) -> bool:
        """True for a group whose prices are not quoted for this Region, if one of them is used."""
        how = self._list_derived_sources().get(group, "")
        flat = how.startswith(FLAT) and self.region not in how
        return flat or how.startswith(DERIVED)

    # ------------------------------------------------------------ for people
    def print(self, console: Console) -> None:
        print_parts(
            console, (part if isinstance(part, Grid) else escape_invisible(part) for part in self._list_parts())
        )

    def _list_parts(self) -> Iterator[Grid | str]:
        yield (
            f"prices of {self.region}, {self.prices.date.isoformat()}: {self.prices.currency} for a month of "
            f"{MONTH_HOURS} hours, without free tier and taxes; {self.prices.source}"
        )
        derived = [one.replace("_", " ") for one in SHOWN_GROUPS if self._is_derived(one)]
        if derived:
            yield f"derived, not quoted: {', '.join(derived)}"
        if self.made.patterns:
            yield ""
            yield self._make_pattern_grid()
        if self.made.rules:
            yield ""
            yield self._make_rule_grid()
        yield ""
        yield from self._list_totals()
        for title, texts in (("not stated, and left out:", self.made.gaps), ("taken so:", self.made.notes)):
            if texts:
                yield ""
                yield title
                yield from (f"  {text}" for text in texts)

    def _make_pattern_grid(self) -> Grid:
        table = make_grid(["pattern", "requests"], ["calls/s", *UNITS, *WAYS, "Lambda, SQS"])
        for one in self.made.patterns:
            rate = "" if one.rate is None else _format_number(one.rate)
            table.add_row(one.name, one.does, rate, *_format_units(one), *_format_ways(one))
        return table

    def _make_rule_grid(self) -> Grid:
        table = make_grid(["rule", "kind"], [*UNITS, *WAYS, "Lambda, SQS"])
        for one in self.made.rules:
            table.add_row(one.name, one.does, *_format_units(one), *_format_ways(one))
        return table

    def _list_totals(self) -> Iterator[str]:
        made, money, currency = self.made, self.made.whole.money, self.prices.currency
        of = "" if made.whole.known else " that are known"
        yield (
            f"all units{of}: {_format_money(money.on_demand)} {currency} on demand, "
            f"{_format_money(money.provisioned)} provisioned with autoscaling at {TARGET_PERCENT} %"
        )
        storage = _sum(one.storage for one in made.stored)
        recovery = _sum(one.recovery for one in made.stored)
        known_gb = "" if all(one.known for one in made.stored) else "at least "
        amount = sum((one.table_gb + one.indexes_gb for one in made.stored), Decimal(0))
        yield (
            f"beside these: storage {_format_money(storage)} ({known_gb}{amount:,.2f} GB), point-in-time recovery "
            f"{_format_money(recovery)}, Lambda and SQS {_format_money(money.functions)}, "
            f"alarms {_format_money(made.alarms)}; Lambda reads streams free of charge"
        )
        rest = [storage, recovery, money.functions, made.alarms]
        known = sum((one for one in rest if one is not None), Decimal(0))
        least = "" if made.whole.known and None not in rest else "at least "
        yield f"in all, on demand: {least}{_format_money(money.on_demand + known)} {currency} a month"


# ---------------------------------------------------------------- figures
def _make_line(one: CostLine) -> dict[str, Any]:
    load = one.load
    return {
        "read_units_second": round(load.read_units, 3),
        "write_units_second": round(load.write_units, 3),
        "index_write_units_second": round(load.index_write_units, 3),
        "transaction_write_units_second": round(load.transactions, 3),
        "known": one.known,
        **{name: _format_exact_money(getattr(one.money, name)) for name in (*WAYS.values(), "functions")},
    }


def _format_units(one: CostLine) -> list[str]:
    load = one.load
    return [
        _format_number(units) if units else ""
        for units in (load.read_units, load.write_units, load.index_write_units, load.transactions)
    ]


def _format_ways(one: CostLine) -> list[str]:
    """The money of a line in each way of paying, and that of functions."""
    names = (*WAYS.values(), "functions")
    return [_format_money(getattr(one.money, name)) if one.known else NOT_STATED for name in names]


def _sum(amounts: Iterator[Decimal | None]) -> Decimal | None:
    """The sum; None where one has no price."""
    known = list(amounts)
    return None if None in known else sum((one for one in known if one is not None), Decimal(0))


def _format_exact_money(money: Decimal | None) -> str | None:
    return None if money is None else str(_round_amount(money, SHOWN_MONEY))


def _round_amount(amount: Decimal, step: Decimal) -> Decimal:
    return amount.quantize(step, ROUND_HALF_UP, WIDE)


def _format_money(money: Decimal | None) -> str:
    return "no price" if money is None else f"{_round_amount(money, CENT):,}"


def _format_number(units: float) -> str:
    """A figure to three digits, or whole."""
    if 0 < units < LEAST_SHOWN:
        return f"less than {LEAST_SHOWN}"
    return f"{units:,.0f}" if units >= WHOLE_UNITS else f"{units:.3g}"


PAGE_MAX_ITEMS: Final = 1_000

VERB: Final = Verb()


def cost(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    region: opt.Region = None,
    prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Price file of your own, instead of the package's prices.")
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT[:SEED]",
            help="Measure sizes and numbers of items: read this share of each table, at random.",
        ),
    ] = None,
    endpoint_url: opt.Endpoint = None,
    form: opt.Document = opt.DocumentForm.TEXT,
) -> int:
    """Price the access patterns and rules for a month, by Region."""
    require_own(rules_file, prices)
    share = opt.parse_sample(sample)
    rules = load_rules(rules_file)
    client = aws.dynamodb(endpoint_url, region)
    place = client.meta.region_name
    known = _choose_prices(place) if prices is None else read_prices(prices, place)
    measured = {} if share.percent is None else _measure_tables(rules, DynamoStore(client, rules.tables), share)
    alarms = sum(len(list_subjects(Deployment(rules), measure)) for measure in MEASURES)
    made = estimate(rules, EstimateOptions(known.regions[place], alarms), measured)
    shown = CostReport(made, known, place, share.percent)
    if form is opt.DocumentForm.JSON:
        print(json.dumps(shown.as_json()))
    else:
        shown.print(make_console())
    return int(bool(made.gaps))


def _choose_prices(region: str) -> Prices:
    """The prices of the package. Raises UserError when they are of other Regions."""
    known = read_own_prices()
    if region not in known.regions:
        problem = explain_unknown_name("price for Region", region, known.regions)
        raise UserError(f"{problem} Give your own prices with --prices FILE ({DOCS}/plan.md#money)")
    return known


def _measure_tables(rules: Rules, store: DynamoStore, sample: opt.SampleShare) -> Mapping[str, MeasuredEntity]:
    share, _ = choose_share(*sample, opt.SEGMENTS)
    measuring = SizeSampler(rules)
    with make_console(stderr=True).status("measuring", spinner="dots"):
        for table in {entity.table.name: entity.table for entity in rules.entities.values()}.values():
            for number in share.numbers:
                page = store.scan(Scan(table.name, PAGE_MAX_ITEMS, None, number, share.segments))
                measuring.add(table, page.items)
                while page.cursor is not None:
                    page = store.scan(Scan(table.name, PAGE_MAX_ITEMS, page.cursor, number, share.segments))
                    measuring.add(table, page.items)
    return measuring.samples(share.segments / len(share.numbers))
