"""`sync-rules patterns`: the request that serves each access pattern, or why there is none, with the cheapest cure.

With --run it calls them on tables, and with --prove it compares their answers with those that right copies would give.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.preflight import require
from sync_rules.audit.verifier import GRACE_SECONDS
from sync_rules.cli import options as opt
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.text import put_out
from sync_rules.extras.design.commands.show_patterns import as_json as document_of
from sync_rules.extras.design.commands.show_patterns import lines, markdown
from sync_rules.extras.design.commands.show_runs import as_json as run_json
from sync_rules.extras.design.commands.show_runs import lines as run_lines
from sync_rules.extras.design.patterns.hot_keys import hot
from sync_rules.extras.design.patterns.prover import prove
from sync_rules.extras.design.run.pattern_runs import Measured, Trial, loaded
from sync_rules.extras.design.run.sample_calls import parsed
from sync_rules.lab.recompute import recompute
from sync_rules.language.load import RulesFileError, check_rules, load_rules, read_text
from sync_rules.language.problems import errors
from sync_rules.language.yaml_source import places_of
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import unknown
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Scan
from sync_rules.rules.ruleset import Rules

Items = Callable[[str], Iterable[Item]]  # of a table, by its name
CALLS: Final = 10  # keys for each pattern
SAMPLE_MAX_ITEMS: Final = 1_000  # of a table, to take keys from
PAGE_MAX_ITEMS: Final = 1_000

NONE = "{file}: no access patterns. Declare some, such as patterns: {{orders-of-user: {{get: order, by: [user_id]}}}}"


def patterns(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the access-pattern matrix as Markdown.")
    ] = False,
    as_json: opt.Json = False,
    out: opt.Out = None,
    strict_warnings: Annotated[
        bool,
        typer.Option("--strict-warnings", help="Exit with 1 for unread copies, idle indexes and hot keys too."),
    ] = False,
    run: Annotated[
        bool, typer.Option("--run", help="Call the patterns on the tables, and measure them. Reads only.")
    ] = False,
    against_base: Annotated[
        bool,
        typer.Option("--prove", help="With --run: compare each answer with the base data. Scans the tables whole."),
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option("--pattern", metavar="NAME", help="With --run: only this pattern. Repeatable.")
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
    grace_seconds: Annotated[
        float | None,
        typer.Option(
            min=0,
            help=f"With --prove: seconds before a difference is looked at again. What is right by then was lag. "
            f"Default: {GRACE_SECONDS}.",
        ),
    ] = None,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
) -> int:
    """Prove each access pattern: its request, or why there is none. --run calls them."""
    if as_markdown and as_json:
        raise UserError("--json and --markdown exclude each other: give one of them")
    if run:
        if as_markdown or strict_warnings:
            raise UserError(f"{'--markdown' if as_markdown else '--strict-warnings'} does not go with --run")
        if grace_seconds is not None and not against_base:
            raise UserError("--grace-seconds goes with --prove")
        grace = GRACE_SECONDS if grace_seconds is None else grace_seconds
        asked = Asked(tuple(only or ()), parsed(key or []), calls or CALLS, against_base, grace)
        return run_patterns(load_rules(rules_file), asked, aws.dynamodb(endpoint_url, region), out, as_json=as_json)
    needs_run: dict[str, Any] = {"--prove": against_base, "--pattern": only, "--key": key, "--calls": calls}
    needs_run |= {"--grace-seconds": grace_seconds is not None, "--endpoint-url": endpoint_url, "--region": region}
    for option in (name for name, value in needs_run.items() if value):
        raise UserError(f"{option} goes with --run")
    text = read_text(rules_file)
    rules, problems = check_rules(text)
    if rules is None:
        raise RulesFileError(str(rules_file), errors(problems))
    if not rules.patterns:
        put_out("{}" if as_json else NONE.format(file=rules_file), out)
        return 0
    proof = prove(rules)
    hots = hot(rules, proof)
    places = {name: f"{rules_file}:{line}" for name, line in places_of(text, "patterns").items()}
    if as_markdown:
        put_out(markdown(proof), out)
    elif as_json:
        put_out(json.dumps(document_of(proof, hots, places), indent=2, ensure_ascii=False), out)
    else:
        put_out("\n".join(lines(proof, hots, places)), out)
    doubtful = proof.unread or proof.idle or any(one.certain for one in hots)
    return int(bool(proof.unserved) or (strict_warnings and bool(doubtful)))


# ---------------------------------------------------------------- run
@dataclass(frozen=True)
class Asked:
    """The options of a run: names of patterns, none for all; given arguments; calls of each; True to compare, and the
    seconds until a difference is looked at again.
    """

    names: tuple[str, ...]
    given: Mapping[str, str]
    calls: int
    prove: bool
    grace_seconds: float


def run_patterns(rules: Rules, asked: Asked, client: Any, out: Path | None, *, as_json: bool) -> int:
    """Call patterns on tables. Exit code 1 where one is not served, or an answer is not what the base data make."""
    for name in asked.names:
        if name not in rules.patterns:
            raise UserError(unknown("pattern", name, rules.patterns))
    if not rules.patterns:
        raise UserError("the rules file has no patterns")
    require(client, rules, streams=False)
    store = DynamoStore(client, rules.tables)
    with make_console(stderr=True).status("running", spinner="dots"):
        measured = [*_run(rules, asked, client, store, asked.names or rules.patterns)]
        late = [one for one in measured if one.mismatches]
        if late:
            time.sleep(asked.grace_seconds)
            for one, again in zip(late, _run(rules, asked, client, store, [one.name for one in late]), strict=True):
                one.mismatches = [mismatch for mismatch in one.mismatches if mismatch in again.mismatches]
    if as_json:
        put_out(json.dumps({"patterns": [run_json(one) for one in measured]}, indent=2, ensure_ascii=False), out)
    else:
        put_out("\n".join(line for one in measured for line in run_lines(one)), out)
    return int(any(not one.answer.served or one.mismatches for one in measured))


def _run(rules: Rules, asked: Asked, client: Any, store: DynamoStore, names: Iterable[str]) -> Iterator[Measured]:
    """Call these patterns; with --prove, compare them with what the tables hold now."""
    if not asked.prove:
        sample: Items = cache(lambda table: tuple(_scanned(store, table, SAMPLE_MAX_ITEMS)))
        return Trial(rules, client, sample, asked.given, asked.calls).run(names)
    found = loaded(rules, lambda table: _scanned(store, table, None))
    right = recompute(rules, found)
    return Trial(rules, client, _both(right, found), asked.given, asked.calls).run(names, right)


def _both(right: MemoryStore, found: MemoryStore) -> Items:
    """The items as they should be, then those that are there: a mirror too many is under a key of its own."""
    return lambda table: (*right.items(table), *found.items(table))


def _scanned(store: DynamoStore, table: str, most: int | None) -> Iterator[Item]:
    """The items of a table, at most so many."""
    cursor: Item | None = None
    left = most
    while left is None or left > 0:
        page = store.scan(Scan(table, PAGE_MAX_ITEMS if left is None else min(left, PAGE_MAX_ITEMS), cursor))
        yield from page.items
        cursor = page.cursor
        left = None if left is None else left - len(page.items)
        if cursor is None:
            return
