"""Numbers are written only from books that are complete: those of this very rule, in which every child was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sync_rules.adapters.acceptance import find_applied
from sync_rules.adapters.host import THIS_PROCESS
from sync_rules.adapters.state import MemoryState, read_applied
from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.account.account_backfill import BackfillWork
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.job import BackfillRequest, Job
from sync_rules.jobs.backfill.page import Selection, segments
from sync_rules.jobs.backfill.scope import Scope, note_applied
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey, Outcome
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.books import TAKEN, begin, books_of, describe_waits, finish, finish_empty, read_waiting
from sync_rules.pipeline.consumer import Consumer
from sync_rules.pipeline.requests import Apply, Read, Scan, run_work
from sync_rules.rules import fingerprints
from sync_rules.rules.books import Books
from tests.support.builders import m, n, s
from tests.support.inaccount import SharedMemory
from tests.support.worlds import Scene

TABLES = """
tables:
  users: {key: {user: S}}
  orders: {key: {order: S}}
  ledger: {key: {PK: S, SK: S}}
  other: {key: {PK: S, SK: S}}
entities:
  user: {table: users}
  order: {table: orders}
rules:
"""
COUNT = "orders: {count: order, into: user.number}"
STATES = ("OPEN", "PAID")
OTHERS = (
    "orders: {sum: order.total, into: user.number}",
    "orders: {count: order, into: user.number, where: \"state == 'OPEN'\"}",
    "orders: {max: order.total, into: user.number}",
)
OLD = 26  # orders that are there from before


def rules_of(*entries: str):
    return parse_rules(TABLES + "".join(f"  {entry}\n" for entry in entries))


def order(number: int):
    return {"order": s(f"{number:02}"), "user": s("u"), "total": n(number), "state": s(STATES[number % 2])}


def shop(*entries: str, stands=None, complete: bool = False) -> tuple[Scene, ItemKey]:
    """Orders of a user that were there before these rules, and a number that somebody else kept."""
    scene = Scene(rules_of(*entries), complete=complete)
    scene.there("orders", *map(order, range(1, OLD + 1)))
    user = scene.there("users", {"user": s("u"), **({} if stands is None else {"number": stands})})
    return scene, user


def deploy(scene: Scene, *entries: str) -> None:
    """From here on the handler has these rules."""
    scene.rules = rules_of(*entries)
    scene.consumer = Consumer(scene.rules, scene.world, THIS_PROCESS)


def insert(scene: Scene, number: int) -> None:
    scene.put("orders", order(number))
    scene.rest()


def backfill(scene: Scene) -> BackfillRun:
    names = frozenset(scene.rules.rules)
    run = BackfillRun(
        Selection(scene.rules, names), scene.tap, scene.parked, MemoryState(), {},
        supplies=segments(scene.rules, 2), completes=names, sleep=lambda _seconds: None,
    )  # fmt: skip
    run.run()
    return run


def the_books(scene: Scene) -> Books:
    (books,) = books_of(scene.rules).values()
    return books


def number_of(scene: Scene, user: ItemKey):
    return scene.item(user).get("number")


# ---------------------------------------------------------------- from the first record to the end of the backfill
@pytest.mark.parametrize(
    ("rule", "stands", "ends"),
    [
        ("{count: order, into: user.number}", n(26), n(27)),
        ("{count: order, into: user.number}", None, n(27)),
        ("{count: order, into: user.number, shards: 3}", n(26), n(27)),
        ("{count: order, into: user.number, per: state}", m(OPEN=n(13)), m(OPEN=n(13), PAID=n(14))),
        ("{sum: order.total, into: user.number}", n(351), n(378)),
        ("{min: order.total, into: user.number}", n(0), n(1)),
        ("{max: order.total, into: user.number}", n(99), n(27)),
        ("{max: order.total, into: user.number}", None, n(27)),
    ],
)
def test_a_new_counter_leaves_a_number_alone_until_its_backfill(rule: str, stands, ends):
    """The handler is deployed first. One order comes: of 27 it knows one, which must not be shown."""
    scene, user = shop(f"orders: {rule}", stands=stands)
    insert(scene, 27)
    assert number_of(scene, user) == stands
    assert scene.outcomes()[Outcome.WAITING]
    backfill(scene)
    assert number_of(scene, user) == ends
    insert(scene, 0)
    insert(scene, 99)
    assert number_of(scene, user) != ends  # from here on the records keep it


@pytest.mark.parametrize(
    "changed",
    [
        "orders: {count: order, into: user.number, ledger: other}",
        "orders: {count: order, into: user.number, shards: 4}",
        "orders: {count: order, into: user.number, where: \"state == 'OPEN'\"}",
        "orders: {count: order, into: user.number, per: state}",
        "orders: {count: order, into: user.number, weights: {state: {OPEN: 2}}}",
        "orders: {sum: order.total, into: user.number}",
        "orders: {max: order.total, into: user.number}",
        "renamed: {count: order, into: user.number}",
    ],
)
def test_a_changed_counter_leaves_the_number_alone_and_so_does_the_old_one_after_a_rollback(changed: str):
    """Both versions book under one name, so neither may take the books of the other for its own."""
    scene, user = shop(COUNT)
    backfill(scene)
    assert number_of(scene, user) == n(26)
    deploy(scene, changed)
    insert(scene, 27)
    assert number_of(scene, user) == n(26)
    if changed.startswith("orders") and "other" not in changed:
        deploy(scene, COUNT)
        insert(scene, 28)
        assert number_of(scene, user) == n(26)
        deploy(scene, changed)
        insert(scene, 29)
        assert number_of(scene, user) == n(26)
    backfill(scene)
    scene.rest()
    whole, _ = shop(changed)
    whole.there("orders", *scene.memory.items("orders"))
    backfill(whole)
    assert scene.item(user) == whole.item(user)


def test_renamed_from_carries_the_books_over():
    """The same rule under another name: no backfill is needed, and the old name's books go on."""
    scene, user = shop(COUNT)
    backfill(scene)
    deploy(scene, "total: {count: order, into: user.number, renamed_from: orders}")
    assert not scene.drive(read_waiting(scene.rules))
    insert(scene, 27)
    assert number_of(scene, user) == n(27)
    first = scene.rules.tables["orders"].key_of(next(iter(scene.memory.items("orders"))))
    scene.memory.delete(first)
    scene.rest()
    assert number_of(scene, user) == n(26)  # its entry is one of these books, whatever the rule is called by now
    insert(scene, 29)
    deploy(scene, "total: {count: order, into: user.number, renamed_from: orders, where: \"state == 'OPEN'\"}")
    insert(scene, 28)
    assert number_of(scene, user) == n(27)


def test_other_rules_of_a_parent_go_on_while_a_counter_waits():
    """Only the counter is held back, not what else is kept on its parent."""
    scene, user = shop(COUNT, 'shout: {derive: user.loud, as: "{user}!"}', stands=n(26))
    insert(scene, 27)
    scene.put("users", {**scene.item(user), "touched": n(1)})
    scene.put("users", {**scene.item(user), "loud": s("?")})
    scene.rest()
    assert (scene.item(user)["loud"], number_of(scene, user)) == (s("u!"), n(26))


# ---------------------------------------------------------------- races
def test_the_mark_is_read_before_the_totals():
    """A total is read half full. Before the mark is read, a backfill ends: the mark says complete, the total did not."""
    scene, user = shop(COUNT, stands=n(26))
    insert(scene, 27)
    totals = scene.rules.rules["orders"].source

    def end_meanwhile(request) -> None:
        if isinstance(request, Read) and any(totals.fields(key) is not None for key in request.keys):
            scene.tap.before = lambda _request: None
            backfill(scene)

    scene.tap.before = end_meanwhile
    scene.pull(user, {**scene.item(user)})
    assert number_of(scene, user) != n(1)


def test_the_mark_is_read_after_the_totals_too():
    """The old version sees complete books. Before it reads the total, the new version begins, and books an order."""
    scene, user = shop(COUNT)
    backfill(scene)
    old = scene.rules
    totals = old.rules["orders"].source
    new = rules_of("orders: {count: order, into: user.number, where: \"state == 'OPEN'\"}")

    def begin_meanwhile(request) -> None:
        if isinstance(request, Read) and any(totals.fields(key) is not None for key in request.keys):
            scene.tap.before = lambda _request: None
            deploy(scene, "orders: {count: order, into: user.number, where: \"state == 'OPEN'\"}")
            scene.put("orders", {**order(1), "note": s("read again")})
            scene.deliver()
            assert the_books(scene) == next(iter(books_of(new).values()))
            scene.rules = old

    scene.memory.delete(scene.at("orders", "02"))
    scene.tap.before = lambda _request: None
    scene.deliver()  # the entry is gone, the total says 25
    before = number_of(scene, user)
    scene.memory.put("orders", {**order(1), "state": s("OPEN")})
    scene.tap.before = begin_meanwhile
    scene.pull(user, scene.item(user))
    assert number_of(scene, user) == before


def test_the_mark_is_of_the_same_books_before_and_after_the_totals():
    """The books begin again and are complete again, and the total was read in between, half full (a model found this)."""
    scene, user = shop(COUNT)
    backfill(scene)
    mine, totals = the_books(scene), scene.rules.rules["orders"].source

    def begin_again(request) -> None:
        if isinstance(request, Read) and any(totals.fields(key) is not None for key in request.keys):
            (total,) = request.keys
            half = {name: n(1) if "N" in value else value for name, value in scene.memory.item(total).items()}
            scene.memory.put(total.table, half)
            scene.memory.apply(Apply((mine.begin(scene.memory.item(mine.mark)),)))
            scene.tap.before = complete_again

    def complete_again(_request) -> None:
        scene.tap.before = lambda _request: None
        mark = scene.memory.item(mine.mark)
        scene.memory.apply(Apply((mine.finish(mark, mine.begun(mark)),)))

    scene.tap.before = begin_again
    scene.pull(user, scene.item(user))
    assert number_of(scene, user) == n(26)


def test_books_that_another_version_began_meanwhile_are_not_completed():
    """A backfill of the new rules. In its middle the old ones are rolled back to, and forth again: what they booked of
    children that the backfill had passed is not right, and nobody would look at it again.
    """
    scene, user = shop(COUNT, stands=n(26))
    mine = the_books(scene)
    begun = scene.drive(begin([mine]))[mine]
    deploy(scene, "orders: {sum: order.total, into: user.number}")
    insert(scene, 27)
    assert not scene.drive(finish(mine, begun))
    deploy(scene, COUNT)
    insert(scene, 28)
    assert scene.drive(begin([mine])) == {mine: begun + 2}
    assert not scene.drive(finish(mine, begun))
    assert scene.drive(finish(mine, begun + 2))
    assert scene.drive(finish(mine, begun + 2))  # again, its answer was lost
    assert number_of(scene, user) == n(26)


@pytest.mark.parametrize("comes", [0, 1, 5, 26])
@pytest.mark.parametrize("of_handler", OTHERS)
def test_a_backfill_of_other_rules_than_the_handlers_completes_no_books_that_both_wrote(of_handler: str, comes: int):
    """A backfill is started with the rules of before, or of after. The handler books by its own, at some child or never:
    the mark is never that of one and the books those of the other, and no number is shown that neither counts.
    """
    scene, user = shop(COUNT, stands=n(3))
    handled, applied_to = rules_of(of_handler), scene.rules
    of_backfill, of_handler_ = the_books(scene), next(iter(books_of(handled).values()))
    seen = [0]

    def meanwhile(request) -> None:
        children = [key for key in getattr(request, "keys", ()) if key.table == "orders"]
        seen[0] += len(children)
        if children and 0 < comes <= seen[0]:
            scene.tap.before = lambda _request: None
            deploy(scene, of_handler)
            insert(scene, 28)

    scene.tap.before = meanwhile
    backfill(scene)
    scene.tap.before = lambda _request: None
    mark = scene.memory.item(of_backfill.mark)
    assert not of_handler_.complete(mark)
    assert of_backfill.complete(mark) is (comes == 0)
    assert number_of(scene, user) == (n(26) if comes == 0 else n(3))
    deploy(scene, of_handler)
    insert(scene, 30)
    assert not of_backfill.complete(scene.memory.item(of_backfill.mark))
    assert scene.drive(read_waiting(handled))
    assert scene.drive(read_waiting(applied_to))
    shown = number_of(scene, user)
    backfill(scene)
    assert number_of(scene, user) != shown
    assert not scene.drive(read_waiting(handled))


def test_books_that_cannot_be_begun_let_their_records_come_again():
    """Without the mark no entry is written: the books of the other version would still say complete."""
    scene, user = shop(COUNT)
    backfill(scene)
    deploy(scene, "orders: {sum: order.total, into: user.number}")
    mark = the_books(scene).mark

    failed = Result(Status.FAILED, reason="ThrottlingException")
    scene.tap.result = lambda write: failed if getattr(write, "key", None) == mark else None
    scene.put("orders", order(27))
    entries = len(scene.memory.items("ledger"))
    assert scene.deliver() != []
    assert len(scene.memory.items("ledger")) == entries
    assert number_of(scene, user) == n(26)


def test_two_versions_that_begin_again_and_again_end_in_a_failure():
    scene, _ = shop(COUNT)
    mine = the_books(scene)
    other = Books(mine.mark, "other")
    scene.tap.before = lambda request: (
        scene.memory.apply(Apply((other.begin(scene.memory.item(mine.mark)),))) if isinstance(request, Apply) else None
    )
    found = scene.drive(begin([mine]))[mine]
    assert isinstance(found, StoreError)
    assert found.reason == TAKEN


def test_a_mark_that_cannot_be_read_fails_the_numbers_made_of_it():
    scene, user = shop(COUNT)
    backfill(scene)
    mark = the_books(scene).mark

    def fail(request) -> None:
        if isinstance(request, Read) and request.keys == (mark,):
            raise StoreError("ThrottlingException")

    scene.tap.before = fail
    assert scene.pull(user, {**scene.item(user), "number": n(1)}).failed[user].reason.startswith("Throttling")


# ---------------------------------------------------------------- who completes them
def test_a_backfill_in_which_a_child_failed_completes_nothing():
    """No total has the child, and no record of it is on its way: the next backfill looks at it."""
    scene, user = shop(COUNT, stands=n(26))
    broken = scene.at("orders", "07")

    def fail(request) -> None:
        if isinstance(request, Read) and broken in request.keys:
            raise StoreError("InternalServerError")

    scene.tap.before = fail
    run = backfill(scene)
    assert run.left or run.totals.count(Outcome.FAILED)
    assert number_of(scene, user) == n(26)
    scene.tap.before = lambda _request: None
    backfill(scene)
    assert number_of(scene, user) == n(26)
    assert not scene.drive(read_waiting(scene.rules))


def test_a_child_that_cannot_be_counted_keeps_no_books_open():
    """The child is parked and reported; the numbers of all others are right."""
    scene, user = shop("orders: {sum: order.total, into: user.number}", stands=n(351))
    scene.there("orders", {**order(30), "total": s("abc")})
    backfill(scene)
    assert number_of(scene, user) == n(351)
    assert not scene.drive(read_waiting(scene.rules))
    assert ("orders.ledger", "NotANumber") in scene.parked.told


@pytest.mark.parametrize("completes", [True, False])
def test_only_a_backfill_of_everything_completes_books(completes: bool):
    scene, user = shop(COUNT, stands=n(3))
    names = frozenset(scene.rules.rules)
    BackfillRun(
        Selection(scene.rules, names, lambda key, _item: completes or key.values[0][2] < "05"), scene.tap, scene.parked,
        MemoryState(), {}, supplies=segments(scene.rules, 2), completes=names if completes else frozenset(),
    ).run()  # fmt: skip
    assert number_of(scene, user) == (n(26) if completes else n(3))


@dataclass
class Killed(BaseException):
    """The process dies at this request."""


def test_a_backfill_that_dies_anywhere_and_goes_on_ends_with_the_right_number():
    """Between the last child and the mark, between the mark and the parents: the checkpoint says what is left."""
    for at in range(1, 200):
        scene, user = shop(COUNT, stands=n(1))
        state, names, left = MemoryState(), frozenset(scene.rules.rules), [at]

        def die(_request, left=left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        def run(scene=scene, state=state, names=names) -> None:
            BackfillRun(
                Selection(scene.rules, names), scene.tap, scene.parked, state, {},
                supplies=segments(scene.rules, 1), completes=names,
            ).run()  # fmt: skip

        scene.tap.before = die
        try:
            run()
        except Killed:
            assert number_of(scene, user) in (n(1), n(26))
            run()
        else:
            return
        assert number_of(scene, user) == n(26), at
    pytest.fail("a backfill of 27 items makes fewer requests")


@pytest.mark.parametrize(
    "damage",
    [
        {"PK": s("orders/L/07"), "SK": s("-"), "n": s("x")},  # an entry that nobody can read
        {"PK": s("orders/T/u"), "SK": s("-"), "n": n(5), "v": n(1)},  # a total of no entry
    ],
    ids=["entry", "total"],
)
def test_books_that_somebody_else_wrote_to_are_not_completed_by_a_backfill(damage):
    """A right number is not lowered or raised: the rule waits until a repair has made the books right."""
    scene, user = shop(COUNT, stands=n(26))
    scene.there("ledger", damage)
    backfill(scene)
    scene.rest()
    assert number_of(scene, user) == n(26)
    assert [rule.title for rule in run_work(read_waiting(scene.rules), scene.world)] == ["orders"]
    scene.there("orders", order(27))
    verified(scene, repair=True)
    scene.rest()
    assert number_of(scene, user) == n(27)
    assert not run_work(read_waiting(scene.rules), scene.world)


def verified(scene: Scene, **options) -> Verifier:
    verifier = Verifier(scene.rules, scene.world, frozenset(scene.rules.rules), grace_seconds=0, **options)
    for _ in verifier.sweep():
        pass
    return verifier


def test_verify_says_that_a_counter_waits_and_its_repair_completes_the_books():
    scene, user = shop(COUNT, stands=n(26))
    scene.there("orders", order(27))
    tally = verified(scene).tally
    assert tally.waiting == {"orders": 1}
    assert not tally.drift["orders"]
    assert number_of(scene, user) == n(26)
    tally = verified(scene, repair=True).tally
    assert (tally.left, tally.waiting.total()) == (0, 0)
    assert number_of(scene, user) == n(27)
    assert not scene.drive(read_waiting(scene.rules))


def test_a_repair_that_left_something_completes_nothing():
    scene, user = shop(COUNT, stands=n(3))
    entry = scene.rules.rules["orders.ledger"].target
    failed = Result(Status.FAILED, reason="ThrottlingException")

    def fails(write) -> Result | None:
        keys = [action.key for action in getattr(write, "actions", ())]
        return (
            failed if any(entry.fields(key) is not None and key.values[0][2].endswith("/07") for key in keys) else None
        )

    scene.tap.result = fails
    assert verified(scene, repair=True).tally.left
    assert number_of(scene, user) == n(3)
    assert scene.drive(read_waiting(scene.rules))


# ---------------------------------------------------------------- in the account, from an export, by --changed
class Answered:
    """A backfill or a verify in the account, all of whose questions are asked in turn."""

    def __init__(self, work: Any, asked: dict[str, Any]) -> None:
        self.units: list[str] = []
        found = work.begin(asked, "one")
        while found.more:
            for unit in found.units:
                assert work.unit(unit, found.run)
            found = work.end(found.run)
        self.error = found.error


def in_account(scene: Scene, **asked: Any) -> Answered:
    def job(names: frozenset[str], request: BackfillRequest) -> Job:
        supplies = segments(scene.rules, 2, () if request.table is None else (request.table,))
        scope = Scope(fingerprints.of_each(scene.rules), {"all": "id"}, request.table, request.where, 2)
        return Job(Selection(scene.rules, names), supplies, scope, dict.fromkeys(scene.rules.tables, 9))

    state = SharedMemory()
    work = BackfillWork(
        scene.rules, lambda _sleep: scene.tap, scene.parked, state, job, remaining_ms=lambda: 900_000,
        sleep=lambda _seconds: None,
    )  # fmt: skip
    options = {"rules": [], "changed": False, "table": None, "where": None, "segments": 2, "workers": 1, "rate": 0.0}
    return Answered(work, {**options, "resume": False, "restart": False, **asked})


def test_a_backfill_in_the_account_completes_books_and_finds_those_that_wait_by_itself():
    scene, user = shop(COUNT, stands=n(3))
    assert in_account(scene, changed=True).error == ""
    assert number_of(scene, user) == n(26)
    assert not scene.drive(read_waiting(scene.rules))


def test_a_backfill_of_one_table_in_the_account_completes_none():
    scene, user = shop(COUNT, stands=n(3))
    assert in_account(scene, table="orders").error == ""
    assert number_of(scene, user) == n(3)
    assert scene.drive(read_waiting(scene.rules))


def test_a_backfill_in_the_account_ends_badly_where_another_version_takes_the_books():
    scene, user = shop(COUNT, stands=n(3))
    mine = the_books(scene)
    other = Books(mine.mark, "other")

    def meddle(request: object) -> None:
        if isinstance(request, Scan) and scene.memory.item(mine.mark):
            scene.memory.put(mine.mark.table, other.begin(scene.memory.item(mine.mark)).item)

    scene.tap.before = meddle
    assert in_account(scene).error == "BooksNotComplete"
    assert number_of(scene, user) == n(3)


def test_a_rule_that_waits_or_is_new_is_changed_and_one_that_was_renamed_is_not():
    """A rollback leaves the fingerprint that was applied, and books that lack something."""
    state, rules = MemoryState(), rules_of(COUNT)
    note_applied(state, rules, ["orders"])
    assert find_applied(state, rules) == fingerprints.of_each(rules)
    assert find_applied(state, rules, ["orders"]) == {}
    renamed = rules_of("sum: {count: order, into: user.number, renamed_from: orders}")
    assert find_applied(state, renamed) == fingerprints.of_each(renamed)
    changed = rules_of("sum: {sum: order.total, into: user.number, renamed_from: orders}")
    assert find_applied(state, changed) == {}
    note_applied(state, renamed, ["sum"])
    assert read_applied(state).keys() == {"sum"}


@pytest.mark.parametrize(
    ("more", "items", "completes"),
    [
        ({}, ("users", "orders", "ledger"), {"orders", "orders.ledger"}),
        ({"export": ("place", None)}, ("orders", "ledger"), {"orders.ledger"}),
        ({"export": ("place", None)}, ("users",), {"orders"}),
        ({"table": "orders"}, ("orders",), set()),
        ({"where": "total > `1`"}, ("users", "orders", "ledger"), set()),
    ],
)
def test_a_job_completes_what_it_looks_at_in_whole(more: dict[str, Any], items: tuple[str, ...], completes: set[str]):
    """The rule that only shows a number completes nothing by itself."""
    rules = rules_of(COUNT)
    scope = Scope(fingerprints.of_each(rules), dict.fromkeys(items, "id"), **more)
    job = Job(Selection(rules, frozenset(rules.rules)), segments(rules, 1), scope, dict.fromkeys(items, 9))
    assert job.completes == completes


# ---------------------------------------------------------------- where nothing was there before
def test_books_over_empty_tables_are_complete_from_the_beginning():
    scene = Scene(rules_of(COUNT), complete=False)
    assert scene.drive(finish_empty(scene.rules)) == ()
    user = scene.put("users", {"user": s("u")})
    insert(scene, 1)
    assert number_of(scene, user) == n(1)


def test_books_over_children_or_over_old_entries_wait():
    scene, _ = shop(COUNT)
    (rule,) = books_of(scene.rules)
    assert scene.drive(finish_empty(scene.rules)) == (rule,)
    backfill(scene)
    for number in range(1, OLD + 1):  # no record is processed, as while the rule was gone
        scene.memory.delete(scene.at("orders", f"{number:02}"))
    deploy(scene, "orders: {sum: order.total, into: user.number}")
    (rule,) = books_of(scene.rules)
    assert scene.drive(finish_empty(scene.rules)) == (rule,)


@pytest.mark.parametrize("function", ["count: order", "sum: order.total", "max: order.total"])
def test_a_version_that_counted_nothing_of_what_came_ends_the_books_of_the_former_one(function: str):
    """No record makes the second version write an entry, so only its beginning tells the first one what it missed."""
    of_open, of_paid = (f"orders: {{{function}, into: user.number, where: \"state == '{state}'\"}}" for state in STATES)
    scene, user = shop(of_open)
    backfill(scene)
    scene.rest()
    shown = number_of(scene, user)
    deploy(scene, of_paid)
    scene.drive(finish_empty(scene.rules))  # as a run and a stack do at their beginning
    insert(scene, 40)  # open
    deploy(scene, of_open)
    (rule,) = books_of(scene.rules)
    assert scene.drive(finish_empty(scene.rules)) == (rule,)
    insert(scene, 42)
    assert number_of(scene, user) == shown
    backfill(scene)
    assert (
        number_of(scene, user)
        == {"count: order": n(15), "sum: order.total": n(264), "max: order.total": n(42)}[function]
    )


def test_other_items_in_the_table_of_the_children_do_not_keep_books_open():
    one_table = """
tables: {shop: {key: {PK: S, SK: S}}, ledger: {key: {PK: S, SK: S}}}
entities:
  user: {table: shop, key: {PK: "U#{user}", SK: PROFILE}}
  order: {table: shop, key: {PK: "U#{user}", SK: "O#{order}"}}
rules: {orders: {count: order, into: user.number}}
"""
    scene = Scene(parse_rules(one_table), complete=False)
    scene.there("shop", {"PK": s("U#u"), "SK": s("PROFILE")})
    assert scene.drive(finish_empty(scene.rules)) == ()


def test_the_fingerprint_of_books_is_of_what_they_hold():
    """The place where the number is shown, and the name of the rule, say nothing of the books."""

    def prints(*entries: str) -> set[str]:
        return {books.fingerprint for entry in entries for books in books_of(rules_of(entry)).values()}

    same = ("orders: {count: order, into: user.number}", "o: {count: order, into: user.other, on_delete: keep}")
    assert len(prints(*same)) == 1
    assert len(prints(COUNT, "orders: {sum: order.total, into: user.number}")) == 2


@pytest.mark.parametrize("count", [0, 1, 2, 17])
def test_counters_that_wait_are_one_line_with_the_command_that_ends_it(count):
    """However many wait, and with the options that the command of the line needs."""
    lines = describe_waits((f"rule-{number:02}" for number in range(count)), " --region eu-west-1")
    assert len(lines) == min(count, 1)
    assert all(len(line) < 260 for line in lines)
    chosen = "--rule rule-00" if count == 1 else "--changed"
    assert all(f"sync-rules backfill {chosen} --region eu-west-1" in line for line in lines)
