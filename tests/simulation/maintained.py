"""A history in which people work beside the pipeline: backfills, verifies and redrives, while applications write.

Invariant: whatever people do, and wherever their work dies, no live write is lost, and their work leaves everything
right in the end: a backfill the items changed before the stream was read (`late_start`), a last verify those that left
no record (`losses`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sync_rules.model.items import Change
from sync_rules.model.values import Item
from tests.simulation.application import beginning
from tests.simulation.choices import Choices
from tests.simulation.errands import one_at_a_time
from tests.simulation.facts import Place
from tests.simulation.oracles import Oracle
from tests.simulation.scheduler import STORM_MAX_STEPS
from tests.simulation.staffed import Staffed
from tests.simulation.watch import DivergenceError
from tests.simulation.workload import mended, unfit
from tests.simulation.world import Note, place_of_note


class Maintained(Staffed):
    """A history with errands, from its beginning to its end."""

    def __init__(self, configuration: str, oracle: Oracle, choices: Choices, story: list[str] | None = None) -> None:
        super().__init__(configuration, oracle, choices, story)
        self.lost = 0
        self._unheard_days()

    # ------------------------------------------------------------ the beginning
    def _beginning(self) -> Mapping[Place, Item]:
        if self.oracle.late_start:
            return beginning(self.configuration, self.watch, bare=self.bare)
        return super()._beginning()

    def _unheard_days(self) -> None:
        """Applications write, and there is no handler yet."""
        self.world.hears = lambda _change: False
        self.operations_left, live = self.unheard_left, self.operations_left
        while self.oracle.late_start and self._operate():
            pass
        self.operations_left = live
        self.world.store.catch_up()  # a backfill begins when records have been seen to come
        self.world.hears = self._hears

    def _hears(self, change: Change) -> bool:
        if self.world.calm or not self.choices.faults.chance(self.loses_percent):
            return True
        self.lost += 1
        self.seen["lost", "by the pipeline" if self.world.by_pipeline else "of an application"] += 1
        self.tell(f"the record of {change.key} is lost")
        return False

    # ------------------------------------------------------------ the whole of it
    def run(self) -> None:
        """Play it to its end. Raises DivergenceError when something that must hold does not."""
        with one_at_a_time(self.choices.schedule.pick):
            try:
                self._run()
            finally:
                for task in self.workers.tasks:
                    task.work.close()

    def _run(self) -> None:
        if self.alone:
            self._secluded(self._bring_in_line)
        self.tell("-- there is a handler")
        self._play(STORM_MAX_STEPS)
        self.hurry = True
        self.calm_down()
        if not self.lost:
            self.watch.settled(self.exempt())
        self.curing = True
        self._meddle()
        while self.lost and not self._repaired():
            pass
        self.mend()
        self.watch.settled()
        self._find_nothing()
        self._put_everything_through_again()

    def exempt(self) -> set[Place]:
        """The places left by a backfill or a redrive, which are looked at when their failure records are handled; and all
        that show what is in books that no backfill could complete yet.
        """
        messages = (Note(text, 0) for text in (self.world.shelf or {}).values() if '"kind":' in text)
        left = super().exempt() | self.world.left.keys() | set(filter(None, map(place_of_note, messages)))
        if any(item.get("complete") == {"BOOL": False} for item in self.watch.items.values()):
            left |= {place for place in self.watch.items if any(truth.at(place) for truth in self.watch.truths)}
        return left

    def _secluded(self, act: Callable[[], None]) -> None:
        """Act without a handler, so that no record is processed.

        Indexes do not lag meanwhile, because a step down the cascade would have to wait for them.
        """
        self.world.hears = lambda _change: False
        self.world.store.catch_up()
        self.world.store.lag = False
        act()
        self.world.hears, self.world.store.lag = self._hears, self.oracle.lag

    def _bring_in_line(self) -> None:
        """Run one backfill from beginning to end, alone."""
        self.tell("-- nobody but a backfill")
        self.seen["backfill", "alone"] += 1
        left = self.operations_left, self.verifies_left
        self.operations_left = self.verifies_left = 0
        self.secluded = self.hurry = True
        while not self._play(STORM_MAX_STEPS):
            pass
        self.secluded = self.hurry = False
        self.operations_left, self.verifies_left = left
        self.watch.settled(super().exempt())
        self.backfills_left = self.choices.configuration.pick(2)

    def _repaired(self) -> bool:
        """Cure parked items, then find and repair differences that left no record, with the handler at work or without.

        Returns true if nothing is in the way of a copy any more: a copy now right may block another one.
        """
        while places := unfit(self.watch):
            self._write(mended(self.app, places[0]), "mend")
            self.rest("what is in the way of copies is being cured")
        if self.choices.configuration.pick(2) == 1:
            self._secluded(self._verify_to_the_end)
        else:
            self._verify_to_the_end()
        return not unfit(self.watch)

    def _meddle(self) -> None:
        """Change items that the pipeline owns, without a record."""
        pick = self.choices.configuration.pick
        places = {place: item for truth in self.watch.truths for place, item in truth.meddled(self.watch.items).items()}
        if not places or not self.oracle.losses or pick(2) == 0:
            return
        self.seen["lost", "in the books"] += 1
        self.lost += 1
        self.watch.untouched = False
        self.world.hears = lambda _change: False
        self._write(list(places.items())[pick(len(places))], "meddle with")
        self.world.hears = self._hears

    def _verify_to_the_end(self) -> None:
        self.tell("-- a last verify repairs")
        last = self._verify(repair=True)
        self.rest("nothing fails in the last verify")
        self.watch.untouched = True
        self.seen["verify", "mended at last"] += any(one.repaired for one in last.findings)

    def _find_nothing(self) -> None:
        """All is at rest, and right: a verify has nothing to say."""
        last = self._verify(repair=False)
        self.rest("nothing fails in a verify")
        if not last.finished or last.drift():
            raise DivergenceError(f"a verify of what is right finds {last.drift()}")

    def _put_everything_through_again(self) -> None:
        """Days later, all that had failed comes once more: there is nothing left to write."""
        if self.watch.orphans():
            return  # a REMOVE that comes again also deletes what was attached since
        before = self.watch.clock
        self._redrive_all({**self.kept, **(self.world.shelf or {})})
        self.rest("all that failed is put through again")
        if self.watch.clock != before:
            raise DivergenceError(f"{self.watch.clock - before} changes when what had failed came again, days later")
        self.watch.settled()
