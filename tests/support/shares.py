"""Long runs in shares, one after another in each of several processes, with a line of progress now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

T = TypeVar("T")


def in_shares(
    play: Callable[[int, int], T],
    first: int,
    count: int,
    *,
    share: int,
    workers: int,
    say: Callable[[str], object] = print,
) -> Iterator[T]:
    """The answers of `play(first, count)` for the shares of a range, as they come."""
    began, done, tenth = time.monotonic(), 0, 0
    with ProcessPoolExecutor(workers) as pool:
        sizes = {
            pool.submit(play, at, size): size
            for at in range(first, first + count, share)
            if (size := min(share, first + count - at))
        }
        for future in as_completed(sizes):
            yield future.result()
            done += sizes[future]
            if done * 10 // count > tenth:
                tenth = done * 10 // count
                say(f"{done:,} of {count:,} histories, {done / (time.monotonic() - began):.0f} a second")
