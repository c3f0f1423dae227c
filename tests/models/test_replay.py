"""Counterexamples of the model `copy` are those of the code with the same invariant removed, and of no other."""

from __future__ import annotations

import pytest

from tests.models.replay import Replay, traces
from tests.simulation.mutants import applied

# The line that is removed from the model, and the mutant that removes it from the code.
MUTANT_OF = {
    "NO_LEVEL": "value from the image",
    "NO_IMAGE_FIRST": "source read before the images",
    "NO_LINK_GUARD": "no link guard",
    "NO_COPY_GUARD": "no guard on the copy",
    "NO_OWN_RECORDS": "own records ignored",
    "NO_PUSH": "no push",
    "NO_INSERT_PULL": "no pull on insert",
    "NO_LINK_PULL": "no pull on link change",
    "NO_SECOND_LOOK": "no second look",
    "NO_RETRY": "throttled write taken as done",
}
NOT_REPLAYED = {"NO_PARK", "NO_RELAY"}


@pytest.mark.parametrize("line", MUTANT_OF)
def test_replay_of_a_counterexample_ends_wrongly_without_the_invariant_alone(line):
    """The code can make each step of the trace, and ends as wrongly; with the invariant it never does."""
    world = "/index" if line == "NO_SECOND_LOOK" else "/keep"
    reads = line != "NO_LEVEL"  # with the value of its record, the code reads none
    with applied(MUTANT_OF[line]):
        assert Replay(world, strict=True).play(one for one in traces()[line] if reads or not one.startswith("read"))
    assert not Replay(world, strict=False).play(traces()[line])


def test_replay_names_each_counterexample_of_copy():
    """A new line of the model is replayed, or listed as one that is not."""
    assert traces().keys() == MUTANT_OF.keys() | NOT_REPLAYED
