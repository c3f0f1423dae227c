"""`default` in a rules file: which values it takes, digit for digit, and what it means for on_delete."""

from __future__ import annotations

import pytest

from sync_rules.language.load import check_rules, parse_rules
from tests.support.builders import m, n, s

BASE = """
tables:
  users: {key: {user_id: S}}
  orders: {key: {order_id: S}, indexes: {by_user: {user_id: S}, by_at: {at: N}, by_raw: {raw: B}}}
entities:
  user: {table: users}
  order: {table: orders}
rules:
"""
ONE = "copy: user.name, into: order.user_name"


def compiled(form):
    (rule,) = parse_rules(f"{BASE}  r: {{{form}}}\n").rules.values()
    return rule


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nobody", s("nobody")),
        ("null", {"NULL": True}),
        ("false", {"BOOL": False}),
        ("2024-01-01", s("2024-01-01")),
        ("0", n(0)),
        ("0x10", n(16)),
        ("1.5E+3", n(1500)),
        ("12345678901234567890123456789012345678", n("12345678901234567890123456789012345678")),
        ("[a, 1, {}, [null]]", {"L": [s("a"), n(1), m(), {"L": [{"NULL": True}]}]}),
        ("{city: Rome, at: {x: 0.30000000000000001}}", m(city=s("Rome"), at=m(x=n("0.30000000000000001")))),
        ("'${VAR}'", s("${VAR}")),  # only names come from the environment
    ],
)
def test_default_is_the_value_that_is_written(text, value):
    """A default is any value of JSON, digit for digit; a date is text."""
    assert compiled(f"{ONE}, default: {text}").defaults == {("user_name",): value}


def test_default_in_an_alias_keeps_its_digits():
    """Numbers that stand elsewhere in the file are as exact as those that stand here."""
    rules = f"{BASE}  r: {{{ONE}, default: &none 0.30000000000000001}}\n  q: {{copy: user.x, into: order.x, default: *none}}\n"
    assert {name: [*rule.defaults.values()] for name, rule in parse_rules(rules).rules.items()} == {
        "r": [n("0.30000000000000001")],
        "q": [n("0.30000000000000001")],
    }


@pytest.mark.parametrize(
    ("form", "defaults"),
    [
        ("copy: [user.name, user.bio], into: order.by, default: {bio: none}", {("by", "bio"): s("none")}),
        ("copy: {user.name: who.name, user.bio: '\"a.b\"'}, into: order, default: {who.name: x, '\"a.b\"': 1}",
         {("who", "name"): s("x"), ("a.b",): n(1)}),
        ("copy: [user.name], into: order.by, default: {name: {name: x}}", {("by", "name"): m(name=s("x"))}),
        ("copy: user.by, into: order.by, default: {name: x}", {("by",): m(name=s("x"))}),
    ],
)  # fmt: skip
def test_default_of_several_goes_by_the_names_of_the_copies(form, defaults):
    """Each of several copies may have a default, by its name as the rule has it; of one, a map is the value itself."""
    assert compiled(form).defaults == defaults


def test_default_is_brought_back_unless_on_delete_says_otherwise():
    """Removing the source brings the default back, as `clear` does; a policy in the rule decides first."""
    assert compiled(f"{ONE}, default: x").on_delete == "clear"
    assert compiled(ONE).on_delete == "keep"
    for policy in ("keep", "clear", "delete", "restrict"):
        assert compiled(f"{ONE}, default: x, on_delete: {policy}").on_delete == policy


@pytest.mark.parametrize(
    ("most", "make", "cure"),
    [
        (30, lambda levels: "[" * levels + "]" * levels, "use a value that is less deep"),
        (400 * 1024, lambda size: "x" * size, "use a smaller value"),
    ],
    ids=["levels", "bytes"],
)
def test_default_that_no_item_can_hold_is_refused(most, make, cure):
    """The levels of its path and its own are at most 32 together. It may have as many bytes as an item, and no more."""
    for size, expected in ((most, []), (most + 1, [("SR106", cure)])):
        _, problems = check_rules(f"{BASE}  r: {{copy: user.a, into: order.a.b, default: {make(size)}}}\n")
        assert [(one.code, one.cure) for one in problems if one.severity == "error"] == expected


@pytest.mark.parametrize(
    ("into", "default", "code"),
    [
        ("at", "7", ""),
        ("at", "'7'", "SR312"),
        ("raw", "x", "SR312"),
        ("user_name", "x", ""),
    ],
)
def test_default_fits_the_key_of_an_index(into, default, code):
    """A default of a type that an index does not take would fail for ever."""
    _, problems = check_rules(f"{BASE}  r: {{copy: user.name, into: order.{into}, default: {default}}}\n")
    assert [one.code for one in problems if one.severity == "error"] == ([code] if code else [])
