"""`sync-rules verify`: compare every copy with its source, twice before a difference is drift; repair on request.

With --from only the drift that an earlier report lists is checked: then exit code 0 means that none of it is left.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sync_rules.adapters import aws
from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.files import require_own
from sync_rules.adapters.meter import limit_store
from sync_rules.adapters.preflight import require_tables
from sync_rules.adapters.s3 import BucketReports
from sync_rules.audit.drift_report import DriftReport, make_header, open_report, parse_finding, report
from sync_rules.audit.verifier import GRACE_SECONDS, Verifier
from sync_rules.audit.verify_tally import DriftFinding, Tally, choose_share
from sync_rules.cli import options as opt
from sync_rules.cli.account import Account, find_account
from sync_rules.cli.show.console import make_console
from sync_rules.cli.show.drift import (
    describe_sample,
    format_finding,
    list_unseen_rules,
    list_waiting_rules,
    summarize,
    tabulate,
)
from sync_rules.cli.show.text import FirstPerRule
from sync_rules.cli.verb import Verb
from sync_rules.jobs.account.account_verify import SEGMENTS_MAX
from sync_rules.jobs.account.protocol import WORKERS_MAX as REMOTE_MAX
from sync_rules.jobs.account.protocol import describe_rules
from sync_rules.jobs.account.verify_unit import VerifyPosition, list_units, name_head, name_unit, parse_share
from sync_rules.jobs.failure_log import FailureLog, require_writable
from sync_rules.jobs.local_files import Files, read_wall_clock_ms
from sync_rules.language.load import load_rules
from sync_rules.model import json_bytes
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.pipeline.requests import NULL_PORTS, World
from sync_rules.rules.key_json import parse_key
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Share, select_rules

WORKERS_MAX: Final = 64
REMOTE_WORKERS: Final = 8
SEGMENTS_OF_WORKER: Final = 4  # in the account, at least

VERB: Final = Verb(
    needs={"--table": ("--key",)},
    excludes={
        "--key": ("--from", "--sample"),
        "--from": ("--sample",),
        "--remote": ("--key", "--table", "--from", "--failures"),
    },
)


def verify(
    rules_file: opt.RulesFile = opt.RULES_FILE,
    *,
    rule: opt.RuleNames = None,
    key: Annotated[
        str | None, typer.Option(metavar="JSON", help='Only the item with this key: \'{"PK": "USER#1", "SK": "..."}\'.')
    ] = None,
    table: opt.KeyTable = None,
    repair: Annotated[bool, typer.Option("--repair", help="Correct drift. Never overwrites a newer value.")] = False,
    from_report: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Only the drift that this report lists: what an earlier verify printed as json or jsonl.",
        ),
    ] = None,
    sample: opt.Sample = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=REMOTE_MAX,
            help=f"Segments scanned in parallel. Default: 1; {REMOTE_WORKERS} with --remote.",
        ),
    ] = None,
    grace_seconds: Annotated[
        float,
        typer.Option(
            min=0, help="Seconds between two checks of a difference. What is right by then was lag, not drift."
        ),
    ] = GRACE_SECONDS,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
    failures: opt.Failures = Files.failures,
    form: opt.Lines = opt.LineForm.TEXT,
    remote: opt.Remote = False,
) -> int:
    """Compare every copy with its source; --repair corrects drift."""
    as_json = form is not opt.LineForm.TEXT
    percent, seed = opt.parse_sample(sample)
    if remote:
        rules = load_rules(rules_file)
        if not select_rules(rules, rule or []):
            raise UserError("no rule keeps a copy that verify could check: all of them only act on changes")
        share, seed = choose_share(percent, seed, 1)
        asked: dict[str, Any] = {"rules": rule or [], "repair": repair, "grace_seconds": grace_seconds, "seed": seed}
        segments = None if workers is None else min(SEGMENTS_MAX, SEGMENTS_OF_WORKER * workers)
        asked |= {"numbers": list(share.numbers) if share.is_sample else None, "segments": segments}
        account = find_account("VerifyMachineArn", endpoint_url, region)
        result = verify_in_account(account, rules, asked | {"workers": workers or REMOTE_WORKERS})
        kept = f"the failures queue ({account.format_failures_command()})"
        return _show_remote(result, rules, seed, kept, repair=repair, as_json=as_json)
    workers = workers or 1
    _require_possible(workers, rules_file, from_report, failures, repair=repair)
    rules = load_rules(rules_file)
    only = select_rules(rules, rule or [])
    item = None if key is None else parse_key(key, table, rules)
    listed = None if from_report is None else open_report(from_report, rules)
    only = only if listed is None else only & listed.names
    if listed is not None and not only:
        raise UserError(f"{from_report} is not a report of these rules: leave out --rule")
    share, seed = choose_share(percent, seed, workers)
    client = aws.dynamodb(endpoint_url, region)
    require_tables(client, replace(rules, rules={name: rules.rules[name] for name in sorted(only)}), streams=False)
    store = limit_store(DynamoStore(client, rules.tables), rules.tables)
    console = make_console(stderr=True)
    with console.status("verifying", spinner="dots") as status:

        def progress(tally: Tally, doing: str) -> None:
            if console.is_terminal:
                status.update(f"{doing} · {tally.items} items")
            elif "looking again in" in doing:  # a log would otherwise stay silent for minutes
                console.print(doing, highlight=False)

        verifier = Verifier(
            rules,
            World(store, NULL_PORTS, FailureLog(failures, read_wall_clock_ms)),
            only,
            repair=repair,
            share=share,
            workers=workers,
            grace_seconds=grace_seconds,
            on_progress=progress,
        )
        findings = _find(verifier, item, listed)
        whole = item is None and listed is None
        head = {**make_header(rules, only, datetime.now(UTC), share), "seed": seed} if as_json else None
        show(findings, verifier.tally, only, head=head, whole=whole, repair=repair)
        if whole and not as_json:
            here = opt.repeat_options(rules_file, endpoint_url, region)
            show_coverage(rules, verifier.tally, only, share, seed, options=here)
    return 1 if verifier.tally.remaining_count else 0


def _require_possible(
    workers: int, rules_file: Path, from_report: Path | None, failures: Path, *, repair: bool
) -> None:
    """Raises UserError for too many workers, and for a failures file that cannot be written or is also read."""
    if workers > WORKERS_MAX:
        raise UserError(f"--workers {workers}: expected at most {WORKERS_MAX} on one machine; --remote takes more")
    require_own(failures, rules_file, from_report)
    if repair or failures != Files.failures:  # without --repair the default file is never written
        require_writable(failures)


def _find(verifier: Verifier, item: ItemKey | None, listed: DriftReport | None) -> Iterator[DriftFinding]:
    if listed is not None:
        return verifier.verify_report(listed.read_differences, listed.compute_age_seconds(datetime.now(UTC)))
    return verifier.sweep() if item is None else verifier.one(item)


# ---------------------------------------------------------------- output
def show(
    findings: Iterable[DriftFinding],
    tally: Tally,
    only: frozenset[str],
    *,
    head: Mapping[str, Any] | None = None,
    whole: bool = True,
    repair: bool = False,
    kept: str = "the failures file",
) -> None:
    """Print each drift when it is found, then the totals: as a JSON report if `head` is given, else for people. Without
    `whole`, the totals leave out rules that had nothing to check. `kept` names the place with the reasons of failed
    repairs.
    """

    def list_checked_rules() -> frozenset[str]:
        return only if whole else frozenset(name for name in only if tally.count_targets(name))

    if head is not None:
        for line in report(findings, tally, head, list_checked_rules, lambda: datetime.now(UTC)):
            print(json.dumps(line), flush=True)
        return
    shown = FirstPerRule("; --format jsonl prints them all")
    for finding in findings:
        shown.add(finding.difference.rule, format_finding(finding))
    shown.end()
    make_console().print(tabulate(tally, list_checked_rules()))
    print(summarize(tally, repair=repair, kept=kept))


def show_coverage(
    rules: Rules, tally: Tally, only: frozenset[str], share: Share, seed: int | None, *, options: str
) -> None:
    """Print what was not checked. `options` are those of a backfill at the same place."""
    for line in (
        *describe_sample(share, seed, rules, only),
        *list_unseen_rules(rules, tally, only, share),
        *list_waiting_rules(rules, tally, options),
    ):
        print(line)


# ---------------------------------------------------------------- in the account
def verify_in_account(account: Account, rules: Rules, asked: Mapping[str, Any]) -> RemoteResult:
    """Start a verify and watch it to its end. Print a notice if the result is incomplete.

    Raises:
        UserError: if there is no result.
        StoreError: if the execution failed.
    """
    name = account.machine.start("verify", {**asked, **describe_rules(rules)})
    reports = BucketReports(aws.s3(account.endpoint_url, account.region), account.stack.output("BucketName"))
    place = f"s3://{account.stack.output('BucketName')}/{reports.key(f'{name}/report')}"
    later = f"Its report will be {place}; get it with: {account.format_copy_command(place, 'report.jsonl')}"
    running = f"{name} in stack {account.stack.name} is running; Ctrl-C stops watching, not the run"
    print(f"{running}\n{later}", file=sys.stderr)
    with make_console(stderr=True).status("verifying", spinner="dots") as status:
        ended = account.machine.watch(name, lambda: status.update(_format_progress(account, name)))
    well = ended.well()
    found = account.state.load(name_head(name))
    if not well and not (found and found["report"]):
        raise UserError(f"{name} did not check everything: {ended.cause or ended.status}")
    if found is None:
        raise UserError(f"{name} ended without a result: run verify --remote again")
    result = RemoteResult(rules, reports, found)
    for line in result.notices():
        print(f"sync-rules: {line}", file=sys.stderr)
    return result


def _format_progress(account: Account, name: str) -> str:
    found = account.state.load(name_head(name))
    if found is None or found["report"]:
        return name
    units, stage = list_units(found), VerifyPosition(**found["stage"])
    seen = account.state.load_many(name_unit(name, stage, unit) for unit in units)
    done = [one for one in seen.values() if one.get("done")]
    items = found["tally"]["items"] + sum(one["tally"]["items"] for one in done)
    return f"step {stage.step + 1} of {len(found['steps'])}: {len(done)} of {len(units)} segments, {items:,} items"


@dataclass(frozen=True)
class RemoteResult:
    """The result of a verify in the account, from its state, and its report."""

    rules: Rules
    reports: BucketReports
    found: Mapping[str, Any]

    @property
    def whole(self) -> bool:
        """True if the verify checked everything that was requested."""
        return not self.found["unlooked"]

    def findings(self) -> Iterator[DriftFinding]:
        """Yield each drift. Raises StoreError."""
        for number, line in enumerate(self.lines(), start=1):
            body = json_bytes.parse_json(line)
            if "drift" in body:
                yield parse_finding(body, f"{self.reports.key(self.found['report'])}:{number}", self.rules)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the report unchanged, for machines. Raises StoreError."""
        return self.reports.lines(self.found["report"])

    def notices(self) -> Iterator[str]:
        """Yield the reasons why the figures are incomplete; the last line of the report has them too."""
        if broken := self.found["broken"]:
            calls = "1 call died while it repaired" if broken == 1 else f"{broken} calls died while they repaired"
            yield f"figures are minimums: {calls}"
        for name, reason in self.found["unlooked"].items():
            yield f"rule {name} was not checked completely: {reason}"
        if not self.whole:
            yield self.found["cure"]


def _show_remote(
    result: RemoteResult, rules: Rules, seed: int | None, kept: str, *, repair: bool, as_json: bool
) -> int:
    """Print the result as that of a local run. Gives the exit code."""
    tally, only = Tally.of(result.found["tally"]), frozenset(result.found["names"])
    if as_json:
        for line in result.lines():
            print(line.decode())
    else:
        show(result.findings(), tally, only, repair=repair, kept=kept)
        show_coverage(rules, tally, only, parse_share(result.found), seed, options=" --remote")
    return 1 if tally.remaining_count or not result.whole else 0
