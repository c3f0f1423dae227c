"""`sync-rules verify --remote`: look at all copies in the account, and show what was found here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from sync_rules import aws
from sync_rules.commands.inaccount import Account
from sync_rules.errors import UserError
from sync_rules.findings import Finding, Share, Tally
from sync_rules.fingerprints import of_each
from sync_rules.remote.figures import tally_of
from sync_rules.remote.reports import BucketReports
from sync_rules.remote.verify import head_of, unit_of, units_of
from sync_rules.reports.drift_report import finding_of
from sync_rules.rules import Rules

VERB = "verify"


def verify_in_account(account: Account, rules: Rules, asked: Mapping[str, Any], *, detach: bool) -> Verdict | None:
    """Start it and watch it to its end. What was found; None when it is left to itself. Raises UserError when not all
    of it could be looked at, StoreError.
    """
    name = account.machine.start(VERB, {**asked, "prints": of_each(rules)})
    reports = BucketReports(aws.s3(account.endpoint_url, account.region), account.stack.output("BucketName"))
    if detach:
        where = reports.key(f"{name}/report")
        print(f"started {name}\nIts report will be s3://{account.stack.output('BucketName')}/{where}")
        return None
    with Console(stderr=True).status("verifying", spinner="dots") as status:
        ended = account.machine.watch(name, lambda: status.update(_progress(account, name)))
    if not ended.well():
        raise UserError(f"{name} did not look at everything: {ended.cause or ended.status}")
    found = account.state.load(head_of(name))
    if found is None:
        raise UserError(f"{name} has ended, and nothing is known of it")
    return Verdict(rules, reports, found)


def _progress(account: Account, name: str) -> str:
    """How many units are done, and how many items they had."""
    found = account.state.load(head_of(name))
    if found is None or found["report"]:
        return name
    units = units_of(found)
    seen = account.state.load_many(unit_of(name, unit) for unit in units)
    done = [one for one in seen.values() if one["done"] and one["stage"] == found["stage"]]
    items = found["tally"]["items"] + sum(one["tally"]["items"] for one in done)
    step = found["stage"]["step"] + 1
    return f"step {step} of {len(found['steps'])}: {len(done)} of {len(units)} segments, {items:,} items"


class Verdict:
    """What a verify in the account found: the figures, and the rows of its report."""

    def __init__(self, rules: Rules, reports: BucketReports, found: Mapping[str, Any]) -> None:
        self.tally: Tally = tally_of(found["tally"])
        self.names = frozenset(found["names"])
        self.share = Share(found["share"]["segments"], tuple(found["share"]["numbers"]))
        self._rules = rules
        self._reports = reports
        self._report: str = found["report"]

    def findings(self) -> Iterator[Finding]:
        """Each drift. Raises StoreError."""
        for number, line in enumerate(self._reports.lines(self._report), start=1):
            body = json.loads(line)
            if "drift" in body:
                yield finding_of(body, f"{self._reports.key(self._report)}:{number}", self._rules)

    def print_report(self) -> None:
        """The report as it is, for machines. Raises StoreError."""
        for line in self._reports.lines(self._report):
            sys.stdout.write(line.decode() + "\n")
