"""docs/proof/aws-assumptions.md: each assumption has a number, a source, a consequence, and code that exists."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module

import pytest

from tests.docs.reference import ROOT

FACTS = re.split(r"^\*\*(\d+)\.\*\* ", (ROOT / "docs/proof/aws-assumptions.md").read_text(), flags=re.MULTILINE)
NUMBERS, TEXTS = FACTS[1::2], FACTS[2::2]
FIELDS = ("Source", "If it is false", "Relied on by")
MAYBE = {"Avoided with", "Not tested by `selftest`"}


def fields_of(text: str) -> dict[str, str]:
    found = re.findall(r"^- ([^:\n]+):(.*(?:\n  .*)*)", text, flags=re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in found}


def test_assumptions_are_numbered_in_order():
    """Each assumption has its number, so that a test of it can name it."""
    assert [str(number) for number in range(1, len(NUMBERS) + 1)] == NUMBERS


@pytest.mark.parametrize("number", range(len(NUMBERS)), ids=NUMBERS)
def test_assumption_says_its_source_its_consequence_and_its_code(number):
    """The source is a page of AWS, or the lack of one; the code is a file, or a name in a module that exists."""
    fields = fields_of(TEXTS[number])
    assert tuple(fields)[: len(FIELDS)] == FIELDS
    assert set(fields) - set(FIELDS) <= MAYBE
    assert fields["Source"].startswith(("https://docs.aws.amazon.com/", "not documented"))
    assert fields["If it is false"]
    named = re.findall(r"`([^`]+)`", fields["Relied on by"])
    assert ", ".join(f"`{one}`" for one in named) == fields["Relied on by"]
    for one in named:
        module, colon, attribute = one.partition(":")
        if colon:
            reduce(getattr, attribute.split("."), import_module(module))
        else:
            assert (ROOT / one).is_file()
