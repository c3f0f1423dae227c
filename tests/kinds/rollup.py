"""The trial of roll-ups: items that count, sum, min and max make, and remove without members."""

from __future__ import annotations

from tests.kinds import Trial

HEAD = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {by_day: {day: S}, by_name: {GSI1PK: S, GSI1SK: S}}}
  orders: {key: {order_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  day: {table: shop, key: {PK: "DAY#{day}", SK: TOTAL, GSI1PK: DAYS, GSI1SK: "{day}"}, made_by: rules}
  order: {table: orders}
rules:
"""
COUNTED = f"""{HEAD}
  orders: {{count: order, into: day.orders, where: "state == 'OPEN'"}}
  units: {{sum: order.amount, into: day.units}}
"""
RANKED = f"""{HEAD}
  most: {{max: order.amount, into: day.stats.most}}
  points: {{count: order, into: day.stats.points, weights: {{state: {{OPEN: 1}}}}, shards: 2}}
"""
FEW = f"""{HEAD}
  least: {{min: order.amount, into: day.least}}
"""
GROUPED = """
tables:
  sums: {key: {name: S, day: S}}
  orders: {key: {order_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  total: {table: sums, key: {name: "ALL#{name}"}, made_by: rules}
  order: {table: orders}
rules:
  orders: {count: order, into: total.orders, link: {name: {constant: orders}, day: {first: 10, of: at}}}
  least: {min: order.amount, into: total.least, link: {name: state, day: {first: 7, of: at}}}
"""

TRIAL = Trial("rollup", {"rolled": COUNTED, "rolled-ranked": RANKED, "rolled-few": FEW, "rolled-groups": GROUPED})
