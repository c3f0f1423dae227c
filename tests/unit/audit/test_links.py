"""The sample of links: a link that hits nothing and an attribute that no item has are found, a late parent is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.audit import link_check as links
from sync_rules.audit.link_check import LinkFinding, sample_links
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.pipeline.requests import Read, Scan
from tests.support import every_kind
from tests.support.builders import n, s
from tests.support.every_kind import order, part, post, user
from tests.support.worlds import Scene

HEAD = """
tables:
  users: {key: {user_id: S}}
  orders: {key: {order_id: S}, indexes: {by_user: {user_id: S}, by_buyer: {buyer: S}}}
  ledger: {key: {PK: S, SK: S}}
entities: {user: {table: users}, order: {table: orders}}
rules:
"""
COPY = "  names: copy user.name into order.user_name\n"
COUNT = "  orders: count order into user.orders\n"


def scene_of(rules: str, head: str = HEAD) -> Scene:
    return Scene(parse_rules(head + rules))


def found(scene: Scene) -> list[LinkFinding]:
    return [one for one in sample_links(scene.rules, scene.rules.rules, scene.tap) if one.stops]


def orders(count: int, **values: str) -> list[dict]:
    return [
        {"order_id": s(f"o{i}"), **{name: s(text.format(i=i)) for name, text in values.items()}} for i in range(count)
    ]


def users(count: int, user_id: str = "u{i}") -> list[dict]:
    return [{"user_id": s(user_id.format(i=i)), "name": s("SECRET")} for i in range(count)]


# ---------------------------------------------------------------- healthy projects
HEALTHY = {
    "all orders name one user that does not exist yet, beside one that does": (COPY, {"user_id": "late"}),
    "a default says that the attribute may be missing": (
        "  plans: {copy: user.plan, into: order.plan, default: free}\n",
        {"user_id": "u{i}"},
    ),
    "a default of a field of an embed": (
        "  lines: {embed: order, into: user.lines, fields: [note], default: {note: none}, limit: {items: 9}}\n",
        {"user_id": "u{i}"},
    ),
    "the rule leaves out the items that lack its link": (
        "  r: {count: order, into: user.open, where: \"state == 'OPEN'\"}\n",
        {"state": "DRAFT"},
    ),
    "a copy of a copy, and a link by a derived attribute, come with the first writes": (
        """
  code: {derive: user.code, as: "{name:upper}"}
  codes: copy user.code into order.user_code
  buyer: {derive: order.buyer, as: "{user_id}"}
  by-buyer: {count: order, into: user.bought, link: {user_id: buyer}}
""",
        {"user_id": "u{i}"},
    ),
}


@pytest.mark.parametrize("why", HEALTHY)
def test_links_of_healthy_projects_stop_nothing(why):
    """They may be children that came first, or a rule that has nothing to do yet."""
    rules, values = HEALTHY[why]
    scene = scene_of(rules)
    scene.there("users", *users(9 if "late" not in values.values() else 1))
    scene.there("orders", *orders(9, **values))
    assert found(scene) == []


# ---------------------------------------------------------------- key templates that match nothing
def test_links_of_an_entity_whose_template_matches_no_item_are_named():
    """Items of no entity, and none of the rule's: a notice names table, entity and the key template to compare."""
    head = """
tables: {shop: {key: {PK: S, SK: S}}}
entities:
  user: {table: shop, key: {PK: "USR#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USR#{user_id}", SK: "ORDER#{order_id}"}}
rules:
"""
    scene = scene_of(COPY, head)
    items = [{"PK": s("USER#1"), "SK": s(f"ORDER#{i}")} for i in range(links.ENOUGH_ITEMS)]
    scene.there("shop", *items[1:])
    assert [*sample_links(scene.rules, scene.rules.rules, scene.tap)] == []
    scene.there("shop", items[0])
    two = sample_links(scene.rules, scene.rules.rules, scene.tap)
    assert [(one.stops, one.found) for one in two] == [
        (False, f"no sampled item of table shop is a {name}; 5 match no entity") for name in ("order", "user")
    ]
    assert two[0].cure == "compare entities.order.key with the keys of these items"


# ---------------------------------------------------------------- links that hit nothing
@pytest.mark.parametrize("rule", [COPY, COUNT])
def test_links_that_no_item_has_are_found_with_the_attribute_that_hits(rule):
    """All items lack the link, and another attribute names the sources: the cure is a link that works as written."""
    scene = scene_of(rule)
    scene.there("users", *users(3))
    closer = dict.fromkeys(("user_id1", "user_ids", "user_idx"), "x")  # names that are closer, and hit nothing
    scene.there("orders", *orders(2, buyer="u{i}", note="x", **closer))
    (one,) = found(scene)
    assert one.found == "2 of 2 sampled order items point to no user: link user_id; none has user_id"
    assert one.cure == "write link: {user_id: buyer}"
    kind = {COPY: "copy: user.name, into: order.user_name", COUNT: "count: order, into: user.orders"}[rule]
    cured = scene_of(f"  r: {{{kind}, {one.cure.removeprefix('write ')}}}\n")
    cured.there("users", *users(3))
    cured.there("orders", *orders(2, buyer="u{i}"))
    assert found(cured) == []


def test_links_that_name_what_does_not_exist_are_found():
    """All of enough items name sources that are not there, though others are."""
    scene = scene_of(COPY)
    scene.there("users", *users(3))
    scene.there("orders", *orders(links.ENOUGH_ITEMS, user_id="gone-{i}"))
    (one,) = found(scene)
    assert one.found.endswith("link user_id; 5 of 5 name a user that does not exist")
    assert "gone" not in one.text


@pytest.mark.parametrize(
    ("theirs", "ours", "words"),
    [
        ("cust-a{i}", "Cust-A{i}", "exist in lower case: "),
        ("CUST-A{i}", "Cust-A{i}", "exist in upper case: "),
        ("Cust-A{i}", "cust-a{i}", "exist in another case: write them in one case on user and order"),
    ],
)
def test_links_in_another_case_are_found(theirs, ours, words):
    """Ids that differ from those of the sources in their case alone, whichever side has which. `check` accepts the derive
    rule and the link of the cure.
    """
    scene = scene_of(COUNT)
    scene.there("users", *users(2, theirs))
    scene.there("orders", *orders(2, user_id=ours))
    (one,) = found(scene)
    assert words in one.cure
    derive, _, link = one.cure.partition("add a rule ")[2].partition(", and ")
    if derive:
        rules, problems = check_rules(f"{HEAD}  d: {derive}\n  r: {{count: order, into: user.orders, {link}}}\n")
        assert rules is not None, problems
    else:
        assert "another case" in words


# ---------------------------------------------------------------- attributes that no item has


SUM = "  spent: sum order.total into user.spent\n"


@pytest.mark.parametrize(
    ("rule", "there", "lost"),
    [
        ("  mails: copy user.email into order.user_email\n", {}, ""),
        ("  mails: copy user.email into order.user_email\n", {"order": "user_email"}, "order.user_email"),
        ("  mails: {copy: [user.name, user.email], into: order.by}\n", {"order": "by"}, ""),
        ("  mails: {copy: [user.name, user.email], into: order}\n", {"order": "name"}, ""),
        (SUM, {}, ""),
        (SUM, {"user": "spent"}, "user.spent"),
    ],
)
def test_attributes_that_are_not_there_yet_stop_only_a_rule_that_would_remove_values(rule, there, lost):
    """An attribute without a close name may be new: a notice names it, unless copies or totals by hand are at stake."""
    scene = scene_of(rule)
    for of, some in (("user", users(6)), ("order", orders(6, user_id="u{i}"))):
        scene.there(f"{of}s", *({**one, **({there[of]: n(1)} if of in there else {})} for one in some))
    (one,) = sample_links(scene.rules, scene.rules.rules, scene.tap)
    assert one.stops is bool(lost)
    assert "have no attribute" in one.found
    assert (f", and {lost} holds values that the rule would not make" in one.found) is bool(lost)


CONDITIONS = {
    "count": "  r: {{count: order, into: user.orders, where: \"{} == 'PAID'\"}}\n",
    "copy": "  r: {{copy: user.name, into: order.user_name, where: \"{} == 'PAID'\"}}\n",
    "copy of a source": "  r: {{copy: user.name, into: order.user_name, where: \"user.{} == 'PAID'\"}}\n",
    "embed": "  r: {{embed: order, into: user.lines, where: \"{} == 'PAID'\", limit: {{items: 9}}}}\n",
    "collect": "  r: {{collect: order.name, into: user.names, where: \"{} == 'PAID'\", limit: 9}}\n",
}


@pytest.mark.parametrize("kind", CONDITIONS)
@pytest.mark.parametrize("negated", [False, True])
def test_conditions_on_attributes_that_no_item_has_are_named(kind, negated):
    """A typo in `where` leaves out every item, or none: a close name stops the rule, any other is a notice."""

    def judged(attribute: str) -> list[LinkFinding]:
        rule = CONDITIONS[kind].format(attribute)
        scene = scene_of(rule.replace("== 'PAID'", "!= 'PAID'") if negated else rule)
        more = {"name": s("x"), "status": s("PAID")}
        scene.there("users", *({**one, **more} for one in users(6)))
        scene.there("orders", *({**one, **more} for one in orders(6, user_id="u{i}")))
        return list(sample_links(scene.rules, scene.rules.rules, scene.tap))

    entity = "user" if kind == "copy of a source" else "order"
    (one,) = judged("staus")
    assert (one.stops, one.cure) == (True, "write status in place of staus")
    assert one.found == f"6 of 6 sampled {entity} items have no attribute staus (closest: status)"
    (one,) = judged("colour")
    assert (one.stops, one.found) == (False, f"6 of 6 sampled {entity} items have no attribute colour")
    assert judged("status") == []


@pytest.mark.parametrize(("kind", "attribute"), [("count", "orders"), ("embed", "lines"), ("collect", "names")])
@pytest.mark.parametrize(("operator", "stops"), [("==", True), ("!=", False)])
def test_condition_that_no_item_meets_stops_a_rule_that_would_remove_values(kind, attribute, operator, stops):
    """Values by hand are at stake if the condition leaves out every item, and not if it leaves out none."""
    scene = scene_of(CONDITIONS[kind].format("colour").replace("==", operator))
    scene.there("users", *({**one, attribute: n(6)} for one in users(6)))
    scene.there("orders", *orders(6, user_id="u{i}", name="x"))
    (one,) = sample_links(scene.rules, scene.rules.rules, scene.tap)
    assert (one.stops, f"user.{attribute} holds values" in one.found) == (stops, stops)


# ---------------------------------------------------------------- what is not judged
@given(hits=st.integers(0, 3), misses=st.integers(0, 9), lacking=st.integers(0, 9), strangers=st.integers(0, 3))
def test_children_before_their_parents_never_stop(hits, misses, lacking, strangers):
    """A rule is stopped only if at least `ENOUGH_ITEMS` items are there, none of them names a source that is, and
    there are sources at all.
    """
    scene = scene_of(COPY + COUNT)
    if hits + strangers:
        scene.there("users", *users(hits), *users(strangers, "stranger-{i}"))
    rows = [{"user_id": s(f"u{i}")} for i in range(hits)]
    rows += [{"user_id": s(f"late-{i}")} for i in range(misses)] + [{}] * lacking
    if rows:
        scene.there("orders", *({"order_id": s(f"o{i}"), **row} for i, row in enumerate(rows)))
    stopped = not hits and strangers > 0 and misses + lacking >= links.ENOUGH_ITEMS
    assert bool(found(scene)) == stopped
    assert not any("late" in one.text or "SECRET" in one.text for one in found(scene))


def test_links_to_an_empty_table_cannot_be_judged():
    """Children whose parents are all to come stop nothing, and the finding says why the sample says nothing."""
    scene = scene_of(COUNT)
    scene.there("orders", *orders(9, user_id="u{i}"))
    (one,) = sample_links(scene.rules, scene.rules.rules, scene.tap)
    assert (one.stops, one.found) == (False, "the sample has no user item, so it cannot judge link user_id")


def test_every_kind_at_rest_is_no_finding():
    """No kind of rule is accused where items name what exists."""
    scene = Scene(every_kind.rules_of())
    scene.put("shop", *(order("1", f"o{i}", i, title=s("x")) for i in range(6)))
    scene.put("shop", user("1", name=s("Ada"), rank=n(1), email=s("a@x")))
    scene.put("posts", *(post(f"p{i}", "1", "Hello") for i in range(6)))
    scene.put("parts", part("a"), *(part(f"b{i}", "a") for i in range(6)))
    assert found(scene) == []


# ---------------------------------------------------------------- what it costs
def test_a_sample_reads_a_bounded_number_of_items(monkeypatch):
    """However large the tables, a table costs a number of pages, and the items named are those of the sample."""
    monkeypatch.setattr(links, "SAMPLE_PAGE_ITEMS", 2)
    scene = scene_of(COPY + COUNT)
    scene.there("users", *users(60))
    scene.there("orders", *orders(300, user_id="u1"))
    assert found(scene) == []
    pages = scene.tap.seen(Scan)
    assert len(pages) <= 2 * links.SAMPLE_MAX_PAGES
    assert len({page.segment for page in pages}) == links.SAMPLE_SEGMENTS
    assert sum(len(read.keys) for read in scene.tap.seen(Read)) <= 2 * links.SAMPLE_ITEMS
    assert scene.tap.writes == []
