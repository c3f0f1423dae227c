"""`sync-rules verify --remote`: look at all copies in the account, and show what was found here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from sync_rules.adapters import aws
from sync_rules.adapters.reports import BucketReports
from sync_rules.audit.drift_report import finding_of
from sync_rules.audit.findings import Finding, Tally
from sync_rules.cli.account import Account, left_alone
from sync_rules.jobs.account.figures import tally_of
from sync_rules.jobs.account.protocol import as_here
from sync_rules.jobs.account.verify_unit import Stage, head_of, share_of, unit_of, units_of
from sync_rules.model.errors import UserError
from sync_rules.rules.ruleset import Rules

VERB = "verify"


def verify_in_account(account: Account, rules: Rules, asked: Mapping[str, Any], *, detach: bool) -> Verdict | None:
    """Start it and watch it to its end. What was found, and a word on stderr where that is not all; None when it is
    left to itself. Raises UserError when there are no figures, for what could not be looked at, StoreError.
    """
    name = account.machine.start(VERB, {**asked, **as_here(rules)})
    reports = BucketReports(aws.s3(account.endpoint_url, account.region), account.stack.output("BucketName"))
    place = f"s3://{account.stack.output('BucketName')}/{reports.key(f'{name}/report')}"
    later = f"Its report will be {place}; get it with: {account.copy_command(place, 'report.jsonl')}"
    if detach:
        left_alone(account, name, lambda: account.state.load(head_of(name)), later)
        return None
    print(f"{name} in stack {account.stack.name}; Ctrl-C leaves it running", file=sys.stderr)
    try:
        with Console(stderr=True).status("verifying", spinner="dots") as status:
            ended = account.machine.watch(name, lambda: status.update(_progress(account, name)))
    except KeyboardInterrupt as stopped:
        raise KeyboardInterrupt(f"{stopped}\n{later}") from None
    well = ended.well()
    found = account.state.load(head_of(name))
    if not well and not (found and found["report"]):
        raise UserError(f"{name} did not look at everything: {ended.cause or ended.status}")
    if found is None:
        raise UserError(f"{name} has ended, and nothing is known of it")
    verdict = Verdict(rules, reports, found)
    for line in verdict.notices():
        print(f"sync-rules: {line}", file=sys.stderr)
    return verdict


def _progress(account: Account, name: str) -> str:
    """How many units are done, and how many items they had."""
    found = account.state.load(head_of(name))
    if found is None or found["report"]:
        return name
    units, stage = units_of(found), Stage(**found["stage"])
    seen = account.state.load_many(unit_of(name, stage, unit) for unit in units)
    done = [one for one in seen.values() if one.get("done")]
    items = found["tally"]["items"] + sum(one["tally"]["items"] for one in done)
    return f"step {stage.step + 1} of {len(found['steps'])}: {len(done)} of {len(units)} segments, {items:,} items"


class Verdict:
    """What a verify in the account found: the figures, and the rows of its report. `whole` when it could look at all
    that was asked for.
    """

    def __init__(self, rules: Rules, reports: BucketReports, found: Mapping[str, Any]) -> None:
        self.tally: Tally = tally_of(found["tally"])
        self.names = frozenset(found["names"])
        self.share = share_of(found)
        self.whole = not found["unlooked"]
        self._found = found
        self._rules = rules
        self._reports = reports
        self._report: str = found["report"]

    def findings(self) -> Iterator[Finding]:
        """Each drift. Raises StoreError."""
        for number, line in enumerate(self._reports.lines(self._report), start=1):
            body = json.loads(line)
            if "drift" in body:
                yield finding_of(body, f"{self._reports.key(self._report)}:{number}", self._rules)

    def notices(self) -> Iterator[str]:
        """What the figures do not tell; the report says it in its last line."""
        if broken := self._found["broken"]:
            calls = "1 call died while it repaired" if broken == 1 else f"{broken} calls died while they repaired"
            yield f"figures are at least these: {calls}"
        for name, reason in self._found["unlooked"].items():
            yield f"rule {name} was not looked at as a whole: {reason}"
        if not self.whole:
            yield self._found["cure"]

    def print_report(self) -> None:
        """The report as it is, for machines. Raises StoreError."""
        for line in self._reports.lines(self._report):
            sys.stdout.write(line.decode() + "\n")
