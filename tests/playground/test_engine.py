"""The engine of the playground, without a browser: faults never hurt, and without an invariant they do."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

from packages.playground.engine.drawing import draw_graph
from packages.playground.engine.session import Session
from packages.playground.engine.stage import Stage
from sync_rules.cli.show.rule_graph import make_graph
from sync_rules.jobs.dryrun.money import compute_on_demand_price
from sync_rules.jobs.dryrun.prices import read_own_prices
from sync_rules.lab.scenario_file import load_scenario
from sync_rules.language.load import check_rules

EXAMPLES = sorted(path.parent for path in Path("examples").glob("*/scenario.yaml"))
BOOKS = Path("examples/authors-and-books")
FILES = ("rules.yaml", "data.yaml", "scenario.yaml")


def text(value: str) -> str:
    return json.dumps({"S": value})


class Page:
    """The page's end of a session. A mistake fails the test."""

    def __init__(self, folder: Path) -> None:
        self._session = Session(str(folder))
        self.state = self.ask("open", *((BOOKS / file).read_text() for file in FILES), "")

    def ask(self, method: str, *texts: str):
        self.state = json.loads(self._session.call(method, *texts))
        return self.state

    @property
    def wrong(self) -> list[tuple[str, str]]:
        assert self.state["idle"]
        return [(one["key"], one["drift"]) for one in self.state["wrong"]]


@pytest.fixture
def page(tmp_path):
    return Page(tmp_path)


def meet_faults(stage: Stage, random: Random) -> None:
    """Make some things go wrong, and take some steps, until no work is left."""
    for _ in range(60):
        if random.random() < 0.2 and stage.finished:
            random.choice([stage.repeat, stage.delay, stage.die, stage.throttle, stage.lag])()
        stage.step()
    assert stage.run()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_stage_ends_right_after_every_fault(example):
    """With all invariants every copy of every example is right in the end, whatever a person presses."""
    scenario, random = load_scenario(example), Random(example.name)
    stage = Stage(scenario.rules)
    for step in scenario.steps:
        for action in step.actions:
            stage.do(action, step.say)
        meet_faults(stage, random)
        assert not [*stage.list_wrong()], step.say


def bring_back_a_deleted_book(page: Page) -> None:
    page.ask("put", "books", json.dumps({"book_id": {"S": "b8"}, "author_id": {"S": "a1"}}), "a book comes")
    page.ask("fault", "die")
    page.ask("delete", "books", "books[b8]", "the book is deleted")


def miss_a_book(page: Page) -> None:
    page.ask("fault", "lag")
    page.ask("put", "books", json.dumps({"book_id": {"S": "b9"}, "author_id": {"S": "a1"}}), "a book comes")
    while page.state["waiting"] or page.state["request"]:
        page.ask("step")
    page.ask("edit", "authors", "authors[a1]", "name", text("Maren Lind"), "its author takes another name")


def overwrite_a_copy(page: Page) -> None:
    page.ask("edit", "books", "books[b3]", "author.name", text("T. Quill"), "a copy is overwritten")


@pytest.mark.parametrize(
    ("invariant", "play", "wrong"),
    [
        ("guard", bring_back_a_deleted_book, [("books[b8]", "extra")]),
        ("second-look", miss_a_book, [("books[b9]", "wrong")]),
        ("re-check", overwrite_a_copy, [("books[b3]", "wrong")]),
    ],
    ids=["guard", "second-look", "re-check"],
)
def test_stage_needs_each_invariant(page, invariant, play, wrong):
    """A history that ends right ends wrong without the invariant that it is for."""
    play(page)
    page.ask("run")
    assert page.wrong == []
    page.ask("open", *((BOOKS / file).read_text() for file in FILES), "")
    page.ask("switch", invariant)
    play(page)
    page.ask("run")
    assert page.wrong == wrong


def test_stage_shows_a_step_before_it_is_done(page):
    """A step is one request: the write that comes next is shown, and not done."""
    page.ask("next")
    while (page.state["request"] or {}).get("type") != "Apply":
        page.ask("step")
    assert page.state["request"]["writes"][0]["key"] == "books[b1]"
    assert len(page.state["wrong"]) == 2
    assert len(page.ask("step")["wrong"]) == 0


def test_session_reports_mistakes(page):
    """A mistake is an answer: an item without a key, rules with errors."""
    assert "lacks a key" in page.ask("put", "books", "{}", "")["mistake"]
    assert page.ask("open", "tables: 7", "", "", "")["mistake"] == "the rules have errors"
    problems = page.ask("check", "tables: 7")
    assert [one["severity"] for one in problems] == ["error"] * len(problems)


def test_session_opens_shared_items(page):
    """The application's items are enough to begin with: rules make the rest again."""
    before = page.state["tables"]
    items = {table["name"]: [row["own"] for row in table["items"] if row["own"]] for table in before}
    assert "author" not in items["books"][0]
    again = page.ask("open", (BOOKS / "rules.yaml").read_text(), "", "", json.dumps(items))
    assert again["tables"] == before
    assert page.wrong == []


def test_session_keeps_what_it_had_when_it_refuses_rules(page):
    """Rules that do not fit the items change nothing: the next step is that of the rules before."""
    before = page.state["tables"]
    items = {table["name"]: [row["own"] for row in table["items"]] for table in before}
    rules = (BOOKS / "rules.yaml").read_text().replace("book_id: S", "book_id: N")
    assert "lacks a key" in page.ask("open", rules, "", "", json.dumps(items))["mistake"]
    page.ask("run")
    assert page.state["tables"] == before
    assert page.state["steps"]


def test_session_counts_a_copy_that_no_write_can_make(page):
    """A copy that makes its item too large is stuck, and no verdict says that every copy is right."""
    page.ask("put", "authors", json.dumps({"author_id": {"S": "a9"}, "name": {"S": "x" * 390_000}}), "a long name")
    item = {"book_id": {"S": "b9"}, "author_id": {"S": "a9"}, "title": {"S": "y" * 30_000}}
    page.ask("put", "books", json.dumps(item), "a long book")
    page.ask("run")
    assert page.state["stuck"] == [{"rule": "author-on-books", "key": "books[b9]", "reason": "ItemTooLarge"}]


# ---------------------------------------------------------------- questions
def open_rules(page: Page, rules: str) -> None:
    page.ask("open", rules, *((BOOKS / file).read_text() for file in FILES[1:]), "")
    assert "mistake" not in page.state


def test_session_explains_a_copy(page):
    """A copy is explained by its rule, its source and what the rule reads there; a wrong one with the reason."""
    (right,) = page.ask("explain", "books", "books[b3]", "author")
    assert right["line"] == "author.name, author.bio: right · from authors[a2] · rule author-on-books"
    assert right["why"] == ""
    assert right["sources"][0]["key"] == "authors[a2]"
    assert right["sources"][0]["item"]["name"] == {"S": "Tobias Quill"}
    overwrite_a_copy(page)
    (wrong,) = page.ask("explain", "books", "books[b3]", "author")
    assert wrong["line"] == "author.name: wrong · from authors[a2] · rule author-on-books"
    assert "differs" in wrong["why"]


def test_session_explains_the_attribute_that_was_asked_for(page):
    """A rule with a wrong copy elsewhere says that this copy is right; no rule says anything of other attributes."""
    desk = Path("examples/organisations-users-tickets")
    page.ask("open", *((desk / file).read_text() for file in FILES), "")
    page.ask("edit", "desk", "desk[TICKET#t1, TICKET]", "user_name", text("Nobody"), "a copy is overwritten")
    asked = [page.ask("explain", "desk", "desk[TICKET#t1, TICKET]", name) for name in ("user_name", "organisation")]
    assert [one["line"].partition(" · ")[0] for (one,) in asked] == ["user_name: wrong", "organisation: right"]
    assert page.ask("explain", "desk", "desk[TICKET#t1, TICKET]", "title") == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_session_explains_every_copy(tmp_path, example):
    """Each value that a rule keeps has a rule that says so, and all are right."""
    page = Page(tmp_path)
    state = page.ask("open", *((example / file).read_text() for file in FILES), "")
    for table in state["tables"]:
        for row in (row for row in table["items"] if "." not in row["entity"]):
            for name in {path.partition(".")[0] for path in row["copies"]} & row["item"].keys():
                found = page.ask("explain", table["name"], row["id"], name)
                assert found, (row["id"], name)
                assert {one["why"] for one in found} == {""}


def test_session_shows_patterns_as_the_commands_do(page):
    """The request is that of `patterns`. A read of half a unit costs 0.0625 USD for a million calls."""
    shown = page.ask("patterns")
    by_name = {row["name"]: row for row in shown["rows"]}
    assert by_name["book"]["requests"] == ["GetItem books, book_id = {book_id}, only title, author"]
    prices = compute_on_demand_price(read_own_prices().regions["us-east-1"], 500_000, 0)
    assert by_name["book"]["price"] == ["1 request, 0.5 read units", f"{prices:.3g} USD"]
    assert [row["problem"] for row in shown["rows"]] == [[], []]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_session_prices_every_pattern_of_an_example(tmp_path, example):
    """Each pattern states what a price needs beside the sizes of the items on the page."""
    page = Page(tmp_path)
    page.ask("open", *((example / file).read_text() for file in FILES), "")
    rows = page.ask("patterns")["rows"]
    assert rows
    assert {row["name"]: row["price"] for row in rows if not row["price"][-1].endswith(" USD")} == {}


def test_session_prices_writes_with_their_indexes(page):
    """A write costs its unit and that of its index: 2 units, 1.25 USD for a million calls."""
    open_rules(page, (BOOKS / "rules.yaml").read_text() + "  new-book: {put: book}\n")
    assert page.ask("patterns")["rows"][-1]["price"] == ["1 request, 2 write units", "1.25 USD"]


def test_session_shows_why_a_pattern_is_not_served(page):
    """A pattern without a key has the reason and the cure, and no price. Missing numbers are named."""
    rules = (BOOKS / "rules.yaml").read_text().replace(", page: 20", "")
    open_rules(page, rules + "  books-of-title: {get: book, by: [title]}\n")
    *_, unknown, unserved = page.ask("patterns")["rows"]
    assert unknown["price"] == ["1 request, read units not known: state the items of one call"]
    assert unserved["price"] == unserved["requests"] == []
    assert unserved["problem"][0].startswith("pattern books-of-title: no key finds book by title")
    assert unserved["problem"][1].startswith("cure 1: an index by title; it costs")


def test_session_has_no_price_of_a_search(page):
    """A search is billed by bytes, and the price files have no price of them: no money is shown."""
    rules = """
tables: {shop: {key: {id: S}, vectors: {near: {vector: e, dimensions: 3, projection: [title]}}}}
entities: {product: {table: shop, size: 1KB, items: 1000}}
rules: {}
patterns: {found: {search: product, attributes: [title], top: 10}}
"""
    page.ask("open", rules, "", "", "{}")
    assert page.ask("patterns")["rows"][0]["price"] == ["1 request and the bytes of a search, 0 read units"]


# ---------------------------------------------------------------- the graph
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_graph_has_a_place_for_each_box_and_name(tmp_path, example):
    """Boxes and names lie inside the drawing and do not overlap. Each rule has one arrowhead."""
    graph = Page(tmp_path).ask("open", *((example / file).read_text() for file in FILES), "")["graph"]
    rows = [(one["x"], one["y"] - 9, one["width"], 18) for one in graph["names"]]
    rows += [(one["x"], one["y"], one["width"], one["height"]) for one in graph["boxes"]]
    for x, y, width, height in rows:
        assert x >= 0
        assert y >= 0
        assert x + width <= graph["width"] + 1
        assert y + height <= graph["height"] + 1
    for (x, y, width, height), (x2, y2, width2, height2) in combinations(rows, 2):
        assert x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y
    assert sum(line["begins"] + line["ends"] for line in graph["lines"]) == len(graph["names"])


def test_graph_runs_from_left_to_right():
    """A box is to the right of what it is made of. A rule that closes a ring runs back, with its arrowhead on the left."""
    rules = Path("examples/organisations-users-tickets/rules.yaml").read_text()
    compiled, _ = check_rules(rules, {})
    graph = draw_graph(make_graph(compiled))
    x = {box["name"]: box["x"] for box in graph["boxes"]}
    assert x["organisation"] < x["user"] < x["ticket"]
    assert [one["name"] for one in graph["names"]] == ["organisation-on-users", "user-on-tickets", "open-tickets"]
    assert [line["begins"] for line in graph["lines"]] == [False, False, False, False, True, False]
