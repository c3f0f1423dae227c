"""A Job from a BackfillRequest: the tables, the items to process, and the supplies of their keys.

Invariant: a request that does not fit is refused before any work. A rule counts as applied only if all its items were
processed. Notices name what will not be processed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sync_rules.adapters import retries
from sync_rules.adapters.preflight import describe_table, require_tables, survey_tables
from sync_rules.jobs.backfill.page import Selection, Supplies, Wanted, accept_all, make_supplies
from sync_rules.jobs.backfill.scope import Scope, join_names, list_titles
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import Item
from sync_rules.model.where import compile_where
from sync_rules.pipeline.books import list_books
from sync_rules.rules import fingerprints
from sync_rules.rules.rule import let_in
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import list_swept_tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True)
class BackfillRequest:
    """The items to process: all, or those of one `table`, or those that match `where`. `segments` is the number of
    segments of each scan.
    """

    segments: int
    table: str | None = None
    where: str | None = None


@dataclass(frozen=True)
class Job:
    """A backfill that is ready to run. `items` is DynamoDB's item count of each table, up to six hours old."""

    selection: Selection
    supplies: Supplies
    scope: Scope
    items: Mapping[str, int]

    def estimate(self, names: frozenset[str]) -> int:
        """Return the number of items to process for these rules."""
        return sum(self.items.get(table.name, 0) for table in list_swept_tables(self.selection.rules, names))

    @property
    def covered_titles(self) -> frozenset[str]:
        """The names (as in the rules file) of the rules that this backfill processes for every item. Empty with
        `--table` or `--where`.
        """
        rules, names = self.selection.rules, self.selection.names
        return list_titles(rules, names) - list_titles(rules, names - self.completes)

    @property
    def completes(self) -> frozenset[str]:
        """The rules whose items are all processed. Their books are complete afterwards."""
        if self.scope.table is not None or self.scope.where is not None:
            return frozenset()
        return frozenset(name for name in self.selection.names if self._list_table_names(name) <= self.items.keys())

    def _list_table_names(self, name: str) -> set[str]:
        return {table.name for table in list_swept_tables(self.selection.rules, frozenset([name]))}

    def notices(self) -> Iterator[str]:
        """List sentences about items that will not be processed, and about reads that other rules cause."""
        here, rules = self.items.keys(), self.selection.rules
        if self.scope.table is not None:
            names = list_titles(
                rules, (name for name in self.selection.names if not self._list_table_names(name) <= here)
            )
            if names:
                of = f"table{'s' if len(here) > 1 else ''} {join_names(here)}"
                yield f"only items of {of} are processed; these rules keep items elsewhere too: {join_names(names)}"
        yield from self._list_shared_ledgers()

    def _list_shared_ledgers(self) -> Iterator[str]:
        """A sentence for each ledger that is read whole, although other rules keep items there too."""
        sharing: dict[str, set[tuple[bool, str]]] = {}
        for rule in list_books(self.selection.rules):
            sharing.setdefault(rule.target.table.name, set()).add((rule.name in self.selection.names, rule.title))
        for name, users in sharing.items():
            mine, others = ({title for selected, title in users if selected is own} for own in (True, False))
            if mine and others and name in self.items:
                yield (
                    f"table {name} is read whole, about {self.items[name]:,} items, because entries of "
                    f"{join_names(mine)} may be of deleted items. It also holds the entries of {join_names(others)}: "
                    "a rule with a `ledger` of its own reads no others"
                )


def make_job(client: DynamoDBClient, rules: Rules, names: frozenset[str], request: BackfillRequest) -> Job:
    """Make the backfill of these rules.

    Raises:
        UserError: if tables or indexes do not fit the rules, or the selection does not exist.
        StoreError: if DynamoDB cannot describe the tables.
    """
    require_tables(client, rules.only(sorted(names)), streams=False)
    found = {table.name: _describe(client, rules, table.name) for table in list_swept_tables(rules, names)}
    if request.table is not None:
        if request.table not in rules.tables:
            raise UserError(explain_unknown_name("table", request.table, rules.tables))
        if request.table not in found:
            raise UserError(f"the selected rules keep nothing in table {request.table}, but in {join_names(found)}")
        found = {request.table: found[request.table]}
    prints = fingerprints.compute_rule_fingerprints(rules)
    read = {side.table.name for name in names for side in (rules.rules[name].source, rules.rules[name].target)}
    tables = {name: _describe(client, rules, name) for name in sorted(read - found.keys())} | found
    scope = Scope(
        {rules.rules[name].title: prints[rules.rules[name].title] for name in sorted(names)},
        {name: f"{one.get('TableArn', '')} {one.get('TableId', '')}".rstrip() for name, one in tables.items()},
        request.segments,
        request.table,
        request.where,
    )
    selection = Selection(rules, names, accept_all if request.where is None else parse_where(request.where, rules))
    items = {name: int(one.get("ItemCount", 0)) for name, one in found.items()}
    return Job(selection, make_supplies(rules, request.segments, tuple(found)), scope, items)


def list_unseen_changes(client: DynamoDBClient, rules: Rules, names: frozenset[str]) -> Iterator[str]:
    """List a line for each table without a stream that the handler reads: its changes during the backfill are missed.
    Raises StoreError.
    """
    for problem in survey_tables(client, rules.only(sorted(names))).problems:
        yield f"changes made meanwhile are not seen: {problem}"


def parse_where(where: str, rules: Rules) -> Wanted:
    """Parse a condition over the fields of an entity into a filter of items. Raises UserError if it is not a
    condition.
    """
    try:
        condition = compile_where(where, "")  # no field is called so: every name is the item's
    except UserError as error:
        raise UserError(f"--where: {error}") from error

    def holds(key: ItemKey, item: Item) -> bool:
        entity = rules.entity_of(key)
        return entity is not None and bool(let_in(condition, item, entity))  # a look more than asked for does no harm

    return holds


def _describe(client: DynamoDBClient, rules: Rules, name: str) -> Mapping[str, Any]:
    found = describe_table(client, rules.tables[name], retries.make_retry())
    assert found is not None, "it was there a moment ago"
    return found
