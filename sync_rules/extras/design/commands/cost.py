"""`sync-rules cost`: the price of a month of the access patterns and rules of a file, on demand and provisioned.

It computes from the rates of `patterns`, and from the sizes and numbers of items that the file states or `--sample`
measures. It names each number that is not stated. Without `--sample` it reads no table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from sync_rules import DOCS
from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.files import require_own
from sync_rules.audit.verify_tally import choose_share
from sync_rules.cli import options as opt
from sync_rules.cli.show.console import make_console
from sync_rules.cli.verb import Verb
from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.measures import MEASURES, list_subjects
from sync_rules.extras.design.commands.show_cost import CostReport
from sync_rules.extras.design.costs.estimate import EstimateOptions, estimate
from sync_rules.extras.design.costs.volumes import MeasuredEntity, SizeSampler
from sync_rules.jobs.dryrun.prices import Prices, own_prices, read_prices
from sync_rules.language.load import load_rules
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.pipeline.requests import Scan
from sync_rules.rules.ruleset import Rules

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
    share = opt.read_sample(sample)
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
    known = own_prices()
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
