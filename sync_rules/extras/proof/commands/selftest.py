"""`sync-rules selftest`: prove in your account what sync-rules relies on from AWS.

It shows its cost and asks, makes a stack of its own, tests each fact of docs/proof/aws-assumptions.md that minutes can
show, writes a report as JSON, and removes everything. Your tables are not touched.
docs/proof/selftest.md has the rights that it needs.

The name of the stack is in a file `.sync-rules-selftest-*.json` of this folder before the stack is made, until it is
gone. After a kill, --clean removes what is left: stacks that such files name, and all others in the Region that have
the name and the tag of a self-test.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sync_rules import DOCS
from sync_rules.adapters import aws
from sync_rules.adapters.files import require_place, write_whole
from sync_rules.cli import options as opt
from sync_rules.cli.confirmation import confirm
from sync_rules.cli.signals import stop_signals
from sync_rules.cli.verb import Verb
from sync_rules.extras.proof import cost_estimate
from sync_rules.extras.proof.probe import (
    ASSUMPTIONS,
    WAIT_SECONDS,
    Polling,
    Probe,
    ProbeResult,
    ProbeVerdict,
    run_probe,
)
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
from sync_rules.extras.proof.proof_report import ProofReport, describe_consequence, make_untested
from sync_rules.extras.proof.proof_stack import (
    STACK_LOOK_SECONDS,
    STACK_SECONDS,
    Clients,
    Journal,
    ProofSite,
    TakenError,
    create,
    list_journals,
    list_stacks,
    make_journal,
    remove,
    require_free,
)
from sync_rules.model.errors import UserError

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
    """Run the probes of some facts. Remove the stack in any case.

    Raises:
        UserError, StoreError: if the stack cannot be made or removed.
        KeyboardInterrupt: if the user stopped it, after the stack is removed.
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
        place=aws.format_place(clients.dynamodb),  # without the account: people attach the report
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


HERE: Final = Path()
SIGNS: Final = {
    ProbeVerdict.HOLDS: "✓",
    ProbeVerdict.FALSE: "✗",
    ProbeVerdict.NOT_TESTED: "○",
    ProbeVerdict.FAILED: "!",
}

VERB: Final = Verb()


def selftest(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Only remove what earlier runs left.")] = False,
    only: Annotated[
        list[int] | None,
        typer.Option(metavar="NUMBER", help=f"Only this fact of {DOCS}/proof/aws-assumptions.md. Repeatable."),
    ] = None,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="Longest wait for something that has to come.")
    ] = WAIT_SECONDS,
    out: Annotated[Path, typer.Option("--out", metavar="NAME", help="Report to write: NAME.json.")] = Path(
        "sync-rules-selftest"
    ),
    form: opt.Document = opt.DocumentForm.TEXT,
    endpoint_url: opt.Endpoint = None,
    region: opt.Region = None,
) -> int:
    """Prove in your account what sync-rules relies on from AWS. Makes and removes a stack of its own."""
    as_json = form is opt.DocumentForm.JSON
    clients = Clients(endpoint_url, region)
    if clean:
        return _clean(clients, yes=yes)
    numbers = _select_numbers(only)
    document = out.with_name(f"{out.name}.json")
    require_place(document)
    _show_cost(clients)
    if not confirm("Begin?", yes=yes):
        return 0
    journal = make_journal(HERE, clients)
    with stop_signals() as stopping:
        report = run(
            journal,
            clients,
            numbers=numbers,
            waiting=Polling(wait),
            tell=_tell,
            found=(lambda finding: _tell(_format_line(finding))) if as_json else _show,
            stopping=stopping,
        )
    write_whole(document, json.dumps(report.document(), indent=2) + "\n")
    if as_json:
        print(json.dumps(report.document()))
    else:
        _show_end(report, document)
    return 0 if report.well else 1


def _select_numbers(only: list[int] | None) -> frozenset[int]:
    """The facts that were asked for. Raises UserError for a number that none has."""
    for number in only or ():
        if number not in ASSUMPTIONS:
            raise UserError(
                f"--only {number}: expected a number from 1 to {max(ASSUMPTIONS)} ({DOCS}/proof/aws-assumptions.md)"
            )
    return frozenset(only or ASSUMPTIONS)


# ---------------------------------------------------------------- asked
def _show_cost(clients: Clients) -> None:
    """The estimate, and the place where it is spent."""
    _tell(
        f"A stack of its own at {aws.format_place(clients.dynamodb, aws.find_account(clients.dynamodb))}, for minutes."
    )
    for line in cost_estimate.list_lines():
        _tell(f"  {line}")
    _tell(f"Estimated at {cost_estimate.compute_total():.2f} USD at most.")


# ---------------------------------------------------------------- removed
def _clean(clients: Clients, *, yes: bool) -> int:
    noted = [journal for journal in list_journals(HERE) if not journal.is_in_use()]
    running = {journal.stack for journal in list_journals(HERE)} - {journal.stack for journal in noted}
    found = [name for name in list_stacks(clients) if name not in running]
    names = sorted({*found, *(journal.stack for journal in noted)})
    if not names:
        _tell("nothing is left")
        return 0
    for name in names:
        _tell(f"{name}: {'left in the account' if name in found else 'noted by an earlier run'}")
    if not confirm("Remove them? One of them may be of a self-test that runs elsewhere.", yes=yes):
        return 0
    waiting: Polling[object] = Polling(STACK_SECONDS, STACK_LOOK_SECONDS)
    for journal in noted:
        _remove_journal(journal, waiting)
    for name in set(found) - {journal.stack for journal in noted}:
        remove(name, clients, waiting)
    _tell(f"{len(names)} removed")
    return 0


def _remove_journal(journal: Journal, waiting: Polling[object]) -> None:
    remove(journal.stack, Clients(journal.endpoint_url, journal.region), waiting)
    journal.forget()


# ---------------------------------------------------------------- shown
def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _format_line(finding: ProbeResult) -> str:
    return f"{SIGNS[finding.verdict]} {finding.number:>2} {finding.verdict}: {finding.seen} ({finding.seconds:.1f} s)"


def _show(finding: ProbeResult) -> None:
    print(_format_line(finding), flush=True)
    if finding.verdict is ProbeVerdict.FALSE:
        print(f"     {ASSUMPTIONS[finding.number].fact}")
        for line in describe_consequence(finding):
            print(f"     {line}", flush=True)


def _show_end(report: ProofReport, document: Path) -> None:
    print(f"{report.summary()} ({len(PROBES)} facts have a probe)")
    print(f"written: {document}")
