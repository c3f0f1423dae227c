"""explain: what stands on an item, and where something of an item is; and the files of records that replay reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sync_rules.adapters.memory import MemoryStore
from sync_rules.adapters.state import MemoryState
from sync_rules.audit.compare import Drift
from sync_rules.audit.standings import list_standings
from sync_rules.audit.where_used import find_uses
from sync_rules.cli.commands.explain import item_rows, use_rows
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection, segments
from sync_rules.lab.recording import Header, read
from sync_rules.model.errors import UserError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import NULL_PORTS, World, run_work
from sync_rules.rules.ruleset import Rules
from tests.support.builders import m, s
from tests.support.every_kind import order, part, post, rules_of, user
from tests.support.worlds import Parked, record_of

ADA = {"name": s("Ada"), "rank": s("1"), "email": s("ada@example.org")}


class Shop:
    """A shop in which everything is right."""

    def __init__(self) -> None:
        self.rules: Rules = rules_of()
        self.store = MemoryStore(self.rules.tables)
        self.world = World(self.store, NULL_PORTS, Parked())
        self.ada = self.put("shop", user("1", **ADA))
        self.bob = self.put("shop", user("2", name=s("Bobbity"), rank=s("2"), email=s("bob@example.org")))
        self.order = self.put("shop", order("1", "7", 30))
        self.other = self.put("shop", order("2", "8", 50))
        self.post = self.put("posts", post("p1", "1", "Untold Title"))
        self.root = self.put("parts", part("engine"))
        self.piston = self.put("parts", part("piston", "engine"))
        names = self.rules.keeper_names
        run = BackfillRun(
            Selection(self.rules, names), self.store, Parked(), MemoryState(), {}, supplies=segments(self.rules, 1),
            completes=names,
        )  # fmt: skip
        assert run.run()

    def put(self, table: str, item: Item) -> ItemKey:
        return self.store.put(table, item)

    def item(self, key: ItemKey) -> Item:
        item = self.store.item(key)
        assert item is not None
        return item

    def told(self, key: ItemKey) -> dict[str, Any]:
        """The state that explain gives to an item, by rule."""
        return {
            one.rule.name: one.state for one in run_work(list_standings(key, self.item(key), self.rules), self.world)
        }

    def uses(self, key: ItemKey) -> list[tuple[str, ItemKey]]:
        return [(use.rule.name, use.target) for use in find_uses(key, self.rules, self.store)]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_what_stands_on_an_item_is_right_or_named_by_its_drift(shop):
    """Every rule says `right` of a correct item; a wrong, missing or extra copy is named by its drift."""
    assert set(shop.told(shop.order).values()) == {"right"}
    assert set(shop.told(shop.ada).values()) == {"right"}
    shop.store.update(shop.order, [(("user_name",), s("Nobody"))])
    shop.store.update(shop.ada, removes=[("head",)], adds=[(("orders",), {"SS": ["99"]})])
    assert shop.told(shop.order)["names"] is Drift.WRONG
    told = run_work(list_standings(shop.ada, shop.item(shop.ada), shop.rules), shop.world)
    assert {one.rule.name for one in told if one.state is Drift.MISSING} == {"heads"}
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
        for item in shop.store.items(table.name)
        if text in json.dumps(item)
    }
    assert holding - named - {key} == set()
    assert all(shop.store.item(target) is not None for target in named)


def test_where_used_of_a_counted_item_finds_its_entries_and_the_numbers_it_is_in(shop):
    """An order is in two entries, a rank item, the set and the numbers of its user, and in what is copied from those."""
    found = shop.uses(shop.order)
    rules = {rule for rule, _ in found}
    assert {"counted.ledger", "spent.ledger", "least.ledger", "tags", "counted", "spent", "least", "recounted"} <= rules
    assert ("told", shop.order) in found  # the count comes back to the order as a copy
    assert all(target != shop.bob for _, target in found)


def test_explain_says_which_copies_stand_by_default():
    """A copy that has the value of `default` is right, and it is said why there is no source to it."""
    more = "{copy: [user.name, user.email], into: order.by, default: {email: nowhere}, on_delete: %s}"
    for policy, name, state in (("clear", None, "right"), ("keep", "Ada", "kept")):
        rules = rules_of("names", "tags", effects=False, defaulted=more % policy)
        store = MemoryStore(rules.tables)
        by = m(email=s("nowhere")) if name is None else m(email=s("nowhere"), name=s(name))
        key = store.put("shop", order("9", "1", 5, by=by))
        world = World(store, NULL_PORTS, Parked())
        told = [
            one for one in run_work(list_standings(key, store.item(key), rules), world) if one.rule.name == "defaulted"
        ]
        assert [(one.state, one.reason) for one in told] == [(state, "by default: by.email")]
        assert "by.name, by.email" in "".join(line for _, line in item_rows(key, rules, world))


# ---------------------------------------------------------------- the command
def test_records_in_every_form_are_read_alike(shop, tmp_path):
    """A record alone, an event, lines of records, and a recording with its head."""
    old = shop.item(shop.ada)
    record = record_of(shop.rules, Change(shop.ada, old, {**old, "name": s("Ada King")}))
    forms = {
        "alone.json": json.dumps(record, indent=1),
        "event.json": json.dumps({"Records": [record]}),
        "lines.jsonl": f"{json.dumps(Header().body())}\n{json.dumps(record)}\n\n",
    }
    found = []
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
        found.append([recorded.change for recorded in read(tmp_path / name, shop.rules)])
    assert found[0] == found[1] == found[2]
    assert [change.key for change in found[0]] == [shop.ada]


def test_a_file_that_holds_no_records_is_refused_with_its_line(shop, tmp_path):
    """A line that is not JSON is refused with its file and line."""
    (tmp_path / "bad.jsonl").write_text('{"Records": []}\nnonsense\n')
    with pytest.raises(UserError, match=r"bad.jsonl:2\n  expected JSON"):
        list(read(tmp_path / "bad.jsonl", shop.rules))
    with pytest.raises(UserError, match="expected a recording to read"):
        list(read(tmp_path / "none.json", shop.rules))


def test_no_value_is_told_of_an_item_or_its_uses(shop):
    """`explain` prints names of attributes and keys, but no values."""
    lines = [line for _, line in item_rows(shop.ada, shop.rules, shop.world)]
    lines += [line for _, line in use_rows(shop.ada, shop.rules, shop.world)]
    assert any("user_name" in line for line in lines)
    assert not any("Ada" in line for line in lines)
    assert lines[-1].endswith("items hold a value of shop[USER#1, PROFILE]")
