"""Formulas: one text out of fields of an item, whole or absent."""

from __future__ import annotations

import pytest

from sync_rules.model.errors import UserError
from sync_rules.rules.formula import compute_stable_hash, join_fields, parse_formula
from tests.support.builders import n, s

RANKS = {"rank": {"LEAD": "500", "CONTRIBUTOR": "400", "1": "first", "NONE": ""}}


def text(formula: str, tables=RANKS, **values) -> str | None:
    return parse_formula(formula, tables).text(values.get)


@pytest.mark.parametrize(
    ("formula", "values", "expected"),
    [
        ("{role:rank}-{role}", {"role": s("LEAD")}, "500-LEAD"),
        ("STATE#{state}#CITY#{city}#{zip}", {"state": s("NY"), "city": s("Troy"), "zip": n(12180)}, "STATE#NY#CITY#Troy#12180"),
        ("{zip:nospace:upper}", {"zip": s(" ec1a\t1 bb\u00a0")}, "EC1A1BB"),
        ("{name:lower}", {"name": s("ÄDA")}, "äda"),
        ("{n:rank}", {"n": n("1.0")}, "first"),
        ("{n:pad(8)}", {"n": n(42)}, "00000042"),
        ("{n:pad(3)}", {"n": n(12345)}, "12345"),
        ("{n:pad(3)}", {"n": n("-5.25")}, "-005.25"),
        ("{zip:nospace:pad(6)}", {"zip": s("1 2")}, "000012"),
        ("{at:date(%Y-%m)}", {"at": s("2024-05-31T23:30:00-02:00")}, "2024-06"),
        ("{at:date(%H:%M:%S)}", {"at": s("2024-05-31t23:30:09.999z")}, "23:30:09"),
        ("{at:date(%Y-%m-%dT%H)}", {"at": n("1714521600.9")}, "2024-05-01T00"),
        ("{at:date(%d)}", {"at": n("-0.5")}, "31"),
        ("{at:date(%G-W%V-%u %j)}", {"at": s("2021-01-03")}, "2020-W53-7 003"),
        ("{at:date(100%%)}", {"at": s("20240531")}, "100%"),
        ("{at:date(%Y)}", {"at": s("0099-01-01")}, "0099"),
        ('{"full.name"}', {'"full.name"': s("Ada")}, "Ada"),
    ],
)  # fmt: skip
def test_formula_makes_the_text(formula, values, expected):
    """Fields, literals and formats from left to right make one text."""
    assert text(formula, **values) == expected


@pytest.mark.parametrize(
    ("formula", "values"),
    [
        ("{a}#{b}", {"a": s("x")}),
        ("{a}#{b}", {"a": s("x"), "b": s("")}),
        ("{a}", {"a": {"BOOL": True}}),
        ("{a}", {"a": {"NULL": True}}),
        ("{a}", {"a": {"L": [s("x")]}}),
        ("{a}", {"a": {"B": b"x"}}),
        ("{a}", {"a": n("1E+126")}),
        ("x{a:nospace}", {"a": s(" \n")}),
        ("x{a:rank}", {"a": s("lead")}),
        ("x{a:rank}", {"a": s("NONE")}),
        ("x{a:rank}", {"a": {"SS": ["LEAD"]}}),
        ("x{a:rank:upper}", {"a": s("nobody")}),
        ("x{a:pad(3)}", {"a": s("1.5")}),
        ("x{a:pad(3)}", {"a": s("-1")}),
        ("x{a:pad(3)}", {"a": s("\u0661\u0662")}),
        ("x{a:shard(3)}", {}),
        ("x{a:shard(3)}", {"a": {"B": b"x"}}),
        ("x{a:pad(3)}", {"a": {"B": b"x"}}),
        ("x{a:date(%Y)}", {"a": s("2024-02-30")}),
        ("x{a:date(%Y)}", {"a": s("yesterday")}),
        ("x{a:date(%Y)}", {"a": s("1714111600123")}),  # the digits of a timestamp, which could pass for 1714-11-16
        ("x{a:date(%Y)}", {"a": n(1714521600000)}),  # milliseconds
        ("x{a:date(%Y)}", {"a": n("1E+120")}),
        ("x{a:date(%Y)}", {"a": s("0001-01-01T00:00:00+01:00")}),
        ("x{a:date(%Y)}", {"a": {"BOOL": True}}),
    ],
)
def test_formula_is_whole_or_absent(formula, values):
    """A field that is missing, empty, of a wrong type or in no table leaves no text at all."""
    assert text(formula, **values) is None


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("", "expected text with fields in braces"),
        ("{a", "expected text with fields in braces"),
        ("a}", "expected text with fields in braces"),
        ("{}", "expected {field}"),
        ("{:upper}", "expected {field}"),
        ("{a:}", "expected {field}"),
        ("{a::upper}", "expected {field}"),
        ("{a:upper(}", "expected {field}"),
        ("{a:upper }", "expected {field}"),
        ("{a b}", "is not a path"),
        ("{a[0]}", "is not a path"),
        ("{a:uper}", "Known: upper, lower, nospace, pad, date, shard, rank. Did you mean 'upper'?"),
        ("{a:RANK}", "Did you mean 'rank'?"),
        ("{a:xyzzy}", "no format 'xyzzy'"),
        ("{a:upper(1)}", "upper takes no argument"),
        ("{a:rank(1)}", "rank takes no argument"),
        ("{a:pad}", "pad needs a number of digits from 1 to 128, such as pad(8)"),
        ("{a:pad(0)}", "pad needs"),
        ("{a:pad(129)}", "pad needs"),
        ("{a:pad(x)}", "pad needs"),
        ("{a:shard}", "shard needs a number of shards"),
        ("{a:shard(-1)}", "shard needs"),
        ("{a:date}", "date needs a pattern, such as date(%Y-%m)"),
        ("{a:date()}", "date needs a pattern"),
        ("{a:date(%B)}", "date knows no %B: expected %Y, %m, %d, %H"),
        ("{a:date(%Y%)}", "date knows no %:"),
    ],
)
def test_formula_says_what_was_expected(formula, message):
    """A wrong formula is refused with what was expected, and a typing error with a suggestion."""
    with pytest.raises(UserError) as error:
        parse_formula(formula, RANKS)
    assert message in str(error.value)


def test_formula_joins_those_that_are_there():
    """Joined fields skip what is missing, empty or no text, and are absent when none is there."""
    formula = join_fields(("name.first", "age", "name.last"), ", ")
    assert formula.fields == ("name.first", "age", "name.last")
    assert formula.text({"name.first": s("Ada"), "age": n("3.0"), "name.last": s("L")}.get) == "Ada, 3, L"
    assert formula.text({"name.first": s(""), "age": {"BOOL": True}, "name.last": s("L")}.get) == "L"
    assert formula.text({}.get) is None
    with pytest.raises(UserError, match="nothing to join"):
        join_fields((), ", ")
    with pytest.raises(UserError, match="is not a path"):
        join_fields(("a..b",), ", ")


def test_formula_is_total_where_nothing_can_be_missing():
    """A formula makes a text of every item with all of its fields; joined fields, with one of them."""
    whole, joined = parse_formula("{a}-{b}", {}), join_fields(("a", "b"), "-")
    assert [(whole.is_total(some), joined.is_total(some)) for some in ("", "a", "ab")] == [
        (False, False), (False, True), (True, True),
    ]  # fmt: skip


def test_formula_shards_are_even_and_stable():
    """A text's shard is the same for ever, within its range, and every shard gets its share."""
    assert text("{a:shard(10)}", a=s("CM1")) == str(compute_stable_hash("CM1") % 10)
    assert compute_stable_hash("CM1") == 15828661997058227452, "written down: data depends on it"
    shards = [int(text("{a:shard(8)}", a=n(number))) for number in range(4000)]
    assert set(shards) == set(range(8))
    assert all(400 < shards.count(shard) < 600 for shard in range(8))
