"""Begins a run as the keeper of its rules' books: those that it did not keep until now are begun anew.

Invariant: books that were not kept are begun anew before the checkpoint lists them, and books that are kept no more are
out of the list before the first record is read. So a rule that comes back, after it was removed, renamed or moved to
another ledger, never takes books for complete in which items are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sync_rules.model.errors import StoreError
from sync_rules.pipeline.books import begin_anew, doubts, finish_empty, identities, titles_complete, waits
from sync_rules.pipeline.requests import World, run_work
from sync_rules.rules.ruleset import Rules


def take_over(
    rules: Rules,
    world: World,
    known: Collection[str] | None,
    note: Callable[[list[str]], None],
    options: str = "",
) -> tuple[str, ...]:
    """Begin books anew whose identities are not `known`, `note` those that are kept now, and mark books complete whose
    tables are empty. Returns sentences for the user. Without a list it is not known who kept complete books: they stay
    complete, and a sentence for each says so. `options` of a backfill say where it works. Raises StoreError when it
    cannot restart books.
    """
    kept = identities(rules)
    try:
        doubtful = run_work(titles_complete(rules), world) if known is None else frozenset()
    except StoreError as error:
        return (_unread(error),)
    if known is not None:
        new = [rule.books for identity, rule in kept.items() if identity not in known and rule.books is not None]
        for failed in run_work(begin_anew(new), world).values():
            raise failed
    note(sorted(kept))
    try:
        left = run_work(finish_empty(rules), world)
    except StoreError as error:
        return (*doubts(doubtful), _unread(error))
    return (*doubts(doubtful), *waits((rule.title for rule in left), options))


def _unread(error: StoreError) -> str:
    return f"the books of the ledger could not be read: {error}"
