"""Elements of sets: built from an edge, taken apart from the right, the same number in the same form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.errors import UserError
from sync_rules.rules.kinds.element import parse_element
from tests.support.builders import n, s

ROLE = parse_element("{target}-{memberRole}")
LONG = parse_element("E<{a}-{b}::{c}>")
TEXTS = st.text("ab-:<>", max_size=5)


def of(**values):
    return values.get


@pytest.mark.parametrize("role", [None, s(""), {"BOOL": True}, {"M": {}}, {"B": b"LEAD"}, {"NULL": True}])
def test_element_is_whole_or_absent(role):
    """An element of which a value is missing, empty, or no text or number, is none."""
    edge = of(target=s("U1"), memberRole=role)
    assert ROLE.text(edge) is None
    assert ROLE.build(edge) is None


def test_element_of_numbers_is_the_same_for_equal_numbers():
    """A number stands in an element in the one form in which DynamoDB hands it out."""
    assert ROLE.build(of(target=n("10.0"), memberRole=n("1E2"))) == "10-100"


@pytest.mark.parametrize(
    ("element", "texts"),
    [
        (ROLE, ("", "U1", "-LEAD", "U1-", "-")),
        (LONG, ("E<a-b::c", "<a-b::c>", "E<a-b>", "E<a::c-b>", "E<a-::c>", "E<>", "E>")),
    ],
)
def test_element_parses_nothing_of_another_template(element, texts):
    """The texts around and between the fields must all be there, in order, and a value in each field."""
    assert {element.parse(text) for text in texts} == {None}


def test_element_with_a_field_twice_holds_one_value():
    """A field that stands twice in a template has one value, or the text is no element."""
    twice = parse_element("{a}-{a}")
    assert twice.parse("x-x") == {"a": s("x")}
    assert twice.parse("x-y") is None
    assert twice.build(of(a=s("x"))) == "x-x"


@given(a=TEXTS, b=TEXTS, c=TEXTS, template=st.sampled_from(["E<{a}-{b}::{c}>", "{a}-{b}--{c}", "{a}:{b}:{c}-"]))
def test_element_comes_apart_into_what_it_was_built_from(a, b, c, template):
    """An element that is built parses back to its values, and one that would not is not built."""
    element, edge = parse_element(template), {"a": s(a), "b": s(b), "c": s(c)}
    text, built = element.text(edge.get), element.build(edge.get)
    assert (text is None) == (not (a and b and c))
    if text is not None:
        assert built == (text if element.parse(text) == edge else None)
    if a and all(x and not set(x) & set("-:") for x in (b, c)):
        assert built is not None  # the first field may hold anything


@pytest.mark.parametrize("text", ["edges", "{a}{b}", "{a", ""])
def test_element_template_must_tell_edges_apart(text):
    """A template without a field, or one that could not be taken apart, is an error."""
    with pytest.raises(UserError):
        parse_element(text)
