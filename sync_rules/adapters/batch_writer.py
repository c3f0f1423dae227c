"""Statements sent 25 to a request, by BatchExecuteStatement, and what of their answers counts.

Law: of a batch only two answers are taken: written, and refused with the item as it stands. What was throttled is asked
again, at the end of the line, so that what one partition does not take is in nobody else's way; all else is left out of
the results, and tried alone by whoever asks. After a throttle, batches go out one at a time, and the rest waits with
what was throttled: whoever asks on would only be told so again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from sync_rules.adapters import aws
from sync_rules.adapters.partiql import Statement
from sync_rules.model.writes import WRITTEN, Result, Status

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


BATCH_WAIT_SECONDS: Final = 0.1  # longest first pause after a throttle: 25 writes wait for one of them
BATCH_WAIT_MAX_SECONDS: Final = 1.0  # longer, and the table would keep less than it could have taken
# Fewer written from one throttle to the next, and the pause is too short; more than twice as many, and it is too long.
BETWEEN_THROTTLES_STATEMENTS: Final = 50
CALM_STATEMENTS: Final = 1_000  # so many written without a throttle: as before the first of them


class Pressure:
    """Of one writer. May be used by several threads."""

    def __init__(self, spread: Callable[[float, float], float] = random.uniform) -> None:
        self._lock = Lock()
        self._spread = spread
        self._pause = 0.0
        self._written = 0  # since the last throttle

    @property
    def there(self) -> bool:
        """Whether there was a throttle lately."""
        return self._pause > 0

    def pause(self) -> float:
        """Seconds until the next try: between half of the pause and all of it."""
        return self._spread(self._pause / 2, self._pause)

    def took(self, written: int) -> None:
        """So many were written."""
        with self._lock:
            self._written += written
            if self._written >= CALM_STATEMENTS:
                self._pause = 0.0

    def refused(self) -> None:
        """Requests that went out together met throttles."""
        with self._lock:
            if self._written < BETWEEN_THROTTLES_STATEMENTS:
                self._pause = min(2 * self._pause, BATCH_WAIT_MAX_SECONDS)
            elif self._written > 2 * BETWEEN_THROTTLES_STATEMENTS:
                self._pause /= 2
            self._pause = max(self._pause, BATCH_WAIT_SECONDS)
            self._written = 0


Places = tuple[int, ...]  # of writes among those handed over
Throttles = Sequence[str]  # their kinds
BATCH_MAX_STATEMENTS: Final = 25  # quota of BatchExecuteStatement
REFUSED_MAX_SHARE: Final = 0.2  # of a batch, for the next to be sent without a pause: a few hot keys are not the table
# What a statement in a batch may meet that passes, by BatchStatementError's code; the SDKs do not try these again.
PASSING: Final[Mapping[str, str]] = {
    "ProvisionedThroughputExceeded": "ProvisionedThroughputExceededException",
    "ThrottlingError": "ThrottlingException",
    "RequestLimitExceeded": "RequestLimitExceeded",
    "TransactionConflict": "TransactionConflict",
    "InternalServerError": "InternalServerError",
}
NOT_ALLOWED: Final = frozenset({"AccessDenied", "AccessDeniedException"})


class Batches:
    """Statements, called until none is left that may yet be written.

    `results` are those to count on, by place; `denied` are the codes by which it was refused to send any in a batch.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        statements: Mapping[int, Statement],
        pressure: Pressure,
        share: Callable[[Callable[[Places], Throttles], Sequence[Places]], Iterable[Throttles]],
        fruitless_max: int,
    ) -> None:
        self._client = client
        self._pressure = pressure
        self._share = share
        self._pending = dict(statements)
        self._reasons: dict[int, str] = {}
        self._fruitless, self._fruitless_max = 0, fruitless_max  # rounds in a row
        self.results: dict[int, Result] = {}
        self.denied: set[str] = set()

    def left(self) -> dict[int, Result]:
        """Those that were not written, and why; one that was not sent waited for the last that was refused."""
        last = next(reversed(self._reasons.values()), "")
        return {place: Result(Status.FAILED, reason=self._reasons.get(place, last)) for place in self._pending}

    def __call__(self) -> None:
        """A round. Raises UnprocessedError when some must be asked again, unless round after round came to nothing."""
        places = tuple(self._pending)
        batches = [
            places[start : start + BATCH_MAX_STATEMENTS] for start in range(0, len(places), BATCH_MAX_STATEMENTS)
        ]
        throttles: list[str] = []
        for met in self._one_by_one(batches) if self._pressure.there else self._share(self._send, batches):
            throttles += met
        if throttles:
            self._pressure.refused()
        self._fruitless = self._fruitless + 1 if len(self._pending) == len(places) else 0
        if self._pending and self._fruitless < self._fruitless_max:
            raise aws.UnprocessedError(throttles)

    def _one_by_one(self, batches: Sequence[Places]) -> Iterator[Throttles]:
        """Until much of one must be asked again."""
        for batch in batches:
            yield self._send(batch)
            if sum(place in self._pending for place in batch) > REFUSED_MAX_SHARE * len(batch):
                return

    def _send(self, places: Places) -> Throttles:
        """Send these, and take what is answered. The throttles that they met."""
        requests: Any = [self._pending[place].request() for place in places]
        try:
            answers: Any = self._client.batch_execute_statement(Statements=requests).get("Responses", [])
        except aws.ERRORS as error:
            if not aws.transient(error):
                self.denied.add(aws.code(error))
                return self._leave(places)
            for place in places:
                self._again(place, aws.reason(error))
            return aws.throttles(error)
        if len(answers) != len(places):  # nobody knows whose they are
            return self._leave(places)
        met = [kind for place, answer in zip(places, answers, strict=True) for kind in self._take(place, answer)]
        self._pressure.took(sum(self.results.get(place) is WRITTEN for place in places))
        return met

    def _take(self, place: int, answer: Mapping[str, Any]) -> Throttles:
        """Take the answer to one statement. The throttle that it met, if so."""
        found: Mapping[str, Any] = answer.get("Error") or {}
        code = found.get("Code", "")
        if code in PASSING:
            self._again(place, PASSING[code])
            return (aws.OTHER_THROTTLE,) if code in aws.THROTTLED else ()
        if not found:
            self.results[place] = WRITTEN
        elif code == "ConditionalCheckFailed" and found.get("Item"):
            self.results[place] = Result(Status.REFUSED, found["Item"])
        elif code in NOT_ALLOWED:
            self.denied.add(code)
        return self._leave((place,))

    def _again(self, place: int, reason: str) -> None:
        self._reasons[place] = reason
        self._pending[place] = self._pending.pop(place)

    def _leave(self, places: Places) -> Throttles:
        """What is not in the results either is tried alone."""
        for place in places:
            del self._pending[place]
        return ()
