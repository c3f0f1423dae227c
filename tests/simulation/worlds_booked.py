"""Small worlds of count and sum with a ledger: what each child adds stands in the pipeline's own table."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sync_rules.model.values import AttributeValue, Item, get, same
from tests.simulation.facts import IMPOSSIBLE, Configuration, Kind, Place, keys, text
from tests.simulation.truths import Items, Truth, Value, Wanted, put
from tests.simulation.worlds_collected import on

Added = tuple[str, Decimal]  # what a child adds, and in which group; "" where there are none
Sums = dict[Place, dict[str, Decimal]]  # by total and attribute
PARENTS, CHILDREN = ("u0", "u1", "u2"), ("o0", "o1", "o2", "o3", "o4")


def parent_of(child: Place, item: Item) -> Place | None:
    """The user that an order is of; a key as long as one of these is none's."""
    user = text(item, "user")
    return ("users", (child[1][0], user)) if user and user not in IMPOSSIBLE else None


def amount_of(item: Item) -> Decimal | None:
    """An order's number; a text is none."""
    value = item.get("amount", {}).get("N")
    return None if value is None else Decimal(value)


def unusable(items: Items) -> list[Place]:
    """Orders whose amount is no number, which are reported until corrected."""
    return [place for place, item in items.items() if place[0] == "orders" and "S" in item.get("amount", {})]


def number(amount: Decimal) -> AttributeValue:
    return {"N": f"{amount:f}"}


# ---------------------------------------------------------------- count and sum
@dataclass(frozen=True)
class Booked(Truth):
    """Entries and totals in the ledger, under the name of their rule."""

    rule: str = ""

    def owns(self, place: Place) -> bool:
        return place[0] == "ledger" and place[1][0].startswith(f"{self.rule}/")

    @property
    def mark(self) -> Place:
        """The place of the mark that says if the books are complete."""
        return "ledger", (f"{self.rule}/B", "-")

    def marked(self, items: Items) -> Mapping[Place, Item]:
        """The mark as it stands: what it says is judged whenever a number is written."""
        return {self.mark: items[self.mark]} if self.mark in items else {}

    def judge(self, place: Place, old: Item, new: Item, items: Items) -> str:
        """A number is written only from books that are complete."""
        written = self.at(place) and not same(get(old, self.paths[0]), get(new, self.paths[0]))
        complete = items.get(self.mark, {}).get("complete") == {"BOOL": True}
        return "its number was written from books that are not complete" if written and not complete else ""

    def unfit(self, items: Items) -> Iterable[Place]:
        return unusable(items)

    def mended(self, items: Items, place: Place) -> tuple[Place, Item | None]:
        return place, put(items[place], ("amount",), None)


@dataclass(frozen=True)
class Tallied(Booked):
    """A number on each user, or with `grouped` a map of them; and the books it comes from: for each order an entry, for
    each user as many totals as there are shards.
    """

    adds: Callable[[Item], Added | None] = lambda _item: None
    grouped: bool = False
    shards: int = 1

    def wanted(self, items: Items) -> Wanted:
        sums: dict[Place, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
        for place, item in items.items():
            added, parent = self._added(place, item), parent_of(place, item)
            if added is not None and parent is not None:
                sums[parent][added[0]] += added[1]
        return {place: {self.paths[0]: self._shown(sums[place])} for place in items if self.at(place)}

    def _added(self, place: Place, item: Item) -> Added | None:
        added = self.adds(item) if place[0] == "orders" else None
        return added if added is not None and added[1] else None

    def _shown(self, sums: Mapping[str, Decimal]) -> Value:
        if not self.grouped:
            return number(sums.get("", Decimal(0)))
        return {"M": {group: number(amount) for group, amount in sums.items() if amount}}

    # ---------------------------------------------------------------- the books

    def owned(self, items: Items) -> Mapping[Place, Item]:
        """Each entry, and each total: one that is nothing is there only if it ever was something."""
        right: dict[Place, Item] = {**self.marked(items)}
        sums: Sums = defaultdict(lambda: defaultdict(Decimal))
        for place, item in items.items():
            added, parent = self._added(place, item), parent_of(place, item)
            if added is None or parent is None:
                continue
            entry, at = self._entry(place), f"={added[0]}" if self.grouped else "n"
            total = self._total(entry, parent)
            into: AttributeValue = {"L": [{"S": part} for part in total[1]]}
            right[entry] = {**keyed(entry), "into": into, "at": {"S": at}, "n": number(added[1])}
            sums[total][at] += added[1]
        for total in dict.fromkeys([*sums, *filter(self._is_total, items)]):
            there = items.get(total, {})
            names = [name for name in {**sums[total], **there} if name not in ("PK", "SK", "v")]
            amounts = {name: number(sums[total][name]) for name in names if sums[total][name] or name in there}
            if amounts:
                version = {"v": there.get("v", {"N": "1"})}  # how often it was added to
                right[total] = {**keyed(total), **amounts, **version}
        return right

    def _entry(self, child: Place) -> Place:
        return "ledger", (f"{self.rule}/L/{child[1][0]}", child[1][1])

    def _total(self, entry: Place, parent: Place) -> Place:
        shard = int.from_bytes(hashlib.sha256("\x1f".join(entry[1]).encode()).digest()[:8], "big") % self.shards
        return "ledger", (f"{self.rule}/T{shard if self.shards > 1 else ''}/{parent[1][0]}", parent[1][1])

    def meddled(self, items: Items) -> Mapping[Place, Item]:
        """Each total with another sum, which only adding up its entries can find."""
        return {
            place: {**item, name: {"N": "77"}}
            for place, item in sorted(items.items())
            if self._is_total(place)
            for name in item
            if name not in ("PK", "SK", "v")
        }

    def _is_total(self, place: Place) -> bool:
        return place[0] == "ledger" and place[1][0].startswith(f"{self.rule}/T")

    def always(self, items: Items) -> str:
        """Every total is the sum of the entries that name it."""
        sums: Sums = defaultdict(lambda: defaultdict(Decimal))
        for place, item in items.items():
            if self.owns(place) and not self._is_total(place) and place != self.mark:
                into = "ledger", tuple(part["S"] for part in item["into"]["L"])
                sums[into][item["at"]["S"]] += Decimal(item["n"]["N"])
        for total in dict.fromkeys([*sums, *filter(self._is_total, items)]):
            there = {name: value for name, value in items.get(total, {}).items() if name not in ("PK", "SK", "v")}
            for name in {**there, **sums[total]}:
                held = Decimal(there.get(name, {"N": "0"})["N"])
                if held != sums[total][name]:
                    return f"total {total} {name} is {held}, its entries say {sums[total][name]}"
        return ""


def keyed(place: Place) -> Item:
    return {"PK": {"S": place[1][0]}, "SK": {"S": place[1][1]}}


# ---------------------------------------------------------------- the worlds
TABLES = """
tables:
  users: {key: {team: S, user: S}}
  orders: {key: {team: S, order: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user: {table: users}
  order: {table: orders}
rules:
"""


def world(
    name: str,
    rules: str,
    truths: tuple[Truth, ...],
    *,
    states: tuple[str | AttributeValue, ...] = (),
    few: bool = False,
    mixed: bool = False,
) -> Configuration:
    """Orders of users, which are counted, added up and compared. `few`: one of each, and only the order changes."""
    children, parents = (CHILDREN[:1], PARENTS[:1]) if few else (CHILDREN, PARENTS)
    orders = Kind(
        "orders",
        keys(children, "order", team="x"),
        truths=("state", "amount") if states else ("amount",),
        truth_values=states,
        numbers=("amount",),
        links=("user",),
        link_values=parents if few else (*parents, *IMPOSSIBLE),
        first_links=parents if few else (),
        flag="noise",
        mixed=("amount",) if mixed else (),
    )
    copies = () if few else tuple(truth.paths[0] for truth in truths)
    users = Kind("users", keys(parents, "user", team="x"), copies=copies)
    return Configuration(name, TABLES + rules, (orders, users), truths=truths, exact_cost=False)


def spent(item: Item) -> Added | None:
    amount = amount_of(item)
    return None if amount is None else ("", amount)


def booked() -> Configuration:
    """Two rules over the same orders, one of which leaves some out."""
    rules = """
  orders: {count: order, into: user.orders, where: "noise == 'on'"}
  spent: {sum: order.amount, into: user.spent}
"""
    one = Tallied("users", (("orders",),), rule="orders", adds=lambda item: ("", Decimal(1)) if on(item) else None)
    return world("booked", rules, (one, Tallied("users", (("spent",),), rule="spent", adds=spent)))


def booked_few() -> Configuration:
    """One order, counted while it is on, often again as it was at a late write; records may overtake each other."""
    rules = """
  orders: {count: order, into: user.orders, where: "noise == 'on'"}
"""
    truth = Tallied("users", (("orders",),), rule="orders", adds=lambda item: ("", Decimal(1)) if on(item) else None)
    return replace(world("booked-few", rules, (truth,), few=True), in_order=False)


def booked_groups() -> Configuration:
    """Weights, groups, and several totals for each user."""
    rules = """
  points: {count: order, into: user.points, weights: {state: {open: 3, paid: 0.5}}, shards: 3}
  states: {sum: order.amount, into: user.stats.states, per: state, where: "noise == 'on'", shards: 2}
"""
    weights = {"open": Decimal(3), "paid": Decimal("0.5")}

    def points(item: Item) -> Added | None:
        state = text(item, "state") or ""
        return ("", weights[state]) if state in weights else None

    def states(item: Item) -> Added | None:
        state, amount = text(item, "state"), amount_of(item)
        return (state, amount) if state and amount is not None and on(item) else None

    truths = (
        Tallied("users", (("points",),), rule="points", adds=points, shards=3),
        Tallied("users", (("stats", "states"),), rule="states", adds=states, grouped=True, shards=2),
    )
    return world("booked-groups", rules, truths, states=("open", "paid", "draft"))


def booked_weights() -> Configuration:
    """Truth values and NULL have weights, and whatever else an order has, or has not, counts the default."""
    rules = """
  points: {count: order, into: user.points, weights: {values: {state: {open: 3, true: 2, null: -1}}, default: 0.5}}
"""
    states: tuple[str | AttributeValue, ...] = ("open", {"BOOL": True}, {"NULL": True}, {"BOOL": False}, "draft")
    weights = {"S open": Decimal(3), "BOOL True": Decimal(2), "NULL True": Decimal(-1)}

    def points(item: Item) -> Added:
        ((kind, value),) = item.get("state", {"": ""}).items()
        return "", weights.get(f"{kind} {value}", Decimal("0.5"))

    truth = Tallied("users", (("points",),), rule="points", adds=points)
    return world("booked-weights", rules, (truth,), states=states)


WORLDS: tuple[Configuration, ...] = (booked(), booked_few(), booked_groups(), booked_weights())
