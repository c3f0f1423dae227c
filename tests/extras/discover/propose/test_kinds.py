"""Rules of each kind found in data that follow them, with a fault planted in each."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from sync_rules.extras.discover.propose import number_search
from sync_rules.extras.discover.propose.group_shapes import GroupShapes
from sync_rules.extras.discover.propose.proposal_writer import write_proposal
from sync_rules.extras.discover.propose.search import propose
from sync_rules.language.load import check_rules
from sync_rules.language.problems import list_errors
from tests.extras.discover.propose.traps import RIGHT, mean, owned
from tests.support.gathering import PlainTable, gathered


def active(found):
    assert not list_errors(check_rules(write_proposal(found), {})[1])
    return {one.name: one for one in found.rules if one.held_back is None}


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


@pytest.mark.parametrize(
    ("factor", "places", "why"),
    [(1, 12, "average_price has 12 decimal places, and propose compares 10: check it"),
     (10**15, 2, "some totals are beyond 1e+17, and propose does not compare these: check it")],
    ids=["places", "totals"],
)  # fmt: skip
def test_kinds_give_the_reason_for_a_mean_that_is_not_compared(tmp_path, factor, places, why):
    """Statements compare 10 decimal places, and totals up to 10^17: a mean with more is a comment that says so."""
    build = owned(
        "average_price", "price", lambda words, amounts: mean(amounts, places), low=5 * factor, high=900 * factor
    )
    found = propose(gathered(tmp_path / "in", *build("beyond").tables), tmp_path / "work")
    (rule,) = [one for one in found.rules if one.kind == "mean"]
    assert rule.held_back == why
    assert rule.rule.get("places", 2) == places
    assert rule.agree == rule.checked


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
    propose(gathered(tmp_path / "in", *RIGHT["counters, sums, means and mosts"]("looks").tables), tmp_path / "work")
    assert set(looks.values()) == {1}


def test_kinds_try_no_condition_on_what_children_only_copy(tmp_path, monkeypatch):
    """A name that its children copy is not made of them: no condition is tried on them, though a number of theirs may be
    a part of the name.
    """
    rand = random.Random(5)
    users = [{"uid": f"u{rand.getrandbits(60):x}", "name": f"User {number:03}"} for number in range(40)]
    orders = [
        {
            "oid": f"o{rand.getrandbits(60):x}", "uid": user["uid"], "user_name": user["name"], "units": number,
            "status": rand.choice(["OPEN", "SENT", "DONE"]),
        }
        for user in users for number in range(100, 140)
    ]  # fmt: skip
    tries: Counter[str] = Counter()
    inner = GroupShapes.of

    def count_try(shapes, column, sample):
        tries[column.path] += 1
        return inner(shapes, column, sample)

    monkeypatch.setattr(GroupShapes, "of", count_try)
    tables = [PlainTable("users", {"uid": "S"}, users), PlainTable("orders", {"oid": "S"}, orders)]
    propose(gathered(tmp_path / "in", *tables), tmp_path / "work")
    assert tries["name"] == 1
