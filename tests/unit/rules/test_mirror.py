"""The mirror kind: an item for an item under another key, put, kept, moved and removed with its source."""

from __future__ import annotations

import pytest

from sync_rules.model.entities import Ref
from sync_rules.model.items import Change
from sync_rules.model.where import compile_where
from sync_rules.model.writes import Check, Condition, Put, Test, Transaction, Update
from sync_rules.rules.families import Part
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.rule import Blocked
from tests.support.builders import entity, index, key, m, mapping, n, s, table

# ---------------------------------------------------------------- users, and a look-up item for each e-mail address
USERS = table("users", {"user_id": "S"})
BY_OWNER, BY_PLACE = index("by_owner", {"GSI1PK": "S"}, {"GSI1SK": "S"}), index("by_place", {"GSI1SK": "S"})
LOOKUP = table("lookup", {"PK": "S"}, BY_OWNER, BY_PLACE)
USER = entity("user", USERS)
BY_EMAIL = entity("user_by_email", LOOKUP, PK="EMAIL#{email}", GSI1PK="OWNER#{owner}", GSI1SK="{city}/{email}")
U1 = key(USERS, "1")
ADA, BEA = key(LOOKUP, "EMAIL#ada@x"), key(LOOKUP, "EMAIL#bea@x")
THERE = Condition(Test.EXISTS, ("PK",))


def ref(name):
    return Ref(name, tuple(name.split(".")))


def by_email(**given) -> MirrorRule:
    rule = {
        "name": "user-by-email", "source": USER, "target": BY_EMAIL, "attributes": mapping(name="user_name"),
        "fields": (("email", ref("email")), ("owner", ref("user_id"))), "each": None, "where": None,
    }  # fmt: skip
    return MirrorRule(**{**rule, **given})


def user(user_id="1", email="ada@x", **values):
    return {"user_id": s(user_id), "email": s(email), **values}


def look_up(email="ada@x", owner="1", **values):
    return {"PK": s(f"EMAIL#{email}"), "owner": s(owner), "GSI1PK": s(f"OWNER#{owner}"), **values}


# ---------------------------------------------------------------- posts, and one mirror for each of their tags
BLOG = table("blog", {"PK": "S", "SK": "S"})
POST = entity("post", BLOG, PK="POST#{post_id}", SK="POST")
TAGGED = entity("tagged", BLOG, PK="TAG#{tag}", SK="POST#{post_id}")


def by_tag(**given) -> MirrorRule:
    rule = {
        "name": "posts-by-tag", "source": POST, "target": TAGGED, "attributes": None, "where": None,
        "fields": (("post_id", POST.ref("post_id")),), "each": ("tag", ("tags",)),
    }  # fmt: skip
    return MirrorRule(**{**rule, **given})


def post(post_id="7", **values):
    return {"PK": s(f"POST#{post_id}"), "SK": s("POST"), **values}


def tagged(tag, post_id="7", **values):
    return {"PK": s(f"TAG#{tag}"), "SK": s(f"POST#{post_id}"), **values}


def post_key(post_id="7"):
    return key(BLOG, f"POST#{post_id}", "POST")


def tag_key(tag, post_id="7"):
    return key(BLOG, f"TAG#{tag}", f"POST#{post_id}")


def bare(text):
    return compile_where(text, "")


def equals(name, value):
    return Condition(Test.ABSENT, (name,)) if value is None else Condition(Test.EQUALS, (name,), value)


def seen(email="ada@x", name=None):
    """The check of a user as it was read."""
    exists = Condition(Test.EXISTS, ("user_id",))
    return Check(U1, (exists, equals("email", s(email)), equals("name", name)))


# ---------------------------------------------------------------- judging one mirror
def test_mirror_is_put_with_its_keys_its_owner_and_its_copies():
    """A mirror that is missing is put, if nothing has come there, with a check of everything read of its source."""
    rule = by_email()
    put = Put(ADA, look_up(user_name=s("Ada")), (Condition(Test.ABSENT, ("PK",)),))
    write = rule.write_for(Part(rule, ADA, U1), None, user(name=s("Ada"), other=s("x")))
    assert write == Transaction((seen(name=s("Ada")), put))


def test_mirror_builds_every_index_key_that_can_be():
    """A key of an index is built of the mirror's fields, be they copies or in its key; else it is left out."""
    rule = by_email(attributes=mapping(address__city="city"))
    put = rule.write_for(Part(rule, ADA, U1), None, user(address=m(city=s("Rome")))).actions[1]
    assert put.item == look_up(city=s("Rome"), GSI1SK=s("Rome/ada@x"))
    for city in (n(1), s("x" * 1025)):  # a number reads as text; a sort key of an index holds 1024 bytes
        put = rule.write_for(Part(rule, ADA, U1), None, user(address=m(city=city))).actions[1]
        assert put.item.get("GSI1SK") == (s("1/ada@x") if "N" in city else None)


@pytest.mark.parametrize("taken", [look_up(owner="2"), {"PK": s("EMAIL#ada@x")}, {**look_up(), "owner": m()}])
def test_mirror_never_writes_what_is_not_its_own(taken):
    """A key that holds an item of another source, or of none, is reported; where no mirror belongs, it is left alone."""
    rule = by_email()
    trouble = rule.write_for(Part(rule, ADA, U1), taken, user())
    assert trouble == Blocked("KeyTaken", patient=taken.get("owner") == s("2"))
    assert rule.write_for(Part(rule, ADA, U1), taken, None) is None
    assert rule.write_for(Part(rule, ADA, U1), taken, user(email="bea@x")) is None


# ---------------------------------------------------------------- keys that cannot be
BLOB = {"B": b"x"}
HASHED = entity("user_by_email", LOOKUP, PK="EMAIL#{email}#")


@pytest.mark.parametrize(
    ("value", "told"),
    [(s("x#y"), True), (s("x" * 2048), True), (m(), True), (BLOB, True), (s(""), False), ({"NULL": True}, False), (None, False)],
)  # fmt: skip
def test_mirror_tells_a_source_whose_mirror_cannot_be(value, told):
    """A source whose mirror's key is impossible is blocked at its own key; a source without the field is not."""
    rule = by_email(target=HASHED, where=bare("!gone"))
    source = {"user_id": s("1"), **({} if value is None else {"email": value})}
    part = Part(rule, U1, U1)
    assert rule.write_for(part, source, source) == (Blocked("NoMirrorKey", member=U1) if told else None)
    assert (part in rule.parts(Change(U1, None, source), USER)) == told
    gone = {**source, "gone": s("x")}
    assert rule.write_for(part, gone, gone) is None
    assert (part in rule.parts(Change(U1, source, user()), USER)) == told
    assert rule.write_for(part, user(), user()) is None
    assert rule.write_for(part, None, None) is None


# ---------------------------------------------------------------- items of very many attributes
WIDE = {f"attribute{i}": n(i) for i in range(300)}


def test_mirror_of_all_checks_no_more_than_a_condition_has_room_for():
    """A mirror's check compares every attribute, or for a wide item only those that name and admit the mirror."""
    rule = by_tag(where=bare("!gone"))
    source = post(tags={"SS": ["a"]}, **WIDE)
    check, put = rule.write_for(Part(rule, tag_key("a"), post_key()), None, source).actions
    assert check.guard == (THERE, equals("tags", {"SS": ["a"]}), equals("gone", None))
    assert put.item == tagged("a", tags={"SS": ["a"]}, **WIDE)
    for many, compared in ((90, 90 + 3), (98, 98 + 3), (99, 3)):  # all but the one that says that it is there
        few = {name: WIDE[name] for name in list(WIDE)[:many]}
        check, _ = rule.write_for(Part(rule, tag_key("a"), post_key()), None, post(tags={"SS": ["a"]}, **few)).actions
        assert len(check.guard) == compared


def test_mirror_of_all_with_very_many_changes_is_put_anew():
    """A mirror with more changes than one condition can hold is put whole; fewer are an update."""
    rule = by_tag()
    source = post(tags={"SS": ["a"]}, **WIDE)
    part = Part(rule, tag_key("a"), post_key())
    right = tagged("a", tags={"SS": ["a"]}, **WIDE)
    _, put = rule.write_for(part, tagged("a", foreign=s("x")), source).actions
    assert put == Put(tag_key("a"), right, (THERE,))
    _, update = rule.write_for(part, {**right, "foreign": s("x")}, source).actions
    assert isinstance(update, Update)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"fields": (("email", ref("email")), ("state", ref("status")))}, s("1.5")),
        ({"attributes": mapping(status="state")}, n("1.5")),
        ({"attributes": mapping(other="x")}, None),
    ],
)
def test_mirror_field_that_is_an_index_key_itself(given, expected):
    """A field that an index holds as it is is written there in the index's type if the rule binds it; an attribute of
    that name is a copy like any other, and one that the rule does not name is not its own.
    """
    lookup = table("lookup", {"PK": "S"}, index("by_state", {"state": "S"}))
    rule = by_email(
        **{"target": entity("by_email", lookup, PK="EMAIL#{email}"), "fields": by_email().fields[:1], **given}
    )
    put = rule.write_for(Part(rule, ADA, U1), None, user(status=n("1.5"))).actions[1]
    assert put.item.get("state") == expected
    assert (("state",) in rule.copies) == (expected is not None)
