"""From a history that fails to a shorter one that fails too: choices are deleted and zeroed while the failure stays.

Invariant: a shorter history must fail with the same first words, so a story shrinks to its own end and not to another
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

Lists = Mapping[str, list[int]]
Fails = Callable[[Lists], bool]


def shrunk(lists: Lists, fails: Fails, replays_max: int = 3_000) -> dict[str, list[int]]:
    """The shortest lists found that still fail, within a number of replays."""
    best = {name: list(values) for name, values in lists.items()}
    replays = 0
    progress = True
    while progress:
        progress = False
        for candidate in _candidates(best):
            replays += 1
            if replays > replays_max:
                return best
            if fails(candidate):
                best = {name: list(values) for name, values in candidate.items()}
                progress = True
                break
    return best


def _candidates(lists: Lists) -> Iterator[dict[str, list[int]]]:
    """Simpler histories, the boldest first: a stream cut off, long pieces deleted, then zeroed, then single choices less."""
    for values in lists.values():
        while values and values[-1] == 0:
            values.pop()  # a list that is too short goes on with 0
    for size in (64, 32, 16, 8, 4, 2, 1):
        for name, values in lists.items():
            for start in range(len(values) - size, -1, -size):
                yield {**lists, name: values[:start] + values[start + size :]}
                if any(values[start : start + size]):
                    yield {**lists, name: values[:start] + [0] * size + values[start + size :]}
    for name, values in lists.items():
        for at, value in enumerate(values):
            if value > 1:
                yield {**lists, name: [*values[:at], value // 2, *values[at + 1 :]]}
