"""A history in which applications write by `transact`, follow their writes, and read by `fresh`, beside all others.

Invariant: what they draw comes from the stream of transactions alone, so that the rest of a history is drawn as without
them. At its end, when all is quiet and right, they work alone: after a transaction that left nothing, and after writes
that were followed, the stream has nothing to write, and each item is as `fresh` shows it.
"""

from __future__ import annotations

from sync_rules.model.semantics import same_item
from sync_rules.model.values import Item, get, same, show_path
from tests.simulation.facts import Place
from tests.simulation.maintained import Maintained
from tests.simulation.truths import put
from tests.simulation.watch import DivergenceError
from tests.simulation.workload import Write, unfit
from tests.simulation.writers import Following, Given, Reading, Writing
from tests.simulation.writers import key_at as _key

WRITERS_MAX = 3  # at work at once
ALONE = 3  # writes with nobody else at work
FOLLOWED_MAX = 2


class Written(Maintained):
    """A history with such applications."""

    def _configure(self) -> None:
        super()._configure()
        pick = self.choices.transactions.pick
        self.writers_left = 3 + pick(10)
        self.numbered = 0
        self.ways = (("transact", "transact", "follow", "fresh"), ("transact",), ("fresh", "follow"))[pick(3)]
        self.drawn = [name for name in self.operations if name not in ("read", "fill", "shrink")] or ["rename"]
        self.actions += [self._begin_writer] * (2, 1, 6)[pick(3)]

    # ------------------------------------------------------------ in the storm
    def _begin_writer(self) -> bool:
        at_work = sum(isinstance(task.origin, Writing | Following | Reading) for task in self.workers.tasks)
        if self.world.calm or self.secluded or not self.writers_left or at_work >= WRITERS_MAX:
            return False
        self.writers_left -= 1
        way = self.ways[self.choices.transactions.pick(len(self.ways))]
        one = {"transact": self._writing, "follow": self._following, "fresh": self._reading}[way]()
        if one is not None:
            self.seen[one.kind, "began"] += 1
            self.workers.begin(one.work(), one)
        return True

    def _writes(self, count: int) -> list[Write]:
        """The items that applications want to write, each once."""
        found: dict[Place, Item | None] = {}
        pick = self.choices.transactions.pick
        self.app.pick, usual = pick, self.app.pick
        try:
            for _ in range(count):
                write = self.possible[self.drawn[pick(len(self.drawn))]](self.app)
                if write is not None:
                    found.setdefault(*write)
        finally:
            self.app.pick = usual
        return list(found.items())

    def _writing(self) -> Writing | None:
        pick = self.choices.transactions.pick
        calls = [call for write in self._writes(1 + pick(3)) if (call := self._given(*write)) is not None]
        if not calls:
            return None
        sources = []
        if self.app.read and pick(4) == 3:  # what it read, perhaps some time ago
            place, item = self.app.read[pick(len(self.app.read))]
            entity = self.rules.entity_of(_key(self.rules, place))
            sources = [] if entity is None else [(entity.name, item)]
        self.numbered += 1
        return Writing(
            self.rules, self.whole, self.seen, number=self.numbered, calls=calls, sources=sources, watch=self.watch
        )

    def _given(self, place: Place, new: Item | None) -> Given | None:
        """A call that writes an item: most often without anything that a rule keeps, which is refused otherwise."""
        pick, key = self.choices.transactions.pick, _key(self.rules, place)
        entity, old = self.rules.entity_of(key), self.watch.items.get(place)
        if entity is None:
            return None
        if new is None:
            return Given("delete", entity.name, key.attributes(), {})
        override = pick(8) == 7
        kept = {
            path for rule in (*self.rules.into_target(entity), *self.rules.parts_of(entity)) for path in rule.copies
        }
        for path in kept if pick(4) < 3 and not override else ():
            if len(path) == 1 or get(new, path[:-1]) is not None:
                new = put(new, path, None if old is None else get(old, path))
        if old is None or pick(3) == 2:
            return Given("put", entity.name, key.attributes(), new, (), override, old is None and pick(4) == 3)
        removes = tuple(show_path((name,)) for name in old if name not in new)
        sets = {show_path((name,)): value for name, value in new.items() if not same(value, old.get(name))}
        if not (removes or sets):
            return None
        return Given("update", entity.name, key.attributes(), sets, removes, override)

    def _following(self) -> Following | None:
        writes = self._writes(1 + self.choices.transactions.pick(FOLLOWED_MAX))
        return Following(self.rules, self.whole, self.seen, writes=writes) if writes else None

    def _reading(self) -> Reading | None:
        pick = self.choices.transactions.pick
        kinds = [kind for kind in self.configuration.kinds if kind.copies] or list(self.configuration.kinds)
        places = [place for kind in kinds for place in kind.places()]
        place = places[pick(len(places))]
        key = _key(self.rules, place)
        if self.rules.entity_of(key) is None:
            return None
        past = [item for _, item in self.watch.past.get(place, ()) if item is not None]
        given = past[-1 - pick(min(len(past), 3))] if past and pick(2) else key.attributes()
        return self._look(place, given, repair=pick(4) == 3)

    def _look(self, place: Place, given: Item, *, repair: bool = False) -> Reading:
        return Reading(self.rules, self.whole, self.seen, watch=self.watch, place=place, given=given, repair=repair)

    # ------------------------------------------------------------ alone
    def _run(self) -> None:
        super()._run()
        for _ in range(ALONE):
            if unfit(self.watch) or self.world.notes or self.world.shelf or self.watch.orphans():
                return
            self._look_at_everything()
            one = self._following() if self.choices.transactions.pick(4) == 3 else self._writing()
            if one is not None:
                self._write_alone(one)

    def _write_alone(self, one: Writing | Following) -> None:
        """One writes, and then the stream may: it has nothing to write where nothing was left to it."""
        self.tell(f"-- alone: {one}")
        self.parked_wait = True
        self._to_its_end(one)
        before = self._written(one)
        self.rest("an application wrote alone")
        self.seen[one.kind, "alone, something left" if one.left else "alone"] += one.finished
        if not one.left and self._written(one) != before:
            raise DivergenceError(f"the stream writes after {one}, which left nothing")
        self.watch.settled(self.exempt())

    def _written(self, one: Writing | Following) -> int:
        """The number of writes so far. After a follow one that is refused does not count: the record of the write that was
        followed shows the item as it was by then.
        """
        return self.watch.clock if isinstance(one, Following) else self.world.writes

    def _look_at_everything(self) -> None:
        """All is right: `fresh` shows each item as it is."""
        for place, item in list(self.watch.items.items()):
            key = _key(self.rules, place)
            if self.rules.entity_of(key) is None:
                continue
            look = self._look(place, key.attributes())
            self._to_its_end(look)
            if not same_item(look.answer, item):
                raise DivergenceError(f"fresh: {place} is {item}, and {look.answer} is shown")

    def _to_its_end(self, one: Writing | Following | Reading) -> None:
        self.workers.begin(one.work(), one)
        while one.at_work:
            self.workers.step()
