"""YAML of generated values: CloudFormation reads back what was meant."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.deploy.yamltext import format_yaml, read_yaml
from sync_rules.model.errors import UserError
from tests.support.cloudformation import read_template

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30) | st.sampled_from(
    [
        "yes",
        "no",
        "On",
        "null",
        "~",
        "2012-10-17",
        "012",
        "1e3",
        "1:20",
        "=",
        "<<",
        "a: b",
        "a #b",
        "- a",
        "s3:*",
        "line\nline\n",
    ]
)
FUNCTIONS = st.one_of(
    st.builds(lambda name: {"Ref": name}, NAMES),
    st.builds(lambda name, other: {"Fn::GetAtt": [name, other]}, NAMES, NAMES),
    st.builds(lambda text: {"Fn::Sub": text}, TEXTS),
    st.builds(lambda name, text: {"Fn::If": [name, text, {"Ref": "AWS::NoValue"}]}, NAMES, TEXTS),
)
VALUES = st.recursive(
    TEXTS | st.booleans() | st.integers() | FUNCTIONS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, min_size=2, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4), st.sampled_from([0, 2, 8]))
def test_yamltext_is_read_back_as_what_it_was_by_both_versions_of_yaml(value, indent):
    """Written YAML reads back as the same value under YAML 1.1, which CloudFormation uses, and YAML 1.2."""
    text = format_yaml(value, indent)
    assert read_template(text) == value
    assert read_yaml(text, "f") == value
    assert format_yaml(value, indent) == text


def test_yamltext_that_is_no_yaml_is_told_with_its_file():
    """Text that is not YAML is refused with its file name."""
    with pytest.raises(UserError, match=r"^f: not YAML"):
        read_yaml("a: [", "f")
