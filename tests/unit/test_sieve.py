"""The sieve: what it leaves out is a reason for nothing, and it leaves out what most records are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_rules.plan import plan_batch
from sync_rules.records import changes_of, read_event
from sync_rules.rulefile import load_rules
from sync_rules.rules import Rules
from sync_rules.sieve import Sieve
from tests.builders import n, s
from tests.every_kind import EFFECTS, RULES, order, rules_of, user

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/rules.yaml"))
FILES = {path.parent.name: path for path in EXAMPLES}
EVERY = "every-kind"
ALL = RULES | EFFECTS
ALONE = [name for name in ALL if name != "told"]  # which is made of another one's copy


def rules_named(name: str) -> Rules:
    if name in ALL:
        return rules_of(*(other for other in ALL if other != name))
    return rules_of() if name == EVERY else load_rules(FILES[name], {"ARCHIVE_BUCKET": "some-bucket"})


def record(table, keys, old, new):
    """As Lambda hands it over."""
    images = {"OldImage": old, "NewImage": new}
    return {
        "eventSourceARN": f"arn:aws:dynamodb:us-east-1:000000000000:table/{table.physical_name}/stream/x",
        "eventName": "MODIFY" if old and new else "INSERT" if new else "REMOVE",
        "dynamodb": {
            "Keys": keys, "SequenceNumber": "7", **{name: image for name, image in images.items() if image is not None}
        },
    }  # fmt: skip


def all_names(rules: Rules) -> list[str]:
    """Every attribute that a rule knows of, and one that none does."""
    texts = json.dumps([rule.body() for rule in rules.rules.values()], default=str)
    words = {word for text in texts.split('"') for word in [text] if word.isidentifier()}
    keys = {a.name for table in rules.tables.values() for index in table.indexes for a in index.attributes}
    return sorted(words | keys | {"unheard_of"})


VALUES = st.sampled_from([s("a"), s("b"), n(1), n(2), s("USER#1"), {"M": {"x": s("a")}}, {"SS": ["a"]}, {"NULL": True}])


@st.composite
def records(draw, rules: Rules):
    """A record of an item that may be of an entity, before and after a change."""
    entity = draw(st.sampled_from(list(rules.entities.values())))
    fields = {name: s(draw(st.sampled_from("12"))) for name in entity.identity}
    keys = {a.name: entity.templates[a.name].build(fields, a.type) or s("1") for a in entity.table.key}
    if draw(st.booleans()):
        keys = {**keys, entity.table.partition.name: s("X#1")}
    names = [name for name in all_names(rules) if name not in keys]
    image = st.dictionaries(st.sampled_from(names), VALUES, max_size=6)
    old = draw(st.none() | image)
    new = draw(st.none() | image) if old is not None else draw(image)
    if old is not None and new is not None:  # most of it stays as it was
        new = {**old, **{name: value for name, value in new.items() if draw(st.integers(0, 2)) == 0}}
    return record(entity.table, keys, *(None if one is None else {**keys, **one} for one in (old, new)))


@pytest.mark.parametrize("name", [EVERY, *ALONE, *FILES])
def test_what_the_sieve_leaves_out_asks_for_nothing(name):
    """Whatever changed: read in full, such a record comes to no pull, no push, no part and no effect."""
    rules = rules_named(name)

    @settings(max_examples=100, deadline=None)
    @given(records(rules))
    def check(one):
        passed, _ = changes_of(read_event({"Records": [one]}, rules, sifted=True))
        in_full, _ = changes_of(read_event({"Records": [one]}, rules))
        assert passed in ([], in_full)
        if not passed:
            plan = plan_batch(in_full, rules)
            assert (plan.pulls, plan.pushes, plan.parts, plan.effects) == ((), (), (), ())

    check()


def sieve_of(rules: Rules, table: str) -> Sieve:
    return rules.sieves[rules.tables[table].physical_name]


def data(old, new):
    image = new or old
    return {"Keys": {"PK": image["PK"], "SK": image["SK"]}, "OldImage": old, "NewImage": new}


def plain_rules():
    """Only a copy: two entities, of which two attributes are watched."""
    return rules_of(*(name for name in rules_of().rules if name != "names"), effects=False)


@pytest.mark.parametrize(
    ("old", "new", "passes"),
    [
        (user("1", age=n(1)), user("1", age=n(2)), False),
        (user("1", name=s("a")), user("1", name=s("b")), True),
        (order("1", "1", 5), order("1", "1", 6), False),
        (order("1", "1", 5, user_name=s("a")), order("1", "1", 5, user_name=s("b")), True),
        (order("1", "1", 5, user_name=s("a")), order("1", "1", 5), True),
        (None, order("1", "1", 5), True),
        (order("1", "1", 5), None, True),
        ({"PK": s("CART#1"), "SK": s("x")}, {"PK": s("CART#1"), "SK": s("x"), "name": s("b")}, False),
        ({"PK": s("USER#1"), "SK": s("CART#1")}, {"PK": s("USER#1"), "SK": s("CART#1"), "name": s("b")}, False),
    ],
    ids=["unwatched", "source", "target-unwatched", "copy", "copy-gone", "came", "went", "stranger", "other-sort-key"],
)
def test_sieve_lets_pass_what_a_rule_watches(old, new, passes):
    """A change of an attribute that a rule goes by, and items that came or went; nothing of other entities."""
    assert sieve_of(plain_rules(), "shop").passes(data(old, new)) is passes


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"Keys": None},
        {"Keys": {"PK": s("USER#1")}},
        {"Keys": {"PK": {"N": "1"}, "SK": s("x")}},
        {"Keys": {"PK": "x"}},
    ],
    ids=["nothing", "no-keys", "one-key", "other-type", "no-value"],
)
def test_record_that_is_none_is_told_and_not_left_out(broken):
    """What the sieve cannot read is read in full, and has its failure."""
    rules = plain_rules()
    one = record(rules.tables["shop"], {}, None, None) | {"dynamodb": broken}
    changes, failures = changes_of(read_event({"Records": [one]}, rules, sifted=True))
    assert (changes, len(failures)) == ([], 1)


def test_what_is_left_out_is_not_read():
    """Not even that values are values is looked at."""
    image = {"PK": s("USER#1"), "SK": s("PROFILE"), "odd": {"what": "ever"}}
    rules = plain_rules()
    one = record(rules.tables["shop"], {"PK": image["PK"], "SK": image["SK"]}, image, image)
    assert changes_of(read_event({"Records": [one]}, rules, sifted=True)) == ([], [])
