"""People who work beside the handlers: they run backfills, verifies and redrives, which may die at any request.

Invariant: each is the code of production, in whole. A backfill that dies resumes from its documents; the others start
over. Whatever people do, and wherever their work dies, no live write is lost. In the end a backfill has made right what
was there before the rules, and a verify has repaired the changes that left no record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sync_rules.adapters.state import MemoryState
from sync_rules.audit.verifier import Verifier
from sync_rules.audit.verify_tally import DriftFinding
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.requests import NULL_PORTS
from sync_rules.pipeline.requests import World as Outside
from tests.simulation.commands import DivergenceError
from tests.simulation.stops import Asking, Do, Documents, Shelf, ask
from tests.simulation.world import place_of

if TYPE_CHECKING:
    from tests.simulation.history import History

GRACE_SECONDS: Final = 1.0  # on a clock that stands still: a verify waits once, for as long as the history likes
JUDGED: Final = ("copy", "derive")  # kinds whose values follow from single items, so that an accusation can be judged


@dataclass(eq=False)
class Errand:
    """A command at work. `since` is the clock of its last wait."""

    kind: str
    run: Callable[[Errand], bool]
    since: int = 0

    def described(self) -> str:
        return f"a {self.kind}"


class People:
    """The commands that people have begun, and may still begin."""

    def __init__(self, history: History) -> None:
        self.history, pick = history, history.choices.people.pick
        self.rules, self.whole = history.made.rules, history.made.rules.keeper_names
        self.state = MemoryState()
        self.finished = True  # the backfill of all rules
        self.partial = pick(3) == 2  # one of some rules begins first, and is given up if it dies
        self.segments = 1 + pick(2)
        self.left = {"backfill": 1 + pick(2), "verify": (2, 1, 4)[pick(3)], "redrive": (3, 1, 6)[pick(3)]}
        self.loses_percent = (15, 0, 40)[pick(3)]
        self.hesitant = pick(2) == 1  # commands wait before a write, while others go on
        self.gives_up_percent = (20, 70)[pick(2)]  # of what failed
        if history.mode != "people":  # no verify hides what is lost
            self.left["verify"] = self.loses_percent = 0
        self.kept: dict[str, str] = {}  # all that was put through again
        self.time = history.world.now
        history.world.shelf = {}

    def starts(self, *, late: bool) -> None:
        """Begin the storm. `late`: what was there before the rules is wrong until a backfill has ended."""
        self.finished = not late
        if late:
            self.loses_percent = 0
        else:
            self.history.world.loses = self._loses

    def _loses(self) -> bool:
        return not self.history.calm and self.history.choices.people.chance(self.loses_percent)

    def gives_up(self) -> bool:
        return not self.history.calm and self.history.choices.people.chance(self.gives_up_percent)

    # ---------------------------------------------------------------- what they begin
    def begin(self) -> bool:
        """Begin a command, or none."""
        at_work = {one.origin.kind for one in self.history.workers if isinstance(one.origin, Errand)}
        kinds = [kind for kind, left in self.left.items() if left and kind not in at_work and self._useful(kind)]
        if not kinds or self.history.choices.people.pick(3):
            return False
        kind = kinds[self.history.choices.people.pick(len(kinds))]
        self.left[kind] -= 1 if kind != "backfill" or not self.partial else 0
        self.history.start(self.made(kind))
        return True

    def _useful(self, kind: str) -> bool:
        return kind == "verify" or (not self.finished if kind == "backfill" else bool(self.history.world.shelf))

    def made(self, kind: str, **more: Any) -> Errand:
        """A command that has not begun."""
        runs = {"backfill": self._backfill, "verify": self._verify, "redrive": self._redrive}
        return Errand(kind, lambda errand: runs[kind](errand, **more), self.history.world.clock)

    def _wait(self, errand: Errand) -> Callable[[float], object]:
        def settle() -> None:
            errand.since = self.history.world.clock

        def wait(seconds: float) -> None:
            self.time += 2.0 * -(-seconds // 2)  # a jitter of up to two seconds is two: a history has one story
            ask(Do("waits", settle))

        return wait

    def _backfill(self, errand: Errand) -> bool:
        """One backfill, from where its documents say."""
        pick, names = self.history.choices.people.pick, self.whole
        if self.partial:
            titles = sorted({rule.title for rule in self.rules.rules.values()})
            title = titles[pick(len(titles))]
            names = frozenset(name for name in names if self.rules.rules[name].title == title)
            self.partial = False
        run = BackfillRun(
            Selection(self.rules, names),
            Asking(),
            Asking(),
            Documents(self.state),
            {"rules": sorted(names)},
            supplies=make_supplies(self.rules, self.segments),
            completes=names,
            bounds=Bounds(self.history.limits),
            stopping=lambda: self.history.occurs("out of time"),
            sleep=self._wait(errand),
            clock=lambda: self.history.world.now,
        )
        done = run.run()
        self.finished = self.finished or (done and names == self.whole)
        return done

    def _verify(self, errand: Errand) -> bool:
        verifier = Verifier(
            self.rules,
            Outside(Asking(), NULL_PORTS, Asking()),
            self.whole,
            repair=self.history.choices.people.pick(4) < 3,
            grace_seconds=GRACE_SECONDS,
            sleep=self._wait(errand),
            clock=lambda: 0.0,
        )
        began = self.history.world.clock
        for finding in verifier.sweep():
            self.history.seen["verify", f"beside: {finding.difference.drift.value}"] += 1
            self._judge(finding, began)
        return True

    def _judge(self, finding: DriftFinding, began: int) -> None:
        """Raise DivergenceError if a value that a verify calls wrong was right since it began."""
        one, world = finding.difference, self.history.world
        self.history.tell(f"found {one.drift.value}: {one.rule} on {one.target}, repaired: {finding.repaired}")
        name = one.rule.partition(".")[0]
        if not one.repairable or self.history.made.spec.rules[name]["kind"] not in JUDGED or self.history.tampered:
            return
        at = place_of(one.target)
        for changes in range(world.clock - began + 1):
            items = world.items_before(changes)
            verdict = self.history.oracle.look(items)
            if (at not in items) or any(
                place == at and rule.partition(".")[0] == name for rule, place in (*verdict.differing, *verdict.open)
            ):
                return
        raise DivergenceError(
            f"{one.target} of rule {one.rule} is called {one.drift.value}, and was right all the while"
        )

    def _redrive(self, errand: Errand, *, texts: dict[str, str] | None = None) -> bool:
        shelf = self.history.world.shelf if texts is None else texts
        assert shelf is not None, "there is one"
        self.kept |= shelf
        outside = Outside(Asking(), Asking(), Asking(), Asking(), Asking())
        queue = Asking() if self.history.choices.people.pick(2) else None
        redriver = Redriver(self.rules, outside, queue=queue, clock=lambda: self.time, sleep=self._wait(errand))
        redriver.take(Shelf(shelf))
        redriver.rest()
        return True

    # ---------------------------------------------------------------- when nothing fails any more
    def bring_in_line(self) -> None:
        """End the backfill that was begun, or run one."""
        while not self.finished:
            self.partial = False
            self._to_its_end("backfill")

    def complete(self) -> None:
        """Run a backfill for books that an earlier one could not complete."""
        incomplete = {"BOOL": False}
        if any(
            item.get("complete") == incomplete
            for at, item in self.history.world.items.items()
            if at[0] in self.history.made.spec.ledgers
        ):
            self.finished = False
            self.bring_in_line()

    def redrive(self) -> None:
        """Put all that failed through again, until that changes nothing."""
        world = self.history.world
        assert world.shelf is not None, "there is one"
        before: object = None
        while world.shelf and before != (before := (world.clock, len(world.shelf))):
            self._to_its_end("redrive")

    def put_all_through_again(self) -> None:
        """Days later all that had failed comes once more: there is nothing to write."""
        before = self.history.world.clock
        self._to_its_end("redrive", texts=dict(self.kept))
        if self.history.world.clock != before:
            raise DivergenceError(f"{self.history.world.clock - before} changes when what had failed came again")

    def _to_its_end(self, kind: str, **more: Any) -> None:
        self.history.start(self.made(kind, **more))
        self.history.settle()


ENDINGS: Final = (StoreError, UserError)  # they end a command before its end
