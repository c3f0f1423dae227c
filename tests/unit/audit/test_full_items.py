"""Items without room: verify says of every kind of rule that no repair corrects them."""

from __future__ import annotations

import pytest

from sync_rules.audit.compare import Drift
from sync_rules.audit.verify_tally import Tally
from sync_rules.cli.show.drift import summarize
from sync_rules.lab.provenance import drop_paths
from sync_rules.model.sizes import ITEM_MAX_BYTES, count_item_bytes
from sync_rules.model.values import get
from tests.support import every_kind
from tests.support.builders import n, s
from tests.support.verifying import verify
from tests.support.worlds import Scene

FILLER = "f"


def at_rest() -> Scene:
    scene = Scene(every_kind.rules_of(effects=False))
    scene.put("shop", every_kind.user("1", name=s("Ada"), rank=n(1), email=s("a@b")))
    scene.put("shop", every_kind.order("1", "o", 7))
    scene.put("posts", every_kind.post("p", "1", "T"))
    scene.put("parts", every_kind.part("a"), every_kind.part("b", "a"))
    scene.rest()
    return scene


def fill(scene: Scene, rule_name: str) -> int:
    """Take what a rule wrote from its targets, and use up all the room. Returns the number of targets."""
    rule, filled = scene.rules.rules[rule_name], 0
    table = rule.target.table
    for item in [*scene.memory.items(table.name)]:
        if scene.rules.entity_of(table.key_of(item)) is rule.target and any(get(item, path) for path in rule.copies):
            left = drop_paths(item, rule.copies)
            left |= {path[0]: item[path[0]] for path in getattr(rule, "identity_paths", ())}  # else it is no mirror
            room = ITEM_MAX_BYTES - count_item_bytes(left) - len(FILLER)
            scene.there(table.name, {**left, FILLER: s("x" * room)})
            filled += 1
    return filled


def verified(scene: Scene, *, repair: bool) -> tuple[Tally, set[tuple[str, str]]]:
    findings, tally = verify(scene, repair=repair)
    found = [one.difference for one in findings if not one.repaired]
    return tally, {(one.rule, one.reason) for one in found if one.drift is Drift.STUCK}


KEEPING = sorted({rule.title for rule in every_kind.rules_of(effects=False).rules.values()})


@pytest.mark.parametrize("name", KEEPING)
def test_an_item_without_room_is_stuck_for_rules_of_every_kind(name):
    """Verify names the reason, does not promise a repair, and a repair agrees and leaves the item as it is."""
    scene = at_rest()
    assert fill(scene, name)
    tally, stuck = verified(scene, repair=False)
    assert (name, "ItemTooLarge") in stuck
    assert tally.unmended[name, Drift.STUCK] == tally.drift[name]
    repaired, stuck = verified(scene, repair=True)
    assert (name, "ItemTooLarge") in stuck
    assert repaired.repaired[name] == 0
    assert "No repair corrects what is stuck" in summarize(repaired, repair=True)
    assert "--repair corrects" not in summarize(tally, repair=False) or tally.remaining_count > tally.drift[name]
