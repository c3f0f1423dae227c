"""`sync-rules redrive --remote`: put through again, in the account, what failed there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from rich.console import Console

from sync_rules.cli.account import Account, left_alone
from sync_rules.jobs.account.protocol import as_here
from sync_rules.jobs.account.redrive import UNITS, told, total
from sync_rules.jobs.redrive.atwork import Tally
from sync_rules.rules.ruleset import Rules

VERB = "redrive"


def redrive_in_account(
    account: Account,
    rules: Rules,
    titles: frozenset[str] | None,
    *,
    detach: bool,
    as_json: bool,
    summary: Callable[[Tally, str], str],
) -> int:
    """Start it and watch it to its end; then what became of the entries. Exit codes as the command's."""
    name = account.machine.start(VERB, {"rules": sorted(titles or ()), **as_here(rules)})
    if detach:
        return left_alone(account, name, lambda: told(account.state, name, UNITS))
    console = Console(stderr=True)
    with console.status("redriving", spinner="dots") as status:

        def look() -> None:
            tally = total(told(account.state, name, UNITS).values())
            status.update(f"{name}: {tally.done:,} put through, {tally.written:,} written")

        ended = account.machine.watch(name, look)
    done = ended.well()
    tally = total(told(account.state, name, UNITS).values())
    queue = account.stack.output("FailuresQueueUrl")
    print(json.dumps(asdict(tally)) if as_json else summary(tally, queue))
    if not done:
        console.print(ended.cause or ended.status, markup=False, highlight=False, soft_wrap=True)
    elif (tally.again or tally.unreadable) and not as_json:
        letters, bucket = account.stack.output("FanoutDeadLettersUrl"), account.stack.output("BucketName")
        where = account.failures_command("--queue", letters, "--bucket", f"s3://{bucket}/aws/")
        print(f"What stays, and why: {where}")
    return 1 if tally.again or tally.unreadable or not done else 0
