"""`where`: which attributes it reads, and that nothing else matters to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.model.errors import ConditionError, UserError
from sync_rules.model.where import compile_where

PATHS = st.sampled_from(["status", "total", "user.active", "user.level", "tags[0]", "address.city"])
FUNCTIONS = st.sampled_from(
    ["length(name) > `0`", "to_string(data) == 'OPEN'", "starts_with(status, 'O')", "abs(total) < `2`"]
)
OPERANDS = PATHS | FUNCTIONS
COMPARED = st.builds(
    "{} {} {}".format, PATHS, st.sampled_from(["==", "!=", "<", ">="]), PATHS | st.sampled_from(["'OPEN'", "`1`"])
) | st.builds("{} {} `true`".format, PATHS, st.sampled_from(["==", "!="]))
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


def verdict(where, source, target) -> bool | str:
    """True or false; the reason why neither can be said."""
    try:
        return where.holds(source, target)
    except ConditionError as error:
        return error.reason


@given(EXPRESSIONS, EXPRESSIONS, ITEMS, ITEMS)
def test_where_means_what_its_parts_mean(left, right, source, target):
    """And, or and not are what they are of the parts, whichever way round; nothing but a function is in doubt."""
    one, other = (verdict(compile_where(text, "user"), source, target) for text in (left, right))
    for form in ("({}) || ({})", "({}) && ({})"):
        there, back = (
            verdict(compile_where(form.format(*pair), "user"), source, target)
            for pair in ((left, right), (right, left))
        )
        if isinstance(one, bool) and isinstance(other, bool):
            assert there == back == ((one or other) if "||" in form else (one and other))
    assert verdict(compile_where(f"!({left})", "user"), source, target) == (not one if isinstance(one, bool) else one)
    assert isinstance(one, bool) or any(name in left for name in ("length(", "abs(", "starts_with("))


@given(EXPRESSIONS, ITEMS, ITEMS, ITEMS, ITEMS)
def test_where_does_not_depend_on_what_it_does_not_name(text, source, target, other_source, other_target):
    """Attributes it does not name never change its verdict: what it names is all that must be watched."""
    where = compile_where(text, "user")

    def merged(seen, other, paths):
        named = {name for (name,) in paths}
        return {name: value for name, value in seen.items() if name in named} | {
            name: value for name, value in other.items() if name not in named
        }

    assert verdict(where, source, target) == verdict(
        where, merged(source, other_source, where.source_paths), merged(target, other_target, where.target_paths)
    )


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        ("status == 'OPEN'", [], ["status"]),
        ("user.address.city == city", ["address"], ["city"]),
        ("user.tags[0] == 'a'", ["tags"], []),
        ("contains(tags, user.name)", ["name"], ["tags"]),
        ("length(keys(address)) > `1`", [], ["address"]),
        ("user.tags.[first, second] == `[1]`", ["tags"], []),
        ("length(values(user.flags.{a: a, b: b})) > `0`", ["flags"], []),
        ("not_null(user.a.b.length(@)) == `1`", ["a"], []),
        ('"full name"', [], ["full name"]),
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


@pytest.mark.parametrize(
    ("text", "item", "reason"),
    [
        ("length(name) > `0`", {}, "WhereFailed: length() of nothing"),
        ("length(name) > `0`", {"name": {"N": "5"}}, "WhereFailed: length() of number"),
        ("starts_with(name, 'a')", {"name": {"B": b"secret"}}, "WhereFailed: starts_with() of binary"),
        ("sum(list) > `1`", {"list": {"L": [{"S": "secret"}]}}, "WhereFailed: sum() of string"),
        ("total > `1`", {"total": {"N": "secret"}}, "WhereFailed: ValueError"),
        ("merge(a, b) == `{}`", {"a": {"M": {}}, "b": {"S": "secret"}}, "WhereFailed: ValueError"),
        ("open || length(name) > `0`", {"open": {"BOOL": True}}, True),  # decided before it is asked
        ("total > `1`", {"total": {"S": "many"}}, False),
        ("!(total > `1`)", {"total": {"S": "many"}}, True),
        ("contains(name, `1`)", {"name": {"S": "a1"}}, False),
        ("contains(list, `1`)", {"list": {"L": [{"BOOL": True}]}}, False),
        ("raw", {"raw": {"B": b""}}, False),
        ("raw && open", {"raw": {"B": b""}, "open": {"BOOL": True}}, False),
        ("day >= '2026-02-01'", {"day": {"S": "2026-03-09"}}, True),
    ],
)
def test_where_that_cannot_be_evaluated_says_so(text, item, reason):
    """A condition in doubt is an error whose reason names no value, never false; other types compare as false."""
    assert verdict(compile_where(text, ""), {}, item) == reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("size(players) > `2`", "size() is not a function of JMESPath: write length()"),
        ("lenght(players) > `2`", "lenght() is not a function of JMESPath: write length()"),
        ("begins_with(name, 'a')", "begins_with() is not a function of JMESPath: write starts_with()"),
        ("attribute_exists(name)", "attribute_exists() is not a function of JMESPath: name the attribute alone"),
        ("lines[?nope(x)]", "nope() is not a function of JMESPath"),
        ("length(a, b) > `1`", "length() takes 1 argument, and here it has 2"),
        ("not_null()", "not_null() takes at least 1 argument, and here it has 0"),
        ("length(`5`) > `1`", "length() takes a text or a list or a map, and `5` is a number"),
        ("abs(length(a) > `1`) > `1`", "abs() takes a number, and the argument is true or false or null"),
        ("""sum(`["a"]`) > `1`""", """sum() takes a list of numbers, and `["a"]` is not one"""),
        ("contains('abc', `1`)", "'abc' is a text and `1` is a number: it contains texts: search for a text"),
        ("sort_by(lines, price) == a", "sort_by() takes an expression (&name): write &price"),
        ("sort_by(lines, a.price) == b", "sort_by() takes an expression (&name): write &a.price"),
        ("lines[::0] == a", "the step of a slice cannot be 0"),
        ("total > '2'", "no number is greater or less than a text: write `2`"),
        ("'2' < total", "no number is greater or less than a text: write `2`"),
        ("lines[?price > '3']", "no number is greater or less than a text: write `3`"),
        ("total > `true`", "`true` is true or false, and only numbers and texts have an order"),
        ("length(a) == '2'", "length() is a number and '2' is a text, so the comparison is never true: write `2`"),
        ("to_string(a) != `2`", "the comparison is always true: write '2'"),
        ("id == `5`", "id is a text and `5` is a number, so the comparison is never true: write '5'"),
        ("n == '5'", "n is a number and '5' is a text, so the comparison is never true: write `5`"),
        ("raw == 'x'", "raw is binary and 'x' is a text, so the comparison is never true"),
        ("`true` == 'true'", "so the comparison is never true: compare an attribute, such as status == 'OPEN'"),
        ("type(a) == 'strin'", "type() is never 'strin', so the comparison is never true: write 'string'"),
        ("'list' != type(a)", "type() is never 'list', so the comparison is always true: write one of 'array', 'boolean'"),
        ("lines[?type(price) == 'Number']", "the comparison is never true: write 'number'"),
        ("active == true", "true without backticks is an attribute of that name: write `true`"),
        ("gone != null", "null without backticks is an attribute of that name: write `null`"),
        (" || ".join(f"s == '{n}'" for n in range(500)), "`where` nests more than 100 levels"),
        (" || ".join(f"s == '{n}'" for n in range(100)), "`where` nests more than 100 levels"),
        ("(" * 5_000 + "a" + ")" * 5_000, "`where` nests more than 100 levels"),
        ("a[" + "9" * 5_000 + "]", "`where` is not a JMESPath expression"),
    ],
)  # fmt: skip
def test_where_that_can_never_work_is_refused(text, said):
    """Functions, arguments and comparisons that no item could make true, with the cure."""
    with pytest.raises(UserError) as error:
        compile_where(text, "user", {"id": "S", "n": "N", "raw": "B"})
    assert said in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        """contains(`["ENDED"]`, state)""",
        "type(a) == 'string' || type(a) != 'null'",
        "id > '2'",  # text that is compared with text
        "gone == `null`",
        "length(name) > `2` && name",
        "sort_by(lines, &price)[0].x == 'a'",
        "max_by(lines, &id).id == `5`",  # the id of a line, not of the item
        "not_null(STATE) == state",
        "lines[?id == `5`]",  # neither is this
        " || ".join(f"s == '{n}'" for n in range(99)),
    ],
)
def test_where_that_can_work_is_not_refused(text):
    """A condition that could be true of some item is left alone."""
    compile_where(text, "user", {"id": "S"})
