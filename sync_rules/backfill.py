"""Backfill: what is there already becomes hints, from a scan, from an export, or from a key.

Law: it is the same look as any other. A page of a strongly consistent scan is an image, read before the sources; a line
of an export is but a key. What is written is guarded, so the application and the stream handler may write meanwhile.
Nothing counts as done before its effect: a page in which something failed must come again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from sync_rules.attributes import Item
from sync_rules.compare import Asked, ask
from sync_rules.fanout import pull, push
from sync_rules.model import Change, ItemKey
from sync_rules.pace import Pace
from sync_rules.parts import PartLook, settle
from sync_rules.plan import Pull, plan_batch
from sync_rules.reconcile import Report
from sync_rules.rules import Rules
from sync_rules.sources import read_all
from sync_rules.store import Scan, Work

Wanted = Callable[[ItemKey, Item], bool]


def everything(_key: ItemKey, _item: Item) -> bool:
    """The filter of a backfill that has none."""
    return True


@dataclass(frozen=True)
class Chosen:
    """What a backfill brings in line: the rules of these names, on the items that are wanted."""

    rules: Rules
    names: frozenset[str]
    wanted: Wanted = everything


@dataclass(frozen=True)
class Brought:
    """One page: what came of it, how many items it had, how many of them a rule was asked about, and where the scan
    goes on.
    """

    report: Report
    items: int
    asked: int
    cursor: Item | None


def bring_page(scan: Scan, chosen: Chosen, pace: Pace) -> Work[Brought]:
    """Scan a page and bring what is on it in line. Raises StoreError when it cannot be scanned."""
    page = yield replace(scan, consistent=True)
    report, asked = yield from bring(scan.table, page.items, chosen, pace)
    return Brought(report, len(page.items), asked, page.cursor)


def bring(table: str, images: Iterable[Item], chosen: Chosen, pace: Pace) -> Work[tuple[Report, int]]:
    """Bring items of a table, read just now, in line, and count those that a rule was asked about."""
    found = Asked()
    count = 0
    of_table = chosen.rules.tables[table]
    for item in images:
        key = of_table.key_of(item)
        if key is not None and chosen.wanted(key, item):
            count += ask(item, of_table, chosen.rules, chosen.names, found)
    report = yield from pull([Pull(target.key, target.image, target.rules) for target in found.targets], pace)
    report.add((yield from settle(tuple(map(PartLook, found.parts)), pace)))
    return report, count


def bring_keys(keys: Sequence[ItemKey], chosen: Chosen, pace: Pace) -> Work[tuple[Report, int]]:
    """Bring the items of these keys, all of one table, in line: those that are still there. Raises StoreError when one
    cannot be read.
    """
    images = yield from read_all(keys)
    found = []
    for image in images.values():
        if isinstance(image, Exception):
            raise image
        if image is not None:
            found.append(image)
    return (yield from bring(keys[0].table, found, chosen, pace) if keys else _nothing())


def bring_all_of(key: ItemKey, image: Item, chosen: Chosen, pace: Pace) -> Work[Report]:
    """Bring everything in line that one item has to do with, as if it had just been put: its own copies, all copies of
    it wherever they are, its parts.
    """
    names = chosen.names
    plan = plan_batch([Change(key, None, image)], chosen.rules)
    pulls = [replace(one, image=None, rules=tuple(r for r in one.rules if r.name in names)) for one in plan.pulls]
    pushes = [replace(one, rules=tuple(r for r in one.rules if r.name in names)) for one in plan.pushes]
    report = yield from pull([one for one in pulls if one.rules], pace)
    report.add((yield from push([one for one in pushes if one.rules], chosen.rules, pace)))
    report.add((yield from settle([look for look in plan.parts if look.part.rule.name in names], pace)))
    return report


def _nothing() -> Work[tuple[Report, int]]:
    return Report(), 0
    yield
