"""Formats that outlive a release stay the same, byte for byte: fingerprints, template, messages, documents, options.

`python -m tests.golden` rewrites the expected files. Run it only for an intended change, and name the change in its
commit: users who upgrade have messages, checkpoints and state documents of the version before.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.golden import surface
from tests.golden.files import EXPECTED, get


@cache
def made(produce):
    """The texts of a producer, made once for all tests."""
    return produce()


@pytest.mark.parametrize("produce", surface.PRODUCERS, ids=lambda produce: produce.__name__)
def test_golden_bytes_are_the_same(produce):
    """Each form, made from fixed values, is what the expected file holds."""
    for name, text in made(produce).items():
        assert text.encode() == get(name), name


def test_golden_files_are_all_compared():
    """No expected file is left that nothing makes."""
    names = {name for produce in surface.PRODUCERS for name in made(produce)}
    assert names == {path.name for path in EXPECTED.iterdir()}


def test_golden_messages_are_read_as_what_they_were_made_of():
    """The stored text of each message, and not only the text of today, decodes to the message."""
    lines = get("messages.txt").decode().splitlines()
    assert dict(map(surface.decoded, lines)) == surface.examples()


def test_golden_checkpoint_is_read_as_what_it_was_made_of():
    """The stored checkpoint gives back its shards and messages."""
    assert surface.loaded(get("checkpoint.json"))


def test_golden_failures_are_read_as_what_they_were_made_of():
    """The stored failure records give back the failures."""
    assert surface.failures_read(get("failures.jsonl").decode())


def test_golden_backfill_goes_on_from_the_stored_state():
    """A stopped backfill resumes, and does not start from the beginning."""
    assert surface.goes_on(get("state-stopped.json"))
