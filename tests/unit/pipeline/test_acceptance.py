"""An unaccepted rule beside accepted ones: it alone is parked, and what they do goes on."""

from __future__ import annotations

from sync_rules.language.load import parse_rules
from sync_rules.pipeline.messages import PullMessage
from tests.support.builders import s
from tests.support.worlds import Scene

TEXT = """
tables: {users: {key: {user: S}}, orders: {key: {user: S, order: S}}}
entities: {user: {table: users}, order: {table: orders}}
rules:
"""
RULES = {
    "first": "{copy: user.name, into: order.name, on_delete: delete}",
    "second": "{copy: user.nick, into: order.nick, on_delete: delete}",
    "third": "{copy: user.mail, into: order.mail, on_delete: clear}",
}


def scene_of(*unaccepted: str) -> Scene:
    scene = Scene(parse_rules(TEXT + "".join(f"  {name}: {rule}\n" for name, rule in RULES.items())))
    scene.consumer.unaccepted = lambda: dict.fromkeys(unaccepted, "run it")
    scene.there("users", {"user": s("u"), "name": s("n"), "nick": s("k"), "mail": s("m")})
    scene.there("orders", {"user": s("u"), "order": s("1"), "name": s("n"), "nick": s("k"), "mail": s("m")})
    return scene


def test_unaccepted_rules_that_delete_are_parked_and_the_others_go_on():
    """The copy that an accepted rule clears goes at once; the item stays, as no accepted rule deletes it."""
    scene = scene_of("first", "second")
    scene.memory.delete(scene.at("users", "u"))
    scene.deliver()
    (order,) = scene.memory.items("orders")
    assert order.keys() == {"user", "order", "name", "nick"}
    assert sorted(scene.parked.told) == [("first", "NotAccepted: run it"), ("second", "NotAccepted: run it")]


def test_unaccepted_rule_alters_no_value_that_no_record_explains():
    """A pull by a message knows no old image."""
    scene = scene_of("first")
    scene.there("users", {"user": s("u"), "name": s("new"), "nick": s("k"), "mail": s("m")})
    scene.consumer.handle_message(PullMessage(scene.at("orders", "u", "1")))
    (order,) = scene.memory.items("orders")
    assert order["name"] == s("n")
    assert scene.parked.told == [("first", "NotAccepted: run it")]


def test_unaccepted_rules_follow_what_they_made_themselves():
    """A copy and a mirror that the old image explains follow the rename; a copy of the application's own stays."""
    text = TEXT.replace("}}}", "}}, names: {key: {name: S}}}", 1).replace(
        "order: {table", "named: {table: names}, order: {table"
    )
    rules = parse_rules(f"{text}  copy: {RULES['third']}\n  names: {{mirror: user, into: named, attributes: [mail]}}\n")
    scene = Scene(rules)
    scene.consumer.unaccepted = lambda: dict.fromkeys(rules.rules, "run it")
    scene.put("users", {"user": s("u"), "name": s("n"), "mail": s("m")})
    made, own = (scene.put("orders", {"user": s("u"), "order": s(one), "mail": s(mail)}) for one, mail in ("1m", "2x"))
    scene.rest()
    scene.put("users", {"user": s("u"), "name": s("n"), "mail": s("new")})
    scene.rest()
    assert [scene.item(one)["mail"] for one in (made, own)] == [s("new"), s("x")]
    assert [item["mail"] for item in scene.memory.items("names")] == [s("new")]
