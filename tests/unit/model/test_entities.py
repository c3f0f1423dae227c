"""Entities: an item belongs to a single entity. No other entity reads or builds its key."""

from __future__ import annotations

from itertools import product

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.entities import Entity, KeyAttribute, Table
from sync_rules.model.items import ItemKey
from sync_rules.model.templates import parse_template
from tests.support.builders import s
from tests.support.worlds import Scene

GRAPH = """
tables:
  graph:   {key: {source: S, target: S}}
  follows: {key: {follower: S, followed: S}}
  ledger:  {key: {PK: S, SK: S}}
entities:
  node:   {table: graph, key: {source: "{id}", target: "{id}"}}
  edge:   {table: graph}
  follow: {table: follows}
rules:
  one: """
NAMED = "link: {source: followed, target: follower}"
MIRROR = f"{{mirror: follow, into: edge, {NAMED}, attributes: all}}"


def graph(rule: str) -> Scene:
    return Scene(parse_rules(GRAPH + rule + "\n"))


def test_entity_is_not_of_a_key_that_an_earlier_one_fits():
    """A node stands among the edges of its table and is none: its key is neither taken apart nor built as an edge's."""
    rules = graph(MIRROR).rules
    node, edge = rules.entities["node"], rules.entities["edge"]
    key = node.key_of({"id": s("a")})
    assert key is not None
    assert rules.entity_of(key) is node
    assert edge.fields(key) is None
    assert edge.key_of({"source": s("a"), "target": s("a")}) is None
    assert edge.key_of({"source": s("a"), "target": s("b")}) is not None


KEYED = ("A#{id}", "A#", "{id}", "A#{id}#B", "A#{id}#{no}", "{id}#{no}", "B{other}", "A#{id}B{id}")
WITHIN = ("", "x", "#", "A#")  # what may stand in place of a field, also where none can
TEXTS = sorted({text.format(id=one, no=two, other=one) for text in KEYED for one in WITHIN for two in WITHIN})
LEDGER = Table("t", "t", KeyAttribute("PK", "S"), KeyAttribute("SK", "S"))


@pytest.mark.parametrize("partition", KEYED)
def test_entity_has_the_keys_whose_fields_it_can_tell(partition):
    """`has` agrees with `fields`, also for a key that is almost the entity's, such as one with an empty field."""
    for sort in KEYED:
        one = Entity("one", LEDGER, {"PK": parse_template(partition), "SK": parse_template(sort)})
        for at, at_sort in product(TEXTS, TEXTS):
            key = ItemKey("t", (("PK", "S", at), ("SK", "S", at_sort)))
            assert one.has(key) is (one.fields(key) is not None), (sort, key)
            if one.has(key):
                for last in ((("SK", "N", at_sort),), (("XK", "S", at_sort),), ()):
                    assert one.has(key._replace(values=(key.values[0], *last))) is False


def test_a_recount_does_not_count_the_node_itself():
    """A node that lists its edges by its own partition finds itself among them, and is no edge of its own."""
    scene = graph("{count: edge, into: node.n, link: {id: source}, mode: recount}")
    node = scene.put("graph", {"source": s("a"), "target": s("a")})
    scene.put("graph", {"source": s("a"), "target": s("b")})
    scene.rest()
    assert scene.item(node)["n"] == {"N": "1"}
