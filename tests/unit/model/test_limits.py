"""Limits: each has its unit last, a default and a sentence; no two contradict."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from itertools import pairwise

import pytest

from sync_rules.model import limits
from sync_rules.model.limits import Limits

UNITS = ("items", "bytes", "writes", "tries", "seconds", "looks", "lists")


@pytest.mark.parametrize("field", fields(Limits), ids=lambda field: field.name)
def test_limits_end_in_their_unit_and_say_what_they_bound(field):
    """A limit is a positive number, its name ends in its unit, and a sentence stands under it."""
    body = next(n for n in ast.parse(inspect.getsource(limits)).body if isinstance(n, ast.ClassDef)).body
    after = {a.target.id: b for a, b in pairwise(body) if isinstance(a, ast.AnnAssign)}
    assert field.name.rpartition("_")[2] in UNITS
    assert field.default > 0
    assert isinstance(after[field.name], ast.Expr)


def test_limits_fit_what_aws_allows():
    """No delay is longer than SQS allows, a round holds a page."""
    defaults = Limits()
    assert defaults.settle_max_seconds <= 900
    assert defaults.fan_out_page_max_items <= defaults.fan_out_round_max_items <= defaults.fan_out_inline_max_items
