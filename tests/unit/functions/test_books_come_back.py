"""A counter comes back to old books. Their mark says complete, though no rule kept them meanwhile."""

from __future__ import annotations

import pytest

from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.resources import make_books
from sync_rules.language.load import parse_rules
from sync_rules.pipeline.books import list_books, list_rules_by_identity, read_incomplete_books
from sync_rules.rules.ruleset import Rules
from tests.support.books import AWAY, COUNT, FIRST, LAST, TABLES, rules_of
from tests.support.builders import n, s
from tests.support.operated import printed, quiet
from tests.support.stacked import BOOKS, EMPTY, Stack, backfill_of
from tests.support.worlds import Scene


def order(number: int):
    return {"order": s(f"{number:02}"), "user": s("u"), "total": n(number)}


@pytest.fixture
def stack(monkeypatch) -> Stack:
    """A stack whose counter is right."""
    quiet(monkeypatch)
    scene = Scene(rules_of(COUNT), complete=False)
    stack = Stack(scene)
    stack.create()
    scene.put("users", {"user": s("u")})
    scene.put("orders", *map(order, range(1, FIRST + 1)))
    scene.rest()
    assert number(stack) == FIRST
    return stack


def number(stack: Stack) -> int:
    (user,) = stack.scene.memory.items("users")
    return int(user["number"]["N"])


def insert(stack: Stack, number: int) -> None:
    stack.scene.put("orders", order(number))
    stack.scene.rest()


def titles_waiting(stack: Stack) -> set[str]:
    return {rule.title for rule in stack.scene.drive(read_incomplete_books(stack.scene.rules))}


# ---------------------------------------------------------------- deployed
@pytest.mark.parametrize("away", AWAY)
def test_stack_begins_books_anew_that_come_back(stack: Stack, away: str):
    """29 orders are there, the books know 27: the number waits, and a backfill makes it right."""
    stack.update(rules_of(AWAY[away]))
    insert(stack, 27)
    insert(stack, 28)
    stack.update(rules_of(COUNT))
    insert(stack, LAST)
    assert number(stack) == FIRST
    assert titles_waiting(stack) == {"orders"}
    backfill_of(stack.scene).run()
    assert number(stack) == LAST
    insert(stack, 30)
    assert number(stack) == 30


def test_stack_that_is_created_over_old_books_begins_them_anew(stack: Stack):
    """The stack was deleted, and its tables stayed. Orders came, and the stack cannot know since when."""
    stack.scene.there("orders", order(27))
    stack.create()
    insert(stack, 28)
    assert number(stack) == FIRST
    assert titles_waiting(stack) == {"orders", "bystander"}


# ---------------------------------------------------------------- what cannot be known, or cannot be done
def asked(stack: Stack, old, new, rules: Rules | None = None) -> None:
    stack.answering = rules or stack.rules
    stack._ask(BOOKS, old, new)


def test_stack_takes_books_as_they_are_where_the_template_before_listed_none(stack: Stack, capsys):
    """The first deployment with such a list: all books may have been kept, and probably were. It says so."""
    capsys.readouterr()
    asked(stack, {"Books": "digest"}, {"Kept": sorted(list_rules_by_identity(stack.rules))})
    (line,) = printed(capsys)
    assert line["message"] == "books are taken as they are"
    assert not titles_waiting(stack)


def test_stack_says_which_books_it_could_not_begin_anew(stack: Stack, capsys):
    """A rollback is answered by rules that do not have the ledger to which it goes back."""
    capsys.readouterr()
    rules = parse_rules((TABLES % AWAY["moved"]).replace("ledger: {key: {PK: S, SK: S}}, ", "").replace(
        "others,", "others, ledger: other,"))  # fmt: skip
    asked(
        stack,
        {"Kept": sorted(list_rules_by_identity(rules))},
        {"Kept": sorted(list_rules_by_identity(stack.rules))},
        rules,
    )
    lines = printed(capsys)
    assert {line["message"] for line in lines} == {"books were not restarted"}
    assert {line["cure"] for line in lines} == {
        f"sync-rules verify --remote --repair --rule {title}" for title in ("orders", "bystander")
    }


def test_template_lists_books_as_the_functions_know_them(tmp_path, monkeypatch):
    """With variables in names, in each stage: otherwise nothing would be found in the list, or everything be new."""
    file = tmp_path / "rules.yaml"
    file.write_text((TABLES % COUNT).replace("ledger: {", 'ledger: {name: "${STAGE:-dev}-ledger", '))
    found = make_books(read_deployment(file))
    assert found[BOOKS]["Properties"]["Kept"] == found[EMPTY]["Properties"]["Kept"]
    listed = [one["Fn::Sub"].replace("${StageVariable}", "prod") for one in found[BOOKS]["Properties"]["Kept"]]
    rules = parse_rules(file.read_text(), environ={"STAGE": "prod"})
    assert listed == sorted(list_rules_by_identity(rules))
    assert all(one.startswith("prod-ledger ") for one in listed)
    assert len(list_books(rules)) == len(listed)
