"""The marks of books. A worker writes a mark before the first entry, and sets it complete when every entry exists. It
reads a mark before and after the totals that the mark covers.

Invariant: a rule uses a total or a rank only if the mark was complete before the read, and is the same after it. A mark
that is read only afterwards may have become complete since, while the total was read half full. A mark that is read
only before may be outdated: another version of the rule may have begun to book in the total since. A mark of books that
began again, and are complete again, says nothing about a total that was read in between.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final

from sync_rules.model.errors import StoreError
from sync_rules.model.values import Item
from sync_rules.model.writes import Put, Result, Status
from sync_rules.pipeline.requests import Apply, Found, Read, Scan, Work, read_all
from sync_rules.rules.books import Books
from sync_rules.rules.families import PartRule, TargetRule
from sync_rules.rules.ledger import is_suitable, make_ledger_key
from sync_rules.rules.ruleset import Rules

TRIES_MAX: Final = 5
TAKEN: Final = "BooksTaken"  # another version of the rule keeps beginning its own books under the same name
WAITING_NAMED_MAX: Final = 3
LOOKED_AT_MAX_ITEMS: Final = 100  # of a table that may be empty


def read_marks(books: Iterable[Books]) -> Work[dict[Books, Found]]:
    """Read the mark of each of these books, strongly consistent."""
    wanted = dict.fromkeys(books)
    found = yield from read_all(one.mark for one in wanted)
    return {one: found[one.mark] for one in wanted}


def begin_books(books: Iterable[Books], *, restart: bool = False) -> Work[dict[Books, int | StoreError]]:
    """Write the mark of each of these books if it is missing or from another version. Return how often each was begun,
    or its StoreError. `restart`: also rewrite a mark of this version.
    """
    begun: dict[Books, int | StoreError] = {}
    for one, mark in (yield from read_marks(books)).items():
        begun[one] = mark if isinstance(mark, StoreError) else (yield from _begin(one, mark, restart=restart))
    return begun


def restart_books(books: Iterable[Books]) -> Work[dict[Books, StoreError]]:
    """Restart these books even if the mark is already theirs: perhaps no handler has kept them since. A backfill that
    runs does not complete them. Returns the books that could not be restarted, each with its error.
    """
    begun = yield from begin_books(books, restart=True)
    return {one: error for one, error in begun.items() if isinstance(error, StoreError)}


def _begin(books: Books, mark: Item | None, *, restart: bool) -> Work[int | StoreError]:
    begun = None if restart else books.count_starts(mark)
    for _ in range(TRIES_MAX):
        if begun is not None:
            break
        put = books.begin(mark)
        written = yield from _write(put)
        if isinstance(written, StoreError):
            return written
        mark = put.item if written.status is Status.WRITTEN else written.item
        begun = None if restart and written.status is Status.REFUSED else books.count_starts(mark)
    if begun is None:
        return StoreError(
            TAKEN,
            "another version of the rule keeps restarting its books: finish the deployment or rollback, then retry",
        )
    return begun


def finish_books(books: Books, begun: int) -> Work[bool]:
    """Mark books complete, unless they were restarted since they were begun this many times. Return True if they are
    complete now. Raise StoreError if the mark cannot be written.
    """
    for _ in range(TRIES_MAX):
        (mark,) = yield Read((books.mark,))
        if books.count_starts(mark) != begun or books.complete(mark):
            return books.complete(mark)
        written = yield from _write(books.finish(mark, begun))
        if isinstance(written, StoreError):
            raise written
    raise StoreError(TAKEN, "other processes keep changing the mark of the books: run the command again")


def _write(mark: Put) -> Work[Result | StoreError]:
    """The result of writing a mark: written or refused."""
    (result,) = yield Apply((mark,))
    known = result.status in (Status.WRITTEN, Status.REFUSED)
    return result if known else StoreError(result.reason, "sync-rules could not write the mark of the books")


def begin_all_books(rules: Rules, names: Container[str]) -> Work[dict[str, int]]:
    """Begin the books of the rules of these names. Returns how often each was begun. Raises StoreError."""
    wanted = {rule.name: books for rule, books in list_books(rules).items() if rule.name in names}
    begun: dict[str, int] = {}
    found = yield from begin_books(wanted.values())
    for name, books in wanted.items():
        known = found[books]
        if isinstance(known, StoreError):
            raise known
        begun[name] = known
    return begun


def finish_all_books(rules: Rules, begun: Mapping[str, int]) -> Work[int]:
    """Mark the books of these rules complete, except books that were restarted since. Returns the number of books that
    are newly complete. Raises StoreError.
    """
    finished = 0
    for rule, books in (yield from read_incomplete_books(rules)).items():
        if rule.name in begun:
            finished += yield from finish_books(books, begun[rule.name])
    return finished


def read_incomplete_books(rules: Rules) -> Work[dict[PartRule, Books]]:
    """The rules whose books are not complete. Raises StoreError when a mark cannot be read."""
    kept = list_books(rules)
    found: dict[PartRule, Books] = {}
    marks = yield from read_marks(kept.values())
    for rule, books in kept.items():
        mark = marks[books]
        if isinstance(mark, StoreError):
            raise mark
        if not books.complete(mark):
            found[rule] = books
    return found


def list_books(rules: Rules) -> dict[PartRule, Books]:
    """List the books of all rules that keep books, by the rule that writes the entries."""
    parts = [rule for rule in rules.rules.values() if isinstance(rule, PartRule)]
    return {rule: rule.books for rule in parts if rule.books is not None}


def list_rules_by_identity(rules: Rules) -> dict[str, PartRule]:
    """List the rules that keep books, by the identity of their books."""
    return {
        books.identity(rules.tables[books.mark.table], rule.source.table): rule
        for rule, books in list_books(rules).items()
    }


def find_books(rules: Rules, identity: str) -> Books | None:
    """Find books by the identity that another version of these rules gave them. Return None if these rules do not have
    their ledger table.
    """
    physical_name, partition, fingerprint, *_ = identity.split(" ")
    for table in rules.tables.values():
        if table.physical_name == physical_name and is_suitable(table):
            return Books(make_ledger_key(table, partition), fingerprint)
    return None


def finish_empty(rules: Rules) -> Work[tuple[PartRule, ...]]:
    """Begin all books, and mark the books complete that have neither a child nor an entry. Returns the rules whose
    books are not complete then. Call it when these rules are deployed, once the position in the stream is known: a
    child that comes later has a record. Raises StoreError.

    Books begin here even without an entry. A child that only a former version counts makes no entry here. If the
    former version comes back, its mark must not say complete.
    """
    found = yield from read_incomplete_books(rules)
    begun = yield from begin_all_books(rules, frozenset(rule.name for rule in found))
    left: list[PartRule] = []
    for rule, books in found.items():
        if not ((yield from _is_surely_empty(rule, rules)) and (yield from finish_books(books, begun[rule.name]))):
            left.append(rule)
    return tuple(left)


def _is_surely_empty(rule: PartRule, rules: Rules) -> Work[bool]:
    """True if one look is enough to say that there is neither a child nor an entry, nor an item that the rules make."""
    shown = (one for one in rules.rules.values() if isinstance(one, TargetRule) and one.books == rule.books)
    made = (one.target for one in shown if one.makes)
    for entity in dict.fromkeys((rule.source, rule.target, *made)):
        page = yield Scan(entity.table.name, LOOKED_AT_MAX_ITEMS, consistent=True)
        keys = (entity.table.key_of(item) for item in page.items)
        if page.cursor is not None or any(key is not None and rules.entity_of(key) is entity for key in keys):
            return False
    return True


def describe_doubts(titles: Iterable[str]) -> tuple[str, ...]:
    """Describe, in a sentence for each rule, books whose mark says complete although perhaps no handler has kept them
    since.
    """
    return tuple(
        f"the books of rule {title} say that they are complete, and the checkpoint does not say that they were kept "
        "since: unless a handler had this rule until 24 hours ago or less, it may be wrong until this is done: "
        f"sync-rules verify --repair --rule {title}"
        for title in sorted(frozenset(titles))
    )


def describe_waits(titles: Iterable[str], options: str = "") -> tuple[str, ...]:
    """One sentence for all rules that wait, if any, with the command that ends it; `options` say where it works."""
    names = sorted(frozenset(titles))
    if not names:
        return ()
    command, more = f"sync-rules backfill --rule {names[0]}{options}", len(names) - WAITING_NAMED_MAX
    who = f"rule {names[0]} waits for a backfill: it"
    if len(names) > 1:
        command = f"sync-rules backfill --changed{options}"
        shown = ", ".join(names[:WAITING_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
        who = f"{len(names)} rules wait for a backfill ({shown}): each"
    return (f"{who} leaves numbers on parents as they are until {command}, or verify --repair if that fails",)
