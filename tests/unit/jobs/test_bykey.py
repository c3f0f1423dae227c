"""Parts by key: what the key of a deleted item says by itself, for each kind of rule, and what only its image said."""

from __future__ import annotations

import pytest

from sync_rules.jobs.redrive.work import list_parts_by_key, list_rules_that_need_images
from sync_rules.language.load import parse_rules
from tests.support.builders import key

TABLES = """
tables:
  shop: {name: shop, key: {PK: S, SK: S}}
  links: {name: links, key: {from: S, to: S}}
  marks: {name: marks, key: {id: S, at: N}}
  ledger: {name: ledger, key: {PK: S, SK: S}}
entities:
  node: {table: shop, key: {PK: "NODE#{node_id}", SK: NODE}}
  edge: {table: shop, key: {PK: "NODE#{node_id}", SK: "EDGE#{other}"}}
  back: {table: links, key: {from: "{from}", to: "{to}"}}
  mark: {table: marks}
  owner: {table: shop, key: {PK: "OWNER#{id}", SK: OWNER}}
rules:
  others: {collect: edge, into: node.others, as: "{other}", where: "kind == 'live'"}
  turned: {mirror: edge, into: back, link: {from: other, to: node_id}, attributes: [kind]}
  earliest: {min: mark.at, into: owner.earliest, where: "kind == 'live'"}
"""


@pytest.fixture
def rules():
    return parse_rules(TABLES)


def test_parts_by_key_are_those_of_an_item_that_is_let_in_or_not(rules):
    """The element and the mirror of an edge, the rank of a mark: their place is in the key, whatever `where` says."""
    tables = rules.tables
    edge = list_parts_by_key(key(tables["shop"], "NODE#a", "EDGE#b"), rules)
    assert [(part.rule.name, str(part.target), part.element) for part in edge] == [
        ("others", "shop[NODE#a, NODE]", "b"),
        ("turned", "links[b, a]", ""),
    ]
    assert all(part.rule is rules.rules[part.rule.name] for part in edge)
    (mirror,) = list_parts_by_key(key(tables["links"], "b", "a"), rules)
    assert (mirror.rule.name, str(mirror.source)) == ("turned", "shop[NODE#a, EDGE#b]")
    (rank,) = list_parts_by_key(key(tables["marks"], "7", "5"), rules)
    assert (rank.rule.name, str(rank.source)) == ("earliest.ledger", "marks[7, 5]")
    assert list_parts_by_key(key(tables["shop"], "x", "y"), rules) == []


def test_unknown_by_key_is_an_element_of_an_attribute():
    """The key of an edge that went does not say the role that its element had; a node's key says all that it needs."""
    rules = parse_rules(TABLES.replace('as: "{other}"', 'as: "{other}-{role}"'))
    for sort, unknown in (("EDGE#b", ["others"]), ("NODE", [])):
        found = list_rules_that_need_images(key(rules.tables["shop"], "NODE#a", sort), rules)
        assert [rule.name for rule in found] == unknown
