"""Planning: the dry run makes the same writes as the backfill, on no table, and reports their number and cost."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.adapters.state import MemoryState
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, make_supplies
from sync_rules.jobs.dryrun.figures import PlannedWrite, compare_fingerprints
from sync_rules.jobs.dryrun.planner import HeavyHitters, Planner
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.requests import Read, Scan
from sync_rules.rules.fingerprints import compute_rule_fingerprints
from sync_rules.rules.selection import Share
from tests.support import every_kind
from tests.support.builders import author_item, book_item, key, library, n, s
from tests.support.depth import deep
from tests.support.worlds import Scene, Tap
from tests.unit.jobs.test_backfill_run import contents, scene_of, shops

# beside one rule of every kind: a copy of a copy, copies on mirrors that are not there yet, and a number for each group
MORE = {
    "bosses": "{copy: user.name, into: user.boss_name, link: {user_id: boss_id}, via: by_boss}",
    "again": "{copy: user.boss_name, into: order.boss_name}",
    "mails": "{mirror: user, into: by_email, attributes: [name, boss_id]}",
    "mail_bosses": "{copy: user.name, into: by_email.boss_name, link: {user_id: boss_id}, via: by_boss}",
    "per": "{count: order, per: status, into: user.per}",
}
RULES = every_kind.rules_of(effects=False, **MORE)
TITLES = sorted({RULES.rules[name].title for name in RULES.keeper_names})


def planned(scene: Scene, names: frozenset[str] | None = None, **options: object):
    """A plan, the planner, and the writes that its run made, on a store where nothing may be written."""
    planner = Planner(scene.rules, names or scene.rules.keeper_names, scene.tap, **options)
    writes: list = []
    dry = planner._dry
    note = dry.on_write
    dry.on_write = lambda tried: (writes.append(tried.write), note(tried))
    before, scene.tap.requests = contents(scene), []
    plan = planner.run()
    assert scene.tap.writes == []
    assert contents(scene) == before
    return plan, writes, planner


def backfilled(scene: Scene, names: frozenset[str] | None = None, workers: int = 1):
    """The run that a backfill is, and its writes."""
    tap = Tap(scene.memory)
    selection = Selection(scene.rules, names or scene.rules.keeper_names)
    run = BackfillRun(
        selection, tap, scene.parked, MemoryState(), {}, supplies=make_supplies(scene.rules, workers), workers=workers,
        completes=selection.names,
    )  # fmt: skip
    assert run.run()
    return run, tap.writes


def repr_items(found: dict) -> set:
    return {(place, repr(item)) for place, item in found.items()}


def as_multiset(writes) -> Counter[str]:
    return Counter(map(repr, writes))


@given(shops(), st.sampled_from([2, 100]), st.booleans(), st.sets(st.sampled_from(TITLES)))
@settings(max_examples=deep(60), deadline=None)
def test_planning_makes_the_writes_of_the_backfill(steps, page, complete, titles):
    """The dry run of all rules, or of some, makes exactly the writes of the backfill that follows, lists each item that it
    changes, and changes no table.
    """
    scene = scene_of(steps, page, RULES, complete=complete)
    names = frozenset(name for name in RULES.keeper_names if not titles or RULES.rules[name].title in titles)
    listed, before = list[PlannedWrite](), contents(scene)
    plan, writes, planner = planned(scene, names, on_write=listed.append)
    run, really = backfilled(scene, names)
    assert as_multiset(writes) == as_multiset(really)
    changed = {(table, key) for (table, key), _ in repr_items(before) ^ repr_items(contents(scene))}
    assert changed <= {(one.key.table, str(one.key)) for one in listed}
    assert planner._run.totals.outcomes == run.totals.outcomes
    assert planner._run.totals.alterations == run.totals.alterations
    assert sum(plan.write_units.values()) == run.totals.writes
    assert page == 2 or sum(plan.read_units.values()) == run.totals.reads  # what comes lies on another page


def test_planning_of_a_plain_copy_holds_nothing():
    """A plan over many items of a rule that no other one reads keeps no write beyond its page."""
    scene = Scene(library())
    scene.there("authors", author_item("a", name=s("Ada")))
    scene.there("books", *(book_item(f"b{number}", "a") for number in range(2_000)))
    plan, writes, planner = planned(scene)
    assert (plan.rules["author-on-books"].to_write, len(writes)) == (2_000, 2_000)
    assert len(planner._dry.overlay) == 0
    assert len(planner._dry._seen.written) <= 500


def fanned() -> Scene:
    """An author of many books, of which some are right, and one of few; another author's are of 3 KB."""
    scene = Scene(library(mapping=((("name",), ("author_name",)),)))
    scene.there("authors", *(author_item(name, name=s(name)) for name in ("many", "few", "long")))
    scene.there("books", *(book_item(f"m{number}", "many") for number in range(30)))
    scene.there("books", *(book_item(f"r{number}", "many", author_name=s("many")) for number in range(10)))
    scene.there("books", book_item("f1", "few"), book_item("f2", "few"), book_item("g", "gone"))
    scene.there("books", book_item("l", "long", text=s("x" * 3_000)))
    return scene


def test_planning_names_the_widest_fan_outs_and_the_hottest_keys():
    """Sources by how many targets name them, right or not, if it is more than one; partitions by write units."""
    scene = fanned()
    plan, _, _ = planned(scene)
    authors, books = scene.rules.tables["authors"], scene.rules.tables["books"]
    rule = "author-on-books"
    assert plan.fan_outs == [((rule, key(authors, "many")), 40), ((rule, key(authors, "few")), 2)]
    assert plan.hottest[0] == (key(books, "l"), 3)
    assert len(plan.hottest) == 5
    assert (plan.total_write_units, plan.hottest_seconds) == (35, 0.003)
    assert (plan.seconds(10), plan.seconds(0), plan.seconds(1e9)) == (3.5, 0.003, 0.003)


def test_planning_names_no_fan_outs_of_what_nothing_lists():
    """A snapshot without an index has no fan-out: no record of its source lists its targets."""
    scene = Scene(
        parse_rules("""
tables: {authors: {key: {author_id: S}}, books: {key: {book_id: S}}}
entities: {author: {table: authors}, book: {table: books}}
rules: {once: {copy: author.name, into: book.author_name, mode: snapshot}}
""")
    )
    scene.there("authors", {"author_id": s("a"), "name": s("Ann")})
    scene.there("books", *({"book_id": s(f"b{number}"), "author_id": s("a")} for number in range(3)))
    plan, _, _ = planned(scene)
    assert (plan.total_write_units, plan.fan_outs) == (3, [])


def test_planning_says_why_targets_are_parked():
    """A plan counts each target that would be parked once, with its reason."""
    scene = Scene(every_kind.rules_of(effects=False))
    parts = [every_kind.part("top"), every_kind.part("x", "y"), every_kind.part("y", "x"), every_kind.part("z", "z")]
    scene.there("parts", *parts)
    scene.there("shop", every_kind.user("1"), every_kind.order("1", "a", 7, status=s("x")))
    scene.there("shop", {**every_kind.order("1", "b", 7), "total": s("much")})
    plan, _, _ = planned(scene)
    paths = plan.rules["paths"]
    assert (paths.to_write, paths.right, paths.parked) == (1, 0, 3)
    assert paths.reasons == {"Cycle": 1, "ParentWithoutPath": 2}
    assert plan.rules["spent.ledger"].reasons == {"NotANumber": 1}


def test_planning_from_a_sample_comes_close():
    """A tenth of the segments estimates items, writes and units of the whole within a third."""
    random = Random(1)
    scene = Scene(library())
    scene.there("authors", author_item("a", name=s("Ada")))
    for number in range(3_000):
        right = {} if random.random() < 0.5 else {"author_name": s("Ada")}
        scene.there("books", book_item(f"b{number}", "a", **right))
    whole, _, _ = planned(scene)
    drawn = tuple(sorted(random.sample(range(1_000), 100)))
    some, writes, _ = planned(scene, share=Share(1_000, drawn))
    assert len(writes) < whole.writes / 5
    for about, exactly in (
        (some.items, whole.items),
        (some.writes, whole.writes),
        (some.total_write_units, whole.total_write_units),
        (some.rules["author-on-books"].right, whole.rules["author-on-books"].right),
    ):
        assert about == pytest.approx(exactly, rel=1 / 3)
        assert about != exactly


def test_planning_reads_of_a_sample_are_not_those_of_its_many_small_pages():
    """The read cost of a sampled scan is estimated by size, not as one unit for each small page."""
    scene = fanned()
    scene.there("books", *(book_item(f"s{number}", "nobody", text=s("x" * 3_000)) for number in range(100)))
    whole, _, _ = planned(scene)
    some, _, _ = planned(scene, share=Share(1_000, tuple(range(0, 1_000, 2))))
    assert some.read_units["books"] < 1.5 * whole.read_units["books"]


def test_planning_from_a_sample_reads_no_ledger_as_a_whole():
    """A sample shows numbers of new rules without the comparison of all totals and entries: it stays cheap."""
    scene = Scene(every_kind.rules_of(effects=False), complete=False)
    scene.there("shop", *(every_kind.user(str(number)) for number in range(40)))
    plan, _, _ = planned(scene, share=Share(4, (1, 3)))
    scans = [one for one in scene.tap.requests if isinstance(one, Scan)]
    assert {(one.total_segments, one.segment) for one in scans} == {(4, 1), (4, 3)}
    assert plan.rules["counted"].to_write > 0


BROKEN = StoreError("ThrottlingException", "table books")


def test_planning_gives_no_half_plan():
    """A plan that is stopped, or that cannot scan a table, raises PlanNotFinished with the reason."""
    scene = fanned()
    scene.tap.refuse(Scan, BROKEN)
    with pytest.raises(StoreError, match=r"PlanNotFinished: ThrottlingException: table books"):
        planned(scene, sleep=lambda _seconds: None)
    with pytest.raises(StoreError, match="PlanNotFinished"):
        planned(fanned(), stopping=lambda: True)


def test_planning_counts_what_cannot_be_read_as_parked():
    """A few items that cannot be read are parked with that reason, as by the backfill, and hold up no other."""
    scene = fanned()
    gone = key(scene.rules.tables["authors"], "gone")
    scene.tap.refuse(Read, BROKEN, lambda request: gone in request.keys)
    plan, _, _ = planned(scene, sleep=lambda _seconds: None)
    assert plan.rules["author-on-books"].parked > 0
    assert plan.rules["author-on-books"].reasons.keys() == {"ThrottlingException"}


def test_planning_counts_a_fan_out_once_however_many_rounds_there_are():
    """A parent's fan-out is counted once, though a hierarchy takes several rounds."""
    scene = Scene(every_kind.rules_of(effects=False))
    parts = [every_kind.part(name, parent) for name, parent in (("a", None), ("b", "a"), ("c", "a"), ("d", "b"))]
    scene.there("parts", *parts)
    plan, _, _ = planned(scene)
    assert plan.fan_outs == [(("paths", key(scene.rules.tables["parts"], "a")), 2)]


def test_planning_tells_a_whole_item_by_the_rule_that_puts_it():
    """A mirror that comes is its own rule's write, not that of a rule which copies into mirrors."""
    scene = Scene(every_kind.rules_of(effects=False, **MORE))
    scene.there("shop", every_kind.user("1", name=s("A"), email=s("a@x"), boss_id=s("1")))
    told: list[PlannedWrite] = []
    planned(scene, frozenset(["mails", "mail_bosses"]), on_write=told.append)
    assert [(one.does, one.rule) for one in told] == [("put", "mails"), ("update", "mail_bosses")]


# ---------------------------------------------------------------- values that an application kept
def test_planning_keeps_apart_what_it_would_set_replace_zero_and_remove():
    """A rule whose source has nothing removes; a count of nothing takes the place of a number with 0."""
    old = {"user_name": s("A")}
    rules = {"names": "copy user.name into order.user_name", "counted": "count order into user.counted"}
    scene = Scene(parse_rules(every_kind.text_of(rules)), complete=False)
    scene.there(
        "shop",
        every_kind.user("1", counted=n(7)), every_kind.user("2", name=s("B")), every_kind.user("3", name=s("C"), counted=n(9)),
        every_kind.order("2", "a", 1, **old), every_kind.order("2", "b", 1), every_kind.order("3", "c", 1, **old),
        every_kind.order("1", "d", 1, **old), every_kind.user("4", counted=n(5)),
    )  # fmt: skip
    listed: list[PlannedWrite] = []
    plan, writes, _ = planned(scene, on_write=listed.append)
    assert as_multiset(writes) == as_multiset(backfilled(scene)[1])
    made = {
        name: {word.value: count for word, count in plan.rules[name].alterations.items() if count} for name in rules
    }
    assert made == {
        "names": {"replaced": 2, "set": 1, "removed": 1},
        "counted": {"set": 1, "replaced": 2, "zeroed": 1},
    }
    effects = {(one.rule, one.key.values[0][2], *one.alterations.values()) for one in listed if one.rule in made}
    assert {("counted", "USER#4", "zeroed"), ("counted", "USER#2", "set"), ("names", "USER#1", "removed")} <= effects


@pytest.mark.parametrize("seed", range(10))
def test_heaviest_loses_nothing_heavy_in_little_room(seed):
    """HeavyHitters keeps every thing heavier than the total weight divided by its room, in at most twice that room."""
    random, room = Random(seed), 50
    heaviest: HeavyHitters[int] = HeavyHitters(room)
    real: Counter[int] = Counter()
    for _ in range(20_000):
        thing = int(random.paretovariate(0.6)) if random.random() < 0.5 else random.randrange(10**6)
        weight = random.randint(1, 3)
        heaviest.add(thing, weight)
        real[thing] += weight
        assert len(heaviest._weights) <= 2 * room
    assert heaviest.cut <= real.total() / room
    told = dict(heaviest.top(2 * room))
    assert all(real[thing] - heaviest.cut <= weight <= real[thing] for thing, weight in told.items())
    assert {thing for thing, weight in real.items() if weight > heaviest.cut} <= told.keys()


def test_plan_tells_new_changed_unchanged_and_gone_rules_apart():
    """Rules that only act on changes, which no backfill applies, are none of these."""
    rules = every_kind.rules_of()
    now = compute_rule_fingerprints(rules)
    applied = {title: digest for title, digest in now.items() if title != "tags"} | {"spent": "0", "old": "1"}
    stands = compare_fingerprints(rules, now, applied)
    assert (stands.new, stands.changed, stands.gone) == ({"tags"}, {"spent"}, {"old"})
    assert stands.unchanged == now.keys() - {"tags", "spent"} - every_kind.EFFECTS.keys()
