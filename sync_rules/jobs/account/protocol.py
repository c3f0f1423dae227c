"""What the state machine (infra/machine.asl.json) asks of its function, and how it is answered.

Law: the machine knows nothing but this. It asks to begin; then, for each unit, to work on it until it is done; then to
end, which may say that there is more. Any question may come twice, also while the first is being answered, and any
worker may die: so what is done is known from documents that outlive both, and never from what the machine was told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from sync_rules.model.errors import UserError
from sync_rules.rules import fingerprints
from sync_rules.rules.ruleset import Rules

TIME_RESERVED_MS: Final = 30_000  # of a call: for the writes in hand, the checkpoint and the answer
CALL_MAX_MS: Final = 900_000  # Lambda's: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
TIME_LEAST_MS: Final = 60_000  # a call that has less than this from the start would come to nothing, for ever
UNITS_MAX: Final = 1_000  # of a round: a state has at most 256 KiB, and whoever watches reads a document of each
WORKERS_MAX: Final = 1_000  # as many functions as an account may run at a time, unless it asked for more
LEFT_SHOWN_MAX: Final = 20
REFUSED: Final = "Refused"  # the error of what cannot be begun: its cause is for the user, and the machine ends well
LEFT: Final = "NotAllDone"  # the error of what came to its end with something left

Body = Mapping[str, Any]  # JSON-ready


@dataclass(frozen=True)
class Answer:
    """To "begin" and "end": the units to work on next, `workers` of them at a time, if there is `more`; else it is
    over, well if `error` is empty, or by the user's mistake if it is REFUSED. `run` is given back with each unit and at
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
    """What is done in units."""

    def begin(self, asked: Body, execution: str) -> Answer:
        """Begin what a user asks for. Raises UserError for what cannot be, StoreError."""
        ...

    def unit(self, unit: str, run: Body) -> bool:
        """Work on a unit while there is time. Says whether there is nothing more to do. Raises StoreError, UserError:
        the unit is tried again, and left in the end.
        """
        ...

    def end(self, run: Body) -> Answer:
        """What is next, once no unit is being worked on. Raises StoreError, UserError."""
        ...


def answer(event: Body, work: Work) -> dict[str, Any]:
    """The answer to one question. Raises what `work` raises, but for what the user has to hear."""
    match event["do"]:
        case "begin":
            try:
                return work.begin(event["asked"], event["execution"]).body()
            except UserError as error:
                return Answer(error=REFUSED, cause=str(error)).body()
        case "unit":
            return {"done": work.unit(event["unit"], event["run"])}
        case "end":
            return work.end(event["run"]).body()
    raise UserError(f"expected begin, unit or end, found {event['do']!r}")


def require_time(remaining_ms: int) -> None:
    """Raises UserError for a call that has too little time from the start."""
    if remaining_ms < TIME_LEAST_MS:
        raise UserError(
            f"a call has {remaining_ms} ms, and needs {TIME_LEAST_MS} at least: raise the function's timeout"
        )


def require_units(units: Sequence[str]) -> Sequence[str]:
    """The units, if they are not too many. Raises UserError."""
    if len(units) > UNITS_MAX:
        raise UserError(f"that makes {len(units)} units of work, of at most {UNITS_MAX}: give fewer --segments")
    return units


def prints_of(rules: Rules, names: frozenset[str]) -> dict[str, str]:
    """What these rules say, by their names in the rules file, as digests."""
    titles = {rules.rules[name].title for name in names}
    return {title: digest for title, digest in fingerprints.of_each(rules).items() if title in titles}


def as_here(rules: Rules) -> dict[str, Any]:
    """What is sent of the rules with what is asked: what they say, as digests, and which tables they mean."""
    tables = {name: table.physical_name for name, table in rules.tables.items()}
    return {"prints": fingerprints.of_each(rules), "tables": tables}


def require_deployed(body: Body, rules: Rules) -> None:
    """See that the rules and the tables that a user has, `as_here`, are those that are deployed. Raises UserError with
    each that is not.
    """
    asked, deployed = body["prints"], fingerprints.of_each(rules)
    lines = [
        f"\n  {title}: {'says something else' if title in deployed else 'is not there'}"
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
        message = "the stack is one of other tables: set the environment variables of their names as it has them"
        raise UserError(f"{message}, or name its stack with --stack.{''.join(lines)}")


def left_of(lines: Sequence[tuple[str, str]], cure: str) -> Answer:
    """It is over, and these units, each with the reason, are not done."""
    shown = "".join(f"\n  {unit}: {reason}" for unit, reason in lines[:LEFT_SHOWN_MAX])
    more = f"\n  and {len(lines) - LEFT_SHOWN_MAX} more" if len(lines) > LEFT_SHOWN_MAX else ""
    return Answer(error=LEFT, cause=f"{len(lines)} not done. {cure}{shown}{more}")
