"""Plain English: pages have no banned form, and code has no more of them than before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_house import ROOT, SOURCES

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            page
            for folder in ("docs", "examples", "sync_rules", "tests/support")
            for page in (ROOT / folder).rglob("*.md")
        ),
    ]
)
FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
FLAGS = re.IGNORECASE | re.MULTILINE

# Forms that the tests ban in pages and count in code, each with its cure.
COUNTED = {
    r"\b(of|for|by|in) which\b": "two sentences, or `whose`",
    r"\bnobody\b": "name who does it, or say `you`",
    r"\bwhoever\b": "name who does it, or say `you`",
    r"\banew\b": "again; restart, rebuild",
    r"\b(is|are) (told|said)\b": "report, name, print",
    r"\bin vain\b": "fails",
    r"\bevery so\b": "a number and its unit",
    r"\bso many\b": "this number of, at most N",
}
# Forms that the tests ban in pages only: many lines of code still have them.
BANNED = COUNTED | {
    r"\b(stands|stood)\b": "is, is written",
    r"(?<!there )(?<!here )\b(is|are) no (?!longer\b|more\b)": "is not a",
    r"(?<=[.!?] )(?:What|Those|Whether)\b(?=[^.?!]*\.)": "begin with a noun, or with `you`",
}


class Allowance(NamedTuple):
    """A banned phrase that a page may have."""

    page: str
    phrase: str
    reason: str


MAY: tuple[Allowance, ...] = ()
# Folders of code that still have some forms, with their number of lines. Lower it when you remove a form; never raise it.
FOLDERS_LEFT = {"sync_rules": 0, "handlers": 0}  # the name of a variable


def found(text: str, forms: Mapping[str, str] = BANNED) -> list[str]:
    """List each banned form of a text with the words around it and its cure, also a form that two lines share."""
    flat = " ".join(text.split())
    matches = [(match, cure) for form, cure in forms.items() for match in re.finditer(form, flat, FLAGS)]
    matches.sort(key=lambda entry: entry[0].start())
    return [f"{flat[max(0, match.start() - 30) : match.end() + 30]} (better: {cure})" for match, cure in matches]


def prose(page: Path) -> str:
    """Read a page without its code and its allowed phrases."""
    text = FENCE.sub("", page.read_text())
    for may in MAY:
        if page == ROOT / may.page:
            text = text.replace(may.phrase, "")
    return text


def lines_with(paths: Iterable[Path], forms: Mapping[str, str] = COUNTED) -> list[str]:
    """List each line of these files with a form: docstrings, comments, help texts and messages alike."""
    counted = re.compile("|".join(forms), FLAGS)
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if counted.search(line)
    ]


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_prose_of_a_page_has_no_banned_form(page):
    """A page has no banned form, except the phrases in MAY."""
    forms = found(prose(ROOT / page))
    assert not forms, forms


@pytest.mark.parametrize("folder", FOLDERS_LEFT)
def test_prose_of_code_only_gets_better(folder):
    """A folder of code has at most its number of lines with a counted form."""
    lines = lines_with(path for path in SOURCES if path.is_relative_to(ROOT / folder))
    assert len(lines) <= FOLDERS_LEFT[folder], lines[-20:]


def test_prose_every_exception_is_needed():
    """An exception is a phrase that its page has, with a banned form."""
    for page, phrase, reason in MAY:
        assert phrase in (ROOT / page).read_text(), page
        assert found(phrase), phrase
        assert reason


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("The rule of which\nthe parent is gone.", 1),
        ("Nobody counts it, and whoever reads it begins anew.", 3),
        ("It is told.\nIt is said so many times, every so often, in vain.", 5),
        ("The name stands there, and is no name.", 2),
        ("It is sent. What is left waits.", 1),
        ("It is sent. What is left?", 0),
        ("There is no index, and the item is no longer listed.", 0),
        ("The standard says which one.", 0),
    ],
)
def test_prose_forms_are_found(text, forms):
    """The tests find each form in any case and across lines, and none in plain English."""
    assert len(found(text)) == forms
