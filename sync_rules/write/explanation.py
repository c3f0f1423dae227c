"""The requests that a write would make, and their reasons: for applications that build them by hand, in any language.

Invariant: nothing is written. The attempt is that of `transact`, on the items of the tables, or on given ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.plain_client import plain
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item, Path, overlaps, same, show_path
from sync_rules.model.writes import Delete, Put, Result, Test, Update
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.requests import NULL_PORTS, Apply, List, Page, Read, Scan, Store, World, run_work
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Actions, paths_of
from sync_rules.write.composer import Planned
from sync_rules.write.consequences import Left
from sync_rules.write.document import WriteDocument
from sync_rules.write.request import transact_items
from sync_rules.write.transaction import Transact

DEADLINE_SECONDS: Final = 60.0  # of the reads
WHOLE: Final = "the whole item"
STANDS: Final = {Test.ABSENT: "absent", Test.EXISTS: "there"}
Reasons = Mapping[tuple[str, ...], list[str]]  # the titles of rules, and the paths of an item for them


@dataclass(frozen=True, slots=True)
class ExplainedAction:
    """One action of a transaction: its verb, its key, and the application's verb in `own` if it is the application's.
    `writes` are the paths that rules write with it, `compares` those that it compares with the image. `stands` is
    "there" or "absent" if it only checks that the item exists, or does not.
    """

    verb: str
    key: ItemKey
    own: str
    writes: Reasons
    compares: Reasons
    stands: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A write as `transact` makes it: its reads as operations with parameters, its actions, and each one's reasons."""

    reads: tuple[tuple[str, Mapping[str, Any]], ...]
    actions: tuple[Mapping[str, Any], ...]
    steps: tuple[ExplainedAction, ...]
    left: tuple[Left, ...]


def explain_write(document: WriteDocument, rules: Rules, client: Any = None) -> Explanation:
    """The requests of a write. They read through this client; without one, the tables hold the items of the document
    and nothing else, and books are complete.

    Raises:
        WriteError: as `transact` does.
        StoreError: when a read failed.
    """
    unanswered: Any = _Unanswered()  # of a client, what an attempt needs
    listing = DynamoStore(unanswered, rules.tables, write_mode="update")
    tables: Store = _fill_tables(document, rules)
    if client is not None:
        tables = DynamoStore(plain(client), rules.tables, write_mode="update")
    tx = Transact(rules, unanswered, raw=document.raw, require=document.require, deadline_seconds=DEADLINE_SECONDS,
                  store=_ListedStore(listing, tables))  # fmt: skip
    document.add_to(tx)
    attempt = tx.first_attempt()
    items = transact_items(attempt.planned, rules.tables)
    entities = {entity.name for one in attempt.planned if (entity := rules.entity_of(one.action.key)) is not None}
    steps = (
        _RuleReasons(rules, entities, planned).step(next(iter(item)))
        for planned, item in zip(attempt.planned, items, strict=True)
    )
    return Explanation(tuple(unanswered.asked), tuple(items), tuple(steps), attempt.left)


def _fill_tables(document: WriteDocument, rules: Rules) -> MemoryStore:
    store = MemoryStore(rules.tables)
    run_work(finish_empty(rules), World(store, NULL_PORTS, NULL_PORTS))
    actions = Actions(rules, raw=document.raw)
    for entity, item in document.items:
        values = actions.values(item)
        _, key = actions.key_of(entity, values)
        store.put(key.table, {**values, **key.attributes()})
    return store


class _Unanswered:
    """A client that lists the requests, and finds nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    def get_item(self, **parameters: Any) -> Any:
        self.asked.append(("GetItem", parameters))
        return {}

    def batch_get_item(self, **parameters: Any) -> Any:
        self.asked.append(("BatchGetItem", parameters))
        return {"Responses": {}}

    def query(self, **parameters: Any) -> Any:
        self.asked.append(("Query", parameters))
        return {"Items": []}


class _ListedStore:
    """A store that only reads. An unanswered client lists the requests that the reads are."""

    def __init__(self, listing: DynamoStore, answering: Store) -> None:
        self._listing = listing
        self._answering = answering

    def read(self, request: Read) -> tuple[Item | None, ...]:
        self._listing.read(request)
        return self._answering.read(request)

    def list(self, request: List) -> Page:
        self._listing.list(request)
        return self._answering.list(request)

    def scan(self, request: Scan) -> Page:
        return self._answering.scan(request)

    def apply(self, request: Apply) -> tuple[Result, ...]:
        raise AssertionError(f"an explanation writes nothing, and not {request}")


# ---------------------------------------------------------------- reasons
class _RuleReasons:
    """The rules that an action is for: those between its entity and another entity of the transaction; if none of these
    has to do with it, any rule of its entity.
    """

    def __init__(self, rules: Rules, entities: Iterable[str], planned: Planned) -> None:
        self._planned = planned
        self._entity = rules.entity_of(planned.action.key)
        concern = () if self._entity is None else rules.concern(self._entity).rules
        every = tuple(rule for rule in concern if rule.swept_entities)
        names = {*entities}
        near = tuple(rule for rule in every if rule.source.name in names and rule.target.name in names)
        self._choices = (near, every)

    def step(self, verb: str) -> ExplainedAction:
        own, action = self._planned.own, self._planned.action
        key = action.key.attributes()
        paths = [one.path for one in action.guard if one.path[0] not in key]
        tested = {one.test for one in action.guard} & STANDS.keys() if not paths else set()
        compares = self._group_paths(lambda path: self._readers(path) or self._keepers(path), paths)
        if tested:
            near, every = self._choices
            compares = {tuple(dict.fromkeys(rule.title for rule in near or every)): []}
        stands = STANDS[min(tested, key=lambda one: one.value)] if tested else ""
        return ExplainedAction(verb, action.key, "" if own is None else own.verb, self._writes(), compares, stands)

    def _writes(self) -> Reasons:
        """The paths that rules write, by the rules that keep them."""
        action, own = self._planned.action, self._planned.own
        if isinstance(action, Update):
            mine = () if own is None else own.paths
            paths = [path for path in paths_of(action) if not any(overlaps(path, one) for one in mine)]
            return self._group_paths(self._keepers, paths)
        if isinstance(action, Put) and own is not None and own.verb == "put":
            names = [
                name for name in {**own.item, **action.item} if not same(own.item.get(name), action.item.get(name))
            ]
            return self._group_paths(self._keepers, [(name,) for name in names])
        if isinstance(action, Put) or (isinstance(action, Delete) and own is None):
            return {tuple(dict.fromkeys(self._keepers(None))): [WHOLE]}
        return {}

    def _group_paths(self, find: Callable[[Path], Iterable[str]], paths: Iterable[Path]) -> Reasons:
        found: dict[tuple[str, ...], list[str]] = {}
        for path in dict.fromkeys(paths):
            found.setdefault(tuple(dict.fromkeys(find(path))), []).append(show_path(path))
        return found

    def _keepers(self, path: Path | None) -> list[str]:
        """The rules that keep this path of the item, or all of it. No rule has a total as its target."""
        near, every = self._choices
        for rules in (near, every):
            mine = [rule for rule in rules if rule.target is self._entity]
            exact = [rule for rule in mine if path is not None and any(overlaps(path, copy) for copy in rule.copies)]
            if exact or mine:
                return [rule.title for rule in exact or mine]
        return [rule.title for rule in near or every]

    def _readers(self, path: Path) -> list[str]:
        for rules in self._choices:
            found = [rule.title for rule in rules if self._reads(rule, path)]
            if found:
                return found
        return []

    def _reads(self, rule: Rule, path: Path) -> bool:
        if self._entity is None or rule.source is not self._entity:
            return False
        watched = rule.watches(self._entity)
        return watched is None or any(overlaps(path, one) for one in watched)
