"""A transaction does what the stream would do, for every kind of rule, whatever the state and the actions."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest

from sync_rules.model.values import Item
from sync_rules.write import Transact
from tests.support import every_kind
from tests.support.builders import n, s
from tests.support.depth import deep
from tests.support.every_kind import order, part, post, user
from tests.support.transacted import Shop

RULES = every_kind.rules_of(effects=False)
USERS, ORDERS, PARTS = ("1", "2"), ("1", "2", "3"), ("1", "2", "3", "4")
NAMES, STATES = ("Ada", "Bob"), ("OPEN", "VOID")

Action = tuple[str, str, Item]  # verb, entity, item


def drawn_user(random: Random) -> Item:
    given: dict[str, Any] = {"name": s(random.choice(NAMES)), "rank": n(random.randrange(3))}
    if random.random() < 0.7:
        given["email"] = s(random.choice(("a@x", "b@x", "c@x")))
    return user(random.choice(USERS), **given)


def drawn_order(random: Random) -> Item:
    return order(random.choice(USERS), random.choice(ORDERS), random.randrange(5), status=s(random.choice(STATES)))


def drawn_part(random: Random) -> Item:
    number = random.randrange(len(PARTS))
    return part(PARTS[number], random.choice(PARTS[:number]) if number and random.random() < 0.8 else None)


def drawn(random: Random) -> Action:
    """An action of the application."""
    entity, make = random.choice(
        (("user", drawn_user), ("order", drawn_order), ("order", drawn_order), ("part", drawn_part))
    )
    if random.random() < 0.15:
        entity, item = "post", post(random.choice("12"), random.choice(USERS), random.choice(("x", "y")))
    else:
        item = make(random)
    return random.choices(("put", "update", "delete"), (5, 4, 2))[0], entity, item


def key_in(item: Item, entity: str) -> Item:
    return {name: item[name] for name in [one.name for one in RULES.entities[entity].table.key]}


def transacted(tx: Transact, action: Action) -> None:
    verb, entity, item = action
    key = key_in(item, entity)
    if verb == "put":
        tx.put(entity, item)
    elif verb == "update":
        tx.update(entity, key, set={name: value for name, value in item.items() if name not in key} or {"x": s("x")})
    else:
        tx.delete(entity, key)


def plainly(shop: Shop, action: Action) -> None:
    verb, entity, item = action
    table = RULES.entities[entity].table
    key = table.key_of(item)
    assert key is not None
    if verb == "put":
        shop.scene.memory.put(table.name, item)
    elif verb == "update":
        there = key_in(item, entity)
        shop.scene.memory.update(key, [((k,), v) for k, v in item.items() if k not in there] or [(("x",), s("x"))])
    else:
        shop.scene.memory.delete(key)


def begun(random: Random, *, addresses: bool = True) -> Shop:
    """A shop at rest, with a random past. Of two users with one address who comes first has it, and the other waits."""
    shop = Shop(RULES)
    for _ in range(random.randrange(12)):
        action = drawn(random)
        if not addresses:
            cast("dict[str, Any]", action[2]).pop("email", None)
        plainly(shop, action)
    shop.rest()
    return shop


def two_begun(random: Random, *, addresses: bool = True) -> tuple[Shop, Shop]:
    """Two shops with the same random past."""
    state = random.getstate()
    one = begun(random, addresses=addresses)
    random.setstate(state)
    return one, begun(random, addresses=addresses)


def actions_of(random: Random) -> list[Action]:
    found: dict[object, Action] = {}
    for _ in range(random.choice((1, 1, 2, 3))):
        action = drawn(random)
        found[RULES.entities[action[1]].table.key_of(action[2])] = action
    return list(found.values())


@pytest.mark.parametrize("seed", range(deep(20)))
def test_every_kind_a_transaction_does_what_the_stream_would_do(seed):
    """After it all is as the stream would leave it, and the stream writes nothing; what it leaves, the stream does."""
    random = Random(seed)
    shop, other = two_begun(random)
    assert shop.state() == other.state()
    actions = actions_of(random)
    with shop.transact() as tx:
        for action in actions:
            transacted(tx, action)
    for action in actions:
        plainly(other, action)
    other.rest()
    left = frozenset(one.rule for one in tx.result.left)
    assert left <= {rule.title for rule in RULES.rules.values()}
    if "mails" not in left:
        assert without(shop.state(), left) == without(other.state(), left), actions
    written = shop.written_by_the_stream()
    assert shop.state() == other.state(), actions
    assert not written or tx.result.left


def without(state: dict[tuple[str, object], Item], left: frozenset[str]) -> dict[tuple[str, object], Item]:
    """A state without the attributes that these rules keep."""
    kept = {path[0] for name in left for path in RULES.rules[name].copies}
    return {key: {name: value for name, value in item.items() if name not in kept} for key, item in state.items()}
