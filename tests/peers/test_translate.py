"""Neutral rules become ours, whole, or the scenario is refused with what is not translated."""

from __future__ import annotations

from typing import Any

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.rules.kinds.call import CallRule
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.kinds.embed import EmbedRule
from sync_rules.rules.kinds.linked_rule import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.tally import TallyRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules
from tests.peers import weights
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


def test_hops_become_a_link_over_several_items() -> None:
    """The key of the item behind the first hop is kept once; a rule that goes the same way links by it."""
    path = ({"to": "posts", "by": "post"}, {"to": "users", "by": "owner"})
    told = scenario(copying("owner", *path, table="notes"), copying("again", *path, table="notes", of="city"))
    rules = rules_of(told).rules
    assert {name: rule.source.name for name, rule in rules.items()} == {
        "notes-owner": "users",
        "notes-owner.through_posts": "posts",
        "notes-again": "users",
    }
    assert translate(told).helpers == {("notes", ("post_users_id_kept",))}


def test_hops_that_come_back_to_a_table_become_a_chain_of_copies() -> None:
    """A link over several items names each entity once: the reference is brought here first."""
    up = {"to": "posts", "by": "parent"}
    rules = rules_of(scenario(copying("title_above", up, up, of="title"))).rules
    assert {name: linked(rule).link[0][1].path for name, rule in rules.items()} == {
        "posts-parent_parent_copy": ("parent",),
        "posts-title_above": ("parent_parent_copy",),
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
    assert (tally.source.name, tally.where.text) == ("notes", "(o == `1`)")
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
    assert sorted(copied) == [(((name,), (f"edge_element_{name}_copy",)),) for name in ("id", "size", "text")]
    assert isinstance(embed, EmbedRule)
    assert embed.where is not None
    assert (embed.source.name, embed.where.text) == (edges, "(edge_element_id_copy != `null`)")
    assert helps(translate(told).helpers, edges, ("edge_element_text_copy",))


def test_list_on_the_members_becomes_edges_that_carry_what_all_rules_ask() -> None:
    """Two rules over the same list share one mirror, which carries the attributes of both."""
    path, notes = {"from": "notes", "on": "post_ids"}, ({"id": "n", "post_ids": ["p"]},)
    told = scenario(
        gathering("notes", "map", path, fields=["text"]), gathering("sum", "sum", path, of="a.size"), notes=notes
    )
    rules = rules_of(told).rules
    mirror, embed = rules["notes_post_ids_owners"], rules["posts-notes"]
    assert isinstance(mirror, MirrorRule)
    assert mirror.attributes == ((("text",), ("member_text",)), (("a", "size"), ("member_a_size",)))
    assert isinstance(embed, EmbedRule)
    assert embed.where is None
    assert set(rules) == {"notes_post_ids_owners", "posts-notes", "posts-sum", "posts-sum.ledger"}


# ---------------------------------------------------------------- what is not translated
LISTS: dict[str, Any] = {"posts": ({"id": "p", "ids": ["a"]},)}
TO_LIST = {"to": "notes", "by": "ids"}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (gathering("n", "median", FROM_NOTES, of="x"), "agg: median"),
        (gathering("n", "count", FROM_NOTES, weight="x", weight_map=3), "weights of the form weight, weight_map"),
        (gathering("n", "sum", FROM_NOTES, of="x", weight=2), "agg: sum with weights"),
        (gathering("n", "count", FROM_NOTES, distinct=True), "agg: count with distinct"),
        (gathering("n", "sum", FROM_NOTES), "agg: sum without of"),
        (gathering("n", "map", FROM_NOTES, fields=["a.b"]), "agg: map with a field inside a map"),
        (gathering("n", "count", FROM_NOTES | {"as": "x"}), "a hop with as"),
        (gathering("n", "count", FROM_NOTES, table="seats"), "a reference to seats, whose key has 2 attributes"),
        (gathering("n", "count", FROM_NOTES, where="x > 1"), "`where` that is a str"),
        ({"table": "users", "attr": "n", "text": [["x"]]}, "a text's part that is a list"),
        ({"table": "users", "attr": "n", "text": [{"name": "x"}]}, "a text's part of name"),
        ({"table": "users", "attr": "n", "key": "{a|reverse}"}, "a key's format 'reverse'"),
        ({"table": "users", "attr": "n", "tree": {"parent": "p", "by": "x"}}, "tree with by"),
        ({"table": "users", "attr": "n", "formula": "a + b"}, "a rule of table, attr, formula"),
        (copying("n", TO_LIST), "copy through a list of references"),
        (copying("n", {"to": "seats", "by": "x"}), "a reference to seats, whose key has 2 attributes"),
        (copying("n", {"to": "nowhere", "by": "x"}), "a path to nowhere, which is no table"),
        ({"attr": "n", "text": ["x"]}, "a rule is not of the scenario format: KeyError 'table'"),
    ],
)
def test_what_is_not_translated_is_named(rule: dict[str, Any], reason: str) -> None:
    """A scenario with a rule that is not translated says so, with the reason."""
    entry = of_scenario(scenario(copying("name", TO_USER), rule, **LISTS))
    assert isinstance(entry, Unsupported)
    assert entry.reason == reason


def test_rules_that_check_refuses_are_not_translated() -> None:
    """The reason is that of the error, with its code."""
    entry = of_scenario(scenario(copying("name", TO_USER), copying("name.first", TO_USER, of="first")))
    assert isinstance(entry, Unsupported)
    assert "check refuses the rules" in entry.reason
    assert "SR301" in entry.reason


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"weight": 3}, ({"-": 3}, 3, False)),
        ({"weight": "kind", "weight_map": {True: 2, None: 0}}, ({"true": 2, "null": 0}, 1, True)),
        ({"weight": "kind", "weight_map": {"a": 2}, "weight_default": 0}, ({"a": 2}, 0, False)),
        ({"weight_map": {"attr": "kind", "values": {"a": 2}, "default": 5}}, ({"a": 2}, 5, False)),
        ({"weight": {"attribute": "kind", "values": {False: 2}, "default": 5}}, ({"false": 2}, 5, False)),
        ({"weight_map": {"kind": {"a": 2, "default": 4}}}, ({"a": 2}, 4, False)),
        ({}, None),
    ],
)
def test_weights_are_read_in_each_of_their_forms(said: dict[str, Any], expected: object) -> None:
    """The attribute, the weights by value, what others weigh, and if an absent attribute weighs as null does."""
    weighing = weights.read(said)
    assert expected == (weighing and (weighing.values, weighing.default, weighing.absent_is_null))


def test_reference_removal_is_a_call() -> None:
    """A rule would have to write the attribute that links it: the application's function does."""
    gone = {"table": "posts", "attr": "owner", "to": "users", "on_delete": "remove"}
    (rule,) = rules_of(scenario(references=(gone,))).rules.values()
    assert isinstance(rule, CallRule)
    assert (rule.source.name, rule.when) == ("users", {"deleted"})


def test_other_references_are_not_translated() -> None:
    """Nor are lists of them."""
    gone = {"table": "posts", "attr": "ids", "to": "users", "on_delete": "remove"}
    with pytest.raises(UnsupportedError, match="references: removal from a list"):
        translate(scenario(references=(gone,), **LISTS))
    with pytest.raises(UnsupportedError, match="references: protect"):
        translate(scenario(references=(gone | {"on_delete": "protect"},)))
