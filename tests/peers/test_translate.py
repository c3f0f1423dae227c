"""Neutral rules become ours, whole, or the scenario is refused with what is not translated."""

from __future__ import annotations

from typing import Any

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.errors import UserError
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.kinds.embed import EmbedRule
from sync_rules.rules.kinds.linked import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.tally import TallyRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules
from tests.peers.broken import ENVIRON
from tests.peers.builder import UnsupportedError, helps
from tests.peers.cases import Unsupported, of_scenario
from tests.peers.scenarios import Scenario
from tests.peers.translate import translate

TO_USER = {"to": "users", "by": "user.id"}
FROM_NOTES = {"from": "notes", "on": "post.id"}


def scenario(*rules: dict[str, Any], references: tuple[dict[str, Any], ...] = (), **initial: Any) -> Scenario:
    tables = {"users": ("id",), "posts": ("id",), "notes": ("id",), "seats": ("row", "place")}
    return Scenario("file", "X-1", "", "", tables, rules, references, initial, False, (), (), False)


def copying(attr: str, *path: dict[str, Any], table: str = "posts", of: str = "name", **more: Any) -> dict[str, Any]:
    return {"table": table, "attr": attr, "copy": {"path": list(path), "attr": of}, **more}


def gathering(attr: str, agg: str, *path: dict[str, Any], table: str = "posts", **more: Any) -> dict[str, Any]:
    return {"table": table, "attr": attr, "agg": agg, "path": list(path), **more}


def rules_of(scenario: Scenario) -> Rules:
    return parse_rules(translate(scenario).text, environ=ENVIRON)


def linked(rule: Rule) -> LinkedRule:
    assert isinstance(rule, LinkedRule)
    return rule


# ---------------------------------------------------------------- copies
def test_nested_reference_links_through_a_top_level_helper() -> None:
    """An index cannot reach into a map: the item copies the reference onto itself, once for all rules that use it."""
    told = scenario(copying("user.name", TO_USER), copying("user.city", TO_USER, of="city"))
    rules = rules_of(told).rules
    assert set(rules) == {"posts-user_id_ref", "posts-user-name", "posts-user-city"}
    own, name = rules["posts-user_id_ref"].find, rules["posts-user-name"].find
    assert own is not None
    assert own.index is None
    assert name is not None
    assert name.index == "by_user_id_ref"
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
    """References whose helpers would have the same name get different names."""
    told = scenario(copying("a", {"to": "users", "by": "u._id"}), copying("b", {"to": "users", "by": "u.id"}))
    assert translate(told).helpers == {("posts", ("u_id_ref",)), ("posts", ("u_id_ref_2",))}
    assert len(rules_of(told).rules) == 4


def test_cascade_becomes_a_copy_that_deletes() -> None:
    """The copies keep their own policy: a target pointed at a missing source shows no value."""
    cascade = {"table": "posts", "attr": "owner", "to": "users", "on_delete": "cascade"}
    rules = rules_of(scenario(copying("name", {"to": "users", "by": "owner"}), references=(cascade,))).rules
    assert {name: linked(rule).on_delete for name, rule in rules.items()} == {
        "posts-name": "clear",
        "posts-owner_owner": "delete",
    }


@pytest.mark.parametrize("rule", [copying("user.name", TO_USER), gathering("n", "count", FROM_NOTES)])
def test_same_rule_twice_is_one_rule(rule: dict[str, Any]) -> None:
    """Saying it twice is no conflict."""
    assert translate(scenario(rule, rule)).text == translate(scenario(rule)).text


# ---------------------------------------------------------------- what is made of many
def test_members_that_point_to_their_parent_need_no_table_between() -> None:
    """A map goes by an index, a count by its ledger, which is the pipeline's and not the scenario's."""
    told = scenario(
        gathering("notes", "map", FROM_NOTES, fields=["text"]), gathering("open", "count", FROM_NOTES, where={"o": 1})
    )
    rules = rules_of(told).rules
    embed, tally = rules["posts-notes"], rules["posts-open.ledger"]
    assert isinstance(embed, EmbedRule)
    assert embed.find is not None
    assert embed.find.index == "by_post_id_ref"
    assert embed.fields == ((("text",), "text"),)
    assert isinstance(tally, TallyRule)
    assert tally.where is not None
    assert (tally.source.name, tally.where.text) == ("notes", "o == `1`")
    assert translate(told).helpers == {("notes", ("post_id_ref",)), ("ledger", ())}


def test_list_on_the_parent_becomes_edges_that_copies_fill() -> None:
    """Edges carry the attributes asked of the members and the members' own keys, without which there is no member."""
    path, posts = {"to": "notes", "by": "note_ids"}, ({"id": "p", "note_ids": ["a"]},)
    told = scenario(
        gathering("notes", "map", path, fields=["text"]), gathering("sum", "sum", path, of="size"), posts=posts
    )
    rules = rules_of(told).rules
    edges = "posts_note_ids_edges"
    mirror, embed = rules[edges], rules["posts-notes"]
    assert isinstance(mirror, MirrorRule)
    assert mirror.each == ("edge_element", ("note_ids",))
    copied = [rule.mapping for rule in rules.values() if isinstance(rule, CopyRule) and rule.target.name == edges]
    assert copied == [(((name,), (f"member_{name}",)),) for name in ("id", "text", "size")]
    assert isinstance(embed, EmbedRule)
    assert embed.where is not None
    assert (embed.source.name, embed.where.text) == (edges, "member_id")
    assert helps(translate(told).helpers, edges, ("member_text",))


def test_list_on_the_members_becomes_edges_that_carry_what_all_rules_ask() -> None:
    """Two rules over the same list share one mirror, which carries the attributes of both."""
    path, notes = {"from": "notes", "on": "post_ids"}, ({"id": "n", "post_ids": ["p"]},)
    told = scenario(
        gathering("notes", "map", path, fields=["text"]), gathering("sum", "sum", path, of="a.size"), notes=notes
    )
    rules = rules_of(told).rules
    mirror, embed = rules["notes_post_ids_edges"], rules["posts-notes"]
    assert isinstance(mirror, MirrorRule)
    assert mirror.attributes == ((("text",), ("member_text",)), (("a", "size"), ("member_a_size",)))
    assert isinstance(embed, EmbedRule)
    assert embed.where is None
    assert set(rules) == {"notes_post_ids_edges", "posts-notes", "posts-sum", "posts-sum.ledger"}


# ---------------------------------------------------------------- what is not translated
LISTS: dict[str, Any] = {"posts": ({"id": "p", "ids": ["a"]},)}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (gathering("n", "set", FROM_NOTES, of="x"), "agg: set"),
        (gathering("n", "count", FROM_NOTES, weight="x"), "agg: count with weight alone"),
        (gathering("n", "count", FROM_NOTES, empty=None), "agg: count with `empty`"),
        (gathering("n", "sum", FROM_NOTES), "agg: sum with agg, attr, path, table"),
        (gathering("n", "map", FROM_NOTES, fields=["a.b"]), "agg: map with a field inside a map"),
        (gathering("n", "count", FROM_NOTES, FROM_NOTES), "agg: count over several hops"),
        (gathering("n", "count", FROM_NOTES, table="seats"), "a reference to seats, whose key has two attributes"),
        ({"table": "users", "attr": "n", "text": ["x"]}, "text of more than own attributes"),
        ({"table": "users", "attr": "n", "tree": {}}, "a rule of table, attr, tree"),
        (copying("n", {"from": "notes", "on": "post"}), "copy from many items"),
        (copying("n", TO_USER | {"where": {"a": 1}}), "copy with `where` on a hop"),
        (copying("n", {"to": "users", "by": "ids"}), "copy through a list of references"),
        (copying("n", {"to": "seats", "by": "x"}), "a reference to seats, whose key has two attributes"),
    ],
)
def test_what_is_not_translated_is_named(rule: dict[str, Any], reason: str) -> None:
    """A scenario with a rule that is not translated fails with the reason."""
    entry = of_scenario(scenario(copying("name", TO_USER), rule, **LISTS))
    assert isinstance(entry, Unsupported)
    assert entry.reason == reason
    with pytest.raises(AssertionError, match="cannot be run"):
        entry.check()


def test_reference_removal_is_not_translated() -> None:
    """A rule would have to write the attribute that links it."""
    remove = {"table": "posts", "attr": "owner", "to": "users", "on_delete": "remove"}
    with pytest.raises(UnsupportedError, match="references: remove"):
        translate(scenario(references=(remove,)))


def test_rule_of_another_format_is_an_error() -> None:
    """A rule that cannot be read names its file and scenario."""
    with pytest.raises(UserError, match="file X-1: a rule is not of the scenario format"):
        of_scenario(scenario({"attr": "n"}))
