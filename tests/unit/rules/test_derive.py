"""The derive kind: an attribute made from the same item."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sync_rules.model.values import parse_path
from sync_rules.model.where import compile_where
from sync_rules.rules.formula import parse_formula
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.rule import is_cause
from tests.support.builders import entity, index, key, n, s, table

TABLE = table(
    "shop",
    {"PK": "S", "SK": "S"},
    index("GSI1", {"GSI1PK": "S"}, {"rank": "N"}),
    index("GSI2", {"blob": "B"}),
)
MEMBER = entity("member", TABLE, PK="GOAL#{goal_id}", SK="USER#{user_id}", GSI1PK="TEAM#{team}")
KEY = key(TABLE, "GOAL#g1", "USER#u1")
ITEM = {**KEY.attributes(), "GSI1PK": s("TEAM#red"), "role": s("LEAD")}
RANKS = {"rank": {"LEAD": "500", "TEAM": "30.50", "GUEST": "none"}}


def rule(path: str = "gsi0", text: str = "{role:rank}-{role}", formula=None) -> DeriveRule:
    given = formula or parse_formula(text, RANKS)
    return DeriveRule("derived", MEMBER, MEMBER, path=parse_path(path), formula=given)


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("gsi0", "{role:rank}-{role}", s("500-LEAD")),
        ("gsi0", "{role}#{missing}", None),
        ("gsi0", "{goal_id}/{user_id}/{PK}", s("g1/u1/GOAL#g1")),  # out of the key
        ("gsi0", "{team:upper}", s("RED")),  # out of an index key
        ("gsi0", "{goal_id.x}", None),
        ("info.role", "{role:lower}", s("lead")),
        ("rank", "{role:rank}", n(500)),  # an index wants a number
        ("rank", "{role}", None),
        ("rank.x", "{role}", s("LEAD")),
        ("blob", "{role}", None),  # no text is binary
    ],
)
def test_derive_desires_what_the_formula_makes_of_the_item(path, text, expected):
    """The text of the formula over attributes and key fields; whole or absent, and of the type an index wants."""
    assert rule(path, text).compute_values((), ITEM) == {parse_path(path): expected}


def test_derive_has_its_default_where_the_formula_makes_nothing():
    """The default stands for what is missing, and for what an index would not take; then the attribute is always there."""
    none = s("000-NONE")
    composite = replace(rule(), default=none)
    assert composite.compute_values((), ITEM) == {("gsi0",): s("500-LEAD")}
    assert composite.compute_values((), {**ITEM, "role": s("NOBODY")}) == {("gsi0",): none}
    assert composite.always_writes == ("gsi0",)
    assert composite.fills(("gsi0",), KEY.attributes())
    assert composite.list_defaults({**ITEM, "gsi0": none}) == (("gsi0",),)
    assert composite.list_defaults({**ITEM, "gsi0": s("500-LEAD")}) == composite.list_defaults(ITEM) == ()
    ranked = replace(rule("rank", "{role}"), default=n(0))
    assert ranked.compute_values((), ITEM) == {("rank",): n(0)}
    assert replace(rule("info.role", "{role}"), default=n(0)).always_writes == ()
    types = [replace(rule(), default=value).type_of(("gsi0",), lambda *_: None) for value in (None, none, n(0))]
    assert types == ["S", "S", None]
    assert "default" not in rule().body()


@pytest.mark.parametrize(
    ("path", "room", "role"),
    [("GSI1PK", 2048, "x"), ("GSI1SK", 1024, "x"), ("GSI1SK", 1024, "ß"), ("both", 1024, "x"), ("other", 9999, "x")],
)
def test_derive_makes_no_key_that_an_index_cannot_hold(path, room, role):
    """A key that DynamoDB would refuse, and with it the whole write, is absent: else the old one would stay."""
    two = index("GSI1", {"GSI1PK": "S", "both": "S"}, {"GSI1SK": "S"}), index("GSI2", {"x": "S"}, {"both": "S"})
    keyed = entity("keyed", table("keyed", {"PK": "S"}, *two))
    one = DeriveRule("derived", keyed, keyed, path=(path,), formula=parse_formula("{role}", {}))
    fits = role * (room // len(role.encode()))
    assert one.compute_values((), {"PK": s("1"), "role": s(fits)}) == {(path,): s(fits)}
    longer = None if path != "other" else s(fits + role)
    assert one.compute_values((), {"PK": s("1"), "role": s(fits + role)}) == {(path,): longer}


@pytest.mark.parametrize(("path", "expected"), [("GSI1PK", "TEAM#blue"), ("GSI2PK", "TEAM#red")])
def test_derive_reads_no_field_out_of_what_it_writes(path, expected):
    """A field that only the derived key's template binds is the attribute of its name, also for guards and cycles; one
    that another key binds too is read there.
    """
    indexes = index("GSI1", {"GSI1PK": "S"}), index("GSI2", {"GSI2PK": "S"})
    keyed = entity("keyed", table("keyed", {"PK": "S"}, *indexes), PK="{id}", GSI1PK="TEAM#{team}")
    one = DeriveRule("derived", keyed, keyed, path=(path,), formula=parse_formula("TEAM#{team}", {}))
    item = {"PK": s("1"), "GSI1PK": s("TEAM#red"), "team": s("blue")}
    assert one.compute_values((), item) == {(path,): s(expected)}
    assert one.inputs == ((("team",),) if path == "GSI1PK" else (("GSI1PK",),))
    (node,) = one.nodes()
    assert not is_cause(node, node)


@pytest.mark.parametrize(
    ("item", "state", "default"),
    [
        ({"signed": {"BOOL": True}}, s("LEAD#SIGNED"), None),
        ({"signed": {"BOOL": False}}, s("LEAD#OPEN"), None),
        ({"signed": {"NULL": True}}, s("LEAD#NEVER"), None),
        ({"signed": s("true")}, s("LEAD#SIGNED"), None),
        ({"signed": {"L": []}}, None, None),
        ({"signed": {"BOOL": True}, "gone": {"BOOL": True}}, None, None),
        ({"signed": {"BOOL": True}, "gone": {"BOOL": True}}, s("none"), s("none")),
        ({"signed": {"BOOL": True}, "gone": {"BOOL": True}, "gsi0": s("none")}, s("none"), s("none")),
    ],
)
def test_derive_reads_truth_values_by_a_table_and_obeys_where(item, state, default):
    """A table has rows for truth values and NULL; where the condition fails, there is the default or nothing."""
    signs = {"signs": {"true": "SIGNED", "false": "OPEN", "null": "NEVER"}}
    made = replace(
        rule(formula=parse_formula("{role}#{signed:signs}", signs)),
        where=compile_where("!gone", "member"),
        default=default,
    )
    item = {**ITEM, **item}
    assert made.compute_values((), item) == {("gsi0",): state}
    assert made.fills(("gsi0",), item) == (state is not None)
    assert {("gone",), ("signed",)} <= set(made.deciding_paths), "a change of either is a reason to look, and guarded"
    assert made.body() != replace(made, where=None).body()


@pytest.mark.parametrize(
    ("item", "state"),
    [
        ({"signed": {"BOOL": True}, "approved": {"BOOL": True}}, "APPROVED#LEAD"),
        ({"signed": {"BOOL": True}}, "SIGNED#LEAD"),
        ({}, "LEAD"),
        ({"signed": {"BOOL": True}, "gone": {"BOOL": True}}, None),
    ],
)
def test_derive_uses_the_first_case_that_holds(item, state):
    """Else the rule's own formula; `where` of the rule comes first. Each condition is watched and guarded."""
    cases = [("signed && approved", "APPROVED#{role}"), ("signed", "SIGNED#{role}")]
    made = replace(
        rule(formula=parse_formula("{role}", {})),
        where=compile_where("!gone", "member"),
        cases=tuple((compile_where(where, "member"), parse_formula(text, {})) for where, text in cases),
    )
    assert made.compute_values((), {**ITEM, **item}) == {("gsi0",): state and s(state)}
    assert {("gone",), ("signed",), ("approved",)} <= set(made.deciding_paths)
    assert made.body() != replace(made, cases=made.cases[::-1]).body()
    assert not made.always_writes
