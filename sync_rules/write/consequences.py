"""The consequences of the application's actions: the pipeline's own work on a store, until nothing changes any more.

Invariant: `leftovers` lists all work that is left to the stream: effects, second looks through an index, messages,
parked work, incomplete books, and listings that are too long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from sync_rules.model.entities import Entity
from sync_rules.model.errors import OUT_OF_TIME, StoreError
from sync_rules.model.items import Change, Failure, ItemKey, Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.semantics import Place, make_place
from sync_rules.model.values import Item, Path, get, has_changed
from sync_rules.pipeline.books import read_marks
from sync_rules.pipeline.messages import CallMessage, Message, PartMessage, PullMessage
from sync_rules.pipeline.report import Report
from sync_rules.pipeline.requests import Store, Work, World, read_all, run_work
from sync_rules.pipeline.tasks import Pull, Tasks, make_tasks
from sync_rules.pipeline.work import STAGES, do_tasks
from sync_rules.rules.families import Part, TargetRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules
from sync_rules.write.read_through import IN_MEMORY, TOO_MANY

ROUNDS_MAX: Final = 50
EFFECT: Final = "an effect outside the tables"
SECOND_LOOK: Final = "a second look through an index"
MESSAGE: Final = "more items than are done at once"
BOOKS: Final = "its books are not complete"
NO_ROOM: Final = "more items than a transaction has room for"
ENDLESS: Final = "it does not come to an end"
DECIDED: Final = frozenset({Outcome.COPIED, Outcome.DELETED, Outcome.RIGHT, Outcome.KEPT})
PASSING: Final = (EFFECT, MESSAGE, NO_ROOM, ENDLESS, TOO_MANY, OUT_OF_TIME)  # the stream does it at once
BY_THE_STREAM: Final = "by the stream, a moment after the write"

Pushed = tuple[ItemKey, tuple[str, ...]]  # the item that a push starts from, and its rules


class ChangeLog(Store, Protocol):
    """A store that lists the changes that were made on it. `writes` is their number."""

    writes: int  # how many were made

    def changes(self) -> Sequence[Change]:
        """Return the changes since the last call."""

    def item(self, key: ItemKey) -> Item | None:
        """Return an item as it was last read or written."""


@dataclass(frozen=True, slots=True)
class Left:
    """Work left to the stream: its rule, the reason, the number of items (None if unknown), and when the stream
    usually does it.
    """

    rule: str
    why: str
    items: int | None = None
    when: str = BY_THE_STREAM


@dataclass
class Consequences:
    """The consequences on one store. `skipped` are pushes that are left to the stream from the beginning; `pushed`
    counts the writes of each push. `own` are the keys of the items that the application writes. `alone`: no other
    writer changes the store meanwhile.
    """

    rules: Rules
    store: ChangeLog
    out_of_time: Callable[[], bool]
    limits: Limits = IN_MEMORY
    skipped: frozenset[Pushed] = frozenset()
    own: Sequence[ItemKey] = ()
    alone: bool = False
    pushed: Counter[Pushed] = field(default_factory=Counter)
    _left: dict[tuple[str, str], int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._bounds = Bounds(self.limits, self.out_of_time)
        self._world = World(self.store, self, self)
        self._is_certain = False  # the last changes are writes of rules, which left nothing undecided
        self._parts: set[Part] = set()  # the parts that the last round reconciled
        self._partial: set[Entity] = set()  # the entities of targets that the last round reconciled by some rules only

    @property
    def leftovers(self) -> tuple[Left, ...]:
        named = [
            Left(self._find_title(rule), why, items, self._describe_time(rule, why))
            for (rule, why), items in self._left.items()
        ]
        return tuple(dict.fromkeys(named))

    def _find_title(self, rule: str) -> str:
        found = self.rules.rules.get(rule)
        return rule if found is None else found.title

    def _describe_time(self, rule: str, why: str) -> str:
        """The time when it is usually done."""
        if why == SECOND_LOOK and rule in self.rules.rules:
            return f"{self.rules.rules[rule].settle_seconds} s after the write, when the index shows it"
        if why == BOOKS:
            return "when a backfill of the rule has completed its books"
        return (
            BY_THE_STREAM if why.startswith(PASSING) else "when its cause is gone; the stream records it as a failure"
        )

    def run(self) -> None:
        """Process all changes, and the changes that follow from them, until none is left."""
        waiting = self.own
        for _ in range(ROUNDS_MAX):
            changes = self.store.changes()
            came = {change.key for change in changes if change.old is None}
            reports = [run_work(self._process(changes), self._world)] if changes else []
            if waiting:
                reports.append(run_work(self._complete([key for key in waiting if key not in came]), self._world))
                waiting = ()
            elif not changes:
                return
            for report in reports:
                self._judge(report)
            self._is_certain = self.alone and all(outcome in DECIDED for one in reports for _, outcome in one.outcomes)
        for name in self.rules.rules:
            self._leave(name, ENDLESS)

    def _process(self, changes: Sequence[Change]) -> Work[Report]:
        """Do the tasks of these changes. Effects, and items that an index does not list yet, are left to the stream."""
        tasks = make_tasks(changes, self.rules)
        if self._is_certain and (tasks.pulls or tasks.parts):
            tasks = self._drop_repeated_looks(tasks, changes)
        self._parts, self._partial = set(), set()
        for change in changes:
            self._leave_second_look(change)
        for rule, _ in tasks.unlisted:
            self._leave(rule, SECOND_LOOK, 1)
        for _, effect in tasks.effects:
            self._leave(effect.rule, EFFECT, 1)
        return (yield from self._do(replace(tasks, unlisted=(), effects=())))

    def _drop_repeated_looks(self, tasks: Tasks, changes: Sequence[Change]) -> Tasks:
        """The tasks without those that would find right what rules have just written, if no other change asks."""
        made: dict[Place, list[Change]] = {}
        for change in changes:
            made.setdefault(make_place(change.key), []).append(change)
        pulls = (
            one
            for one in tasks.pulls
            if one.key in tasks.origins
            or not all(self._is_settled(change, made) for change in made[make_place(one.key)])
        )
        parts = (look for look in tasks.parts if look.part not in self._parts or _has_changed_source(look.part, made))
        return replace(tasks, pulls=tuple(pulls), parts=tuple(parts))

    def _is_settled(self, change: Change, made: Mapping[Place, Sequence[Change]]) -> bool:
        """True if all rules of a target have seen it, they wrote only copies, and no source of a copy changed
        meanwhile. Each rule has then seen all that decides.
        """
        entity, old, new = self.rules.entity_of(change.key), change.old, change.new
        if entity is None or entity in self._partial or old is None or new is None:
            return False
        for rule in self.rules.into_target(entity):
            if rule.makes or rule.gathers or has_changed(old, new, _list_awaited_paths(rule)):
                return False
            for source in rule.source_keys(new):
                if any(_is_read_of(one, rule.watches_in_source) for one in made.get(make_place(source), ())):
                    return False
        return True

    def _do(self, tasks: Tasks) -> Work[Report]:
        """Do tasks as everywhere, but push by push, and only the parts of complete books."""
        if not (tasks.pulls or tasks.pushes or tasks.parts):
            return Report()
        self._note_partial_looks(tasks)
        stages = {"push": self._push_one_by_one, "parts": self._reconcile_parts}
        return (yield from do_tasks(tasks, self.rules, self._bounds, stages))

    def _note_partial_looks(self, tasks: Tasks) -> None:
        """Note the entities of targets that tasks let only some of their rules look at."""
        looks = [(pull.rules[0].target, pull.rules) for pull in tasks.pulls]
        looks += ((rule.target, (rule,)) for push in tasks.pushes for rule in push.target_rules)
        self._partial.update(entity for entity, some in looks if {*self.rules.into_target(entity)} - {*some})

    def _complete(self, keys: Sequence[ItemKey]) -> Work[Report]:
        """Look at items that were there before as if each had just come: their own record may not have come yet.

        An index needs no second look: the record of the insert brings it. Items that others list are listed only for an
        item that has nothing of the rule: otherwise each write of it would cost a Query.
        """
        items = yield from read_all(keys)
        came = [Change(key, None, item) for key, item in items.items() if isinstance(item, dict)]
        tasks = make_tasks(came, self.rules)
        images = {change.key: change.new or {} for change in came}
        pulls = [
            replace(one, image=None, settles=False, rules=tuple(self._list_pull_rules(one, images.get(one.key))))
            for one in tasks.pulls
        ]
        pushes = [
            replace(one, rules=tuple(rule for rule in one.part_rules if not _has_any(rule, images[one.source])))
            for one in tasks.pushes
        ]
        parts = (look for look in tasks.parts if look.part.target not in images)  # elements it has may be many
        asked = Tasks(tuple(one for one in pulls if one.rules), tuple(one for one in pushes if one.rules), tuple(parts))
        return (yield from self._do(asked))

    def _list_pull_rules(self, one: Pull, image: Item | None) -> Iterator[TargetRule]:
        """The rules of a pull, without those that list items for values that an own item has."""
        for rule in one.rules:
            if image is None or not _has_any(rule, image) or rule.members(one.key, image) is None:
                yield rule

    # ------------------------------------------------------------ stages of its own
    def _push_one_by_one(self, tasks: Tasks, rules: Rules, bounds: Bounds, report: Report) -> Work[None]:
        """Do the pushes that are not skipped, and count the writes of each."""
        for one in tasks.pushes:
            pushed = one.source, one.names
            if pushed in self.skipped:
                for rule in one.names:
                    self._leave(rule, NO_ROOM)
                continue
            before = self.store.writes
            yield from STAGES["push"](Tasks(pushes=(one,)), rules, bounds, report)
            self.pushed[pushed] += self.store.writes - before

    def _reconcile_parts(self, tasks: Tasks, rules: Rules, bounds: Bounds, report: Report) -> Work[None]:
        """Reconcile the parts that are in no books, or in complete ones: a total is unknown until they are."""
        books = dict.fromkeys(one for look in tasks.parts if (one := look.part.rule.books) is not None)
        marks = yield from read_marks(books)
        kept = []
        for look in tasks.parts:
            one = look.part.rule.books
            mark = None if one is None else marks[one]
            if one is None or (not isinstance(mark, StoreError) and one.complete(mark)):
                kept.append(look)
            else:
                self._leave(look.part.rule.name, BOOKS, 1)
        self._parts.update(look.part for look in kept)
        yield from STAGES["parts"](Tasks(parts=tuple(kept)), rules, bounds, report)

    def _judge(self, report: Report) -> None:
        for unfinished in report.failed.values():
            for rule in unfinished.rules:
                self._leave(rule, unfinished.reason)
        for (rule, outcome), times in report.outcomes.items():
            if outcome is Outcome.WAITING:
                self._leave(rule, BOOKS, times)

    def _leave(self, rule: str, why: str, items: int | None = None) -> None:
        before = self._left.get((rule, why), 0)
        self._left[rule, why] = None if items is None or before is None else before + items

    # ------------------------------------------------------------ the world: Queue, Failures
    def send(self, message: Message, delay_seconds: int) -> None:
        """Leave the work of a message to the stream."""
        why = SECOND_LOOK if delay_seconds else MESSAGE
        match message:
            case PartMessage() | CallMessage():
                self._leave(message.rule, why, 1)
            case PullMessage(target=key):
                for rule in self._list_index_rules(key, self.store.item(key) or {}):
                    self._leave(rule.name, why)
            case _:
                for name in message.rules:
                    self._leave(name, why)

    def _leave_second_look(self, change: Change) -> None:
        """Leave a second look at copies that were replaced: they may have named what an index does not show yet."""
        old, new = change.old, change.new
        if old is not None and new is not None:
            for rule in self._list_index_rules(change.key, new):
                if has_changed(old, new, rule.copies):
                    self._leave(rule.name, SECOND_LOOK)

    def _list_index_rules(self, key: ItemKey, image: Item) -> Iterator[TargetRule]:
        entity = self.rules.entity_of(key)
        for rule in () if entity is None else self.rules.into_target(entity):
            members = rule.members(key, image)
            if members is not None and members.index is not None:
                yield rule

    def park(self, failure: Failure) -> None:
        """Leave work that cannot be done to the stream, which reports it."""
        self._leave(failure.rule, failure.reason, 1)


def _list_awaited_paths(rule: TargetRule) -> Iterator[Path]:
    """The paths of a target that a rule does not write itself and that ask for a look, and the maps of its copies."""
    yield from rule.deciding_paths
    yield from (path for path in rule.relevant_paths if path not in rule.copies)
    yield from (copy[:1] for copy in rule.copies if len(copy) > 1)


def _is_read_of(change: Change, paths: tuple[Path, ...] | None) -> bool:
    """True if a change of a source concerns what a rule reads of it; None: all."""
    return paths is None or change.old is None or change.new is None or has_changed(change.old, change.new, paths)


def _has_changed_source(part: Part, made: Mapping[Place, Sequence[Change]]) -> bool:
    """True if changes concern what a part is made from. A rule of all attributes reads those that went away, too."""
    changes = () if part.source is None else made.get(make_place(part.source), ())
    return any(
        _is_read_of(one, part.rule.list_read_paths(image or {})) for one in changes for image in (one.old, one.new)
    )


def _has_any(rule: Rule, item: Item) -> bool:
    return any(get(item, path) is not None for path in rule.copies)
