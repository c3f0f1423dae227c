"""Key templates: one way to parse a key, the same key again from its fields."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.errors import UserError
from sync_rules.model.templates import Template, convert_to_key, may_overlap, parse_template

LITERALS = st.text("#ab", min_size=1, max_size=3)
VALUES = st.text("#ab1", min_size=1, max_size=4)
EVERY_SHORT_KEY = [{"S": "".join(letters)} for size in range(1, 6) for letters in product("#ab", repeat=size)]
NAMES = st.sampled_from(["x", "y", "z"])  # few, so that templates name a field twice


@st.composite
def templates(draw: st.DrawFn, fields_min: int = 0) -> Template:
    text = draw(st.sampled_from(["", "#", "ab", "a#"]))
    for index in range(draw(st.integers(fields_min, 3))):
        text += (draw(LITERALS) if index else "") + f"{{{draw(NAMES)}}}"
    return parse_template((text + draw(st.sampled_from(["", "#", "b"]))) or "#")


FIELDS = st.fixed_dictionaries({name: VALUES.map(lambda text: {"S": text}) for name in "xyz"})


@given(templates(), FIELDS)
def test_template_parses_back_what_it_built(template, fields):
    """A key that is built parses into exactly the fields it was built from."""
    key = template.build(fields, "S")
    assert key is None or template.parse(key) == {name: fields[name] for name in template.fields}


@given(templates())
def test_template_builds_back_what_it_parsed(template):
    """A key that parses is built again from its fields, letter for letter."""
    for key in EVERY_SHORT_KEY:
        fields = template.parse(key)
        assert fields is None or template.build(fields, "S") == key


@st.composite
def two_sources(draw: st.DrawFn) -> tuple[Template, dict, dict]:
    """A template, and fields for it that differ in at least one that the template names."""
    template, one = draw(templates(fields_min=1)), draw(FIELDS)
    name = draw(st.sampled_from(template.fields))
    text = draw(VALUES)
    return template, one, draw(FIELDS) | {name: {"S": text + "1" if {"S": text} == one[name] else text}}


@given(two_sources())
def test_template_gives_different_fields_different_keys(sources):
    """Two sources never share a key; fields from which no key can be built are no source."""
    template, one, other = sources
    key = template.build(one, "S")
    assert key is None or key != template.build(other, "S")


@given(templates(), FIELDS, st.sets(NAMES))
def test_template_prefix_begins_every_key_of_the_known_fields(template, fields, unknown):
    """A Query by the prefix misses no key with the known fields."""
    key = template.build(fields, "S")
    prefix = template.prefix({name: value for name, value in fields.items() if name not in unknown})
    assert key is None or key["S"].startswith(prefix)


@given(templates(), templates())
def test_may_overlap_never_denies_a_shared_key(left, right):
    """When some key is of both templates, they may overlap, whichever is asked first."""
    shared = any(left.parse(key) is not None and right.parse(key) is not None for key in EVERY_SHORT_KEY)
    assert not shared or (may_overlap(left, right) and may_overlap(right, left))


def test_may_overlap_tells_entities_of_one_table_apart():
    """Different text at the start or the end is enough."""
    user, order, profile = map(parse_template, ("USER#{id}", "ORDER#{id}", "PROFILE"))
    assert not may_overlap(user, order)
    assert not may_overlap(user, profile)
    assert not may_overlap(parse_template("{id}#A"), parse_template("{id}#B"))


@pytest.mark.parametrize("text", ["", "{", "A{a", "A}", "{}", "{a}{b}", "{a b}", "{{a}}"])
def test_template_refuses_what_could_parse_in_two_ways(text):
    """A mistake in a template is the user's, and is said."""
    with pytest.raises(UserError):
        parse_template(text)


@pytest.mark.parametrize(
    ("value", "kind", "key"),
    [
        ({"S": "12"}, "N", {"N": "12"}),
        ({"S": "012"}, "N", None),
        ({"S": "1.50"}, "N", None),
        ({"N": "12"}, "S", {"S": "12"}),
        ({"B": b"12"}, "S", None),
        ({"S": "12"}, "B", None),
    ],
)
def test_as_key_turns_text_and_numbers_into_each_other_only_one_to_one(value, kind, key):
    """Text that is not how DynamoDB writes a number never becomes one: two texts would be one key."""
    assert convert_to_key(value, kind) == key


@given(st.text(min_size=1, max_size=6), st.sampled_from(["lower", "upper"]))
def test_template_in_one_case_has_one_key_for_all_spellings(text, case):
    """A key is in its case, is parsed to be built again, and a key in other letters is of another entity."""
    template = parse_template(f"U#{{name:{case}}}", pads=True)
    key = template.build({"name": {"S": text}}, "S")
    assert key == {"S": "U#" + getattr(text, case)()}
    bound = template.parse(key)
    assert bound is not None
    assert template.build(bound, "S") == key
    spelt = {"S": f"U#{text}"}
    assert (template.parse(spelt) is None) == (spelt != key)
    assert template.whole is None
