"""The command line of sync-rules as a process that a test may break.

Invariant: the product has no switch for it. A fault replaces functions from outside, then the command's own `main` is
called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from sync_rules.cli.main import main
from sync_rules.jobs.consume import checkpoint, mapping
from sync_rules.jobs.consume.attempts import AttemptResult, Batch
from sync_rules.jobs.consume.local_run import LocalRun
from sync_rules.jobs.consume.shards import ShardProgress, ShardQueue
from tests.processes import clock

PRELOADED = [f"sync_rules.cli.commands.{command}" for command in ("run", "backfill", "verify", "redrive")]
Fault = Callable[[], AbstractContextManager[Any]]


# ---------------------------------------------------------------- faults of processes
@contextmanager
def checkpoint_before_effect() -> Iterator[None]:
    """The checkpoint says that records are done once they were read, and is saved before the handler has them."""
    invoke = LocalRun._invoke

    def progress(shard: Any) -> ShardProgress:
        return ShardProgress(shard.shard_id, shard.parent_id, shard.last_read, done=shard.closed)

    def save_first(run: Any, event: Any) -> Any:
        run.save()
        return invoke(run, event)

    with patch.object(ShardQueue, "progress", property(progress)), patch.object(LocalRun, "_invoke", save_first):
        yield


def messages_not_kept() -> AbstractContextManager[Any]:
    """The checkpoint has positions, and no messages."""
    return patch.object(checkpoint, "pack_messages", lambda _pending: [])


def failed_records_finished() -> AbstractContextManager[Any]:
    """A batch is finished, whatever the handler answered."""
    return patch.object(mapping, "evaluate", lambda batch, *_args, **_more: AttemptResult(finished=batch.records))


def last_record_forgotten() -> AbstractContextManager[Any]:
    """The handler is called without the last record of a batch."""
    return patch.object(Batch, "event", lambda batch: {"Records": [record.body for record in batch.records[:-1]]})


OWN_FAULTS: dict[str, Fault] = {
    "checkpoint before effect": checkpoint_before_effect,
    "checkpoint without messages": messages_not_kept,
    "failed records are done": failed_records_finished,
    "last record of a batch not delivered": last_record_forgotten,
}


def find_fault(name: str) -> Fault:
    """A fault of a process, or a mutant of the simulator."""
    if name == "none":
        return nullcontext
    if name in OWN_FAULTS:
        return OWN_FAULTS[name]
    from tests.simulation.mutants import MUTANTS  # noqa: PLC0415 - slow to import

    return MUTANTS[name].mutant


def run_command(fault: str, clock_seed: str, arguments: Sequence[str]) -> None:
    """Run a command of a broken product, by a clock that jumps; "" for a clock that does not."""
    clock.move(clock_seed)
    with find_fault(fault)():
        sys.exit(main(arguments))
