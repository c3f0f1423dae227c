"""Small worlds of what is made of many items: embed and recount."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from sync_rules.model.sizes import value_bytes
from sync_rules.model.values import AttributeValue, Item, Path
from tests.simulation.facts import Configuration, Fact, Kind, Place, at, keys, text
from tests.simulation.truths import Items, Truth, Value, Wanted

PARENTS, CHILDREN = ("p0", "p1", "p2"), ("c0", "c1", "c2", "c3", "c4")
HEAD = """
tables:
  parents: {{key: {{parent: S}}}}
  children: {{key: {{{key}}}{indexes}}}
entities:
  parent: {{table: parents}}
  child: {{table: children{said}}}
rules:
"""
LISTED = HEAD.format(key="child: S", indexes=", indexes: {by_parent: {parent: S, rank: S}}", said=", required: [rank]")
PARENT = Kind("parents", keys(PARENTS, "parent"), copies=(("kids",),), flag="noise")
CHILD = Kind(
    "children",
    keys(CHILDREN, "child"),
    truths=("name", "size"),
    links=("parent",),
    link_values=PARENTS,
    rank="rank",
    flag="noise",
    numbers=("size",),
)
# Children whose table lists them by what they point to, so that a move is a delete and a create.
HELD = HEAD.format(key="parent: S, child: S", indexes="", said="")
HELD_CHILD = replace(
    CHILD,
    keys=tuple(
        key
        for parent, some in (("p0", ("c0", "c1", "c2")), ("p1", ("c0", "c1")), ("p2", ("c0",)))
        for key in keys(some, "child", parent=parent)
    ),
    links=(),
    rank=None,
)


def in_its_table(place: Place, item: Item) -> Item | None:
    return item if place[0] == "children" else None


@dataclass(frozen=True)
class Gathered(Truth):
    """The attribute of a parent that is made of its children; `counts` says which of them.

    `child` gives an item with its attributes `parent` and `child`, if it is a child.
    """

    counts: Callable[[Item], bool] = lambda _child: True
    child: Callable[[Place, Item], Item | None] = in_its_table

    def of(self, place: Place, items: Items) -> list[Item]:
        """The children of a parent, by their names."""
        children = (self.child(other, item) for other, item in items.items())
        mine = (child for child in children if child is not None and text(child, "parent") == place[1][0])
        return sorted(filter(self.counts, mine), key=lambda child: child["child"]["S"])


def shown(child: Item) -> bool:
    """True if the index has a row of a child, which needs all attributes of the key."""
    return "rank" in child


@dataclass(frozen=True)
class Embedded(Gathered):
    """The children themselves, as a map or in order as a list, within limits. The last in order are the ones to keep."""

    as_list: bool = False
    whole: bool = False  # all of a child but its key
    order: Callable[[Item], tuple[object, ...]] = lambda child: (child["child"]["S"],)
    descends: bool = False
    max_items: int = 100
    max_bytes: int = 100_000
    on_overflow: str = "fail"
    default: AttributeValue | None = None  # of the size of a child

    def wanted(self, items: Items) -> Wanted:
        return {place: self._wanted(self.of(place, items)) for place in items if self.at(place)}

    def _wanted(self, children: list[Item]) -> dict[Path, Value]:
        children = sorted(children, key=self.order)
        if self._fits(children):
            return {self.paths[0]: self._whole(children)}
        match self.on_overflow:
            case "omit":
                return {self.paths[0]: {"NULL": True}}
            case "oldest":
                while not self._fits(children):
                    children = children[1:]
                return {self.paths[0]: self._whole(children)}
        return {}

    def _fits(self, children: list[Item]) -> bool:
        return len(children) <= self.max_items and value_bytes(self._whole(children)) <= self.max_bytes

    def _whole(self, children: list[Item]) -> AttributeValue:
        if self.as_list:
            return {"L": [self._entry(child) for child in (reversed(children) if self.descends else children)]}
        return {"M": {child["child"]["S"]: self._entry(child) for child in children}}

    def _entry(self, child: Item) -> AttributeValue:
        """The entry of a child on its parent."""
        names = [name for name in child if name not in ("parent", "child")] if self.whole else ("name", "size")
        given = {} if self.default is None else {"size": self.default}
        return {"M": given | {name: child[name] for name in names if name in child}}

    def unfit(self, items: Items) -> Iterable[Place]:
        """Parents with more children than fit, where that is a failure."""
        if self.on_overflow != "fail":
            return []
        return [place for place in items if self.at(place) and not self._fits(self.of(place, items))]

    def mended(self, items: Items, place: Place) -> tuple[Place, Item | None]:
        """One of the children is deleted."""
        child = self.of(place, items)[0]
        return next(other for other, item in items.items() if self.child(other, item) == child), None


@dataclass(frozen=True)
class Claimed(Embedded):
    """Children under their labels. Of several with one label the first has the entry, and one without has none."""

    def _wanted(self, children: list[Item]) -> dict[Path, Value]:
        firsts = {text(child, "label"): child for child in reversed(children)}
        return super()._wanted([child for child in children if child in firsts.values() and text(child, "label")])

    def _whole(self, children: list[Item]) -> AttributeValue:
        return {"M": {text(child, "label") or "": self._entry(child) for child in children}}

    def _entry(self, child: Item) -> AttributeValue:
        return {"M": {name: child[name] for name in ("child", "size") if name in child}}

    def unfit(self, items: Items) -> Iterable[Place]:
        return self.reported(items)

    def reported(self, items: Items) -> Iterable[Place]:
        return [place for place in items if self.at(place) and not self._alone(self.of(place, items))]

    def _alone(self, children: list[Item]) -> bool:
        labels = [text(child, "label") for child in children]
        return all(labels) and len({*labels}) == len(labels)


def claimed(name: str, head: str, limit: str, child: Kind, truth: Claimed, **more: object) -> Configuration:
    """Three labels for up to five children, some of which have none for a while."""
    child = replace(child, truths=("label", "size"), truth_values=("home", "work", "away"))
    rules = f'{head}  kids: {{embed: child, into: parent.kids, by: "{{label}}", fields: [child, size], {limit}}}\n'
    return Configuration(name, rules, (child, PARENT), truths=(truth,), exact_cost=False, **more)  # type: ignore[arg-type]


def size_of(child: Item) -> tuple[object, ...]:
    """The sort key of children by size: those without one first, equal ones by name."""
    size = child.get("size")
    return (size is not None, Decimal(size["N"]) if size is not None else 0, child["child"]["S"])


def newest_first(child: Item) -> tuple[object, ...]:
    """The same where the order descends: the first of equal ones is still the one with the least name."""
    *rest, name = size_of(child)
    return (*rest, *(-ord(letter) for letter in str(name)))


def embed(name: str, head: str, options: str, child: Kind, truth: Embedded, **more: object) -> Configuration:
    shown = "" if truth.whole else "fields: [name, size], "
    rules = f"{head}  kids: {{embed: child, into: parent.{'.'.join(truth.paths[0])}, {shown}{options}}}\n"
    parent = replace(PARENT, copies=truth.paths)
    return Configuration(name, rules, (child, parent), truths=(truth,), **more)  # type: ignore[arg-type]


def through_index(name: str, options: str, truth: Embedded) -> Configuration:
    attaching = frozenset({"create source"})
    return embed(name, LISTED, options, CHILD, replace(truth, counts=shown), indexed=True, attaching=attaching)


@dataclass(frozen=True)
class Recounted(Gathered):
    """A number computed from children."""

    of_them: Callable[[list[Item]], Value] = lambda children: {"N": str(len(children))}

    def wanted(self, items: Items) -> Wanted:
        return {place: {self.paths[0]: self.of_them(self.of(place, items))} for place in items if self.at(place)}


def sizes(children: list[Item]) -> list[Decimal]:
    return [Decimal(child["size"]["N"]) for child in children if "size" in child]


def number(value: Decimal | int | None) -> Value:
    return None if value is None else {"N": str(value)}


def by_noise(children: list[Item]) -> Value:
    groups: dict[str, list[Item]] = {text(child, "noise") or "": [] for child in children}
    for child in children:
        groups[text(child, "noise") or ""].append(child)
    sums = {group: sum(sizes(some)) for group, some in groups.items()}
    return {"M": {group: {"N": str(total)} for group, total in sums.items() if total}}


def recount() -> Configuration:
    """Five numbers on each parent, by five rules that list the same children."""
    rules = f"""{HELD}
  kids: {{count: child, into: parent.n, where: "noise == 'on'", mode: recount}}
  size: {{sum: child.size, into: parent.about.size, mode: recount}}
  each: {{sum: child.size, into: parent.each, per: noise, mode: recount}}
  most: {{max: child.size, into: parent.most, mode: recount}}
  weight: {{count: child, into: parent.weight, weights: {{values: {{noise: {{"on": 2}}}}, default: -1}}, mode: recount}}
"""
    weights = {"on": 2, "off": -1}
    truths = (
        Recounted("parents", (("n",),), counts=lambda child: text(child, "noise") == "on"),
        Recounted("parents", (("about", "size"),), of_them=lambda some: number(sum(sizes(some)))),
        Recounted("parents", (("each",),), of_them=by_noise),
        Recounted("parents", (("most",),), of_them=lambda some: number(max(sizes(some), default=None))),
        Recounted(
            "parents", (("weight",),), of_them=lambda some: number(sum(weights[text(c, "noise") or ""] for c in some))
        ),
    )
    parent = replace(PARENT, copies=(("about", "size"), ("n",), ("each",), ("most",), ("weight",)))
    return Configuration("recount", rules, (HELD_CHILD, parent), truths=truths)


def parent_gone() -> Configuration:
    """Embedded children that are deleted with their parent."""
    truth = MAP
    one = embed("embed-delete", HELD, "limit: {items: 10}, on_delete: delete", HELD_CHILD, truth, exact_cost=False)
    return replace(one, facts=(Fact("kids.parent", "children", at("parents", "parent"), (), "delete"),))


def one_table() -> Configuration:
    """Parents and children in one table, so that a batch has records of both; the application calls entries otherwise."""
    rules = """
tables:
  shop: {key: {PK: S, SK: S}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  address: {table: shop, key: {PK: "USER#{user_id}", SK: "ADDRESS#{address_id}"}}
rules:
  kids: {embed: address, into: user.kids, by: "at {address_id}", fields: [name, size], limit: {items: 10}}
"""

    def child(place: Place, item: Item) -> Item | None:
        user, name = place[1]
        if name == "PROFILE":
            return None
        return {**item, "parent": {"S": user}, "child": {"S": "at " + name.removeprefix("ADDRESS#")}}

    users, addresses = (
        tuple(key for user in ("u0", "u1") for key in keys(some, "SK", PK=f"USER#{user}"))
        for some in (("PROFILE",), ("ADDRESS#a0", "ADDRESS#a1"))
    )
    kinds = (
        replace(HELD_CHILD, table="shop", keys=addresses),
        replace(PARENT, table="shop", keys=users),
    )
    truth = replace(MAP, table="shop", applies=lambda place: place[1][1] == "PROFILE", child=child)
    return Configuration("embed-shop", rules, kinds, truths=(truth,))


CLAIMED = Claimed("parents", (("kids",),))
MAP = Embedded("parents", (("kids",),), plain=True)
WORLDS: tuple[Configuration, ...] = (
    embed("embed", HELD, "limit: {items: 2}", HELD_CHILD, replace(MAP, max_items=2)),
    embed(
        "embed-where",
        HELD,
        "limit: {items: 10}, where: \"noise == 'on'\"",
        HELD_CHILD,
        replace(MAP, paths=(("about", "kids"),), counts=lambda child: text(child, "noise") == "on"),
    ),
    embed(
        "embed-list",
        HELD,
        "as: list, order: -size, limit: {items: 2, bytes: 60}, on_overflow: oldest",
        HELD_CHILD,
        replace(MAP, as_list=True, order=newest_first, descends=True, max_items=2, max_bytes=60, on_overflow="oldest"),
    ),
    embed(
        "embed-omit",
        HELD,
        "limit: {items: 2}, on_overflow: omit",
        HELD_CHILD,
        replace(MAP, max_items=2, on_overflow="omit"),
    ),
    embed(
        "embed-default",
        HELD,
        "default: {size: 7}, limit: {items: 10}",
        HELD_CHILD,
        replace(MAP, default={"N": "7"}),
    ),
    parent_gone(),
    one_table(),
    embed(
        "embed-all",
        HELD,
        "limit: {items: 10}",
        HELD_CHILD,
        replace(MAP, whole=True),
    ),
    through_index("embed-index", "limit: {items: 10}", MAP),
    through_index("embed-index-fail", "limit: {items: 2}", replace(MAP, max_items=2)),
    through_index(
        "embed-index-oldest",
        "order: size, limit: {items: 2}, on_overflow: oldest",
        replace(MAP, order=size_of, max_items=2, on_overflow="oldest"),
    ),
    claimed(
        "embed-claimed",
        HELD,
        "limit: {items: 2}, on_overflow: omit",
        replace(HELD_CHILD, keys=(*keys(CHILDREN, "child", parent="p0"), *keys(CHILDREN[:2], "child", parent="p1"))),
        replace(CLAIMED, max_items=2, on_overflow="omit"),
    ),
    claimed(
        "embed-claimed-index",
        LISTED,
        "limit: {items: 10}",
        CHILD,
        replace(CLAIMED, counts=shown),
        indexed=True,
        attaching=frozenset({"create source"}),
    ),
    recount(),
)
