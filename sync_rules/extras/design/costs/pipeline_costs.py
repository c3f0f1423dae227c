"""The pipeline's own costs of copies: units of reads and writes, time of functions, requests of queues. docs/scale.md
and `sync-rules cost` use these figures. The figures of time were measured: `make bench`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sync_rules.jobs.dryrun.money import MILLION
from sync_rules.jobs.dryrun.prices import Region
from sync_rules.model.sizes import READ_UNIT_BYTES, count_read_units

INLINE_COPIES: Final = 1_000  # made where the record arrives; the rest goes to workers
CHUNK_COPIES: Final = 200  # of one message to a worker, where an index lists them
PAGE_COPIES: Final = 500  # of one message to a worker that lists them itself, in the base table
STREAM_BATCH_RECORDS: Final = 100  # of our own writes, which come back
WORKER_COPIES_SECOND: Final = 2_500  # one process, 5 ms for each answer: what `make bench` measured on a busy machine
RECORD_SECONDS: Final = 0.0001  # for a record of our own write, with reading it as JSON
WORKER_GIGABYTES: Final = 1.769  # a whole core
REQUESTS_OF_A_MESSAGE: Final = 3  # sent, received, deleted


@dataclass(frozen=True, slots=True)
class Compute:
    """The work of functions and queues."""

    gb_seconds: float
    invocations: float
    queue_requests: float


def count_fanout_units(copies: int, target_bytes: int, listed_bytes: int, *, consistent: bool) -> float:
    """Return the read units of a fan-out. They include the listing (consistent in the base table, whose rows are
    images) and the images that an index lacks. They also include the source, once for each message and for each
    batch of the pipeline's own records.
    """
    listing = copies * listed_bytes / READ_UNIT_BYTES * (1 if consistent else 0.5)
    images = 0 if consistent else copies * count_read_units(target_bytes, consistent=True)
    sources = math.ceil(copies / _count_message_copies(consistent=consistent)) + math.ceil(
        copies / STREAM_BATCH_RECORDS
    )
    return listing + images + sources


def estimate_compute(copies: int, copies_second: float = WORKER_COPIES_SECOND, *, consistent: bool) -> Compute:
    """Return the work of Lambda and SQS: the workers, and the stream handler, which gets a record of each write.
    `copies_second` is the pace of one worker, which costs money while it waits.
    """
    chunks = math.ceil(max(copies - INLINE_COPIES, 0) / _count_message_copies(consistent=consistent))
    seconds = copies / copies_second + copies * RECORD_SECONDS
    return Compute(
        seconds * WORKER_GIGABYTES,
        1 + chunks + math.ceil(copies / STREAM_BATCH_RECORDS),
        chunks * REQUESTS_OF_A_MESSAGE,
    )


def _count_message_copies(*, consistent: bool) -> int:
    return PAGE_COPIES if consistent else CHUNK_COPIES


def compute_price(compute: Compute, region: Region) -> Decimal | None:
    """Return the price of the work of functions, on arm64, and of queues. None if the Region has no such prices."""
    functions, queues = region.functions, region.queues
    if functions is None or queues is None:
        return None
    return (
        Decimal(compute.gb_seconds) * functions.arm_gb_second
        + Decimal(compute.invocations) * functions.requests_million / MILLION
        + Decimal(compute.queue_requests) * queues.requests_million / MILLION
    )
