"""Conditions of rules of every kind: what they mean, and what a rule does if it cannot evaluate its condition."""

from __future__ import annotations

import pytest

from sync_rules.lab.delivery import VARIANTS
from sync_rules.lab.rehearsal import Rehearsal
from sync_rules.lab.scenario import play
from sync_rules.lab.scenario_file import load_scenario
from sync_rules.language.load import parse_rules

TABLES = """
tables:
  shop: {key: {PK: S, SK: S}}
  mails: {key: {mail: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user:  {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  mail:  {table: mails, key: {mail: "{mail}"}}
rules:
"""
RAISES = 'where: "length(tags) > `1`"'
REASON = "WhereFailed: length() of nothing"
EVERY_KIND = {
    "copied": f"copy: user.name, into: order.user_name, {RAISES}",
    "shown": f"embed: order, into: user.orders, fields: [total], limit: {{items: 9}}, {RAISES}",
    "counted": f"count: order, into: user.counted, {RAISES}",
    "summed": f"sum: order.total, into: user.summed, mode: recount, {RAISES}",
    "least": f"min: order.total, into: user.least, {RAISES}",
    "collected": f"collect: order, into: user.collected, as: '{{order_id}}', {RAISES}",
    "left-out": "collect: order, into: user.rest, as: '{order_id}', omit: 'length(tags) > `1`'",
    "mirrored": f"mirror: order, into: mail, attributes: [total], {RAISES}",
    "told": f"call: shop.told, on: order, when: [created], {RAISES}",
}
PUT = "put: {shop: {PK: USER#1, SK: ORDER#7, mail: a@b.c, total: 3%s}}"


@pytest.fixture
def wrong(tmp_path):
    """Plays a scenario in memory, by each way of delivery; gives what does not hold."""

    def wrong(rules: str, scenario: str) -> list[str]:
        (tmp_path / "rules.yaml").write_text(TABLES + rules)
        parsed = parse_rules(TABLES + rules, environ={})
        (tmp_path / "scenario.yaml").write_text(scenario)
        found = []
        for variant in VARIANTS:
            played = play(load_scenario(tmp_path, parsed), Rehearsal(parsed, delivery=variant))
            found += [f"{variant.name}: {line}" for _, lines in played for line in lines]
        return found

    return wrong


@pytest.mark.parametrize("rule", EVERY_KIND)
def test_condition_that_cannot_be_evaluated_is_a_failure_of_its_rule(rule, wrong):
    """An order without tags: each kind of rule says that it could not tell, once, and does what it should afterwards."""
    held = {
        "copied": "shop: {PK: USER#1, SK: ORDER#7, user_name: Ada}",
        "shown": "shop: {PK: USER#1, SK: PROFILE, orders: {'7': {total: 3}}}",
        "counted": "shop: {PK: USER#1, SK: PROFILE, counted: 1}",
        "summed": "shop: {PK: USER#1, SK: PROFILE, summed: 3}",
        "least": "shop: {PK: USER#1, SK: PROFILE, least: 3}",
        "collected": "shop: {PK: USER#1, SK: PROFILE, collected: !set ['7']}",
        "left-out": "shop: {PK: USER#1, SK: PROFILE, rest: <absent>}",
        "mirrored": "mails: {mail: a@b.c, total: 3}",
        "told": "shop: {PK: USER#1, SK: ORDER#7, total: 3}",
    }[rule]
    reported = f"{rule}.ledger" if rule in ("counted", "least") else rule
    scenario = f"""
data: {{shop: {{PK: USER#1, SK: PROFILE, name: Ada}}}}
steps:
  - {{say: unknown, {PUT % ""}, expect_failures: {{{reported}: "{REASON}"}}}}
  - {{say: known, {PUT % ", tags: [a, b]"}, expect: {{{held}}}}}
"""
    assert wrong(f"  {rule}: {{{EVERY_KIND[rule]}}}\n", scenario) == []


ORDER = "{PK: USER#1, SK: ORDER#7}"


@pytest.mark.parametrize(("policy", "left"), [("delete", "Ada"), ("restrict", "Ada"), ("clear", "<absent>")])
def test_on_delete_leaves_a_target_of_which_nobody_can_tell(policy, left, wrong):
    """The order lost its tags, then its user: it is not deleted. `clear` asks no condition."""
    scenario = f"""
data: {{shop: [{{PK: USER#1, SK: PROFILE, name: Ada}}, {{PK: USER#1, SK: ORDER#7, tags: [a, b]}}]}}
expect: {{shop: {{PK: USER#1, SK: ORDER#7, user_name: Ada}}}}
steps:
  - say: unknown
    update: {{shop: {{key: {ORDER}, remove: [tags]}}}}
    expect_failures: {{names: "{REASON}"}}
  - say: gone
    delete: {{shop: {{PK: USER#1, SK: PROFILE}}}}
    expect: {{shop: {{PK: USER#1, SK: ORDER#7, user_name: {left}}}}}
"""
    rule = f"  names: {{copy: user.name, into: order.user_name, on_delete: {policy}, {RAISES}}}\n"
    assert wrong(rule, scenario) == []
