"""One history: the scheduler picks what happens next, request by request, until all is healed and quiet.

Invariant: the pipeline runs as it does in production, the same generators; between any two of its requests anything
else may happen. Faults come from a finite budget; then the world heals, and everything must come to rest within a step
limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from botocore.exceptions import ClientError

from sync_rules.model.items import Change
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.values import Item
from sync_rules.pipeline import consumer
from sync_rules.pipeline.books import books_of
from sync_rules.pipeline.messages import decode
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Work
from tests.simulation import words
from tests.simulation.application import Application, beginning
from tests.simulation.choices import Choices
from tests.simulation.configurations import CONFIGURATIONS, rules_of
from tests.simulation.facts import Place
from tests.simulation.faults import FAULTS, Faults
from tests.simulation.oracles import Oracle
from tests.simulation.processes import Processes
from tests.simulation.watch import DivergenceError, Watch
from tests.simulation.workers import Workers
from tests.simulation.workload import Write as AppWrite
from tests.simulation.workload import mended, operations_of, reported, told, unfit
from tests.simulation.world import Batch, Note, World, parked_part, place_of, place_of_note
from tests.simulation.writers import Submit, land

TASKS_MAX = 3
STORM_MAX_STEPS = 600
CALM_MAX_STEPS = 3_000
PARKED_LOOKS_MAX = 3
CURES_MAX = 3  # of one item, before anything parked is looked at again


class History:
    """One history in one configuration under one oracle. `story` collects the steps in words, when given."""

    def __init__(self, configuration: str, oracle: Oracle, choices: Choices, story: list[str] | None = None) -> None:
        self.configuration = CONFIGURATIONS[configuration]
        self.oracle, self.choices, self.story = oracle, choices, story
        self.rules = rules_of(configuration, second_look=oracle.second_look)
        self.seen: Counter[tuple[str, str]] = Counter()  # what occurred, for the coverage of the generators
        self.steps = self.expected_writes = self.quiet_until = 0
        self.watch = Watch(self.configuration, unique=oracle.unique)
        self.app = Application(self.configuration, self.watch, choices.application.pick, oracle.unique)
        self.world = World(self.configuration, self.rules, self.watch)
        self.reported: frozenset[Place] = frozenset()  # the only parked items that are looked at
        self.looks_max = 0
        self.parked_wait = oracle.serial  # else an item that nobody can help is looked at for ever
        self._configure()
        self.workers = Workers(self.world, choices, self.faults, self.seen, self.tell, telling=story is not None)
        if oracle.waits:
            self.workers.processes = Processes(self.limits, choices, self.seen)
        self.world.load(self._beginning(), lag=oracle.lag)
        self.from_the_beginning = reported(self.watch)  # there are no records of these, so that nobody looks

    # ------------------------------------------------------------ the beginning
    def _beginning(self) -> Mapping[Place, Item]:
        beginning(self.configuration, self.watch)
        for books in books_of(self.rules).values():  # those of counters that were there from the beginning
            self.watch.load(place_of(books.mark), books.finish(None, 1).item)
        return self.watch.items

    def _configure(self) -> None:
        """Swarm: which operations, which faults and how many, which limits, who is quick and who is slow."""
        pick = self.choices.configuration.pick
        rounds, inline = pick(3), pick(3)
        self.limits = Limits(
            fan_out_page_max_items=2,
            fan_out_round_max_items=(1_000, 2, 1)[rounds],
            fan_out_inline_max_items=(10_000, 2, 4)[inline],
            fan_out_second_look_max_items=(10_000, 2, 4)[inline],
            fan_out_relay_max_items=(2, 1, 3)[rounds],
            fan_out_chunk_max_items=(3, 2, 1)[rounds],
            chunk_step_max_items=(1, 2, 1)[rounds],
            fan_out_spread_max_items=(10_000, 1, 3)[(rounds + inline) % 3],
            apply_max_writes=(100, 1)[pick(2)],
            parked_max_looks=10**9,  # an item may stay full for as long as the history likes
        )
        if self.oracle.waits:
            inline, first = pick(2), (60, 25, 150)[pick(3)]
            self.limits = replace(
                self.limits,
                fan_out_inline_max_items=(2, 4)[inline],
                fan_out_again_first_seconds=first,
                fan_out_again_max_seconds=first * (4, 1)[pick(2)],
            )
        if self.oracle.serial:
            self.limits = Limits()  # all targets of a change in one round, so that each is written once
        percent = 0 if self.oracle.serial else (0, 4, 10, 25)[pick(4)]
        budget = (8, 20, 40)[pick(3)]
        possible = {fault for fault in FAULTS if pick(2) == 0} - self.oracle.without_faults
        self.faults = Faults(self.choices.faults, possible, percent, budget, self.seen, self.tell)
        self.possible = operations_of(self.configuration)
        without = self.oracle.without | (self.configuration.attaching if self.oracle.name == "O3" else frozenset())
        allowed = [name for name in self.possible if self.oracle.only is None or name in self.oracle.only]
        allowed = [name for name in allowed if name not in without]
        few = pick(3) == 2  # with few operations, the same items meet again and again
        self.operations = [name for name in allowed if pick(4) < (1 if few else 3)] or allowed
        self.operations_left = 3 + pick(14)
        if self.oracle.waits:
            self.operations += ["rename"] * 4 * len(self.operations)
            self.operations_left += 12
        self.bounds = Bounds(
            self.limits,
            lambda: self.faults.occurs("out of time"),
            lambda _key, _what: not self.faults.occurs("contended"),
        )
        self.actions: list[Callable[[], bool]] = [
            *[self._work] * (8, 3, 16)[pick(3)],
            *[self._invoke] * (2, 1, 6)[pick(3)],
            *[self._deliver] * (2, 1, 6)[pick(3)],
            *[self._catch_up] * (2, 1, 6)[pick(3)],
            *[self._land] * (1, 3)[pick(2)],
            *[self._redrive] * (1, 2)[pick(2)],
            *[self._again] * (1, 2)[pick(2)],
            *[self._operate] * (2, 1, 6)[pick(3)],
        ]
        # writes are the last thing that happens; only where anything may happen at any time
        self.late = self.oracle.name == "O1" and bool(self.configuration.truths) and pick(3) == 2

    # ------------------------------------------------------------ the whole of it
    def run(self) -> None:
        """Play it to its end. Raises DivergenceError when something that must hold does not."""
        self._play(STORM_MAX_STEPS)
        self.calm_down()
        self.watch.settled(self.exempt())
        self._look_at_what_is_reported()
        self.mend()
        self._check_cost()
        self.watch.settled()
        if self.oracle.serial:
            self._deliver_everything_again()

    def calm_down(self) -> None:
        """End all faults, and let everything come to rest but parked items."""
        self.world.calm = self.parked_wait = True
        self.faults.heal()
        self.tell("-- the faults are over; what is parked still waits")
        self.rest("nothing fails any more")
        if silent := told(self.watch) - self.parked():
            raise DivergenceError(f"something of {sorted(silent)} is lost, and nobody reports it")

    def parked(self) -> set[Place]:
        """The items that are reported now."""
        return set(filter(None, (place_of_note(note) for note in self.world.notes if note.parked)))

    def _look_at_what_is_reported(self) -> None:
        """Items that are right, and reported all the same, are looked at again and again: once more, and they must be
        right, and still be reported.
        """
        places = reported(self.watch)
        if not places:
            return
        self.tell("-- what is reported is looked at once more")
        self.parked_wait = False
        self.looks_max = max((note.attempt for note in self.world.notes if note.parked), default=0) + 1
        self.reported = places
        self.rest("nothing fails any more")
        self.parked_wait, self.reported = True, frozenset()
        silent = places - self.from_the_beginning - self.parked()
        if silent:
            raise DivergenceError(f"nobody reports {sorted(silent)}")
        self.watch.settled(self.exempt() - places)

    def exempt(self) -> set[Place]:
        """The items that cannot take their copies, and those that wait to be looked at again."""
        return {*unfit(self.watch), *filter(None, map(place_of_note, self.world.notes))}

    def rest(self, though: str) -> None:
        """Let everything happen that can."""
        if not self._play(CALM_MAX_STEPS):
            raise DivergenceError(f"the pipeline does not come to rest, though {though}")

    def mend(self) -> None:
        """Let the applications cure the items that cannot take their copies, and let everything come to rest."""
        self.tell("-- every item can take its copies from now on")
        self.expected_writes += sum(map(parked_part, self.world.notes))  # each may have to write once its turn comes
        while places := unfit(self.watch):
            for place in places:
                for _ in range(CURES_MAX):  # an item may be too large, and in a ring too
                    if place in unfit(self.watch):  # one change may have cured several
                        self._write(mended(self.app, place), "mend")
            self.parked_wait = False
            self.rest("nothing is parked any more")
        self.parked_wait = False
        self.rest("nothing is parked any more")

    def _play(self, steps_max: int) -> bool:
        """Let things happen until nothing can, or for a number of steps. Returns true if nothing can."""
        pick, actions = self.choices.schedule.pick, self.actions
        for _ in range(steps_max):
            chosen = pick(len(actions))
            for offset in range(len(actions)):
                if actions[(chosen + offset) % len(actions)]():
                    break
            else:
                if not self._pass():
                    return True
            self.steps += 1
            self.workers.tick()
        return False

    def _deliver_everything_again(self) -> None:
        """Every record once more, in one batch per table: right copies are not written again."""
        if self.watch.orphans():
            return  # a REMOVE that comes again also deletes what was attached since
        before = self.world.writes
        changes = [change for one in self.world.streams.finished for change in one.changes]
        changes.sort(key=lambda change: int(change.position))
        for table in self.rules.tables:
            again = [change for change in changes if change.key.table == table]
            self.workers.begin(self._process(again), Batch(again, first=False))
        self._play(CALM_MAX_STEPS)
        if self.world.writes != before:
            raise DivergenceError(f"{self.world.writes - before} writes when everything was delivered again")

    def _check_cost(self) -> None:
        over = self.world.writes - self.expected_writes
        exact = self.configuration.exact_cost
        if self.oracle.serial and exact is not None and (over > 0 or (exact and over)):
            raise DivergenceError(f"{self.world.writes} writes, {self.expected_writes} were needed")
        self.expected_writes = self.world.writes  # what was allowed and not needed is no credit for the next change

    # ------------------------------------------------------------ what can happen next
    def _operate(self) -> bool:
        if self.world.calm or self.operations_left == 0 or self.workers.seconds < self.quiet_until:
            return False
        self._check_cost()
        self.operations_left -= 1
        if self.oracle.waits:
            self.quiet_until = self.workers.seconds + (0, 10, 30, 60)[self.app.pick(4)]
        name = self.operations[self.app.pick(len(self.operations))]
        write = self.possible[name](self.app)
        if write is not None or name == "read":
            self.seen["operation", name] += 1
        if write is not None:
            self._write(write, name)
        return True

    def _write(self, write: AppWrite, name: str) -> None:
        place, new = write
        old = self.watch.items.get(place)
        self.tell(f"application: {name} {words.place(place)}: {words.item(old)} -> {words.item(new)}")
        if self.oracle.prompt and any(kind.copies and place in kind.places() for kind in self.configuration.kinds):
            self.world.store.catch_up()
        self.world.operate(place, new)
        if self.oracle.serial and self.watch.items.get(place) != old:  # else it was refused, or changed nothing
            self.expected_writes += self.watch.cost(place, old, new)

    def _work(self) -> bool:
        if self.late and len(self.workers.tasks) < TASKS_MAX and self.world.streams.ready():
            return self.workers.step(lambda task: task.writes)
        return self.workers.step()

    def _invoke(self) -> bool:
        """An invocation starts with some records of some items of one table."""
        if self.workers.handlers >= TASKS_MAX:
            return False
        ready = self.world.streams.ready()
        if not ready:
            return False
        pick = self.choices.schedule.pick
        first = ready.pop(pick(len(ready)))
        others = [place for place in ready if place[0] == first[0]]
        places = [first, *others[: pick(3)]]
        changes = [
            change
            for place in places
            for change in self.world.streams.take(place, 1 + pick(len(self.world.streams.waiting[place])))
        ]
        changes.sort(key=lambda change: int(change.position))
        self.workers.begin(self._process(changes), Batch(changes))
        return True

    def _process(self, changes: Iterable[Change]) -> Work[Report]:
        """An invocation with these records: those of a stream are filtered, as they are where Lambda hands them over."""
        passed = [seen for change in changes if (seen := self._sifted(change)) is not None]
        return consumer.process(passed, self.rules, self.bounds)

    def _sifted(self, change: Change) -> Change | None:
        record_filter = self.rules.record_filters[change.key.table]
        keys = change.key.attributes()
        names = (
            record_filter.asks({"Keys": keys, "OldImage": change.old, "NewImage": change.new})
            if change.in_order
            else None
        )
        if names is False:
            return None
        old, new = (
            image and {name: value for name, value in image.items() if names is None or name in {*names, *keys}}
            for image in (change.old, change.new)
        )
        return replace(change, old=old, new=new)

    def _deliver(self) -> bool:
        """A message is delivered, any that may be."""
        if self.workers.handlers >= TASKS_MAX or not self.world.notes:
            return False
        ready = [
            note
            for note in self.world.notes
            if not (note.parked and self._waits(note))
            and self.world.store.caught_up(note.after)
            and note.due <= self.workers.seconds
        ]
        if not ready:
            return False
        note = ready[self.choices.schedule.pick(len(ready))]
        if not self.faults.occurs("message twice"):
            self.world.notes.remove(note)
        work = consumer.process_message(decode(note.text), self.rules, self.bounds, again=note.again)
        self.workers.begin(work, note)
        return True

    def _pass(self) -> bool:
        """Time passes, until the next fan-out is due that waits, or the application goes on."""
        next_operation = [self.quiet_until] if self.operations_left and not self.world.calm else []
        due = [due for due in (*next_operation, *(note.due for note in self.world.notes)) if due > self.workers.seconds]
        if not due or self.workers.processes is None:
            return False
        self.workers.processes.clock.seconds = min(due)
        self.tell(f"-- {min(due)} seconds")
        return True

    def _waits(self, note: Note) -> bool:
        """True if looking at a parked item is off, used up in this storm, or useless before a change."""
        if self.parked_wait or (not self.world.calm and note.attempt > PARKED_LOOKS_MAX):
            return True
        if self.reported:
            return place_of_note(note) not in self.reported or note.attempt >= self.looks_max
        return bool(self.world.calm and self.watch.truths and place_of_note(note) in unfit(self.watch))

    def _catch_up(self) -> bool:
        behind = self.world.store.behind()
        if not behind:
            return False
        number, row = behind[self.choices.schedule.pick(len(behind))]
        self.world.store.apply_one(number, row)
        self.tell(f"index replica {number} catches up with {row}")
        return True

    def _land(self) -> bool:
        """Apply a write whose worker gave up on it long ago; in some histories only while no worker runs."""
        if not self.world.flying or (self.late and (self.workers.tasks or self.world.streams.ready())):
            return False
        write = self.world.flying.pop(self.choices.schedule.pick(len(self.world.flying)))
        if isinstance(write, Submit):
            self.tell(f"a transaction in flight lands: {write}")
            write.writing.late = True
            with suppress(ClientError):
                land(self.world, write)
            return True
        self.tell(f"a write in flight lands: {words.write(write)} -> {words.answer(self.world.apply(write))}")
        return True

    def _redrive(self) -> bool:
        """Records that were given up are processed after all."""
        if self.workers.handlers >= TASKS_MAX or not self.world.streams.dead:
            return False
        dead = self.world.streams.dead.pop(self.choices.schedule.pick(len(self.world.streams.dead)))
        self.seen["action", "redrive"] += 1
        self.workers.begin(self._process(dead.changes), dead)
        return True

    def _again(self) -> bool:
        """A finished batch is delivered once more, whatever happened since."""
        if (
            self.workers.handlers >= TASKS_MAX
            or not self.world.streams.finished
            or not self.faults.occurs("deliver again")
        ):
            return False
        old = self.world.streams.finished[self.choices.faults.pick(len(self.world.streams.finished))]
        self.workers.begin(self._process(old.changes), Batch(old.changes, first=False))
        return True

    def tell(self, text: str) -> None:
        if self.story is not None:
            self.story.append(text)
