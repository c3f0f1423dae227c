"""The embed kind: what a parent must hold of its children, whatever came before."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.model.entities import KeyAttribute, Ref
from sync_rules.model.items import Change
from sync_rules.model.lookups import Find
from sync_rules.model.semantics import apply_update, holds
from sync_rules.model.sizes import count_value_bytes
from sync_rules.model.templates import parse_template
from sync_rules.model.values import Item, get
from sync_rules.model.where import compile_where
from sync_rules.model.writes import find_differences, make_update
from sync_rules.rules.families import Hint
from sync_rules.rules.kinds.embed import ENTRIES_MAX_WRITES, EmbedRule
from sync_rules.rules.kinds.gathered_rule import MEMBERS_MAX_ITEMS
from sync_rules.rules.rule import Blocked, Node, is_cause
from tests.support.builders import entity, index, key, m, n, s, table

INTO = ("addresses",)
CRM = table("crm", {"PK": "S", "SK": "S"})
PARENT = key(CRM, "C#1", "PROFILE")


def embed(**options) -> EmbedRule:
    """Addresses beside their customer, in one partition of one table."""
    address = entity("address", CRM, PK="C#{customer}", SK="A#{id}")
    given = {
        "name": "addresses",
        "source": address,
        "target": entity("customer", CRM, PK="C#{customer}", SK="PROFILE"),
        "into": INTO,
        "by": parse_template("{id}"),
        "fields": ((("street",), "line"), (("created",), "created")),
        "link": (("customer", Ref("customer", ("PK",), address.templates["PK"])),),
        "find": Find(None, ((CRM.partition, address.templates["PK"]),), ((KeyAttribute("SK", "S"), address.templates["SK"]),)),
    }  # fmt: skip
    return EmbedRule(**{**given, **options})


def embed_by_index(**options) -> EmbedRule:
    """Addresses in a table of their own, found through an index."""
    addresses = table("addresses", {"id": "N"}, index("by_owner", {"owner": "S"}, {"created": "N"}))
    given = {
        "source": entity("address", addresses),
        "target": entity("customer", table("customers", {"customer": "S"})),
        "link": (("customer", Ref("owner", ("owner",))),),
        "find": Find("by_owner", ((KeyAttribute("owner", "S"), parse_template("{owner}")),)),
    }
    return embed(**{**given, **options})


def child(name: str, customer: str = "1", **values) -> Item:
    return {"PK": s(f"C#{customer}"), "SK": s(f"A#{name}"), **values}


def parent(**values) -> Item:
    return {"PK": s("C#1"), "SK": s("PROFILE"), "name": s("Ada"), **values}


def after(rule: EmbedRule, children, image: Item) -> Item:
    """The parent once the rule has had its way, by the update that the pipeline would make."""
    changes = find_differences(image, rule.compute_values(children, image))
    update = make_update(PARENT, image, changes, rule.link_guard(image))
    assert holds(update.guard, image)
    return apply_update(image, update) if changes else image


VALUES = st.one_of(st.integers(-2, 2).map(n), st.sampled_from(["", "a", "é"]).map(s), st.just({"BOOL": True}))
CHILDREN = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e"]),
    st.fixed_dictionaries({}, optional={"street": VALUES, "created": VALUES, "hidden": VALUES}),
).map(lambda found: [child(name, **values) for name, values in found.items()])
OPTIONS = st.fixed_dictionaries(
    {
        "shape": st.sampled_from(["map", "list"]),
        "fields": st.sampled_from([None, ((("street",), "line"), (("id",), "id"))]),
        "order": st.sampled_from([None, (("created",), False), (("created",), True), (("id",), True)]),
        "max_items": st.sampled_from([None, 1, 3]),
        "max_bytes": st.sampled_from([None, 10, 60]),
        "on_overflow": st.sampled_from(["fail", "oldest", "omit"]),
    }
)
# whatever an application may have left where the copy belongs
IMAGES = st.one_of(
    st.none(),
    st.sampled_from([{"NULL": True}, s("x"), {"L": []}]),
    st.dictionaries(st.sampled_from(["a", "b", "z"]), st.sampled_from([m(), m(line=s("a")), n(1)])).map(lambda v: m(**v)),
).map(lambda value: parent() if value is None else parent(addresses=value))  # fmt: skip


# ---------------------------------------------------------------- a pure function of the children


@settings(deadline=None)
@given(CHILDREN, IMAGES)
def test_embed_entries_equal_a_plain_recompute(children, image):
    """Each child has an entry under its key with the fields the rule names, those it has; nothing else is there."""
    expected = {
        one["SK"]["S"].removeprefix("A#"): m(**{name: one[field] for field, name in (("street", "line"), ("created", "created")) if field in one})
        for one in children
    }  # fmt: skip
    assert get(after(embed(), children, image), INTO) == {"M": expected}


# ---------------------------------------------------------------- entries


def test_embed_shows_every_attribute_but_the_table_key_when_no_fields_are_named():
    """Without `fields` an entry is the child without the key it is stored under."""
    home = child("home", street=s("Elm"), tags={"SS": ["x"]})
    assert embed(fields=None).compute_values([home], parent()) == {INTO: m(home=m(street=s("Elm"), tags={"SS": ["x"]}))}


def test_embed_writes_only_the_entries_that_differ():
    """Entries that are right are neither written nor guarded; those of no child are removed; siblings stay."""
    image = parent(addresses=m(home=m(line=s("Elm")), work=m(line=s("old")), gone=m()))
    children = [child("home", street=s("Elm")), child("work", street=s("Oak")), child("new")]
    assert find_differences(image, embed().compute_values(children, image)) == {
        (*INTO, "work"): m(line=s("Oak")),
        (*INTO, "new"): m(),
        (*INTO, "gone"): None,
    }


@pytest.mark.parametrize("more", [0, 1])
def test_embed_writes_the_whole_map_when_many_entries_differ(more):
    """A map with more differing entries than an expression can hold is written whole."""
    children = [child(str(number)) for number in range(ENTRIES_MAX_WRITES + more)]
    changes = find_differences(parent(addresses=m()), embed().compute_values(children, parent(addresses=m())))
    assert len(changes) == (1 if more else ENTRIES_MAX_WRITES)
    assert get(after(embed(), children, parent(addresses=m())), INTO) == m(
        **{str(i): m() for i in range(len(children))}
    )


@given(
    st.dictionaries(
        st.sampled_from("abcde"), st.fixed_dictionaries({}, optional={"city": st.sampled_from(["x", "y", ""]).map(s)})
    ),
    st.randoms(),
)
def test_embed_by_an_attribute_gives_an_entry_to_the_first_that_claims_it(values, random):
    """In whichever order children are found, and whatever stands there; who is left out is named, the first one first."""
    children = [child(name, **some) for name, some in values.items()]
    random.shuffle(children)
    rule = embed(by=parse_template("{city}"), fields=((("id",), "id"),), claimed=True)
    firsts, left = {}, []
    for name in sorted(values):
        city = values[name].get("city", s(""))["S"]
        if city and city not in firsts:
            firsts[city] = m(id=s(name))
        else:
            left.append((name, "EntryTwice" if city else "NoEntryKey"))
    assert rule.compute_values(children, parent()) == {INTO: m(**firsts)}
    expected = [Blocked(reason, member=key(CRM, "C#1", f"A#{name}")) for name, reason in left[:1]]
    assert rule.find_omission(children, {}) == (expected[0] if expected else None)
    assert rule.members(PARENT, parent()).enough is False


# ---------------------------------------------------------------- order
def in_order(descending: bool, *values) -> str:
    """The names of children with these values, in order; their keys sort against the order they are given in."""
    names = "zyxwvu"[: len(values)]
    children = [
        child(name, **({} if value is None else {"at": value})) for name, value in zip(names, values, strict=True)
    ]
    rule = embed(shape="list", order=(("at",), descending), fields=((("id",), "id"),))
    found = {
        "".join(e["M"]["id"]["S"] for e in rule.compute_values(some, parent())[INTO]["L"])
        for some in permutations(children)
    }
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize(
    ("descending", "values", "expected"),
    [
        (False, (n(2), n(10), n("-1.5")), "xzy"),  # by value, not by their digits
        (True, (n(2), n(10), n("-1.5")), "yzx"),
        (False, (n("10000000000000000000000000000000000001"), n("10000000000000000000000000000000000002")), "zy"),
        (False, (n(1), n("1.0"), n(1)), "xyz"),  # equal: by key
        (True, (n(1), n(1)), "yz"),
        (False, (n(1), None, n(0)), "yxz"),  # none is the least
        (False, (s("1"), n(2), {"BOOL": True}, {"BOOL": False}, {"B": b"1"}, m()), None),  # of many types: some order
    ],
)
def test_embed_orders_by_value_and_then_by_key(descending, values, expected):
    """One order, whichever the children are found in: numbers by value, none as the least, equal ones by key."""
    assert in_order(descending, *values) == (expected or in_order(descending, *values))


# ---------------------------------------------------------------- limits
OVER = [child(name, created=n(at)) for name, at in (("a", 3), ("b", 1), ("c", 2))]


@pytest.mark.parametrize(
    ("limit", "reason"),
    [({"max_items": 2}, "TooManyItems"), ({"max_bytes": 40}, "TooManyBytes"), ({"max_items": 3}, "")],
)
def test_embed_over_a_limit_fails_and_names_the_last_child(limit, reason):
    """Left as it was: no value is desired, and the child that came last in the order is named."""
    wanted = embed(order=(("created",), False), **limit).compute_values(OVER, parent())
    if reason:
        assert wanted == Blocked(reason, member=key(CRM, "C#1", "A#a"))
    else:
        assert set(wanted[INTO]["M"]) == set("abc")


def test_embed_over_a_limit_omits_all_or_the_oldest():
    """`omit` says with NULL that there are too many; `oldest` leaves out the least in order, shown from either end."""
    order = (("created",), False)
    assert embed(max_items=2, on_overflow="omit").compute_values(OVER, parent()) == {INTO: {"NULL": True}}
    oldest = embed(max_items=2, on_overflow="oldest", order=order).compute_values(OVER, parent())
    assert set(oldest[INTO]["M"]) == {"a", "c"}
    newest_first = embed(max_items=2, on_overflow="oldest", order=(("created",), True), shape="list")
    assert [entry["M"]["created"] for entry in newest_first.compute_values(OVER, parent())[INTO]["L"]] == [n(3), n(2)]
    healed = embed(max_items=2, on_overflow="omit").compute_values(OVER[:1], parent(addresses={"NULL": True}))
    assert healed == {INTO: m(a=m(created=n(3)))}


@settings(deadline=None)
@given(OPTIONS, CHILDREN)
def test_embed_keeps_as_many_of_the_last_as_fit(options, children):
    """`oldest` keeps the last entries of the order, as many as fit within the limits."""
    free = {
        **options,
        "max_items": None,
        "max_bytes": None,
        "shape": "list",
        "fields": ((("id",), "id"), (("street",), "line")),
    }
    everything = embed(**free).compute_values(children, parent())[INTO]["L"]
    limits = {"max_items": options["max_items"], "max_bytes": options["max_bytes"], "on_overflow": "oldest"}
    kept = embed(**{**free, **limits}).compute_values(children, parent())[INTO]["L"]

    def fits(entries) -> bool:
        items, most = options["max_items"], options["max_bytes"]
        return (items is None or len(entries) <= items) and (most is None or count_value_bytes({"L": entries}) <= most)

    descending = options["order"] is not None and options["order"][1]
    greatest = everything if descending else everything[::-1]
    assert (kept if descending else kept[::-1]) == greatest[: len(kept)]
    assert fits(kept) or not kept
    assert len(kept) == len(everything) or not fits(greatest[: len(kept) + 1])


# ---------------------------------------------------------------- who is a child
@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (child("home", active={"BOOL": True}), True),
        (child("home"), False),  # where
        (child("home", customer="2", active={"BOOL": True}), False),
        (parent(active={"BOOL": True}), False),
        ({"PK": s("C#1"), "active": {"BOOL": True}}, False),
        (child("secret", active={"BOOL": True}), False),  # where, by a field its key binds
    ],
)
def test_embed_takes_children_that_point_here_and_satisfy_where(item, expected):
    """Only children that name this parent and satisfy `where` belong to the embed."""
    rule = embed(where=compile_where("active && id != 'secret'", "address"))
    assert rule.is_member(PARENT, item) is expected


@pytest.mark.parametrize(("without", "expected"), [((), True), (("created",), False), (("owner",), False)])
def test_embed_takes_no_child_that_its_index_does_not_show(without, expected):
    """An item that has no row in the listing index is no child, though a record or an entry names it."""
    rule = embed_by_index()
    item = {"id": n(7), "owner": s("1"), "created": n(1)}
    at = key(rule.target.table, "1")
    assert rule.is_member(at, {name: value for name, value in item.items() if name not in without}) is expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (embed(max_items=20), (21, True)),
        (embed(max_items=20, on_overflow="omit"), (21, True)),
        (embed(max_items=20, on_overflow="oldest"), (MEMBERS_MAX_ITEMS, False)),  # which ones, all of them say
        (embed(max_items=5000, on_overflow="oldest"), (5001, False)),
        (embed_by_index(max_items=20), (MEMBERS_MAX_ITEMS, False)),  # its rows may no longer be children
        (embed(max_bytes=20), (MEMBERS_MAX_ITEMS, False)),
    ],
)
def test_embed_lists_one_child_more_than_fit_where_that_decides(rule, expected):
    """A listing for a limited embed stops one child after the limit, if that decides the overflow."""
    found = rule.members(key(rule.target.table, *("C#1", "PROFILE")[: len(rule.target.table.key)]), parent())
    assert (found.max_items, found.enough) == expected


# ---------------------------------------------------------------- what matters
HERE = Hint(PARENT, key(CRM, "C#1", "A#a"))


@pytest.mark.parametrize(
    ("options", "attribute", "expected"),
    [
        ({}, "street", True),
        ({}, "hidden", False),
        ({"fields": None}, "hidden", True),
        ({"order": (("hidden",), False)}, "hidden", True),
        ({"by": parse_template("{hidden}")}, "hidden", True),
        ({"where": compile_where("hidden == 'x'", "address")}, "hidden", True),
        ({"where": compile_where("address.hidden == 'x'", "address")}, "hidden", True),
    ],
)
def test_embed_hints_when_something_changed_that_it_reads(options, attribute, expected):
    """Fields, order, entry key and `where` are what it reads of a child; nothing else is a reason to look."""
    old, new = child("a", **{attribute: s("x")}), child("a", **{attribute: s("y")})
    rule = embed(**options)
    assert list(rule.hints(Change(key(CRM, "C#1", "A#a"), old, new))) == ([HERE] if expected else [])
    derived = Node(embed(), (rule.source, (attribute,)), ())
    assert is_cause(derived, *rule.nodes()) is expected


def test_embed_hints_when_a_child_comes_into_its_index():
    """The keys of the listing index decide whether a child is one."""
    rule = embed_by_index(fields=())
    old = {"id": n(7), "owner": s("1")}
    change = Change(key(rule.source.table, "7"), old, {**old, "created": n(1)})
    assert list(rule.hints(change)) == [Hint(key(rule.target.table, "1"), key(rule.source.table, "7"))]
