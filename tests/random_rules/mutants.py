"""Mutants of the product that random rules must catch: those of the simulator that concern what they cover, and more.

`python -m tests.random_rules --mutants` says for each at which history it is caught, and which survive.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Final

from tests.random_rules.grammar import made
from tests.random_rules.runs import Failed, failures
from tests.simulation import mutants_backfill, mutants_errands
from tests.simulation.breaking import Mutant
from tests.simulation.mutants import MUTANTS as OF_SIMULATOR

# Mutants that random rules do not cover, and why.
ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(mutants_backfill.MUTANTS, "nobody dies in a backfill here, or works beside one"),
    **dict.fromkeys(mutants_errands.MUTANTS, "nobody dies in a verify or a redrive here, or works beside one"),
}
OWN: Final[Mapping[str, Mutant]] = {}
MUTANTS: Final[Mapping[str, Mutant]] = {
    **{name: one.mutant for name, one in OF_SIMULATOR.items() if name not in ELSEWHERE},
    **OWN,
}


@contextmanager
def applied(name: str) -> Iterator[None]:
    """The product without an invariant: rules are made anew, because they remember what was computed of them."""
    made.cache_clear()
    try:
        with MUTANTS[name]():
            yield
    finally:
        made.cache_clear()


def caught(name: str, first: int, count: int) -> Failed | None:
    """The first history that catches a mutant."""
    with applied(name):
        return next(failures(first, count), None)


def report(first: int, count: int, names: Iterable[str] = (), workers: int | None = None) -> int:
    """Print for each mutant the history at which it is caught. Returns 1 if one survives."""
    asked = list(names) or list(MUTANTS)
    survivors = 0
    began = time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        for name, failed in zip(
            asked, pool.map(caught, asked, [first] * len(asked), [count] * len(asked)), strict=True
        ):
            where = (
                f"{(failed.number or 0) - first + 1:>6}  {failed.reason.splitlines()[-1][:90]}"
                if failed
                else "survives"
            )
            print(f"{name:46} {where}", flush=True)
            survivors += failed is None
    print(f"{len(asked) - survivors} of {len(asked)} caught in {time.monotonic() - began:.0f} s")
    return 1 if survivors else 0
