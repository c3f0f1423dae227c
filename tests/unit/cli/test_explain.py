"""explain: what stands on an item, and where something of an item is."""

from __future__ import annotations

import json

import pytest

from sync_rules.audit.compare import Drift
from sync_rules.audit.standings import Standing, list_standings
from sync_rules.audit.where_used import find_uses
from sync_rules.cli.show.item_rows import list_item_rows, list_use_rows
from sync_rules.model.items import ItemKey
from tests.support.builders import m, s
from tests.support.every_kind import order, part, post, rules_of, user
from tests.support.worlds import Scene

ADA = {"name": s("Ada"), "rank": s("1"), "email": s("ada@example.org")}


class Shop(Scene):
    """A shop where everything is right."""

    def __init__(self) -> None:
        super().__init__(rules_of(effects=False))
        self.ada = self.put("shop", user("1", **ADA))
        self.bob = self.put("shop", user("2", name=s("Bobbity"), rank=s("2"), email=s("bob@example.org")))
        self.order = self.put("shop", order("1", "7", 30))
        self.put("shop", order("2", "8", 50))
        self.post = self.put("posts", post("p1", "1", "Untold Title"))
        self.root = self.put("parts", part("engine"))
        self.piston = self.put("parts", part("piston", "engine"))
        while self.records or self.queue.messages:
            self.rest()
            self.receive()

    def standings(self, key: ItemKey) -> list[Standing]:
        return self.drive(list_standings(key, self.item(key), self.rules))

    def uses(self, key: ItemKey) -> list[tuple[str, ItemKey]]:
        return [(use.rule.name, use.target) for use in find_uses(key, self.rules, self.memory)]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_what_stands_on_an_item_is_right_or_named_by_its_drift(shop):
    """Every rule says `right` of a correct item; a wrong, missing or extra copy is named by its drift."""
    assert {one.state for key in (shop.order, shop.ada) for one in shop.standings(key)} == {"right"}
    shop.memory.update(shop.order, [(("user_name",), s("Nobody"))])
    shop.memory.update(shop.ada, removes=[("head",)], adds=[(("orders",), {"SS": ["99"]})])
    assert {one.rule.name: one.state for one in shop.standings(shop.order)}["names"] is Drift.WRONG
    told = shop.standings(shop.ada)
    assert {one.rule.name: one.reason for one in told if one.state is Drift.MISSING} == {"heads": ""}
    assert [one.element for one in told if one.state in (Drift.EXTRA, Drift.ORPHAN)] == ["99"]


@pytest.mark.parametrize("which", ["ada", "bob", "post", "piston", "root"])
def test_where_used_finds_every_item_that_holds_a_value_of_an_item(shop, which):
    """Looked for in every item of every table, the name, title or id of an item is found in no place that was not
    named; and each place named is there.
    """
    key = getattr(shop, which)
    text = {"ada": "Ada", "bob": "Bobbity", "post": "Untold Title", "piston": "piston", "root": "engine"}[which]
    named = {target for _, target in shop.uses(key)}
    holding = {
        table.key_of(item)
        for table in shop.rules.tables.values()
        for item in shop.memory.items(table.name)
        if text in json.dumps(item)
    }
    assert holding - named - {key} == set()
    assert all(shop.memory.item(target) is not None for target in named)


def test_where_used_of_a_counted_item_finds_its_entries_and_the_numbers_it_is_in(shop):
    """An order is in two entries, a rank item, the set and the numbers of its user, and in what is copied from those."""
    found = shop.uses(shop.order)
    rules = {rule for rule, _ in found}
    assert {"counted.ledger", "spent.ledger", "least.ledger", "tags", "counted", "spent", "least", "recounted"} <= rules
    assert ("told", shop.order) in found  # the count comes back to the order as a copy
    assert all(target != shop.bob for _, target in found)


def test_where_used_names_the_rules_whose_items_nothing_lists():
    """A user may stand on any order, which no index lists by its buyer; an order stands on no user."""
    snapshot = "{copy: user.name, into: order.seller, mode: snapshot, link: {user_id: seller_id}}"
    scene = Scene(rules_of("names", effects=False, sold=snapshot))
    told = [
        [line for _, line in list_use_rows(scene.at("shop", "USER#1", sort), scene.rules, scene.world)]
        for sort in ("PROFILE", "ORDER#1")
    ]
    unlisted = "perhaps on items of order, which nothing lists · rule sold"
    assert [unlisted in lines for lines in told] == [True, False]


def test_explain_says_which_copies_stand_by_default():
    """A copy that has the value of `default` is right, and explain says why it has no source."""
    more = "{copy: [user.name, user.email], into: order.by, default: {email: nowhere}, on_delete: %s}"
    for policy, name, state in (("clear", None, "right"), ("keep", "Ada", "kept")):
        scene = Scene(rules_of("names", "tags", effects=False, defaulted=more % policy))
        by = m(email=s("nowhere")) if name is None else m(email=s("nowhere"), name=s(name))
        key = scene.put("shop", order("9", "1", 5, by=by))
        found = scene.drive(list_standings(key, scene.item(key), scene.rules))
        told = [(one.state, one.reason) for one in found if one.rule.name == "defaulted"]
        assert told == [(state, "by default: by.email")]
        assert "by.name, by.email" in "".join(line for _, line in list_item_rows(key, scene.rules, scene.world))
