"""The engine of the playground, without a browser: faults never hurt, and without an invariant they do."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from packages.playground.engine.session import Session
from packages.playground.engine.stage import Stage
from sync_rules.lab.scenario_file import load_scenario

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
