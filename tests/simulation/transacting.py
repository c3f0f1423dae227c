"""Applications that write by `transact`, as one more actor: between their reads and their write anybody else may act.

Invariant: it is the code of production, and what it sends is done as DynamoDB does it: by token, all of it or nothing.
What the rules add to a transaction is watched like a write of the pipeline, and more: if it says that it left nothing,
every copy that it makes is what its source says at this moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from botocore.exceptions import ClientError

from sync_rules.adapters.memory import RejectedError
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.semantics import InvalidUpdateError, holds, is_same_item
from sync_rules.model.semantics import make_place as identity_of
from sync_rules.model.values import show_path
from sync_rules.model.writes import Condition, Test
from sync_rules.rules.ruleset import Rules
from sync_rules.write import TransactionCanceled, WriteError, consequences
from sync_rules.write.transaction import PlannedTransaction, Result, Transact
from tests.simulation.oracle import Oracle, shown
from tests.simulation.plain import same
from tests.simulation.safety import UnsafeError
from tests.simulation.spec import Item, Place, Spec
from tests.simulation.workload import Application, Write
from tests.simulation.world import World, key_of, place_of
from tests.support.transacting import Passing, Told, after, cancelled, conditions, failed, not_own, reason

if TYPE_CHECKING:
    from tests.simulation.history import History

FOREVER_SECONDS: Final = 1e9
MORE: Final = (Application.insert, Application.change, Application.relink, Application.delete, Application.meddle)
REFUSED_MAX: Final = 50  # attempts while no other worker runs


# ---------------------------------------------------------------- what the application wants
@dataclass(frozen=True)
class Given:
    """One call of the application."""

    verb: str
    entity: str
    place: Place
    item: Item  # of an update, what is set
    removes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def described(self) -> str:
        removed = f" without {', '.join(self.removes)}" if self.removes else ""
        return f"{self.verb} {self.place} {self.item}{removed} {dict(self.options) or ''}"


@dataclass(eq=False)
class Writing:
    """A transaction that an application makes. `broken` are its actions whose own conditions did not hold when it was
    cancelled last.
    """

    number: int
    calls: Sequence[Given]
    sources: Sequence[tuple[str, Item]]
    landed: int = 0
    late: bool = False
    broken: frozenset[int] = frozenset()
    cancellations: int = 0

    def described(self) -> str:
        return "; ".join([*(one.described() for one in self.calls), *(f"source {item}" for _, item in self.sources)])


@dataclass(frozen=True, eq=False)
class Submit:
    """A TransactWriteItems on its way."""

    items: list[dict[str, Any]]
    token: str
    attempt: PlannedTransaction
    writing: Writing

    @property
    def places(self) -> list[Place]:
        return [place_of(one.action.key) for one in self.attempt.planned]

    def __str__(self) -> str:
        return f"transaction {self.token}: {'; '.join(str(one.action) for one in self.attempt.planned)}"[:2400]


def drawn(history: History, first: Write | None) -> Writing | None:
    """A transaction with this write and perhaps more; None if no entity has the item."""
    app, pick = history.app, history.choices.transactions.pick
    writes = [] if first is None else [first]
    writes += [write for _ in range(max(pick(4) - 1, first is None)) if (write := app.one(MORE)(app)) is not None]
    calls: list[Given] = []
    for write in writes:
        if write[0] not in [one.place for one in calls] or pick(4) == 3:
            call = _call(history.world, app, write, pick)
            calls += [] if call is None else [call]
    if not calls:
        return None
    sources = []
    spec = history.made.spec
    known = [place for place in app.past if place[0] not in spec.ledgers]
    if known and pick(4) == 3:  # what it read, perhaps some time ago
        place = app.one(known)
        entity = spec.entity_of(place)
        sources = [] if entity is None else [(entity.name, app.one(app.past[place][-2:]))]
    history.world.transactions += 1
    return Writing(history.world.transactions, calls, sources)


def _call(world: World, app: Application, write: Write, pick: Callable[[int], int]) -> Given | None:
    place, new = write
    entity, old = world.made.spec.entity_of(place), world.items.get(place)
    if entity is None:
        return None
    options: dict[str, Any] = {} if new is None or pick(3) < 2 else {"override": True}
    how = pick(8)
    if how == 7:
        options |= {"condition": f"attribute_{app.one(('', 'not_'))}exists(#own)", "returns": bool(pick(2))}
        options["names"] = {"#own": app.one((next(iter(entity.table.key)), "idle"))}
    elif how == 6 and old is not None and "idle" in old:
        options |= {"condition": "#own = :own", "names": {"#own": "idle"}, "values": {":own": old["idle"]}}
    if new is None:
        return Given("delete", entity.name, place, {}, (), options)
    changed = {name: value for name, value in new.items() if name not in entity.table.key}
    if old is not None and pick(3) < 2:
        removes = tuple(show_path((name,)) for name in old if name not in new)
        sets = {show_path((name,)): value for name, value in changed.items() if not same(value, old.get(name))}
        if sets or removes:
            return Given("update", entity.name, place, sets, removes, options)
        options.pop("override", None)
        return Given("check", entity.name, place, {}, (), {"condition": "attribute_exists(#own)",
                     "names": {"#own": next(iter(entity.table.key))}, **options})  # fmt: skip
    if pick(3) == 2 and "condition" not in options:
        options["new"] = True
    return Given("put", entity.name, place, new, (), options)


def make(writing: Writing, rules: Rules, spec: Spec, store: Any, send: Callable[[Submit], None]) -> Result | str:
    """Make a transaction. Returns its result, or why it was not made."""
    client: Any = Passing(lambda items, token, attempt: send(Submit(items, token, attempt, writing)))
    kind = Rehearsed if isinstance(store, Alone) else Told
    tx = kind(rules, client, raw=True, deadline_seconds=FOREVER_SECONDS, token=f"t{writing.number}", store=store,
              sleep=lambda _seconds: None)  # fmt: skip
    try:
        for entity, item in writing.sources:
            tx.source(entity, item)
        for one in writing.calls:
            _do(tx, one, spec.entities[one.entity].table.attributes(one.place))
        return tx.commit()
    except TransactionCanceled as error:
        if not_own(error, writing.broken):
            raise UnsafeError(f"an application is told of a condition that is not its own: {error}") from error
        return f"cancelled: {error}"
    except (WriteError, StoreError) as error:
        return f"refused: {error}"


def _do(tx: Transact, one: Given, key: Item) -> None:
    match one.verb:
        case "put":
            tx.put(one.entity, one.item, **one.options)
        case "update":
            tx.update(one.entity, key, set=one.item, remove=one.removes, **one.options)
        case "delete":
            tx.delete(one.entity, key, **one.options)
        case _:
            tx.check(one.entity, key, **one.options)


# ---------------------------------------------------------------- what DynamoDB does
def land(world: World, submit: Submit) -> None:
    """A request reaches DynamoDB. Raises ClientError where it cancels it."""
    text = repr(submit.items)
    if world.tokens.setdefault(submit.token, text) != text:
        raise UnsafeError(f"two requests have one token: {submit}")
    if submit.token in world.done:
        return
    planned = submit.attempt.planned
    olds = [world.store.item(one.action.key) for one in planned]
    actions = [next(iter(one.items())) for one in submit.items]
    _check_conditions(world, submit, actions, olds)
    news = [_after(verb, action, one.action.key, old)
            for (verb, action), one, old in zip(actions, planned, olds, strict=True)]  # fmt: skip
    reasons = []
    for one, new in zip(planned, news, strict=True):
        reasons.append({"Code": "ValidationError" if _impossible(world, one.action.key, new) else "None"})
    if any(one["Code"] != "None" for one in reasons):
        world.seen["transact", "invalid"] += 1
        raise cancelled(reasons)
    world.done.add(submit.token)
    submit.writing.landed += 1
    if submit.writing.landed > 1 and not submit.writing.late:
        raise UnsafeError(f"a transaction is made twice: {submit}")
    wrong = _wrong_sets(world, submit)
    for one, old, new in zip(planned, olds, news, strict=True):
        if new is not None and not isinstance(new, str):
            world.store.put(one.action.key.table, new)
        elif old is not None:
            world.store.delete(one.action.key)
    _watch(world, submit, olds)
    after = None if wrong is None else _wrong_sets(world, submit)
    if wrong is not None and after is not None and (more := after - wrong):
        raise UnsafeError(f"a transaction that leaves nothing makes a set wrong: {more} by {submit}")


def _wrong_sets(world: World, submit: Submit) -> set[str] | None:
    """The sets of elements that are wrong, on items that were there and that the application does not write. No other
    item decides an element, so a transaction that leaves nothing makes none of them wrong. None if this is unknown.
    """
    sets = [rule for rule in world.made.spec.rules.values() if rule["kind"] == "collect" and "limit" not in rule]
    if not sets or submit.attempt.left:
        return set()
    names = {rule["name"] for rule in sets}
    written = {shown(place_of(one.action.key)) for one in submit.attempt.planned if one.own is not None}
    verdict = Oracle(world.made.spec).look(world.items)
    if any(name in names for name, _ in verdict.open):
        return None
    about = tuple(f"rule {rule['name']} ({rule['kind']}) on " for rule in sets)
    told = [one.partition(": ")[0] for one in verdict.wrong if one.startswith(about)]
    read = {
        shown(at) for at in world.items if submit.attempt.before.get(identity_of(key_of(world.made, at))) is not None
    }
    return {one for one in told if one.partition(" on ")[2] in read - written}


def _check_conditions(
    world: World, submit: Submit, actions: Sequence[tuple[str, dict[str, Any]]], olds: Sequence[Item | None]
) -> None:
    """Raise ClientError where a condition does not hold, and note which are the application's own."""
    reasons, broken, idle = [], set(), _idle(world.made.spec)
    for (_, action), one, old in zip(actions, submit.attempt.planned, olds, strict=True):
        if idle and ("idle",) in [condition.path for condition in one.action.guard]:
            raise UnsafeError(f"a transaction compares what no rule reads: {one.action}")
        reasons.append(reason(action, old))
        if reasons[-1]["Code"] == "None":
            continue
        if one.own is not None:
            own = [condition for condition in conditions(action) if condition not in one.action.guard]
            taken = one.own.new and old is not None
            if (
                taken
                or not holds(tuple(own), old)
                or (one.own.condition is not None and _refused(one.own.condition, old))
            ):
                broken.add(one.own.number)
        for condition in one.action.guard:
            if not holds((condition,), old):
                world.seen["transact refused", _word(condition, old)] += 1
    if any(one["Code"] != "None" for one in reasons):
        submit.writing.broken = frozenset(broken)
        submit.writing.cancellations += 1
        raise cancelled(reasons)


def _refused(condition: Any, old: Item | None) -> bool:
    """True if the application's condition does not hold."""
    action = {"ConditionExpression": condition.text, "ExpressionAttributeNames": condition.names}
    return not holds(conditions({**action, "ExpressionAttributeValues": condition.values}), old)


def _word(condition: Condition, old: Item | None) -> str:
    if old is None:
        return "gone"
    return "there" if condition.test is Test.ABSENT else "changed"


def _impossible(world: World, key: ItemKey, new: Item | str | None) -> bool:
    """True if no table can hold this item."""
    try:
        if isinstance(new, dict):
            world.store._check(key, new)
    except RejectedError:
        return True
    return isinstance(new, str)


def _idle(spec: Spec) -> bool:
    """True if no rule reads the attribute `idle`."""
    known = spec.known
    if ("idle", "") not in known:
        known["idle", ""] = "idle" not in repr(spec.rules) and not any(map(_reads_all, spec.rules.values()))
    return bool(known["idle", ""])


def _reads_all(rule: Mapping[str, Any]) -> bool:
    """True if a rule may read every attribute of an item."""
    return rule.get("attributes") == "all" or rule["kind"] == "history" or ("embed" in rule and "fields" not in rule)


def _after(verb: str, action: dict[str, Any], key: ItemKey, old: Item | None) -> Item | str | None:
    """The item after an action; a text where DynamoDB refuses it."""
    try:
        return after(verb, action, key, old)
    except InvalidUpdateError as error:
        return str(error)


def _watch(world: World, submit: Submit, olds: Sequence[Item | None]) -> None:
    """Watch what the rules added to each item, as if it was written last, after what the application did."""
    if submit.attempt.left and any(one.own is not None and one.own.override for one in submit.attempt.planned):
        return  # what follows from it is as it will be when the stream has set it right
    safety, judge = world.safety, world.safety.judge
    safety.at_once, safety.judge = not submit.attempt.left, None
    try:
        pairs = list(zip(submit.attempt.planned, olds, strict=True))
        pairs.sort(key=lambda pair: place_of(pair[0].action.key) in world.items)  # what moves goes before it comes
        for one, old in pairs:
            place = place_of(one.action.key)
            base, new = old if one.own is None else one.own.after(old), world.items.get(place)
            if is_same_item(base, new):
                continue
            if base is None:
                world.items.pop(place, None)
            else:
                world.items[place] = base
            try:
                safety.check(place, base, new)
            except UnsafeError as error:
                raise UnsafeError(f"in a transaction: {error}") from error
            finally:
                if new is None:
                    world.items.pop(place, None)
                else:
                    world.items[place] = new
    finally:
        safety.at_once, safety.judge = False, judge


# ---------------------------------------------------------------- alone
class Rehearsed(Told):
    """A transaction that is also built with each look of the stream: both ways come to the same actions."""

    def _attempt(self, store: Any, *, fresh: bool) -> PlannedTransaction:
        attempt = super()._attempt(store, fresh=fresh)
        with patch.object(consequences, "DECIDED", frozenset()):
            rehearsed = super()._attempt(store, fresh=fresh)
        left, more = ({(one.rule, one.why) for one in made.left} for made in (attempt, rehearsed))
        if attempt.planned != rehearsed.planned or left != more:
            raise UnsafeError(f"looks that are left out decide: {attempt} is not {rehearsed}")
        return attempt


def check_alone(history: History) -> None:
    """Check that a transaction leaves nothing for the stream, or says so, while no other worker runs."""
    world, made = history.world, history.made
    if world.notes:
        return  # somebody waits for what this may bring
    for _ in range(3):
        writing = drawn(history, None)
        if writing is None:
            continue
        history.tell(f"-- alone: {writing.described()}")

        def send(submit: Submit, writing: Writing = writing) -> None:
            history.tell(f"{submit}")
            if writing.cancellations > REFUSED_MAX:
                raise UnsafeError(f"a transaction is refused again and again: {submit}")
            land(world, submit)

        done = make(writing, made.rules, made.spec, Alone(world), send)
        if isinstance(done, str):
            history.tell(done)
            history.seen["transact", "alone refused"] += 1
            continue
        before = _writes(history)
        history.tell(f"left: {done.left}")
        history.rest()
        history.seen["transact", "alone left" if done.left else "alone"] += 1
        if not done.left and _writes(history) != before:
            raise UnsafeError(f"the stream writes after a transaction that left nothing: {writing.described()}")
        if world.notes:
            return


def _writes(history: History) -> int:
    return sum(number for (what, _), number in history.seen.items() if what == "write")


class Alone:
    """The store of an application that works alone."""

    def __init__(self, world: World) -> None:
        self.read = world.store.read
        self.list = lambda request: world.store.list_from(0, request)


LOST: Final = failed("InternalServerError", 500)
THROTTLED: Final = failed("ThrottlingException")
__all__ = ["LOST", "THROTTLED", "ClientError", "Submit", "Writing", "check_alone", "drawn", "land", "make"]
