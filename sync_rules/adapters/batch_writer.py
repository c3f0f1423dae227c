"""Statements sent 25 to a request by BatchExecuteStatement, and the backoff between requests.

Invariant: of a batch only two answers count: written, and refused with the current item. A throttled statement is sent
again, after the others, so that one hot partition delays no other. All other statements have no result, and the caller
sends each alone. A request that is refused as invalid is halved until the invalid statement is alone. After a throttle,
batches are sent one at a time, and the rest waits with the throttled statement: more requests would be throttled too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from sync_rules.adapters import aws_errors
from sync_rules.adapters.partiql import Statement
from sync_rules.model.writes import WRITTEN, Result, Status

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Positions = tuple[int, ...]  # of writes among those of the caller
Throttles = Sequence[str]  # their kinds

BATCH_MAX_STATEMENTS: Final = 25  # quota of BatchExecuteStatement
BATCH_WAIT_SECONDS: Final = 0.1  # longest first pause after a throttle: 25 writes wait for one of them
BATCH_WAIT_MAX_SECONDS: Final = 1.0  # a longer pause would leave capacity of the table unused
# Fewer writes between two throttles mean that the pause is too short; more than twice as many, that it is too long.
BETWEEN_THROTTLES_STATEMENTS: Final = 50
CALM_STATEMENTS: Final = 1_000  # after this number of writes without a throttle there is no pause
REFUSED_MAX_SHARE: Final = 0.2  # of a batch, to send the next without a pause: a few hot keys are not the table
# Transient errors of a statement in a batch, by BatchStatementError's code; the SDKs do not retry these.
PASSING: Final[Mapping[str, str]] = {
    "ProvisionedThroughputExceeded": "ProvisionedThroughputExceededException",
    "ThrottlingError": "ThrottlingException",
    "RequestLimitExceeded": "RequestLimitExceeded",
    "TransactionConflict": "TransactionConflict",
    "InternalServerError": "InternalServerError",
}
INVALID: Final = frozenset({"ValidationError", "ValidationException"})  # of a statement, of a request


class Pressure:
    """The backoff of one writer after throttles. May be used by several threads."""

    def __init__(self, spread: Callable[[float, float], float] = random.uniform) -> None:
        self._lock = Lock()
        self._spread = spread
        self._pause = 0.0
        self._written = 0  # since the last throttle

    @property
    def there(self) -> bool:
        """True after a recent throttle."""
        return self._pause > 0

    def pause(self) -> float:
        """Choose the seconds until the next try: between half of the pause and all of it."""
        return self._spread(self._pause / 2, self._pause)

    def count_writes(self, written: int) -> None:
        with self._lock:
            self._written += written
            if self._written >= CALM_STATEMENTS:
                self._pause = 0.0

    def slow_down(self) -> None:
        """Adjust the pause after requests that were sent together met a throttle."""
        with self._lock:
            if self._written < BETWEEN_THROTTLES_STATEMENTS:
                self._pause = min(2 * self._pause, BATCH_WAIT_MAX_SECONDS)
            elif self._written > 2 * BETWEEN_THROTTLES_STATEMENTS:
                self._pause /= 2
            self._pause = max(self._pause, BATCH_WAIT_SECONDS)
            self._written = 0


class Batches:
    """Statements to send in rounds, until all that can be written are, or the caller gives up.

    `results`: final results by position. `denied`: error codes of batches that were not permitted. `failed`: error
    codes of batches that failed otherwise. `invalid`: positions of statements that were refused as invalid.
    """

    operation: Final = "BatchExecuteStatement"

    def __init__(
        self,
        client: DynamoDBClient,
        statements: Mapping[int, Statement],
        pressure: Pressure,
        share: Callable[[Callable[[Positions], Throttles], Sequence[Positions]], Iterable[Throttles]],
    ) -> None:
        self._client = client
        self._pressure = pressure
        self._share = share
        self._pending = dict(statements)
        self._reasons: dict[int, str] = {}
        self.results: dict[int, Result] = {}
        self.denied: set[str] = set()
        self.failed: set[str] = set()
        self.invalid: set[int] = set()

    def list_unwritten_results(self) -> dict[int, Result]:
        """List the results of unwritten statements, by position. A statement that was never sent has the reason of the
        last refused statement.
        """
        last = next(reversed(self._reasons.values()), "")
        return {place: Result(Status.FAILED, reason=self._reasons.get(place, last)) for place in self._pending}

    def __call__(self) -> None:
        """Send a round. Raises UnprocessedError if statements are left for another round."""
        places = tuple(self._pending)
        batches = [
            places[start : start + BATCH_MAX_STATEMENTS] for start in range(0, len(places), BATCH_MAX_STATEMENTS)
        ]
        throttles: list[str] = []
        for met in self._send_one_by_one(batches) if self._pressure.there else self._share(self._send, batches):
            throttles += met
        if throttles:
            self._pressure.slow_down()
        if self._pending:
            reason = self._reasons[next(reversed(self._pending))]
            raise aws_errors.UnprocessedError(throttles, reason, progressed=len(self._pending) < len(places))

    def _send_one_by_one(self, batches: Sequence[Positions]) -> Iterator[Throttles]:
        """Send batches until many statements of one must be sent again."""
        for batch in batches:
            yield self._send(batch)
            if sum(place in self._pending for place in batch) > REFUSED_MAX_SHARE * len(batch):
                return

    def _send(self, places: Positions) -> Throttles:
        """Send statements and take the answers. Returns their throttles."""
        requests: Any = [self._pending[place].request() for place in places]
        try:
            answers: Any = self._client.batch_execute_statement(Statements=requests).get("Responses", [])
        except aws_errors.ERRORS as error:
            if not aws_errors.is_transient(error):
                return self._handle_refusal(places, aws_errors.read_code(error))
            for place in places:
                self._again(place, aws_errors.read_reason(error))
            return aws_errors.list_throttles(error)
        if len(answers) != len(places):  # unknown which answer is whose
            return self._leave(places)
        met = [kind for place, answer in zip(places, answers, strict=True) for kind in self._take(place, answer)]
        self._pressure.count_writes(sum(self.results.get(place) is WRITTEN for place in places))
        return met

    def _handle_refusal(self, places: Positions, code: str) -> Throttles:
        """Handle the refusal of a whole request. Halve an invalid one and send both parts: only some are invalid."""
        if code in INVALID and len(places) > 1:
            middle = len(places) // 2
            return (*self._send(places[:middle]), *self._send(places[middle:]))
        if code in INVALID:
            self.invalid.update(places)
        else:
            (self.denied if code in aws_errors.NOT_ALLOWED else self.failed).add(code)
        return self._leave(places)

    def _take(self, place: int, answer: Mapping[str, Any]) -> Throttles:
        """Take the answer to one statement. Returns its throttle."""
        found: Mapping[str, Any] = answer.get("Error") or {}
        code = found.get("Code", "")
        if code in PASSING:
            self._again(place, PASSING[code])
            return (aws_errors.OTHER_THROTTLE,) if code in aws_errors.THROTTLED else ()
        if not found:
            self.results[place] = WRITTEN
        elif found.get("Item"):  # of a condition that does not hold: no other error has one
            self.results[place] = Result(Status.REFUSED, found["Item"])
        elif code in aws_errors.NOT_ALLOWED:
            self.denied.add(code)
        elif code in INVALID:
            self.invalid.add(place)
        return self._leave((place,))

    def _again(self, place: int, reason: str) -> None:
        self._reasons[place] = reason
        self._pending[place] = self._pending.pop(place)

    def _leave(self, places: Positions) -> Throttles:
        """Drop these from the batch; the writer then sends each as its own UpdateItem."""
        for place in places:
            del self._pending[place]
        return ()
