"""A backfill from beginning to end in memory: every kind of rule, killed anywhere, resumed, stopped, refused."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.adapters.state import MemoryState
from sync_rules.audit.compare import Drift
from sync_rules.audit.verifier import Verifier
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.jobs.backfill.progress import HEAD, Position, Totals, load_unfinished_head, make_next_position
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Change, Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.requests import Apply, Scan
from sync_rules.rules.ledger import VERSION
from sync_rules.rules.ruleset import Rules
from sync_rules.rules.selection import Step
from tests.support import every_kind
from tests.support.builders import mapping, n, order_item, s, shop, user_item
from tests.support.depth import deep
from tests.support.inaccount import SharedMemory
from tests.support.worlds import Scene

RULES = every_kind.rules_of(effects=False)
WAIT_MAX_SECONDS = 5
IDS = st.sampled_from(["1", "2", "3", "4"])


def run_of(scene: Scene, state: MemoryState | None = None, *, names=None, total=2, tables=(), **options) -> BackfillRun:
    """A backfill of a scene that has not begun. A wait costs no time."""
    rules = scene.rules
    only = frozenset(rules.rules) if names is None else names
    given = {
        "sleep": lambda _seconds: None,
        "clock": lambda: 0.0,
        "supplies": make_supplies(rules, total, tables),
        "completes": frozenset() if tables else only,
        **options,
    }
    return BackfillRun(
        Selection(rules, only), scene.tap, scene.parked, state or SharedMemory(), {"of": sorted(only)}, **given
    )


def contents(scene: Scene) -> dict:
    """Everything in all tables, but for how often a total was added to."""
    return {
        (name, str(scene.rules.tables[name].key_of(item))): {
            attribute: _sorted(value) for attribute, value in item.items() if (name, attribute) != ("ledger", VERSION)
        }
        for name in scene.rules.tables
        for item in scene.memory.items(name)
    }


def _sorted(value):
    return {"SS": sorted(value["SS"])} if "SS" in value else value


# ---------------------------------------------------------------- worlds
@st.composite
def shops(draw) -> list:
    """A random history of an application's writes in the small shop: (action, argument) in order."""
    texts = st.sampled_from(["Ada", "Bo", "Cy"])
    user = st.builds(
        lambda i, *given: ("shop", every_kind.user(i, **{name: v for one in given for name, v in one.items()})),
        IDS,
        texts.map(lambda name: {"name": s(name)}) | st.just({}),
        st.sampled_from(
            [{}, {"head": s("?")}, {"counted": n(7)}, {"orders": {"SS": ["9", "1"]}}, {"posts": {"M": {"9": s("?")}}}]
        ),
        st.sampled_from([{}, {"email": s("a@x")}, {"email": s("b@x")}]),
        st.sampled_from([{}, {"boss_id": s("1")}, {"boss_id": s("2"), "boss_name": s("?")}]),
    )
    order = st.builds(
        lambda u, o, total, junk: ("shop", every_kind.order(u, o, total, **junk)),
        IDS,
        IDS,
        st.integers(-3, 9),
        st.sampled_from([{}, {"user_name": s("?")}, {"told": n(5)}, {"status": s("VOID")}, {"counted": n(3)}]),
    )
    post = st.builds(lambda p, u: ("posts", every_kind.post(p, u, "t")), IDS, IDS)
    part = st.builds(
        lambda p, parent, junk: ("parts", {**every_kind.part(p, parent), **junk}),
        IDS,
        IDS | st.none(),
        st.sampled_from([{}, {"path": s("9|8")}, {"depth": n(4)}]),
    )
    mirror = st.builds(lambda e: ("shop", {"PK": s(f"EMAIL#{e}"), "SK": s("EMAIL")}), st.sampled_from(["a@x", "z@x"]))
    puts = st.tuples(st.just("put"), user | user | order | order | post | part | mirror)
    deletes = st.tuples(st.just("delete"), st.integers(0, 30))
    delivers = st.tuples(st.just("deliver"), st.just(None))
    return draw(st.lists(puts | puts | puts | deletes | delivers, max_size=30))


def scene_of(steps: list, page: int = 3, rules: Rules = RULES, *, complete: bool = True) -> Scene:
    """The tables after these steps; records that were not delivered are lost."""
    scene = Scene(rules, complete=complete)
    scene.memory.page_items = lambda limit: min(limit, page)
    for step, argument in steps:
        if step == "put":
            scene.put(*argument)
        elif step == "deliver":
            scene.rest()
        else:
            items = [(name, item) for name in ("shop", "posts", "parts") for item in scene.memory.items(name)]
            if items:
                name, item = items[argument % len(items)]
                scene.memory.delete(rules.tables[name].key_of(item))
    scene.records.clear()
    scene.parked.failures.clear()
    scene.queue.messages.clear()
    return scene


def drift_of(scene: Scene) -> list:
    verifier = Verifier(scene.rules, scene.world, frozenset(scene.rules.rules), grace_seconds=0)
    return [finding.difference for finding in verifier.sweep()]


@given(shops(), st.integers(1, 5), st.integers(1, 3))
@settings(max_examples=deep(150), deadline=None)
def test_backfill_run_brings_every_kind_in_line(steps, page, total):
    """After a backfill verify finds no drift of any kind, but for what is stuck, which is parked; and a second one has
    nothing to write, nor has a record of any item, not even a write that would be refused.
    """
    scene = scene_of(steps, page)
    run = run_of(scene, total=total)
    assert run.run()
    assert run.left == {}
    found = drift_of(scene)
    assert [one for one in found if one.repairable] == []
    stuck = {one.rule for one in found if one.drift is Drift.STUCK}
    assert {rule for rule, _ in scene.parked.told} == stuck == run.totals.list_rules_with(Outcome.PARKED)
    before, tables = contents(scene), scene.rules.tables
    scene.tap.requests.clear()
    again = run_of(scene, total=total)
    assert again.run()
    assert again.totals.count(Outcome.COPIED) == 0
    items = [(tables[name].key_of(item), item) for name in tables for item in scene.memory.items(name)]
    assert scene.deliver([Change(key, None, item, str(i)) for i, (key, item) in enumerate(items)]) == []
    assert scene.tap.writes == []
    assert contents(scene) == before


# ---------------------------------------------------------------- dying and going on
class KilledError(BaseException):
    """The process is gone."""


@contextmanager
def dying_at(scene: Scene, state: SharedMemory, count: int) -> Iterator[None]:
    """The process dies at the request of this number, before or after the store has done it, or as it saves."""
    left = [count]

    def tick(*_: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError

    scene.tap.before = state.before = tick
    scene.tap.result = lambda write: _then(scene.memory.apply(Apply((write,)))[0], tick)
    try:
        yield
    finally:
        scene.tap.before = lambda _request: None
        state.before = lambda _name: None
        scene.tap.result = lambda _write: None


def _then(result: Result, tick) -> Result:
    tick()
    return result


def killed_and_resumed(scene: Scene, kills: list[int], **options) -> tuple[BackfillRun, SharedMemory]:
    """Run a backfill that is killed after each of these numbers of requests, and resumed until done."""
    state = SharedMemory()
    for count in kills:
        run = run_of(scene, state, **options)
        with suppress(KilledError), dying_at(scene, state, count):
            assert run.run()
        if state.documents.get("backfill", {}).get("done"):  # it died too late
            return run, state
    run = run_of(scene, state, **options)
    assert run.run()
    return run, state


@given(shops(), st.lists(st.integers(0, 60), max_size=6), st.integers(1, 5))
@settings(max_examples=deep(150), deadline=None)
def test_backfill_run_killed_anywhere_ends_as_if_it_had_not_been(steps, kills, page):
    """A backfill killed at any request and resumed ends in the state of an undisturbed one.

    Only the writes in hand at a kill are made again.
    """
    undisturbed, disturbed = scene_of(steps, page), scene_of(steps, page)
    assert run_of(undisturbed).run()
    _, state = killed_and_resumed(disturbed, kills)
    assert load_unfinished_head(state) is None
    assert contents(disturbed) == contents(undisturbed)
    in_hand = max((len(request.writes) for request in undisturbed.tap.seen(Apply)), default=0)
    assert len(disturbed.tap.writes) <= len(undisturbed.tap.writes) + in_hand * len(kills)


@given(st.lists(st.integers(0, 100), max_size=4))
@settings(max_examples=deep(60), deadline=None)
def test_backfill_run_counts_nothing_twice_and_loses_no_more_than_a_page(kills):
    """A killed and resumed backfill counts each item once, and misses at most the copies of the page in hand."""
    scene = Scene(shop())
    scene.memory.page_items = lambda limit: min(limit, 4)
    scene.there("shop", user_item("1", name=s("Ada")), *(order_item("1", f"{i:03}") for i in range(39)))
    run, _ = killed_and_resumed(scene, kills, total=1)
    totals = run.totals
    assert (totals.items, totals.asked) == (40, 39)
    assert totals.count(Outcome.COPIED) + totals.count(Outcome.RIGHT) == 39
    assert totals.count(Outcome.RIGHT) <= 4 * len(kills)


def test_backfill_run_saves_seldom_where_that_takes_long():
    """A save that took a second is not made again before ten have passed: in between, pages are done unsaved."""
    scene = Scene(shop())
    scene.memory.page_items = lambda limit: min(limit, 1)
    scene.there("shop", user_item("1", name=s("Ada")), *(order_item("1", f"{i:02}") for i in range(30)))
    state, now, saved = SharedMemory(), [0.0], list[float]()

    def slow(_name: str) -> None:
        now[0] += 1.0
        saved.append(now[0])

    def page(_totals: object) -> None:
        now[0] += 0.5

    state.before = slow
    assert run_of(scene, state, total=1, clock=lambda: now[0], on_page=page).run()
    assert 3 <= len(saved) <= 7


# ---------------------------------------------------------------- steps and rounds
def test_totals_before_a_round_hold_all_rounds_that_ended():
    """A display shows at most as many items of a round as there are."""
    scene = Scene(every_kind.rules_of(effects=False))
    scene.there("parts", every_kind.part("p", None), every_kind.part("q", "p"), every_kind.part("r", "q"))
    rounds: dict[Position, int] = {}

    def page(totals: Totals) -> None:
        rounds[run.position] = totals.items - run.before.items

    run = run_of(scene, total=1, on_page=page)
    assert run.run()
    assert len(rounds) > 2
    assert max(rounds.values()) <= sum(len(scene.memory.items(table)) for table in scene.rules.tables)


CHAIN = """
tables: {parts: {key: {part_id: S}, indexes: {by_parent: {parent_id: S}}}}
entities: {part: {table: parts}}
rules: {paths: {path: part.path, parent: parent_id}}
"""


def chain(length: int, page: int = 100) -> Scene:
    scene = Scene(parse_rules(CHAIN))
    scene.memory.page_items = lambda limit: min(limit, page)
    for i in range(length):
        scene.there("parts", every_kind.part(f"{i:02}", f"{i - 1:02}" if i else None))
    return scene


def test_backfill_run_makes_mirrors_before_what_is_about_them():
    """The key of the mirror says all that these rules read, and it cannot change: they come after the mirror anyway."""
    scene = Scene(
        parse_rules("""
tables: {teams: {key: {team: S}}, shop: {key: {PK: S, SK: S}}, ledger: {key: {PK: S, SK: S}}}
entities:
  team: {table: teams}
  city: {table: shop, key: {PK: "CITY#{city}", SK: CITY}}
  team_in_city: {table: shop, key: {PK: "CITY#{city}", SK: "TEAM#{team}"}}
rules:
  names: {copy: city.name, into: team_in_city.city_name}
  set: {collect: team_in_city, into: city.teams, as: "{team}"}
  number: {count: team_in_city, into: city.number}
  teams: {mirror: team, into: team_in_city, attributes: [title]}
""")
    )
    scene.there("shop", {"PK": s("CITY#c"), "SK": s("CITY"), "name": s("Ulm")})
    scene.there("teams", {"team": s("t"), "city": s("c"), "title": s("T")})
    assert run_of(scene, total=1).run()
    assert scene.item(scene.at("shop", "CITY#c", "TEAM#t"))["city_name"] == s("Ulm")
    city = scene.item(scene.at("shop", "CITY#c", "CITY"))
    assert (city["teams"], city["number"]) == ({"SS": ["t"]}, n(1))


def test_backfill_run_does_not_depend_on_the_order_of_rules_in_the_file():
    """A file whose rules change places between two processes has the same fingerprints; the steps are the same too."""
    rules = every_kind.rules_of(effects=False)
    back = Rules(rules.tables, rules.entities, dict(reversed(rules.rules.items())))
    assert run_of(Scene(rules)).steps == run_of(Scene(back)).steps


# ---------------------------------------------------------------- when the world does not answer
def orders(count: int = 9, page: int = 3) -> Scene:
    scene = Scene(shop())
    scene.memory.page_items = lambda limit: min(limit, page)
    scene.there("shop", user_item("1", name=s("Ada")), *(order_item("1", str(i)) for i in range(count)))
    return scene


def spread(count: int, page: int = 3) -> Scene:
    """The given number of users, each with an order, in all segments."""
    scene = Scene(shop())
    scene.memory.page_items = lambda limit: min(limit, page)
    for i in range(count):
        scene.there("shop", user_item(str(i), name=s("Ada")), order_item(str(i), "1"))
    return scene


def test_backfill_run_sets_only_so_many_aside(monkeypatch):
    """A segment with more failed items than may be set aside is left for the next run, and none of the items is lost."""
    monkeypatch.setattr("sync_rules.jobs.backfill.page.SET_ASIDE_MAX_ITEMS", 2)
    scene = orders(9, page=10)
    scene.tap.result = lambda _write: Result(Status.FAILED, reason="ThrottlingException")
    state = SharedMemory()
    run = run_of(scene, state, total=1)
    assert not run.run()
    assert run.left == {"shop/0-of-1": "ThrottlingException: 9 items not finished"}
    assert scene.parked.failures == []
    scene.tap.result = lambda _write: None
    assert run_of(scene, state, total=1).run()
    assert drift_of(scene) == []


def test_backfill_run_that_breaks_in_one_thread_stops_in_all():
    """An error in one thread of a backfill stops all threads."""
    scene = spread(60)
    other = threading.Event()
    state = SharedMemory()

    def full(name: str) -> None:
        if "0-of" in name:
            other.wait(WAIT_MAX_SECONDS)
            raise StoreError("StateNotWritten")

    def scanning(request: object) -> None:
        if isinstance(request, Scan) and request.segment == 1:
            other.set()
            until = time.monotonic() + WAIT_MAX_SECONDS
            while not run._crew.broken and time.monotonic() < until:
                threading.Event().wait(0.001)

    state.before, scene.tap.before = full, scanning
    run = run_of(scene, state, total=2, workers=2)
    with pytest.raises(StoreError, match="StateNotWritten"):
        run.run()
    assert len([request for request in scene.tap.seen(Scan) if request.segment == 1]) == 1


def test_backfill_run_refuses_a_position_that_the_rules_do_not_have():
    """A state that is behind the last step of these rules is not taken for a backfill that is done."""
    scene = scene_of([])
    state = SharedMemory()
    run = run_of(scene, state)
    run.begin()
    head = state.load(HEAD)
    for beyond in (0, 1):
        state.save(HEAD, {**head, "place": {**head["place"], "step": len(run.steps) + beyond}})
        resumed = run_of(scene, state)
        with pytest.raises(UserError, match="--restart") if beyond else nullcontext():
            resumed.begin()
            assert resumed.is_over


def test_backfill_run_that_is_stopped_counts_what_it_parked():
    """Stopped in the middle of a page that comes again: as many count as parked as failure records were kept, and the
    next run counts each of its own once.
    """
    scene = Scene(shop(mapping=mapping(name="user__name")))
    scene.there("shop", user_item("1", name=s("Ada")))
    scene.there("shop", *(order_item("1", str(number), user=s("no map")) for number in range(40)))
    state, bounds = SharedMemory(), Bounds(Limits(fan_out_round_max_items=5))
    stopping = {"at": 12}
    run = run_of(scene, state, bounds=bounds, total=1, stopping=lambda: len(scene.parked.failures) >= stopping["at"])
    assert not run.run()
    assert 12 <= run.totals.count(Outcome.PARKED) == len(scene.parked.failures) < 40
    scene.parked.failures.clear()
    stopping["at"] = 1_000
    again = run_of(scene, state, bounds=bounds, total=1)
    assert again.run()
    assert again.totals.count(Outcome.PARKED) == len(scene.parked.failures) == 40


@pytest.mark.parametrize(("levels", "rounds"), [(0, 3), (2, 7)])
def test_rounds_of_a_hierarchy_end_with_its_levels(levels, rounds):
    """Each round may make a level right, for path and depth; one more finds that nothing is left. What an application
    changes meanwhile is left to its records.
    """
    rules = every_kind.rules_of(effects=False)
    wrote = Totals(outcomes=Counter({("paths", Outcome.COPIED): 1}), levels=levels)
    position, seen = Position(0), 0
    while position.step == 0:
        position, seen = (
            make_next_position(position, [Step(frozenset({"paths"}), 1000)], rules, wrote, resumed=False),
            seen + 1,
        )
    assert seen == rounds
