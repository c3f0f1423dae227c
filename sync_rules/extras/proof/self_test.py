"""One self-test: a stack is made, every probe is run on it, and the stack is removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from sync_rules.adapters import aws
from sync_rules.extras.proof.probe import Polling, Probe, ProbeResult, run_probe
from sync_rules.extras.proof.probes import (
    item_facts,
    mapping_facts,
    partiql_facts,
    read_facts,
    service_facts,
    stream_facts,
    table_facts,
    write_facts,
)
from sync_rules.extras.proof.proof_report import ProofReport, make_untested
from sync_rules.extras.proof.proof_stack import (
    STACK_LOOK_SECONDS,
    STACK_SECONDS,
    Clients,
    Journal,
    ProofSite,
    TakenError,
    create,
    remove,
    require_free,
)

MODULES: Final = (
    item_facts, mapping_facts, partiql_facts, read_facts, service_facts, stream_facts, table_facts, write_facts,
)  # fmt: skip
PROBES: Final[Mapping[int, Probe]] = {
    one.number: one for module in MODULES for one in vars(module).values() if isinstance(one, Probe)
}
LAST: Final = (20, 65, 71, 9, 63, 73)  # they need minutes of AWS, or must not disturb others
Told = Callable[[str], None]
Found = Callable[[ProbeResult], None]


def run(
    journal: Journal,
    clients: Clients,
    *,
    numbers: Collection[int],
    waiting: Polling[Any],
    tell: Told,
    found: Found,
    stopping: Callable[[], bool],
) -> ProofReport:
    """Run the probes of some facts. The stack is removed, whatever happens.

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
            findings = _run_probes(replace(site, waiting=patient), numbers, found, look)
            look(0)  # it may have been asked to stop since the last look
        except TakenError:
            journal.forget()
            raise
        except BaseException:
            _remove(journal, clients, waiting, tell)
            raise
        _remove(journal, clients, waiting, tell)
    return ProofReport(
        findings=findings,
        place=aws.place(clients.dynamodb),  # without the account: people attach the report
        stack=journal.stack,
        started=started,
        seconds=time.monotonic() - began,
    )


def _run_probes(
    site: ProofSite, numbers: Collection[int], found: Found, look: Callable[[float], None]
) -> list[ProbeResult]:
    """Run the probes, those that wait longest last. Gives their results by number."""
    for number, begin in ((9, stream_facts.expire), (63, table_facts.begin_export)):
        if number in numbers:
            begin(site)
    made: dict[int, ProbeResult] = {}
    for number in sorted(numbers, key=lambda one: (LAST.index(one) if one in LAST else -1, one)):
        look(0)
        probe = PROBES.get(number)
        made[number] = make_untested(number) if probe is None else run_probe(number, lambda probe=probe: probe(site))  # type: ignore[misc]
        if probe is not None:
            found(made[number])
    return [made[number] for number in sorted(made)]


def _remove(journal: Journal, clients: Clients, waiting: Polling[Any], tell: Told) -> None:
    """Remove the stack, then the file that names it."""
    tell(f"removing stack {journal.stack}")
    remove(journal.stack, clients, replace(waiting, seconds=STACK_SECONDS, pause=STACK_LOOK_SECONDS))
    journal.forget()
