"""`sync-rules patterns`: a gate for CI, a matrix for people, a document for programs."""

from __future__ import annotations

import json

import pytest

from sync_rules.cli import main
from tests.extras.design.patterns.test_prove import BASE as MANY

BASE = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {by_status: {status: S, made: S}, by_mail: {email: S}}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}, size: 1.6KB}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}, size: 1KB}
  news: {table: shop, key: {PK: NEWS, SK: "{made}"}, size: 1KB}
rules:
  user-name-on-orders: copy user.name into order.user_name
  user-mail-on-orders: copy user.email into order.user_email
patterns:
  orders-of-user:
    {get: order, by: [user_id], attributes: [user_name, total], rate: 120/s, page: 25, items: 25}
"""


def ran(tmp_path, capsys, text, *options):
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    code = main.main(["patterns", str(file), *options])
    return code, capsys.readouterr()


def test_patterns_that_are_served_pass(tmp_path, capsys):
    """Exit 0; a copy without a reader and an idle index are named, and count with --strict-warnings."""
    code, said = ran(tmp_path, capsys, BASE)
    assert code == 0
    assert "orders-of-user (order by user_id): 1 request, 3.5 read units" in said.out
    assert "no pattern reads what rule user-mail-on-orders keeps" in said.out
    assert "user-name-on-orders" not in said.out
    assert "no pattern and no rule uses index by_mail of table shop" in said.out
    assert "no pattern and no rule uses index by_status of table shop" in said.out
    assert ran(tmp_path, capsys, BASE, "--strict-warnings")[0] == 1


def test_patterns_that_nothing_serves_fail(tmp_path, capsys):
    """Exit 1, with file, line, reason and a cure that is YAML."""
    code, said = ran(tmp_path, capsys, f"{BASE}  by-mail: {{get: order, by: [user_email], one: true}}\n")
    assert code == 1
    assert "rules.yaml:14: no key finds order by user_email" in said.out
    assert "by-user_email: {user_email: S}" in said.out
    assert "2 patterns, 1 served, 1 not served" in said.out
    assert "user-mail-on-orders" not in said.out  # a pattern asks for it, though none serves that yet


READ = "  news: {get: news, order: made desc, items: 4, page: 4, rate: 5000/s}\n"
WRITTEN = "  publish: {put: news, rate: 2500/s}\n"


def test_patterns_find_hot_keys(tmp_path, capsys):
    """A key that is the same for all has all the traffic. For others the report names the share that is too much."""
    more = (
        f"{BASE}{READ}{WRITTEN}  place: {{put: order, rate: 4000/s}}\n  all: {{put: user, rate: 600/s, busiest: 90%}}\n"
    )
    code, said = ran(tmp_path, capsys, more)
    assert code == 0
    assert "HOT: key PK = NEWS of shop takes 2,500 read units" not in said.out
    assert "HOT: key PK = NEWS of shop takes 2,500 write units a second (publish), and a partition 1,000" in said.out
    assert "over 3 shards" in said.out
    assert "a key that has more than 25% of them is hot" in said.out
    assert "HOT: the busiest key of shop takes 1,080 write units" in said.out
    assert ran(tmp_path, capsys, f"{BASE}{READ.replace('5000', '7000')}", "--strict-warnings")[0] == 1
    document = json.loads(ran(tmp_path, capsys, more, "--format", "json")[1].out)
    assert [(one["key"], one["shards"], one["certain"]) for one in document["hot"]] == [
        ("PK = NEWS", 3, True), ("the busiest", 2, True), ("", 4, False),
    ]  # fmt: skip


def test_patterns_are_optional(tmp_path, capsys):
    """A file without any passes, and the line says how to declare one."""
    code, said = ran(tmp_path, capsys, BASE.partition("patterns:")[0])
    assert code == 0
    assert (
        "no access patterns. Declare some, such as patterns: {orders-of-user: {get: order, by: [user_id]}}" in said.out
    )


def test_patterns_as_a_matrix_and_as_a_document(tmp_path, capsys):
    """The guide's matrix, and every part by its name."""
    code, _ = ran(tmp_path, capsys, BASE, "--format", "markdown", "--out", str(tmp_path / "patterns.md"))
    assert code == 0
    head, _, row = (tmp_path / "patterns.md").read_text().splitlines()
    assert head.split(" | ")[1:6] == ["read or write", "finds", "entity", "request", "table or index"]
    assert (
        r"| PK = USER\#{user\_id} and begins\_with(SK, ORDER\#) |  | user\_name, total | eventual | 1 request," in row
    )
    document = json.loads(ran(tmp_path, capsys, BASE, "--format", "json")[1].out)
    (pattern,) = document["patterns"]
    assert pattern["served"] is True
    assert pattern["requests"][0]["read_units"] == 3.5
    assert document["unread"] == ["user-mail-on-orders"]


def test_patterns_show_what_the_file_states_for_people(tmp_path, capsys):
    """Description, priority and peak hours: in lines, in the matrix and in the document, of each form of pattern."""
    stated = "description: 'Newest | first', priority: high, peak_hours: 18-24"
    ones = {
        "get: user, by: [user_id]": ("read", "one"),
        "get: order, by: [user_id], one: true, order: order_id": ("read", "one"),
        "get: order, by: [order_id]": ("read", "many"),  # not served
        "update: user, sets: [name]": ("write", "one"),
    }
    more = "".join(f"  p{at}: {{{one}, {stated}}}\n" for at, one in enumerate(ones))
    _, said = ran(tmp_path, capsys, BASE + more)
    assert said.out.splitlines().count("  Newest | first, high priority, peak 18-24") == 3
    document = json.loads(ran(tmp_path, capsys, BASE + more, "--format", "json")[1].out)
    whole, *rows = [
        [one[key] for key in ("description", "priority", "does", "finds", "peak_hours")] for one in document["patterns"]
    ]
    assert whole == ["", "", "read", "many", ""]
    assert rows == [["Newest | first", "high", *kinds, "18-24"] for kinds in ones.values()]
    _, said = ran(tmp_path, capsys, BASE + more, "--format", "markdown")
    head, _, _, *lines = said.out.splitlines()
    assert head.startswith("| pattern | description | priority | read or write | finds | peak hours | entity |")
    assert all(rf"| p{at} | Newest \| first | high |" in line for at, line in enumerate(lines))


PATTERNS = f"""{MANY}
patterns:
  orders: {{get: order, by: [user_id], returns: [user.name, total, user.email], where: "status == 'OPEN'"}}
  mail: {{get: user, by: [email], one: true, returns: [name]}}
  stores: {{get: store, by: [state, city], returns: [name]}}
  goals: {{graph: goal, from: member, through: membership, neighbours: [member], attributes: [title]}}
  below: {{tree: component, under: ComponentId, attributes: [name]}}
  bad: {{get: order, by: [order_id]}}
"""
KEPT = {
    "orders": {
        ("order.user_name", "user-name-on-orders"), ("order.total", None), ("user.email", None), ("order.status", None),
    },
    "mail": {("user_by_email", "user-by-email"), ("user_by_email.name", "user-by-email")},
    "stores": {("store.state", None), ("store.place", "place"), ("store.name", None)},
    "goals": {("goal.edges", "goal-edges"), ("goal.title", None)},
    "below": {("component.Path", "parts"), ("component.GraphId", "parts"), ("component.name", None)},
    "bad": set(),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_patterns_name_the_rule_that_keeps_each_attribute_of_a_pattern(tmp_path, capsys, name):
    """A copy under the name that the pattern asks for, a key that a rule makes, mirrors, sets, paths."""
    code, said = ran(tmp_path, capsys, PATTERNS, "--pattern", name, "--format", "json")
    (found,) = json.loads(said.out)["patterns"]
    assert found["served"] == (name != "bad") == (code == 0)
    assert {(row["place"], row["rule"]) for row in found["attributes"]} == KEPT[name]
    if name == "orders":
        lines = ran(tmp_path, capsys, PATTERNS, "--pattern", name)[1].out.splitlines()
        assert "  returns user.name = order.user_name: kept by rule user-name-on-orders (copy) from user.name" in lines


def test_patterns_say_which_patterns_there_are(tmp_path, capsys):
    """A name that is none is an error with the known ones."""
    code, said = ran(tmp_path, capsys, PATTERNS, "--pattern", "mial")
    assert code == 2
    assert "no pattern 'mial'" in said.err
    assert "Did you mean 'mail'" in said.err
