"""Sources of targets: members listed from the base table or through an index, sources by key, after the image."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey, Outcome
from sync_rules.model.limits import Bounds, Limits
from sync_rules.pipeline.messages import PullMessage
from sync_rules.pipeline.requests import List
from sync_rules.pipeline.sources import Target, read_sources, split_rounds
from sync_rules.rules.kinds import gathered_rule
from sync_rules.rules.rule import Blocked
from tests.support import every_kind
from tests.support.builders import m, n, s
from tests.support.every_kind import order, user
from tests.support.worlds import Scene, scene_of

ADA = user("1", name=s("Ada"))
LISTED = "{embed: order, into: user.listed, fields: [total], limit: {bytes: 100KB}}"


def found(scene: Scene, at, *members, limits: Limits | None = None):
    """The sources that each rule of an item finds, by rule name."""
    image = scene.item(at)
    rules = scene.rules.into_target(scene.rules.entity_of(at))
    target = Target(at, image, rules, members=members)
    scene.tap.requests.clear()
    sources = scene.drive(read_sources([target], Bounds(limits or scene.limits)))
    return {rule.name: sources.of(rule, target) for rule in rules}


def fails(scene: Scene, condition) -> None:
    def before(request):
        if condition(request):
            raise StoreError("ThrottlingException")

    scene.tap.before = before


# ---------------------------------------------------------------- listing


def test_sources_of_too_many_members_are_a_trouble(monkeypatch):
    """A group of more members than are looked at is parked under its rule's name, and the value stays as it was."""
    monkeypatch.setattr(gathered_rule, "MEMBERS_MAX_ITEMS", 3)
    scene = scene_of("heads", listed=LISTED)
    at = scene.put("shop", *(order("1", f"{i}", i) for i in range(4)), {**ADA, "rank": n(1)})
    assert found(scene, at)["listed"] == Blocked("TooManyMembers")
    scene.rest()
    assert {(f.rule, f.key, f.reason) for f in scene.parked.failures} == {("listed", at, "TooManyMembers")}
    assert scene.item(at)["head"] == s("Ada-1")
    assert "listed" not in scene.item(at)
    assert [message for message, _ in scene.queue.messages] == [PullMessage(at, 1)] * len(scene.queue.messages)
    scene.memory.delete(scene.at("shop", "USER#1", "ORDER#0"))
    scene.rest()
    assert len(scene.item(at)["listed"]["M"]) == 3


# ---------------------------------------------------------------- rounds
@given(st.lists(st.booleans(), max_size=30), st.integers(1, 6), st.integers(1, 4))
def test_sources_are_read_for_as_many_targets_as_fit_into_memory(gathers, all_max, gathering_max):
    """A round ends where one more target, or one more that brings its members, would be too much; none is left out."""
    rules = every_kind.rules_of().rules
    name, number = rules["names"], rules["recounted"]
    targets = [
        Target(ItemKey("shop", (("PK", "S", str(i)),)), {}, (name, number) if one else (name,))
        for i, one in enumerate(gathers)
    ]
    limits = Limits(fan_out_round_max_items=all_max, gathered_round_max_items=gathering_max)
    rounds = [list(some) for some in split_rounds(targets, limits)]
    assert [target for some in rounds for target in some] == targets

    def fits(some: list[Target]) -> bool:
        return len(some) <= all_max and sum(len(target.rules) == 2 for target in some) <= gathering_max

    assert all(some and fits(some) for some in rounds)
    assert not any(fits([*some, after[0]]) for some, after in pairwise(rounds))


# ---------------------------------------------------------------- what cannot be read
def test_sources_of_a_listing_that_fails_fail_their_rule_alone():
    """A listing that fails fails only its own rule; the target's other rules are written."""
    scene = scene_of("posts", "heads", listed=LISTED)
    at = scene.put("shop", {**ADA, "rank": n(1)})
    position = scene.records[0].position
    fails(scene, lambda request: isinstance(request, List) and request.index == "by_user")
    assert scene.deliver() == [position]
    assert {name: scene.item(at).get(name) for name in ("head", "listed", "posts")} == {
        "head": s("Ada-1"), "listed": m(), "posts": None,
    }  # fmt: skip
    assert scene.consumer.telemetry.outcomes["posts", Outcome.FAILED] == 1
    assert scene.consumer.telemetry.total(Outcome.FAILED) == 1
