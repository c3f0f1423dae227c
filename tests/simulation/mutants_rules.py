"""Mutants of what histories of random rules cover: conditions, defaults of the language, books of two versions, dates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from sync_rules.audit import ledger_balance
from sync_rules.jobs.backfill import backfill_run
from sync_rules.language import links
from sync_rules.model import where as where_module
from sync_rules.model.errors import ConditionError
from sync_rules.model.where import Where
from sync_rules.pipeline import acceptance, consumer, parts, reconcile, sources
from sync_rules.rules import expiry
from sync_rules.rules.books import Books
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.kinds.tally import TallyRule
from sync_rules.rules.ledger import VERSION
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules
from tests.simulation.breaking import Mutation, Work, replacing
from tests.simulation.worlds import among, small

RANDOM = among("", "random")
VERSIONS = small("versions", "count", "ranked", "values")


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
    stack.enter_context(patch.object(where_module._INTERPRETER, "_method_cache", {}))  # it may hold the original
    stack.enter_context(patch.object(Where, "holds", holds))
    return stack


class NeverHeldError(Exception):
    """Raised by a mutant's comparison."""


def versions_not_read() -> Any:
    """Mutant: a total whose version is no number is as it should be."""
    original = ledger_balance._list_slots

    def slots_of(rule: Any, total: Any) -> Any:
        return {at: one for at, one in original(rule, total).items() if at != VERSION}

    return patch.object(ledger_balance, "_list_slots", slots_of)


@contextmanager
def unsaid_index() -> Iterator[None]:
    """Mutant: an index is listed by though it may leave out some of the items."""
    original = links._complete

    def complete(*args: Any) -> Any:
        return replace(original(*args), missing=())

    with patch.object(links, "_complete", complete):
        yield


def digits_read() -> Any:
    """Mutant: a text of digits is a date."""
    original = expiry.parse_moment

    def moment_of(value: Any) -> Any:
        text = value.get("S", "")
        return original({"N": text} if text.isdigit() else value)

    return patch.object(expiry, "parse_moment", moment_of)


def mark_ignored() -> Any:
    """Mutant: a rule writes numbers from books whose mark does not call them complete."""
    return patch.object(Books, "complete", lambda _books, mark: mark is not None)


def mark_missing_ignored() -> Any:
    """Mutant: books without any mark are complete."""
    complete = Books.complete
    return patch.object(Books, "complete", lambda books, mark: mark is None or complete(books, mark))


# ---------------------------------------------------------------- books of two versions
def set_too_early() -> Any:
    """The mark is complete before the first child is looked at."""
    begin_all, finish_all = backfill_run.begin_all_books, backfill_run.finish_all_books

    def early(rules: Any, names: Any) -> Work:
        begun = yield from begin_all(rules, names)
        yield from finish_all(rules, begun)
        return begun

    return patch.object(backfill_run, "begin_all_books", early)


def read_too_late() -> Any:
    """The mark is read after the totals alone."""
    read_marks = sources.read_marks

    def late(books: Any) -> Work:
        return (
            {one: one.finish(None, 1).item for one in books}
            if isinstance(books, dict)
            else (yield from read_marks(books))
        )

    return patch.object(sources, "read_marks", late)


def not_read_again() -> Any:
    """The mark is read before the totals alone."""
    read_marks = sources.read_marks

    def once(books: Any) -> Work:
        return (yield from read_marks(books)) if isinstance(books, dict) else {}

    return patch.object(sources, "read_marks", once)


def begun_unnoticed() -> Any:
    """The mark does not say how often the books were begun."""
    read_marks = sources.read_marks

    def read(books: Any) -> Work:
        marks = yield from read_marks(books)
        return {one: {**mark, "begun": {"N": "1"}} if isinstance(mark, dict) else mark for one, mark in marks.items()}

    return patch.object(sources, "read_marks", read)


def of_another_fingerprint() -> Any:
    """The mark of any version counts."""
    return patch.object(Books, "count_starts", lambda _self, mark: None if mark is None else int(mark["begun"]["N"]))


def not_begun_before_the_first_entry() -> Any:
    """A handler books without a look at the mark."""

    def begin(books: Any) -> Work:
        return dict.fromkeys(books, 1)
        yield

    return patch.object(parts, "begin_books", begin)


MIXED = small("mixed", "copy", how="often-")
NOTHING: Any = lambda *_given: None  # noqa: E731
NEW = small("new", "copy")

MUTANTS: Final[Mapping[str, Mutation]] = {
    "versions: an unknown rule is acknowledged in silence": Mutation(
        replacing(consumer, "list_unknown_rules", lambda *_: ()), MIXED
    ),
    "versions: messages carry the new name of a rule": Mutation(
        replacing(Rule, "message_name", property(lambda rule: rule.name)), MIXED
    ),
    "acceptance: targets are not protected": Mutation(replacing(reconcile, "protect_target", NOTHING), NEW),
    "acceptance: parts are not protected": Mutation(replacing(parts, "protect_part", NOTHING), small("new", "collect")),
    "acceptance: every old image explains every value": Mutation(
        replacing(acceptance, "_can_make_values", lambda *_given: True), NEW
    ),
    "acceptance: what is there counts as set": Mutation(replacing(acceptance, "get", NOTHING), NEW),
    "where: what cannot be evaluated is false": Mutation(condition_false, RANDOM),
    "where: a text beside a number makes all false": Mutation(comparison_fails, among("", "where-either")),
    "books: damage does not restart them": Mutation(
        lambda: patch.object(TallyRule, "rebuild_part", lambda *_args: None),
        small("damage", "count"),
    ),
    "books: versions not read": Mutation(versions_not_read, among("damage", "booked-groups")),
    "books: mark ignored": Mutation(mark_ignored, VERSIONS),
    "books: no mark is a complete one": Mutation(mark_missing_ignored, VERSIONS),
    "books: mark set too early": Mutation(set_too_early, VERSIONS),
    "books: mark read too late": Mutation(read_too_late, VERSIONS),
    "books: mark not read again": Mutation(not_read_again, VERSIONS),
    "books: begun again unnoticed": Mutation(begun_unnoticed, VERSIONS),
    "books: mark of another fingerprint": Mutation(of_another_fingerprint, among("versions", "booked")),
    "books: not begun before the first entry": Mutation(not_begun_before_the_first_entry, among("versions", "valued")),
    "index: items outside are not reported": Mutation(
        lambda: patch.object(Rules, "list_blind_rules", lambda *_args, **_more: ()), RANDOM
    ),
    "index: may leave out items": Mutation(
        unsaid_index, RANDOM, raises=True
    ),  # the oracle refuses the file, as `check` should
    "expiry: no date is left out in silence": Mutation(
        lambda: patch.object(DeriveRule, "find_omission", lambda *_args: None), among("", "expiry")
    ),
    "expiry: a text of digits is a date": Mutation(digits_read, small("", "derive")),
}
