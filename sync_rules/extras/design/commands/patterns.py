"""`sync-rules patterns`: the request that serves each access pattern, or why there is none, with the cheapest cure.

With --run it calls them on tables, and measures them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from statistics import mean
from typing import Annotated, Any, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.preflight import require_tables
from sync_rules.cli import options as opt
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.text import format_count, put_out
from sync_rules.cli.verb import Verb
from sync_rules.extras.design.commands.show_patterns import format_markdown, list_proof_lines
from sync_rules.extras.design.commands.show_patterns import make_document as document_of
from sync_rules.extras.design.patterns.declarations import find_design
from sync_rules.extras.design.patterns.hot_keys import list_hot_keys
from sync_rules.extras.design.patterns.keepers import list_keepers
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.extras.design.run.pattern_runs import PatternRun, PatternTrial
from sync_rules.extras.design.run.sample_calls import parse_arguments
from sync_rules.language.load import RulesFileError, check_rules, load_rules, read_text
from sync_rules.language.problems import Problems, list_errors
from sync_rules.language.yaml_source import read_document
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Scan
from sync_rules.rules.ruleset import Rules

CALLS: Final = 10  # keys for each pattern
SAMPLE_MAX_ITEMS: Final = 1_000  # of a table, to take keys from

NONE = "{file}: no access patterns. Declare some, such as patterns: {{orders-of-user: {{get: order, by: [user_id]}}}}"

OF_RUN: Final = ("--key", "--calls", "--endpoint-url", "--region")

VERB: Final = Verb(needs=dict.fromkeys(OF_RUN, ("--run",)), excludes={"--run": ("--strict-warnings",)})


def patterns(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    form: opt.Page = opt.PageForm.TEXT,
    out: opt.Out = None,
    strict_warnings: Annotated[
        bool, typer.Option("--strict-warnings", help="Exit with 1 for unread copies, idle indexes and hot keys too.")
    ] = False,
    run: Annotated[
        bool, typer.Option("--run", help="Call the patterns on the tables, and measure them. Reads only.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--pattern", metavar="NAME", help="Only this pattern, and what keeps each attribute. Repeatable."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="With --run: an argument, such as user_id=7. Repeatable. Default: from items."
        ),
    ] = None,
    calls: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help=f"With --run: keys to call each pattern with. Default: {CALLS}."),
    ] = None,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
) -> int:
    """Prove each access pattern: its request, or why there is none. --run calls them."""
    if run:
        if form is opt.PageForm.MARKDOWN:
            raise UserError("--format markdown does not go with --run")
        given = parse_arguments(key or [])
        client = aws.dynamodb(endpoint_url, region)
        measured = run_patterns(load_rules(rules_file), client, only or (), given, calls or CALLS)
        if form is opt.PageForm.JSON:
            put_out(json.dumps({"patterns": [*map(describe_run, measured)]}, indent=2, ensure_ascii=False), out)
        else:
            put_out("\n".join(map(format_run, measured)), out)
        return int(not all(one.answer.is_served for one in measured))
    text = read_text(rules_file)
    rules, problems = check_rules(text)
    if rules is None:
        raise RulesFileError(str(rules_file), list_errors(problems))
    _require_patterns(only or (), rules)
    if not find_design(rules).patterns:
        put_out("{}" if form is opt.PageForm.JSON else NONE.format(file=rules_file), out)
        return 0
    proof = prove(rules)
    hots = list_hot_keys(rules, proof)
    places = {name: f"{rules_file}:{line}" for name, line in find_pattern_lines(text).items()}
    if only:
        proof, hots = replace(proof, answers={name: proof.answers[name] for name in only}, unread=(), idle=()), ()
    kept = {name: list_keepers(rules, proof.answers[name]) for name in only or ()}
    match form:
        case opt.PageForm.MARKDOWN:
            put_out(format_markdown(proof), out)
        case opt.PageForm.JSON:
            put_out(json.dumps(document_of(proof, hots, places, kept), indent=2, ensure_ascii=False), out)
        case opt.PageForm.TEXT:
            put_out("\n".join(list_proof_lines(proof, hots, places, kept)), out)
    doubtful = proof.unread or proof.idle or any(one.certain for one in hots)
    return int(bool(proof.unserved_answers) or (strict_warnings and bool(doubtful)))


def find_pattern_lines(text: str) -> dict[str, int]:
    """Return the line number, from 1, of each pattern that a rules file declares."""
    document = read_document(text, Problems())
    assert document is not None, "its rules were compiled"
    return {name: document.key("patterns", name).line for name in document.names("patterns")}


def _require_patterns(names: Iterable[str], rules: Rules) -> None:
    """Raises UserError for a name that is no pattern's."""
    for name in names:
        if name not in find_design(rules).patterns:
            raise UserError(explain_unknown_name("pattern", name, find_design(rules).patterns))


# ---------------------------------------------------------------- run
def run_patterns(
    rules: Rules, client: Any, names: Sequence[str], given: Mapping[str, str], calls: int
) -> list[PatternRun]:
    """Call patterns on tables, all if `names` is empty, with at most `calls` keys each. Raises UserError for a name
    that no pattern has.
    """
    _require_patterns(names, rules)
    if not find_design(rules).patterns:
        raise UserError("the rules file has no patterns")
    require_tables(client, rules, streams=False)
    store = DynamoStore(client, rules.tables)
    sample = cache(lambda table: tuple(islice(_scan_items(store, table), SAMPLE_MAX_ITEMS)))
    with make_console(stderr=True).status("running", spinner="dots"):
        return [*PatternTrial(rules, client, sample, given, calls).run(names or find_design(rules).patterns)]


def _scan_items(store: DynamoStore, table: str) -> Iterator[Item]:
    cursor: Item | None = None
    while True:
        page = store.scan(Scan(table, SAMPLE_MAX_ITEMS, cursor))
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def format_run(measured: PatternRun) -> str:
    """Return a pattern's measured means and their estimates as a line."""
    if not measured.calls:
        return f"{measured.name}: not run: {measured.left}"
    estimate = measured.answer.units
    units = "not returned by the service" if measured.mean_units is None else f"{measured.mean_units:g}"
    parts = [
        format_count(measured.calls, "call"),
        _format_amount(mean(measured.rows), "row"),
        f"{_format_amount(mean(measured.requests), 'request')} (proved: {measured.answer.requests})",
        f"read units {units} (estimate: {'not stated' if estimate is None else f'{estimate:g}'})",
        f"p50 {measured.p50 or 0:.1f} ms",
    ]
    return f"{measured.name}: {', '.join(parts)}"


def describe_run(measured: PatternRun) -> dict[str, Any]:
    """Return a pattern's measured means, ready for JSON."""
    called = bool(measured.calls)
    return {
        "pattern": measured.name,
        "served": measured.answer.is_served,
        "left": measured.left or None,
        "calls": measured.calls,
        "rows": mean(measured.rows) if called else None,
        "requests": mean(measured.requests) if called else None,
        "proved_requests": measured.answer.requests,
        "read_units": measured.mean_units,
        "estimated_read_units": measured.answer.units,
        "p50_ms": measured.p50,
    }


def _format_amount(mean_number: float, one: str) -> str:
    return f"{mean_number:g} {one}{'s' * (mean_number != 1)}"
