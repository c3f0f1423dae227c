"""Parts: target read first, source then, related writes joined, nothing lost."""

from __future__ import annotations

from sync_rules.model.items import Failure
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.sizes import ITEM_MAX_BYTES, count_item_bytes
from sync_rules.model.values import Item
from sync_rules.model.writes import (
    Check,
    Condition,
    Delete,
    Increment,
    Put,
    Result,
    Status,
    Test,
    Transaction,
    Update,
    Write,
)
from sync_rules.pipeline.joint_writes import join_writes
from sync_rules.pipeline.parts import reconcile_parts
from sync_rules.pipeline.requests import Apply, Read
from sync_rules.pipeline.tasks import PartLook
from sync_rules.rules.families import Part, PartRule
from tests.support.builders import n, s
from tests.support.every_kind import RULES, order, user
from tests.support.worlds import Scene, scene_of

ADA = user("1", name=s("Ada"), email=s("a@x"))


def look(scene: Scene, name: str, target, source, element: str = "") -> PartLook:
    rule = scene.rules.rules[name]
    assert isinstance(rule, PartRule)
    return PartLook(Part(rule, target, source, element))


def elements(scene: Scene, at) -> set[str]:
    return set(scene.item(at).get("orders", {}).get("SS", ()))


# ---------------------------------------------------------------- one write for several


def test_parts_that_go_out_at_once_touch_no_item_twice():
    """Writes that go out at once have no item in common: no node, total or checked edge."""
    scene = scene_of("spent", tags=RULES["tags"].replace("{collect", "{strict: true, collect"))
    node = scene.there("shop", ADA)
    scene.put("shop", *(order("1", f"o{i:03}", i) for i in range(120)))
    scene.rest()
    assert (len(elements(scene, node)), scene.parked.failures) == (120, [])
    for request in scene.tap.seen(Apply):
        keys = [
            action.key
            for write in request.writes
            for action in (write.actions if isinstance(write, Transaction) else [write])
        ]
        assert len(keys) == len(set(keys))


def test_parts_whose_sum_no_number_can_hold_stay_apart():
    """Two increments whose sum has more digits than DynamoDB takes are two transactions."""
    scene = scene_of("spent")
    scene.put("shop", {**order("1", "a", 1), "total": n("1E+30")}, {**order("1", "b", 1), "total": n("1E-30")})
    scene.deliver()
    assert [len(write.actions) for write in scene.tap.writes] == [2, 2]


def test_parts_of_unlike_writes_are_not_joined():
    """Updates of other items or guards, transactions that check different things, and plain puts stay as they are."""
    scene = scene_of("tags")
    one, two = scene.at("shop", "A", "1"), scene.at("shop", "A", "2")
    there = Condition(Test.EXISTS, ("PK",))
    element = (("x",), {"SS": ["e"]})
    writes: list[Write] = [
        Update(one, (), (), (there,), adds=(element,)),
        Update(two, (), (), (there,), adds=(element,)),
        Update(one, (), (), (), adds=(element,)),
        Update(one, (), (), (there,), discards=(element,)),
        Update(one, ((("y",), s("y")),), (), (there,), adds=(element,)),
        Transaction((Check(one, (there,)), Delete(two, ()))),
        Transaction((Check(one, ()), Put(scene.at("shop", "A", "3"), {}, ()))),
        Transaction((Check(one, (there,)), Update(two, (), (), ()))),
    ]
    looks = [look(scene, "tags", one, two, str(i)) for i in range(len(writes))]
    found = {joint.looks: joint.write for joint in join_writes(zip(looks, writes, strict=True))}
    assert found == {(one,): write for one, write in zip(looks, writes, strict=True)}


def test_parts_are_joined_with_their_like_in_any_order():
    """Writes that can be one are one, though writes of another sort, or that check another item, lie between them."""
    scene = scene_of("tags")
    there = Condition(Test.EXISTS, ("PK",))
    checked = [Check(scene.at("shop", "A", name), (there,)) for name in "xy"]
    writes: list[Write] = []
    for number in range(3):
        at = [scene.at("shop", f"B{number}", name) for name in "abcd"]
        writes += [Transaction((check, Put(own, {}, ()))) for check, own in zip(checked, at, strict=False)]
        writes += [Transaction((Increment(at[2], (("n", "1"),)), Delete(at[3], ()))), Put(at[3], {}, ())]
    looks = [look(scene, "tags", writes[0].actions[0].key, None, str(i)) for i in range(len(writes))]
    found = [len(joint.looks) for joint in join_writes(zip(looks, writes, strict=True))]
    assert found == [3, 3, 3, 1, 1, 1]


# ---------------------------------------------------------------- refusals and rejections


def test_parts_that_others_keep_changing_come_again():
    """A part that is refused each time is reported for its source's record, after a bounded number of reads."""
    scene = scene_of("spent")
    scene.put("shop", order("1", "a", 1), order("2", "b", 1))
    guilty, _ = (change.position for change in scene.records)

    def quicker(write: Write) -> Result | None:
        return Result(Status.REFUSED) if any("L/USER#1" in str(action.key) for action in write.actions) else None

    scene.tap.result = quicker
    assert scene.deliver() == [guilty]
    assert scene.item(scene.at("ledger", "spent/T/USER#2", "PROFILE"))["n"] == n(1)
    assert len(scene.tap.seen(Apply)) == Limits().source_reads_max_tries


def test_parts_without_room_cost_no_write():
    """The element of each edge of a full node is parked without a write; one that another makes room for is put in."""
    scene = scene_of("tags")
    left = order("1", "left", 1)
    scene.put("shop", ADA, left)
    scene.rest()
    node = scene.at("shop", "USER#1", "PROFILE")
    room = ITEM_MAX_BYTES - count_item_bytes({**scene.item(node), "text": s("")})
    scene.there("shop", {**scene.item(node), "text": s("x" * room)})
    scene.tap.requests.clear()
    for number in range(10):
        scene.put("shop", order("1", f"edge{number}", 1))
        scene.deliver()
    assert scene.tap.writes == []
    assert {failure.reason for failure in scene.parked.failures} == {"ItemTooLarge"}
    scene.put("shop", {**left, "status": s("VOID")}, order("1", "new", 1))
    scene.rest()
    assert elements(scene, node) == {"new"}
    assert len(scene.tap.writes) == 2
    assert len(scene.parked.failures) == 10


def test_parts_without_time_come_again():
    """When time is up nothing more is begun, and every part that is left is reported. It is not parked for being written
    too often, though it may not be written again.
    """
    scene = scene_of("spent")
    scene.put("shop", order("1", "a", 1), order("1", "b", 1))
    first = scene.records[0].position
    assert scene.deliver(remaining_ms=1_000) == [first]
    assert scene.tap.requests == []
    late = Bounds(out_of_time=lambda: bool(scene.tap.seen(Read)), may_write=lambda _key, _what: False)
    at = scene.at("ledger", "spent/L/USER#1", "ORDER#a")
    report = scene.drive(
        reconcile_parts([look(scene, "spent.ledger", at, scene.at("shop", "USER#1", "ORDER#a"))], late)
    )
    assert report.failed[at].reason == "OutOfTime"
    assert (scene.tap.writes, scene.parked.failures) == ([], [])


# ---------------------------------------------------------------- trouble
def broken(text: str = "many") -> Item:
    return {**order("1", "a", 1), "total": s(text)}


def test_parts_in_trouble_are_parked_and_looked_at_again():
    """A child that cannot be counted is parked and looked at again until it can be; then it is counted."""
    scene = scene_of("spent")
    child = scene.put("shop", broken())
    assert scene.deliver() == []
    (failure,) = scene.parked.failures
    assert (failure.rule, failure.reason, failure.member) == ("spent.ledger", "NotANumber", child)
    assert scene.receive() == [60]
    assert [(message.attempt, delay) for message, delay in scene.queue.messages] == [(2, 120)]
    assert len(scene.parked.failures) == 1
    scene.put("shop", order("1", "a", 5))
    scene.rest()
    scene.receive()
    assert scene.item(scene.at("ledger", "spent/L/USER#1", "ORDER#a"))["n"] == n(5)
    assert scene.queue.messages == []


def test_parts_in_patient_trouble_are_recorded_at_the_second_look():
    """A key that another source may be about to let go is no failure yet; if it is still taken a minute later, it is."""
    scene = scene_of("mails")
    scene.put("shop", ADA)
    scene.rest()
    two = scene.put("shop", user("2", email=s("a@x")))
    scene.rest()
    taken = scene.at("shop", "EMAIL#a@x", "EMAIL")
    assert scene.parked.failures == []
    scene.receive()
    assert scene.parked.failures == [Failure("mails", taken, "KeyTaken", member=two)]
    scene.put("shop", user("1"))
    scene.rest()
    scene.receive()
    scene.rest()
    assert scene.item(taken)["user_id"] == s("2")


def test_parts_whose_trouble_changes_are_recorded_before_they_are_given_up():
    """Patient at the first look, another kind at the second: neither look records it, so the last one does."""
    scene = scene_of("mails", limits=Limits(parked_max_looks=2))
    scene.put("shop", ADA)
    scene.rest()
    scene.put("shop", user("2", email=s("a@x")))
    scene.rest()
    taken = scene.at("shop", "EMAIL#a@x", "EMAIL")
    scene.there(
        "shop", {**taken.attributes(), "by": s("another program")}
    )  # of no source: that does not pass by itself
    assert scene.receive()
    assert scene.parked.failures == []
    scene.receive()
    assert [failure.reason for failure in scene.parked.failures] == ["KeyTaken"]


# ---------------------------------------------------------------- the breaker
def test_parts_of_one_write_count_once():
    """A node that comes after a thousand edges gets them page by page: the breaker counts writes, not elements."""
    limits = Limits(fixes_per_target_max_writes=10)
    scene = scene_of("tags", limits=limits)
    scene.there("shop", *(order("1", f"o{i:04}", 1) for i in range(1_000)))
    node = scene.put("shop", ADA)
    scene.rest()
    assert len(elements(scene, node)) == 1_000
    assert scene.parked.failures == []
