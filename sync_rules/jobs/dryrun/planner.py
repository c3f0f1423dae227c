"""A plan: a BackfillRun against a store that writes nothing, and the figures of what it would do.

Invariant: a plan is the same run as a backfill, so its writes are those of a backfill that follows at once. A sample
runs over some segments of each table; its figures are scaled up and called estimates. Memory is bounded: the plan keeps
only the heaviest sources and keys.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from threading import Lock
from typing import Final, Generic, TypeVar

from sync_rules.adapters.state import MemoryState
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, Supply, Wanted, accept_all, make_supplies
from sync_rules.jobs.dryrun.figures import Plan, PlannedWrite, RuleFigures, describe_written_links
from sync_rules.jobs.dryrun.store import DryStore, TriedWrite
from sync_rules.model.errors import StoreError
from sync_rules.model.items import REFUSALS, Failure, ItemKey, Outcome, classify_alteration
from sync_rules.model.values import Item, Path, get, has_overlap, is_same_value
from sync_rules.model.writes import Action, Check, Delete, Increment, Put, Status, Update
from sync_rules.pipeline.requests import Store
from sync_rules.rules.families import PartRule, TargetRule
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import WHOLE, Share

T = TypeVar("T")
ROOM: Final = 2_000  # things remembered after a cut; up to twice as many before
TOP: Final = 5
DOES: Final[Mapping[type[Action], str]] = {Update: "update", Put: "put", Delete: "delete", Increment: "add"}


class HeavyHitters(Generic[T]):
    """The heaviest things with their weights, in bounded memory. Each weight is at most `cut` too low; all are exact
    while `cut` is 0.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.cut = 0.0
        self._room = room
        self._weights: defaultdict[T, float] = defaultdict(float)

    def add(self, thing: T, weight: float = 1) -> None:
        self._weights[thing] += weight
        if len(self._weights) > 2 * self._room:
            least = heapq.nlargest(self._room + 1, self._weights.values())[-1]
            self.cut += least
            left = {thing: weight - least for thing, weight in self._weights.items() if weight > least}
            self._weights = defaultdict(float, left)

    def top(self, count: int) -> list[tuple[T, float]]:
        """List the heaviest things with their weights. Equal weights are sorted by their text."""
        return heapq.nsmallest(count, self._weights.items(), key=lambda pair: (-pair[1], str(pair[0])))


@dataclass(eq=False)
class Planner:
    """One plan, of the rules in `names`. `on_page` is called with the number of items processed, `on_write` with each
    item that would be written. `tables`, `wanted` and `share` limit the items; `workers` segments run at a time.
    `completes` are the rules whose books the backfill would complete; None means all.
    """

    rules: Rules
    names: frozenset[str]
    store: Store
    _: KW_ONLY
    tables: Collection[str] = ()
    wanted: Wanted = accept_all
    share: Share = WHOLE
    completes: frozenset[str] | None = None
    workers: int = 1
    stopping: Callable[[], bool] = lambda: False
    on_page: Callable[[int], None] = lambda _items: None
    on_write: Callable[[PlannedWrite], object] = lambda _write: None
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self._lock = Lock()
        self._names: frozenset[str] = frozenset()  # of the step
        self._first = True  # whether these are looked at for the first time
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._costs: defaultdict[str, float] = defaultdict(float)
        self._writers = _map_writers(self.rules, self.names)
        self._links = describe_written_links(self.rules)
        self._ended: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._writes = 0
        self._units: defaultdict[str, float] = defaultdict(float)
        self._fan_outs: HeavyHitters[tuple[str, ItemKey]] = HeavyHitters()
        self._partitions: HeavyHitters[ItemKey] = HeavyHitters()
        self._supplies = make_supplies(self.rules, self.share.segments, self.tables, self.share.numbers)
        self._dry = DryStore(self.store, self.rules, self.names, self._note, self.share)
        self._run = BackfillRun(
            Selection(self.rules, self.names, self._is_wanted),
            self._dry,
            self,
            MemoryState(),
            {},
            supplies=self._list_round_supplies,
            completes=self.names if self.completes is None else self.completes,
            audits=not self.share.is_sample,
            workers=self.workers,
            stopping=self.stopping,
            on_page=lambda totals: self.on_page(totals.items),
            sleep=self.sleep,
        )

    def run(self) -> Plan:
        """Process everything and return the plan. Raises StoreError if the plan was stopped, or something cannot be
        read.
        """
        done = self._run.run()
        self._dry.overlay.close()
        if not done:
            raise StoreError("PlanNotFinished", next(iter(self._run.left.values()), ""))
        share = self.share
        factor = share.segments / len(share.numbers) if share.is_sample else 1
        return Plan(
            {name: self._make_figures(name).times(factor) for name in sorted(self.names)},
            self._run.totals.items * factor,
            self._writes * factor,
            {table: units * factor for table, units in sorted(self._dry.reads.items())},
            {table: units * factor for table, units in sorted(self._units.items())},
            [(pair, count) for pair, count in self._fan_outs.top(TOP) if count > 1],
            self._partitions.top(TOP),
            share,
        )

    def _make_figures(self, name: str) -> RuleFigures:
        came: Counter[Outcome] = Counter()
        for (rule, outcome), count in self._run.totals.outcomes.items():
            came[outcome] += count if rule == name else 0
        return RuleFigures(
            looked_at=came.total(),
            to_write=came[Outcome.COPIED] + came[Outcome.DELETED],
            right=came[Outcome.RIGHT],
            kept=came[Outcome.KEPT],
            parked=came[Outcome.PARKED] + came[Outcome.FAILED],
            refused=sum(came[outcome] for outcome in REFUSALS),
            write_units=self._costs[name],
            reasons=self._reasons[name],
            alterations=self._run.totals.count_alterations(frozenset([name])),
            ended=self._ended[name],
        )

    # ------------------------------------------------------------ called by the run
    def park(self, failure: Failure) -> None:
        """Count the reason of a failure; a plan writes no failure record."""
        with self._lock:
            self._reasons[failure.rule][failure.reason] += 1

    def _list_round_supplies(self, names: frozenset[str]) -> Sequence[Supply]:
        """The supplies of the next round of these rules: of a new step, or of the same, whose last round counts what is
        parked and why.
        """
        self._first = names != self._names
        self._names = names
        for name in names:
            self._reasons[name].clear()
        return self._supplies(names)

    def _is_wanted(self, key: ItemKey, item: Item) -> bool:
        wanted = self.wanted(key, item)
        entity = self.rules.entity_of(key) if wanted and self._first else None
        for rule in self.rules.into_target(entity) if entity is not None else ():
            if rule.name in self._names and rule.source not in rule.owned_entities and not rule.pull_only:
                with self._lock:
                    for source in dict.fromkeys(rule.source_keys(item)):
                        self._fan_outs.add((rule.name, source))
        return wanted

    def _note(self, tried: TriedWrite) -> None:
        """Count a write. The store calls it for one write at a time."""
        number = self._writes
        self._writes += tried.status is Status.WRITTEN
        owners = [self._find_owners(cost.action) for cost in tried.costs]
        everyone = sorted({name for names in owners for name in names})
        for cost, names in zip(tried.costs, owners, strict=True):
            key = cost.action.key
            self._units[key.table] += cost.item + cost.indexes
            self._partitions.add(ItemKey(key.table, key.values[:1]), cost.item)
            paying = list(names) or everyone  # a check is made for all that is written with it
            for name in paying:
                self._costs[name] += (cost.item + cost.indexes) / len(paying)
            if tried.status is Status.WRITTEN:
                for name, paths in names.items():
                    pairs = {path: (get(tried.before[key], path), get(tried.after[key], path)) for path in paths}
                    made = {
                        path: classify_alteration(old, new)
                        for path, (old, new) in pairs.items()
                        if not is_same_value(old, new)
                    }
                    for path, ends in self._links.get(name, {}).items():
                        had, has = (get(item or {}, path) for item in (tried.before[key], tried.after[key]))
                        if had is not None and has is None:
                            self._ended[name].update(list(ends))
                    self.on_write(PlannedWrite(number, name, DOES[type(cost.action)], key, paths, made))

    def _find_owners(self, action: Action) -> dict[str, tuple[Path, ...]]:
        entity = self.rules.entity_of(action.key)
        if entity is None or isinstance(action, Check):
            return {}
        written, writers = _list_written_paths(action), self._writers[entity.name]
        if isinstance(action, Delete) and entity.made:
            return {name: tuple(paths) for name, paths in writers.items() if self.rules.rules[name].makes}
        if not isinstance(action, Update) and not entity.made:  # whole items are parts
            parts = {name: rule for name in writers if isinstance(rule := self.rules.rules[name], PartRule)}
            return {name: rule.mask_paths(written) for name, rule in parts.items()}
        mine = {
            name: self._mask_paths(
                name, action, [path for path in written if any(has_overlap(path, own) for own in paths)]
            )
            for name, paths in writers.items()
        }
        return {name: paths for name, paths in mine.items() if paths}

    def _mask_paths(self, name: str, action: Action, paths: Sequence[Path]) -> tuple[Path, ...]:
        rule, values = self.rules.rules[name], dict(action.sets) if isinstance(action, Update) else {}
        return (
            rule.mask_paths({path: values.get(path) for path in paths})
            if isinstance(rule, TargetRule)
            else tuple(paths)
        )


def _list_written_paths(action: Action) -> tuple[Path, ...]:
    match action:
        case Update():
            pairs = (*action.sets, *action.adds, *action.discards)
            return tuple(dict.fromkeys((*(path for path, _ in pairs), *action.removes)))
        case Put():
            keys = action.key.attributes()
            return tuple((name,) for name in action.item if name not in keys)
        case Increment():
            return tuple((name,) for name, _ in action.amounts)
    return ()


def _map_writers(rules: Rules, names: frozenset[str]) -> dict[str, dict[str, set[Path]]]:
    found: defaultdict[str, dict[str, set[Path]]] = defaultdict(dict)
    for rule in (rules.rules[name] for name in sorted(names)):
        if isinstance(rule, TargetRule):
            found[rule.target.name][rule.name] = set(rule.copies)
        for node in rule.nodes():
            entity, path = node.writes
            found[entity.name].setdefault(rule.name, set()).add(path)
        for entity in rule.owned_entities:  # marks of books among them
            found[entity.name].setdefault(rule.name, set())
    return found
