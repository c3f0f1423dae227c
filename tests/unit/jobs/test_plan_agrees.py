"""Plan and backfill agree: plan lists each item that a backfill changes, with its last value, and no other item."""

from __future__ import annotations

from pathlib import Path

import pytest

from sync_rules.adapters.state import MemoryState
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.job import Job
from sync_rules.jobs.backfill.page import Selection, segments
from sync_rules.jobs.backfill.scope import Scope
from sync_rules.jobs.dryrun.figures import PlannedWrite
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.lab.scenario_file import load_scenario
from sync_rules.language.load import parse_rules
from sync_rules.model.items import ItemKey
from sync_rules.model.values import Item
from sync_rules.rules.ledger import GROUP, VERSION
from sync_rules.rules.selection import Share, list_swept_tables
from tests.support import every_kind
from tests.support.builders import n
from tests.support.depth import deep
from tests.support.worlds import Scene, Tap
from tests.unit.jobs.test_planning import MORE, world

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/rules.yaml"))
SEGMENTS = 8
Images = dict[ItemKey, Item]


def job_of(scene: Scene) -> Job:
    """The job that the command line makes of all rules, without its questions to DynamoDB."""
    names = scene.rules.keeper_names
    tables = {table.name: 0 for table in list_swept_tables(scene.rules, names)}
    scope = Scope({}, dict.fromkeys(scene.rules.tables, "arn"), segments=SEGMENTS)
    return Job(Selection(scene.rules, names), segments(scene.rules, SEGMENTS, tuple(tables)), scope, tables)


def images(scene: Scene) -> Images:
    """All items by key. The version of a total is left out: page borders decide how often a total is written."""
    tables = scene.rules.tables
    found = {tables[name].key_of(item): item for name in tables for item in scene.memory.items(name)}
    return {key: comparable(key, item) for key, item in found.items() if key is not None}


def comparable(key: ItemKey, item: Item) -> Item:
    return {name: value for name, value in item.items() if name != VERSION or key.table != "ledger"}


def agree(scene: Scene) -> None:
    """Plan, then backfill, and compare what each leaves, item by item and path by path."""
    job, listed, last = job_of(scene), list[PlannedWrite](), dict[ItemKey, Item | None]()
    planner = Planner(
        scene.rules,
        job.selection.names,
        scene.tap,
        tables=tuple(job.items),
        share=Share(SEGMENTS, tuple(range(SEGMENTS))),
        completes=job.completes,
        on_write=listed.append,
    )
    take = planner._dry._take
    planner._dry._take = lambda key, before, now: (last.update({key: now}), take(key, before, now))
    plan = planner.run()
    before = images(scene)
    run = BackfillRun(
        job.selection, Tap(scene.memory), scene.parked, MemoryState(), {}, supplies=job.supplies,
        completes=job.completes,
    )  # fmt: skip
    assert run.run()
    after = images(scene)
    expected = {key: item for key, item in before.items() if key not in last}
    assert after == expected | {key: comparable(key, item) for key, item in last.items() if item is not None}
    assert changes(before, after) <= paths_of(listed)
    assert {key for key, _ in changes(before, after)} <= {one.key for one in listed} <= last.keys()
    assert bool(plan.writes) == bool(last)
    assert planner._run.totals.alterations == run.totals.alterations


def changes(before: Images, after: Images) -> set[tuple[ItemKey, str]]:
    """Each item and attribute that differs; a deleted item counts as a whole."""
    found = set()
    for key in before.keys() | after.keys():
        old, new = before.get(key, {}), after.get(key, {})
        names = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
        names -= {name for name, _ in key.attributes().items()}
        found |= {(key, GROUP if name.startswith(GROUP) else name) for name in names} if key in after else {(key, "")}
    return found


def paths_of(listed: list[PlannedWrite]) -> set[tuple[ItemKey, str]]:
    deleted = {(one.key, "") for one in listed if one.does == "delete"}
    return deleted | {(one.key, path[0]) for one in listed for path in one.paths}


@pytest.mark.parametrize("seed", range(deep(30)))
def test_plan_and_backfill_agree_on_every_kind(seed):
    """Whatever the tables hold, plan lists the last value of each item that a backfill of all rules leaves."""
    scene = world(seed, **MORE, per="{count: order, per: status, into: user.per}")
    agree(scene)


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_plan_and_backfill_agree_on_every_example(folder):
    """The same for the data of each example, whose copies no backfill has made yet."""
    rules = parse_rules((folder / "rules.yaml").read_text(), str(folder))
    scene = Scene(rules, complete=False)
    for put in load_scenario(folder, rules).steps[0].actions:
        scene.put(put.key.table, put.item)
    scene.records.clear()
    agree(scene)


NEW = {
    "counted": "count order into user.counted",
    "spent": "sum order.total into user.spent",
    "least": "min order.total into user.least",
    "most": "max order.total into user.most",
    "totals": "{collect: order.total, into: user.totals}",
}


@pytest.mark.parametrize("name", NEW)
def test_plan_shows_the_number_that_an_application_kept_and_a_backfill_replaces(name):
    """A new rule takes over an attribute of an application: plan lists its overwrite on the parent."""
    scene = Scene(parse_rules(every_kind.text_of({name: NEW[name]})), complete=False)
    scene.there("shop", every_kind.user("1", **{name: n(77)}), every_kind.order("1", "a", 5))
    listed: list[PlannedWrite] = []
    job = job_of(scene)
    options = {"tables": tuple(job.items), "completes": job.completes, "on_write": listed.append}
    plan = Planner(scene.rules, job.selection.names, scene.tap, **options).run()
    parent = scene.at("shop", "USER#1", "PROFILE")
    assert [(one.rule, one.paths) for one in listed if one.key == parent] == [(name, ((name,),))]
    assert plan.rules[name].to_write == 1
    agree(scene)


def test_plan_and_backfill_keep_apart_what_they_set_replace_zero_and_remove():
    """A rule whose source has nothing removes; a count of nothing takes the place of a number with 0."""
    rules = {"names": "copy user.name into order.user_name", "counted": "count order into user.counted"}
    scene = Scene(parse_rules(every_kind.text_of(rules)), complete=False)
    scene.there("shop", every_kind.user("1", counted=n(7)), every_kind.user("2", name={"S": "B"}))
    scene.there("shop", every_kind.user("3", name={"S": "C"}, counted=n(9)))
    old = {"user_name": {"S": "A"}}
    scene.there("shop", every_kind.order("2", "a", 1, **old), every_kind.order("2", "b", 1))
    scene.there("shop", every_kind.order("3", "c", 1, **old), every_kind.order("4", "d", 1))
    listed: list[PlannedWrite] = []
    job = job_of(scene)
    options = {"tables": tuple(job.items), "completes": job.completes, "on_write": listed.append}
    plan = Planner(scene.rules, job.selection.names, scene.tap, **options).run()
    made = {
        name: {word.value: count for word, count in plan.rules[name].alterations.items() if count} for name in rules
    }
    assert made == {"names": {"replaced": 2, "set": 1}, "counted": {"set": 1, "replaced": 1, "zeroed": 1}}
    effects = {(one.rule, one.key.values[0][2], *one.alterations.values()) for one in listed if one.rule in rules}
    assert {("counted", "USER#1", "zeroed"), ("counted", "USER#2", "set"), ("names", "USER#3", "replaced")} <= effects
    agree(scene)


def test_plan_says_that_a_copy_of_nothing_removes():
    """A misspelt attribute of the source removes copies that an application made: plan counts each as removed."""
    scene = Scene(parse_rules(every_kind.text_of({"names": "copy user.nmae into order.user_name"})))
    scene.there("shop", every_kind.user("1", name={"S": "A"}), every_kind.order("1", "a", 1, user_name={"S": "A"}))
    listed: list[PlannedWrite] = []
    plan = Planner(scene.rules, scene.rules.keeper_names, scene.tap, on_write=listed.append).run()
    assert {each.value: count for each, count in plan.rules["names"].alterations.items() if count} == {"removed": 1}
    assert [one.alterations for one in listed] == [{("user_name",): "removed"}]
    agree(scene)
