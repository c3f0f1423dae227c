"""People who work beside the pipeline: when they begin a backfill, a verify or a redrive, and when they resume it.

Invariant: these decisions are drawn after those for the pipeline, from the same four streams. Anything may begin at any
time during the storm; when nothing fails any more, all that must be done is done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from sync_rules.audit.verify_tally import DriftFinding
from sync_rules.model.items import ItemKey
from sync_rules.model.limits import Bounds
from tests.simulation.choices import Choices
from tests.simulation.errands import Backfill, Errand, Redrive, Verify, batch_text, titled
from tests.simulation.facts import Place
from tests.simulation.oracles import Oracle
from tests.simulation.scheduler import History
from tests.simulation.watch import DivergenceError
from tests.simulation.workload import unfit
from tests.simulation.world import place_of

LATER_MAX_STEPS = 60  # until an errand begins, or begins again
PASSING = (
    "throttle",
    "answer lost",
    "Throttled",
    "TransactionConflict",
    "SourceChanging",
)  # why something is set aside


def _is_record(text: str) -> bool:
    """True for a failure record, false for a batch or a message."""
    return '"DDBStreamBatchInfo":' not in text and '"kind":' not in text


class Staffed(History):
    """A history with errands."""

    def __init__(self, configuration: str, oracle: Oracle, choices: Choices, story: list[str] | None = None) -> None:
        super().__init__(configuration, oracle, choices, story)
        self.whole = frozenset(self.rules.rules)
        self.backfill: Backfill | None = None
        self.verify: Verify | None = None
        self.redrive: Redrive | None = None
        self.checkpoints: dict[str, str] = {}
        self.kept: dict[str, str] = {}  # whatever was put through again, with its name
        self.tried: dict[str, bool] = {}  # what was put through since nothing fails, and whether all was cured by then
        self.world.shelf = {}
        self.workers.gives_up_percent = self.gives_up_percent
        self.time = 0.0
        # only a backfill is at work; nobody waits any more; what is in the way of copies is being cured
        self.secluded = self.hurry = self.curing = False

    # ------------------------------------------------------------ the beginning
    def _configure(self) -> None:
        """Which errands there are, when, and how they go about it."""
        super()._configure()
        pick, late_start = self.choices.configuration.pick, self.oracle.late_start
        self.bare = late_start and pick(3) == 2
        self.alone = late_start and pick(4) == 3  # the handler is not there yet when the backfill is
        if self.alone:
            self.faults.possible = {fault for fault in self.faults.possible if "in flight" not in fault}
        self.unheard_left = (0, 3, 8)[pick(3)] if late_start else 0
        self.loses_percent = (0, 15, 40)[pick(3)] if self.oracle.losses else 0
        self.partial = late_start and pick(3) == 2  # some rules are brought in line first, and perhaps given up
        self.backfills_left = 1 + pick(2) if late_start else pick(2)
        self.verifies_left = (0, 0, 1)[pick(3)] if late_start else (1, 0, 4)[pick(3)]
        self.redrives_left = (1, 0, 3)[pick(3)]
        self.completions_left = 2
        self.segments, self.at_once = 1 + pick(2), 1 + pick(2)
        self.cured_by_redrive = pick(2) == 1
        self.next_at: dict[type[Errand], int] = {kind: pick(LATER_MAX_STEPS) for kind in (Backfill, Verify, Redrive)}
        self.gives_up_percent = (0, 50)[pick(2)]
        self.hesitant = pick(2) == 1
        self.actions += [self._go_on_with_backfill, self._begin_verify, self._go_ahead]

    # ------------------------------------------------------------ errands
    def _work(self) -> bool:
        """Let a worker take a step; in some histories errands hesitate before a write, while others go on."""
        if self.hesitant and not self.world.calm:
            return self.workers.step(lambda task: task.writes and isinstance(task.origin, Errand))
        return super()._work()

    def _go_ahead(self) -> bool:
        return self.workers.step()

    def _start(self, errand: Errand) -> None:
        self.next_at[type(errand)] = self.steps + self.choices.schedule.pick(LATER_MAX_STEPS)
        self.workers.begin(errand.work(), errand)

    def _ready(self, errand: Errand | None, kind: type[Errand]) -> bool:
        """True if the errand may begin or resume now."""
        return not (errand is not None and errand.at_work) and (self.hurry or self.steps >= self.next_at[kind])

    def parked(self) -> set[Place]:
        """The items that are reported now, those of failure records too."""
        bodies = (json.loads(text) for text in (self.world.shelf or {}).values() if _is_record(text))
        return super().parked() | {(body["table"], tuple(body["key"].values())) for body in bodies}

    # ------------------------------------------------------------ backfill
    def _go_on_with_backfill(self) -> bool:
        """Begin a backfill, or resume the last one. An abandoned one leaves its checkpoints behind."""
        one = self.backfill
        if not self._ready(one, Backfill):
            return False
        if one is None or one.finished:
            if not self.backfills_left and not self._begins_again():
                return False
            one = self._new_backfill()
        elif one.names != self.whole and self.choices.schedule.pick(2):
            self.tell("the backfill of some rules is given up")
            self.seen["backfill", "given up"] += 1
            one = self._new_backfill()
        self.backfill = one
        self._start(one)
        return True

    def _begins_again(self) -> bool:
        """Begin another backfill for the items that one had to leave, once they are cured; or for the books that it could
        not complete because of them, which a redrive makes right and leaves incomplete.
        """
        by_redrive = self.cured_by_redrive and not self.secluded
        if not by_redrive and self._cares_for_what_was_left():
            self.seen["backfill", "again for what was left"] += 1
        elif self.completions_left and self._rules_wait():
            self.completions_left -= 1
            self.seen["backfill", "again for incomplete books"] += 1
        else:
            return False
        self.backfills_left = 1
        return True

    def _rules_wait(self) -> bool:
        """True if nothing is on its way, and a mark in a ledger says that books are not complete though a backfill ended."""
        if not self.hurry or not self._quiet() or unfit(self.watch):
            return False
        ended = self.backfill is not None and self.backfill.finished
        return ended and any(item.get("complete") == {"BOOL": False} for item in self.watch.items.values())

    def _quiet(self) -> bool:
        """True if the handler has done all that it can."""
        return not (self.workers.tasks or self.world.streams.ready() or self.world.flying or self.world.store.behind())

    def _cured(self) -> bool:
        """True if nothing blocks a copy any more."""
        return self.curing and self._quiet() and not unfit(self.watch)

    def _cares_for_what_was_left(self) -> bool:
        """True if something was left that can be handled now: transient failures at once, others when cured."""
        if not self.hurry or not self._quiet():
            return False
        cured, left = self._cured(), self.world.left
        now = [place for place, reason in left.items() if cured or reason in PASSING]
        for place in now:
            del left[place]
        return bool(now)

    def _new_backfill(self) -> Backfill:
        names = self.whole
        if self.partial:
            titles = sorted({rule.title for rule in self.rules.rules.values()})
            names = titled(self.rules, {titles[self.choices.schedule.pick(len(titles))]})
            self.partial = False
        self.backfills_left -= names == self.whole
        return Backfill(
            self.rules,
            names,
            self.seen,
            self.checkpoints,
            bounds=Bounds(self.limits),
            segments=self.segments,
            workers=self.at_once,
            stops=self._stops if names == self.whole else lambda: self._stops() or self.choices.schedule.pick(3) == 2,
            clock=self._clock,
        )

    def _stops(self) -> bool:
        return self.faults.occurs("out of time")

    def _clock(self) -> float:
        """Return the time, up to a second later than at the last look."""
        self.time += self.choices.faults.pick(2)
        return self.time

    # ------------------------------------------------------------ verify
    def _begin_verify(self) -> bool:
        """Begin a verify, perhaps with repair, in the middle of the storm."""
        if self.world.calm or not self.verifies_left or not self._ready(self.verify, Verify):
            return False
        pick = self.choices.schedule.pick
        self.verifies_left -= 1
        places = sorted(self.watch.items)
        key = self._key(places[pick(len(places))]) if places and pick(4) == 3 else None
        self._verify(repair=pick(4) < 3, key=key)
        return True

    def _verify(self, *, repair: bool, key: ItemKey | None = None) -> Verify:
        one = self.verify = Verify(self.rules, self.whole, self.seen, repair=repair, key=key, workers=self.at_once)
        began = self.watch.clock
        one.accused = lambda finding: self._accused(finding, began)
        self._start(one)
        return one

    def _accused(self, finding: DriftFinding, began: int) -> None:
        """Raise DivergenceError if a copy that a verify accused was right all the while, however old the scanned image.

        Only copies are judged, because an oracle says of each item alone what its copies must be.
        """
        one = finding.difference
        self.tell(f"found {one.drift.value}: {one.rule} on {one.target}, {'repaired' if finding.repaired else 'left'}")
        if self.configuration.truths or not one.repairable:
            return
        if not self.watch.wrong_since(began, place_of(one.target)):
            raise DivergenceError(f"{one.target}: called {one.drift.value}, but it was right all the while")

    def _key(self, place: Place) -> ItemKey:
        key = self.rules.tables[place[0]].key_of(self.watch.items[place])
        assert key is not None, "an item that is there has a key"
        return key

    # ------------------------------------------------------------ redrive
    def _redrive(self) -> bool:
        """Redrive failed batches, records and messages: during the storm, and when nothing fails any more."""
        shelf, dead = self.world.shelf, self.world.streams.dead
        while dead:
            self.world.put_aside(batch_text(dead.pop(0).changes, self.rules))
        if self.secluded or not shelf or not self._ready(self.redrive, Redrive):
            return False
        if not (self._worth_it(shelf) if self.hurry else self.redrives_left):
            return False
        self.redrives_left -= 1
        self.kept |= shelf
        self.tried |= dict.fromkeys(shelf, self._cured()) if self.hurry else {}
        if self.faults.occurs("deliver again"):
            shelf |= self.kept  # what was put through before is found once more
        self._redrive_all(shelf)
        return True

    def _worth_it(self, shelf: Mapping[str, str]) -> bool:
        """Batches and messages must come again, once now and once more when what was in their way is cured. And then
        again for as long as that helps.
        """
        cured = self._cured()
        if any(self.tried.get(name, -1) < cured for name, text in shelf.items() if not _is_record(text)):
            return True
        stayed = any(self.tried.get(name) is False for name in shelf)  # as it could not be done before it was cured
        if cured and stayed and self.cured_by_redrive:
            return True
        helped = cured and self.redrive is not None and self.redrive.wrote
        if not self.cured_by_redrive or not (self._cares_for_what_was_left() or helped):
            return False
        self.seen["redrive", "for what was left"] += 1
        return True

    def _redrive_all(self, shelf: dict[str, str]) -> None:
        queued = self.choices.schedule.pick(2) == 0
        self.redrive = Redrive(self.rules, self.whole, self.seen, shelf, queued=queued)
        self._start(self.redrive)
