"""The numbered facts about AWS that code relies on, and the verdict of a probe on a fact.

Invariant: a probe returns `holds` only after it saw the fact. An answer that no probe expects counts against the fact.
A missing permission, or a service that does not answer, counts neither way and is named.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from sync_rules.adapters import aws_errors, retries
from sync_rules.model.errors import SyncRulesError

T = TypeVar("T")
LOOK_SECONDS: Final = 0.1  # between two looks
TOO_OFTEN: Final = frozenset({"LimitExceededException"})  # of calls that read a stream
WAIT_SECONDS: Final = 180.0  # for a mapping, which may take minutes to start, or a metric
DENIED: Final = re.compile(r"not authorized to perform:? ([A-Za-z0-9-]+:[A-Za-z0-9*]+)")
ACCOUNT: Final = re.compile(r"(?<!\d)\d{12}(?!\d)")  # a report has no account's number
NOT_ALLOWED: Final = frozenset({"AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation"})


@dataclass(frozen=True, slots=True)
class Assumption:
    """One fact: its number, its documentation, the consequence if it is false, and the code that relies on it. `avoid`:
    the setting that makes the product independent of it, "" if there is none. `not_tested`: why minutes in an
    account cannot show it, "" for a fact with a probe. `model`: what botocore's service models must contain.
    `asserted`: the tests of the conformance suite that show it.
    """

    number: int
    section: str
    fact: str
    source: str
    if_false: str
    relied_on: tuple[str, ...]
    avoid: str = ""
    not_tested: str = ""
    model: Mapping[str, int | str | list[str]] = field(default_factory=dict)
    asserted: tuple[str, ...] = ()


SOURCE: Final = tomllib.loads(Path(__file__).with_name("assumptions.toml").read_text(encoding="utf-8"))
ASSUMPTIONS: Final = {
    int(number): Assumption(
        int(number), **{**one, "relied_on": tuple(one["relied_on"]), "asserted": tuple(one.get("asserted", ()))}
    )
    for number, one in SOURCE.items()
    if number.isdecimal()
}


# ---------------------------------------------------------------- probes
class ProbeVerdict(StrEnum):
    """The outcome of one probe. `FAILED`: the probe could not run, for a reason that is not about the fact."""

    HOLDS = "holds"
    FALSE = "does not hold"
    NOT_TESTED = "not tested"
    FAILED = "could not be tested"


class RefutedError(SyncRulesError):
    """The fact does not hold. The text describes what the probe saw."""


class UnseenError(SyncRulesError):
    """The probe saw no evidence, for or against the fact, in the available time."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The verdict on one fact, with what the probe saw."""

    number: int
    verdict: ProbeVerdict
    seen: str
    seconds: float = 0.0


@dataclass(frozen=True)
class Probe:
    """A test of one fact on a stack. It returns what it saw.

    Raises:
        RefutedError: if the fact does not hold.
        UnseenError: if it saw no evidence in time.
    """

    number: int
    work: Callable[[Any], str]

    def __call__(self, site: Any) -> str:
        return self.work(site)


def make_probe(number: int) -> Callable[[Callable[[Any], str]], Probe]:
    """Return a decorator that makes a function the probe of a numbered fact."""
    return lambda work: Probe(number, work)


@dataclass(frozen=True, slots=True)
class Polling(Generic[T]):
    """A repeated look at the world, until it is as wanted or the time is over."""

    seconds: float = WAIT_SECONDS
    pause: float = LOOK_SECONDS
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def until(self, look: Callable[[], T], wanted: Callable[[T], object]) -> tuple[T, bool]:
        """Return the last value that `look` returned, and whether it is as wanted."""
        end = self.clock() + self.seconds
        while not wanted(seen := look()):
            if self.clock() >= end:
                return seen, False
            self.sleep(self.pause)
        return seen, True


def require(held: object, said: str) -> None:
    """Raise RefutedError with this text unless the condition holds."""
    if not held:
        raise RefutedError(said)


def require_refused(call: Callable[..., Any], codes: str, said: str, **parameters: Any) -> Any:
    """Return the error of a call that must be refused with one of these codes (separated by blanks).

    Raises:
        RefutedError: if the call is accepted, or refused with another code; `said` names the request.
    """
    try:
        retries.make_retry()(call, **parameters)
    except aws_errors.ERRORS as error:
        if aws_errors.read_code(error) in codes.split():
            return error
        if is_blocked(error):
            raise
        raise RefutedError(f"{said}: refused with {aws_errors.read_code(error)}, expected {codes}") from error
    raise RefutedError(f"{said}: accepted, expected {codes}")


def is_blocked(error: BaseException) -> bool:
    """Return True for an error that says nothing about the fact: a missing permission, a throttle, no answer."""
    return (
        aws_errors.read_code(error) in NOT_ALLOWED | TOO_OFTEN
        or aws_errors.is_transient(error)
        or isinstance(error, aws_errors.CONNECTION_ERRORS)
    )


def find_denied_action(error: BaseException) -> str:
    """Return the action that an error names as not allowed, "" if it names none."""
    found = DENIED.search(aws_errors.read_message(error))
    return found[1] if found else ""


def run_probe(number: int, work: Callable[[], str], clock: Callable[[], float] = time.monotonic) -> ProbeResult:
    """Run a probe and return its result, whatever the probe raises."""
    began = clock()
    verdict, seen = _judge_work(work)
    return ProbeResult(number, verdict, ACCOUNT.sub("ACCOUNT", seen), clock() - began)


def _judge_work(work: Callable[[], str]) -> tuple[ProbeVerdict, str]:
    try:
        return ProbeVerdict.HOLDS, work()
    except RefutedError as error:
        return ProbeVerdict.FALSE, str(error)
    except UnseenError as error:
        return ProbeVerdict.NOT_TESTED, str(error)
    except aws_errors.ERRORS as error:
        asked = getattr(error, "operation_name", "the request")
        if aws_errors.read_code(error) in NOT_ALLOWED:
            return (
                ProbeVerdict.FAILED,
                f"{asked} is denied: allow these credentials {find_denied_action(error) or asked}",
            )
        if is_blocked(error):
            return ProbeVerdict.FAILED, f"{asked} failed with {aws_errors.read_code(error)}: run it again"
        return ProbeVerdict.FALSE, f"{asked} was refused with {aws_errors.read_code(error)}"
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        return ProbeVerdict.FALSE, f"an answer of another form ({type(error).__name__})"
