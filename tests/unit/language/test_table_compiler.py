"""Settings of tables: Time to Live and vector indexes, on which no fingerprint depends."""

from __future__ import annotations

import pytest

from sync_rules.language.load import check_rules, parse_rules
from sync_rules.rules import fingerprints

TEXT = """
tables:
  shop:
    key: {PK: S, SK: S}
    name: "${SHOP:-shop}"
    ttl: expires_at
    vectors: {near: {vector: embedding, dimensions: 3}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  names: copy user.name into order.user_name
  ranks: {copy: user.rank, into: order.rank, where: "kind == 'BOOK'"}
"""


def test_no_fingerprint_depends_on_settings_names_or_order():
    """Fingerprints are the same without settings, for another physical table, and for commented rules in another order."""
    with_all, with_none = parse_rules(TEXT), parse_rules(TEXT.replace("    ttl:", "#").replace("    vectors:", "#"))
    assert with_all.tables["shop"].ttl
    assert with_all.tables["shop"].vectors
    assert not with_none.tables["shop"].ttl
    assert not with_none.tables["shop"].vectors
    names, ranks = TEXT.splitlines()[-2:]
    swapped = TEXT.replace(f"{names}\n{ranks}", f"{ranks}  # a comment\n{names}")
    assert swapped != TEXT
    for other in (with_none, parse_rules(swapped), parse_rules(TEXT, environ={"SHOP": "other"})):
        assert with_all.fingerprint == other.fingerprint
        assert fingerprints.compute_rule_fingerprints(with_all) == fingerprints.compute_rule_fingerprints(other)


TIMED = """
tables: {{games: {{key: {{game_id: S}}{ttl}}}}}
entities: {{game: {{table: games}}}}
rules: {{labels: {{derive: game.label, as: "{{game_id}}"}}}}
"""


@pytest.mark.parametrize("ttl", ["", ", ttl: expires_at"])
def test_time_to_live_of_a_table_is_no_need_of_a_rule(ttl):
    """The table has the attribute that the file states, and no rule depends on it."""
    rules, problems = check_rules(TIMED.format(ttl=ttl))
    assert problems == []
    assert rules.times_to_live == ({"games": "expires_at"} if ttl else {})
    assert rules.needed_times_to_live == {}
