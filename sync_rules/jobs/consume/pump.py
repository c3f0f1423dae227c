"""The pump: drives event source mappings and the local queue from one loop, step by step.

Law: nothing here runs on its own. A step does what is due now and returns; the caller saves progress between steps, so
what is saved never runs ahead of what was done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from sync_rules.jobs.consume.mapping import Concurrently, EventSourceMapping, Step, serially
from sync_rules.jobs.consume.queue import LocalQueue, Taken
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.messages import Message

MESSAGES_PER_STEP = 10  # the batch size of an SQS event source mapping by default
WAIT_SECONDS = 0.05


class Pump:
    """Drives mappings and the local queue, step by step. `handle_message` raises when a message must come again."""

    def __init__(
        self,
        mappings: Sequence[EventSourceMapping],
        queue: LocalQueue,
        handle_message: Callable[[Message], None],
        *,
        now_ms: Callable[[], int],
        sleep: Callable[[float], object],
        concurrently: Concurrently = serially,
    ) -> None:
        self.mappings = tuple(mappings)
        self.queue = queue
        self.thrown: Counter[str] = Counter()  # what the handler raised, by name
        self._handle_message = handle_message
        self._now_ms = now_ms
        self._sleep = sleep
        self._concurrently = concurrently

    @property
    def idle(self) -> bool:
        """All streams read to their end and finished, and no message due. Delayed messages may still wait."""
        return all(mapping.idle for mapping in self.mappings) and not self.queue.due

    def step(self) -> Step:
        """One step of every mapping, then some messages."""
        step = Step()
        for mapping in self.mappings:
            step += mapping.poll()
        taken = self.queue.take(MESSAGES_PER_STEP)
        for message, handled in zip(taken, self._concurrently(self._handle, taken), strict=True):
            if handled:
                self.queue.acknowledge(message)
            else:
                self.queue.give_back(message)
            step += Step(messages=1, messages_failed=int(not handled))
        return step

    def drain(self, deadline_ms: int) -> bool:
        """Step until idle, or until the clock says the deadline. Says whether it became idle."""
        for mapping in self.mappings:
            mapping.look_again()
        while self._now_ms() < deadline_ms:
            progressed = self.step().progressed
            if self.idle:
                return True
            if not progressed:
                self._sleep(WAIT_SECONDS)
        return self.idle

    def _handle(self, taken: Taken) -> bool:
        try:
            self._handle_message(taken.message)
        except Exception as error:  # noqa: BLE001 - as with SQS, whatever a worker throws brings the message again
            self.thrown[error.reason if isinstance(error, StoreError) else type(error).__name__] += 1
            return False
        return True
