"""Scenarios drawn at random: a few rules of every form over tables that refer to each other in every way, a few writes,
and what the oracle expects of every item after each.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from tests.peers.oracle import Items, derived
from tests.peers.scenarios import ABSENT

REFERENCES: Final[Mapping[str, Mapping[str, tuple[str, bool]]]] = {  # table: {attribute: (table, is it a list)}
    "regions": {"parent": ("regions", False)},
    "customers": {"region": ("regions", False), "tags": ("tags", True), "boss": ("customers", False)},
    "orders": {"customer": ("customers", False), "products": ("products", True), "deputy": ("customers", False)},
    "lines": {"order": ("orders", False), "product": ("products", False)},
    "products": {"group": ("groups", False)},
    "groups": {},
    "tags": {"region": ("regions", False)},
}
TABLES: Final = dict.fromkeys(REFERENCES, ("id",))
KEYS: Final = {table: [f"{table[0]}{number}" for number in (1, 2, 3)] for table in REFERENCES}
HIERARCHIES: Final = {"regions": "parent", "customers": "boss"}
VALUES: Final[Mapping[str, list[Any]]] = {
    "name": ["Ann", "Bob", "New York", "ceo"],
    "size": [0, 1, 2, 3, 4.5, -1, None],
    "kind": ["x", "y", "z"],
    "flag": [True, False],
}
CONDITIONS: Final[list[dict[str, Any]]] = [
    {"kind": "x"}, {"size": {"gt": 2}}, {"flag": True}, {"kind": None}, {"size": {"lte": 3}, "flag": False},
    {"kind": {"ne": "x"}}, {"kind": {"in": ["x", "y"]}}, {"flag": None},
]  # fmt: skip
EMPTY: Final[Mapping[str, list[Any]]] = {
    "count": [None, ABSENT], "sum": [None, ABSENT], "min": [0, None], "max": [0, -1], "map": [ABSENT],
    "list": [ABSENT], "set": [[]],
}  # fmt: skip
WEIGHTS: Final[list[dict[str, Any]]] = [
    {"weight": 3},
    {"weight": 0.5},
    {"weight": "flag", "weight_map": {True: 2, False: 1, None: 1}},
    {"weight": "flag", "weight_map": {True: 2, False: 0, None: 5}},
    {"weight": "flag", "weight_map": {True: -3}},
]
Rule = dict[str, Any]


def drawn(seed: int) -> dict[str, Any]:
    """A scenario, as its file would have it; of the same seed the same one."""
    random = Random(seed)
    rules = [rule for number in range(random.choice([1, 2, 3])) if (rule := _rule(random, f"d{number}"))]
    whole = set(HIERARCHIES) if any("tree" in rule for rule in rules) else set()  # no parent is missing
    items: Items = {
        table: {key: _item(random, table, key) for key in KEYS[table] if table in whole or random.random() < 0.6}
        for table in REFERENCES
    }
    initial = {table: copy.deepcopy([*rows.values()]) for table, rows in items.items()}
    first = derived(TABLES, rules, items)
    steps = [step for _ in range(8) if (step := _step(random, items, whole, rules))]
    head = {"id": f"DRAWN-{seed}", "tables": dict.fromkeys(TABLES, "id"), "rules": rules}
    return {**head, "initial": initial, "expect_initial": first, "steps": steps}


# ---------------------------------------------------------------- rules
def _rule(random: Random, attribute: str) -> Rule | None:
    table = random.choice([*REFERENCES])
    made = random.choice(RULES)(random, table)
    return made and {"table": table, "attr": attribute, **made}


def _path(random: Random, table: str, *, forward: bool = False) -> tuple[list[Rule], str]:
    """A path of one to three hops, and where it ends; forward, by single references alone."""
    path: list[Rule] = []
    for _ in range(random.choice([1, 1, 2, 3])):
        hops = [({"to": to, "by": by}, to) for by, (to, many) in REFERENCES[table].items() if not (forward and many)]
        for other, references in () if forward else REFERENCES.items():
            hops += [({"from": other, "on": on}, other) for on, (to, _) in references.items() if to == table]
        if not hops:
            break
        hop, table = random.choice(hops)
        if "from" in hop and random.random() < 0.2:
            hop["where"] = random.choice(CONDITIONS)
        path.append(hop)
    return path, table


def _copy(random: Random, table: str) -> Rule | None:
    path, _ = _path(random, table, forward=True)
    missing = {"missing": random.choice(["none", 0, None, [], {"a": 1}])} if random.random() < 0.3 else {}
    return {"copy": {"path": path, "attr": random.choice(["name", "size", "kind"])}, **missing} if path else None


def _gathered(random: Random, table: str) -> Rule | None:
    path, _ = _path(random, table)
    kind = random.choice([*EMPTY])
    rule: Rule = {"agg": kind, "path": path}
    if kind == "map" or (kind == "list" and random.random() < 0.5):
        rule["fields"] = random.sample(["name", "size", "kind"], 2)
    elif kind != "count":
        rule["of"] = random.choice({"sum": ["size"], "set": ["id", "kind", "size"]}.get(kind, ["size", "name"]))
    elif random.random() < 0.4:
        rule |= random.choice(WEIGHTS)
    if random.random() < 0.3:
        rule["where"] = random.choice(CONDITIONS)
    if random.random() < 0.25 and rule.get("of") != "name":
        rule["empty"] = random.choice(EMPTY[kind])
    return rule if path else None


def _text(random: Random, table: str) -> Rule:
    parts: list[Any] = [{"attr": random.choice(["name", "kind", "size"])}, random.choice(["-", "c1 ", "/"])]
    path, _ = _path(random, table, forward=random.random() < 0.5)
    if path:
        parts.append({"path": path, "attr": random.choice(["name", "kind"])})
    random.shuffle(parts)
    return {"text": parts, "sep": random.choice(["", ", "])}


def _key(random: Random, _: str) -> Rule:
    return {"key": random.choice(["{kind|upper}#{name|upper|nospace}", "K#{size}", "{name}-{kind|lower}"])}


def _tree(random: Random, table: str) -> Rule | None:
    if table not in HIERARCHIES:
        return None
    more = [{}, {"name": "name"}, {"lead": "/"}, {"name": "name", "lead": "/", "tail": "/"}]
    return {"tree": {"parent": HIERARCHIES[table], "sep": "/", **random.choice(more)}}


RULES: Final[list[Callable[[Random, str], Rule | None]]] = [_copy, *[_gathered] * 4, _text, _key, _tree]


# ---------------------------------------------------------------- items
def _item(random: Random, table: str, key: str) -> dict[str, Any]:
    item = {name: random.choice(values) for name, values in VALUES.items() if random.random() < 0.75}
    for name, (to, many) in REFERENCES[table].items():
        keys = [one for one in KEYS[to] if to != table or one < key]  # no rings
        if keys and random.random() < 0.85:
            item[name] = [random.choice(keys) for _ in range(random.randrange(4))] if many else random.choice(keys)
    return {"id": key, **item}


def _step(random: Random, items: Items, whole: set[str], rules: list[Rule]) -> dict[str, Any] | None:
    table = random.choice([*REFERENCES])
    key = random.choice(KEYS[table])
    new, old = _item(random, table, key), items[table].get(key)
    chance = random.random()
    if chance < 0.25:
        if old is None or table in whole:
            return None
        del items[table][key]
        step: dict[str, Any] = {"delete": {"table": table, "key": key}}
    elif chance < 0.6 or old is None:
        items[table][key] = new
        step = {"put": {"table": table, "item": copy.deepcopy(new)}}
    else:
        name = random.choice([*REFERENCES[table], *VALUES])
        old.pop(name, None)
        old |= {name: new[name]} if name in new else {}
        change = {"set": {name: copy.deepcopy(new[name])}} if name in new else {"remove": [name]}
        step = {"update": {"table": table, "key": key, **change}}
    return {**step, "expect": derived(TABLES, rules, items)}
