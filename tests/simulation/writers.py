"""Applications that write by `transact`, write and `follow`, and read by `fresh`: actors beside the pipeline and people.

Invariant: it is the code of production, stopped at each of its requests, where it may die. What it sends is done as
DynamoDB does it: by token, all of it or nothing. What the rules add to a transaction is watched like a write of the
pipeline, and more: one that leaves nothing makes nothing wrong. What `fresh` answers is right for what it read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.semantics import InvalidUpdateError, same_item
from sync_rules.model.semantics import place_of as identity_of
from sync_rules.model.values import Item, get, same
from sync_rules.model.writes import Check
from sync_rules.rules.ruleset import Rules
from sync_rules.write import Follow, TransactionCanceled, WriteError, fresh
from sync_rules.write.transaction import PlannedTransaction
from tests.simulation.errands import Errand
from tests.simulation.facts import Place
from tests.simulation.stops import Asking, ask
from tests.simulation.truths import Truth, wrong
from tests.simulation.watch import DivergenceError, Watch, misplaced
from tests.simulation.workload import Write
from tests.simulation.world import World, place_of
from tests.simulation.worlds_collected import Collected
from tests.simulation.worlds_mirrored import Mirrored
from tests.support.transacting import Passing, Told, after, cancelled, not_own, reason

FOREVER_SECONDS = 1e9
REFUSED_MAX = 50  # attempts of one transaction
UNREAD = ("noise", "ballast")  # attributes that no rule reads, unless its text names them


@dataclass(frozen=True, eq=False)
class Submit:
    """A TransactWriteItems on its way. `since`: the clock when its attempt began to read."""

    items: list[dict[str, Any]]
    token: str
    attempt: PlannedTransaction
    writing: Writing
    since: int

    def __str__(self) -> str:
        return f"transaction {self.token}: {'; '.join(str(one.action) for one in self.attempt.planned)}"


@dataclass(frozen=True)
class Do:
    """A plain write of an application, which is answered with the item before and after."""

    place: Place
    new: Item | None


# ---------------------------------------------------------------- transact
@dataclass(frozen=True)
class Given:
    """One call of the application: the item that it wants, by a put, an update or a delete."""

    verb: str
    entity: str
    key: Item
    item: Item  # of an update, what is set
    removes: tuple[str, ...] = ()
    override: bool = False
    new: bool = False


@dataclass(eq=False)
class Writing(Errand):
    """A transaction that an application makes. It may die with it; nobody makes it again."""

    number: int = 0
    calls: Sequence[Given] = ()
    sources: Sequence[tuple[str, Item]] = ()
    watch: Watch | None = None
    broken: frozenset[int] = frozenset()  # its actions whose own condition did not hold when it was cancelled last
    landed: int = 0
    late: bool = False
    cancellations: int = 0
    attempt: PlannedTransaction | None = None
    began: int = 0
    left: bool = True
    kind = "transact"

    def run(self) -> bool:
        client: Any = Passing(lambda items, token, attempt: ask(Submit(items, token, attempt, self, self.began)))
        tx = _Timed(self, self.rules, client, raw=True, deadline_seconds=FOREVER_SECONDS, token=f"t{self.number}",
                    store=Asking(), sleep=lambda _seconds: None)  # fmt: skip
        try:
            for entity, item in self.sources:
                tx.source(entity, item)
            for one in self.calls:
                _call(tx, one)
            self.left = bool(tx.commit().left)
        except TransactionCanceled as error:
            if not_own(error, self.broken):
                raise DivergenceError(f"an application is told of a condition that is not its own: {error}") from error
            self.seen["transact", "cancelled"] += 1
            return False
        except (WriteError, StoreError):
            self.seen["transact", "refused"] += 1
            return False
        self.seen["transact", "left" if self.left else "left nothing"] += 1
        return True

    def __str__(self) -> str:
        return f"a transaction: {'; '.join(map(str, self.calls))} given {self.sources}"


class _Timed(Told):
    """A transaction that notes when each attempt begins to read."""

    def __init__(self, writing: Writing, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._writing = writing

    def _attempt(self, *args: Any, **options: Any) -> PlannedTransaction:
        assert self._writing.watch is not None, "watched"
        self._writing.began = self._writing.watch.clock
        return super()._attempt(*args, **options)


def _call(tx: Told, one: Given) -> None:
    match one.verb:
        case "put":
            tx.put(one.entity, one.item, override=one.override, new=one.new)
        case "update":
            there = {"condition": "attribute_exists(#own)", "names": {"#own": min(one.key)}}
            tx.update(one.entity, one.key, set=one.item, remove=one.removes, override=one.override, **there)
        case _:
            tx.delete(one.entity, one.key)


# ---------------------------------------------------------------- follow
@dataclass(eq=False)
class Following(Errand):
    """Plain writes of an application, which it follows. It may die in between; then the stream does all."""

    writes: Sequence[Write] = ()
    left: bool = True
    kind = "follow"

    def run(self) -> bool:
        client: Any = None
        noted = Follow(self.rules, client, deadline_seconds=FOREVER_SECONDS, store=Asking())
        try:
            for place, new in self.writes:
                old, now = ask(Do(place, new))
                entity = self.rules.entity_of(key_at(self.rules, place))
                if entity is not None and (old is not None or now is not None):
                    noted.change(entity.name, old, now)
            self.left = bool(noted.bring().left)
        except StoreError:
            return False
        self.seen["follow", "left" if self.left else "left nothing"] += 1
        return True

    def __str__(self) -> str:
        return f"writes that are followed: {self.writes}"


# ---------------------------------------------------------------- fresh
@dataclass(eq=False)
class Reading(Errand):
    """A look at one item by `fresh`. `saw` has each item as it was read; `listed` all items, as they were at each listing."""

    watch: Watch | None = None
    place: Place = ("", ())
    given: Item = field(default_factory=dict)
    repair: bool = False
    saw: dict[Place, Item | None] = field(default_factory=dict)
    listed: list[dict[Place, Item]] = field(default_factory=list)
    by_index: bool = False
    answer: Item | None = None
    kind = "fresh"

    def run(self) -> bool:
        client: Any = None
        entity = self.rules.entity_of(key_at(self.rules, self.place))
        assert entity is not None, "an item of an entity"
        try:
            answer = fresh(self.rules, client, entity.name, self.given, raw=True, repair=self.repair,
                           deadline_seconds=FOREVER_SECONDS, store=Asking())  # fmt: skip
        except (StoreError, WriteError):
            return False
        self.answer = answer
        self._check(answer)
        return True

    def lists(self, *, by_index: bool) -> None:
        """Note all items, as they are when it lists."""
        assert self.watch is not None, "watched"
        self.listed.append(dict(self.watch.items))
        self.by_index = self.by_index or by_index

    def _check(self, answer: Item | None) -> None:
        """Raise DivergenceError unless the answer is what the rules make of the items as they were read."""
        watch, place = self.watch, self.place
        assert watch is not None, "watched"
        if any(truth.owns(place) for truth in watch.truths):
            return  # made by a rule of another item: judged when all is quiet
        if answer is None or self.saw.get(place) is None:
            if answer is not None or self.saw.get(place) is not None:
                raise DivergenceError(f"fresh: {place} is {self.saw.get(place)}, and {answer} is shown")
            return
        entity = self.rules.entity_of(key_at(self.rules, place))
        assert entity is not None, "an item of an entity"
        if "ballast" in answer or misplaced(
            [to for rule in self.rules.into_target(entity) for to in rule.copies], answer
        ):
            return
        self.seen["fresh", "judged"] += 1
        self.seen["fresh", "an old item"] += not same_item(answer, self.saw[place])
        there = self._as_read(watch.items, answer)
        for fact in watch.of(place):
            for to, value in watch.wanted(fact, answer, there).items():
                if not same(get(answer, to), value):
                    raise DivergenceError(f"fresh: {place} shows {'.'.join(to)} = {get(answer, to)}, expected {value}")
        for truth in watch.truths if not self.by_index else ():
            self._check_truth(truth, answer)

    def _as_read(self, items: Mapping[Place, Item], answer: Item) -> dict[Place, Item]:
        """The items as they were read, and the others as they are in `items`."""
        found = {**items, **self.saw, self.place: answer}
        return {place: item for place, item in found.items() if item is not None}

    def _check_truth(self, truth: Truth, answer: Item) -> None:
        """Check what a rule without books makes of the item, with the others as they were at one of its listings. Where
        another item that was read is not right itself, it counts as it stands, and no truth says what follows.
        """
        watch, place = self.watch, self.place
        entity = self.rules.entity_of(key_at(self.rules, place))
        assert watch is not None, "watched"
        assert entity is not None, "an item of an entity"
        kept = {path[0] for rule in self.rules.into_target(entity) if rule.books is None for path in rule.copies}
        said = ""
        for items in self.listed or [watch.items]:
            there = self._as_read(items, answer)
            if place in truth.unfit(there) or any(at in self.saw and at != place for at, _ in wrong(truth, there)):
                return
            wanted = truth.wanted(there).get(place, {})
            differing = [path for path in wanted if path[0] in kept and not same(get(answer, path), wanted[path])]
            if not differing:
                return
            said = f"shows {'.'.join(differing[0])} = {get(answer, differing[0])}, expected {wanted[differing[0]]}"
        raise DivergenceError(f"fresh: {place} {said}")

    def __str__(self) -> str:
        return f"a fresh look at {self.place}"


def key_at(rules: Rules, place: Place) -> ItemKey:
    table = rules.tables[place[0]]
    return ItemKey(place[0], tuple((one.name, one.type, value) for one, value in zip(table.key, place[1], strict=True)))


# ---------------------------------------------------------------- what DynamoDB does
def land(world: World, submit: Submit) -> None:
    """A transaction of an application reaches DynamoDB. Raises ClientError where it is cancelled."""
    text = repr(submit.items)
    if world.tokens.setdefault(submit.token, text) != text:
        raise DivergenceError(f"two requests have one token: {submit}")
    if submit.token in world.made:
        return
    planned = submit.attempt.planned
    olds = [world.store.item(one.action.key) for one in planned]
    actions = [next(iter(one.items())) for one in submit.items]
    _check_conditions(world, submit, [action for _, action in actions], olds)
    try:
        news = [after(verb, action, one.action.key, old)
                for (verb, action), one, old in zip(actions, planned, olds, strict=True)]  # fmt: skip
    except InvalidUpdateError as error:  # neither a set nor a number is there now, and one is added to it
        raise cancelled([{"Code": "ValidationError"} for _ in planned]) from error
    if not all(new is None or world.holds(one.action.key, new) for one, new in zip(planned, news, strict=True)):
        raise cancelled([{"Code": "ValidationError"} for _ in planned])
    world.made.add(submit.token)
    submit.writing.landed += 1
    if submit.writing.landed > 1 and not submit.writing.late:
        raise DivergenceError(f"a transaction is made twice: {submit}")
    watch = world.watch
    copies, sets, truths = _wrong_copies(watch), _wrong_sets(watch), _unfit(watch) or _wrong_truths(watch)
    unset = {at for truth in watch.truths if isinstance(truth, Collected) for at in truth.unfit(watch.items)}
    alone = watch.clock == submit.since
    for one, new in zip(planned, news, strict=True):
        if not isinstance(one.action, Check):
            world.operate(place_of(one.action.key), new)
    _judge(watch, submit, olds)
    if submit.attempt.left:
        return
    written = {
        place_of(one.action.key)
        for one, old in zip(planned, olds, strict=True)
        if not isinstance(one.action, Check) and not _joined(watch, submit, one.action.key, old)
    }
    came = {place_of(one.action.key) for one, old in zip(planned, olds, strict=True) if old is None} | unset
    read = {at for at in watch.items if _was_read(world, submit, at)} - came
    more = [one for one in _wrong_copies(watch) - copies if alone or one[1] in written]
    more += [one for one in _wrong_sets(watch) - sets if alone or one[1] in read]
    more += _wrong_truths(watch) if alone and not truths else []
    if more:
        raise DivergenceError(f"a transaction that leaves nothing makes {sorted(more)} wrong: {submit}")


def _check_conditions(
    world: World, submit: Submit, actions: Sequence[dict[str, Any]], olds: Sequence[Item | None]
) -> None:
    """Raise ClientError where a condition does not hold."""
    reasons = [reason(action, old) for action, old in zip(actions, olds, strict=True)]
    if any(one["Code"] != "None" for one in reasons):
        _judge_refusal(world, submit, olds)
        raise cancelled(reasons)


def _judge_refusal(world: World, submit: Submit, olds: Sequence[Item | None]) -> None:
    """Raise DivergenceError where a transaction is refused though nothing that rules read has changed."""
    submit.writing.cancellations += 1
    if submit.writing.cancellations > REFUSED_MAX:
        raise DivergenceError(f"a transaction is refused again and again: {submit}")
    text = world.configuration.rules
    whole = "attributes: all" in text or "history" in text or ("embed" in text and "fields" not in text)
    unread = [name for name in UNREAD if name not in text and not whole]
    planned = submit.attempt.planned
    befores = [submit.attempt.before[identity_of(one.action.key)] for one in planned]
    owns = [(one.own, old) for one, old in zip(planned, olds, strict=True) if one.own is not None]
    broken = {own.number for own, old in owns if (own.new and old is not None) or (own.condition and old is None)}
    submit.writing.broken = frozenset(broken)
    if broken:
        return
    if all(same_item(_without(a, unread), _without(b, unread)) for a, b in zip(befores, olds, strict=True)):
        raise DivergenceError(f"a transaction is refused, and nothing that a rule reads has changed: {submit}")


def _without(item: Item | None, names: Sequence[str]) -> Item | None:
    return None if item is None else {name: value for name, value in item.items() if name not in names}


def _wrong_copies(watch: Watch) -> set[tuple[str, Place]]:
    """The copies that are not as they should be at this moment, by rule and item."""
    return {
        (fact.rule, place)
        for place, item in watch.items.items()
        for fact in watch.of(place)
        if any(not same(get(item, to), value) for to, value in watch.wanted(fact, item).items())
    }


def _joined(watch: Watch, submit: Submit, key: ItemKey, old: Item | None) -> bool:
    """True if somebody gave an item another source after it was read: no listing of that source has shown it."""
    read = submit.attempt.before.get(identity_of(key))
    named = [[item and fact.link(item) for item in (read, old)] for fact in watch.of(place_of(key))]
    return any(before != now for before, now in named)


def _was_read(world: World, submit: Submit, place: Place) -> bool:
    return identity_of(key_at(world.rules, place)) in submit.attempt.before


def _wrong_sets(watch: Watch) -> set[tuple[str, Place]]:
    """The sets of elements that are not as they should be. No listing decides of an element, but on a node that came or
    had something else in its place: an edge that is let in after the listing is brought by its own record.
    """
    sets = [(truth, set(truth.unfit(watch.items))) for truth in watch.truths if isinstance(truth, Collected)]
    return {(truth.table, at) for truth, unfit in sets for at, _ in wrong(truth, watch.items) if at not in unfit}


def _wrong_truths(watch: Watch) -> list[tuple[str, Place]]:
    """All else that is not as it should be."""
    unfit = {place for truth in watch.truths for place in truth.unfit(watch.items)}
    return [(said, place) for truth in watch.truths for place, said in wrong(truth, watch.items) if place not in unfit]


def _unfit(watch: Watch) -> bool:
    """True if some item is such that nothing is right for it."""
    return any(place for truth in watch.truths for place in truth.unfit(watch.items))


def _judge(watch: Watch, submit: Submit, olds: Sequence[Item | None]) -> None:
    """Judge what the rules added to each item, as a write of the pipeline after what the application did."""
    planned = submit.attempt.planned
    owns = [one.own for one in planned if one.own is not None]
    replaced = any(own.verb == "delete" and place_of(own.key) in watch.items for own in owns)
    if replaced or any(own.override for own in owns):
        return  # it is as after two writes, or as it will be when the stream has set it right
    for one, old in zip(planned, olds, strict=True):
        place = place_of(one.action.key)
        base, new = old if one.own is None else one.own.after(old), watch.items.get(place)
        if _handed_over(watch, place, base, new):  # the pipeline would delete it and put another one
            watch.judge(place, base, None)
            watch.judge(place, None, new)
        elif not same_item(base, new):
            watch.judge(place, base, new)
    watch.written()


def _handed_over(watch: Watch, place: Place, old: Item | None, new: Item | None) -> bool:
    """True if a mirror of one source became that of another one."""
    return any(
        truth.owns(place) and truth.holder(place, old) != truth.holder(place, new)
        for truth in watch.truths
        if isinstance(truth, Mirrored) and old is not None and new is not None
    )
