"""Small worlds of copies with a default: what stands where there is nothing to copy."""

from __future__ import annotations

from dataclasses import replace

from sync_rules.model.values import AttributeValue, Path
from tests.simulation.facts import IMPOSSIBLE, SOURCES, Configuration, Fact, at, keys
from tests.simulation.worlds_many import OWNER, OWNERS, cascade
from tests.simulation.worlds_one import (
    BASE,
    FACT,
    LISTED_FACT,
    LISTED_SOURCE,
    LISTED_TARGET,
    SOURCE,
    TARGET,
    base,
    listed,
    where,
    with_links,
)

NOBODY: AttributeValue = {"S": "nobody"}
NAME: Path = ("source_name",)
BY_NAME = {NAME: NOBODY}
GIVEN = "default: nobody"


def with_default(world: Configuration, of: str, given: str = GIVEN) -> Configuration:
    """A world of one rule, whose copy has a default. `of` is an option that the rule has."""
    facts = tuple(replace(fact, defaults=dict.fromkeys((to for _, to in fact.pairs), NOBODY)) for fact in world.facts)
    return replace(world, rules=world.rules.replace(of, f"{of}, {given}" if of else given), facts=facts)


def nested() -> Configuration:
    """Two attributes into a map, one of them with a default."""
    rules = f"{BASE}  name: {{copy: [source.name, source.bio], into: target.author, default: {{name: nobody}}}}\n"
    copies = (("author", "name"), ("author", "bio"))
    pairs = ((("name",), copies[0]), (("bio",), copies[1]))
    kinds = (replace(SOURCE, truths=("name", "bio")), replace(TARGET, copies=copies))
    return Configuration("default-nested", rules, kinds, (replace(FACT, pairs=pairs, defaults={copies[0]: NOBODY}),))


def chained() -> Configuration:
    """A copy of a copy: a default is a value like any other."""
    world = cascade()
    rules = world.rules.replace("into: mid.top_name, on_delete: clear", "into: mid.top_name, default: nobody")
    first, second = world.facts
    return Configuration(
        "default-chain", rules, world.kinds, (replace(first, defaults={("top_name",): NOBODY}), second)
    )


def lists_others() -> Configuration:
    """Targets are listed by an index whose key has a copy: all are in it, because the copy has a default."""
    rules = """
tables:
  owners: {key: {owner: S}}
  sources: {key: {source: S}}
  targets: {key: {target: S}, indexes: {by_owner: {owner: S}, by_source: {source: S, rank: S}}}
entities:
  owner: {table: owners}
  source: {table: sources}
  target: {table: targets}
rules:
  name: {copy: source.name, into: target.source_name, on_delete: clear}
  rank: {copy: owner.rank, into: target.rank, default: c}
"""
    owner = replace(OWNER, keys=keys(OWNERS, "owner"), truths=("rank",), truth_values=("a", "b"))
    target = replace(
        LISTED_TARGET,
        rank=None,
        links=("source", "owner"),
        link_values=(*SOURCES, *OWNERS),
        copies=(NAME, ("rank",)),
    )
    rank = Fact(
        "rank",
        "targets",
        at("owners", "owner"),
        ((("rank",), ("rank",)),),
        attached_by=("owner",),
        defaults={("rank",): {"S": "c"}},
    )
    moves = {"rename", "rename back", "remove value", "create source", "delete source", "overwrite copy", "remove copy"}
    return Configuration(
        "default-listed",
        rules,
        (owner, LISTED_SOURCE, target),
        (replace(LISTED_FACT, attached_by=("source",)), rank),
        indexed=True,
        attaching=frozenset(moves),
    )


WORLDS: tuple[Configuration, ...] = (
    with_default(base("default", "link: {source: source}"), "link: {source: source}"),
    with_default(listed("default-index", "link: {source: source}"), "link: {source: source}"),
    with_default(base("default-keep", "on_delete: keep", on_delete="keep"), "on_delete: keep"),
    with_default(base("default-delete", "on_delete: delete", on_delete="delete"), "on_delete: delete"),
    with_default(replace(where(), name="default-where"), "on_delete: clear"),
    with_links(
        with_default(base("default-strict", "strict: true", strict=True), "strict: true"),
        *IMPOSSIBLE,
    ),
    nested(),
    chained(),
    lists_others(),
)
