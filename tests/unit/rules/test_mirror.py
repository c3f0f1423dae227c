"""The mirror kind: an item for an item under another key, put, kept, moved and removed with its source."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.audit.verifier import Verifier
from sync_rules.model.entities import Ref
from sync_rules.model.items import Change
from sync_rules.model.where import compile_where
from sync_rules.model.writes import Check, Condition, Delete, Put, Test, Transaction, Update
from sync_rules.pipeline.joint_writes import join_writes
from sync_rules.pipeline.tasks import PartLook
from sync_rules.rules.families import Part
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.rule import Blocked
from tests.support.builders import entity, index, key, m, mapping, n, s, table
from tests.support.depth import deep
from tests.support.part_worlds import ROAD, PartWorld, rules_of
from tests.support.worlds import Scene

# ---------------------------------------------------------------- users, and a look-up item for each e-mail address
USERS = table("users", {"user_id": "S"})
BY_OWNER, BY_PLACE = index("by_owner", {"GSI1PK": "S"}, {"GSI1SK": "S"}), index("by_place", {"GSI1SK": "S"})
LOOKUP = table("lookup", {"PK": "S"}, BY_OWNER, BY_PLACE)
USER = entity("user", USERS)
BY_EMAIL = entity("user_by_email", LOOKUP, PK="EMAIL#{email}", GSI1PK="OWNER#{owner}", GSI1SK="{city}/{email}")
U1, U2 = key(USERS, "1"), key(USERS, "2")
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


def test_mirror_of_its_source_is_brought_in_line():
    """Only what differs is written, to an item that is still of this source."""
    rule = by_email(attributes=mapping(name="card__name", city="city"))
    stale = look_up(card=m(name=s("Eva"), kept=s("x")), city=s("Rome"), GSI1SK=s("Rome/ada@x"), foreign=s("y"))
    write = rule.write_for(Part(rule, ADA, U1), stale, user(name=s("Ada")))
    check, update = write.actions
    assert check.guard[0] == Condition(Test.EXISTS, ("user_id",))
    assert isinstance(update, Update)
    assert update.sets == ((("card", "name"), s("Ada")),)
    assert set(update.removes) == {("city",), ("GSI1SK",)}
    assert update.guard[:2] == (THERE, equals("owner", s("1")))


def test_mirror_right_is_left_alone():
    """A mirror that is as it should be costs no write, whatever else stands on it."""
    rule = by_email()
    right = look_up(user_name=s("Ada"), foreign=s("y"))
    assert rule.write_for(Part(rule, ADA, U1), right, user(name=s("Ada"))) is None


@pytest.mark.parametrize("taken", [look_up(owner="2"), {"PK": s("EMAIL#ada@x")}, {**look_up(), "owner": m()}])
def test_mirror_never_writes_what_is_not_its_own(taken):
    """A key that holds an item of another source, or of none, is reported; where no mirror belongs, it is left alone."""
    rule = by_email()
    trouble = rule.write_for(Part(rule, ADA, U1), taken, user())
    assert trouble == Blocked("KeyTaken", patient=taken.get("owner") == s("2"))
    assert rule.write_for(Part(rule, ADA, U1), taken, None) is None
    assert rule.write_for(Part(rule, ADA, U1), taken, user(email="bea@x")) is None


@pytest.mark.parametrize(
    ("given", "source", "check"),
    [
        ({}, None, Check(U1, (Condition(Test.ABSENT, ("user_id",)),))),
        ({}, user(email="bea@x"), seen("bea@x")),
        ({}, {"user_id": s("1")}, Check(U1, (*seen().guard[:1], equals("email", None), equals("name", None)))),
        ({"where": bare("name == 'Bea'")}, user(name=s("Ada")), seen(name=s("Ada"))),
    ],
)
def test_mirror_goes_with_what_asked_for_it(given, source, check):
    """A mirror whose source is gone, names another, or is not let in, is deleted if it is still of this source."""
    rule = by_email(**given)
    write = rule.write_for(Part(rule, ADA, U1), look_up(foreign=s("y")), source)
    assert write == Transaction((check, Delete(ADA, (THERE, equals("owner", s("1"))))))
    assert rule.write_for(Part(rule, ADA, U1), None, source) is None


def test_mirror_reports_what_stands_in_the_way_of_a_copy():
    """A mirror is blocked if a copy's map is another type on the mirror."""
    rule = by_email(attributes=mapping(name="card__name"))
    trouble = rule.write_for(Part(rule, ADA, U1), look_up(card=s("x")), user(name=s("Ada")))
    assert isinstance(trouble, Blocked)
    assert "card is a string" in trouble.reason


def test_mirror_never_touches_its_source():
    """A mirror under its source's own key is neither put nor deleted."""
    rule = by_tag(target=POST, each=None)
    part = Part(rule, post_key(), post_key())
    assert rule.write_for(part, post(), post()) == Blocked("KeyTaken", patient=True)
    assert by_tag(target=POST, each=None, where=bare("no")).write_for(part, post(), post()) is None


def test_mirror_move_is_one_transaction():
    """The delete and the put of a moved mirror become one transaction with one check of the source."""
    rule = by_email()
    change = Change(U1, user(), user(email="bea@x"))
    mirrors = {ADA: look_up(), BEA: None}
    parts = list(rule.parts(change, USER))
    assert [part.target for part in parts] == [ADA, BEA]
    writes = [(PartLook(part), rule.write_for(part, mirrors[part.target], change.new)) for part in parts]
    (joint,) = join_writes(writes)
    assert [type(action) for action in joint.write.actions] == [Check, Delete, Put]


# ---------------------------------------------------------------- all attributes, one mirror for each element
def test_mirror_of_all_holds_every_attribute_but_the_key():
    """With all attributes the mirror is the source under another key; what its key binds is not held twice."""
    rule = by_tag()
    source = post(tags={"SS": ["a", "b"]}, title=s("T"))
    check, put = rule.write_for(Part(rule, tag_key("a"), post_key()), None, source).actions
    assert put.item == tagged("a", tags={"SS": ["a", "b"]}, title=s("T"))
    assert check.guard == (THERE, equals("tags", {"SS": ["a", "b"]}), equals("title", s("T")))


def test_mirror_of_all_loses_what_its_source_lost():
    """With all attributes nothing may stay that the source does not hold."""
    rule = by_tag()
    source = post(tags={"SS": ["a"]})
    stale = tagged("a", tags={"SS": ["a", "b"]}, title=s("T"))
    update = rule.write_for(Part(rule, tag_key("a"), post_key()), stale, source).actions[1]
    assert (update.sets, update.removes) == (((("tags",), {"SS": ["a"]}),), (("title",),))


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"SS": ["b", "a"]}, ["a", "b"]),
        ({"NS": ["1", "2"]}, ["1", "2"]),
        ({"L": [s("a"), n(2), {"BOOL": True}, s("a"), s("")]}, ["a", "2"]),
        (s("a"), []),
        (None, []),
    ],
)
def test_mirror_each_names_one_for_every_text_and_number(tags, expected):
    """`each` makes one mirror for each element that can stand in its key."""
    source = post(**({} if tags is None else {"tags": tags}))
    found = by_tag().mirrors(source)
    assert list(found) == [tag_key(tag) for tag in expected]


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


@pytest.mark.parametrize(
    ("tags", "told"),
    [({"L": [s("a"), {"BOOL": True}]}, True), ({"L": [s("a"), s("x" * 2048)]}, True), ({"BS": [b"a"]}, True),
     ({"L": [s("a"), s(""), {"NULL": True}]}, False), ({"SS": ["a"]}, False), ({"L": []}, False)],
)  # fmt: skip
def test_mirror_tells_an_element_whose_mirror_cannot_be(tags, told):
    """One element that is no text or number, or too long: the others have their mirrors."""
    rule, source = by_tag(), post(tags=tags)
    parts = list(rule.parts(Change(post_key(), None, source), POST))
    assert (Part(rule, post_key(), post_key()) in parts) == told
    assert (Part(rule, tag_key("a"), post_key()) in parts) == ("a" in str(tags) and "BS" not in tags)
    trouble = rule.write_for(Part(rule, post_key(), post_key()), source, source)
    assert trouble == (Blocked("NoMirrorKey", member=post_key()) if told else None)


def test_mirror_whose_key_cannot_be_has_one_failure_record():
    """An impossible mirror key leaves one failure record and no mirror, until the source is corrected."""
    scene = Scene(rules_of(by_email(target=HASHED)))
    scene.put("users", user())
    scene.rest()
    assert len(scene.memory.items("lookup")) == 1
    scene.put("users", user(email="ada#x"))
    scene.rest()
    scene.receive()
    scene.rest()
    assert list(scene.memory.items("lookup")) == []
    assert [(failure.key, failure.reason) for failure in scene.parked.failures] == [(U1, "NoMirrorKey")]
    verifier = Verifier(scene.rules, scene.world, frozenset(scene.rules.rules), grace_seconds=0, sleep=lambda _: None)
    assert [found.difference.reason for found in verifier.sweep()] == ["NoMirrorKey"]
    scene.put("users", user(email="eva@x"))
    scene.rest()
    assert [item["PK"] for item in scene.memory.items("lookup")] == [s("EMAIL#eva@x#")]


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


def test_mirror_of_named_attributes_is_never_put_anew():
    """An update leaves everything else on a mirror of named attributes, however many of them change at once."""
    rule = by_tag(attributes=mapping(**{name: name for name in WIDE}))
    standing = tagged("a", foreign=s("x"))
    _, update = rule.write_for(Part(rule, tag_key("a"), post_key()), standing, post(tags={"SS": ["a"]}, **WIDE)).actions
    assert isinstance(update, Update)
    assert len(update.sets) == len(WIDE)


def test_mirror_each_field_may_stand_in_an_index_key():
    """The field that `each` binds may be part of an index key of the mirror."""
    by_post = table("tags", {"PK": "S", "SK": "S"}, index("by_tag", {"GSI1PK": "S"}))
    tag = entity("tag", by_post, PK="POST#{post_id}", SK="TAG#{tag}", GSI1PK="{tag}!")
    rule = by_tag(target=tag, attributes=())
    at = key(by_post, "POST#7", "TAG#a")
    put = rule.write_for(Part(rule, at, post_key()), None, post(tags={"SS": ["a"]})).actions[1]
    assert put.item == {"PK": s("POST#7"), "SK": s("TAG#a"), "GSI1PK": s("a!")}


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


# ---------------------------------------------------------------- parts
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, user(), [ADA]),
        (user(), None, [ADA]),
        (user(), user(email="bea@x"), [ADA, BEA]),
        (user(), {"user_id": s("1")}, [ADA]),
        (user(), user(name=s("Ada")), [ADA]),
        (user(), user(active=s("no")), [ADA]),
        (user(), user(other=s("x")), []),
        (user(email=""), user(email=""), []),
    ],
)
def test_mirror_a_source_names_the_mirrors_it_had_and_has(old, new, expected):
    """Both images of a source say where to look, let in or not, if anything that is read of it changed."""
    rule = by_email(where=bare("active"))
    parts = list(rule.parts(Change(U1, old, new), USER))
    assert parts == [Part(rule, at, U1) for at in expected]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, look_up(), [U1]),
        (look_up(), None, [U1]),
        (look_up(), look_up(owner="2"), [U1, U2]),
        (look_up(), {"PK": s("EMAIL#ada@x")}, [U1]),
        (look_up(), look_up(user_name=s("x")), [U1]),
        (look_up(), look_up(GSI1PK=s("x")), [U1]),
        (look_up(), look_up(foreign=s("x")), []),
        ({"PK": s("EMAIL#ada@x")}, None, []),
    ],
)
def test_mirror_names_the_source_it_had_and_has(old, new, expected):
    """A record of a mirror looks at the sources named by both its images."""
    rule = by_email()
    assert list(rule.parts(Change(ADA, old, new), BY_EMAIL)) == [Part(rule, ADA, at) for at in expected]


def test_mirror_of_all_is_looked_at_for_any_change():
    """With all attributes, any change of a source or of a mirror is a reason to look."""
    rule = by_tag()
    old, new = post(tags={"SS": ["a"]}), post(tags={"SS": ["a"]}, title=s("T"))
    assert list(rule.parts(Change(post_key(), old, new), POST)) == [Part(rule, tag_key("a"), post_key())]
    stranger = Change(tag_key("a"), tagged("a"), tagged("a", foreign=s("x")))
    assert list(rule.parts(stranger, TAGGED)) == [Part(rule, tag_key("a"), post_key())]
    assert list(rule.parts(Change(post_key(), old, dict(old)), POST)) == []


def test_mirror_says_what_it_writes_and_what_decides():
    """A mirror's copies are the owner, the index keys and the attributes, and depend on all that is read."""
    rule = by_email(where=bare("active"))
    assert rule.copies == (("owner",), ("GSI1PK",), ("GSI1SK",), ("user_name",))
    nodes = {node.writes[1]: node.reads for node in rule.nodes()}
    assert set(nodes) == {("PK",), *rule.copies}
    assert all(
        read == tuple((USER, ref(f).path) for f in ("user_id", "email", "name", "active")) for read in nodes.values()
    )
    (whole,) = by_tag().nodes()
    assert (whole.writes, whole.reads) == ((TAGGED, ()), ((POST, ()),))
    assert rule.streamed == (USERS, LOOKUP)


# ---------------------------------------------------------------- whatever happens
EMAILS, IDS, TAGS = ("ada@x", "bea@x", "eva@x"), ("1", "2", "3"), ("a", "b", "c")
ROAD_STEPS = st.tuples(st.sampled_from(ROAD), st.integers(0, 9))
NAMES = st.sampled_from((None, s("Ada"), s("Bea")))
USER_STEPS = st.one_of(
    st.tuples(st.just("put user"), st.sampled_from(IDS), st.sampled_from(EMAILS), NAMES, st.booleans()),
    st.tuples(st.just("delete user"), st.sampled_from(IDS)),
    st.tuples(st.just("delete"), st.sampled_from(EMAILS)),
    st.tuples(st.just("overwrite"), st.sampled_from(EMAILS), st.sampled_from(IDS), NAMES),
    ROAD_STEPS,
)
POST_STEPS = st.one_of(
    st.tuples(st.just("put post"), st.sampled_from(IDS[:2]), st.sets(st.sampled_from(TAGS)), NAMES),
    st.tuples(st.just("delete post"), st.sampled_from(IDS[:2])),
    st.tuples(st.just("delete tagged"), st.sampled_from(TAGS), st.sampled_from(IDS[:2])),
    st.tuples(st.just("overwrite tagged"), st.sampled_from(TAGS), st.sampled_from(IDS[:2]), NAMES),
    ROAD_STEPS,
)


def given_values(**values):
    return {name: value for name, value in values.items() if value is not None}


def play(world: PartWorld, step) -> None:
    match step:
        case ("put user", user_id, email, name, gone):
            world.store.put("users", user(user_id, email, **given_values(name=name, gone=s("x") if gone else None)))
        case ("delete user", user_id):
            world.store.delete(key(USERS, user_id))
        case ("delete", email):
            world.store.delete(key(LOOKUP, f"EMAIL#{email}"))
        case ("overwrite", email, owner, name):
            world.store.put("lookup", look_up(email, owner, **given_values(user_name=name)))
        case ("put post", post_id, tags, title):
            world.store.put(
                "blog", post(post_id, **given_values(title=title, tags={"SS": sorted(tags)} if tags else None))
            )
        case ("delete post", post_id):
            world.store.delete(post_key(post_id))
        case ("delete tagged", tag, post_id):
            world.store.delete(tag_key(tag, post_id))
        case ("overwrite tagged", tag, post_id, title):
            world.store.put("blog", tagged(tag, post_id, **given_values(title=title)))
        case _:
            world.step(*step)


@settings(max_examples=deep(200), deadline=None)
@given(steps=st.lists(USER_STEPS, min_size=10, max_size=40))
def test_mirror_every_look_up_is_right_in_the_end(steps):
    """After any history each address of a user has exactly one mirror, of one of its users."""
    world = PartWorld(rules_of(by_email(where=bare("!gone"))))
    for step in steps:
        play(world, step)
    world.rest()
    wanted: dict[str, list] = {}
    for item in world.store.items("users"):
        if "gone" not in item:
            right = look_up(item["email"]["S"], item["user_id"]["S"], **given_values(user_name=item.get("name")))
            wanted.setdefault(item["email"]["S"], []).append(right)
    found = {item["PK"]["S"].removeprefix("EMAIL#"): item for item in world.store.items("lookup")}
    assert found.keys() == wanted.keys()
    assert all(item in wanted[email] for email, item in found.items())
    taken = {(part.target, part.source) for part, _ in world.parked}
    assert len(taken) == sum(len(items) - 1 for items in wanted.values())


@settings(max_examples=deep(200), deadline=None)
@given(steps=st.lists(POST_STEPS, min_size=10, max_size=40))
def test_mirror_every_tag_is_right_in_the_end(steps):
    """The same with all attributes and a mirror for each tag: once at rest the mirrors are those of a plain recompute."""
    world = PartWorld(rules_of(by_tag()))
    for step in steps:
        play(world, step)
    world.rest()
    items = world.store.items("blog")
    expected = []
    for item in items:
        if item["SK"] == s("POST"):
            rest = {name: value for name, value in item.items() if name not in ("PK", "SK")}
            post_id = item["PK"]["S"].removeprefix("POST#")
            expected += [tagged(tag, post_id, **rest) for tag in item.get("tags", {"SS": []})["SS"]]
    found = [item for item in items if item["SK"] != s("POST")]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert world.parked == []


def test_mirror_a_key_that_was_taken_is_filled_when_it_is_free():
    """The second of two users with one address is parked, and gets the mirror after the first was deleted."""
    world = PartWorld(rules_of(by_email()))
    world.store.put("users", user("1"))
    world.store.put("users", user("2"))
    world.rest()
    assert world.item(ADA)["owner"] == s("1")
    assert [part.source for part, _ in world.parked] == [U2]
    world.store.delete(U1)
    world.rest()
    assert world.item(ADA)["owner"] == s("2")
    assert world.parked == []


def test_mirror_what_somebody_deleted_or_changed_is_made_again():
    """A mirror that somebody changed or deleted is restored."""
    world = PartWorld(rules_of(by_email()))
    world.store.put("users", user(name=s("Ada")))
    world.rest()
    right = world.item(ADA)
    world.store.delete(ADA)
    world.rest()
    assert world.item(ADA) == right
    world.store.put("lookup", look_up(user_name=s("forged")))
    world.rest()
    assert world.item(ADA) == right
