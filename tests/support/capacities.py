"""A rules file whose tables have every setting: one provisioned table with all kinds of indexes, one on demand."""

from __future__ import annotations

RULES = """
tables:
  shop:
    name: {prefix}shop
    key: {{PK: S, SK: S}}
    billing:
      provisioned: {{read: 10, write: 5, autoscaling: {{read: {{min: 5, max: 500}}, write: {{min: 5, max: 50, target: 50}}}}}}
    warm: {{read: 15000, write: 5000}}
    class: infrequent-access
    deletion_protection: true
    backups: true
    ttl: expires_at
    indexes:
      GSI1: {{GSI1PK: S, GSI1SK: S}}
      by_day: {{partition: {{day: S}}, billing: {{provisioned: {{read: 1, write: 2}}}}, warm: {{write: 9000}}}}
      by_name: {{partition: {{PK: S}}, sort: {{name: S}}, local: true}}
  users:
    name: {prefix}users
    key: {{user_id: S}}
    billing: {{on-demand: {{max_read: 1000, max_write: 500}}}}
    class: standard
    deletion_protection: false
    indexes:
      by_mail: {{mail: S}}
      by_town: {{partition: {{town: S}}, billing: {{on-demand: {{max_read: 100}}}}}}
entities:
  user:  {{table: users}}
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
rules:
  names: copy user.name into order.user_name
"""


def text(prefix: str = "") -> str:
    """The file, with a prefix of the tables' names."""
    return RULES.format(prefix=prefix)
