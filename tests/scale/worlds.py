"""A shop of any size: users with a hundred orders each, whose copies are wrong for one order in so many.

Invariant: a wrong copy is as large as the right one, so that repairs do not enlarge a store in memory, and any growth
is the backfill's.
"""

from __future__ import annotations

from collections.abc import Iterator

from sync_rules.language.load import parse_rules
from sync_rules.model.values import Item
from sync_rules.rules.ruleset import Rules
from tests.support.builders import order_item, s, user_item

ORDERS_PER_USER = 100
RULES = """
tables: {{shop: {{name: {prefix}shop, key: {{PK: S, SK: S}}}}}}
entities:
  user:  {{table: shop, key: {{PK: "USER#{{user_id}}", SK: PROFILE}}}}
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
rules:
  names:  copy user.name into order.user_name
  labels: {{derive: order.label, as: "{{user_name}} {{order_id}}"}}
  orders: {{collect: order, into: user.orders, as: "{{order_id}}"}}
"""


def text_of(prefix: str = "") -> str:
    """The rules file. Three rules in two steps: the label is made of the name."""
    return RULES.format(prefix=prefix)


def rules_of(prefix: str = "") -> Rules:
    return parse_rules(text_of(prefix))


def items(count: int, wrong_each: int = 1) -> Iterator[Item]:
    """A number of items; both copies of one order in `wrong_each` are wrong, and the users' sets are right."""
    made = number = 0
    while made < count:
        name = f"name {number:08}"
        orders = [f"{order:03}" for order in range(min(ORDERS_PER_USER, count - made - 1))]
        members = {"orders": {"SS": orders}} if orders else {}
        yield user_item(f"{number:08}", name=s(name), **members)
        for i, order in enumerate(orders):
            held = "none 00000000" if i % wrong_each == 0 else name
            yield order_item(f"{number:08}", order, user_name=s(held), label=s(f"{held} {order}"))
        made += 1 + len(orders)
        number += 1
