"""Entries of an embed that are named by an attribute: who has one that two children claim, and who is told."""

from __future__ import annotations

import pytest

from sync_rules.audit.compare import Drift
from sync_rules.lab.delivery import VARIANTS
from sync_rules.language.load import parse_rules
from sync_rules.model.values import get
from tests.support.builders import m, s
from tests.support.verifying import require_scenario, verify
from tests.support.worlds import Scene

RULES = """
tables: {crm: {key: {PK: S, SK: S}}}
entities:
  customer: {table: crm, key: {PK: "CUSTOMER#{customer_id}", SK: PROFILE}}
  address: {table: crm, key: {PK: "CUSTOMER#{customer_id}", SK: "ADDRESS#{address_id}"}}
rules:
  addresses: {embed: address, into: customer.MailingAddresses, by: "{Label}", fields: [street], limit: {items: 20}}
"""
SCENARIO = """
rules: rules.yaml
data:
  crm:
  - {PK: CUSTOMER#1, SK: PROFILE}
  - {PK: CUSTOMER#1, SK: ADDRESS#b, Label: Home, street: Lime Walk}
steps:
- say: an address without a label has no entry, and is reported
  put: {crm: {PK: CUSTOMER#1, SK: ADDRESS#c, street: Quay Street}}
  expect: {crm: {PK: CUSTOMER#1, SK: PROFILE, MailingAddresses: {Home: {street: Lime Walk}}}}
  expect_failures: {addresses: NoEntryKey}
- say: it gets one
  update: {crm: {key: {PK: CUSTOMER#1, SK: ADDRESS#c}, set: {Label: Business}}}
  expect:
    crm:
      PK: CUSTOMER#1
      SK: PROFILE
      MailingAddresses: {Home: {street: Lime Walk}, Business: {street: Quay Street}}
- say: a second home, whose key comes first, has the entry; the business is not held up
  put: {crm: {PK: CUSTOMER#1, SK: ADDRESS#a, Label: Home, street: Dune House}}
  update: {crm: {key: {PK: CUSTOMER#1, SK: ADDRESS#c}, set: {street: Harbour Row}}}
  expect:
    crm:
      PK: CUSTOMER#1
      SK: PROFILE
      MailingAddresses: {Home: {street: Dune House}, Business: {street: Harbour Row}}
  expect_failures: {addresses: EntryTwice}
- say: the one with the entry takes another label, and the other one has it
  update: {crm: {key: {PK: CUSTOMER#1, SK: ADDRESS#a}, set: {Label: Summer}}}
  expect:
    crm:
      PK: CUSTOMER#1
      SK: PROFILE
      MailingAddresses: {Home: {street: Lime Walk}, Business: {street: Harbour Row}, Summer: {street: Dune House}}
- say: a third home goes again, and nothing was changed by it
  put: {crm: {PK: CUSTOMER#1, SK: ADDRESS#d, Label: Home, street: Mill Lane}}
  expect: {crm: {PK: CUSTOMER#1, SK: PROFILE, MailingAddresses.Home: {street: Lime Walk}}}
  expect_failures: {addresses: EntryTwice}
- say: the one with the entry is deleted
  delete: {crm: {PK: CUSTOMER#1, SK: ADDRESS#b}}
  expect: {crm: {PK: CUSTOMER#1, SK: PROFILE, MailingAddresses.Home: {street: Mill Lane}}}
"""


@pytest.mark.parametrize("delivery", VARIANTS, ids=str)
def test_entry_that_two_claim_is_of_the_first_under_every_delivery(delivery, tmp_path):
    """The map is a function of the addresses as they are: what one loses, another has at once."""
    require_scenario(tmp_path, RULES, SCENARIO, delivery)


def address(name, label, street):
    return {"PK": s("CUSTOMER#1"), "SK": s(f"ADDRESS#{name}"), "Label": s(label), "street": s(street)}


def at_rest(*addresses):
    scene = Scene(parse_rules(RULES))
    scene.put("crm", {"PK": s("CUSTOMER#1"), "SK": s("PROFILE")}, *addresses)
    scene.rest()
    return scene


def test_entry_that_two_claim_is_found_by_verify_and_left_by_repair():
    """The rule, the customer and the reason are told; what drifts besides is written, and the claim remains."""
    scene = at_rest(address("a", "Home", "x"), address("b", "Home", "y"), address("c", "Work", "z"))
    (failure,) = {(one.rule, one.key, one.reason, one.member) for one in scene.parked.failures}
    assert (failure[0], failure[2]) == ("addresses", "EntryTwice")
    assert [value for _, _, value in failure[3].values] == ["CUSTOMER#1", "ADDRESS#b"]
    (customer,) = [item for item in scene.memory.items("crm") if item["SK"] == s("PROFILE")]
    right = m(Home=m(street=s("x")), Work=m(street=s("z")))
    assert get(customer, ("MailingAddresses",)) == right

    def found(*, repair):
        findings, _ = verify(scene, repair=repair)
        return [(one.difference.drift, one.difference.reason, one.repaired) for one in findings]

    assert found(repair=True) == [(Drift.STUCK, "EntryTwice", False)]
    scene.there("crm", {**customer, "MailingAddresses": m(Home=m(street=s("y")))})
    assert found(repair=False) == [(Drift.STUCK, "EntryTwice", False)]
    assert found(repair=True) == [(Drift.STUCK, "EntryTwice", False)]
    (customer,) = [item for item in scene.memory.items("crm") if item["SK"] == s("PROFILE")]
    assert get(customer, ("MailingAddresses",)) == right
    assert found(repair=False) == [(Drift.STUCK, "EntryTwice", False)]
