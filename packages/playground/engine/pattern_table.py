"""The access patterns of the rules as a table: requests and prices, or the reason why none serves a pattern, and cures.

The answers are those of `sync-rules patterns`, the prices those of `sync-rules cost`. Sizes and numbers of items are
measured on the tables of the page, as `cost --sample` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from textwrap import dedent
from typing import Any, Final

from sync_rules.extras.design.commands.show_patterns import (
    describe_pattern,
    format_cost,
    format_request,
    list_pattern_lines,
    list_remark_lines,
)
from sync_rules.extras.design.costs.estimate import CostLine, EstimateOptions, estimate
from sync_rules.extras.design.costs.volumes import SizeSampler, replace_volumes
from sync_rules.extras.design.patterns.answers import PatternAnswer
from sync_rules.extras.design.patterns.declarations import find_design
from sync_rules.extras.design.patterns.hot_keys import list_hot_keys
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.jobs.dryrun.money import HOUR_SECONDS, MILLION, MONTH_HOURS
from sync_rules.jobs.dryrun.prices import read_own_prices
from sync_rules.model.values import Item
from sync_rules.rules.ruleset import Rules

REGION: Final = "us-east-1"
RATE: Final = MILLION / (MONTH_HOURS * HOUR_SECONDS)  # calls per second: a million a month


def make_pattern_table(rules: Rules, items: Mapping[str, Iterable[Item]]) -> dict[str, Any]:
    """Return a row for each pattern, the remarks about all, and a line about the prices. `items` are by table."""
    sampler = SizeSampler(rules)
    for name, table in rules.tables.items():
        sampler.add(table, items[name])
    measured, prices = sampler.samples(), read_own_prices()
    sized = replace_volumes(rules, measured)
    proof = prove(sized)
    lines = {
        one.name: one for one in estimate(_set_rates(rules), EstimateOptions(prices.regions[REGION]), measured).patterns
    }
    return {
        "rows": [
            {
                "name": name,
                "finds": describe_pattern(answer),
                "requests": [format_request(step) for step in answer.steps],
                "price": _format_price(answer, lines[name], prices.currency) if answer.is_served else [],
                "problem": [] if answer.is_served else _list_problem_lines(name, answer),
            }
            for name, answer in proof.answers.items()
        ],
        "remarks": [*list_remark_lines(proof, list_hot_keys(sized, proof))],
        "prices": f"for a million calls, on demand in {REGION}, prices of {prices.date.isoformat()}",
    }


def _set_rates(rules: Rules) -> Rules:
    """The rules with a million calls a month of each pattern."""
    design = find_design(rules)
    patterns = {name: replace(one, rate=RATE) for name, one in design.patterns.items()}
    return replace(rules, sections={**rules.sections, "patterns": replace(design, patterns=patterns)})


def _format_price(answer: PatternAnswer, line: CostLine, currency: str) -> list[str]:
    """The units of a call, and the price of a million calls."""
    writes, units = answer.steps[0].writes, (line.load.read_units + line.load.write_units) / RATE
    if not line.known:
        missing = f"write units not known: state entities.{answer.steps[0].entity.name}.size"
        return [missing if writes else format_cost(answer)]
    if answer.steps[0].request == "SearchVectors":
        return [format_cost(answer)]  # the price files have no price of a search
    if not writes:
        return [format_cost(answer), f"{line.money.on_demand:.3g} {currency}"]
    return [f"1 request, {units:g} write unit{'s' * (units != 1)}", f"{line.money.on_demand:.3g} {currency}"]


def _list_problem_lines(name: str, answer: PatternAnswer) -> list[str]:
    """The reason why no request serves a pattern, and the cures."""
    _, *lines = list_pattern_lines(name, answer, f"pattern {name}")
    return dedent("\n".join(lines)).splitlines()
