"""Checks of every write of the pipeline, of the state when all is quiet, and of the cost.

Invariant: an oracle never asks the core. It keeps its own picture of every item from the records of the store and
states each rule as its `Fact`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from sync_rules.model.values import AttributeValue, Item, Path, get
from tests.simulation.facts import Configuration, Fact, Place
from tests.simulation.truths import Value, completed, put, touched, wrong

AppChange = tuple[Place, Item | None, Item | None]


class DivergenceError(AssertionError):
    """Something that must hold does not."""


def misplaced(paths: Iterable[Path], item: Item) -> bool:
    """True if a value that is not a map stands where one of these paths needs one."""
    roots = (item.get(path[0]) for path in paths if len(path) > 1)
    return any(root is not None and "M" not in root for root in roots)


def number(value: AttributeValue) -> int:
    return int(value["S"].rsplit("#", 1)[-1])


class Watch:
    """The picture of all items, their past, and the checks of every write."""

    def __init__(self, configuration: Configuration, *, unique: bool = False) -> None:
        self.facts = configuration.facts
        self.exact_cost, self.cost_each = configuration.exact_cost, configuration.cost_each
        self.unique = unique
        self.clock = 0
        self.items: dict[Place, Item] = {}
        self.past: dict[Place, list[tuple[int, Item | None]]] = {}
        self.removed: dict[Place, int] = {}
        self.heard: dict[Place, list[tuple[Item | None, Item | None]]] = {}  # an item before and after, by its records
        self.unheard: set[Place] = set()  # whose last change left no record
        self.untouched = True  # nobody put his hand into what is the pipeline's own, or it was mended since
        self.attached: dict[tuple[Place, str], int] = {}
        self.truths = tuple(truth.watching(self) for truth in configuration.truths)

    def load(self, place: Place, item: Item) -> None:
        """An item that was there before the history began."""
        self.items[place] = item
        self.past[place] = [(0, item)]

    def of(self, place: Place) -> Iterator[Fact]:
        return (fact for fact in self.facts if fact.target == place[0] and fact.applies(place))

    # ------------------------------------------------------------ every write
    def changed(self, place: Place, old: Item | None, new: Item | None, *, by_pipeline: bool) -> None:
        """A record of the store. Raises DivergenceError for a write the pipeline must never make."""
        if by_pipeline:
            self._judge(place, old, new)
        self.clock += 1
        if new is None:
            del self.items[place]
            self.removed[place] = self.clock
        else:
            self.items[place] = new
        self.past.setdefault(place, [(0, None)]).append((self.clock, new))
        for fact in self.of(place):
            if old is None or new is None or _attaches(fact, old, new):
                self.attached[place, fact.rule] = self.clock
        if by_pipeline:
            self._judge_by_truths(place, old, new)

    def judge(self, place: Place, old: Item | None, new: Item | None) -> None:
        """Judge an item to which rules added in a transaction of an application, which is done. Raises DivergenceError."""
        self._judge(place, old, new)
        self._judge_by_truths(place, old, new)

    def _judge_by_truths(self, place: Place, old: Item | None, new: Item | None) -> None:
        for truth in self.truths:
            if old is None or new is None:
                said = truth.came_or_went(place, old, new, self.items)
            else:
                said = truth.judge(place, old, new, self.items)
            if said:
                raise DivergenceError(f"{place}: {said}")

    def written(self) -> None:
        """A whole write of the pipeline is done. Raises DivergenceError when something does not hold that always must."""
        for truth in self.truths if self.untouched else ():
            if said := truth.always(self.items):
                raise DivergenceError(said)

    def _judge(self, place: Place, old: Item | None, new: Item | None) -> None:
        if any(truth.owns(place) for truth in self.truths):
            return  # the truths judge what is theirs
        if old is None:
            raise DivergenceError(f"{place}: the pipeline created an item")
        if new is None:
            if not any(self._may_delete(fact, old) for fact in self.of(place)):
                raise DivergenceError(f"{place}: deleted although its source was not removed, or is there")
            return
        copies = {to for fact in self.of(place) for _, to in fact.pairs}
        for path in touched(old, new):
            inside = any(path[:length] in copies for length in range(1, len(path) + 1))
            self._judge_order(place, get(old, path), get(new, path))
            if not inside and not any(truth.may_write(place, path) for truth in self.truths):
                raise DivergenceError(f"{place}: something else than a copy was changed, {'.'.join(path)}")
        for fact in self.of(place):
            for source_path, to in fact.pairs:
                was, is_now = get(old, to), get(new, to)
                if was != is_now:
                    self._judge_copy(place, new, fact, (source_path, to), (was, is_now))

    def _may_delete(self, fact: Fact, old: Item) -> bool:
        source = fact.link(old)
        gone = source is not None and source not in self.items and source in self.removed
        return fact.on_delete == "delete" and gone and fact.speaks_of(old)

    def _judge_order(self, place: Place, was: Value, is_now: Value) -> None:
        """Texts of renames only: "... #3" is never followed by "... #2"."""
        numbered = [value is not None and "#" in value.get("S", "") for value in (was, is_now)]
        if not self.unique or was is None or is_now is None or not all(numbered):
            return
        if number(is_now) < number(was):
            raise DivergenceError(f"{place}: a regression, {was} was replaced by the older {is_now}")

    def _judge_copy(
        self, place: Place, new: Item, fact: Fact, pair: tuple[Path, Path], values: tuple[Value, Value]
    ) -> None:
        (path, to), (was, is_now) = pair, values
        source = fact.link(new)
        by_default = is_now is not None and is_now == fact.defaults.get(to)
        if fact.snapshot and was is not None:
            raise DivergenceError(f"{place}: a snapshot was overwritten")
        if source is None:
            if is_now is not None and not by_default:
                raise DivergenceError(f"{place}: a value was written although it points to nothing")
            if by_default and was is not None and fact.on_delete != "clear":
                raise DivergenceError(f"{place}: a default replaced {was}, which was to be kept")
            return
        ever = [_seen(fact, item, path) for _, item in self.past.get(source, [(0, None)])]
        if is_now not in ever and not by_default and not (is_now is None and fact.where is not None):
            raise DivergenceError(f"{place}: {is_now} was never a value of {source}, to which it points")
        if by_default and was is not None and fact.on_delete != "clear":
            lacking = [
                item for _, item in self.past.get(source, ()) if item is not None and _seen(fact, item, path) is None
            ]
            if not lacking:
                raise DivergenceError(f"{place}: a default replaced {was}, which was to be kept")
        if fact.strict and is_now != self.wanted(fact, new)[to]:
            raise DivergenceError(f"{place}: strict, but {is_now} is not the value of {source} at this moment")

    # ------------------------------------------------------------ when all is quiet
    def settled(self, exempt: Collection[Place] = ()) -> None:
        """Every copy is what its fact says, and all else what its truth says. Raises DivergenceError."""
        for place, item in self.items.items():
            if place in exempt:
                continue
            for fact in self.of(place):
                self._settled(place, item, fact)
        for truth in self.truths:
            waiting = {*exempt, *(truth.below(self.items, exempt) if exempt else ())}
            for place, complaint in wrong(truth, self.items):
                if place not in waiting:
                    raise DivergenceError(f"{place}: {complaint}")

    def _settled(self, place: Place, item: Item, fact: Fact) -> None:
        source = fact.link(item)
        if fact.on_delete == "delete" and source is not None and source not in self.items and fact.speaks_of(item):
            attached = self.attached.get((place, fact.rule), 0)
            if self.removed.get(source, 0) > attached and source not in self.unheard:
                raise DivergenceError(f"{place}: still there although its source {source} was removed")
        for to, value in self.wanted(fact, item).items():
            if get(item, to) != value and not (fact.unlisted and self._came_late(place, fact, to)):
                raise DivergenceError(f"{place}: {'.'.join(to)} is {get(item, to)}, its source {source} says {value}")

    def _came_late(self, place: Place, fact: Fact, to: Path) -> bool:
        """True if a target's source had no value at some time since the target last changed in link or copy."""
        versions, since = self.past.get(place, ()), 0
        for (_, old), (clock, new) in pairwise(versions):
            if old is None or new is None or fact.link(old) != fact.link(new) or get(old, to) != get(new, to):
                since = clock
        source, path = fact.link(self.items[place]), next(path for path, at in fact.pairs if at == to)
        moments = (self.items_at(clock).get(source) for clock in range(since, self.clock + 1)) if source else ()
        return any(item is None or _seen(fact, item, path) is None for item in moments)

    def orphans(self) -> bool:
        """True if some target was attached to a source that had been deleted; such a target is reported, not deleted."""
        links = [
            fact.link(item)
            for place, item in self.items.items()
            for fact in self.of(place)
            if fact.on_delete == "delete"
        ]
        return any(source is not None and source not in self.items for source in links)

    def items_at(self, clock: int) -> dict[Place, Item]:
        """Every item as it was then."""
        then = ((place, _at(versions, clock)) for place, versions in self.past.items())
        return {place: item for place, item in then if item is not None}

    def wrong_since(self, clock: int, place: Place) -> bool:
        """True if some copy on an item was wrong at some time since `clock`."""
        for moment in range(clock, self.clock + 1):
            items = self.items_at(moment)
            for fact in self.of(place) if (item := items.get(place)) is not None else ():
                if any(get(item, to) != value for to, value in self.wanted(fact, item, items).items()):
                    return True
        return False

    def wanted(self, fact: Fact, item: Item, items: Mapping[Place, Item] | None = None) -> dict[Path, Value]:
        """The copies required now; empty if the rule leaves them open."""
        items = self.items if items is None else items
        place = fact.link(item)
        source = None if place is None else items.get(place)
        if fact.snapshot and any(get(item, to) is not None for _, to in fact.pairs):
            return {}
        if source is None or (fact.where is not None and not fact.where(source, item)):
            if fact.on_delete == "clear":
                return {to: fact.defaults.get(to) for _, to in fact.pairs}
            return {to: value for to, value in fact.defaults.items() if get(item, to) is None}
        return {to: _seen(fact, source, path) or fact.defaults.get(to) for path, to in fact.pairs}

    # ------------------------------------------------------------ cost
    def cost(self, place: Place, old: Item | None, new: Item | None) -> int:
        """The number of writes that one change of an application may cause: the targets made wrong, and theirs."""
        items, writes = dict(self.items), 0
        changes = deque([(place, old, new)])
        while changes:
            place, old, new = changes.popleft()
            for target in sorted(items, key=lambda other: (other != place, other)):  # itself first, then its targets
                item = items.get(target)
                if item is None:
                    continue
                fixed = self._fixed(target, item, items, (place, old, new))
                if fixed == item:
                    continue
                writes += 1
                if fixed is None:
                    del items[target]
                else:
                    items[target] = fixed
                changes.append((target, item, fixed))
        return writes + self._cost_of_truths(items)

    def _cost_of_truths(self, items: Mapping[Place, Item]) -> int:
        """The writes still needed once the copies are right."""
        if not self.truths:
            return 0
        right = completed(self.truths, items)
        off = [{place for place, _ in wrong(truth, items, right)} for truth in self.truths]
        if not self.exact_cost:
            rings = any(truth.unfit(items) for truth in self.truths)  # where nothing is right, at most once around
            return sum(map(len, off)) * self.cost_each + rings * len(items)
        return len(set().union(*off))

    def _fixed(self, place: Place, item: Item, items: Mapping[Place, Item], change: AppChange) -> Item | None:
        """A target as one look at it leaves it, when what changed is the target itself or its source."""
        changed, old, new = change
        fixes: dict[Path, Value] = {}
        facts: list[tuple[Fact, dict[Path, Value]]] = []
        for fact in self.of(place):
            pushed = fact.link(item) == changed and not fact.unlisted
            if new is None and pushed and fact.on_delete == "delete" and fact.speaks_of(item):
                return None
            pulled = place == changed and (old is None or self._relevant(fact, old, item))
            if not pulled and not pushed:
                continue
            if misplaced((to for _, to in fact.pairs), item):
                continue
            wanted = {to: value for to, value in self.wanted(fact, item, items).items() if get(item, to) != value}
            facts.append((fact, wanted))
        for fact, wanted in facts:
            others = (to for other, some in facts if other is not fact for to in some)
            if not any(fact.goes_by(to[0]) for to in others):  # else it is judged once the other rule has written
                fixes |= wanted
        for to, value in fixes.items():
            item = put(item, to, value)
        return item

    def _relevant(self, fact: Fact, old: Item, new: Item) -> bool:
        names = [*fact.attached_by, *(to[0] for _, to in fact.pairs)]
        return fact.where is not None or any(old.get(name) != new.get(name) for name in names)


def _at(versions: Sequence[tuple[int, Item | None]], clock: int) -> Item | None:
    return next((item for when, item in reversed(versions) if when <= clock), None)


def _seen(fact: Fact, source: Item | None, path: Path) -> Value:
    """The value that a rule reads of a source."""
    return None if source is None else get(fact.view(source), path)


def _attaches(fact: Fact, old: Item, new: Item) -> bool:
    """True if a change makes an item a target of its source that it was not before."""
    moved = any(old.get(name) != new.get(name) for name in fact.attached_by)
    return moved or (not fact.speaks_of(old) and fact.speaks_of(new))
