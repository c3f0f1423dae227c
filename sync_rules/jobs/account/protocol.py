"""The questions that the state machine (infra/machine.asl.json) asks of its function, and how they are answered.

Invariant: what is done is known from documents in the state, and never from what the machine passes on. The machine
asks to begin; then, for each unit, to work on it until it is done; then to end, which may start another round. Any
question may come twice, also while the first is being answered, and any worker may die.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from sync_rules.adapters.state import SharedState, State
from sync_rules.jobs.backfill.throttle import WORKER_GONE
from sync_rules.model.errors import UserError
from sync_rules.rules import fingerprints
from sync_rules.rules.ruleset import Rules

TIME_RESERVED_MS: Final = 30_000  # of a call: for the writes in hand, the checkpoint and the answer
TIME_LEAST_MS: Final = 60_000  # a call that has less than this from the start would never finish anything
UNITS_MAX: Final = 1_000  # of a round: a state has at most 256 KiB, and `--remote` reads a document of each
WORKERS_MAX: Final = 1_000  # as many functions as an account may run at a time, unless it asked for more
LEFT_SHOWN_MAX: Final = 20
REFUSED: Final = "Refused"  # the error of a request that cannot begin: its cause is for the user
LEFT: Final = "NotAllDone"  # the error of a job that ended with something left

Body = Mapping[str, Any]  # JSON-ready


@dataclass(frozen=True)
class Answer:
    """The answer to "begin" and "end". With `more`, process the `units`, at most `workers` at a time. Otherwise the job
    is over. `error` is empty if it succeeded, and REFUSED for a user's mistake. `run` is passed to each unit and to
    the end.
    """

    more: bool = False
    units: Sequence[str] = ()
    workers: int = 1
    run: Body = field(default_factory=dict)
    error: str = ""
    cause: str = ""

    def body(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "units": list(self.units), "run": dict(self.run)}


class Work(Protocol):
    """A job that the state machine processes in units."""

    @property
    def rules(self) -> Rules:
        """The rules of the deployed function."""

    @property
    def remaining_ms(self) -> Callable[[], int]:
        """The milliseconds that remain to the current call."""

    def begin(self, asked: Body, execution: str) -> Answer:
        """Begin a job. Raises StoreError, and UserError if the request cannot be met."""

    def unit(self, unit: str, run: Body) -> bool:
        """Process a unit while time remains. Return True if it is done. After StoreError or UserError the machine tries
        the unit again, and finally reports it as left.
        """

    def end(self, run: Body) -> Answer:
        """Return what follows, after every unit has stopped. Raises StoreError and UserError."""


def answer(event: Body, work: Work) -> dict[str, Any]:
    """Answer one question of the state machine. A user's mistake at the beginning becomes an answer; other errors of
    `work` are raised.
    """
    match event["do"]:
        case "begin":
            try:
                require_same_rules(event["asked"], work.rules)
                return work.begin(event["asked"], event["execution"]).body()
            except UserError as error:
                return Answer(error=REFUSED, cause=str(error)).body()
        case "unit":
            if (remaining_ms := work.remaining_ms()) < TIME_LEAST_MS:
                least = f"and needs {TIME_LEAST_MS} at least: raise the function's timeout"
                raise UserError(f"a call has {remaining_ms} ms, {least}")
            return {"done": work.unit(event["unit"], event["run"])}
        case "end":
            return work.end(event["run"]).body()
    raise UserError(f"expected begin, unit or end, found {event['do']!r}")


def require_units(units: Sequence[str]) -> Sequence[str]:
    """Return the units. Raises UserError if they are more than UNITS_MAX."""
    if len(units) > UNITS_MAX:
        raise UserError(
            f"that makes {len(units)} units of work, of at most {UNITS_MAX}: give fewer rules with --rule, a backfill "
            "also a lower --rate, a verify fewer --workers"
        )
    return units


# ---------------------------------------------------------------- the rules that are deployed
def select_prints(rules: Rules, names: frozenset[str]) -> dict[str, str]:
    """Return the fingerprints of these rules, by their names in the rules file."""
    titles = {rules.rules[name].title for name in names}
    return {title: digest for title, digest in fingerprints.compute_rule_fingerprints(rules).items() if title in titles}


def describe_rules(rules: Rules) -> dict[str, Any]:
    """Return the fingerprints of all rules and the names of their tables, which each request sends."""
    tables = {name: table.physical_name for name, table in rules.tables.items()}
    return {"prints": fingerprints.compute_rule_fingerprints(rules), "tables": tables}


def require_same_rules(body: Body, rules: Rules) -> None:
    """Raise UserError with each difference if the rules or tables of a request are not the deployed rules or tables."""
    asked, deployed = body["prints"], fingerprints.compute_rule_fingerprints(rules)
    lines = [
        f"\n  {title}: {'differs from the deployed rule' if title in deployed else 'is not deployed'}"
        for title, digest in sorted(asked.items())
        if deployed.get(title) != digest
    ]
    lines += [f"\n  {title}: is deployed, and is not in your rules file" for title in sorted(deployed.keys() - asked)]
    if lines:
        message = "the rules that are deployed are not those of your rules file: deploy first (sam build, sam deploy)."
        raise UserError(f"{message}{''.join(lines)}")
    lines = [
        f"\n  table {name}: the stack has {rules.tables[name].physical_name}, your rules file {physical}"
        for name, physical in sorted(body.get("tables", {}).items())
        if name in rules.tables and rules.tables[name].physical_name != physical
    ]
    if lines:
        message = "this stack uses other tables: set the environment variables of their names to the stack's values"
        raise UserError(f"{message}, or name another stack with SYNC_RULES_STACK.{''.join(lines)}")


# ---------------------------------------------------------------- the documents of a job
def begin_once(state: State, name: str, make: Callable[[], Body]) -> Body:
    """Return the document that begins a job. The first caller makes and saves it; the machine repeats the question if
    it lost an answer. Raises StoreError, and what `make` raises.
    """
    found = state.load(name)
    if found is None:
        found = dict(make())
        state.save(name, found)
    return found


def load_units(state: SharedState, names: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the documents of units, given each document's name. Units without a document are left out. Raises
    StoreError.
    """
    found = state.load_many(names.values())
    return {unit: found[name] for unit, name in names.items() if name in found}


def is_done(unit: Body | None) -> bool:
    """Return True if the document of a unit marks the unit as done."""
    return bool(unit and unit.get("done"))


def list_unfinished_units(units: Iterable[str], found: Mapping[str, Body]) -> list[tuple[str, str]]:
    """Return the units that are unfinished or finished in part, each with the reason."""
    bodies = [(unit, found.get(unit, {})) for unit in units]
    return [
        (unit, body.get("reason") or WORKER_GONE) for unit, body in bodies if not is_done(body) or body.get("reason")
    ]


def report_leftovers(lines: Sequence[tuple[str, str]], cure: str) -> Answer:
    """Return the error of a finished job with unfinished units. `lines`: each unit with its reason."""
    shown = "".join(f"\n  {unit}: {reason}" for unit, reason in lines[:LEFT_SHOWN_MAX])
    more = f"\n  and {len(lines) - LEFT_SHOWN_MAX} more" if len(lines) > LEFT_SHOWN_MAX else ""
    return Answer(error=LEFT, cause=f"{len(lines)} not done. {cure}{shown}{more}")
