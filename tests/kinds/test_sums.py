"""Sums beside a count: what `check` takes, what DynamoDB can hold, and what the rule says about a wrong item."""

from __future__ import annotations

import pytest

from sync_rules.adapters.expressions import Expressions
from sync_rules.audit.link_check import sample_links
from sync_rules.jobs.dryrun.planner import Planner
from sync_rules.language.kinds.count import SUM_LEVELS_MAX, SUMS_MAX
from sync_rules.language.load import check_rules, parse_rules
from sync_rules.model.sizes import count_item_bytes
from sync_rules.model.writes import Update
from tests.support.builders import m, n, s
from tests.support.worlds import Scene

RULES = """
tables: {users: {key: {user_id: S}}, orders: {key: {order_id: S}}, ledger: {key: {PK: S, SK: S}}}
entities: {user: {table: users}, order: {table: orders}}
rules:
  orders: {count: order, into: user.orders, sums: SUMS}
"""
EXPRESSION_MAX_BYTES = 4096  # of a condition; https://docs.aws.amazon.com/general/latest/gr/ddb.html
MANY = range(SUMS_MAX)


def text_with(sums: str) -> str:
    return RULES.replace("SUMS", sums)


def scene_with(sums: str, **values: object) -> Scene:
    """A user, and an order with these values."""
    scene = Scene(parse_rules(text_with(sums)))
    scene.put("users", {"user_id": s("u"), **{f"m{i}": nest(i, SUM_LEVELS_MAX - 2) for i in MANY}})
    scene.put("orders", {"order_id": s("1"), "user_id": s("u"), **values})
    return scene


def nest(number: int, levels: int) -> dict[str, object]:
    """A map of maps, each under a name of its own."""
    return m(**({} if levels == 0 else {f"b{number}of{levels}": nest(number, levels - 1)}))


def test_the_order_of_sums_is_not_part_of_the_books():
    """Sums in another order, or under another name on the parent, leave the books complete."""
    given = ("[a, b]", "[b, a]", "{a: one, b: two}", "[a, c]")
    one, *same, other = (parse_rules(text_with(sums)).rules["orders.ledger"].books for sums in given)
    assert [books == one for books in (*same, other)] == [True, True, False]


@pytest.mark.parametrize("sums", ["{total: user.revenue}", "{order.total: revenue}", "[order.total]"])
def test_a_sum_named_with_an_entity_is_doubted(sums):
    """The paths are of the items and of the parent, without their names."""
    _, problems = check_rules(text_with(sums), {})
    assert [one.code for one in problems] == ["SR421"]


def test_the_most_sums_fit_into_an_expression_and_into_a_write_unit(monkeypatch):
    """DynamoDB takes a condition on all of them, and entry and total with long names have at most 1 KB."""
    deep = {
        i: ".".join([f"m{i}", *(f"b{i}of{level}" for level in range(SUM_LEVELS_MAX - 2, 0, -1)), "c"]) for i in MANY
    }
    sums = ", ".join(f"a{i}: {path}" for i, path in deep.items())
    scene = scene_with(f"{{{sums}}}", **{f"a{i}": n(i + 1) for i in MANY})
    lengths: list[int] = []
    monkeypatch.setattr(scene.tap, "result", lambda write: lengths.append(measure(write)))
    scene.rest()
    assert 2_000 < max(lengths) <= EXPRESSION_MAX_BYTES
    names = [f"{'x' * 22}{i:02d}" for i in MANY]
    scene = scene_with(f"[{', '.join(names)}]", **{name: n("1234.56") for name in names})
    scene.rest()
    assert 600 < max(count_item_bytes(item) for item in scene.memory.items("ledger")) <= 1024


def measure(write: object) -> int:
    """The length of the condition of an update."""
    return len(Expressions().guard(write.guard)) if isinstance(write, Update) else 0


def test_a_wrong_value_is_named_by_its_attribute():
    """The failure record says which of several sums is no number."""
    scene = scene_with("[units, total]", units=n(1), total=s("2"))
    scene.rest()
    assert [one.reason for one in scene.parked.failures] == ["NotANumber: total"]


def test_plan_names_the_sums_of_a_total():
    """They are names of attributes; only the names of groups are values, and stay out."""
    scene = scene_with("[units, total]", units=n(1), total=n(2))
    found = []
    Planner(scene.rules, scene.rules.keeper_names, scene.memory, on_write=found.append).run()
    (paths,) = [one.paths for one in found if str(one.key.values[0][2]).startswith("orders/T/")]
    assert {*paths} == {("n",), ("=total",), ("=units",), ("v",)}


def test_a_misspelled_sum_stops_before_the_first_write():
    """No item has the attribute: the sum would be 0 on every parent. The cure works where the name stands."""
    text = text_with("{toal: revenue}")
    scene = Scene(parse_rules(text), complete=False)
    scene.there("users", {"user_id": s("u"), "revenue": n(7)})
    scene.there("orders", *({"order_id": s(str(i)), "user_id": s("u"), "total": n(i)} for i in range(3)))
    (finding,) = sample_links(scene.rules, scene.rules.keeper_names, scene.memory)
    assert (finding.stops, finding.cure) == (True, "write total in place of toal")
    assert not check_rules(text.replace("toal", "total"), {})[1]
