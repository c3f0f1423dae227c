"""Runs of histories: one by seed or by its choices, or many in a row, with the story of a failure.

`SIM_SEED` (with `SIM_CONFIG`, such as O1/index) replays one history and prints its story.
"""

from __future__ import annotations

import hashlib
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from tests.simulation.choices import Choices, drawn, given
from tests.simulation.maintained import Maintained
from tests.simulation.oracles import ORACLES
from tests.simulation.scheduler import History
from tests.simulation.shrink import Lists, shrunk
from tests.simulation.watch import DivergenceError
from tests.simulation.written import Written

PAIRS = tuple((oracle, name) for oracle in ORACLES.values() if not oracle.apart for name in oracle.configurations)
Seen = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Failed:
    """A history that failed: where, by which seed, with which choices, and why."""

    oracle: str
    configuration: str
    seed: int | None
    choices: dict[str, list[int]]
    reason: str

    def __str__(self) -> str:
        place = f"{self.oracle}/{self.configuration}"
        return f"{place} seed {self.seed}: {self.reason}\n  replay: SIM_SEED={self.seed} SIM_CONFIG={place} python -m tests.simulation"


def play(oracle: str, configuration: str, choices: Choices, seed: int | None = None, *, seen: Seen | None = None,
         story: list[str] | None = None) -> Failed | None:  # fmt: skip
    """Play one history. An exception of an oracle or an assertion of the core is its failure."""
    kind = Written if ORACLES[oracle].writers else Maintained if ORACLES[oracle].errands else History
    history = kind(configuration, ORACLES[oracle], choices, story)
    try:
        history.run()
    except DivergenceError as error:
        reason = str(error)
    except Exception:  # noqa: BLE001 - the core must raise nothing: what it raises is the finding
        reason = traceback.format_exc()
    else:
        reason = ""
    if seen is not None:
        seen.update(history.seen)
        seen["steps", "steps"] += history.steps
    return Failed(oracle, configuration, seed, choices.taken(), reason) if reason else None


def play_seed(oracle: str, configuration: str, seed: int, **kwargs: object) -> Failed | None:
    """The history of a seed."""
    return play(oracle, configuration, drawn(seed, serial=ORACLES[oracle].serial), seed, **kwargs)  # type: ignore[arg-type]


def failures(
    count: int,
    seed: int,
    pairs: Iterable[tuple[str, str]] | None = None,
    seen: Seen | None = None,
    *,
    first: int = 0,
) -> Iterator[Failed]:
    """Play histories number `first` up to `count`, spread over oracles and configurations; yield those that fail."""
    places = [(oracle.name, name) for oracle, name in PAIRS] if pairs is None else list(pairs)
    for number in range(first, count):
        failed = play_seed(*places[number % len(places)], seed + number, seen=seen)
        if failed is not None:
            yield failed


def shorter(failed: Failed, mutant: Callable[[], AbstractContextManager[object]] = nullcontext) -> Failed:
    """The same failure with as few choices as could be found."""
    words = kind_of(failed.reason)

    def fails(lists: Lists) -> bool:
        again = play(failed.oracle, failed.configuration, given(lists))
        return again is not None and kind_of(again.reason) == words

    with mutant():
        lists = shrunk(failed.choices, fails)
        again = play(failed.oracle, failed.configuration, given(lists))
    assert again is not None, "shrinking keeps the failure"
    return Failed(failed.oracle, failed.configuration, failed.seed, lists, again.reason)


def kind_of(reason: str) -> str:
    """The kind of a failure: its reason without items and values."""
    last = reason.strip().splitlines()[-1]
    return last.split(": ", 1)[-1].split(" is ")[0].split(" was ")[0][:20] if ")" in last else last[:40]


def story_of(failed: Failed) -> str:
    """The history in words, step by step."""
    story: list[str] = []
    again = play(failed.oracle, failed.configuration, given(failed.choices), story=story)
    return "\n".join([*story, f"=> {again.reason if again else 'nothing is wrong'}"])


def trace_hash(count: int, seed: int) -> str:
    """A digest of everything that happens in some histories: the same for the same seeds, on every machine."""
    digest = hashlib.sha256()
    for number in range(count):
        oracle, configuration = PAIRS[number % len(PAIRS)]
        story: list[str] = []
        play_seed(oracle.name, configuration, seed + number, story=story)
        digest.update("\n".join(story).encode())
    return digest.hexdigest()


def as_json(failed: Failed) -> Mapping[str, object]:
    return {
        "oracle": failed.oracle,
        "configuration": failed.configuration,
        "reason": failed.reason,
        "choices": failed.choices,
    }
