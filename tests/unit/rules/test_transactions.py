"""The transactions that a rule states are those that the pipeline makes: some tables refuse them."""

from __future__ import annotations

import pytest

from sync_rules.language.load import parse_rules
from sync_rules.model.writes import Transaction, Write
from tests.docs.test_costs import settle
from tests.support.every_kind import ENTITIES, RULES, order, part, post, text_of, user
from tests.support.worlds import Scene

MORE = """\
  version:  {table: shop, key: {PK: "USER#{user_id}", SK: "V#{version:pad(3)}"}}
  draft:    {table: shop, key: {PK: "DRAFT#{user_id}", SK: PROFILE}}
"""
VARIANTS = {
    "strict": "{copy: user.name, into: order.user_name, strict: true}",
    "between": "{copy: user.name, into: post.user_name, strict: true}",
    "deleted": "{copy: user.name, into: order.user_name, on_delete: delete}",
    "elements": "{collect: order, into: user.orders, as: '{order_id}', strict: true}",
    "states": "{history: user, into: version, attributes: [name]}",
}
CASES = {name: rule for name, rule in (RULES | VARIANTS).items() if name != "told"}  # which copies a count


@pytest.mark.parametrize("name", CASES)
def test_transactions_of_a_rule_are_those_that_it_states(name):
    """Items come, change, move and go; the tables of every transaction are those that `transacting` names."""
    shop = Scene(parse_rules(text_of({name: CASES[name]}, entities=ENTITIES + MORE), environ={}))
    writes: list[Write] = []
    texts = {"name": {"S": "N"}, "rank": {"S": "1"}, "email": {"S": "e"}, "version": {"N": "1"}}
    one = user("1", **texts)
    rows = [
        ("shop", one), ("shop", order("1", "1", 5)), ("shop", order("1", "2", 7)), ("posts", post("1", "1", "T")),
        ("parts", part("1")), ("parts", part("2", "1")),
        ("shop", user("1", **texts | {"name": {"S": "O"}, "email": {"S": "f"}, "version": {"N": "2"}})),
        ("shop", order("1", "1", 9)), ("parts", part("2")), ("shop", one | {"rank": {"S": "DRAFT"}}),
    ]  # fmt: skip
    for table, item in rows:
        shop.put(table, item)
        settle(shop)
        writes += shop.tap.writes
    for key in (order("1", "1", 9), one):
        shop.memory.delete(shop.rules.tables["shop"].key_of(key))
        settle(shop)
        writes += shop.tap.writes
    stated = {use.table.name for rule in shop.rules.rules.values() for use in rule.list_transaction_uses()}
    assert writes, "the rule wrote nothing"
    made = (write for write in writes if isinstance(write, Transaction))
    assert {action.key.table for write in made for action in write.actions} == stated
    assert stated <= {table.name for table in shop.rules.streamed_tables}, "preflight describes no other tables"
