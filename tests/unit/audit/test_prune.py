"""Prune: what rules that are gone have left behind, all of it, and nothing that is anybody else's."""

from __future__ import annotations

import pytest

from sync_rules.audit.leftovers import FormerRules, prune_page, remove
from sync_rules.language.load import parse_rules
from sync_rules.model.values import Item, show_path
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.ruleset import Rules
from tests.support import every_kind
from tests.support.builders import m, n, s
from tests.support.every_kind import RULES, order, part, post, text_of, user
from tests.support.worlds import Scene


def settled(rules: Rules) -> Scene:
    """A shop at rest under some rules."""
    scene = Scene(rules)
    scene.put("shop", order("1", "a", 10), order("1", "b", 5))
    scene.put("shop", user("1", name=s("Ada"), rank=n(1), email=s("a@x")))
    scene.put("posts", post("p", "1", "Hello"))
    scene.put("parts", part("b", "a"), part("a"))
    scene.rest()
    return scene


def kinds(*names: str, **more: str) -> Rules:
    return parse_rules(text_of({name: RULES[name] for name in names} | more))


def left(scene: Scene, now: Rules, *only: str) -> list[tuple[str, str, str]]:
    """Rule, key and paths of every leftover."""
    return sorted(
        (one.rule, str(one.key), ", ".join(map(show_path, one.paths))) for one in leftovers(scene, now, *only)
    )


def leftovers(scene: Scene, now: Rules, *only: str):
    past = FormerRules(scene.rules, now, frozenset(only))
    return [one for table in past.tables for one in scene.drive(prune_page(table, past, None)).leftovers]


def prune(scene: Scene, now: Rules, *only: str) -> int:
    """Remove all leftovers, and return the number of those that could not be removed."""
    return len(scene.drive(remove(tuple(leftovers(scene, now, *only)))))


def tables(scene: Scene) -> dict[str, list[Item]]:
    return {name: sorted(scene.memory.items(name), key=str) for name in scene.rules.tables}


# ---------------------------------------------------------------- what is left
@pytest.mark.parametrize("name", RULES)
def test_prune_leaves_nothing_of_a_kind(name):
    """Prune removes everything of a dropped rule of any kind, and nothing of other rules; a second run finds nothing."""
    scene = settled(every_kind.rules_of(effects=False))
    now = every_kind.rules_of(name, "told" if name == "counted" else name, effects=False)
    found = left(scene, now)
    assert {rule for rule, _, _ in found} == {name, "told"} if name == "counted" else {name}
    assert prune(scene, now) == 0
    assert left(scene, now) == []
    others = settled(now)
    assert tables(scene) == tables(others)


# ---------------------------------------------------------------- what is not left
def test_prune_of_a_renamed_rule():
    """A rule of another name that writes the same attribute leaves nothing, but for the books of a count, which go by
    the rule's name; with `renamed_from` these are those of the new one.
    """
    scene = settled(kinds("names", "tags", "paths", "mails", "least"))
    renamed = {f"new_{name}": RULES[name] for name in ("names", "tags", "paths", "mails", "least")}
    now = kinds(**renamed)
    assert {key.partition("[")[2][:8] for _, key, _ in left(scene, now)} == {"least/R/", "least/B,"}
    assert (
        left(scene, kinds(**renamed | {"new_least": "{min: order.total, into: user.least, renamed_from: least}"})) == []
    )
    assert prune(scene, now) == 0
    assert scene.item(scene.at("shop", "USER#1", "PROFILE"))["least"] == n(5)


BESIDE = {"one": "copy user.name into order.user.name", "two": "copy user.email into order.mail"}
WITHIN = {"whole": "copy user.email into order.user", "inside": "copy user.name into order.mail.of"}
MAILS = {"mails": RULES["mails"]}
RANKED = MAILS | {"tagged": "{derive: by_email.rank, as: '{name}'}"}
WHOLE = {"mails": "{mirror: user, into: by_email, attributes: all}"}
OWNED = {"mails": "{mirror: user, into: by_email, link: {owner: user_id}}"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (BESIDE, WITHIN, []),  # paths above or inside a path of today
        (BESIDE, {"beside": "copy user.email into order.user.mail"}, ["mail", "user.name"]),
        (MAILS, OWNED, [""]),  # today's rule would not recognise it as its own
        (MAILS, {"other": WHOLE["mails"]}, []),
        (RANKED, WHOLE, []),  # today the item is a mirror of everything
        (RANKED, MAILS, ["rank"]),
        (RANKED, {"names": RULES["names"]}, [""]),  # the item goes as a whole, and no attribute of it alone
    ],
)
def test_prune_leaves_what_rules_of_today_keep(before, after, expected):
    """Paths of each leftover, and none for a whole item; a second run finds nothing."""
    scene, now = settled(kinds(**before)), kinds(**after)
    assert sorted({paths for _, _, paths in left(scene, now)}) == expected
    assert prune(scene, now) == 0
    assert left(scene, now) == []


def test_prune_of_a_renamed_entity_and_table():
    """Entities and tables by other names, with the same keys in DynamoDB, are the same items."""
    scene = settled(kinds("names", "tags", "mails"))
    text = text_of({name: RULES[name] for name in ("names", "tags", "mails")})
    for old, new in (("user:", "customer:"), ("user.", "customer."), ("mirror: user", "mirror: customer")):
        text = text.replace(old, new)
    now = parse_rules(text.replace("table: shop", "table: store").replace("shop:   {", "store:   {"))
    assert "customer" in now.entities
    assert now.tables["store"].physical_name == "shop"
    assert left(scene, now) == []


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ("count order into user.x", "{count: order, into: user.x, mode: recount}", {"r/B, -]", "r/L/USE", "r/T/USE"}),
        ("{count: order, into: user.x, mode: recount}", "count order into user.x", set()),
        ("min order.total into user.x", "max order.total into user.x", set()),
        ("min order.total into user.x", "sum order.total into user.x", {"r/R/USE"}),
        ("sum order.total into user.x", "{count: order, into: user.x, shards: 2}", {"r/T/USE"}),
        ("count order into user.x", "{derive: user.x, as: '{name}'}", {"r/B, -]", "r/L/USE", "r/T/USE"}),
    ],
)
def test_prune_of_a_rule_that_is_of_another_kind_now(before, after, keys):
    """A rule that changed its kind keeps what the new kind writes; unused ledger entries are removed."""
    scene = settled(kinds(r=before))
    found = {key.partition("[")[2][:7] for _, key, _ in left(scene, kinds(r=after))}
    assert found == keys


def test_prune_of_a_ledger_that_moved():
    """The books in the table that was the ledger are found there, though no rule of today knows it."""
    text = text_of({"spent": RULES["spent"]})
    moved = text.replace("ledger: {name: ledger", "ledger: {name: books")
    scene = settled(parse_rules(text))
    assert {key.partition("[")[0] for _, key, _ in left(scene, parse_rules(moved))} == {"ledger"}


# ---------------------------------------------------------------- what is somebody else's
def test_prune_keeps_the_items_an_application_has_among_mirrors():
    """Prune removes only mirrors that name a source of the dropped rule, not the application's items beside them."""
    scene = settled(kinds("mails"))
    own = scene.there("shop", {"PK": s("EMAIL#own@x"), "SK": s("EMAIL"), "note": s("the application's")})
    assert left(scene, kinds("names")) == [("mails", "shop[EMAIL#a@x, EMAIL]", "")]
    assert prune(scene, kinds("names")) == 0
    assert scene.item(own)["note"] == s("the application's")


def test_prune_keeps_what_roots_carry():
    """Prune removes carried attributes from the items below a root, and keeps them on the root."""
    scene = Scene(kinds(paths="{path: part.path, parent: parent_id, carry: [tenant]}"))
    root = scene.put("parts", part("a") | {"tenant": s("t")})
    child = scene.put("parts", part("b", "a"))
    scene.rest()
    assert scene.item(child)["tenant"] == s("t")
    assert prune(scene, kinds("names")) == 0
    assert scene.item(root) == part("a") | {"tenant": s("t")}
    assert scene.item(child) == part("b", "a")


def test_prune_asks_the_rules_of_today_once_what_they_write(monkeypatch):
    """The time of an item does not depend on the number of current rules: their paths are listed once."""
    asked = []
    nodes = CopyRule.nodes
    monkeypatch.setattr(CopyRule, "nodes", lambda rule: asked.append(rule.name) or nodes(rule))
    scene = settled(kinds("names", "spent"))
    now = kinds("spent", other="copy user.email into order.mail")
    asked.clear()
    assert [key for _, key, _ in left(scene, now)] == ["shop[USER#1, ORDER#a]", "shop[USER#1, ORDER#b]"]
    assert asked == ["other"]


# ---------------------------------------------------------------- removing
def test_prune_never_removes_what_changed_meanwhile():
    """Prune keeps every item and attribute that was changed after it was found, and counts it as left."""
    scene = settled(kinds("spent", "names"))
    found = tuple(leftovers(scene, kinds("tags")))
    scene.there("ledger", {**scene.at("ledger", "spent/T/USER#1", "PROFILE").attributes(), "n": n(99)})
    scene.there("shop", {**order("1", "a", 10), "user_name": s("Eve")})
    remaining = scene.drive(remove(found))
    assert {str(one.key) for one in remaining} == {"ledger[spent/T/USER#1, PROFILE]", "shop[USER#1, ORDER#a]"}
    assert scene.item(scene.at("shop", "USER#1", "ORDER#a"))["user_name"] == s("Eve")
    assert prune(scene, kinds("tags")) == 0


def test_prune_leaves_everything_else_on_an_item():
    """Only the paths of the rule go: maps around them and attributes beside them stay."""
    scene = settled(kinds(deep="copy user.name into order.user.name"))
    at = scene.at("shop", "USER#1", "ORDER#a")
    scene.there("shop", {**scene.item(at), "user": m(name=s("Ada"), own=s("x"))})
    prune(scene, kinds("tags"))
    assert scene.item(at) == {**order("1", "a", 10), "user": m(own=s("x"))}
