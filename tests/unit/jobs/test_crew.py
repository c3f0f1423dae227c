"""How a long job is worked off: by threads, or by none."""

from __future__ import annotations

from threading import current_thread

from sync_rules.jobs.backfill.throttle import Crew


def test_crew_of_one_works_in_the_thread_of_its_caller():
    """One worker needs no thread: a browser has none. It goes on after a part that is not finished."""
    threads = []

    def work(part: int) -> bool:
        threads.append(current_thread())
        return part > 1

    assert not Crew(1, lambda: False).run(work, [1, 2, 3])
    assert threads == [current_thread()] * 3
