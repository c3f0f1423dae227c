"""Attribute values in DynamoDB's own form: paths, equality, change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.errors import UserError
from sync_rules.model.values import get, has_changed, has_overlap, is_same_value, nest, parse_path, show_path

NAMES = st.text(min_size=1, max_size=6).filter(lambda name: '"' not in name)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(tuple)
SCALARS = st.one_of(
    st.text(max_size=3).map(lambda text: {"S": text}),
    st.integers(-99, 99).map(lambda number: {"N": str(number)}),
    st.booleans().map(lambda truth: {"BOOL": truth}),
    st.just({"NULL": True}),
    st.binary(max_size=3).map(lambda content: {"B": content}),
    st.lists(st.text("ab", min_size=1), min_size=1, max_size=3, unique=True).map(lambda texts: {"SS": texts}),
    st.lists(st.integers(0, 9).map(str), min_size=1, max_size=3, unique=True).map(lambda numbers: {"NS": numbers}),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda values: {"L": values})
        | st.dictionaries(st.text("ab", min_size=1, max_size=2), inner, max_size=3).map(lambda values: {"M": values})
    ),
    max_leaves=6,
)


@given(PATHS)
def test_path_parses_as_it_is_shown(path):
    """A path that a message shows can be pasted into a rules file."""
    assert parse_path(show_path(path)) == path


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", 'a."b', "a b", "a. b", 'a"b"'])
def test_path_refuses_what_is_no_path(text):
    """An empty name, an open quote or a stray blank is the user's mistake."""
    with pytest.raises(UserError):
        parse_path(text)


@pytest.mark.parametrize("text", ["user.{a}", "user.{ a }", "user.{a:lower}", "{a}.{b}", "user.{}", "{.}", "user.a{b}"])
def test_path_with_braces_is_refused_with_a_path_as_its_cure(text):
    """The cure names a path only if it is one."""
    with pytest.raises(UserError) as refused:
        parse_path(text)
    said = f"{refused.value} {getattr(refused.value, 'cure', '')}"
    assert "braces" in said
    if " write " in said or said.startswith("write "):
        assert parse_path(said.partition("write ")[2].partition(";")[0])


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ({"N": "1"}, {"N": "1.0"}, True),
        ({"N": "1"}, {"S": "1"}, False),
        ({"N": "12345678901234567890123456789012345678"}, {"N": "12345678901234567890123456789012345679"}, False),
        ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}, True),
        ({"NS": ["1", "2"]}, {"NS": ["2.0", "1"]}, True),
        ({"L": [{"N": "1"}, {"N": "2"}]}, {"L": [{"N": "2"}, {"N": "1"}]}, False),
        ({"M": {"a": {"N": "1"}}}, {"M": {"a": {"N": "1.0"}}}, True),
        ({"M": {"a": {"N": "1"}}}, {"M": {}}, False),
        ({"NULL": True}, None, False),
        (None, None, True),
    ],
)
def test_same_is_what_dynamodb_holds_for_equal(left, right, equal):
    """Numbers by value, to the last of 38 digits; sets without order; a missing attribute is not NULL."""
    assert is_same_value(left, right) is equal


@given(PATHS, VALUES)
def test_nest_puts_a_value_where_get_finds_it(path, value):
    """Wrapping and reading are inverse."""
    assert get({"top": nest(path, value)}, ("top", *path)) == value


def test_get_does_not_reach_through_what_is_no_map():
    """A path through text or a list leads nowhere."""
    item = {"a": {"S": "text"}, "l": {"L": [{"S": "x"}]}}
    assert get(item, ("a", "b")) is None
    assert get(item, ("l", "0")) is None
    assert get(None, ("a",)) is None


@given(PATHS, PATHS)
def test_overlaps_is_equal_or_inside(left, right):
    """Two paths overlap when one leads through the other."""
    inside = left == right[: len(left)] or right == left[: len(right)]
    assert has_overlap(left, right) is inside


def test_changed_sees_coming_and_going_but_not_another_spelling():
    """An attribute that came, went or differs is a change; 1.0 for 1 is not."""
    old, new = {"a": {"N": "1"}, "b": {"S": "x"}}, {"a": {"N": "1.0"}}
    assert not has_changed(old, new, [("a",)])
    assert has_changed(old, new, [("b",)])
    assert has_changed(None, new, [("a",)])
    assert has_changed(old, None, [("a",)])
