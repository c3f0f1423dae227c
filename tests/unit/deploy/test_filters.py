"""Filter criteria: what they let through, and what they spare the function."""

from __future__ import annotations

import json
from itertools import product

import pytest
from moto.events.models import EventPattern

from sync_rules.deploy.filters import PATTERN_MAX_CHARACTERS, PATTERNS_MAX, list_entities, make_filter_criteria
from sync_rules.language.load import load_rules, parse_rules
from sync_rules.model.entities import Table
from sync_rules.model.items import Change, ItemKey
from sync_rules.rules.ruleset import Rules
from tests.support.every_kind import rules_of
from tests.test_house import ROOT

MANY = "".join(
    f"  e{i:02}: {{table: shop, key: {{PK: '{chr(65 + i % 4)}{i % 3}#{{id}}', SK: '{'KIND' * (i % 5)}{i:02}'}}}}\n"
    for i in range(40)
)
CHAINED = "".join(f"  r{i:02}: copy e{i:02}.name into e{i + 4:02}.name{i:02}\n" for i in range(36))
LONG = "".join(
    f"  e{i}: {{table: shop, key: {{PK: '{i}{'x' * 900}#{{id}}', SK: 'K{i}'}}}}\n" for i in range(12)
)  # too long for one pattern of all partition keys


def files() -> dict[str, Rules]:
    examples = {path.parent.name: load_rules(path, {}) for path in sorted(ROOT.glob("examples/*/rules.yaml"))}
    head = "tables:\n  shop: {key: {PK: S, SK: S}}\nentities:\n"
    merged = parse_rules(head + MANY + "rules:\n" + CHAINED)
    long = parse_rules(head + LONG + "rules:\n" + LONG_RULES)
    return examples | {"every-kind": rules_of(), "merged": merged, "long": long}


LONG_RULES = "".join(f"  r{i}: {{derive: e{i}.twice, as: '{{id}}-{{id}}'}}\n" for i in range(12))
FILES = files()
STREAMS = [(name, table.name) for name, rules in FILES.items() for table in rules.streamed_tables]


def matches(criteria, change: Change) -> bool:
    """The event source mapping's answer for a change's record: passed on or dropped."""
    if criteria is None:
        return True
    record = {"dynamodb": {"Keys": {name: {kind: str(value)} for name, kind, value in change.key.values}}}
    return any(EventPattern.load(one["Pattern"]).matches_event(record) for one in criteria["Filters"])


@pytest.mark.parametrize(("file", "table"), STREAMS)
def test_filter_is_one_that_a_mapping_takes(file, table):
    """A filter has at most five patterns of 4,096 characters, on string keys, by equality and prefix."""
    rules = FILES[file]
    criteria = make_filter_criteria(rules, rules.tables[table])
    if criteria is None:
        return
    patterns = [one["Pattern"] for one in criteria["Filters"]]
    assert 0 < len(patterns) <= PATTERNS_MAX
    strings = {attribute.name for attribute in rules.tables[table].key if attribute.type == "S"}
    for pattern in patterns:
        assert len(pattern) <= PATTERN_MAX_CHARACTERS
        said = json.loads(pattern)
        assert said.keys() == {"dynamodb"}
        assert said["dynamodb"].keys() == {"Keys"}
        assert said["dynamodb"]["Keys"].keys() <= strings
        for of_type in said["dynamodb"]["Keys"].values():
            assert of_type.keys() == {"S"}
            assert all(isinstance(one, str) or one.keys() == {"prefix"} for one in of_type["S"])


def records_of(rules: Rules, table: Table):
    for pk, sk in product(("ORG#1", "TICKET#1", "SESSION#1", "USER#1"), ("ORG", "USER#1", "TICKET", "VISIT#1")):
        key = ItemKey(table.name, (("PK", "S", pk), ("SK", "S", sk)))
        yield Change(key, None, key.attributes())


def test_filter_drops_what_no_rule_speaks_of():
    """In a shared table the filter passes exactly the items of the rules' entities."""
    rules = FILES["organisations-users-tickets"]
    desk = rules.tables["desk"]
    criteria = make_filter_criteria(rules, desk)
    for change in records_of(rules, desk):
        assert matches(criteria, change) == (rules.entity_of(change.key) is not None)


def test_filter_is_none_where_an_item_may_have_any_key():
    """A table whose entity has no text in its key, or a number for one, cannot be filtered."""
    rules = FILES["authors-and-books"]
    assert [make_filter_criteria(rules, table) for table in rules.tables.values()] == [None, None]
    numbers = parse_rules(
        "tables:\n  numbered: {key: {id: N}}\nentities:\n  a: {table: numbered}\nrules:\n  r: {derive: a.b, as: '{c}-{c}'}\n"
    )
    assert make_filter_criteria(numbers, numbers.tables["numbered"]) is None


def test_filter_of_many_entities_still_drops_foreign_items():
    """A filter with merged patterns for many entities still drops items of no entity."""
    rules = FILES["merged"]
    shop = rules.tables["shop"]
    criteria = make_filter_criteria(rules, shop)
    assert len(list_entities(rules, shop)) == 40
    for pk, sk in (("Z#1", "00"), ("SESSION#1", "KIND01"), ("A0#1", "VISIT")):
        key = ItemKey("shop", (("PK", "S", pk), ("SK", "S", sk)))
        assert not matches(criteria, Change(key, None, {})), (pk, sk)
