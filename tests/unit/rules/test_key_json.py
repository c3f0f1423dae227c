"""Keys as users give them."""

from __future__ import annotations

import pytest

from sync_rules.model.errors import UserError
from sync_rules.rules.key_json import parse_key
from tests.support.every_kind import rules_of


def test_a_key_of_several_tables_is_that_of_the_entity_it_fits():
    """A ledger has the same key attributes as the table it is for; an order's key is an order's all the same."""
    rules = rules_of()
    key = parse_key('{"PK": "USER#1", "SK": "ORDER#7"}', None, rules)
    assert (key.table, rules.entity_of(key)) == ("shop", rules.entities["order"])
    with pytest.raises(UserError, match=r"several tables \(shop, ledger\): say which with --table"):
        parse_key('{"PK": "nothing", "SK": "known"}', None, rules)
    assert parse_key('{"PK": "nothing", "SK": "known"}', "ledger", rules).table == "ledger"


@pytest.mark.parametrize("text", ["{}", "[]", "5", "null", "{", '["PK"]'])
def test_a_key_that_is_no_map_of_values_is_refused(text):
    """A key is a JSON object with at least one attribute."""
    with pytest.raises(UserError):
        parse_key(text, None, rules_of())


@pytest.mark.parametrize("value", ["", "x" * 2049])
def test_a_key_that_no_item_can_have_is_refused(value):
    """DynamoDB would refuse a read of it, and the rules file is not to blame."""
    with pytest.raises(UserError, match="no item of table shop can have this key"):
        parse_key(f'{{"PK": "{value}", "SK": "ORDER#7"}}', "shop", rules_of())
