"""The rules of a file: which table a stream is of, and which entity an item."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.language.load import parse_rules
from sync_rules.model.entities import Entity, KeyAttribute, Table
from sync_rules.model.errors import RecordError
from sync_rules.model.items import ItemKey
from sync_rules.model.templates import parse_template
from sync_rules.rules.ruleset import Rules

NAMED = "arn:aws:dynamodb:{}:111122223333:table/main"


def of_stream(region: str, *names: str) -> str | None:
    """The name of the table in the rules file that a stream of a Region is of."""
    tables = "".join(f"  t{number}: {{name: '{name}', key: {{id: S}}}}\n" for number, name in enumerate(names))
    found = parse_rules(f"tables:\n{tables}entities: {{}}\nrules: {{}}\n").find_table_of_stream(
        f"{NAMED.format(region)}/stream/x"
    )
    return found and found.name


def test_ruleset_tells_tables_of_one_name_apart_by_their_regions():
    """Tables of one name are told apart by what a stream's ARN says; one that cannot be told is refused."""
    both = NAMED.format("eu-west-1"), NAMED.format("us-east-1")
    assert [of_stream(region, *both) for region in ("eu-west-1", "us-east-1")] == ["t0", "t1"]
    with pytest.raises(RecordError, match="t0 and t1"):
        of_stream("eu-central-1", *both)


def test_ruleset_takes_the_only_table_of_a_name():
    """A single table of its name needs no Region: an emulator has one of its own."""
    assert of_stream("us-east-1", NAMED.format("eu-west-1")) == "t0"
    assert of_stream("us-east-1", "other") is None


def test_ruleset_can_be_pickled_after_it_was_used():
    """An application may hand its rules to another process at any time."""
    rules = parse_rules("tables: {shop: {key: {id: S}}}\nentities: {}\nrules: {}\n")
    assert rules.find_table_of_stream("shop") is rules.tables["shop"]
    copied = pickle.loads(pickle.dumps(rules))
    assert copied.find_table_of_stream("shop") is copied.tables["shop"]


SHORT_TEXTS = st.text("ab#", min_size=1, max_size=3)


@given(
    st.lists(st.tuples(st.text("ab#", max_size=2), st.text("ab#", max_size=2), st.booleans()), max_size=4),
    SHORT_TEXTS,
    SHORT_TEXTS,
)
def test_rules_find_the_entity_of_a_key_by_what_it_begins_with(kinds, partition, sort):
    """An entity is found if and only if the key fits one, and it is one that the key fits."""
    table = Table("t", "t", KeyAttribute("PK", "S"), KeyAttribute("SK", "S"))
    entities = [
        Entity(
            f"e{n}",
            table,
            {"PK": parse_template(f"{one}{{x}}"), "SK": parse_template(f"{two}{{y}}" if field else two or "#")},
        )
        for n, (one, two, field) in enumerate(kinds)
    ]
    rules = Rules({"t": table}, {one.name: one for one in entities}, {})
    key = ItemKey("t", (("PK", "S", partition), ("SK", "S", sort)))
    fitting = [one for one in entities if one.fields(key) is not None]
    found = rules.entity_of(key)
    assert found in (fitting or [None])
