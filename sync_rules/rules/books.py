"""The books of a rule: all that it keeps in a ledger, and the mark that names the rule and says if they are complete.

Invariant: a rule shows a number only from complete books: books of this very rule, as it is now, that cover every
child. The books of a new or changed rule lack children until a backfill has read all of them. Until then the rule
leaves the number in the item alone.

The pipeline sets the mark before a rule writes its first entry, so that another version of the rule, after a rollback,
does not take mixed books for its own. `begun` counts the beginnings: a worker completes only books that did not begin
again meanwhile. A deployment restarts the books of a rule unless the deployment before had books of the same identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sync_rules.model.entities import Table
from sync_rules.model.items import ItemKey
from sync_rules.model.numbers import read_number
from sync_rules.model.values import Item
from sync_rules.model.writes import Put, expect_item

FINGERPRINT: Final = "fingerprint"  # of the rule that the books are of
COMPLETE: Final = "complete"
BEGUN: Final = "begun"  # how often the books were begun, by any rule
MARK: Final = (FINGERPRINT, COMPLETE, BEGUN)
BEGUN_MAX: Final = 10**15  # a mark that somebody else wrote may hold any number


@dataclass(frozen=True, slots=True)
class Books:
    """The books of one rule: the key of their mark, and the fingerprint of the rule."""

    mark: ItemKey
    fingerprint: str

    def identity(self, ledger: Table, counted: Table) -> str:
        """Return a text that identifies these books: ledger, key of the mark, rule, and the table of the counted
        items.
        """
        return f"{ledger.physical_name} {self.mark.values[0][2]!s} {self.fingerprint} {counted.physical_name}"

    def count_starts(self, mark: Item | None) -> int | None:
        """Return how often these books were started; None if the mark belongs to other books or has no number."""
        if mark is None or mark.get(FINGERPRINT) != {"S": self.fingerprint}:
            return None
        return _read_starts(mark) or None

    def complete(self, mark: Item | None) -> bool:
        """True if the mark says that these books are complete."""
        return mark is not None and self.count_starts(mark) is not None and mark.get(COMPLETE) == {"BOOL": True}

    def begin(self, mark: Item | None) -> Put:
        """Return the put that begins these books, whatever the mark says (None: there is no mark)."""
        return self._put(mark, _read_starts(mark or {}) + 1, complete=False)

    def finish(self, mark: Item | None, begun: int) -> Put:
        """Return the put that marks these books complete. `begun`: how often they were begun."""
        return self._put(mark, begun, complete=True)

    def _put(self, before: Item | None, begun: int, *, complete: bool) -> Put:
        values: Item = {
            FINGERPRINT: {"S": self.fingerprint},
            COMPLETE: {"BOOL": complete},
            BEGUN: {"N": str(begun)},
        }
        guard = expect_item(self.mark.values[0][0], before, [(name,) for name in MARK])
        return Put(self.mark, {**self.mark.attributes(), **values}, guard)


def _read_starts(mark: Item) -> int:
    number = read_number(mark.get(BEGUN))
    return int(number) if number is not None and 0 <= number < BEGUN_MAX else 0
