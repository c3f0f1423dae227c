"""The rule graph: an arrow for each rule as the rules file has it, and texts that no name can break out of."""

from __future__ import annotations

import re

import pytest

from sync_rules.cli.show.rule_graph import Arrow, Box, RuleGraph, format_mermaid, make_graph
from sync_rules.language.load import parse_rules
from tests.support import every_kind
from tests.support.every_kind import rules_of, text_of

HOSTILE = '"]; x -->|`<b>&amp;|\\n y\\" [label=\n\u202e#quot;'
KEEPS = {
    "names": "user.name → order.user_name",
    "heads": "user.name, user.rank → user.head",
    "posts": "post.title → user.posts",
    "tags": "order.order_id → user.orders (omit status == 'VOID')",
    "paths": "part.parent_id → part.path, part.depth",
    "mails": "user.name → by_email.name",
    "counted": "order → user.counted",
    "spent": "order.total → user.spent",
    "least": "order.total → user.least",
    "totals": "order.total → user.totals",
    "recounted": "order.total → user.most",
    "told": "user.counted → order.counted",
    "called": "order → tests.support.every_kind.told (when created)",
}


def test_rulegraph_has_one_arrow_for_each_rule_of_the_file():
    """Every kind is drawn once, under its name and kind in the rules file, whatever it is compiled into."""
    arrows = make_graph(rules_of()).arrows
    assert {arrow.rule: arrow.keeps for arrow in arrows} == KEEPS
    assert len(arrows) == len(KEEPS)
    assert KEEPS.keys() == (every_kind.RULES | every_kind.EFFECTS).keys()
    kinds = {arrow.rule: arrow.kind for arrow in arrows}
    assert (kinds["counted"], kinds["spent"], kinds["least"], kinds["recounted"]) == ("count", "sum", "min", "max")


@pytest.mark.parametrize(
    ("rule", "keeps"),
    [
        ("{copy: [user.name, user.rank], into: order.who}", ["user.name, user.rank → order.who.name, order.who.rank"]),
        ("{copy: user.name, into: order.a, mode: snapshot}", ["user.name → order.a (snapshot)"]),
        ("{copy: user.name, into: order.a, mode: snapshot, link: {user_id: buyer}}",
         ["user.name → order.a (snapshot, no listing)"]),
        ("{copy: user.name, into: order.a, where: \"status == 'A'\"}", ["user.name → order.a (where status == 'A')"]),
        ("{embed: post, into: user.all, limit: {items: 9}}", ["post.* → user.all"]),
        ("{mirror: user, into: by_email, attributes: all}", ["user.* → by_email.*"]),
        ("{count: order, into: user.c, weights: {status: {OPEN: 2}}, per: month}",
         ["order.status, order.month → user.c"]),
        ("{count: order, into: user.c, on_delete: delete}", ["order → user.c", "user → order (on_delete: delete)"]),
        ("{call: a.b, on: order, watch: [total]}", ["order.total → a.b (when changed, created, deleted)"]),
    ],
    ids=["map", "snapshot", "snapshot-unlisted", "where", "embed-all", "mirror-all", "weights", "on_delete", "call"],
)  # fmt: skip
def test_rulegraph_says_what_a_rule_keeps(rule, keeps):
    """The line of an arrow names every path at both ends, and under which condition."""
    graph = make_graph(parse_rules(text_of({"it": rule})))
    assert [arrow.keeps for arrow in graph.arrows] == keeps


def test_rulegraph_shows_a_few_paths_on_an_arrow():
    """An arrow with many paths, or with a long name, stays readable in the picture."""
    box = Box("user", "table shop")
    arrow = Arrow("r" * 300, "copy", box, box, tuple(f"a{number}" for number in range(30)), ("b",))
    text = format_mermaid(RuleGraph((box,), (arrow,)))
    assert "a0, a1, a2, a3, and 26 more → b" in text
    assert max(map(len, re.findall("r+", text))) < 50
    assert arrow.keeps.endswith("user.a29 → user.b")


def hostile() -> RuleGraph:
    box = Box(HOSTILE, HOSTILE)
    return RuleGraph((box,), (Arrow(HOSTILE, HOSTILE, box, box, (HOSTILE,), (HOSTILE,), HOSTILE),))


def test_rulegraph_mermaid_is_not_broken_by_a_name():
    """No name ends its quotes, its line, or is taken for HTML."""
    lines = format_mermaid(hostile()).splitlines()
    assert len(lines) == 3
    assert re.fullmatch(r'  e0\["[^"`<>&]*(<br>[^"`<>&]*)*"\]', lines[1])
    assert re.fullmatch(r'  e0 -->\|"[^"`<>&|]*(<br>[^"`<>&|]*)*"\| e0', lines[2])
