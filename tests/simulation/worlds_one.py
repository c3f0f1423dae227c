"""Small worlds of one rule."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.facts import SOURCES, TARGETS, Configuration, Fact, Kind, at, keys

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
  target: {table: targets, required: [rank]}
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


def unlisted() -> Configuration:
    """A snapshot on targets that nothing lists: only what happens to a target fills it."""
    head = INDEXED.replace(", indexes: {by_source: {source: S, rank: S}, by_other: {other: S}}", "")
    rules = f"{head.replace(', required: [rank]', '')}  name: {{copy: source.name, into: target.source_name, mode: snapshot}}\n"
    fact = replace(LISTED_FACT, snapshot=True, unlisted=True, on_delete="keep", attached_by=("source",))
    return Configuration("snapshot-unlisted", rules, (LISTED_SOURCE, replace(LISTED_TARGET, rank=None)), (fact,))


def nested(name: str) -> Configuration:
    """Two attributes into a map, which the application may remove, empty or replace by something else."""
    rules = f"{BASE}  name: {{copy: [source.name, source.bio], into: target.author, on_delete: clear}}\n"
    copies = (("author", "name"), ("author", "bio"))
    pairs = ((("name",), copies[0]), (("bio",), copies[1]))
    kinds = (replace(SOURCE, truths=("name", "bio")), replace(TARGET, copies=copies))
    return Configuration(name, rules, kinds, (replace(FACT, pairs=pairs),))


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


def delete_where() -> Configuration:
    """Targets that go with their source if they meet a condition, which reads an attribute that changes."""
    rules = (
        f"{BASE}  name: {{copy: source.name, into: target.source_name, where: \"rank != 'c'\", on_delete: delete}}\n"
    )
    fact = replace(
        FACT, on_delete="delete", where=lambda _source, target: target.get("rank") != {"S": "c"}, where_by=("rank",)
    )
    return Configuration("delete-where", rules, (SOURCE, replace(TARGET, rank="rank")), (fact,))


def with_links(one: Configuration, *values: str) -> Configuration:
    """The same world, where targets may also hold these values in their links."""
    kinds = (replace(kind, link_values=(*kind.link_values, *values)) if kind.links else kind for kind in one.kinds)
    return replace(one, kinds=tuple(kinds))
