"""Rules of each kind found in data that follow them, with a fault planted in each."""

from __future__ import annotations

import random
from collections import Counter

from sync_rules.extras.discover.propose import number_search
from sync_rules.extras.discover.propose.proposal_writer import write_proposal
from sync_rules.extras.discover.propose.search import propose
from sync_rules.language.load import check_rules
from sync_rules.language.problems import errors
from tests.support.gathering import PlainTable, gathered

STATES = ("OPEN", "SENT", "CANCELLED")


def active(found):
    assert not errors(check_rules(write_proposal(found), {})[1])
    return {one.name: one for one in found.rules if one.held_back is None}


def shop():
    rand = random.Random(3)
    users = [{"PK": f"USER#{n}", "SK": "PROFILE", "name": f"N{rand.random()}"} for n in range(80)]
    orders = []
    for n in range(500):
        user, made = rand.choice(users), f"2024-{rand.randint(1, 12):02}-{rand.randint(1, 28):02}"
        orders.append({
            "PK": user["PK"], "SK": f"ORDER#{n:05}", "status": rand.choice(STATES), "total": rand.randint(1, 900),
            "made": made, "noise": rand.randint(1, 9),
        })  # fmt: skip
    for user in users:
        own = [one for one in orders if one["PK"] == user["PK"]]
        user |= {
            "orders": len(own), "open": sum(one["status"] == "OPEN" for one in own),
            "spent": sum(one["total"] for one in own if one["status"] != "CANCELLED"),
            "largest": max((one["total"] for one in own), default=0),
            "states": {one["status"] for one in own}, "by_state": dict(Counter(one["status"] for one in own)),
            "lines": {one["SK"][6:]: {"total": one["total"], "state": one["status"]} for one in own},
            "last": [{"made": one["made"], "total": one["total"]} for one in sorted(own, key=lambda o: o["SK"])[::-1][:3]],
        }  # fmt: skip
        if not own:
            del user["largest"], user["states"]
    for order in orders:
        order["month"] = order["made"][:7]
        order["key"] = f"{order['status'].lower()}#{order['total']:06}"
    users[3]["open"] += 1
    users[4]["lines"] = {}
    orders[5]["month"] = "1999-01"
    return PlainTable("shop", {"PK": "S", "SK": "S"}, [*users, *orders])


def test_kinds_are_found_in_a_table_of_several_entities(tmp_path):
    """Counters with conditions, a map, a list, a set, a map of counts and two formulas; each fault is counted."""
    rules = active(propose(gathered(tmp_path / "in", shop()), tmp_path / "work"))
    by_attribute = {str(one.rule.get("into", one.rule.get("derive"))): one for one in rules.values()}
    assert {attribute: (one.kind, one.differ) for attribute, one in by_attribute.items()} == {
        "user.orders": ("count", 0), "user.open": ("count", 1), "user.spent": ("sum", 0), "user.largest": ("max", 0),
        "user.states": ("collect", 0), "user.by_state": ("count", 0), "user.lines": ("embed", 1),
        "user.last": ("embed", 0), "order.month": ("derive", 1), "order.key": ("derive", 0),
    }  # fmt: skip
    assert by_attribute["user.open"].rule["where"] == "status == 'OPEN'"
    assert by_attribute["user.spent"].rule["where"] == "status != 'CANCELLED'"
    assert by_attribute["user.by_state"].rule["per"] == "status"
    assert by_attribute["user.open"].examples[0] == "user 3"


def test_kinds_mirrors_of_elements_and_joined_texts(tmp_path):
    """A post under each of its tags, an edge both ways round, and a text of the names of all that commented."""
    rand = random.Random(9)
    tags = ["red", "blue", "green", "news", "sport", "art"]
    posts = [
        {
            "PK": f"POST#{n}",
            "SK": "POST",
            "title": f"T{rand.random()}",
            "tags": set(rand.sample(tags, rand.randint(1, 3))),
        }
        for n in range(80)
    ]
    tagged = [{"PK": f"TAG#{tag}", "SK": post["PK"], "title": post["title"]} for post in posts for tag in post["tags"]]
    said = [
        {"PK": rand.choice(posts)["PK"], "SK": f"COMMENT#{n:04}", "who": f"W{rand.randint(0, 50)}"} for n in range(250)
    ]
    for post in posts:
        own = [one["who"] for one in said if one["PK"] == post["PK"]]
        if own:
            post["voices"] = ", ".join(own)
    tagged[5]["title"] = next(one["title"] for one in posts if one["title"] != tagged[5]["title"])
    pairs = [(a, b) for a in range(30) for b in rand.sample(range(30), 4) if a != b]
    edges = [{"PK": f"USER#{a}", "SK": f"FOLLOWS#{b}", "since": f"2024-0{1 + (a * b) % 9}-01"} for a, b in pairs]
    back = [
        {"PK": f"USER#{b}", "SK": f"FOLLOWER#{a}", "since": one["since"]}
        for (a, b), one in zip(pairs, edges, strict=True)
    ]
    table = PlainTable("blog", {"PK": "S", "SK": "S"}, [*posts, *tagged, *said, *edges, *back])
    rules = active(propose(gathered(tmp_path / "in", table), tmp_path / "work"))
    assert {(one.kind, one.target, one.differ) for one in rules.values()} >= {
        ("mirror", "tag_post", 1),
        ("collect", "post", 0),
    }
    assert sum(one.kind == "mirror" for one in rules.values()) == 2
    (each,) = [one.rule["each"] for one in rules.values() if "each" in one.rule]
    assert each == {"tag_id": "tags"}
    (voices,) = [one.rule for one in rules.values() if one.kind == "collect"]
    assert (voices["join"], voices["order"]) == (", ", "comment_id")
    assert len(rules) == 3


def test_kinds_a_price_is_no_least_of_what_it_was(tmp_path):
    """Lines hold the price of their time. Where it never fell since, the price is their least: that says nothing."""
    rand = random.Random(7)
    goods = [{"gid": f"g{number:03}", "price": 1000 + 37 * number} for number in range(60)]
    lines = []
    for number in range(1500):
        good = goods[number % 60]
        place = number % 60
        changed = rand.random() < 0.5 and place < 36
        before = good["price"] + (50 if place < 25 else -50)
        lines.append(
            {"lid": f"l{rand.getrandbits(60):x}", "gid": good["gid"], "unit": before if changed else good["price"]}
        )
    tables = [PlainTable("goods", {"gid": "S"}, goods), PlainTable("lines", {"lid": "S"}, lines)]
    found = propose(gathered(tmp_path / "in", *tables), tmp_path / "work")
    assert not [one for one in found.rules if one.kind in ("min", "max") and one.held_back is None]


def test_kinds_look_once_at_each_amount_of_a_link(tmp_path, monkeypatch):
    """No condition repeats the question if the amounts of a parent's children differ."""
    looks: Counter[tuple[int, int]] = Counter()
    inner = number_search._NumberSearch._differs

    def count_look(search, place):
        looks[id(search.all), place] += 1
        kept.append(search)
        return inner(search, place)

    kept: list[object] = []
    monkeypatch.setattr(number_search._NumberSearch, "_differs", count_look)
    propose(gathered(tmp_path / "in", shop()), tmp_path / "work")
    assert set(looks.values()) == {1}
