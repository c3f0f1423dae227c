"""Attribute values as Python values and back: nothing is lost, and what DynamoDB cannot hold is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.errors import UserError
from sync_rules.model.python_values import make_jmespath_value, make_plain_value, make_raw_value
from sync_rules.model.values import is_same_value

NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=5)
SCALARS = {"S": st.text(max_size=3), "N": NUMBERS.map(str), "B": st.binary(max_size=3)}
LEAVES = st.one_of(
    *(content.map(lambda one, kind=kind: {kind: one}) for kind, content in SCALARS.items()),
    *(
        st.lists(content, min_size=1, max_size=3, unique_by=Decimal if kind == "N" else None)
        .filter(lambda entries: len(set(entries)) == len(entries))
        .map(lambda entries, kind=kind: {f"{kind}S": entries})
        for kind, content in SCALARS.items()
    ),
    st.booleans().map(lambda one: {"BOOL": one}),
    st.just({"NULL": True}),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda entries: {"L": entries})
        | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(lambda entries: {"M": entries})
    ),
    max_leaves=6,
)


@given(VALUES)
def test_python_values_come_back_as_they_were(value):
    """A raw value of any type is the same after the way to Python and back."""
    assert is_same_value(make_raw_value(make_plain_value(value)), value)


@pytest.mark.parametrize(
    "value", [1.5, {1, "1"}, {True}, {None}, {(1,)}, set(), object(), {"a": [1.5]}, Decimal("NaN")]
)
def test_python_values_that_dynamodb_has_no_type_for_are_refused(value):
    """A float, an empty or a mixed set, a set of what is no key, anything else."""
    with pytest.raises(UserError):
        make_raw_value(value)


def test_python_values_for_conditions_are_what_jmespath_compares():
    """Numbers are int or float, sets are sorted lists, at any depth; a number that DynamoDB cannot hold is an error."""
    value = {"M": {"n": {"N": "1.0"}, "s": {"NS": ["2", "1.5"]}, "t": {"L": [{"SS": ["b", "a"]}, {"NULL": True}]}}}
    assert make_jmespath_value(value) == {"n": 1, "s": [1.5, 2], "t": [["a", "b"], None]}
    assert isinstance(make_jmespath_value({"N": "1.0"}), int)
    with pytest.raises(ValueError, match="cannot hold"):
        make_jmespath_value({"N": "1E999"})
