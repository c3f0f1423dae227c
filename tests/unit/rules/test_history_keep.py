"""`keep` of history: the newest versions stay, in whatever order they came, and nothing else goes."""

from __future__ import annotations

from random import Random

import pytest

from sync_rules.audit import compare
from sync_rules.audit.compare import Drift, look_again
from sync_rules.audit.verifier import Verifier
from sync_rules.language.load import parse_rules
from sync_rules.model.limits import Bounds
from sync_rules.pipeline.series import list_series
from sync_rules.rules.families import Part
from tests.support.builders import n, s
from tests.support.worlds import Scene
from tests.unit.rules.test_history import FILE, SOME, product, ups, versions

KEEP = SOME + ", keep: {count: %d}"


def scene(count: int = 2, more: str = "") -> Scene:
    return Scene(parse_rules(FILE % (KEEP % count + more)))


def there(shop: Scene, *numbers: int, item: int | None = None) -> None:
    """Versions, and perhaps an item, of which no record is to come."""
    for number in numbers:
        shop.there("shop", {"PK": s("PRODUCT#7"), "SK": s(f"V#{number:03}"), "name": s("tea"), "price": n(number)})
    if item is not None:
        shop.there("shop", product(item, name=s("tea"), price=n(item)))


def verifier(shop: Scene, *, repair: bool = False) -> Verifier:
    return Verifier(shop.rules, shop.world, shop.rules.keeper_names, repair=repair, grace_seconds=0)


def test_keep_leaves_what_it_did_not_make():
    """Items of another key among the versions, of another item, and the newest state are no versions of this one."""
    shop = scene(1, ", newest: true")
    others = [("PRODUCT#7", "V#1"), ("PRODUCT#7", "V#0001"), ("PRODUCT#7", "V#001#NOTE"), ("PRODUCT#70", "V#001")]
    for partition, sort in others:
        shop.there("shop", {"PK": s(partition), "SK": s(sort)})
    ups(shop, 3, 4)
    shop.rest()
    found = {(item["PK"]["S"], item["SK"]["S"]) for item in shop.memory.items("shop")}
    assert found == {*others, ("PRODUCT#7", "PRODUCT"), ("PRODUCT#7", "V#000"), ("PRODUCT#7", "V#002")}


def test_keep_goes_by_numbers_alone():
    """An item that began again at 1 has no version before it comes to higher numbers, and verify does not miss it."""
    shop = scene()
    there(shop, 8, 9)
    ups(shop, 3)
    shop.rest()
    assert sorted(versions(shop)) == ["V#008", "V#009"]
    assert [*verifier(shop).sweep()] == []
    shop.put("shop", product(10, name=s("tea"), price=n(4)))
    shop.records.clear()
    assert all(one.repaired for one in verifier(shop, repair=True).sweep())
    shop.rest()
    assert sorted(versions(shop)) == ["V#009", "V#010"]


def test_keep_goes_through_more_than_fit_into_a_page(monkeypatch):
    """A rule that comes to a long history deletes page by page; what does not fit is deleted next."""
    shop = scene()
    shop.consumer.limits = shop.consumer.limits.__class__(fan_out_page_max_items=3, fan_out_round_max_items=4)
    there(shop, *range(1, 40))
    shop.put("shop", product(50, name=s("tea"), price=n(1)))
    shop.rest()
    assert sorted(versions(shop)) == ["V#039", "V#050"]


@pytest.mark.parametrize(("there_are", "listed"), [(5, 5), (39, 9)])
def test_keep_lists_a_bounded_number_of_rows(there_are, listed):
    """A listing ends with the page that reaches one round more than the versions to keep: it says whether more follow."""
    shop = scene()
    there(shop, *range(1, there_are + 1))
    part = Part(
        shop.rules.rules["versions.keep"],
        shop.at("shop", "PRODUCT#7", "V#001"),
        shop.at("shop", "PRODUCT#7", "PRODUCT"),
    )
    bounds = Bounds(compare.BOUNDS.limits.__class__(fan_out_page_max_items=3, fan_out_round_max_items=4))
    found = shop.drive(list_series(part, bounds))
    most = part.rule.listing(part).max_items + bounds.limits.fan_out_round_max_items
    assert (len(found.keys), found.more) == (listed, there_are > listed)
    assert len(found.keys) < most + bounds.limits.fan_out_page_max_items


def test_keep_is_verified_and_repaired():
    """Versions beyond the newest are drift, of an item that is gone too; a report of them is looked at again."""
    shop = scene()
    there(shop, 1, 2, 3, 4)
    found = [*verifier(shop).sweep()]
    drifts = {one.difference.target.values[1][2]: one.difference.drift for one in found}
    assert drifts == {"V#001": Drift.EXTRA, "V#002": Drift.EXTRA}
    shop.memory.delete(shop.at("shop", "PRODUCT#7", "V#004"))
    again = shop.drive(look_again([one.difference for one in found], shop.rules))
    assert [one.target.values[1][2] for one in again.different] == ["V#001"]
    assert all(one.repaired for one in verifier(shop, repair=True).sweep())
    assert sorted(versions(shop)) == ["V#002", "V#003"]


NUMBERED = """
tables: {products: {key: {id: S}}, versions: {key: {id: S, version: N}}}
entities: {product: {table: products}, version: {table: versions}}
rules: {versions: {history: product, into: version, attributes: [price], keep: {count: 2}}}
"""


@pytest.mark.parametrize("seed", range(4))
def test_keep_orders_number_keys_as_numbers(seed):
    """A sort key of type N goes from 9 to 10, and not from 9 back to 1: the newest versions stay, in any order."""
    shop, random = Scene(parse_rules(NUMBERED)), Random(seed)
    for number in range(8, 13):
        shop.put("products", {"id": s("7"), "version": n(number), "price": n(number)})
    random.shuffle(shop.records)
    shop.rest()
    assert {item["version"]["N"] for item in shop.memory.items("versions")} == {"11", "12"}
    for number in (9, 10):
        shop.there("versions", {"id": s("7"), "version": n(number), "price": n(number)})
    assert all(one.repaired for one in verifier(shop, repair=True).sweep())
    assert {item["version"]["N"] for item in shop.memory.items("versions")} == {"11", "12"}
    assert [*verifier(shop).sweep()] == []
