"""The report of a verify: a page that asks for nothing, escapes everything, and shows no value."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from sync_rules.cli.show.drift_page import find_host, write_page
from sync_rules.cli.show.text import format_command
from sync_rules.rules.selection import Share
from tests.support.reports import ORDERS, SCRIPT, verified

VOID = {"meta", "br"}


class Outline(HTMLParser):
    """A page taken apart: its elements with their attributes, its text, and whatever was not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module", params=["drifted", "clean", "repaired"])
def shown(request) -> str:
    return write_page(verified(clean=request.param == "clean", repair=request.param == "repaired"))


def test_htmlreport_asks_for_nothing(shown):
    """No script, no address to load, no reference but to places in the page, and a policy that would forbid the rest."""
    outline = Outline(shown)
    assert not outline.all("script") + outline.all("link") + outline.all("img") + outline.all("iframe")
    assert {attributes["href"][0] for attributes in outline.all("a")} == {"#"}
    named = {name for _, attributes in outline.elements for name in attributes}
    assert not {name for name in named if name.startswith("on")} | (named & {"src", "srcset", "action", "xlink:href"})
    assert not re.search(r"https://|@import|url\(", shown)
    assert set(re.findall(r"http://[^\s<\"]*", shown)) <= {"http://localhost:8000/"}
    (policy,) = (a["content"] for a in outline.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")


def test_htmlreport_is_well_formed_and_accessible(shown):
    """Every element is closed; the page says its language; ids are unique and found; tables have heads with a scope."""
    outline = Outline(shown)
    assert outline.wrong == []
    assert outline.all("html") == [{"lang": "en"}]
    assert len(outline.all("h1")) == 1
    ids = [attributes["id"] for _, attributes in outline.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for attributes in outline.all("a")} <= set(ids)
    assert all(head.get("scope") in ("row", "col") for head in outline.all("th"))
    assert all("aria-label" in a for _, a in outline.elements if a.get("role") == "region")


def test_htmlreport_escapes_keys():
    """A key that looks like HTML, or turns the direction of text, is text that can be given to verify --key."""
    shown = write_page(verified())
    assert SCRIPT not in shown
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;\\u202e\\u0007" in shown
    assert "\u202e" not in shown


def test_htmlreport_says_what_is_left():
    """The first words are the verdict, and each rule says how many of which kind."""
    outline = Outline(write_page(verified()))
    tally = verified().verifier.tally
    assert f"✗ Drift left: {tally.remaining_count}" in outline.words
    assert f"names copy user.name → order.user_name ✗ drift: {ORDERS} wrong" in outline.words
    assert "paths path part.parent_id → part.path, part.depth ✗ drift: 2 stuck" in outline.words
    assert "Cycle" in outline.words or "ParentWithoutPath" in outline.words


def test_htmlreport_says_that_all_is_well_or_repaired():
    """A report without drift says OK and names rules that found no items; repairs are shown."""
    clean = Outline(write_page(verified(clean=True))).words
    assert "✓ OK: no drift" in clean
    assert "○ no items rule names found no targets: no key in table shop matches entity order." in clean
    repaired = write_page(verified(repair=True))
    assert "2" in re.search(r"<h1>.*?Drift left: (\d+)", repaired)[1]  # the two that are stuck
    assert f"OK, {ORDERS} repaired" in repaired


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Checked every item of the tables"),
        ({"share": Share(1000, tuple(range(50))), "seed": 7}, "A sample: 5 % of each table was checked"),
        ({"only": "one item"}, "Only one item was checked."),
    ],
    ids=["all", "sample", "one"],
)
def test_htmlreport_says_what_it_is_about(changes, said):
    """The page says if all tables, a sample or a part was checked."""
    assert said in Outline(write_page(verified(clean=True, **changes))).words


def test_htmlreport_says_when_and_how():
    """The page shows time, command, endpoint, grace and repair, without the endpoint's credentials."""
    words = Outline(write_page(verified())).words
    for said in (
        "Started 2026-01-02 03:04:05 UTC",
        "Took 12.3 s",
        "Command sync-rules verify rules.yaml --endpoint-url http://localhost:8000/",
        "DynamoDB at localhost:8000",
        "Region eu-central-1",
        "Grace 120 s",
        "Repair no: nothing was written",
    ):
        assert said in words


def test_htmlreport_puts_what_is_wrong_next_to_the_verdict():
    """A phone shows the first columns: what is left and drift, then the rest, each under its head."""
    data = verified()
    shown = write_page(data)
    heads = re.findall(r'scope="col" class="number">(\w+)<', shown)
    assert heads[:3] == ["left", "drift", "checked"]
    row = shown.partition('<a href="#rule-0">')[2].partition("</tr>")[0]
    title = re.match(r"[\w.-]+", row)[0]
    names = [name for name in data.names if data.verifier.rules.rules[name].title == title]
    figures = dict(zip(heads, map(int, re.findall(r'class="number">(\d+)<', row)), strict=True))
    assert figures["drift"] == sum(data.verifier.tally.drift[name] for name in names) > 0
    assert figures["checked"] == sum(map(data.verifier.tally.count_targets, names))
    assert figures["left"] == figures["drift"] - sum(data.verifier.tally.repaired[name] for name in names)


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("http://me:secret@host:8000/path?token=secret#x", "http://host:8000/path"),
        ("--endpoint-url=https://me@host", "--endpoint-url=https://host"),
        ('{"id": "http://a@b?c"}', '{"id": "http://a@b?c"}'),
        ("rules.yaml", "rules.yaml"),
    ],
    ids=["address", "option", "key", "word"],
)
def test_htmlreport_shows_the_command_without_secrets(argument, shown):
    """The page shows the command as typed, without credentials, query and fragment of an address."""
    quoted = shown if re.fullmatch(r"[\w.:/=-]+", shown) else f"'{shown}'"
    assert format_command(["verify", argument]) == f"sync-rules verify {quoted}"
    assert find_host("http://me:secret@host:8000/path") == "host:8000"
