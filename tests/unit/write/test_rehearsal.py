"""A rehearsal in memory names what it leaves to the stream."""

from __future__ import annotations

import pytest

from sync_rules.pipeline.messages import ChunkMessage, PartMessage, PushMessage
from sync_rules.write.read_through import ReadThrough
from sync_rules.write.rehearsal import MESSAGE, SECOND_LOOK, Rehearsal
from tests.support.every_kind import rules_of
from tests.support.transacted import Shop

RULES = rules_of(effects=False)


@pytest.mark.parametrize("kind", ["push", "chunk", "part"])
@pytest.mark.parametrize(("delay_seconds", "why"), [(0, MESSAGE), (60, SECOND_LOOK)])
def test_rehearsal_leaves_the_rule_that_a_message_names(kind, delay_seconds, why):
    """Each message to the stream becomes one entry: its rule, then its reason."""
    scene = Shop(RULES).scene
    source, target = scene.at("shop", "U", "P"), scene.at("shop", "U", "O")
    message = {
        "push": PushMessage(("names",), source),
        "chunk": ChunkMessage(("names",), source, (target,)),
        "part": PartMessage("names", target, source),
    }[kind]
    rehearsal = Rehearsal(RULES, ReadThrough(scene.memory, RULES.tables), lambda: False)
    rehearsal.send(message, delay_seconds)
    assert [(one.rule, one.why) for one in rehearsal.left] == [("names", why)]
