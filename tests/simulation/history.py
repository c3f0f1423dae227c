"""One history: applications, handlers and their faults in any order, until all is healed and quiet; then every check.

Invariant: the handlers run as they do in production, `Consumer.handle_event` and `handle_message` with compiled rules;
between any two of their requests anything else may happen. Faults come from a finite budget; then all must come to rest.
"""

# ruff: noqa: C901, PLR0912 -- a choice is a branch

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from greenlet import GreenletExit, greenlet

from sync_rules.adapters.acceptance import list_guarded_rules
from sync_rules.adapters.state import MemoryState
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Call
from sync_rules.model.limits import Limits
from sync_rules.model.writes import Check, Result, Status, Transaction
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.failure_records import make_failure_record
from sync_rules.pipeline.messages import ChunkMessage, PushMessage, format_message, parse_message
from sync_rules.pipeline.requests import Apply, FetchCall, Host, KeepCall, Later, List, Page, Park, Read, Scan
from sync_rules.pipeline.requests import World as Ports
from tests.simulation.choices import Choices
from tests.simulation.commands import DivergenceError, Kept, backfill, backfill_run_of, began
from tests.simulation.damage import damage_of_books
from tests.simulation.deletes import left_over, unfilled
from tests.simulation.followers import Following, Reading
from tests.simulation.grammar import Made
from tests.simulation.indexes import REPLICAS
from tests.simulation.kept_versions import lost
from tests.simulation.oracle import Oracle, Verdict
from tests.simulation.people import ENDINGS, Errand, People
from tests.simulation.plots import change_the_source, disturb, fits, shrunk
from tests.simulation.safety import UnsafeError
from tests.simulation.spec import Item, Path, Place, Value, get
from tests.simulation.stops import Asking, Do, ask
from tests.simulation.transacting import LOST, THROTTLED, ClientError, Submit, Writing, drawn, land, make
from tests.simulation.versions import Numbers, beside, other_version
from tests.simulation.workload import OPERATIONS, OWN, Application, Playground, Write
from tests.simulation.world import Batch, Direct, Note, World, place_of
from tests.support.transacting import cancelled

STORM_MAX_STEPS: Final = 400
CALM_MAX_STEPS: Final = 6_000
WORKERS_MAX: Final = 3
TIME_MS: Final = 900_000
SECONDS_PER_STEP: Final = 0.01
SCAN_BEHIND_MAX: Final = 12  # changes that a page of a scan may not show yet
CLOCK_BEHIND_MAX_SECONDS: Final = 40
PEOPLE: Final = ("people", "redrive", "late")  # people run commands in these modes
MODES: Final = ("", "", "", "", "people", "people", "readers", "waits")  # what there is beside the handlers
FAULTS: Final = (
    "crash before", "crash after", "throttle", "answer lost", "in flight", "crash in flight", "again", "message twice",
    "out of time", "give up", "call fails", "conflict",
)  # fmt: skip


Origin = Errand | Writing | Following | Reading


@dataclass(eq=False)
class Worker:
    """A handler, or a command, at one of its requests. `since` is when it began."""

    number: int
    origin: Batch | Note | Origin
    lane: greenlet
    since: int
    request: Any = None
    answers: dict[int, Any] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)
    read: list[Place] = field(default_factory=list)  # or listed
    asleep: int = 0  # until this step


class History:
    """A history with one rules file. `story` collects its steps in words, when given."""

    def __init__(self, made: Made, choices: Choices, story: list[str] | None = None) -> None:
        # no index lags, so no second look is due
        self.prompt = choices.configuration.pick(6) == 5 or made.mode in ("prompt", "hinted", "stale")
        made = made.prompt if self.prompt else made
        self.made, self.choices, self.story = made, choices, story
        self.seen: Counter[tuple[str, str]] = Counter()
        self.steps = self.begun = 0
        self.calm = self.late = False  # late: what was there before is right only in the end
        self.world = World(made, self.seen, self.tell)
        self.oracle = Oracle(made.spec)
        place = "playground", f"{made.dense} {made.often}"
        playground = made.spec.known.get(place)
        if playground is None:
            playground = made.spec.known[place] = Playground(made.spec, made.dense, made.often)
        self.app = Application(playground, lambda: self.world.items, self.world.past, choices.application.pick)
        self.workers: list[Worker] = []
        self.versions = [made]  # of the rules file; the first one is deployed in the end
        self.numbers: list[Numbers] = []  # of each version, where they are judged
        self.running = 0
        self.states = MemoryState(), MemoryState()  # of the backfills of each: one that died goes on
        self.switches = self.errands = self.touches = 0  # that are left
        self.mode = MODES[choices.people.pick(len(MODES))] if made.mode is None else made.mode
        self.people = People(self) if self.mode in PEOPLE else None
        self.transacting = choices.transactions.pick(3) == 2 or self.mode == "transact"  # an application does, too
        self.behind = [0.0, 0.0]  # by how much the clocks of each process are late
        self.mixed = self.mode == "mixed" and (other := beside(made)) is not None  # two versions work on one queue
        if self.mixed and other is not None:
            self.versions.append(other.prompt if self.prompt else other)
        self.quiet_until = 0.0
        self.accepted = True  # the rules
        self.own: dict[
            Place, dict[Path, Value]
        ] = {}  # the application's values where rules write that are not accepted
        self.world.watch = self._keep_own
        self.processes = 1 + choices.people.pick(3) // 2 if self.mode == "waits" else 2
        self._configure()

    def _configure(self) -> None:
        """Swarm: which operations, which faults and how many, which limits, who is quick and who is slow."""
        pick = self.choices.configuration.pick
        rounds, inline = pick(3), pick(3)
        self.impatient = (
            pick(6) == 5 or self.mode == "impatient"
        )  # what is parked gets one more look, and then waits for a redrive
        limits = Limits(
            fan_out_page_max_items=2,
            fan_out_round_max_items=(1_000, 2, 1)[rounds],
            fan_out_inline_max_items=(10_000, 2, 4)[inline],
            fan_out_second_look_max_items=(10_000, 2, 4)[inline],
            fan_out_relay_max_items=(2, 1, 3)[rounds],
            fan_out_chunk_max_items=(3, 2, 1)[rounds],
            chunk_step_max_items=(1, 2, 1)[rounds],
            fan_out_spread_max_items=(10_000, 1, 3)[(rounds + inline) % 3],
            apply_max_writes=(100, 1)[pick(2)],
            parked_max_looks=1 if self.impatient else 10**9,  # an item may stay as it is for as long as it likes
        )
        if self.made.often:  # large fan-outs
            limits = replace(
                limits, fan_out_inline_max_items=(2, 2, 4)[inline], fan_out_spread_max_items=(1, 3, 10_000)[rounds]
            )
        if self.mode == "waits":
            wait = (60, 25, 150)[self.choices.people.pick(3)]
            limits = replace(limits, fan_out_inline_max_items=(2, 4)[self.choices.people.pick(2)],
                             fan_out_again_first_seconds=wait,
                             fan_out_again_max_seconds=wait * (4, 1)[self.choices.people.pick(2)])  # fmt: skip
        self.percent = (0, 4, 10, 25)[pick(4)]
        self.budget = (8, 20, 40)[pick(3)]
        self.possible = frozenset(fault for fault in FAULTS if pick(2) == 0)
        if pick(4) == 3:  # one fault, again and again
            self.possible, self.percent = frozenset({FAULTS[pick(len(FAULTS))]}), 40
        names = [name for name in OPERATIONS if pick(5) < 4] or list(OPERATIONS)
        self.app.fills = not self.impatient
        names = [name for name in names if name != "fill" or self.app.fills] or list(OPERATIONS)
        self.operations = [name for name in names for _ in range(OPERATIONS[name][0])]
        self.operations_left = 6 + pick(24)
        if self.mode == "waits":
            self.operations_left += 14
        elif self.made.often and pick(2):  # few, so that no later fan-out hides what became of one
            self.operations_left //= 4
        self.overtaking = ((3, 8, 2) if self.made.dense else (0, 8, 3))[pick(3)]  # one in this number of requests
        self.lag = self.mode in ("hinted", "stale") or (not self.prompt and pick(3) < 2)
        if self.mode == "hinted":  # an item's own record shows what an index does not show yet
            self.operations = [name for name in self.operations if name in ("insert", "change")] or ["insert", "change"]
            self.overtaking = 0
        self.app.has_own = self.mode == "new"
        if self.mode in ("stale", "new"):
            self.transacting = False
        if self.mode == "stale":  # rows of an index lag in their copies alone, so no second look is due
            self.overtaking = 0
        self.slow = pick(2) == 1  # an index that lags does so until the faults are over
        if pick(3) == 2:  # the items of one rule alone, so that the same ones meet again and again
            of_rules = self.app.playground.of_rules
            self.app.focus = of_rules[pick(len(of_rules))] or self.app.focus
        tampers = self.made.spec.ledgers and not self.impatient and (pick(4) == 3 or self.mode == "meddled")
        self.tampering = 1 + pick(3) if tampers else 0  # how often somebody writes to the books
        self.tampered = False
        self.seen.update(("mode", name) for name in ("prompt", "impatient", "lag", "slow") if getattr(self, name))
        self.limits = limits
        self._deploy()
        self.actions: list[Callable[[], bool]] = [
            *[self._work] * (8, 3, 16)[pick(3)],
            *[self._invoke] * (2, 1, 6)[pick(3)],
            *[self._deliver] * (2, 1, 6)[pick(3)],
            *[self._catch_up] * (2, 1, 6)[pick(3)],
            *[self._land] * (1, 3)[pick(2)],
            *[self._again] * (1, 2)[pick(2)],
            *[self._pass] * (0, 1)[pick(2)],
            *[self._operate] * (2, 1, 6)[pick(3)],
            *[self._tamper] * (self.tampering > 0),
            *[self._beside] * (self.mode in (*PEOPLE, "readers")),
        ]

    def _deploy(self) -> None:
        """The handlers of the version that runs, in their processes."""
        self.consumers = [self._process(number) for number in range(self.processes)]

    def _process(self, number: int) -> Consumer:
        """A process. Its first clock, or its second, may be late, as where it was frozen."""
        ports = Asking()
        outside = Ports(ports, ports, ports, ports, ports, ports)
        late = self.choices.people.pick(2) if self.mode == "waits" else 0
        clocks = [lambda: self.world.now, lambda: self.world.now - self.behind[number]]
        version = number % 2 if self.mixed else self.running
        host, rules = Host(clocks[1 - late], clocks[late], nullcontext), self.versions[version].rules
        ways = {rule.name: "run a backfill" for rule in list_guarded_rules(rules)}
        return Consumer(rules, outside, host, limits=self.limits, unaccepted=lambda: {} if self.accepted else ways)

    # ---------------------------------------------------------------- the whole of it
    def begin(self) -> bool:
        """Make some items that are older than the rules, or none. A backfill makes them right before anything happens,
        or only in the end. Return True in the second case.
        """
        pick = self.choices.configuration.pick
        how = pick(12)
        if self.made.dense:
            how = {"versions": 8, "people": 4 + how % 3, "late": 6, "new": 6}.get(
                self.mode, 4
            )  # else a last backfill would hide much
        if how < 4:
            began(self.made, self.world)
            return False
        if how >= 8 and self.mode in ("", "versions"):
            self._count(pick)
        least = 24 if self.made.often else 8 if self.numbers or self.made.dense else 4
        for _ in range(least + self.app.pick(8)):
            write = self.app.insert()
            if write is not None:
                with suppress(StoreError):
                    self.world.quietly(*write)
                    self._note_own(*write)
        self.world.unheard = list(self.world.items.items())
        if how < 6 or (self.numbers and pick(2)):
            self.tell(f"-- a backfill of {len(self.world.items)} items")
            self.backfilled()
        elif not self.world.unheard:  # all were refused: the tables are empty after all
            began(self.made, self.world)
        self.late = how >= 6 and bool(self.world.unheard)
        self.accepted = self.mode != "new" or not self.late
        return self.late

    def _count(self, pick: Callable[[int], int]) -> None:
        """From now on nothing that counts changes, and every number is judged. Rules are deployed and rolled back."""
        numbers = Numbers.of(self.made.spec, self.world.safety)
        other = other_version(self.made) if numbers.shown else None
        if other is None:
            return
        rule = list(self.made.spec.rules).index(numbers.shown[pick(len(numbers.shown))][0]["name"])
        self.app.focus = self.app.playground.of_rules[rule]
        self.versions.append(other)
        self.numbers = [numbers, Numbers.of(other.spec, self.world.safety)]
        self.world.safety.judge = numbers.check
        self.operations_left = self.tampering = 0
        self.possible -= {"in flight", "crash in flight"}  # a write of a version that is gone may be seen for a moment
        self.switches, self.errands = pick(5), 1 + pick(3)
        self.touches = 10 + pick(20)
        self.actions += [*[self._touch] * 2, self._switch, *[self._backfill] * 2]

    def backfilled(self) -> None:
        """A backfill, whose failures are redriven later. It accepts the rules."""
        self.accepted = True
        if self.people is not None and self.late:
            self.people.bring_in_line()
            return
        for message in backfill(self.made, Direct(self.world)).messages():
            self.world.later(message, 60, self.world.clock)

    def storm(self) -> None:
        """Let anything happen, for a while."""
        self.world.store.lag = self.lag
        if self.people is not None:
            self.people.starts(late=self.late)
        self._play(STORM_MAX_STEPS)
        self.world.loses = lambda: False
        if self.mixed:
            self.mixed = False
            self._deploy()
        if self.running:
            self._go_to(0)

    def rest(self) -> None:
        """End all faults, and let everything come to rest; first, perhaps, while there are items without room."""
        self.calm = True
        self.tell("-- the faults are over")
        full = shrunk(self.world.items)
        if full and self.choices.configuration.pick(2):
            self._settle()
            self._check_full()
        while full:
            for write in full:
                self.tell(f"application: room in {_key(write[0])}")
                self.world.operate(*write)
            self._settle()
            full = shrunk(self.world.items)
        self._settle()

    def _check_full(self) -> None:
        """Check that full items block no other value: all that fits is right. Raises DivergenceError."""
        if self.late or self.world.lost or self.world.shelf:
            return
        for (name, place), values in self.oracle.look(self.world.items).differing.items():
            kind, item = self.made.spec.rules[name]["kind"], self.world.items[place]
            if kind in ("copy", "derive") and fits(item, values):
                raise DivergenceError(f"rule {name} ({kind}) on {_key(place)}: not {values}, and there is room")

    def start(self, origin: Origin) -> None:
        """Somebody begins something beside the handlers."""
        self._begin(origin)

    def finish(self, origin: Origin) -> None:
        """Let somebody begin and end something while no other worker runs."""
        self._begin(origin)
        while any(one.origin is origin for one in self.workers):
            self._work()

    def settle(self) -> None:
        """Let everything happen that can."""
        self._settle()

    def _settle(self) -> None:
        if not self._play(CALM_MAX_STEPS):
            raise DivergenceError("the pipeline does not come to rest")
        self.world.store.catch_up()

    def redrive(self) -> None:
        """Make the calls that were given up, and redrive what is parked if no worker looks at it again. By then a
        copy is right if a change of its item or of its source cured it. Last, send all recorded failures again, until
        that changes nothing.
        """
        for text in self.world.given_up.values():
            self.world.later(parse_message(text), 0, since=-1)
        self.world.given_up.clear()
        self.rest()
        if self.people is not None:
            self.people.redrive()
            self.people.complete()
            self.people.redrive()
        if not self.impatient:
            return
        cured = (" (copy) on ", " (derive) on ")
        wrong = [one for one in self.oracle.look(self.world.items).wrong if any(what in one for what in cured)]
        if wrong:
            raise DivergenceError("\n  ".join(wrong))
        before = -1
        while before < self.world.clock:
            before = self.world.clock
            names = {rule.name: rule.message_name for made in self.versions for rule in made.rules.rules.values()}
            failures = (replace(one, rule=names.get(one.rule, one.rule)) for one in self.world.failures)
            for message in Kept(failures).messages():
                self.world.later(message, 0, since=-1)  # at once: people redrive for a reason
            self.rest()

    def judged(self) -> Verdict:
        """All items against the truth. Raises DivergenceError."""
        verdict = self.oracle.look(self.world.items)
        wrong = verdict.wrong
        if not self.world.lost:  # else it is unknown what the records showed
            if not self.world.shelf:  # else a batch that failed waits for a redrive, which makes the versions it showed
                wrong = wrong or list(lost(self.made.spec, self.world))
            wrong = wrong or list(unfilled(self.made.spec, self.world, verdict))
            wrong = wrong or ([] if self.prompt else list(left_over(self.made.spec, self.world, verdict)))
        if wrong:
            raise DivergenceError("\n  ".join(wrong))
        return verdict

    def end(self) -> None:
        """Let go of the workers that are left."""
        for worker in self.workers:
            self._kill(worker)

    def _play(self, steps_max: int) -> bool:
        """Let things happen until nothing can, or for a number of steps. Returns true if nothing can."""
        pick, actions = self.choices.schedule.pick, self.actions
        for _ in range(steps_max):
            chosen = pick(len(actions))
            for offset in range(len(actions)):
                if actions[(chosen + offset) % len(actions)]():
                    break
            else:
                if self.mode != "waits" or not self._pass():
                    return True
            self.steps += 1
            self.world.now += 1 if self.mode == "waits" else SECONDS_PER_STEP
        return False

    # ---------------------------------------------------------------- what can happen next
    def occurs(self, fault: str) -> bool:
        if self.calm or self.budget <= 0 or fault not in self.possible or not self.choices.faults.chance(self.percent):
            return False
        self.budget -= 1
        self.seen["fault", fault] += 1
        return True

    def _operate(self) -> bool:
        if self.calm or (self.operations_left == 0 and not self.app.following) or self.world.now < self.quiet_until:
            return False
        if self.mode == "waits":
            self.quiet_until = self.world.now + (10, 30, 60, 45)[self.choices.people.pick(4)]
        follows = self.app.following and (self.operations_left == 0 or self.choices.schedule.pick(4))
        self.operations_left -= not follows
        self.operate(follows=bool(follows))
        return True

    def operate(self, *, follows: bool = False) -> None:
        """An application makes a write: one that follows in a plot, or any."""
        name = "follow" if follows else self.operations[self.app.pick(len(self.operations))]
        often = self.made.often and not follows and self.app.pick(8 if self.mode == "waits" else 2)
        if often or self.mode == "stale":
            name, write = "change", change_the_source(self.app, most=self.mode == "waits")
        else:
            write = self.app.follow() if follows else OPERATIONS[name][1](self.app)
        if write is None or (self.transacting and self._transact(write)):
            return
        expiring = write[1] is None and self.app.pick(3) == 2
        if self.story is not None:
            old = self.world.items.get(write[0])
            self.tell(f"application: {name} {_key(write[0])}: {_words(old)} -> {_words(write[1])}")
        if self.mode == "hinted" and (kind := self.app.kind_of(write[0])) is not None and kind.owned:
            self.world.store.catch_up()
        if self.world.operate(*write, expiring=expiring):
            self.seen["operation", name] += 1
            self._note_own(*write)

    def _note_own(self, place: Place, new: Item | None) -> None:
        """Note the values of an item that no rule has made; each such text belongs to one place."""
        kind = self.app.kind_of(place)
        self.own[place] = {}
        for path in kind.owned if kind is not None and self.app.has_own else ():
            value = get(new, path) or {}
            texts = [text for text in (value.get("S", ""), *value.get("SS", ())) if text.startswith(OWN)]
            if texts and self.app.own_texts.setdefault(texts[0], (place, path)) == (place, path):
                self.own[place][path] = {"SS": texts} if "SS" in value else value

    def _keep_own(self, place: Place, new: Item | None) -> None:
        """Raise UnsafeError if rules that are not accepted take a value of the application away."""
        for path, value in () if self.accepted else self.own.get(place, {}).items():
            now = get(new, path) or {}
            if now != value and not {*value.get("SS", (OWN,))} <= {*now.get("SS", ())}:
                raise UnsafeError(f"rules that are not accepted take {value} at {path} of {place}: {now}")

    def _transact(self, first: Write) -> bool:
        """An application begins a transaction with this write, or does not."""
        if self.calm or len(self.workers) >= WORKERS_MAX or not self.choices.transactions.pick(3):
            return False
        writing = drawn(self, first)
        if writing is None:
            return False
        self.seen["transact", "begun"] += 1
        self._begin(writing)
        return True

    def _tamper(self) -> bool:
        """Somebody writes to the books while everybody is at work, with or without a record of it."""
        found = (
            None
            if self.calm or not self.tampering
            else damage_of_books(self.made, self.world, self.app.pick, ranks=self.mode == "meddled")
        )
        if found is None:
            return False
        self.tampering -= 1
        self.tampered = self.mode != "meddled"
        place, item = found
        self.tell(f"-- damage: the books at {_key(place)}: {_words(self.world.items[place])} -> {_words(item)}")
        self.seen["damage", "meanwhile"] += 1
        with suppress(StoreError):
            heard = bool(self.app.pick(2)) or not self.tampered
            (self.world.operate if heard else self.world.quietly)(place, item)
        return True

    def _work(self) -> bool:
        if not self.workers:
            return False
        awake = [one for one in self.workers if one.asleep <= self.steps] or self.workers
        if self.people is not None and self.people.hesitant and not self.calm and self.choices.people.pick(6):
            others = [one for one in awake if not (isinstance(one.origin, Errand) and isinstance(one.request, Apply))]
            awake = others or awake
        self._step(awake[self.choices.schedule.pick(len(awake))])
        return True

    def _invoke(self) -> bool:
        """An invocation starts with some records of some items of one table."""
        ready = self.world.streams.ready() if len(self.workers) < WORKERS_MAX else []
        if not ready:
            return False
        pick = self.choices.schedule.pick
        first = ready.pop(pick(len(ready)))
        others = [place for place in ready if place[0] == first[0]]
        pairs = []
        for place in [first, *others[: pick(4)]]:
            count = len(self.world.streams.waiting[place])
            pairs += [(place, one) for one in self.world.streams.take(place, 1 + pick(count))]
        pairs.sort(key=lambda pair: int(pair[1]["dynamodb"]["SequenceNumber"]))
        self._begin(Batch([one for _, one in pairs], [place for place, _ in pairs]))
        return True

    def _deliver(self) -> bool:
        """A message is delivered, any that may be."""
        if len(self.workers) >= WORKERS_MAX:
            return False
        notes = self.world.notes
        ready = [one for one in notes if self._due(one) and one.due <= self.world.now]
        if not ready:
            return self.calm and not self.workers and self._pass()
        note = ready[self.choices.schedule.pick(len(ready))]
        if not self.occurs("message twice"):
            notes.remove(note)
        message = parse_message(note.text) if self.made.often else None
        if isinstance(message, ChunkMessage) and self._overtakes(checked=False):
            self._operate_on([place_of(key) for key in message.targets])
        self._begin(note)
        return True

    def _due(self, note: Note) -> bool:
        """True if a message may come: a second look when the indexes have caught up, a look at what was parked where it
        can find anything else than before.
        """
        if note.parked:
            return self.world.clock > note.since
        return self.world.store.caught_up(note.after)

    def _pass(self) -> bool:
        """Time passes, until the next message is due that can find anything, or an application goes on."""
        due = [one.due for one in self.world.notes if self._due(one)]
        due += [self.quiet_until] if not self.calm and self.operations_left else []
        due = [one for one in due if one > self.world.now]
        if not due:
            return False
        self.world.now = min(due)
        return True

    def _catch_up(self) -> bool:
        behind = [] if self.slow and not self.calm else self.world.store.behind()
        if not behind:
            return False
        number, row = behind[self.choices.schedule.pick(len(behind))]
        self.world.store.apply_one(number, row)
        return True

    def _land(self) -> bool:
        """Apply a write whose worker gave up on it long ago."""
        if not self.world.flying:
            return False
        write = self.world.flying.pop(self.choices.schedule.pick(len(self.world.flying)))
        if isinstance(write, Submit):
            write.writing.late = True
            self.tell(f"a transaction in flight lands: {write}")
            with suppress(ClientError):
                land(self.world, write)
            return True
        self.tell(f"a write in flight lands: {_write(write)} -> {self.world.apply(write).status.value}")
        return True

    def _again(self) -> bool:
        """Process what was given up after all, or a finished batch once more, whatever happened since."""
        streams = self.world.streams
        while streams.dead and self.people is not None:
            self.world.give_up(streams.dead.pop(0))
        if len(self.workers) >= WORKERS_MAX:
            return False
        if streams.dead:
            self._begin(streams.dead.pop(self.choices.schedule.pick(len(streams.dead))))
            return True
        if not streams.finished or not self.occurs("again"):
            return False
        old = streams.finished[self.choices.faults.pick(len(streams.finished))]
        self._begin(Batch(old.records, old.places, first=False))
        return True

    # ---------------------------------------------------------------- versions of the rules
    def _touch(self) -> bool:
        """The record of an item's insert is delivered."""
        if self.calm or not self.touches or not self.world.unheard:
            return False
        self.touches -= 1
        place, _ = self.world.unheard[self.app.pick(len(self.world.unheard))]
        if place in self.world.items:
            self.world.insert_again(place)
        return True

    def _switch(self) -> bool:
        if self.calm or not self.switches or self.choices.schedule.pick(4):
            return False
        self.switches -= 1
        self._go_to(1 - self.running)
        return True

    def _go_to(self, version: int) -> None:
        """Another version is deployed; what works meanwhile dies."""
        for worker in list(self.workers):
            self._die(worker, "deployed")
        self.running = version
        self.tell(f"-- version {version} of the rules is deployed:\n{self.versions[version].text if version else ''}")
        self.seen["version", "deployed"] += 1
        self.world.safety.judge = self.numbers[version].check
        self._deploy()

    def _backfill(self) -> bool:
        if self.calm or not self.errands or len(self.workers) >= WORKERS_MAX:
            return False
        self.errands -= 1
        ports = Asking()
        run = backfill_run_of(self.versions[self.running], ports, ports, self.states[self.running]).run
        self._begin(Errand("backfill", lambda _errand: run()))
        return True

    def _beside(self) -> bool:
        """People begin a command, or an application looks at an item or follows its writes."""
        if self.calm:
            return False
        if self.people is not None:
            return self.people.begin()
        at_work = sum(isinstance(one.origin, Following | Reading) for one in self.workers)
        if at_work > 1 or self.choices.people.pick(4) or not self.world.items:
            return False
        kind = Following if self.choices.people.pick(2) else Reading
        one = kind.drawn(self)
        if one is not None:
            self._begin(one)
        return one is not None

    # ---------------------------------------------------------------- workers
    def _begin(self, origin: Batch | Note | Origin) -> None:
        self.begun += 1
        number = self.begun % len(self.consumers)
        if isinstance(origin, Batch) and self.mixed and len({len(one.rules.rules) for one in self.versions}) > 1:
            number = 0  # the version with fewer rules reads no stream: only messages can get lost
        consumer = self.consumers[number]
        if self.mode == "waits" and not self.calm and self.choices.people.pick(30) == 29:
            self.behind[number] += self.choices.people.pick(CLOCK_BEHIND_MAX_SECONDS)
            self.seen["clock", "behind"] += 1
        if isinstance(origin, Errand):
            lane = greenlet(lambda: origin.run(origin))
        elif isinstance(origin, Following | Reading):
            lane = greenlet(lambda: origin.run(self.made.rules))
        elif isinstance(origin, Writing):
            made = self.versions[self.running]
            lane = greenlet(lambda: make(origin, made.rules, made.spec, Asking(), ask))
        elif isinstance(origin, Batch):
            event = self.world.event_of(origin.records)
            lane = greenlet(lambda: consumer.handle_event(event, self._remaining_ms))
        else:
            message = parse_message(origin.text)
            lane = greenlet(lambda: consumer.handle_message(message, self._remaining_ms, again=origin.again))
        worker = Worker(self.begun, origin, lane, self.world.clock)
        self.workers.append(worker)
        if self.story is not None:
            self.tell(f"worker {worker.number} starts with {origin.described()}")
        self._resume(worker, lane.switch)

    def _remaining_ms(self) -> int:
        return 0 if self.choices.faults.pick(3) == 2 and self.occurs("out of time") else TIME_MS

    def _resume(self, worker: Worker, to_next: Callable[[], Any]) -> None:
        """Let a worker run to its next request, or its end."""
        try:
            request = to_next()
        except ENDINGS as error:  # of a message: it comes again; of a command: it ends
            self._over(worker, str(error))
            return
        if worker.lane.dead:
            self._over(worker, request)
            return
        worker.request, worker.answers = request, {}
        several = request.keys if isinstance(request, Read) else request.writes if isinstance(request, Apply) else (0,)
        worker.left = list(range(len(several)))
        if not worker.left:
            self._resume(worker, lambda: worker.lane.switch(()))

    def _over(self, worker: Worker, answer: Any) -> None:
        self.workers.remove(worker)
        origin = worker.origin
        self.tell(f"worker {worker.number} is done: {answer}")
        if isinstance(origin, Errand):
            self.seen["errand", "done" if answer is True else "left"] += 1
            self.seen[origin.kind, "done" if answer is True else "not done"] += 1
            return
        if isinstance(origin, Following | Reading):
            self.seen[origin.kind, str(answer)] += 1
            return
        if isinstance(origin, Writing):
            how = answer.partition(":")[0] if isinstance(answer, str) else "left" if answer.left else "made"
            self.seen["transact", how] += 1
            return
        if isinstance(origin, Note):
            if answer is not None and self.people is not None and self.people.gives_up():
                self.world.put_aside(origin.text)
            elif answer is not None:
                self.world.notes.append(replace(origin, again=True))
            return
        failures = answer["batchItemFailures"]
        failed = failures[0]["itemIdentifier"] if failures else None
        gives_up = failed is not None and (
            self.occurs("give up") or (self.people is not None and self.people.gives_up())
        )
        self.world.streams.over(origin, failed, gives_up=gives_up)

    def _kill(self, worker: Worker) -> None:
        worker.lane.throw(GreenletExit)

    def _die(self, worker: Worker, fault: str) -> None:
        self.tell(f"worker {worker.number} dies: {fault} of {_request(worker.request)}")
        self.workers.remove(worker)
        self._kill(worker)
        if self.mode == "waits":  # its process is gone, with all that it knew
            number = worker.number % len(self.consumers)
            self.consumers[number] = self._process(number)
        if isinstance(worker.origin, Errand | Following | Reading):
            self.seen[worker.origin.kind, "died"] += 1
        if isinstance(worker.origin, Note):
            self.world.notes.append(replace(worker.origin, again=True))
        elif isinstance(worker.origin, Batch):
            self.world.streams.over(worker.origin, "", gives_up=False)

    def _step(self, worker: Worker) -> None:
        """One worker makes its request, or a part of one: reads of several keys and writes are no unit."""
        request, pick = worker.request, self.choices.schedule.pick
        if self.occurs("crash before"):
            self._die(worker, "before")
            return
        checked = _checked(request)
        if isinstance(request, Apply | List | Read | Submit) and worker.read and self._overtakes(checked=bool(checked)):
            worker.asleep = self.steps + 10 + 10 * pick(3)
            beside = _written(request) if self.made.dense else []
            self._operate_on(self._ahead(worker) or checked or [*beside, *worker.read])
            return
        if isinstance(request, Read):
            worker.read = [*(place_of(key) for key in request.keys), *worker.read][:6]
        if isinstance(request, Read | Apply):
            apart = len(worker.left) > 1 and pick(3) == 2
            parts = [worker.left[pick(len(worker.left))]] if apart else list(worker.left)
            for part in parts:
                answer = (
                    self._read(worker, request, part)
                    if isinstance(request, Read)
                    else self._apply(worker, request, part)
                )
                if answer is None and worker not in self.workers:
                    return
                if isinstance(answer, StoreError):
                    self._resume(worker, lambda error=answer: worker.lane.throw(error))  # type: ignore[misc]
                    return
                worker.left.remove(part)
                worker.answers[part] = answer
            if worker.left:
                return
            whole = tuple(worker.answers[part] for part in sorted(worker.answers))
            if self.story is not None:
                told = [a.status.value if isinstance(a, Result) else _words(a) for a in whole]
                self.tell(f"worker {worker.number}: {_request(request)} -> {', '.join(told)}")
        else:
            try:
                whole = self._other(worker, request)
            except (StoreError, ClientError) as error:
                self.tell(f"worker {worker.number}: {_request(request)} -> {error}")
                self._resume(worker, lambda error=error: worker.lane.throw(error))  # type: ignore[misc]
                return
            if worker not in self.workers:
                return
            if self.story is not None:
                self.tell(f"worker {worker.number}: {_request(request)} -> {_words(whole)}")
        if self.occurs("crash after"):
            self._die(worker, "after")
            return
        self._resume(worker, lambda: worker.lane.switch(whole))

    def _overtakes(self, *, checked: bool) -> bool:
        """True if an application changes now what a worker has read, before the worker writes: more often where the write
        checks another item than its own.
        """
        if self.calm or not self.operations_left or not self.overtaking:
            return False
        odds = 2 if checked else self.overtaking
        if self.choices.schedule.pick(odds) != odds - 1:
            return False
        self.operations_left -= 1
        self.seen["overtaken", "overtaken"] += 1
        return True

    def _operate_on(self, places: list[Place]) -> None:
        """An application changes something that a worker has read and goes by."""
        write = disturb(self.app, places)
        if write is not None:
            self.tell(f"application: change {_key(write[0])} -> {_words(write[1])}")
            if self.world.operate(*write):
                self._note_own(*write)

    def _ahead(self, worker: Worker) -> list[Place]:
        """The items of a table whose listing goes on that it has not shown yet."""
        request = worker.request
        if not isinstance(request, List) or request.cursor is None or not self.made.often:
            return []
        return [place for place in self.world.items if place[0] == request.table and place not in worker.read]

    def _throttled(self, worker: Worker) -> bool:
        """True if a request is throttled: more often one of a message, where large fan-outs go on as messages."""
        many = self.made.often and isinstance(worker.origin, Note) and not self.calm and self.choices.faults.chance(6)
        return many or self.occurs("throttle")

    def _read(self, worker: Worker, request: Read, part: int) -> Any:
        if self._throttled(worker):
            return StoreError("ThrottlingException")
        try:
            return self.world.store.read(Read((request.keys[part],), request.attributes))[0]
        except StoreError as error:
            return error

    def _scan(self, worker: Worker, request: Scan) -> Page:
        """A page as short as it likes to be. If it need not be consistent, it may be of a while ago, but of no time
        before its command waited.
        """
        origin = worker.origin
        if self.calm or self.people is None or not isinstance(origin, Errand):
            return self.world.store.scan(request)
        pick, clock = self.choices.people.pick, self.world.clock
        request = replace(request, limit=1 + pick(3))
        behind = 0 if request.consistent else pick(1 + min(clock - origin.since, SCAN_BEHIND_MAX))
        if not behind:
            return self.world.store.scan(request)
        self.seen["page", "old"] += 1
        items = [item for at, item in self.world.items_before(behind).items() if at[0] == request.table]
        return self.world.store.scan_of(request, items)

    def _apply(self, worker: Worker, request: Apply, part: int) -> Result | None:
        write = request.writes[part]
        conflict = "TransactionConflict" if isinstance(write, Transaction) else "ThrottlingException"
        if self._throttled(worker) or (isinstance(write, Transaction) and self.occurs("conflict")):
            return Result(Status.FAILED, reason=conflict)
        if self.occurs("answer lost"):
            self.world.apply(write)
            return Result(Status.FAILED, reason=conflict)
        if self.occurs("in flight"):
            self.world.flying.append(write)
            return Result(Status.FAILED, reason=conflict)
        if self.occurs("crash in flight"):
            self.world.flying.append(write)
            self._die(worker, "in flight")
            return None
        return self.world.apply(write)

    def _submit(self, worker: Worker, request: Submit) -> None:
        """A transaction of an application is sent."""
        if self.occurs("throttle"):
            raise THROTTLED
        if request.token not in self.world.done and self.occurs("conflict"):
            raise cancelled([{"Code": "TransactionConflict"} for _ in request.items])
        if self.occurs("in flight"):
            self.world.flying.append(request)
            raise LOST
        if self.occurs("crash in flight"):
            self.world.flying.append(request)
            self._die(worker, "in flight")
            return
        land(self.world, request)
        if self.occurs("answer lost"):
            raise LOST

    def _other(self, worker: Worker, request: Any) -> Any:
        if isinstance(request, Submit):
            return self._submit(worker, request)
        if self._throttled(worker):
            raise StoreError("ThrottlingException")
        match request:
            case List():
                pick, store = self.choices.faults.pick, self.world.store
                replica = pick(REPLICAS) if store.lag and request.index else 0
                store.left_out = 0 if self.calm else pick(3)
                page = store.list_from(replica, request)
                self.seen["page", "short"] += page.cursor is not None and len(page.items) < request.limit
                table = self.made.spec.tables[request.table]
                worker.read = [*(table.place(item) for item in page.items), *worker.read][:6]
                return page
            case Scan():
                return self._scan(worker, request)
            case Do():
                answer = request.act()
                if self.occurs("answer lost"):
                    raise StoreError("ThrottlingException")
                return answer
            case Later():
                large = self.mode == "waits" and isinstance(request.message, PushMessage) and request.message.spread
                if large and not self.calm and self.choices.people.chance(15):
                    raise StoreError("ThrottlingException")
                self.world.later(request.message, request.delay_seconds, worker.since)
            case Park():
                self.seen["failure", request.failure.reason] += 1
                self.world.failures.append(request.failure)
                if self.people is not None and request.failure.key is not None:
                    self.world.put_aside(
                        json.dumps(make_failure_record(request.failure, datetime.fromtimestamp(0, UTC)))
                    )
            case Call():
                if (request.rule, request.change.position) not in self.world.calls and self.occurs("call fails"):
                    raise StoreError("CallFailed")
                self.world.call(request)
            case KeepCall():
                self.world.given_up[str(len(self.world.given_up))] = format_message(request.message)
                return str(len(self.world.given_up) - 1)
            case FetchCall():
                return parse_message(self.world.given_up[request.place])
            case _:
                raise AssertionError(f"no request of a handler: {request}")
        if self.occurs("answer lost"):
            raise StoreError("ThrottlingException")
        return None

    def tell(self, text: str) -> None:
        if self.story is not None:
            self.story.append(text)


def _written(request: Any) -> list[Place]:
    """The items that are about to be written."""
    writes = request.writes if isinstance(request, Apply) else ()
    actions = (write.actions if isinstance(write, Transaction) else (write,) for write in writes)
    return [place_of(one.key) for some in actions for one in some]


def _checked(request: Any) -> list[Place]:
    """The items of a transaction that checks one: what it goes by, and what it writes."""
    if isinstance(request, Submit):
        return request.places
    writes = request.writes if isinstance(request, Apply) else ()
    some = [write.actions for write in writes if isinstance(write, Transaction)]
    return [place_of(one.key) for actions in some if any(isinstance(one, Check) for one in actions) for one in actions]


# ---------------------------------------------------------------- in words
def _key(place: Place) -> str:
    return f"{place[0]}[{', '.join(str(content) for _, content in place[1])}]"


def _words(item: Any) -> str:
    if item is None:
        return "nothing"
    if isinstance(item, Page):
        return f"{len(item.items)} items{' and more' if item.cursor else ''}: {[_words(one) for one in item.items]}"
    return (
        repr({name: next(iter(value.values())) for name, value in item.items()})
        if isinstance(item, dict)
        else str(item)
    )


def _write(write: Any) -> str:
    return str(write)[:600]


def _request(request: Any) -> str:
    if isinstance(request, Read):
        return f"read {', '.join(map(str, request.keys))}"
    if isinstance(request, List):  # a set has no order of its own
        return f"{replace(request, attributes=None)} of {sorted(request.attributes or ())}"
    return str(request)[:1200]
