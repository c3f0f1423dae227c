"""The history kind: an item for each version that an item ever was, once, whatever the records do."""

from __future__ import annotations

import json

import pytest

from sync_rules.audit.compare import Drift, recheck
from sync_rules.audit.drift_report import make_row, parse_finding
from sync_rules.audit.verifier import Verifier
from sync_rules.language.load import parse_rules
from sync_rules.pipeline.books import finish_empty
from sync_rules.pipeline.messages import PartMessage
from sync_rules.rules.kinds.history import LOST, STATE, TAKEN, UNNUMBERED
from tests.support.builders import m, n, s
from tests.support.worlds import Scene

FILE = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {GSI1: {GSI1PK: S}}}
entities:
  product: {table: shop, key: {PK: "PRODUCT#{id}", SK: PRODUCT}}
  version: {table: shop, key: {PK: "PRODUCT#{id}", SK: "V#{version:pad(3)}"}}
rules:
  versions: {history: product, into: version%s}
"""
SOME = ", attributes: [name, price]"


def scene(options: str = SOME) -> Scene:
    return Scene(parse_rules(FILE % options))


def product(version: object = 1, **values: object):
    number = {} if version is None else {"version": n(version) if isinstance(version, int) else version}
    return {"PK": s("PRODUCT#7"), "SK": s("PRODUCT"), **number, **values}


def versions(shop: Scene) -> dict[str, dict[str, object]]:
    """Each version, by its sort key, with all that it holds beside its key."""
    found = [item for item in shop.memory.items("shop") if item["SK"]["S"].startswith("V#")]
    return {item["SK"]["S"]: {name: v for name, v in item.items() if name not in ("PK", "SK")} for item in found}


def ups(shop: Scene, *prices: int) -> None:
    for version, price in enumerate(prices, 1):
        shop.put("shop", product(version, name=s("tea"), price=n(price)))


# ---------------------------------------------------------------- once, and never again


LISTED = FILE.replace('SK: "V#{version:pad(3)}"', 'SK: "V#{version:pad(3)}", GSI1PK: "VERSIONS#{id}"')
EXPIRING = FILE % ", attributes: [price, at]" + "  go: {derive: version.gone, as: 'ttl(at, 1d)'}\n"
LIVE = FILE % (SOME + ", where: \"state == 'LIVE'\"")


@pytest.mark.parametrize(
    ("text", "states", "kept"),
    [
        (
            FILE % "",  # a version with the key of an index would stand among the items of now
            [product(1, name=s("tea"), GSI1PK=s("CATEGORY#1"), box=m(a=n(1)))],
            {"V#001": {"version": n(1), "name": s("tea"), "box": m(a=n(1))}},
        ),
        (
            LISTED % "",  # but a key that the version's template makes is its own
            [product(1, GSI1PK=s("CURRENT"), price=n(3))],
            {"V#001": {"GSI1PK": s("VERSIONS#7"), "version": n(1), "price": n(3)}},
        ),
        (LIVE, [product(1), product(2, price=n(2), state=s("LIVE")), product(3)], {"V#002": {"price": n(2)}}),
        (EXPIRING, [product(1, at=n(1_000))], {"V#001": {"at": n(1_000), "gone": n(87_400)}}),
    ],
    ids=["all", "index key of its own", "where", "time to live"],
)
def test_history_keeps_of_each_state_what_its_rule_says(text, states, kept):
    """All but the keys, or what is named, of the states that `where` admits; and verify finds no drift."""
    shop = Scene(parse_rules(text))
    shop.put("shop", *states)
    shop.rest()
    assert (versions(shop), shop.parked.told) == (kept, [])
    assert [*Verifier(shop.rules, shop.world, shop.rules.keeper_names, grace_seconds=0).sweep()] == []


# ---------------------------------------------------------------- what cannot be kept is reported
def test_history_reports_a_change_without_a_new_number():
    """The version that was first stays; the failure names rule, version and item; the next number goes on."""
    shop = scene()
    ups(shop, 3)
    shop.rest()
    shop.put("shop", product(1, name=s("tea"), price=n(4)))
    shop.rest()
    assert versions(shop) == {"V#001": {"name": s("tea"), "price": n(3)}}
    (failure,) = shop.parked.failures
    assert (failure.rule, failure.reason) == ("versions", TAKEN)
    assert failure.key == shop.at("shop", "PRODUCT#7", "V#001")
    assert failure.member == shop.at("shop", "PRODUCT#7", "PRODUCT")
    shop.put("shop", product(2, name=s("tea"), price=n(4)))
    shop.rest()
    shop.receive()  # the retry finds that the item has gone on
    assert versions(shop)["V#002"] == {"name": s("tea"), "price": n(4)}


@pytest.mark.parametrize(
    "version", [None, s("x"), s("007"), s(""), n("1.5"), n(-1), n(1000), {"NULL": True}, m(a=n(1))]
)
def test_history_reports_an_item_that_has_no_number(version):
    """A version without a key is reported with the item's key: nothing is lost in silence."""
    shop = scene()
    shop.put("shop", product(version, price=n(3)))
    shop.rest()
    assert versions(shop) == {}
    (failure,) = shop.parked.failures
    assert (failure.reason, failure.key) == (UNNUMBERED, shop.at("shop", "PRODUCT#7", "PRODUCT"))


def test_history_says_that_a_state_is_lost():
    """A message asks for a missing version whose state is gone: the pipeline reports it and does not skip it."""
    shop = scene()
    ups(shop, 3, 4)
    shop.records.clear()
    key, source = shop.at("shop", "PRODUCT#7", "V#001"), shop.at("shop", "PRODUCT#7", "PRODUCT")
    shop.consumer.handle_message(PartMessage("versions", key, source, STATE))
    assert shop.parked.told == [("versions", LOST)]
    now = shop.at("shop", "PRODUCT#7", "V#002")
    shop.consumer.handle_message(PartMessage("versions", now, source, STATE))
    assert [*versions(shop)] == ["V#002"]


# ---------------------------------------------------------------- what people do


@pytest.mark.parametrize(("version", "drift"), [(2, Drift.MISSING), (3, Drift.STUCK)])
def test_history_of_a_report_is_looked_at_again(version, drift):
    """A report carries no state. The rule makes the version from the item as it is, or says that it is lost."""
    shop = scene()
    ups(shop, 3, 4)
    shop.records.clear()
    (finding,) = Verifier(shop.rules, shop.world, shop.rules.keeper_names, grace_seconds=0).sweep()
    listed = parse_finding(json.loads(json.dumps(make_row(finding))), "report.jsonl:2", shop.rules).difference
    if version == 3:
        shop.there("shop", product(3, name=s("tea"), price=n(5)))
    (found,) = shop.drive(recheck([listed], shop.rules)).different
    assert (found.drift, found.target) == (drift, shop.at("shop", "PRODUCT#7", "V#002"))


def test_a_padded_field_is_a_number_to_other_rules():
    """Versions are ordered, compared and added up by their number, not by its digits."""
    shop = Scene(
        parse_rules("""
tables:
  shop: {key: {PK: S, SK: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  product: {table: shop, key: {PK: "PRODUCT#{id}", SK: PRODUCT}}
  product_version: {table: shop, key: {PK: "PRODUCT#{id}", SK: "V#{version:pad(6)}"}}
rules:
  kept: {history: product, into: product_version, attributes: [name]}
  names: {collect: product_version.name, into: product.names, as: list, order: -version, limit: 3}
  last: {embed: product_version, into: product.last, fields: [version], as: list, order: -version, on_overflow: oldest, limit: {items: 2}}
  late: {count: product_version, into: product.late, where: "version > `9`"}
  newest: {max: product_version.version, into: product.newest}
""")
    )
    shop.drive(finish_empty(shop.rules))
    shop.records.clear()
    for version in range(8, 13):
        shop.put("shop", {"PK": s("PRODUCT#7"), "SK": s("PRODUCT"), "version": n(version), "name": s(f"n{version}")})
    shop.rest()
    item = shop.item(shop.at("shop", "PRODUCT#7", "PRODUCT"))
    assert item["names"] == {"L": [s("n12"), s("n11"), s("n10")]}
    assert item["last"] == {"L": [{"M": {"version": n(12)}}, {"M": {"version": n(11)}}]}
    assert (item["late"], item["newest"]) == (n(3), n(12))
