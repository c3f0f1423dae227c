"""One self-test: a stack is made, every probe is run on it, something is measured, and the stack is removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from sync_rules.adapters import aws, aws_errors
from sync_rules.extras.proof.latency import Latency, measure
from sync_rules.extras.proof.probe import Patience, ProbeResult, UnseenError, run_probe
from sync_rules.extras.proof.probes import (
    item_facts,
    mapping_facts,
    partiql_facts,
    read_facts,
    service_facts,
    stream_facts,
    write_facts,
)
from sync_rules.extras.proof.proof_report import ProofReport, untested
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

PROBES: Final[Mapping[int, Callable[[ProofSite], str]]] = {
    1: stream_facts.every_change,
    2: stream_facts.silent_no_op,
    3: stream_facts.read_follows_record,
    5: stream_facts.sequence_numbers,
    8: stream_facts.made_anew,
    9: stream_facts.expired,
    10: mapping_facts.event_form,
    12: mapping_facts.partial_response,
    13: mapping_facts.whole_failure,
    14: mapping_facts.order_of_items,
    15: mapping_facts.from_the_oldest,
    16: mapping_facts.given_up,
    17: mapping_facts.filters,
    19: mapping_facts.undetected_loop,
    20: mapping_facts.iterator_age,
    21: read_facts.consistent_reads,
    22: read_facts.tables_as_named,
    23: read_facts.batch_get,
    24: read_facts.pages,
    25: read_facts.segments,
    26: read_facts.index_lag,
    27: read_facts.sparse_index,
    28: write_facts.conditions,
    29: write_facts.refusals,
    31: write_facts.tokens,
    32: write_facts.transactions,
    33: write_facts.conflicts,
    34: write_facts.costs,
    35: write_facts.index_costs,
    37: write_facts.throttles,
    38: partiql_facts.each_alone,
    39: partiql_facts.malformed,
    40: partiql_facts.same_item,
    41: partiql_facts.never_creates,
    42: partiql_facts.comparisons,
    43: partiql_facts.forms,
    44: partiql_facts.statement_costs,
    45: partiql_facts.own_right,
    46: item_facts.sizes,
    47: item_facts.numbers,
    48: item_facts.key_sizes,
    49: item_facts.index_types,
    50: item_facts.depths,
    51: item_facts.sets,
    52: service_facts.every_message,
    53: service_facts.message_limits,
    54: service_facts.visible_again,
    55: service_facts.dead_letters,
    57: service_facts.put_once,
    58: read_facts.one_claim,
    59: service_facts.map_rights,
    60: service_facts.tolerated,
    61: service_facts.input_limit,
    64: service_facts.policy_limit,
    65: mapping_facts.embedded_metric,
    66: service_facts.custom_resource,
    71: stream_facts.bulk_load,
}
LAST: Final = (20, 65, 71, 9)  # they look for something that AWS needs minutes for
Told = Callable[[str], None]
Found = Callable[[ProbeResult], None]


def run(
    journal: Journal,
    clients: Clients,
    *,
    numbers: Collection[int],
    waiting: Patience[Any],
    tell: Told,
    found: Found,
    stopping: Callable[[], bool],
) -> ProofReport:
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
            findings = _run_probes(replace(site, waiting=patient), numbers, found, look)
            measured = _measure(replace(site, waiting=patient), tell) if set(numbers) >= PROBES.keys() else "not asked"
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
        measured=measured if isinstance(measured, Latency) else None,
        not_measured=measured if isinstance(measured, str) else "",
        place=aws.place(clients.dynamodb, aws.account_of(clients.dynamodb)),
        stack=journal.stack,
        started=started,
        seconds=time.monotonic() - began,
    )


def _run_probes(
    site: ProofSite, numbers: Collection[int], found: Found, look: Callable[[float], None]
) -> list[ProbeResult]:
    """Run the probes, those that wait longest last. Gives their results by number."""
    if 9 in numbers:  # noqa: PLR2004 - the number of a fact
        stream_facts.expire(site)
    made: dict[int, ProbeResult] = {}
    for number in sorted(numbers, key=lambda one: (LAST.index(one) if one in LAST else -1, one)):
        look(0)
        probe = PROBES.get(number)
        made[number] = untested(number) if probe is None else run_probe(number, lambda probe=probe: probe(site))  # type: ignore[misc]
        if probe is not None:
            found(made[number])
    return [made[number] for number in sorted(made)]


def _measure(site: ProofSite, tell: Told) -> Latency | str:
    """The figures, or the reason why there are none."""
    tell("measuring")
    try:
        return measure(site)
    except (UnseenError, *aws_errors.ERRORS) as error:
        return str(error) if isinstance(error, UnseenError) else aws_errors.reason(error)


def _remove(journal: Journal, clients: Clients, waiting: Patience[Any], tell: Told) -> None:
    """Remove the stack, then the file that names it."""
    tell(f"removing stack {journal.stack}")
    remove(journal.stack, clients, replace(waiting, seconds=STACK_SECONDS, pause=STACK_LOOK_SECONDS))
    journal.forget()
