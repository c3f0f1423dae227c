"""Small worlds of several rules, which share targets or build on each other."""

from __future__ import annotations

from dataclasses import replace

from sync_rules.model.values import Item
from tests.simulation.facts import IMPOSSIBLE, SOURCES, Configuration, Fact, Kind, Place, at, keys, text
from tests.simulation.worlds_one import (
    BASE,
    FACT,
    INDEXED,
    LISTED_FACT,
    LISTED_SOURCE,
    LISTED_TARGET,
    NAME,
    SOURCE,
    TARGET,
)


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


OWNED = """
tables:
  owners: {key: {team: S, owner: S}}
  sources: {key: {team: S, source: S}}
  targets: {key: {team: S, target: S}}
entities:
  owner: {table: owners}
  source: {table: sources}
  target: {table: targets}
rules:
"""
OWNERS = ("o0", "o1")
OWNER = Kind("owners", keys(OWNERS, "owner", team="x"), flag="noise")
OWNED_TARGET = replace(TARGET, keys=TARGET.keys[:3], links=("owner",), link_values=OWNERS)


def writes_link(name: str, *, strict: bool) -> Configuration:
    """One rule writes the link of another."""
    options = f"on_delete: clear, strict: {str(strict).lower()}"
    rules = (
        f"{OWNED}  link: {{copy: owner.source, into: target.source, {options}}}\n"
        f"  name: {{copy: source.name, into: target.source_name, {options}}}\n"
    )
    owner = replace(OWNER, truths=("source",), truth_values=SOURCES)
    target = replace(OWNED_TARGET, copies=(("source",), ("source_name",)))
    first = Fact(
        "link", "targets", at("owners", "team", "owner"), ((("source",), ("source",)),), attached_by=("owner",)
    )
    facts = (replace(first, strict=strict), replace(FACT, strict=strict))
    return Configuration(name, rules, (owner, SOURCE, target), facts)


def hops(name: str, *, indexed: bool) -> Configuration:
    """A link over two items: what names the second is kept on each target, beside the copy from there."""
    team = "" if indexed else "team: S, "
    by = ", indexes: {by_mid: {mid: S}, by_source: {mid_source: S}}" if indexed else ""
    rules = f"""
tables:
  sources: {{key: {{{team}source: S}}}}
  mids: {{key: {{{team}mid: S}}}}
  targets: {{key: {{{team}target: S}}{by}}}
entities:
  source: {{table: sources}}
  mid: {{table: mids}}
  target: {{table: targets}}
rules:
  name: {{copy: source.name, into: target.source_name, link: target.mid.source, on_delete: clear}}
"""
    key = {} if indexed else {"team": "x"}
    mids = ("m0", "m1")
    kinds = (
        Kind("sources", keys(SOURCES, "source", **key), truths=("name",), flag="noise"),
        Kind("mids", keys(mids, "mid", **key), truths=("source",), truth_values=SOURCES, flag="noise"),
        Kind(
            "targets",
            keys(("t0", "t1", "t2"), "target", **key),
            links=("mid",),
            link_values=mids,
            copies=(("mid_source",), ("source_name",)),
            flag="noise",
        ),
    )
    facts = (
        Fact(
            "name.through_mid",
            "targets",
            at("mids", *key, "mid"),
            ((("source",), ("mid_source",)),),
            attached_by=("mid",),
        ),
        Fact("name", "targets", at("sources", *key, "mid_source"), NAME, attached_by=("mid_source",)),
    )
    return Configuration(name, rules, kinds, facts, indexed=indexed)


def writes_where(name: str, *, strict: bool) -> Configuration:
    """One rule writes what the `where` of another reads. Both have one source, so that one look judges both."""
    options = f"on_delete: clear, strict: {str(strict).lower()}"
    rules = (
        f"{OWNED}  state: {{copy: owner.state, into: target.state, {options}}}\n"
        f"  name: {{copy: owner.name, into: target.owner_name, where: \"state == 'on'\", {options}}}\n"
    )
    owner = replace(OWNER, truths=("state", "name"), truth_values=("on", "off"))
    target = replace(OWNED_TARGET, copies=(("state",), ("owner_name",)))
    first = Fact("state", "targets", at("owners", "team", "owner"), ((("state",), ("state",)),), attached_by=("owner",))
    second = replace(
        first,
        rule="name",
        pairs=((("name",), ("owner_name",)),),
        where=lambda _source, target: target.get("state") == {"S": "on"},
        where_by=("state",),
    )
    facts = (replace(first, strict=strict), replace(second, strict=strict))
    return Configuration(name, rules, (owner, target), facts)


def keyed() -> Configuration:
    """Fields that are only in keys: one is copied, others are read by a condition. Some links name impossible keys."""
    rules = """
tables:
  people: {key: {PK: S, SK: S}}
  tasks: {key: {PK: S, SK: S}}
entities:
  user: {table: people, key: {PK: "ORG#{org}", SK: "USER#{user_id}"}}
  task: {table: tasks, key: {PK: "ORG#{org}", SK: "TASK#{task_id}"}}
rules:
  id: {copy: user.user_id, into: task.owner, link: {user_id: assignee}, on_delete: clear}
  name:
    copy: user.name
    into: task.owner_name
    link: {user_id: assignee}
    where: "task_id != 't1' && user.user_id != 's1'"
    on_delete: clear
"""
    users = keys(tuple(f"USER#{user}" for user in SOURCES), "SK", PK="ORG#x")
    tasks = keys(tuple(f"TASK#t{number}" for number in range(4)), "SK", PK="ORG#x")
    kinds = (
        Kind("people", users, truths=("name",), flag="noise"),
        Kind(
            "tasks",
            tasks,
            links=("assignee",),
            link_values=(*SOURCES, *IMPOSSIBLE),
            copies=(("owner",), ("owner_name",)),
            flag="noise",
        ),
    )

    def link(task: Item) -> Place | None:
        assignee = text(task, "assignee")
        return None if assignee is None else ("people", ("ORG#x", f"USER#{assignee}"))

    def view(user: Item) -> Item:
        return {**user, "user_id": {"S": user["SK"]["S"].removeprefix("USER#")}}

    def where(user: Item, task: Item) -> bool:
        return task["SK"] != {"S": "TASK#t1"} and user.get("SK") != {"S": "USER#s1"}

    first = Fact("id", "tasks", link, ((("user_id",), ("owner",)),), attached_by=("assignee",), view=view)
    second = replace(first, rule="name", pairs=((("name",), ("owner_name",)),), where=where)
    return Configuration("keyed", rules, kinds, (first, second))
