"""`where`: which attributes it reads, and that nothing else matters to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.errors import UserError
from sync_rules.model.where import compile_where

OPERANDS = st.sampled_from(
    ["status", "total", "user.active", "user.level", "tags[0]", "address.city", "length(name)", "to_string(data)"]
)
COMPARED = st.builds(
    lambda left, test, right: f"{left} {test} {right}",
    OPERANDS,
    st.sampled_from(["==", "!=", "<", ">="]),
    OPERANDS | st.sampled_from(["'OPEN'", "`1`", "`true`"]),
)
EXPRESSIONS = st.recursive(
    COMPARED | OPERANDS,
    lambda inner: (
        st.builds("({} && {})".format, inner, inner)
        | st.builds("({} || {})".format, inner, inner)
        | st.builds("!({})".format, inner)
    ),
    max_leaves=4,
)
VALUES = st.sampled_from([{"S": "OPEN"}, {"S": ""}, {"N": "1"}, {"BOOL": True}, {"NULL": True}, {"B": b"a"}, {"L": [{"S": "a"}]},
                          {"M": {"city": {"S": "OPEN"}}}])  # fmt: skip
ITEMS = st.dictionaries(
    st.sampled_from(["status", "total", "active", "level", "tags", "address", "name", "user", "data"]), VALUES
)


@given(EXPRESSIONS, ITEMS, ITEMS, ITEMS, ITEMS)
def test_where_does_not_depend_on_what_it_does_not_name(text, source, target, other_source, other_target):
    """Attributes it does not name never change its verdict: what it names is all that must be watched."""
    where = compile_where(text, "user")

    def merged(seen, other, paths):
        named = {name for (name,) in paths}
        return {name: value for name, value in seen.items() if name in named} | {
            name: value for name, value in other.items() if name not in named
        }

    assert where.holds(source, target) == where.holds(
        merged(source, other_source, where.source_paths), merged(target, other_target, where.target_paths)
    )


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        ("status == 'OPEN'", [], ["status"]),
        ("user.active", ["active"], []),
        ("user.address.city == city", ["address"], ["city"]),
        ("user.tags[0] == 'a'", ["tags"], []),
        ("contains(tags, user.name)", ["name"], ["tags"]),
        ("lines[?price > `3`]", [], ["lines"]),
        ("length(keys(address)) > `1`", [], ["address"]),
        ('"full name"', [], ["full name"]),
        ("`true`", [], []),
    ],
)
def test_where_names_the_attributes_it_reads(text, source, target):
    """Read off the expression: top-level attributes of the source and of the target."""
    where = compile_where(text, "user")
    assert [name for (name,) in where.source_paths] == source
    assert [name for (name,) in where.target_paths] == target


@pytest.mark.parametrize("text", ["", "status = OPEN", "user", "@", "keys(@)", "user == 'x'", "nofunction(("])
def test_where_refuses_what_names_no_attribute(text):
    """A `where` that is not JMESPath, or that reads a whole item, is refused."""
    with pytest.raises(UserError):
        compile_where(text, "user")


def test_where_that_cannot_be_applied_does_not_hold():
    """A missing attribute or one of another type is no error: the rule does not speak of the pair."""
    where = compile_where("length(name) > `0`", "user")
    assert not where.holds({}, {})
    assert not compile_where("total > `1`", "user").holds({}, {"total": {"S": "many"}})
    assert where.holds({}, {"name": {"S": "Ann"}})
