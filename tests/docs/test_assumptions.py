"""docs/proof/aws-assumptions.md is generated; its facts have sources of AWS, and name code that exists."""

from __future__ import annotations

from functools import reduce
from importlib import import_module

import pytest

from sync_rules.extras.proof.probe import ASSUMPTIONS
from tests.docs.reference import ROOT


@pytest.mark.parametrize("one", ASSUMPTIONS.values(), ids=lambda one: str(one.number))
def test_assumption_names_its_source_and_code_that_exists(one):
    """The source is a page of AWS, or the lack of one; the code is a file, or a name in a module."""
    assert one.source.startswith(("https://docs.aws.amazon.com/", "not documented"))
    for name in one.relied_on:
        module, colon, attribute = name.partition(":")
        if colon:
            reduce(getattr, attribute.split("."), import_module(module))
        else:
            assert (ROOT / name).is_file()
