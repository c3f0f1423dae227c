"""The rule graph: an arrow for each rule as the rules file has it, and texts that no name can break out of."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from sync_rules.cli.show.picture import PictureError, svg
from sync_rules.cli.show.rule_graph import Arrow, Box, RuleGraph, dot, graph_of, mermaid
from sync_rules.language.load import parse_rules
from sync_rules.rules.families import TargetRule
from sync_rules.rules.rule import Node
from tests.support import every_kind
from tests.support.every_kind import rules_of, text_of
from tests.support.reports import needs_graphviz

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
    "kept": "order.* → s3://bucket/orders/ (when deleted)",
    "called": "order → tests.support.every_kind.told (when created)",
}


def test_rulegraph_says_that_a_copy_has_a_default():
    """The note of an arrow says that something stands without a source, and not what."""
    rules = rules_of(also="{copy: user.name, into: order.who, default: Grace, where: \"status == 'LIVE'\"}")
    (arrow,) = (one for one in graph_of(rules).arrows if one.rule == "also")
    assert arrow.keeps == "user.name → order.who (default, where status == 'LIVE')"


def test_rulegraph_has_one_arrow_for_each_rule_of_the_file():
    """Every kind is drawn once, under its name and kind in the rules file, whatever it is compiled into."""
    arrows = graph_of(rules_of()).arrows
    assert {arrow.rule: arrow.keeps for arrow in arrows} == KEEPS
    assert len(arrows) == len(KEEPS)
    kinds = {arrow.rule: arrow.kind for arrow in arrows}
    assert (kinds["counted"], kinds["spent"], kinds["least"], kinds["recounted"]) == ("count", "sum", "min", "max")


def test_rulegraph_has_a_box_for_each_entity_and_place_outside():
    """Every entity and every bucket and function has a box; items of a ledger have none."""
    boxes = graph_of(rules_of("paths")).boxes
    assert [box.name for box in boxes[:5]] == ["user", "order", "by_email", "post", "part"]
    assert boxes[4] == Box("part", "table parts")
    assert set(boxes[5:]) == {Box("s3://bucket/orders/", "S3"), Box("tests.support.every_kind.told", "function")}


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
    graph = graph_of(parse_rules(text_of({"it": rule})))
    assert [arrow.keeps for arrow in graph.arrows] == keeps


def test_rulegraph_draws_a_kind_that_says_nothing():
    """A kind that does not say how it is drawn has an arrow all the same, from what it reads to what it writes."""

    class Unknown(TargetRule):
        kind = "unknown"
        body = uses = desired = deciding_paths = None
        copies = (("at",),)

        def nodes(self):
            return (Node(self, (self.target, ("at",)), ((self.source, ("name",)),)),)

    rules = rules_of()
    names = replace(rules, rules={"it": Unknown("it", rules.entities["user"], rules.entities["order"])})
    assert [arrow.keeps for arrow in graph_of(names).arrows] == ["user.name → order.at"]


def test_rulegraph_shows_a_few_paths_on_an_arrow():
    """An arrow with many paths, or with a long name, stays readable in the picture."""
    box = Box("user", "table shop")
    arrow = Arrow("r" * 300, "copy", box, box, tuple(f"a{number}" for number in range(30)), ("b",))
    for text in (mermaid(RuleGraph((box,), (arrow,))), dot(RuleGraph((box,), (arrow,)))):
        assert "a0, a1, a2, a3, and 26 more → b" in text
        assert max(map(len, re.findall("r+", text))) < 50
    assert arrow.keeps.endswith("user.a29 → user.b")


def hostile() -> RuleGraph:
    box = Box(HOSTILE, HOSTILE)
    return RuleGraph((box,), (Arrow(HOSTILE, HOSTILE, box, box, (HOSTILE,), (HOSTILE,), HOSTILE),))


def test_rulegraph_mermaid_is_not_broken_by_a_name():
    """No name ends its quotes, its line, or is taken for HTML."""
    lines = mermaid(hostile()).splitlines()
    assert len(lines) == 3
    assert re.fullmatch(r'  e0\["[^"`<>&]*(<br>[^"`<>&]*)*"\]', lines[1])
    assert re.fullmatch(r'  e0 -->\|"[^"`<>&|]*(<br>[^"`<>&|]*)*"\| e0', lines[2])


def test_rulegraph_dot_is_not_broken_by_a_name():
    """A name comes out of Graphviz as it went in, but for what cannot be printed."""
    needs_graphviz()
    from pygraphviz import AGraph  # noqa: PLC0415

    read = AGraph(string=dot(hostile()))
    assert [str(node) for node in read.nodes()] == ["e0", "r0"]
    assert len(read.edges()) == 2
    picture = svg(hostile())
    assert '&lt;b&gt;&amp;amp;|\\n y\\" [label=��#quot;' in picture
    assert "<b>" not in picture


def test_rulegraph_picture_stands_for_itself():
    """The SVG has a size and a label, no script, no DOCTYPE, and names nothing outside."""
    needs_graphviz()
    picture = svg(graph_of(rules_of()))
    assert picture.startswith("<svg ")
    assert 'viewBox="0' in picture
    assert 'role="img"' in picture
    assert "names (copy)" in picture
    assert "prefers-color-scheme:dark" in picture
    assert not re.search(r"<!|<\?|script|xlink|href|url\(|<title|black", picture)
    assert re.findall(r"\w+://[^\s\"<]+", picture) == ["http://www.w3.org/2000/svg", "s3://bucket/orders/"]


def chain(ends: list[tuple[int, int]]) -> RuleGraph:
    """Rules between boxes of these numbers, with long names."""
    boxes = [Box(f"entity_with_a_name_{number}", "table shop") for number in range(9)]
    arrows = tuple(
        Arrow(f"a-rule-with-a-rather-long-name-{n}", "copy", boxes[a], boxes[b], ("some.attribute",), ("its.copy",))
        for n, (a, b) in enumerate(ends)
    )
    return RuleGraph(tuple(boxes), arrows)


@pytest.mark.parametrize(
    "ends",
    [
        [(0, 0)] * 5,
        [(0, 1)] * 4 + [(1, 0)] * 4 + [(0, 0), (1, 1)] * 2,
        [(number, number + 1) for number in range(8)] + [(number, number) for number in range(8)],
        [(number, 0) for number in range(8)] + [(0, number) for number in range(8)],
    ],
    ids=["loops", "both-ways", "chain", "star"],
)
def test_rulegraph_picture_prints_nothing_over_a_text_and_fits_a_desk(ends):
    """No arrow and no other text crosses a text of the picture; and a page of 1,280 pixels has room for it."""
    needs_graphviz()
    root = ET.fromstring(svg(chain(ends)))
    texts = []
    for one in root.iter("{http://www.w3.org/2000/svg}text"):
        x, y, size = (float(one.get(name)) for name in ("x", "y", "font-size"))
        half = len(one.text) * size * 0.24  # letters are wider than this on average: half of the width, and 10 % less
        texts.append((x - half, y - size * 0.7, x + half, y))
    points = [
        point
        for one in root.iter("{http://www.w3.org/2000/svg}path")
        if "C" in one.get("d") and one.get("d").count(" ") >= 2
        for point in curve(one.get("d"))
    ]
    assert len(texts) >= 2 * len(ends)
    crossed = [(text, point) for text in texts for point in points if inside(text, point)]
    assert crossed == []
    over = [(a, b) for a, b in combinations(texts, 2) if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]
    assert over == []
    assert float(re.findall(r"min-width:(\d+)px", root.get("style"))[0]) <= 1_100


def curve(path: str) -> list[tuple[float, float]]:
    """Points of the Bezier curves of a path."""
    given = [float(number) for number in re.findall(r"-?[0-9.]+", path)]
    knots = list(zip(given[::2], given[1::2], strict=True))
    found = []
    for start in range(0, len(knots) - 1, 3):
        four = knots[start : start + 4]
        for step in range(51):
            t = step / 50
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            found.append(tuple(sum(w * knot[axis] for w, knot in zip(weights, four, strict=True)) for axis in (0, 1)))
    return found


def inside(text: tuple[float, float, float, float], point: tuple[float, float]) -> bool:
    return text[0] < point[0] < text[2] and text[1] < point[1] < text[3]


def test_rulegraph_picture_is_for_as_many_rules_as_one_can_read():
    """A picture of more than 150 rules is refused, because Graphviz would take minutes."""
    box = Box("user", "table shop")
    arrows = tuple(Arrow(f"r{number}", "copy", box, box, ("a",), ("b",)) for number in range(151))
    with pytest.raises(PictureError, match="151 rules are too many"):
        svg(RuleGraph((box,), arrows))


def test_rulegraph_every_kind_is_among_these():
    """The shop of these tests has all the kinds that there are."""
    assert KEEPS.keys() == (every_kind.RULES | every_kind.EFFECTS).keys()
