"""The report in a real browser: opens from disk, makes no request, fits a phone, readable in light and dark mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from sync_rules.cli.show.drift_page import write_page
from tests.support.browsers import browser
from tests.support.reports import verified

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 900}


@dataclass
class Opened:
    """A page, every address it asked for, and everything the browser had to complain of."""

    page: Page
    file: Path
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """Reports on disk."""
    directory = tmp_path_factory.mktemp("reports")
    texts = {
        "drifted": write_page(verified()),
        "clean": write_page(verified(clean=True)),
    }
    for name, text in texts.items():
        (directory / f"{name}.html").write_text(text)
    return {name: directory / f"{name}.html" for name in texts}


@pytest.fixture
def visit(chromium, files) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def go(name: str, **options: object) -> Opened:
        contexts.append(chromium.new_context(**{"viewport": DESK, **options}))
        opened = Opened(contexts[-1].new_page(), files[name])
        opened.page.on("request", lambda request: opened.asked.append(request.url))
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.goto(files[name].as_uri())
        return opened

    yield go
    for context in contexts:
        context.close()


VERBS = {"drifted": "verify", "clean": "verify"}


@pytest.mark.parametrize("name", VERBS)
def test_report_opens_from_disk_and_asks_for_nothing(visit, name):
    """The one request is for the file itself, and the browser has nothing to complain of."""
    opened = visit(name)
    assert opened.asked == [opened.file.as_uri()]
    assert opened.complaints == []
    assert opened.page.title().endswith(f"sync-rules {VERBS[name]}")


def test_report_opens_without_javascript(visit):
    """All of it is there without scripts, and what drifted can be opened."""
    opened = visit("drifted", java_script_enabled=False)
    row = opened.page.locator("#rule-0 details td").first
    assert not row.is_visible()
    opened.page.locator("#rule-0 summary").click()
    assert row.is_visible()


def test_report_runs_no_script_even_if_there_were_one(visit):
    """The policy of the page forbids scripts and pictures, whatever may get into it."""
    opened = visit("drifted")
    added = "<img src=x.png><b onclick='window.ran = 1'>x</b>"
    listen = opened.page.expect_console_message  # a browser may complain of the script when it comes, or at the click
    with listen(lambda message: "img-src" in message.text), listen(lambda message: "script-src" in message.text):
        opened.page.evaluate("added => document.body.insertAdjacentHTML('beforeend', added)", added)
        opened.page.locator("b").click()
    assert opened.page.evaluate("window.ran") is None
    assert all("Content Security Policy" in text for text in opened.complaints)


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_fits_a_phone(visit, name, scheme):
    """No part of the page is wider than a phone's screen, even with everything opened."""
    opened = visit(name, viewport=PHONE, color_scheme=scheme, is_mobile=True, has_touch=True)
    for summary in opened.page.locator("summary").all():
        summary.click()
    assert opened.page.locator("details:not([open])").count() == 0
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert opened.page.evaluate("innerWidth") == PHONE["width"]
    wide = opened.page.locator(".wide").first
    assert wide.evaluate("one => one.scrollWidth > one.clientWidth")
    wide.focus()
    assert wide.evaluate("one => document.activeElement === one")
