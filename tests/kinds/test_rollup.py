"""Roll-ups, fact by fact: items that rules make, and remove without members; and children in several groups."""

from __future__ import annotations

import pytest

from sync_rules.audit.leftovers import FormerRules
from sync_rules.audit.link_check import sample_links
from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.permissions import STREAM, list_needs
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.model.groups import is_utc_time
from sync_rules.model.values import AttributeValue, Item
from sync_rules.rules.fingerprints import compute_rule_fingerprints
from sync_rules.write.actions import Actions, refuse_kept_attributes
from sync_rules.write.errors import WriteError
from tests.support.builders import n, s
from tests.support.stacked import backfill_of
from tests.support.transacted import Shop
from tests.support.worlds import Scene

RULES = """
tables:
  days: {key: {day: S}, indexes: {by_kind: {kind: S, day: S}}}
  orders: {key: {order_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  day: {table: days, key: {kind: "DAY"}, made_by: rules}
  order: {table: orders}
rules:
  orders: count order into day.orders
  units: sum order.units into day.units
  most: max order.units into day.most
"""
DAY = {"day": s("1"), "kind": s("DAY")}


def order(order_id: str, units: int, day: str = "1") -> Item:
    return {"order_id": s(order_id), "day": s(day), "units": n(units)}


def scene_of(text: str = RULES) -> Scene:
    return Scene(parse_rules(text))


def day_of(scene: Scene) -> Item | None:
    return scene.memory.item(scene.at("days", "1"))


def test_rollup_comes_with_its_first_member_and_goes_with_its_last():
    """The item has its key, the index keys that follow from it, and the numbers; nothing of it stays."""
    scene = scene_of()
    scene.put("orders", order("a", 3), order("b", -3))
    scene.rest()
    assert day_of(scene) == DAY | {"orders": n(2), "units": n(0), "most": n(3)}
    scene.put("orders", order("a", 3, "2"), order("b", -3, "2"))
    scene.rest()
    assert day_of(scene) is None
    assert scene.item(scene.at("days", "2"))["orders"] == n(2)


def test_rollup_with_something_unexpected_stays_and_is_reported():
    """The numbers are 0. Without the attribute the item goes."""
    scene = scene_of()
    scene.put("orders", order("a", 3))
    scene.rest()
    scene.put("days", {**(day_of(scene) or {}), "note": s("mine")})
    scene.put("orders", {"order_id": s("a")})
    scene.rest()
    assert day_of(scene) == DAY | {"orders": n(0), "units": n(0), "note": s("mine")}
    assert scene.parked.told == [("most", "UnexpectedAttribute")]
    scene.put("days", DAY | {"orders": n(0), "units": n(0)})
    scene.rest()
    assert day_of(scene) is None


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("2026-11-27T09:31:33Z", True),
        ("2026-11-27T09:31+00:00", True),
        ("2026-11-27T09:31:33.123456789Z", True),
        ("2026-11-27T09:31:33+01:00", False),
        ("2026-11-31T09:31:33Z", False),
        ("20261127T093133Z", False),
    ],
)
def test_rollup_groups_by_times_in_utc_alone(text, right):
    """Any other text names no group."""
    assert is_utc_time(text) is right


BY_DAY = RULES.replace(
    "count order into day.orders", "{count: order, into: day.orders, link: {day: {first: 10, of: at}}}"
)


def test_rollup_groups_by_a_time_and_reports_one_that_names_no_group():
    """The item does not count; nothing else waits."""
    scene = scene_of(BY_DAY)
    scene.put(
        "orders",
        *({"order_id": s(name), "at": s(at)} for name, at in (("a", "2026-11-27T09:00:00Z"), ("b", "yesterday"))),
    )
    scene.rest()
    assert scene.item(scene.at("days", "2026-11-27"))["orders"] == n(1)
    assert ("orders.ledger", "NotATime") in scene.parked.told


def test_rollup_groups_by_a_time_in_the_key_of_an_item():
    """The time is a part of a key. Another part of the same key makes other groups."""
    at = BY_DAY.replace("order: {table: orders}", "order: {table: orders, key: {order_id: '{at}#{due}'}}")
    scene = scene_of(at)
    scene.put("orders", {"order_id": s("2026-11-27T09:00:00Z#2026-11-28T09:00:00Z")})
    scene.rest()
    assert scene.item(scene.at("days", "2026-11-27"))["orders"] == n(1)
    assert compute_rule_fingerprints(parse_rules(at.replace("of: at", "of: due"))) != compute_rule_fingerprints(
        scene.rules
    )


@pytest.mark.parametrize(
    ("key", "kind", "values", "reasons"),
    [
        ("{day}-{shop}", "S", {"day": s("a-b"), "shop": s("x")}, ["NoParentKey"]),  # the separator is in the value
        ("{day:pad(3)}", "S", {"day": s("1234")}, ["NoParentKey"]),
        ("{day}", "N", {"day": s("seven")}, ["NoParentKey"]),
        ("{day}-{shop}", "S", {"day": s("a")}, []),  # it names no group
        ("{day}-{shop}", "S", {"day": s("a"), "shop": s("")}, []),
    ],
)
def test_rollup_reports_an_item_whose_values_make_no_key(key, kind, values, reasons):
    """Such an item would count nowhere, in silence; one that lacks a field belongs nowhere."""
    tables = f"tables: {{sums: {{key: {{id: {kind}}}}}, orders: {{key: {{order_id: S}}}}, ledger: {{key: {{PK: S, SK: S}}}}}}"
    key = f"key: {{id: '{key}'}}, " if key != "{day}" else ""
    link = "" if key else ", link: {id: day}"
    scene = scene_of(f"""{tables}
entities: {{sum: {{table: sums, {key}made_by: rules}}, order: {{table: orders}}}}
rules: {{n: {{count: order, into: sum.n{link}}}}}
""")
    scene.put("orders", {"order_id": s("a"), **values})
    scene.rest()
    assert [reason for _, reason in scene.parked.told] == reasons


def test_rollup_leaves_an_attribute_that_an_index_shares_with_a_field():
    """Without a template of the entity, the key attribute of an index is the application's own."""
    rules = (
        RULES.replace('key: {kind: "DAY"}, ', "")
        .replace("key: {day: S}, indexes: {by_kind: {kind: S, day: S}}", "key: {id: S}, indexes: {by_day: {day: N}}")
        .replace("table: days, made_by", "table: days, key: {id: 'D#{day}'}, made_by")
    )
    scene = scene_of(rules)
    scene.put("orders", order("a", 3))
    scene.rest()
    (item,) = scene.memory.items("days")
    scene.put("days", {**item, "day": n(331)})
    scene.rest()
    assert [item["day"] for item in scene.memory.items("days")] == [n(331)]
    scene.memory.delete(scene.at("orders", "a"))
    scene.rest()
    assert scene.parked.told == [("most", "UnexpectedAttribute")]


def test_rollup_asks_for_the_permissions_to_make_and_remove():
    """Put and delete on the table of the items, for the stream handler."""
    needs = list_needs(Deployment(parse_rules(RULES)))
    table = {
        need.action
        for need in needs
        if need.function == STREAM and need.rule == "orders" and "days" in str(need.resource).lower()
    }
    assert {"dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:UpdateItem"} <= table


def test_rollup_is_planned_with_what_would_be_made_and_removed():
    """A plan names each item, and counts the values that go."""
    scene = scene_of()
    scene.there("orders", order("a", 3))
    scene.there("days", {"day": s("2"), "orders": n(7)})
    does = []
    plan = Planner(scene.rules, scene.rules.keeper_names, scene.memory, on_write=does.append).run()
    made = {(one.rule, one.does, one.key.values[0][2]) for one in does if one.key.table == "days"}
    assert {("orders", "put", "1"), ("units", "put", "1"), ("orders", "delete", "2")} <= made
    assert plan.rules["orders"].to_write >= 2
    assert {one.value: count for one, count in plan.rules["orders"].alterations.items()}["removed"] == 1


def test_rollup_of_a_removed_rule_is_pruned():
    """The whole item goes with its last rule; one of several rules leaves only its number; foreign attributes stay."""
    before = parse_rules(RULES)
    none = parse_rules(RULES.partition("rules:")[0].replace(", made_by: rules", "") + "rules: {}\n")
    some = parse_rules(RULES.replace("  most: max order.units into day.most\n", ""))
    item = DAY | {"orders": n(1), "most": n(3)}
    table = before.tables["days"]
    (whole,) = FormerRules(before, none).leftovers(table, item)
    assert whole.paths == ()
    (one,) = FormerRules(before, some).leftovers(table, item)
    assert one.paths == (("most",),)
    found = FormerRules(before, none).leftovers(table, item | {"note": s("mine")})
    assert {path for one in found for path in one.paths} == {("orders",), ("most",)}


def test_rollup_is_written_by_nothing_else():
    """`transact` refuses it, and names a rule."""
    rules = parse_rules(RULES)
    own = Actions(rules, raw=True).put("day", DAY)
    with pytest.raises(WriteError, match="are made by rule"):
        refuse_kept_attributes(own, None, rules)


def test_rollup_that_expires_comes_back():
    """Its members are still there; `check` warns of it. With the last member it goes for good."""
    expiry = 'orders: count order into day.orders\n  expiry: {derive: day.expires_at, as: "ttl(day, 9d)"}'
    text = RULES.replace("orders: count order into day.orders", expiry)
    rules, problems = check_rules(text, {})
    assert rules is not None
    assert [one.code for one in problems if one.code == "SR474"] == ["SR474"]
    scene = Scene(rules)
    scene.put("orders", order("a", 3, "2020-01-01"))
    scene.rest()
    made = scene.item(at := scene.at("days", "2020-01-01"))
    assert made["expires_at"] == n(1_577_836_800 + 9 * 86_400)
    scene.memory.delete(at)
    scene.rest()
    assert scene.item(at) == made
    scene.memory.delete(scene.at("orders", "a"))
    scene.rest()
    assert scene.memory.item(at) is None


# ---------------------------------------------------------------- each element of a list
TAGGED = """
tables:
  shop: {key: {PK: S, SK: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  tag: {table: shop, key: {PK: "TAG#{tag:lower}", SK: TAG}, made_by: rules}
  post: {table: shop, key: {PK: "POST#{post_id}", SK: "{lang}"}}
rules:
  posts: {count: post, into: tag.posts, link: {tag: {each: tags}}}
  stars: {mean: post.stars, into: tag.stars, link: {tag: {each: tags}}, shards: 3}
  most: {max: post.stars, into: tag.most, link: {tag: {each: tags}}}
"""


def post(post_id: str, tags: AttributeValue, stars: int = 3) -> Item:
    return {"PK": s(f"POST#{post_id}"), "SK": s("en"), "tags": tags, "stars": n(stars)}


def tags_of(scene: Scene) -> dict[str, tuple[str, ...]]:
    """The numbers of each tag."""
    return {
        item["PK"]["S"][4:]: tuple(item.get(name, {}).get("N", "-") for name in ("posts", "stars", "most"))
        for item in scene.memory.items("shop")
        if item["PK"]["S"].startswith("TAG#")
    }


def texts(*some: str) -> AttributeValue:
    return {"L": [s(one) for one in some]}


def test_child_is_in_the_group_of_each_element():
    """Elements that name the same parent count once, and an element that goes takes its share along."""
    scene = scene_of(TAGGED)
    scene.put("shop", post("1", texts("a", "b", "a", "B")), post("2", {"SS": ["b", "c"]}, 4), post("3", {"L": []}))
    scene.rest()
    assert tags_of(scene) == {"a": ("1", "3", "3"), "b": ("2", "3.5", "4"), "c": ("1", "4", "4")}
    scene.put("shop", post("1", {"L": [n(7), s("c"), s(""), {"NULL": True}]}, 1))
    scene.rest()
    assert tags_of(scene) == {"7": ("1", "1", "1"), "b": ("1", "4", "4"), "c": ("2", "2.5", "4")}
    scene.memory.delete(scene.at("shop", "POST#2", "en"))
    scene.put("shop", post("1", {"NULL": True}))
    scene.rest()
    assert tags_of(scene) == {}
    assert scene.parked.told == []
    assert not [item for item in scene.memory.items("ledger") if "/EL/" in item["PK"]["S"] or "/R/" in item["PK"]["S"]]


EACH, PARTS = "{each: tags}", '{each: tags, separator: "|"}'


@pytest.mark.parametrize(
    ("way", "tags", "reason", "groups"),
    [
        (EACH, texts(*map(str, range(101))), "TooManyGroups", set()),
        (EACH, texts(*map(str, range(100))), "", {str(one) for one in range(100)}),
        (EACH, {"SS": [str(one) for one in range(101)]}, "TooManyGroups", set()),
        (EACH, s("a"), "NotAList", set()),
        (EACH, {"M": {"a": s("a")}}, "NotAList", set()),
        (EACH, {"L": [s("a"), {"M": {}}]}, "NoParentKey", {"a"}),
        (EACH, texts("a", "x" * 2_100), "NoParentKey", {"a"}),
        (EACH, texts("a", "x" * 1_100), "KeyTooLong", {"a"}),  # for the ledger
        (PARTS, s("|".join(map(str, range(101)))), "TooManyGroups", set()),
        (PARTS, s("a||b|a|"), "", {"a", "b"}),
        (PARTS, s("a"), "", {"a"}),
        (PARTS, s(""), "", set()),
        (PARTS, {"NULL": True}, "", set()),
        (PARTS, texts("a"), "NotAText", set()),
        (PARTS, n(7), "NotAText", set()),
    ],
)
def test_child_is_in_the_groups_that_its_elements_or_parts_name(way, tags, reason, groups):
    """The pipeline reports what names no group, with rule and key; empty parts name none. A post leaves its group `before`,
    and its other elements count.
    """
    scene = scene_of(TAGGED.partition("  stars:")[0].replace(EACH, way))
    scene.put("shop", post("1", texts("before") if way == EACH else s("before")))
    scene.rest()
    scene.put("shop", post("1", tags))
    scene.rest()
    assert set(tags_of(scene)) == groups
    assert scene.parked.told == ([("posts.ledger", reason)] if reason else [])
    assert {one.member for one in scene.parked.failures} <= {scene.at("shop", "POST#1", "en")}


CATEGORIES = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {by_parent: {parent_id: S}, by_category: {in_category: S}}}
  ledger: {key: {PK: S, SK: S}}
entities:
  category: {table: shop, key: {PK: "CATEGORY#{category_id}", SK: CATEGORY}}
  product: {table: shop, key: {PK: "PRODUCT#{product_id}", SK: PRODUCT}}
rules:
  paths: {path: category.path, parent: parent_id}
  places: {copy: category.path, into: product.path, link: {category_id: in_category}, on_delete: clear}
  products: {count: product, into: category.products, link: {category_id: {each: path, separator: "|"}}}
  size: {count: category, into: category.size, link: {category_id: {each: path, separator: "|"}}}
"""


def test_child_is_in_the_group_of_each_ancestor():
    """A product counts in its category and in all above; a category that moves takes all below it along."""
    scene = scene_of(CATEGORIES)
    parents = {"a": "", "b": "a", "c": "b", "d": ""}
    categories = {
        one: {"PK": s(f"CATEGORY#{one}"), "SK": s("CATEGORY"), "parent_id": s(up)} for one, up in parents.items()
    }
    scene.put("shop", *({name: v for name, v in one.items() if v != s("")} for one in categories.values()))
    scene.put("shop", *({"PK": s(f"PRODUCT#{i}"), "SK": s("PRODUCT"), "in_category": s(i)} for i in "ccb"))

    def numbers(name: str) -> dict[str, str]:
        rows = (scene.item(scene.at("shop", f"CATEGORY#{one}", "CATEGORY")) for one in "abcd")
        return {row["PK"]["S"][9:]: row[name]["N"] for row in rows}

    scene.rest()
    assert (numbers("products"), numbers("size")) == (
        {"a": "2", "b": "2", "c": "1", "d": "0"}, {"a": "3", "b": "2", "c": "1", "d": "1"},
    )  # fmt: skip
    row = scene.item(scene.at("shop", "CATEGORY#b", "CATEGORY"))
    scene.put("shop", row | {"parent_id": s("d")})
    for _ in range(3):
        scene.rest()
        scene.receive()
    assert (numbers("products"), numbers("size")) == (
        {"a": "0", "b": "2", "c": "1", "d": "2"}, {"a": "1", "b": "2", "c": "1", "d": "3"},
    )  # fmt: skip
    assert scene.parked.told == []


@pytest.mark.parametrize(
    ("before", "after", "items", "names"),
    [
        ("tags", "{each: tags}", [texts("a", "b"), s("a"), texts("c")], "a b c"),
        ("{each: tags}", "tags", [texts("a", "b"), s("a"), texts("c")], "a"),
        ("{each: tags, separator: '|'}", "{each: tags, separator: ','}", [s("a|b,c"), s("a,d")], "a a|b c d"),
    ],
)
def test_backfill_enters_a_rule_whose_groups_have_another_form(before, after, items, names):
    """Entries and totals of before have other keys, or go, so that no number is a mixture of both."""
    scene, other = (
        Scene(parse_rules(TAGGED.replace("link: {tag: {each: tags}}", f"link: {{tag: {way}}}")), complete=way == before)
        for way in (before, after)
    )
    scene.put("shop", *(post(str(number), tags) for number, tags in enumerate(items)))
    scene.rest()
    for table in ("shop", "ledger"):
        other.there(table, *scene.memory.items(table))
    for _ in range(2):
        backfill_of(other).run()
        other.rest()
        assert tags_of(other) == dict.fromkeys(names.split(), ("1", "3", "3"))


@pytest.mark.parametrize(("count", "actions"), [(33, 100), (34, 1)])
def test_transaction_has_room_for_so_many_elements(count, actions):
    """The item, and for each element the entry, the total and the roll-up; more are left to the stream, by name."""
    shop = Shop(parse_rules(TAGGED.partition("  stars:")[0]))
    with shop.transact() as tx:
        tx.put("post", post("1", texts(*map(str, range(count)))))
    assert tx.result.actions == actions
    assert [one.rule for one in tx.result.left] == ([] if actions > 1 else ["posts"])
    shop.rest()
    assert len(tags_of(shop.scene)) == count


def test_books_of_before_each_are_pruned():
    """With the former rules file; no entry, total or mark of today goes."""
    before, now = parse_rules(TAGGED.replace("{each: tags}", "tags")), parse_rules(TAGGED)
    scene, other = Scene(before), Scene(now)
    for one in (scene, other):
        one.put("shop", post("1", s("a") if one is scene else texts("a", "b")))
        one.rest()
    former = FormerRules(before, now)
    found = {item["PK"]["S"]: former.leftovers(before.tables["ledger"], item) for item in scene.memory.items("ledger")}
    gone = {key for key, leftovers in found.items() if leftovers}
    assert gone == {key for key in found if key.split("/")[1] in ("L", "T", "T0", "T1", "T2")}
    assert not [one for item in other.memory.items("ledger") for one in former.leftovers(now.tables["ledger"], item)]


def test_each_leaves_rules_of_before_as_they_were():
    """The key of a child alone names its entry only without `each`."""
    plain = parse_rules(TAGGED.replace("{each: tags}", "tags")).rules["posts.ledger"]
    each = parse_rules(TAGGED).rules["posts.ledger"]
    assert (plain.is_known_by_key(plain.source), each.is_known_by_key(each.source)) == (True, False)
    assert plain.is_known_by_key(plain.target)
    assert each.is_known_by_key(each.target)


def test_link_of_each_element_hits_what_its_elements_name():
    """The sample takes an element in place of the list."""
    scene = scene_of(TAGGED)
    scene.there("shop", *(post(str(number), texts("a")) for number in range(20)))
    assert not sample_links(scene.rules, scene.rules.keeper_names, scene.memory)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("{tag: {each: tags}}}", "{tag: {each: tags}}, mode: recount}", "SR120"),
        ("{tag: {each: tags}}}", "{tag: {each: tags}}, on_delete: delete}", "SR120"),
        ("{tag: {each: tags}}}", "{tags: {each: tags}}}", "SR202"),
        ("{tag: {each: tags}}}", "{tag: {each: [tags]}}}", "SR104"),
        ("{each: tags}", "{each: post_id}", "SR322"),
        ("{each: tags}", "{each: PK}", "SR322"),
        ("SK: TAG, ", "SK: '{lang}', ", ""),
        ("{tag: {each: tags}}}", "{tag: {each: tags}, tag2: {each: tags}}}", "SR120"),
        ("{tag: {each: tags}}}", "{tag: {each: tags, separator: '|'}, tag2: tags}}", "SR120"),
        ("{each: tags}", "{each: post_id, separator: '|'}", "SR322"),
        ("{each: tags}", "{each: tags, separator: ''}", "SR106"),
        ("rules:", "rules:\n  all: {derive: post.tags, as: '{a}'}", "SR322"),
        (
            "{tag: {each: tags}}}",
            "{tag: {each: tags, separator: ','}}}\n  tags: {collect: tag.tag, into: post.tags}",
            "SR322",
        ),
    ],
)
def test_each_is_checked(old, new, code):
    """Nothing lists the items of a group, and one list makes groups."""
    text = TAGGED.partition("  stars:")[0].replace(old, new)
    text = text.replace("SK: TAG, made_by", "SK: '{tag2}', made_by") if "tag2" in new else text
    _, problems = check_rules(text, {})
    assert [one.code for one in problems if one.code < "SR400"][:1] == ([code] if code else [])


MEAN = "write mean: it is rounded to `places` decimal places"


@pytest.mark.parametrize(
    ("old", "new", "code", "cures"),
    [
        ("{each: tags}", "{Each: tags}", "SR104", ["write each: tags"] * 3),
        ("{each: tags}", "{eash: tags}", "SR104", ["write each: tags"] * 3),
        ("{each: tags}", "{FIRST: 10}", "SR104", ["write first: 10"] * 3),
        ("{each: tags}", "{other: tags}", "SR104", ["a link leads to one item"] * 3),
        ("mean: post.stars", "avg: post.stars", "SR112", [MEAN]),
        ("mean: post.stars", "average: post.stars", "SR112", [MEAN]),
    ],
)
def test_word_of_a_group_or_of_other_databases_is_cured(old, new, code, cures):
    """A misspelled word of a group is not a chain of links; an average is called mean."""
    _, problems = check_rules(TAGGED.replace(old, new), {})
    assert [one.cure[: len(cures[0])] for one in problems if one.code == code] == cures


@pytest.mark.parametrize(("text", "sound"), [("b", True), ("a/xb", False), ("/x", False), ("x" * 2_100, False)])
def test_constant_that_makes_no_key_is_refused(text, sound):
    """Such a text holds what follows it in the key, or is too long: no item would ever count."""
    text = (
        TAGGED.partition("  stars:")[0]
        .replace("TAG#{tag:lower}", "TAG#{tag:lower}/x")
        .replace("{each: tags}", f"{{constant: {text}}}")
    )
    rules, problems = check_rules(text, {})
    assert (rules is not None, [one.code for one in problems if one.code == "SR106"]) == (
        sound,
        [] if sound else ["SR106"],
    )
