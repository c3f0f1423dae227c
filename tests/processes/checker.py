"""A judge of the tables, by raw items, the journals of the writers and the streams.

Invariant: this file imports nothing of the product, and reads the rules from `rules.yaml` by a human's eyes only. Two
questions: is every copy what its source says (wrong), and is every acknowledged write still there (lost)?
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

Item = dict[str, Any]  # as the engine has it: {"name": {"S": "Ada"}}
Keys = Mapping[str, tuple[str, ...]]
KEYS: Keys = {
    "shop": ("PK", "SK"),
    "posts": ("post_id",),
    "parts": ("part_id",),
    "teams": ("team", "member"),
    "ledger": ("PK", "SK"),
}
COPIES = {
    "user": {"orders", "posts", "counted", "spent", "largest", "last"},
    "order": {"user_name"},
    "post": {"author"},
    "part": {"path", "depth"},
    "team": set[str](),
    "member": {"team_name"},
}


@dataclass(frozen=True)
class Finding:
    """A difference. `what` is "wrong" or "lost"."""

    what: str
    rule: str
    key: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.what}: {self.rule} of {self.key}\n  expected {self.expected}\n  found    {self.found}"


def kind_of(table: str, item: Item) -> str:
    """The kind of an item, by its key."""
    if table == "shop":
        sort = item["SK"]["S"]
        kinds = {"PROFILE": "user", "EMAIL": "by_email", "ORDER": "order", "STATE": "state", "V": "version"}
        return kinds[sort.partition("#")[0]]
    if table == "teams":
        return "team" if item["member"]["S"] == "TEAM" else "member"
    return {"posts": "post", "parts": "part", "ledger": "ledger"}[table]


def key_of(table: str, item: Item) -> str:
    """A name for an item: its table and the values of its key."""
    return f"{table}/" + "/".join(next(iter(item[name].values())) for name in KEYS[table])


# ---------------------------------------------------------------- wrong: copies against their sources
@dataclass
class Database:
    """The items of all tables, by kind, and what the streams showed."""

    items: dict[str, list[Item]]
    history: History
    checked: int = 0
    findings: list[Finding] = field(default_factory=list)

    def expect(self, rule: str, key: str, expected: Any, found: Any) -> None:
        self.checked += 1
        if expected != found:
            self.findings.append(Finding("wrong", rule, key, expected, found))


def read_database(tables: Mapping[str, Iterable[Item]], history: History) -> Database:
    kinds = defaultdict[str, list[Item]](list)
    for table, items in tables.items():
        for item in items:
            kinds[kind_of(table, item)].append(item)
    return Database(kinds, history, findings=list(history.findings))


def check_copies(db: Database) -> None:
    """Compare every copy with what it must be."""
    users = {item["PK"]["S"].removeprefix("USER#"): item for item in db.items["user"]}
    orders, posts = defaultdict[str, list[Item]](list), defaultdict[str, list[Item]](list)
    for order in db.items["order"]:
        orders[order["PK"]["S"].removeprefix("USER#")].append(order)
    for post in db.items["post"]:
        posts[post["user_id"]["S"]].append(post)
    _check_names(db, users)
    for name, user in users.items():
        _check_user(db, user, orders[name], posts[name])
    _check_states(db)
    _check_teams(db)
    _check_paths(db)
    _check_mirrors(db, users)
    _check_versions(db)


def _check_names(db: Database, users: Mapping[str, Item]) -> None:
    for order in db.items["order"]:
        user = users.get(order["PK"]["S"].removeprefix("USER#"))
        if user is not None:  # without a user the copy stays, whatever it is
            db.expect("names", key_of("shop", order), user.get("name"), order.get("user_name"))
    for post in db.items["post"]:
        user = users.get(post["user_id"]["S"], {})
        db.expect("authors", key_of("posts", post), user.get("name"), post.get("author"))


def _check_user(db: Database, user: Item, orders: list[Item], posts: list[Item]) -> None:
    key = key_of("shop", user)
    ids = sorted(o["SK"]["S"].removeprefix("ORDER#") for o in orders if o.get("status") != {"S": "VOID"})
    db.expect("orders", key, ids, sorted(user.get("orders", {"SS": []})["SS"]))
    entries = {post["post_id"]["S"]: {"M": {"title": post["title"]} if "title" in post else {}} for post in posts}
    db.expect("posts", key, {"M": entries}, user.get("posts"))
    opened = sum(order.get("status") == {"S": "OPEN"} for order in orders)
    db.expect("counted", key, opened, _number(user.get("counted")))
    totals = sorted((Decimal(order["total"]["N"]) for order in orders if "total" in order), reverse=True)
    db.expect("spent", key, sum(totals), _number(user.get("spent")))
    largest = [_number(one) for one in user.get("largest", {"L": [{"N": "-1"}]})["L"]]
    db.expect("largest", key, totals[:1], largest)
    newest = max(orders, key=lambda order: order["SK"]["S"], default=None)
    last = newest and {"M": {name: newest[name] for name in ("total", "status") if name in newest}}
    db.expect("last-order", key, last, user.get("last"))


def _check_states(db: Database) -> None:
    """Compare the items that rules make of the orders of each user and status, and that go with the last order."""
    groups = defaultdict[str, list[Decimal]](list)
    for order in db.items["order"]:
        key = {"PK": order["PK"], "SK": {"S": f"STATE#{order['status']['S']}"}}
        groups[key_of("shop", key)].append(Decimal(order["total"]["N"]))
    found = {key_of("shop", item): item for item in db.items["state"]}
    for key in sorted(groups.keys() | found.keys()):
        if key not in groups or key not in found:
            db.expect("states", key, key in groups, key in found)
            continue
        totals, state = groups[key], found[key]
        mean = (sum(totals) / len(totals)).quantize(Decimal("0.01"), ROUND_HALF_UP)
        shown = [_number(state.get(name)) for name in ("orders", "mean", "most")]
        db.expect("states", key, [len(totals), mean, max(totals)], shown)


def _check_teams(db: Database) -> None:
    teams = {team["team"]["S"]: team.get("name") for team in db.items["team"]}
    for member in db.items["member"]:
        if member["team"]["S"] in teams:
            db.expect("team-names", key_of("teams", member), teams[member["team"]["S"]], member.get("team_name"))


def _check_paths(db: Database) -> None:
    parts = {part["part_id"]["S"]: part for part in db.items["part"]}
    for name, part in parts.items():
        above = [name]
        while (parent := parts.get(above[-1], {}).get("parent_id", {}).get("S")) is not None:
            above.append(parent)
        if above[-1] in parts:
            expected = "|".join(reversed(above)), len(above) - 1
            found = part.get("path", {}).get("S"), _number(part.get("depth"))
            db.expect("paths", key_of("parts", part), expected, found)


def _check_mirrors(db: Database, users: Mapping[str, Item]) -> None:
    expected = {}
    for name, user in users.items():
        if "email" in user:
            key = {"PK": {"S": f"EMAIL#{user['email']['S']}"}, "SK": {"S": "EMAIL"}}
            its_name = {"name": user["name"]} if "name" in user else {}
            expected[key_of("shop", key)] = {**key, "user_id": {"S": name}, **its_name}
    found = {key_of("shop", item): item for item in db.items["by_email"]}
    for key in sorted(expected.keys() | found.keys()):
        db.expect("mails", key, expected.get(key), found.get(key))


def _check_versions(db: Database) -> None:
    found = {key_of("shop", item): item.get("name") for item in db.items["version"]}
    expected = {f"shop/USER#{user}/V#{int(version):09}": names for (user, version), names in db.history.states.items()}
    for key in sorted(expected.keys() | found.keys()):
        names = expected.get(key, ["no version"])
        db.expect("versions", key, names[0], names[0] if found.get(key, "none") in names else found.get(key, "none"))


def _number(value: Item | None) -> Decimal | None:
    return None if value is None else Decimal(value["N"])


@dataclass
class History:
    """The names that each version of each user had in the streams, and copies of names of other users."""

    states: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def note(self, table: str, image: Item, before: Item) -> None:
        """Note an image of a stream record, and the one before it. A name says whose it is."""
        kind = kind_of(table, image)
        if kind == "user" and "version" in image:
            names = self.states.setdefault((image["PK"]["S"].removeprefix("USER#"), image["version"]["N"]), [])
            if image.get("name") not in names:
                names.append(image.get("name"))
        copy, user = {
            "order": (image.get("user_name"), image.get("PK", {}).get("S", "").removeprefix("USER#")),
            "post": (image.get("author"), image.get("user_id", {}).get("S")),
        }.get(kind, (None, None))
        written = copy not in (None, before.get("user_name"), before.get("author"))
        if written and copy["S"].startswith("name ") and copy["S"].split()[1] != user:
            self.findings.append(Finding("wrong", "for a moment, the copy", key_of(table, image), user, copy["S"]))


# ---------------------------------------------------------------- lost: what applications wrote
def apply(entry: Mapping[str, Any], before: Item | None) -> Item | None:
    """The item after a write of a journal."""
    if entry["op"] == "delete":
        return None
    old = {} if entry["op"] == "put" or before is None else before
    return {**old, **entry["key"], **entry["values"]}


def possible_states(journals: Iterable[Iterable[str]]) -> dict[str, list[Item | None]]:
    """Return the states that each item may have. A journal lists the writes of an item in their order.

    An acknowledged write has happened. Any other write may have happened at its place, or not.
    """
    states: dict[str, list[Item | None]] = {}
    for journal in journals:
        entries = list(_entries(journal))
        acknowledged = {entry["ok"] for entry in entries if "ok" in entry}
        for entry in entries:
            if "ok" in entry:
                continue
            key = key_of(entry["table"], entry["key"])
            before = states.get(key, [None])
            after = [apply(entry, one) for one in before]
            both = after if entry["id"] in acknowledged else [*before, *after]
            states[key] = [one for number, one in enumerate(both) if one not in both[:number]]
    return states


def _entries(journal: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The whole lines of a journal: a writer that was killed may leave a part of one."""
    for line in journal:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def check_writes(db: Database, tables: Mapping[str, Iterable[Item]], possible: Mapping[str, list[Item | None]]) -> None:
    """Compare the applications' own attributes with what they wrote."""
    found: dict[str, Item] = {}
    for table, items in tables.items():
        for item in items:
            copies = COPIES.get(kind_of(table, item))
            if copies is not None:
                found[key_of(table, item)] = {name: value for name, value in item.items() if name not in copies}
    for key in sorted(possible.keys() | found.keys()):
        allowed = possible.get(key, [None])
        db.checked += 1
        if found.get(key) not in allowed:
            db.findings.append(Finding("lost", "the application's write", key, allowed, found.get(key)))
