"""The trial of means and of roll-ups: items that rules make, and remove without members."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from typing import Any
from unittest.mock import patch

from sync_rules.model import groups
from sync_rules.model.groups import list_views
from sync_rules.model.numbers import read_number
from sync_rules.model.writes import Condition, Put, Test
from sync_rules.pipeline import reconcile, sources
from sync_rules.pipeline.sources import Target
from sync_rules.rules import ledger
from sync_rules.rules.kinds import booked_rule, tally
from sync_rules.rules.kinds.counted_rule import CountedRule
from sync_rules.rules.kinds.making_rule import MakingRule
from sync_rules.rules.kinds.tally import TallyRule, TotalRule
from tests.kinds import Trial
from tests.simulation.breaking import Mutation, replacing

ALWAYS = (Condition(Test.ABSENT, ("never there",)),)  # a guard that always holds


HEAD = """
tables:
  shop: {key: {PK: S, SK: S}, indexes: {by_day: {day: S}, by_name: {GSI1PK: S, GSI1SK: S}}}
  orders: {key: {order_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  day: {table: shop, key: {PK: "DAY#{day}", SK: TOTAL, GSI1PK: DAYS, GSI1SK: "{day}", day: "{day}"}, made_by: rules}
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
MEANS = f"""{HEAD}
  amounts: {{mean: order.amount, into: day.mean, shards: 2}}
  open: {{mean: order.amount, into: day.open, places: 0, where: "state == 'OPEN'"}}
"""
TAGGED = """
tables:
  shop: {key: {PK: S, SK: S}}
  posts: {key: {author: S, post_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  tag: {table: shop, key: {PK: "TAG#{tag}", SK: "{day}"}, made_by: rules}
  post: {table: posts}
rules:
  posts: {count: post, into: tag.posts, link: {tag: {each: tags}, day: {first: 7, of: at}}, where: "state == 'OPEN'"}
  amounts: {mean: post.amount, into: tag.mean, link: {tag: {each: info.tags}, day: {first: 7, of: at}}, shards: 2}
"""
TAGGED_FEW = """
tables:
  tags: {key: {tag: S}}
  posts: {key: {post_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  tag: {table: tags}
  post: {table: posts}
rules:
  posts: {sum: post.amount, into: tag.amount, link: {tag: {each: tags}}}
  most: {max: post.amount, into: tag.most, link: {tag: {each: tags}}}
"""
PATHS = """
tables:
  shop: {key: {PK: S}, indexes: {by_up: {up: S}, by_place: {place: S}}}
  ledger: {key: {PK: S, SK: S}}
entities:
  node: {table: shop, key: {PK: "NODE#{node}"}}
  product: {table: shop, key: {PK: "PRODUCT#{product}"}}
  total: {table: shop, key: {PK: "TOTAL#{node}"}, made_by: rules}
rules:
  paths: {path: node.path, parent: up}
  ways: {copy: node.path, into: product.path, link: {node: place}, on_delete: clear}
  products: {count: product, into: total.products, link: {node: {each: path, separator: "|"}}}
  most: {max: node.amount, into: total.most, link: {node: {each: path, separator: "|"}}}
"""
SUMS = f"""{HEAD}
  orders: {{count: order, into: day.orders, sums: {{amount: revenue, info.size: stats.size}}, where: "state == 'OPEN'"}}
  all: {{count: order, into: day.all, sums: {{amount: all_amounts}}, shards: 2}}
"""
SUMS_OF_USERS = """
tables:
  users: {key: {user_id: S}}
  orders: {key: {user_id: S, order_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user: {table: users}
  order: {table: orders}
rules:
  orders: {count: order, into: user.orders, sums: {amount: revenue, rank: ranks}}
"""
WORDS = TAGGED_FEW.partition("  most:")[0].replace("{each: tags}", '{each: tags, separator: ", "}')
MEANS_OF_USERS = """
tables:
  users: {key: {user_id: S}}
  orders: {key: {user_id: S, order_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user: {table: users}
  order: {table: orders}
rules:
  amounts: mean order.amount into user.mean
  listed: {mean: order.amount, into: user.listed, mode: recount, per: state, places: 1}
"""
ONE = """
tables:
  sums: {key: {sums: S}}
  orders: {key: {order_id: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  one: {table: sums, key: {sums: ONE}, made_by: rules}
  order: {table: orders}
rules:
  orders: {count: order, into: one.orders, where: "state == 'OPEN'"}
"""
list_elements = groups.Each.list_elements
TAGS = ("/tags", "/rolled-tags")
PARTS = ("/rolled-paths", "/words")
PLACES = ("/rolled", "/rolled-few")
SUMMED = ("/sums", "/rolled-sums")


def without_guard() -> Any:
    """Mutant: an item is removed whatever it holds by now."""
    original = reconcile.make_removal_intent

    def removal_of(target: Any) -> Any:
        intent = original(target)
        return replace(intent, write=replace(intent.write, guard=ALWAYS))

    return patch.object(reconcile, "make_removal_intent", removal_of)


def put_over() -> Any:
    """Mutant: an item is created over one that came meanwhile."""
    original = reconcile.make_put_intent

    def creation_of(intent: Any) -> Any:
        made = original(intent)
        assert isinstance(made.write, Put)
        return replace(made, write=replace(made.write, guard=ALWAYS))

    return patch.object(reconcile, "make_put_intent", creation_of)


def waiting_is_empty() -> Any:
    """Mutant: a rule whose books are not complete has no members."""

    def is_empty(makers: Any, target: Any, found: Any) -> bool:
        return all(found.has_members(rule, target) is not True for rule in makers)

    return patch.object(sources, "_is_empty", is_empty)


def removals_ignored() -> Any:
    """Mutant: nothing is looked at after a removal."""
    original = MakingRule.pulls
    return patch.object(MakingRule, "pulls", lambda rule, change: change.new is not None and original(rule, change))


def former_groups_kept() -> Any:
    """Mutant: groups that only the old image of an item names are not looked at."""
    original = TallyRule._list_items
    return patch.object(TallyRule, "_list_items", lambda rule, change: original(rule, replace(change, old=None)))


def sums_unguarded() -> Any:
    """Mutant: an entry is written over one with other sums."""
    original = tally.expect_item

    def expect(name: str, seen: Any, paths: Any) -> Any:
        return original(name, seen, [path for path in paths if not path[0].startswith("=")])

    return patch.object(tally, "expect_item", expect)


def sums_kept() -> Any:
    """Mutant: what an entry added to further sums is not taken back."""
    return patch.object(ledger, "list_sums", lambda _entry: [])


def sums_of_what_fits(rule: TallyRule, child: Any) -> Any:
    """Mutant: a value that is no number adds nothing to its sum."""
    found = ((tally.name_sum(path), read_number(rule._read(child, path))) for path in rule.sums)
    return tuple(sorted((name, number) for name, number in found if number))


def sums_not_said() -> Any:
    """Mutant: books with other sums are taken for the own ones."""
    original = TallyRule.body
    return patch.object(
        TallyRule, "body", lambda rule: {key: value for key, value in original(rule).items() if key != "sums"}
    )


MUTANTS = {
    "sums: entries not guarded": Mutation(sums_unguarded, SUMMED),
    "sums: not taken back": Mutation(sums_kept, SUMMED),
    "sums: unfit values pass": Mutation(replacing(TallyRule, "_read_sums", sums_of_what_fits), SUMMED),
    "sums: books of other sums": Mutation(sums_not_said, ("versions/sums",)),
    "rollup: made items not looked at again": Mutation(replacing(MakingRule, "pulls", lambda *_args: False), PLACES),
    "rollup: removals not looked at again": Mutation(removals_ignored, PLACES),
    "rollup: a rule that waits has no members": Mutation(waiting_is_empty, ("late/rolled", "late/rolled-few")),
    "rollup: removed without a guard": Mutation(without_guard, ("/rolled-one",)),
    "rollup: created over another item": Mutation(put_over, ("/rolled-one",)),
    "rollup: removed by an old image": Mutation(
        replacing(Target, "fresh", property(lambda _self: True, lambda *_a: None)), ("readers/rolled-groups",)
    ),
    "rollup: removed with what no rule makes": Mutation(
        replacing(MakingRule, "find_unexpected_attribute", lambda *_args: None), PLACES
    ),
    "rollup: other rules not asked": Mutation(replacing(MakingRule, "list_makers_beside", lambda _rule: ()), PLACES),
    "rollup: nothing is no member": Mutation(
        replacing(TallyRule, "counts_members", CountedRule.counts_members), ("/rolled-ranked", "/rolled")
    ),
    "mean: what adds nothing is left out": Mutation(
        replacing(TallyRule, "counts_members", property(lambda rule: rule.parent.made)), ("/means",)
    ),
    "mean: the rest is cut off": Mutation(
        replacing(
            tally, "compute_mean", lambda total, count, _places: (total / count).quantize(Decimal(1), ROUND_DOWN)
        ),
        ("/rolled-means",),
    ),
    "each: one element alone": Mutation(
        replacing(booked_rule, "list_views", lambda link, item: list_views(link, item)[:1]), TAGS
    ),
    "each: former groups kept": Mutation(former_groups_kept, TAGS),
    "each: more groups than are allowed": Mutation(replacing(booked_rule, "GROUPS_MAX", 10_000), TAGS),
    "each: the last part of a text alone": Mutation(
        replacing(groups.Each, "list_elements", lambda each, item: list_elements(each, item)[-1:]), PARTS
    ),
    "each: a list in place of a text": Mutation(
        replacing(groups.Each, "types", property(lambda _each: ("L", "SS", "NS", "BS", "S", "NULL"))), ("/words",)
    ),
    "each: other values are passed over": Mutation(
        replacing(groups.Each, "find_fault", lambda *_args: ""), ("/rolled-tags",)
    ),
    "rollup: a sum of nothing has no members": Mutation(
        replacing(
            TotalRule, "has_members", lambda _rule, found: any(one and one.get("n") != {"N": "0"} for one in found)
        ),
        ("/rolled", "/rolled-ranked"),
    ),
    "rollup: books not swept": Mutation(
        replacing(MakingRule, "swept_entities", property(lambda rule: (rule.target,))), PLACES
    ),
    "rollup: any text is a time": Mutation(
        replacing(groups, "is_utc_time", lambda text: len(text) >= 10), ("/rolled-groups",)
    ),
}

TRIAL = Trial(
    "rollup",
    {
        "rolled": COUNTED,
        "rolled-ranked": RANKED,
        "rolled-few": FEW,
        "rolled-groups": GROUPED,
        "rolled-one": ONE,
        "rolled-means": MEANS,
        "means": MEANS_OF_USERS,
        "rolled-tags": TAGGED,
        "tags": TAGGED_FEW,
        "rolled-paths": PATHS,
        "words": WORDS,
        "rolled-sums": SUMS,
        "sums": SUMS_OF_USERS,
    },
    MUTANTS,
)
