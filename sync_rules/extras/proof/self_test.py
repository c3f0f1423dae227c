"""One self-test: a stack is made, every probe is run on it, something is measured, and the stack is removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from sync_rules.adapters import aws, aws_errors
from sync_rules.extras.proof.latency import Measured, measure
from sync_rules.extras.proof.probe import Finding, UnseenError, Waiting, finding
from sync_rules.extras.proof.probe_table import PROBES
from sync_rules.extras.proof.probes.stream_facts import expire
from sync_rules.extras.proof.proof_report import Report, untested
from sync_rules.extras.proof.proof_stack import (
    STACK_LOOK_SECONDS,
    STACK_SECONDS,
    Clients,
    Journal,
    Site,
    TakenError,
    create,
    remove,
    require_free,
)

LAST: Final = (20, 65, 71, 9)  # they look for something that AWS needs minutes for
Told = Callable[[str], None]
Found = Callable[[Finding], None]


def run(
    journal: Journal,
    clients: Clients,
    *,
    numbers: Collection[int],
    waiting: Waiting[Any],
    tell: Told,
    found: Found,
    stopping: Callable[[], bool],
) -> Report:
    """Run the probes of some facts, and measure if they are all. The stack is removed, whatever happens.

    Raises:
        UserError, StoreError: when the stack cannot be made or removed.
        KeyboardInterrupt: when it was asked to stop, after the stack is removed.
    """
    started, began = datetime.now(UTC), time.monotonic()

    def look(seconds: float) -> None:
        if stopping():
            raise KeyboardInterrupt("interrupted: the stack was removed")
        time.sleep(seconds)

    patient = replace(waiting, sleep=look)
    require_free(journal.stack, clients)
    journal.write()
    with journal.held():
        try:
            tell(f"making stack {journal.stack}")
            site = create(journal, clients, replace(patient, seconds=STACK_SECONDS, pause=STACK_LOOK_SECONDS))
            findings = _findings(replace(site, waiting=patient), numbers, found, look)
            measured = _measured(replace(site, waiting=patient), tell) if set(numbers) >= PROBES.keys() else "not asked"
            look(0)  # it may have been asked to stop since the last look
        except TakenError:
            journal.forget()
            raise
        except BaseException:
            _removed(journal, clients, waiting, tell)
            raise
        _removed(journal, clients, waiting, tell)
    return Report(
        findings=findings,
        measured=measured if isinstance(measured, Measured) else None,
        not_measured=measured if isinstance(measured, str) else "",
        place=aws.place(clients.dynamodb, aws.account_of(clients.dynamodb)),
        stack=journal.stack,
        started=started,
        seconds=time.monotonic() - began,
    )


def _findings(site: Site, numbers: Collection[int], found: Found, look: Callable[[float], None]) -> list[Finding]:
    """The findings by number; facts of which the probes wait longest come last."""
    if 9 in numbers:  # noqa: PLR2004 - the number of a fact
        expire(site)
    made: dict[int, Finding] = {}
    for number in sorted(numbers, key=lambda one: (LAST.index(one) if one in LAST else -1, one)):
        look(0)
        probe = PROBES.get(number)
        made[number] = untested(number) if probe is None else finding(number, lambda probe=probe: probe(site))  # type: ignore[misc]
        if probe is not None:
            found(made[number])
    return [made[number] for number in sorted(made)]


def _measured(site: Site, tell: Told) -> Measured | str:
    """The figures, or the reason why there are none."""
    tell("measuring")
    try:
        return measure(site)
    except (UnseenError, *aws_errors.ERRORS) as error:
        return str(error) if isinstance(error, UnseenError) else aws_errors.reason(error)


def _removed(journal: Journal, clients: Clients, waiting: Waiting[Any], tell: Told) -> None:
    """Remove the stack, then the file that names it."""
    tell(f"removing stack {journal.stack}")
    remove(journal.stack, clients, replace(waiting, seconds=STACK_SECONDS, pause=STACK_LOOK_SECONDS))
    journal.forget()
