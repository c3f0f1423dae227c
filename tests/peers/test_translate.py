"""Neutral rules become ours, whole, or are named with what is planned for them."""

from __future__ import annotations

from typing import Any

import pytest

from sync_rules.errors import UserError
from sync_rules.rulefile import parse_rules
from sync_rules.rules import Rules
from tests.peers.broken import ENVIRON
from tests.peers.cases import of_scenario
from tests.peers.runner import Case
from tests.peers.scenarios import Scenario, expectations
from tests.peers.translate import translate

TO_USER = {"to": "users", "by": "user.id"}


def scenario(*rules: dict[str, Any], references: tuple[dict[str, Any], ...] = (), **initial: Any) -> Scenario:
    tables = {"users": ("id",), "posts": ("id",), "notes": ("id",), "seats": ("row", "place")}
    return Scenario("file", "X-1", "", "", tables, rules, references, initial, False, (), (), False)


def copying(attr: str, *path: dict[str, Any], table: str = "posts", of: str = "name", **more: Any) -> dict[str, Any]:
    return {"table": table, "attr": attr, "copy": {"path": list(path), "attr": of}, **more}


def rules_of(scenario: Scenario) -> Rules:
    return parse_rules(translate(scenario).text, environ=ENVIRON)


def test_nested_reference_links_through_a_top_level_helper() -> None:
    """An index cannot reach into a map: the item copies the reference onto itself, once for all rules that use it."""
    told = scenario(copying("user.name", TO_USER), copying("user.city", TO_USER, of="city"))
    rules = rules_of(told).rules
    assert set(rules) == {"posts-user_id_ref", "posts-user-name", "posts-user-city"}
    assert rules["posts-user_id_ref"].find.index is None
    assert rules["posts-user-name"].find.index == "by_user_id_ref"
    assert translate(told).helpers == {("posts", ("user_id_ref",))}


def test_hops_become_a_chain_of_copies() -> None:
    """Each item on the way hands on what comes after it; a stretch that two rules share is copied once."""
    path = ({"to": "posts", "by": "post"}, {"to": "users", "by": "owner"})
    told = scenario(copying("owner", *path, table="notes"), copying("again", *path, table="notes"))
    rules = rules_of(told).rules
    assert {name: rule.source.name for name, rule in rules.items()} == {
        "posts-owner_name_copy": "users",
        "notes-owner": "posts",
        "notes-again": "posts",
    }


def test_helpers_of_two_purposes_have_two_names() -> None:
    """References whose names would make the same helper are told apart."""
    told = scenario(copying("a", {"to": "users", "by": "u._id"}), copying("b", {"to": "users", "by": "u.id"}))
    assert translate(told).helpers == {("posts", ("u_id_ref",)), ("posts", ("u_id_ref_2",))}
    assert len(rules_of(told).rules) == 4


def test_cascade_becomes_a_copy_that_deletes() -> None:
    """The copies keep their own policy: a target pointed at a missing source shows no value."""
    cascade = {"table": "posts", "attr": "owner", "to": "users", "on_delete": "cascade"}
    rules = rules_of(scenario(copying("name", {"to": "users", "by": "owner"}), references=(cascade,))).rules
    assert {name: rule.on_delete for name, rule in rules.items()} == {
        "posts-name": "clear",
        "posts-owner_owner": "delete",
    }


def test_same_rule_twice_is_one_rule() -> None:
    """Saying it twice is no conflict."""
    rule = copying("user.name", TO_USER)
    assert translate(scenario(rule, rule)).text == translate(scenario(rule)).text


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"table": "users", "attr": "n", "agg": "count"}, "agg: count (kind count, planned)"),
        ({"table": "users", "attr": "n", "agg": "set"}, "agg: set (kind collect, planned)"),
        ({"table": "users", "attr": "n", "text": ["x"]}, "text (kind derive, planned)"),
        ({"table": "users", "attr": "n", "tree": {}}, "tree (kind path, planned)"),
        (copying("n", {"from": "notes", "on": "post"}), "copy from many items (kind embed, planned)"),
        (copying("n", TO_USER | {"where": {"a": 1}}), "copy with `where` on a hop (planned)"),
        (copying("n", TO_USER, missing="?"), "copy with a value for a missing source (`missing`, planned)"),
        (copying("n", {"to": "users", "by": "ids"}), "copy through a list of references (kind embed, planned)"),
        (copying("n", {"to": "seats", "by": "x"}), "copy from a table whose key has two attributes by one reference"),
    ],
)
def test_what_is_not_supported_is_named(rule: dict[str, Any], reason: str) -> None:
    """Each with the kind that is planned, and nothing of it stays in the rules file."""
    translation = translate(scenario(rule, posts=({"id": "p", "ids": ["a"]},)))
    assert translation.unsupported == (reason,)
    assert not parse_rules(translation.text, environ=ENVIRON).rules


def test_unsupported_end_of_a_chain_leaves_no_beginning() -> None:
    """A path that cannot be followed to its end is left out each time it is asked for, helpers and all."""
    path = ({"to": "posts", "by": "post"}, {"from": "notes", "on": "post"})
    translation = translate(scenario(copying("a", *path, table="notes"), copying("b", *path, table="notes")))
    assert translation.left_out == (("notes", ("a",)), ("notes", ("b",)))
    assert not translation.helpers


def test_reference_removal_is_not_supported() -> None:
    """A rule would have to write the attribute that links it."""
    remove = {"table": "posts", "attr": "owner", "to": "users", "on_delete": "remove"}
    (reason,) = translate(scenario(references=(remove,))).unsupported
    assert reason.startswith("references: remove")


def test_copies_only_keep_what_no_other_rule_touches() -> None:
    """Of a mixed scenario the copies run, with every expectation that the other rules have no part in."""
    count = {"table": "posts", "attr": "stats.likes", "agg": "count"}
    told = scenario(copying("user.name", TO_USER), count)
    shown = {"p": {"user.name": "Ann", "stats": {"likes": 1}, "stats.likes": 1, "title": "x"}, "q": "<no item>"}
    unsupported, copies = of_scenario(Scenario(**{**vars(told), "expect_initial": expectations({"posts": shown})}))
    assert isinstance(copies, Case)
    assert (unsupported.id, copies.id) == ("X-1", "X-1 (copies only)")
    assert [".".join(one.path) for one in copies.scenario.expect_initial] == ["user.name", "title", ""]


def test_rule_of_another_format_is_an_error() -> None:
    """A rule that cannot be read names its file and scenario."""
    with pytest.raises(UserError, match="file X-1: a rule is not of the scenario format"):
        of_scenario(scenario({"attr": "n"}))
