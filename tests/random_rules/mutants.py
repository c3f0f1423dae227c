"""Mutants of the product that random rules must catch: those of the simulator that concern what they cover, and more.

`python -m tests.random_rules --mutants` says for each at which history it is caught, and which survive.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from sync_rules.audit import ledger_balance
from sync_rules.language import links
from sync_rules.model import where as where_module
from sync_rules.model.errors import ConditionError
from sync_rules.model.where import Where
from sync_rules.pipeline import ancestors
from sync_rules.pipeline.requests import Read
from sync_rules.rules import expiry
from sync_rules.rules.books import Books
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.kinds.tally import TallyRule
from sync_rules.rules.ledger import VERSION
from sync_rules.rules.ruleset import Rules
from tests.random_rules.grammar import made
from tests.random_rules.history import History
from tests.random_rules.runs import Failed, failures
from tests.random_rules.world import Batch, Streams, World, place_of
from tests.simulation import (
    mutants_backfill,
    mutants_errands,
    mutants_relay,
    mutants_work,
    mutants_writers,
    test_two_versions,
)
from tests.simulation.breaking import Mutant, answered
from tests.simulation.mutants import MUTANTS as OF_SIMULATOR

# Mutants that histories of this kind cannot show, and why. Each is caught in tests/simulation/test_mutants.py.
ELSEWHERE: Final[Mapping[str, str]] = {
    "source cached across batches": "the mutant asks for items by key only",
    "entry claimed: first come first served": "the mutant knows the attributes of its world by name",
    "refused delete not judged again": "what a refused delete leaves may have been attached since: nobody can tell here",
    **dict.fromkeys(
        mutants_backfill.MUTANTS, "a backfill runs alone here, or where no item changes, and is never judged"
    ),
    **dict.fromkeys(
        (name for name in mutants_writers.MUTANTS if not name.startswith("transact")),
        "nobody looks by fresh here, or is followed",
    ),
    **dict.fromkeys(mutants_relay.MUTANTS, "one history in 75 has so many targets in a table that workers share them"),
    **dict.fromkeys(mutants_errands.MUTANTS, "nobody dies in a verify or a redrive here, or works beside one"),
}


# ---------------------------------------------------------------- mutants of what only random rules cover
def condition_false() -> Any:
    """Mutant: a condition that cannot be evaluated does not hold."""
    original = Where.holds

    def holds(where: Any, source: Any, target: Any) -> bool:
        try:
            return original(where, source, target)
        except ConditionError:
            return False

    return patch.object(Where, "holds", holds)


def comparison_fails() -> Any:
    """Mutant: a comparison of a text with a number makes the whole condition false."""
    original, plain_comparator = Where.holds, where_module._Interpreter.visit_comparator

    def visit_comparator(interpreter: Any, node: Any, value: Any) -> Any:
        left, right = (interpreter.visit(child, value) for child in node["children"])
        if node["value"] not in ("eq", "ne") and isinstance(left, str) is not isinstance(right, str):
            raise NeverHeldError
        return plain_comparator(interpreter, node, value)

    def holds(where: Any, source: Any, target: Any) -> bool:
        try:
            return original(where, source, target)
        except NeverHeldError:
            return False

    stack = ExitStack()
    stack.enter_context(patch.object(where_module._Interpreter, "visit_comparator", visit_comparator))
    stack.enter_context(patch.object(Where, "holds", holds))
    return stack


class NeverHeldError(Exception):
    """Raised by a mutant's comparison."""


@contextmanager
def own_records_ignored() -> Iterator[None]:
    """Mutant: records of the pipeline's own writes are not looked at."""
    original = World._passes
    with patch.object(World, "_passes", lambda world, record: not world.by_pipeline and original(world, record)):
        yield


class EventuallyConsistentRead(Read):
    """A read that may answer with what was there some time ago."""


@contextmanager
def eventual_read() -> Iterator[None]:
    """Mutant: sources are read as they were a while ago."""
    original, read_sources = History._read, ancestors.read_sources

    def _read(history: History, request: Any, part: int) -> Any:
        if not isinstance(request, EventuallyConsistentRead) or history.calm:
            return original(history, request, part)
        past: list[Any] = [None, *history.world.past.get(place_of(request.keys[part]), [])]
        return past[-1 - history.choices.faults.pick(min(2, len(past)))]

    def ask(request: Any) -> Any:
        return (yield EventuallyConsistentRead(request.keys) if isinstance(request, Read) else request)

    with ExitStack() as stack:
        stack.enter_context(patch.object(History, "_read", _read))
        stack.enter_context(patch.object(ancestors, "read_sources", lambda *args: answered(read_sources(*args), ask)))
        yield


def versions_not_read() -> Any:
    """Mutant: a total whose version is no number is as it should be."""
    original = ledger_balance._slots_of

    def slots_of(rule: Any, total: Any) -> Any:
        return {at: one for at, one in original(rule, total).items() if at != VERSION}

    return patch.object(ledger_balance, "_slots_of", slots_of)


@contextmanager
def unsaid_index() -> Iterator[None]:
    """Mutant: an index is listed by though it may leave out some of the items."""
    original = links._complete

    def complete(*args: Any) -> Any:
        return replace(original(*args), missing=())

    with patch.object(links, "_complete", complete):
        yield


def moving_key_ignored() -> Any:
    """Mutant: a target that moves inside the index that lists it is not looked at. Maps around copies are, as ever."""
    original = LinkedRule.relevant_paths.func

    def relevant_paths(rule: Any) -> Any:
        return tuple(path for path in original(rule) if path not in mutants_work.index_keys(rule))

    return patch.object(LinkedRule, "relevant_paths", property(relevant_paths))


@contextmanager
def dead_letters_dropped() -> Iterator[None]:
    """Mutant: what was given up is never put through again."""
    over = Streams.over

    def dropping(streams: Streams, batch: Batch, failed: str | None, *, gives_up: bool) -> None:
        dead = list(streams.dead)
        over(streams, batch, failed, gives_up=gives_up)
        if gives_up:
            streams.dead = dead

    with patch.object(Streams, "over", dropping):
        yield


def digits_read() -> Any:
    """Mutant: a text of digits is a date."""
    original = expiry.moment_of

    def moment_of(value: Any) -> Any:
        text = value.get("S", "")
        return original({"N": text} if text.isdigit() else value)

    return patch.object(expiry, "moment_of", moment_of)


def mark_ignored() -> Any:
    """Mutant: numbers are written from books that nobody has called complete."""
    return patch.object(Books, "complete", lambda _books, mark: mark is not None)


def mark_missing_ignored() -> Any:
    """Mutant: books without any mark are complete."""
    complete = Books.complete
    return patch.object(Books, "complete", lambda books, mark: mark is None or complete(books, mark))


OWN: Final[Mapping[str, Mutant]] = {
    "own records ignored": own_records_ignored,
    "dead letters dropped": dead_letters_dropped,
    "moving index key ignored": moving_key_ignored,
    "eventually consistent source": eventual_read,
    "where: what cannot be evaluated is false": condition_false,
    "where: a text beside a number makes all false": comparison_fails,
    "books: damage is not made anew": lambda: patch.object(TallyRule, "rebuild_part", lambda *_args: None),
    "books: versions not read": versions_not_read,
    "books: mark ignored": mark_ignored,
    "books: no mark is a complete one": mark_missing_ignored,
    "books: mark set too early": test_two_versions.set_too_early,
    "books: mark read too late": test_two_versions.read_too_late,
    "books: mark not read again": test_two_versions.not_read_again,
    "books: mark of another fingerprint": test_two_versions.of_another_fingerprint,
    "books: not begun before the first entry": test_two_versions.not_begun_before_the_first_entry,
    "books: begun again meanwhile": test_two_versions.begun_again_meanwhile,
    "index: items outside are not reported": lambda: patch.object(Rules, "unlisted", lambda *_args, **_more: ()),
    "index: may leave out items": unsaid_index,
    "expiry: no date is left out in silence": lambda: patch.object(DeriveRule, "find_omission", lambda *_args: None),
    "expiry: a text of digits is a date": digits_read,
}
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
        found = (failed for failed in failures(first, count) if "Traceback" not in failed.reason)
        return next(found, None)  # an error of the mutant's own is no proof


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
