"""Small worlds: random files of a few kinds, and rules files written by hand for what random ones reach too seldom.

Invariant: a world is nothing but a rules file, and how dense its items are. The same oracle says what is right in it. A
file is written by hand only if a mutant or a model needs it: random rules show that mutant not at all, or in more than
twice the histories. docs/contributing.md says what each reaches. Names are `mode/world`: the mode is what there is beside
the handlers (`history.MODES`), "" for nothing. `random-copy-derive` is a random file of these kinds, `random` one of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from tests.kinds import TRIALS
from tests.simulation.grammar import Made, made, made_of

BASE: Final = """
tables:
  sources: {key: {team: S, source: S}}
  targets: {key: {team: S, target: S}}
entities:
  source: {table: sources}
  target: {table: targets}
rules:
"""
LISTED: Final = """
tables:
  sources: {key: {source: S}}
  targets: {key: {target: S}, indexes: {by_source: {source: S, rank: S}, by_other: {other: S}}}
entities:
  source: {table: sources}
  target: {table: targets, required: [rank]}
rules:
"""
SHOP: Final = """
tables:
  shop: {key: {PK: S, SK: S}}
entities:
  user: {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order: {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
rules:
"""
OWNED: Final = """
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
CHAIN: Final = """
tables:
  tops: {key: {team: S, top: S}}
  mids: {key: {team: S, mid: S}}
  ends: {key: {team: S, end: S}}
entities:
  top: {table: tops}
  mid: {table: mids}
  end: {table: ends}
rules:
"""
PEOPLE: Final = """
tables:
  people: {key: {team: S, person: S}}
entities:
  person: {table: people}
rules:
"""
HELD: Final = """
tables:
  parents: {key: {parent: S}}
  children: {key: {parent: S, child: S}}
entities:
  parent: {table: parents}
  child: {table: children}
rules:
"""
INDEXED: Final = """
tables:
  parents: {key: {parent: S}}
  children: {key: {child: S}, indexes: {by_parent: {parent: S, rank: S}}}
entities:
  parent: {table: parents}
  child: {table: children, required: [rank]}
rules:
"""
COUNTED: Final = """
tables:
  users: {key: {team: S, user: S}}
  orders: {key: {team: S, order: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user: {table: users}
  order: {table: orders}
rules:
"""
GOALS: Final = """
tables:
  goals: {key: {goal: S}}
  members: {key: {goal: S, user: S}}
entities:
  goal: {table: goals}
  member: {table: members}
rules:
"""
EDGES: Final = """
tables:
  goals: {key: {goal: S}}
  members: {key: {member: S}, indexes: {by_goal: {goal: S, rank: S}}}
entities:
  goal: {table: goals}
  member: {table: members, required: [rank]}
rules:
"""
NODES: Final = """
tables:
  nodes: {key: {team: S, node: S}, indexes: {by_up: {up: S, rank: S}}}
entities:
  node: {table: nodes, required: [rank]}
rules:
"""
ORDERS: Final = """
tables:
  orders: {key: {order: S}}
  by_dept: {key: {dept: S, order: S}}
entities:
  order: {table: orders}
  dept_order: {table: by_dept}
rules:
"""
EMAILS: Final = """
tables:
  users: {key: {user: S}}
  emails: {key: {email: S}}
entities:
  user: {table: users}
  user_by_email: {table: emails}
rules:
"""
VERSIONS: Final = """
tables:
  sources: {key: {source: S}}
  versions: {key: {source: S, ver: S}}
entities:
  source: {table: sources}
  version: {table: versions}
rules:
"""
NUMBERED: Final = VERSIONS.replace("ver: S", "at: S").replace(
    "{table: versions}", '{table: versions, key: {at: "V#{ver:pad(2)}"}}'
)


def copy(options: str, *more: str) -> str:
    """A rule that copies one attribute, and more rules."""
    return "\n".join([f"  name: {{copy: source.name, into: target.source_name, {options}}}", *more, ""])


def other(policy: str) -> str:
    return f"  other: {{copy: source.name, into: target.other_name, link: {{source: other}}, on_delete: {policy}}}"


def tree(options: str) -> str:
    return f"{NODES}  paths: {{path: node.Path, parent: up, {options}}}\n"


def members(head: str, element: str, options: str = "") -> str:
    return f'{head}  members: {{collect: member, into: goal.members, as: "{element}"{options}}}\n'


def history(head: str, options: str) -> str:
    return f"{head}  versions: {{history: source, into: version, link: {{ver: rank}}, attributes: [bio]{options}}}\n"


EXTRAS: Final = "graph: Graph, shards: 2, depth: Depth, carry: [tenant]"
ON: Final = "where: \"state == 'OPEN'\""
TEXTS: Final[Mapping[str, str]] = {
    # one copy
    "base": BASE + copy("on_delete: clear"),
    "keep": BASE + copy("on_delete: keep"),
    "delete": BASE + copy("on_delete: delete"),
    "where-either": BASE + copy("where: \"amount > `1` || state == 'OPEN'\", on_delete: clear"),
    "delete-where": BASE + copy("where: \"rank == 'c' || rank == 'd'\", on_delete: delete"),
    "index": LISTED + copy("on_delete: clear"),
    "index-delete": LISTED + copy("on_delete: delete"),
    "index-strict": LISTED + copy("on_delete: clear, strict: true"),
    "shop": SHOP + "  name: {copy: user.name, into: order.user_name, on_delete: clear}\n",
    "own": f"{PEOPLE}  name: {{copy: person.name, into: person.boss_name, link: {{person: boss}}, on_delete: clear}}\n",
    # several copies
    "two": BASE + copy("on_delete: clear", other("clear")),
    "two-index": LISTED + copy("on_delete: clear", other("keep")),
    "cascade": f"""{CHAIN}  first: {{copy: top.name, into: mid.top_name, on_delete: clear}}
  second: {{copy: mid.top_name, into: end.top_name, on_delete: clear}}
""",
    "writes-link": f"""{OWNED}  link: {{copy: owner.source, into: target.source, on_delete: clear}}
  name: {{copy: source.name, into: target.source_name, on_delete: clear}}
""",
    "writes-where": f"""{OWNED}  state: {{copy: owner.state, into: target.state, on_delete: clear, strict: true}}
  name: {{copy: owner.name, into: target.owner_name, {ON}, on_delete: clear, strict: true}}
""",
    # defaults
    "default-keep": BASE + copy("default: nobody, on_delete: keep"),
    "embed-default": f"{HELD}  kids: {{embed: child, into: parent.kids, fields: [name, amount], default: {{amount: 7}}, limit: {{items: 9}}}}\n",
    # of the item itself, or its parent
    "derive-cases": f"""{PEOPLE}
  label: {{derive: person.label, as: "{{name}}", cases: [
    {{where: "state == 'OPEN' && amount > `1`", as: "OPEN#{{name}}"}}, {{where: "state == 'OPEN'", as: "LOW#{{rank}}"}}]}}
""",
    "expiry": f"{PEOPLE}  ends: {{derive: person.ends, as: 'ttl(at, 36h)'}}\n",
    "path-keep": tree("on_delete: keep"),
    "path-delete": tree("on_delete: delete").replace(", rank: S", "").replace(", required: [rank]", ""),
    "path-names": f"{NODES}  paths: {{path: node.Trail, ids: Path, by: name, separator: ' / ', parent: up, on_delete: clear}}\n",
    # of many
    "embed-index": f"{INDEXED}  kids: {{embed: child, into: parent.kids, fields: [name, amount], limit: {{items: 9}}}}\n",
    "embed-claimed": f"""{HELD}
  kids: {{embed: child, into: parent.kids, by: "{{label}}", fields: [child, amount], limit: {{items: 1}}, on_overflow: omit}}
""",
    "embed-claimed-index": f"""{INDEXED}
  kids: {{embed: child, into: parent.kids, by: "{{label}}", fields: [child, amount], limit: {{items: 9}}}}
""",
    "recount": f"""{HELD}
  kids: {{count: child, into: parent.n, {ON}, mode: recount}}
  each: {{sum: child.amount, into: parent.each, per: state, mode: recount}}
  most: {{max: child.amount, into: parent.most, mode: recount}}
""",
    "mixed": """
tables:
  orgs: {key: {org: S}}
  parents: {key: {parent: S}, indexes: {by_org: {org: S}}}
  children: {key: {parent: S, child: S}}
entities:
  org: {table: orgs}
  parent: {table: parents}
  child: {table: children}
rules:
  name: {copy: org.name, into: parent.org_name, on_delete: clear}
  label: {derive: parent.label, join: [parent, org_name], separator: "#"}
  kids: {embed: child, into: parent.about.kids, fields: [name], limit: {items: 9}}
  n: {count: child, into: parent.about.n, mode: recount}
""",
    "collect": members(GOALS, "{user}-{state}", ', omit: "flag"'),
    "collect-strict": members(GOALS, "{user}-{state}", ", strict: true"),
    "collect-numbers": """
tables:
  halls: {key: {hall: S}}
  seats: {key: {hall: S, seat: N}}
entities:
  hall: {table: halls}
  seat: {table: seats}
rules:
  seats: {collect: seat, into: hall.seats, as: "{seat}", numbers: true, where: "state == 'OPEN'"}
""",
    "collect-index": members(EDGES, "{member}-{state}", ", via: by_goal"),
    # of an item, under another key
    "mirror": f"{ORDERS}  by_dept: {{mirror: order, into: dept_order, attributes: [name], {ON}}}\n",
    "mirror-taken": f"{EMAILS}  by_email: {{mirror: user, into: user_by_email, attributes: {{name: user_name}}}}\n",
    # with a ledger
    "booked": f"""{COUNTED}
  orders: {{count: order, into: user.orders, {ON}}}
  spent: {{sum: order.amount, into: user.spent}}
""",
    "booked-groups": f"""{COUNTED}
  points: {{count: order, into: user.points, weights: {{state: {{OPEN: 3, SENT: 0.5}}}}, shards: 3}}
  states: {{sum: order.amount, into: user.stats.states, per: state, shards: 2}}
""",
    "booked-weights": f"""{COUNTED}
  points: {{count: order, into: user.points, weights: {{values: {{flag: {{"true": 2, "null": -1}}}}, default: 0.5}}}}
""",
    "ranked": f"""{COUNTED}
  least: {{min: order.amount, into: user.least, {ON}}}
  most: {{max: order.amount, into: user.most}}
""",
    "valued": f"""{COUNTED}
  tags: collect order.state into user.tags
  words: {{collect: order.state, into: user.words, join: ", ", order: amount}}
  last: {{collect: order.state, into: user.last, as: list, order: -amount, limit: 2}}
""",
    # a chain: the newest posts of an author, on each follow, and from there an item for each pair of post and reader
    "pairs": """
tables:
  authors: {key: {author: S}}
  posts:   {key: {author: S, post: S}}
  follows: {key: {author: S, reader: S}}
  feeds:   {key: {PK: S, SK: S}, indexes: {by_post: {post: S, author: S}}}
  ledger:  {key: {PK: S, SK: S}}
entities:
  author: {table: authors}
  post: {table: posts}
  follow: {table: follows}
  entry: {table: feeds, key: {PK: "READER#{reader}", SK: "{post}#{author}"}, required: [post, author]}
rules:
  newest: {collect: post.post, into: author.newest, as: list, order: -post, limit: 2}
  newest-on-follows: copy author.newest into follow.newest
  feeds: {mirror: follow, into: entry, each: {post: newest}}
  names: {copy: post.name, into: entry.name, on_delete: clear}
""",
    **{name: text for trial in TRIALS for name, text in trial.worlds.items()},
}


RANDOM: Final = "random"
OFTEN: Final = "often-"  # most items name one source
UNORDERED: Final = "unordered-"  # records come by Kinesis, which does not keep their order
KINDS: Final = (
    "copy", "copy-within", "chain-copy", "copy-derive", "late", "derive", "path", "embed", "count-ranked", "collect",
    "mirror", "history", "count", "ranked", "values",
)  # fmt: skip


def made_in(name: str, number: int = 0) -> Made:
    """The file of a world, by its name with its mode; of a random one by the number too."""
    first, *kinds = _file_of(name).split("-")
    found = made(number, frozenset(kinds)) if first == RANDOM else _by_hand(_file_of(name))
    return as_played(found, name)


def as_played(found: Made, name: str) -> Made:
    """A file with the mode of a world, and as dense as it is there."""
    mode, _, world = name.rpartition("/")
    often, in_order = world.startswith(OFTEN), not world.startswith(UNORDERED)
    return replace(found, mode=mode, dense=world != RANDOM, often=often, in_order=in_order)


def is_random(name: str) -> bool:
    """True for a world whose files are random."""
    return _file_of(name).split("-")[0] == RANDOM


def _file_of(name: str) -> str:
    return name.rpartition("/")[2].removeprefix(OFTEN).removeprefix(UNORDERED)


@cache
def _by_hand(world: str) -> Made:
    found, problems = made_of(TEXTS[world])
    assert found is not None, problems
    return found


def forget() -> None:
    """Forget all files: a mutant changes what is computed of rules."""
    made.cache_clear()
    _by_hand.cache_clear()


def among(mode: str, *worlds: str) -> tuple[str, ...]:
    """The names of some worlds, all in one mode."""
    return tuple(f"{mode}/{world}" for world in worlds)


def small(mode: str, *kinds: str, how: str = "") -> tuple[str, ...]:
    """The names of worlds of random files, each of a kind or of some kinds joined by "-", all in one mode and way."""
    return among(mode, *(f"{how}{RANDOM}-{kind}" for kind in kinds))


# Where whole runs play beside random rules: each world as it is, and some of them where somebody is beside the handlers.
ALL: Final = (
    *(name for mode in ("", "people", "readers", "transact") for name in (*among(mode, *TEXTS), *small(mode, *KINDS))),
    *small("waits", "copy", how=OFTEN),
    *small("", "copy", "count", how=UNORDERED),
    *among("waits", "often-index", "often-delete"),
    *small("backfill", "copy-derive", "path", "count-ranked", "count", "collect"),
    *small("versions", "count", "ranked", "values"),
    *small("mixed", "copy", how=OFTEN),
    *small("mixed", "copy"),
    *small("new", "copy", "copy-derive", "path", "embed", "collect", "mirror"),
)
