"""The small worlds that histories play in: rules files, the items there can be, and what must be true of them.

Law: what must be true (`Fact`) is said a second time here, in plain words of Python and without the core, so that a
fault in the core cannot excuse itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from sync_rules.attributes import Item, Path
from sync_rules.rulefile import parse_rules
from sync_rules.rules import Rules

Place = tuple[str, tuple[str, ...]]  # a table and the key values of one item
SOURCES, TARGETS = ("s0", "s1", "s2"), ("t0", "t1", "t2", "t3", "t4")


@dataclass(frozen=True)
class Kind:
    """Items an application works with: their keys, what is true only here (`truths`), how they name sources (`links`),
    which copies they hold, and the other attributes the workload touches.
    """

    table: str
    keys: tuple[Item, ...]
    truths: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    link_values: tuple[str, ...] = SOURCES
    copies: tuple[Path, ...] = ()
    rank: str | None = None
    flag: str | None = None

    def places(self) -> tuple[Place, ...]:
        return tuple((self.table, tuple(value["S"] for value in key.values())) for key in self.keys)


@dataclass(frozen=True)
class Fact:
    """One rule as an observer states it. `link` gives the place of an item's source, None when it names none;
    `attached_by` are the attributes whose change puts a target into another place of the listing.
    """

    rule: str
    target: str  # the table; `applies` tells items of one table apart
    link: Callable[[Item], Place | None]
    pairs: tuple[tuple[Path, Path], ...]
    on_delete: str = "clear"
    snapshot: bool = False
    strict: bool = False
    where: Callable[[Item, Item], bool] | None = None
    attached_by: tuple[str, ...] = ()
    applies: Callable[[Place], bool] = lambda _place: True


@dataclass(frozen=True)
class Configuration:
    """One small world. `indexed`: some listing goes through an index, which may lag."""

    name: str
    rules: str
    kinds: tuple[Kind, ...]
    facts: tuple[Fact, ...]
    indexed: bool = False
    in_order: bool = True

    @property
    def plain(self) -> bool:
        """Whether copies are always what their source has, so that renames alone say everything about them."""
        return all(not fact.snapshot and fact.where is None for fact in self.facts)


@cache
def rules_of(configuration: str, *, second_look: bool = True) -> Rules:
    """The compiled rules, optionally without a second look through indexes."""
    rules = parse_rules(CONFIGURATIONS[configuration].rules)
    if second_look:
        return rules
    return replace(rules, rules={name: replace(rule, settle_seconds=0) for name, rule in rules.rules.items()})


# ---------------------------------------------------------------- building blocks
def text(item: Item, name: str) -> str | None:
    value = item.get(name)
    return None if value is None else value.get("S")


def at(table: str, *names: str) -> Callable[[Item], Place | None]:
    """The place whose key values stand in these attributes of a target."""

    def place(item: Item) -> Place | None:
        values = tuple(value for name in names if (value := text(item, name)) is not None)
        return (table, values) if len(values) == len(names) else None

    return place


def keys(slots: tuple[str, ...], name: str, **fixed: str) -> tuple[Item, ...]:
    return tuple({**{key: {"S": value} for key, value in fixed.items()}, name: {"S": slot}} for slot in slots)


NAME = ((("name",), ("source_name",)),)
BASE = """
tables:
  sources: {key: {team: S, source: S}}
  targets: {key: {team: S, target: S}}
entities:
  source: {table: sources}
  target: {table: targets}
rules:
"""
INDEXED = """
tables:
  sources: {key: {source: S}}
  targets: {key: {target: S}, indexes: {by_source: {source: S, rank: S}, by_other: {other: S}}}
entities:
  source: {table: sources}
  target: {table: targets}
rules:
"""
SOURCE = Kind("sources", keys(SOURCES, "source", team="x"), truths=("name",), flag="noise")
TARGET = Kind("targets", keys(TARGETS, "target", team="x"), links=("source",), copies=(("source_name",),), flag="noise")
LISTED_SOURCE = replace(SOURCE, keys=keys(SOURCES, "source"))
LISTED_TARGET = replace(TARGET, keys=keys(TARGETS, "target"), rank="rank")
FACT = Fact("name", "targets", at("sources", "team", "source"), NAME, attached_by=("source",))
LISTED_FACT = replace(FACT, link=at("sources", "source"), attached_by=("source", "rank"))


def base(name: str, options: str, **fact: object) -> Configuration:
    """Targets listed by a Query of their table; the link is an attribute that may change."""
    rules = f"{BASE}  name: {{copy: source.name, into: target.source_name, {options}}}\n"
    return Configuration(name, rules, (SOURCE, TARGET), (replace(FACT, **fact),))  # type: ignore[arg-type]


def listed(name: str, options: str, **fact: object) -> Configuration:
    """Targets listed through an index, with a sort key that may change."""
    rules = f"{INDEXED}  name: {{copy: source.name, into: target.source_name, {options}}}\n"
    facts = (replace(LISTED_FACT, **fact),)  # type: ignore[arg-type]
    return Configuration(name, rules, (LISTED_SOURCE, LISTED_TARGET), facts, indexed=True)


def two(name: str, first: str, second: str, *, indexed: bool) -> Configuration:
    """Two rules write one target, each from a source of its own."""
    head, source, target, fact = (
        (INDEXED, LISTED_SOURCE, LISTED_TARGET, LISTED_FACT) if indexed else (BASE, SOURCE, TARGET, FACT)
    )
    rules = (
        f"{head}  name: {{copy: source.name, into: target.source_name, on_delete: {first}}}\n"
        f"  other: {{copy: source.name, into: target.other_name, link: {{source: other}}, on_delete: {second}}}\n"
    )
    target = replace(target, links=("source", "other"), copies=(("source_name",), ("other_name",)))
    link = at("sources", "other") if indexed else at("sources", "team", "other")
    other = Fact("other", "targets", link, ((("name",), ("other_name",)),), second, attached_by=("other",))
    return Configuration(name, rules, (source, target), (replace(fact, on_delete=first), other), indexed=indexed)


def nested(name: str) -> Configuration:
    """Two attributes into a map, which the application may remove, empty or replace by something else."""
    rules = f"{BASE}  name: {{copy: [source.name, source.bio], into: target.author, on_delete: clear}}\n"
    copies = (("author", "name"), ("author", "bio"))
    pairs = ((("name",), copies[0]), (("bio",), copies[1]))
    kinds = (replace(SOURCE, truths=("name", "bio")), replace(TARGET, copies=copies))
    return Configuration(name, rules, kinds, (replace(FACT, pairs=pairs),))


def shared_map() -> Configuration:
    """Two rules, each from a source of its own, into one map; one of them strict."""
    rules = (
        f"{BASE}  name: {{copy: source.name, into: target.about.name, on_delete: clear}}\n"
        "  other: {copy: source.name, into: target.about.other, link: {source: other}, on_delete: clear, strict: true}\n"
    )
    copies = (("about", "name"), ("about", "other"))
    target = replace(TARGET, links=("source", "other"), copies=copies)
    facts = (
        replace(FACT, pairs=((("name",), copies[0]),)),
        Fact(
            "other",
            "targets",
            at("sources", "team", "other"),
            ((("name",), copies[1]),),
            strict=True,
            attached_by=("other",),
        ),
    )
    return Configuration("shared-map", rules, (SOURCE, target), facts)


def where() -> Configuration:
    """A condition that reads both sides."""
    text = "{copy: source.name, into: target.source_name, where: \"noise == 'on' && source.noise == 'on'\", on_delete: clear}"
    on = {"S": "on"}
    fact = replace(FACT, where=lambda source, target: target.get("noise") == on and source.get("noise") == on)
    return Configuration("where", f"{BASE}  name: {text}\n", (SOURCE, TARGET), (fact,))


def shop() -> Configuration:
    """Sources and targets in one table; the link is part of the key."""
    rules = """
tables:
  shop: {key: {PK: S, SK: S}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
  name: {copy: user.name, into: order.source_name, on_delete: clear}
"""
    users = tuple(key for user in SOURCES for key in keys(("PROFILE",), "SK", PK=f"USER#{user}"))
    orders = tuple(
        key
        for user, some in (("s0", "012"), ("s1", "01"))
        for key in keys(tuple(f"ORDER#{n}" for n in some), "SK", PK=f"USER#{user}")
    )
    kinds = (
        Kind("shop", users, truths=("name",), flag="noise"),
        Kind("shop", orders, copies=(("source_name",),), flag="noise"),
    )
    fact = Fact(
        "name",
        "shop",
        lambda item: ("shop", (item["PK"]["S"], "PROFILE")),
        NAME,
        applies=lambda place: place[1][1] != "PROFILE",
    )
    return Configuration("shop", rules, kinds, (fact,))


def cascade() -> Configuration:
    """A copy that is the source of another copy."""
    rules = """
tables:
  tops: {key: {team: S, top: S}}
  mids: {key: {team: S, mid: S}}
  ends: {key: {team: S, end: S}}
entities:
  top: {table: tops}
  mid: {table: mids}
  end: {table: ends}
rules:
  first: {copy: top.name, into: mid.top_name, on_delete: clear}
  second: {copy: mid.top_name, into: end.top_name, on_delete: clear}
"""
    kinds = (
        Kind("tops", keys(("s0", "s1"), "top", team="x"), truths=("name",), flag="noise"),
        Kind(
            "mids",
            keys(("m0", "m1"), "mid", team="x"),
            links=("top",),
            link_values=("s0", "s1"),
            copies=(("top_name",),),
            flag="noise",
        ),
        Kind(
            "ends",
            keys(("e0", "e1", "e2"), "end", team="x"),
            links=("mid",),
            link_values=("m0", "m1"),
            copies=(("top_name",),),
            flag="noise",
        ),
    )
    facts = (
        Fact("first", "mids", at("tops", "team", "top"), ((("name",), ("top_name",)),), attached_by=("top",)),
        Fact("second", "ends", at("mids", "team", "mid"), ((("top_name",), ("top_name",)),), attached_by=("mid",)),
    )
    return Configuration("cascade", rules, kinds, facts)


def own(name: str, options: str, **fact: object) -> Configuration:
    """People who name their boss, and may be their own."""
    rules = f"""
tables:
  people: {{key: {{team: S, person: S}}}}
entities:
  person: {{table: people}}
rules:
  name: {{copy: person.name, into: person.boss_name, link: {{person: boss}}, {options}}}
"""
    slots = ("p0", "p1", "p2", "p3")
    kind = Kind("people", keys(slots, "person", team="x"), ("name",), ("boss",), slots, (("boss_name",),), flag="noise")
    stated = Fact("name", "people", at("people", "team", "boss"), ((("name",), ("boss_name",)),), attached_by=("boss",))
    return Configuration(name, rules, (kind,), (replace(stated, **fact),))  # type: ignore[arg-type]


CONFIGURATIONS = {
    one.name: one
    for one in (
        base("base", "on_delete: clear"),
        listed("index", "on_delete: clear"),
        base("strict", "on_delete: clear, strict: true", strict=True),
        listed("strict-index", "on_delete: clear, strict: true", strict=True),
        base("keep", "on_delete: keep", on_delete="keep"),
        base("delete", "on_delete: delete", on_delete="delete"),
        listed("delete-index", "on_delete: delete", on_delete="delete"),
        shop(),
        two("two", "clear", "clear", indexed=False),
        two("two-index", "clear", "keep", indexed=True),
        two("two-delete", "delete", "clear", indexed=False),
        nested("nested"),
        shared_map(),
        base("snapshot", "mode: snapshot", snapshot=True, on_delete="keep"),
        cascade(),
        own("own", "on_delete: clear"),
        own("own-strict", "on_delete: clear, strict: true", strict=True),
        where(),
        replace(base("unordered", "on_delete: clear"), in_order=False),
    )
}
