"""Verify: a difference in two looks is drift, one in a single look is lag; a repair overwrites nothing newer."""

from __future__ import annotations

import random
from functools import cache

import pytest

from sync_rules.audit.compare import Drift
from sync_rules.audit.verifier import Verifier
from sync_rules.audit.verify_tally import Tally
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError
from sync_rules.model.items import Alteration, ItemKey
from sync_rules.pipeline.requests import Apply, Read, Scan
from sync_rules.rules.selection import Share
from tests.support import drifts, every_kind
from tests.support.builders import author_item, book_item, key, library, n, s
from tests.support.depth import deep
from tests.support.worlds import Scene
from tests.unit.audit.test_prune import settled

RULE = "author-on-books"
ADA = author_item("a1", name=s("Ada"), bio=s("..."))
RIGHT = book_item("b1", "a1", author_name=s("Ada"), author_bio=s("..."))
GRACE_SECONDS = 120.0


class Run:
    """A verify run on a clock that only its own waiting moves. `meanwhile` happens while it waits."""

    def __init__(
        self, scene: Scene, *, repair: bool = False, only: frozenset[str] | None = None, meanwhile=None, **options
    ):
        self.waits: list[float] = []
        self._meanwhile = meanwhile or (lambda: None)
        self._now = 1_000.0
        self.verifier = Verifier(
            scene.rules,
            scene.world,
            frozenset(scene.rules.rules) if only is None else only,
            repair=repair,
            grace_seconds=GRACE_SECONDS,
            sleep=self._sleep,
            clock=lambda: self._now,
            **options,
        )

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._now += seconds
        self._meanwhile()

    def sweep(self) -> list[tuple[ItemKey, Drift, bool]]:
        return self._shown(self.verifier.sweep())

    def one(self, at: ItemKey) -> list[tuple[ItemKey, Drift, bool]]:
        return self._shown(self.verifier.one(at))

    @staticmethod
    def _shown(findings):
        return [(found.difference.target, found.difference.drift, found.repaired) for found in findings]


def library_scene(**options) -> Scene:
    scene = Scene(library(**options))
    scene.there("authors", ADA, author_item("mute"))
    return scene


def wrong_book() -> tuple[Scene, ItemKey]:
    scene = library_scene()
    return scene, scene.there("books", {**RIGHT, "author_name": s("x")})


def test_verify_tallies_what_it_mended():
    """A repair counts what its writes did to values, and what is right; tallies go through JSON and add up."""
    scene = library_scene()
    scene.there("books", RIGHT, {**RIGHT, "book_id": s("b2"), "author_name": s("x")}, book_item("b3", "a1"))
    scene.there("books", {**RIGHT, "book_id": s("b4"), "author_id": s("mute")})
    run = Run(scene, repair=True)
    assert {mended for _, _, mended in run.sweep()} == {True}
    assert (run.waits, run.verifier.tally.remaining_count, len(scene.tap.writes)) == ([GRACE_SECONDS], 0, 3)
    made = {Alteration.REPLACED: 1, Alteration.SET: 2, Alteration.REMOVED: 2}  # a name, a name and a bio, twice
    assert run.verifier.tally.count_alterations() == made
    assert Tally.of(run.verifier.tally.body()) == run.verifier.tally
    twice = Tally()
    for _ in range(2):
        twice.include(run.verifier.tally)
    assert twice.count_alterations(RULE) == {each: 2 * count for each, count in made.items()}
    assert twice.count_alterations("another") == {}
    again = Run(scene)
    assert again.sweep() == []
    assert (again.waits, again.verifier.tally.right) == ([], {RULE: 4})


# ---------------------------------------------------------------- drift of every kind
@cache
def shop_at_rest() -> Scene:
    scene = Scene(parse_rules(every_kind.text_of(drifts.RULES)))
    for table, item in drifts.ITEMS:
        scene.there(table, item)
    assert Run(scene, repair=True).sweep()
    return scene


def drifted_shop(drifted: drifts.Drifted) -> Scene:
    """A shop with this single fault."""
    right = shop_at_rest()
    scene = Scene(right.rules)
    for table in scene.rules.tables:
        scene.there(table, *right.memory.items(table))
    for (table, *values), changes in drifted.edits:
        at = scene.at(table, *values)
        now = {**(scene.memory.item(at) or at.attributes()), **(changes or {})}
        scene.there(table, {name: value for name, value in now.items() if value is not None})
        if changes is None:
            scene.memory.delete(at)
    return scene


@pytest.mark.parametrize("by_report", [False, True], ids=["sweep", "report"])
@pytest.mark.parametrize("drifted", drifts.DRIFTS, ids=lambda one: one.name)
def test_verify_finds_and_mends_drift_of_every_kind(drifted, by_report):
    """Verify finds exactly the drift that was injected, each thing once, and repairs it, at once or by its report. It says
    of what no repair corrects that it does not, and leaves it as it is.
    """
    scene = drifted_shop(drifted)
    found = [one.difference for one in Run(scene).verifier.sweep()]
    places = [(one.rule, one.drift, (one.target.table, *(value for *_, value in one.target.values))) for one in found]
    assert sorted(places, key=str) == sorted(drifted.found, key=str)
    assert {one.repairable for one in found if one.rule == drifted.told[0]} == {drifted.repairable}
    run = Run(scene, repair=True)
    of = listed(scene)
    mended = [one.repaired for one in (run.verifier.verify_report(of, 9_000) if by_report else run.verifier.sweep())]
    assert run.verifier.tally.remaining_count == (not drifted.repairable)
    assert any(mended) is drifted.repairable
    assert bool(Run(scene).sweep()) is not drifted.repairable
    assert scene.parked.failures == []


def test_verify_of_one_item():
    """A single target is looked at twice like any other; a key without an item, or no target, is an error."""
    scene = library_scene()
    book = scene.there("books", book_item("b1", "a1"))
    scene.there("books", book_item("b2", "a1"))
    assert Run(scene, repair=True).one(book) == [(book, Drift.MISSING, True)]
    assert len(scene.tap.writes) == 1
    with pytest.raises(UserError, match=r"item books\[nowhere\] does not exist"):
        Run(scene).one(key(scene.rules.tables["books"], "nowhere"))
    with pytest.raises(UserError, match="which is a author"):
        Run(scene).one(key(scene.rules.tables["authors"], "a1"))


# ---------------------------------------------------------------- a source that does not stand still
def named(text: str):
    return author_item("a1", name=s(text), bio=s("..."))


def test_verify_waits_once_more_for_a_source_that_changed_just_then():
    """A rare change just before the second look is lag, if the copy is right, or another, at the third."""
    scene = library_scene()
    scene.there("books", {**RIGHT, "author_name": s("before")})

    def meanwhile():
        if scene.records:
            scene.rest()
        else:
            scene.put("authors", named("Bea"))

    run = Run(scene, meanwhile=meanwhile)
    assert run.sweep() == []
    assert run.waits == [GRACE_SECONDS, GRACE_SECONDS]
    assert run.verifier.tally.lag == {RULE: 1}


def test_verify_finds_the_drift_of_a_hot_source():
    """A wrong copy counts as drift after three looks even if its source changes before every look."""
    scene = library_scene()
    book = scene.there("books", {**RIGHT, "author_name": s("before")})
    names = iter(f"name {i}" for i in range(10))
    run = Run(scene, repair=True, meanwhile=lambda: scene.put("authors", named(next(names))))
    assert run.sweep() == [(book, Drift.WRONG, True)]
    assert run.waits == [GRACE_SECONDS, GRACE_SECONDS]
    assert scene.item(book)["author_name"] == s("name 1")
    assert (run.verifier.tally.lag[RULE], run.verifier.tally.remaining_count) == (0, 0)


# ---------------------------------------------------------------- cascades
CHAIN = """
tables:
  users: {key: {user_id: S}, indexes: {by_order: {order_id: S}}}
  orders: {key: {order_id: S}, indexes: {by_user: {user_id: S}}}
  lines: {key: {line_id: S}, indexes: {by_order: {order_id: S}}}
  notes: {key: {note_id: S}, indexes: {by_line: {line_id: S}}}
entities: {user: {table: users}, order: {table: orders}, line: {table: lines}, note: {table: notes}}
rules:
"""
DOWN = """
  third: copy line.name into note.name
  second: copy order.status into line.name
  first: copy user.name into order.status
"""
CIRCLE = """
  out: {copy: {user.name: name, user.seen: told}, into: order}
  back: {copy: {order.name: seen}, into: user, link: {order_id: order_id}, via: by_order}
"""


class Chain:
    """Users, their orders, the lines of these and the notes on those: one of each, written with `name` where copied."""

    def __init__(self, rules: str, tables: str = CHAIN) -> None:
        self.scene = Scene(parse_rules(tables + rules))
        self.keys: dict[str, ItemKey] = {}

    def there(self, table: str, **values: str) -> None:
        links = {"users": "order_id", "orders": "user_id", "lines": "order_id", "notes": "line_id"}
        item = {f"{table[:-1]}_id": s("1"), links[table]: s("1"), **{name: s(text) for name, text in values.items()}}
        self.keys[table] = self.scene.there(table, item)

    def text(self, table: str, name: str) -> str:
        return self.scene.item(self.keys[table])[name]["S"]


def down(**names: str) -> Chain:
    chain = Chain(DOWN)
    attributes = {"users": "name", "orders": "status", "lines": "name", "notes": "name"}
    for table, attribute in attributes.items():
        chain.there(table, **{attribute: names.get(table, "right")})
    return chain


@pytest.mark.parametrize(
    "broken",
    [
        {"orders": "broken", "lines": "broken", "notes": "broken"},
        {"orders": "broken"},
        {"orders": "broken", "notes": "worse"},
        {"lines": "broken"},
    ],
)
def test_verify_mends_down_the_cascade(broken):
    """One repair makes every copy of a cascade right, writes each wrong one once and no right one, and says so."""
    chain = down(**broken)
    run = Run(chain.scene, repair=True)
    found = run.sweep()
    assert {(at, mended) for at, _, mended in found} == {(chain.keys[table], True) for table in broken}
    assert len(chain.scene.tap.writes) == len(broken)
    tally = run.verifier.tally
    assert (tally.items, tally.remaining_count) == (3, 0)
    assert (tally.right.total(), tally.drift.total()) == (3 - len(broken), len(broken))
    assert Run(chain.scene).sweep() == []


def test_verify_goes_round_where_rules_feed_each_other():
    """Two rules that feed each other through different copies are repaired in rounds until all copies are right."""
    chain = Chain(CIRCLE)
    chain.there("users", name="right", seen="broken")
    chain.there("orders", name="broken", told="broken")
    run = Run(chain.scene, repair=True)
    assert all(mended for _, _, mended in run.sweep())
    assert (chain.text("orders", "name"), chain.text("users", "seen"), chain.text("orders", "told")) == ("right",) * 3
    assert run.verifier.tally.remaining_count == 0
    assert run.verifier.tally.items == 2
    again = Run(chain.scene, repair=True)
    assert again.sweep() == []
    assert again.verifier.tally.right == {"out": 1, "back": 1}
    assert len(chain.scene.tap.seen(Scan)) > 2


def test_verify_counts_what_is_left_once():
    """A copy that cannot be repaired is found in every round, but prolongs none and is counted as left once."""
    chain = Chain(CIRCLE.replace("user.seen: told", "user.seen: note.told"))
    chain.there("users", name="right", seen="broken")
    chain.there("orders", name="broken")
    order = {"order_id": s("2"), "user_id": s("1"), "name": s("right"), "note": s("no map")}
    parked = chain.scene.there("orders", order)
    run = Run(chain.scene, repair=True)
    found = run.sweep()
    assert {at for at, _, mended in found if not mended} == {parked}
    assert chain.text("users", "seen") == "right"
    assert run.verifier.tally.remaining_count == 1
    assert len(Run(chain.scene, repair=True).sweep()) == 1


# ---------------------------------------------------------------- every kind
def rules_found(run: Run) -> list[tuple[str, str, bool]]:
    return [(one.difference.rule, one.difference.drift.value, one.repaired) for one in run.verifier.sweep()]


def test_verify_of_one_item_sees_what_is_kept_on_it_and_made_from_it():
    """--key of a source or of what is kept: parts are looked at from either side, and what is right counts."""
    scene = settled(every_kind.rules_of(effects=False))
    order, mirror = scene.at("shop", "USER#1", "ORDER#a"), scene.at("shop", "EMAIL#a@x", "EMAIL")
    run = Run(scene)
    assert run.one(order) == []
    assert {"tags", "spent.ledger", "names", "told"} <= {
        name for name, count in run.verifier.tally.right.items() if count
    }
    scene.there("shop", {**scene.item(mirror), "name": s("x")})
    assert Run(scene, repair=True).one(mirror) == [(mirror, Drift.WRONG, True)]
    run = Run(scene)
    assert run.one(mirror) == []
    assert run.verifier.tally.right == {"mails": 1}
    with pytest.raises(UserError, match="which is of no entity"):
        Run(scene).one(scene.there("shop", {"PK": s("X"), "SK": s("Y")}))


# ---------------------------------------------------------------- a share, several at a time


def test_verify_bounds_what_several_workers_gather(monkeypatch):
    """Verify looks again at differences once there are too many in memory, and reads no page meanwhile."""
    monkeypatch.setattr("sync_rules.audit.verifier.CANDIDATES_MAX", 3)
    monkeypatch.setattr("sync_rules.audit.verifier.PAGE_MAX_ITEMS", 2)
    scene = library_scene()
    scene.there("books", *(book_item(f"b{i}", "a1") for i in range(40)))
    reading = []

    def scans_only_while_scanning(request):
        reading.append(isinstance(request, Scan))

    scene.tap.before = scans_only_while_scanning
    run = Run(scene, share=Share(4, (0, 1, 2, 3)), workers=4)
    assert len(run.sweep()) == 40
    assert len(run.waits) >= 40 / (3 + 4 * 2)
    assert run.verifier.tally.items == 40


# ---------------------------------------------------------------- what a report lists
def listed(scene: Scene, only: frozenset[str] | None = None):
    """The differences that a verify finds, as a report lists them."""
    found = [one.difference for one in Run(scene, only=only).verifier.sweep()]
    return lambda names: iter([one for one in found if one.rule in names])


@pytest.mark.parametrize(("age", "waits"), [(50.0, [70.0]), (120.0, [])])
def test_verify_of_a_report_waits_until_it_is_old_enough(age, waits):
    """A repair from a report waits only for the rest of the grace period, because the report was the first look. It
    counts each item that the report lists once.
    """
    scene, book = wrong_book()
    of = listed(scene)
    run = Run(scene, repair=True)
    assert run._shown(run.verifier.verify_report(of, age)) == [(book, Drift.WRONG, True)]
    assert (run.waits, run.verifier.tally.items) == (waits, 1)


def test_verify_of_a_report_without_repair_looks_twice():
    """Without a repair nothing is called drift on one look: what comes right within the grace period is lag."""
    scene, book = wrong_book()
    of = listed(scene)
    run = Run(scene)
    assert run._shown(run.verifier.verify_report(of, 9_000)) == [(book, Drift.WRONG, False)]
    assert run.waits == [GRACE_SECONDS]
    run = Run(scene, meanwhile=lambda: scene.there("books", RIGHT))
    assert run._shown(run.verifier.verify_report(of, 9_000)) == []
    assert (run.verifier.tally.lag[RULE], run.verifier.tally.remaining_count) == (1, 0)


# ---------------------------------------------------------------- lag, whatever an application does
class Busy:
    """An application that changes its items all the time, always to something new, and a handler that is behind by
    less than the grace period: while verify waits, what had been written before the wait is worked off, no more.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scene = Scene(
            every_kind.rules_of(effects=False, guarded="{copy: user.email, into: order.mail, on_delete: clear}")
        )
        self.fresh = iter(range(10**6))
        self.scene.put("parts", every_kind.part("a"), every_kind.part("b", "a"))
        for _ in range(40):
            self.write()
        self.scene.rest()
        self.scene.receive()
        self.scene.rest()
        for _ in range(10):
            self.write()
        self.scene.tap.before = self._in_between

    def write(self) -> None:
        chance, new, scene = self.random, next(self.fresh), self.scene
        owner = chance.choice("123")
        match chance.randrange(6):
            case 0:
                at = scene.at("shop", f"USER#{owner}", "PROFILE")
                said = {"name": s(f"n{new}"), "rank": n(new), "email": s(f"e{new}@x")}
                scene.put("shop", {**(scene.memory.item(at) or at.attributes()), **said})
            case 1 | 2:
                scene.put("shop", every_kind.order(owner, f"o{new}", new))
            case 3:
                scene.put("posts", every_kind.post(chance.choice("pqr"), owner, f"t{new}"))
            case 4:
                orders = [item for item in scene.memory.items("shop") if item["SK"]["S"].startswith("ORDER#")]
                if orders:
                    scene.memory.delete(scene.rules.tables["shop"].key_of(chance.choice(orders)))
            case 5:
                scene.put("parts", every_kind.part(f"c{new}", chance.choice(["a", "b", None])))

    def catch_up(self) -> None:
        """Process everything pending while verify waits, then let the application continue."""
        before, self.scene.tap.before = self.scene.tap.before, lambda _request: None
        self.scene.rest()
        self.scene.receive()
        self.scene.rest()
        for _ in range(self.random.randrange(1, 12)):
            self.write()
        self.scene.tap.before = before

    def _in_between(self, request: object) -> None:
        """Between any two requests let the application write, and the handler process a part of its backlog."""
        if not isinstance(request, Scan | Read) or self.random.random() > 0.3:
            return
        before, self.scene.tap.before = self.scene.tap.before, lambda _request: None
        self.write()
        if self.random.random() < 0.5:
            late = self.scene.records
            size = self.random.randrange(len(late) + 1)
            self.scene.records = late[size:]
            self.scene.deliver(late[:size])
        self.scene.tap.before = before


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("seed", range(deep(20)))
def test_verify_never_calls_it_drift_that_a_handler_is_behind(seed, repair):
    """Changes that a handler processes within the grace period are lag, never drift."""
    busy = Busy(seed)
    run = Run(busy.scene, repair=repair, meanwhile=busy.catch_up)
    assert rules_found(run) == []
    assert run.verifier.tally.lag.total() > 0
    assert run.verifier.tally.remaining_count == 0
    busy.scene.tap.before = lambda _request: None
    busy.scene.rest()
    busy.scene.receive()
    busy.scene.rest()
    assert rules_found(Run(busy.scene)) == []


# ---------------------------------------------------------------- what else happens to an item


def test_verify_never_repairs_over_a_newer_write():
    """A copy that changes during the repair keeps the newer value, and its drift is reported as not repaired."""
    scene, book = wrong_book()

    def newer(request):
        if isinstance(request, Apply):
            scene.memory.put("books", {**RIGHT, "author_name": s("newer")})

    scene.tap.before = newer
    run = Run(scene, repair=True)
    assert run.sweep() == [(book, Drift.WRONG, False)]
    assert scene.item(book)["author_name"] == s("newer")
    assert run.verifier.tally.remaining_count == 1
