"""Entries of an embed that are named by an attribute: who has one that two children claim, and who is told."""

from __future__ import annotations

from sync_rules.audit.compare import Drift
from sync_rules.language.load import parse_rules
from sync_rules.model.values import get
from tests.support.builders import m, s
from tests.support.verifying import verify
from tests.support.worlds import Scene

RULES = """
tables: {crm: {key: {PK: S, SK: S}}}
entities:
  customer: {table: crm, key: {PK: "CUSTOMER#{customer_id}", SK: PROFILE}}
  address: {table: crm, key: {PK: "CUSTOMER#{customer_id}", SK: "ADDRESS#{address_id}"}}
rules:
  addresses: {embed: address, into: customer.MailingAddresses, by: "{Label}", fields: [street], limit: {items: 20}}
"""


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
