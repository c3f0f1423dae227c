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
