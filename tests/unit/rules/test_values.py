"""Values of children: an item for each child in the ledger, and a set, a list or a text made of these items."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.items import Change
from sync_rules.pipeline.failure_records import format_key
from sync_rules.pipeline.requests import List
from sync_rules.rules.kinds.values import ValueRule, ValuesRule
from sync_rules.rules.ledger import format_text_rank
from sync_rules.rules.rule import Blocked
from tests.support.builders import key, n, s
from tests.support.ledgers import COUNTS, LINK, ORDER, TABLES, USER, USERS, key_of, ledger, order

MADE = ledger()
TAG, AT, TAGS = ("tag",), ("at",), ("tags",)
PROFILE = {"user_id": s("u")}


def kept(**options):
    given = {"of": TAG, "order": options.get("of", TAG), "ranked": False, "numbers": False, "link": LINK}
    return ValueRule("spent.ledger", ORDER, MADE.ranks, parent=USER, marks=MADE.marks, **{**given, **options})


def shown(**options):
    given = {"find": MADE.find, "into": TAGS, "link": MADE.link, "shape": "list"}
    return ValuesRule("spent", MADE.ranks, USER, **{**given, **options})


def item_of(child, rule=None):
    """The ledger item of a child; None for a child that has none."""
    rule = rule or kept()
    parts = list(rule.parts(Change(key_of(child), None, child), ORDER))
    writes = [rule.write_for(part, None, child) for part in parts]
    return writes[0].actions[-1].item if writes else None


def blocked(child, rule=None):
    rule = rule or kept()
    (part,) = rule.parts(Change(key_of(child), None, child), ORDER)
    return rule.write_for(part, None, child)


# ---------------------------------------------------------------- what is shown
VALUES = st.one_of(
    st.sampled_from(["a", "b", "B", "é", "ab", ""]).map(s), st.sampled_from(["1", "2.50", "-3", "10"]).map(n)
)
CHILDREN = st.lists(st.fixed_dictionaries({}, optional={"tag": VALUES, "at": VALUES}), max_size=7)
OPTIONS = st.fixed_dictionaries(
    {
        "shape": st.sampled_from(["set", "list", "text"]),
        "distinct": st.booleans(),
        "descending": st.booleans(),
        "max_items": st.sampled_from([None, 1, 2, 5]),
    }
)


def plainly(children, by, options):
    """The same by sorting the children."""

    def order(child):
        value = child.get(by)
        if value is None:
            return (0,)
        return (1, Decimal(value["N"])) if "N" in value else (2, value["S"])

    found = sorted(
        (order(child), child["order_id"]["S"], child["tag"]) for child in children if child.get("tag", s("")) != s("")
    )
    values = [{"N": f"{Decimal(value['N']).normalize():f}"} if "N" in value else value for _, _, value in found]
    values = values[::-1] if options["descending"] else values
    texts = [str(*value.values()) for value in values]
    shown = values if options["shape"] == "list" else texts
    if options["distinct"] or options["shape"] == "set":
        shown = [one for place, one in enumerate(shown) if one not in shown[:place]]
    shown = shown[: options["max_items"]]
    if options["shape"] == "list":
        return {"L": shown}
    return None if not shown else {"SS": shown} if options["shape"] == "set" else s(", ".join(shown))


@settings(deadline=None, max_examples=200)
@given(CHILDREN, st.sampled_from([TAG, AT]), OPTIONS, st.booleans())
def test_values_are_the_sorted_children(children, by, options, ranked):
    """A set, a list and a text are what sorting the children makes of them, with duplicates and without, first and last;
    of a list whose keys are in order no more is listed than is shown.
    """
    options = {**options, "distinct": options["distinct"] or options["shape"] == "set"}
    ranked = ranked and options["max_items"] is not None and not options["distinct"]
    rule, values = kept(order=by, ranked=ranked), shown(join=", ", ranked=ranked, **options)
    store = MemoryStore(TABLES)
    named = [order(f"o{place}", "u", **child) for place, child in enumerate(children)]
    for item in filter(None, (item_of(child, rule) for child in named)):
        store.put("counts", item)
    members = values.members(key(USERS, "u"), PROFILE)
    limit = members.max_items if members.enough else 1000
    page = store.list(List("counts", None, members.conditions, limit, None, members.backward))
    assert members.enough == ranked
    assert values.compute_values(page.items[::-1], PROFILE) == {TAGS: plainly(named, by[0], options)}


@settings(deadline=None, max_examples=100)
@given(CHILDREN, st.sampled_from(["list", "map"]), st.booleans(), st.booleans())
def test_fields_are_those_of_the_first_children(children, shape, descending, ranked):
    """A map holds the fields of the first child in order, a list those of the first two; a missing field is left out,
    and fields may have any type. Equal orders are sorted by the children's keys.
    """
    rule = kept(of=None, fields=((TAG, "text"), (("more",), "more")), order=AT, ranked=ranked)
    options = {"shape": shape, "max_items": 1 if shape == "map" else 2, "descending": descending, "ranked": ranked}
    values, store = shown(**options), MemoryStore(TABLES)
    more = {"M": {"deep": {"BOOL": True}}}
    named = [order(f"o{place}", "u", more=more, **child) for place, child in enumerate(children)]
    for child in named:
        store.put("counts", item_of(child, rule))
    members = values.members(key(USERS, "u"), PROFILE)
    page = store.list(List("counts", None, members.conditions, 1000, None, members.backward))
    numbered = [{**child, "tag": s(f"{place}")} for place, child in enumerate(named)]
    places = plainly(numbered, "at", {"shape": "list", "distinct": False, "descending": descending, "max_items": None})
    first = [named[int(place["S"])] for place in places["L"]][: options["max_items"]]
    maps = [{"M": {"text": child["tag"], "more": more} if "tag" in child else {"more": more}} for child in first]
    expected = {"L": maps} if shape == "list" else maps[0] if maps else None
    assert values.compute_values(page.items, PROFILE) == {TAGS: expected}


@pytest.mark.parametrize("held", [n(1), {"L": []}, {"L": [s("")]}, {"L": [{"NULL": True}]}, {"L": [s("a"), {"M": {}}]}, {"L": [s("a")] * 3}, None])  # fmt: skip
def test_values_are_not_made_of_what_nobody_can_read(held):
    """An item that something else wrote stops the whole, and is named."""
    item = item_of(order("a", "u", tag=s("x")))
    broken = {name: value for name, value in {**item, "n": held}.items() if value is not None}
    assert shown().compute_values([broken, item], PROFILE) == Blocked("EntryBroken", member=COUNTS.key_of(item))


def test_values_of_a_set_of_numbers_are_numbers():
    """The set has another type; a child with a text is reported, and a text in an item is no number either."""
    rule, values = kept(numbers=True), shown(shape="set", numbers=True, distinct=True)
    items = [item_of(order(name, "u", tag=value), rule) for name, value in (("a", n("2.0")), ("b", n(2)), ("c", n(1)))]
    assert values.compute_values(items, PROFILE) == {TAGS: {"NS": ["1", "2"]}}
    assert blocked(order("a", "u", tag=s("2")), rule).reason == "NotANumber"
    assert values.compute_values([item_of(order("a", "u", tag=s("2")))], PROFILE).reason == "EntryBroken"


# ---------------------------------------------------------------- what stands in the ledger


def test_values_stand_in_no_key_but_where_the_first_few_are_shown():
    """Then the key is in order, and is shown to nobody; a long text is in it by its beginning."""
    child = order("a", "u", tag=s("secret" * 50), at=n(7))
    keys = [
        COUNTS.key_of(item_of(child, kept(order=by, ranked=ranked))) for by in (TAG, AT) for ranked in (False, True)
    ]
    assert ["secret" in str(one) for one in keys] == [False, True, False, False]
    assert all("secret" not in format_key(one) and "7" not in format_key(one) for one in keys)
    assert item_of({**child, "tag": s("é" * 4_000)}, kept(ranked=True)) is not None


@given(st.text(max_size=70), st.text(max_size=70))
def test_values_rank_texts_as_they_sort(one, other):
    """Their beginnings sort as they do, behind which stands what sorts before any of their characters."""
    one, other = (text.replace("\x7f", "").translate(dict.fromkeys(range(32), "!")) for text in (one, other))
    ranks = [format_text_rank(text) + "\x1f" for text in (one, other)]
    assert sorted(ranks) == [format_text_rank(text) + "\x1f" for text in sorted((one, other))]
    assert all(format_text_rank(control) == " " for control in "\x00\x1f")


@pytest.mark.parametrize(
    "value", [{"BOOL": True}, {"NULL": True}, {"M": {}}, {"L": [s("a")]}, {"SS": ["a"]}, {"B": b"a"}]
)
def test_values_are_texts_and_numbers(value):
    """Anything else is reported, as a value and as what orders it, and stands nowhere."""
    for child in (order("a", "u", tag=value), order("a", "u", tag=s("x"), at=value)):
        assert blocked(child, kept(order=AT)) == Blocked("NotAValue", member=key_of(child))
    old, new = order("a", "u", tag=s("x")), order("a", "u", tag=value)
    (part, report) = kept().parts(Change(key_of(old), old, new), ORDER)
    assert "Delete" in str(kept().write_for(part, item_of(old), new))
    assert kept().write_for(report, None, new) == Blocked("NotAValue", member=key_of(new))
