"""`sync-rules backfill`: what it goes over, what it prints, what it refuses, and the codes it exits with."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from sync_rules.adapters.preflight import Survey, TableProblem
from sync_rules.adapters.state import FileState, MemoryState, read_applied_fingerprints
from sync_rules.cli.commands import backfill
from sync_rules.cli.show.backfill import Meter, open_backfill_display
from sync_rules.jobs.backfill import job
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection
from sync_rules.jobs.backfill.progress import Totals
from sync_rules.jobs.local_files import Files
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Outcome
from sync_rules.pipeline.requests import Read, Scan
from sync_rules.rules import fingerprints
from tests.support.builders import s
from tests.support.worlds import Scene
from tests.unit.adapters.test_rate import Clock
from tests.unit.cli.command_line import SECRET, CommandLine

RULES = """
tables:
  authors: {key: {author_id: S}}
  books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}
  houses: {key: {house_id: S}, indexes: {by_author: {author_id: S}}}
entities: {author: {table: authors}, book: {table: books, key: {book_id: "{shelf}-{number}"}}, house: {table: houses}}
rules:
  names: copy author.name into book.author_name
  houses: {copy: author.name, into: house.author_name, link: {author_id: author_id}, via: by_author}
  kept: {call: books.keep, on: book, when: [deleted]}
"""
ARN = "arn:aws:dynamodb:us-east-1:111122223333:table/"


class Command(CommandLine):
    """The command, with two segments. `problems` are what the account says of the tables."""

    def __init__(self, monkeypatch, capsys) -> None:
        super().__init__(backfill, RULES, monkeypatch, capsys)
        self.scene.there("authors", {"author_id": s("a1"), "name": s(SECRET)})
        self.state = Path("state.json")
        self.given = (self.file, "--state", self.state)
        self.failures = Files.failures
        self.ids = dict.fromkeys(self.scene.rules.tables, "id-1")
        self.problems: list[TableProblem] = []
        monkeypatch.setattr(backfill.opt, "SEGMENTS", 2)
        monkeypatch.setattr(backfill.opt, "WORKERS", 1)
        monkeypatch.setattr(job, "require_tables", lambda *_, streams: None)
        monkeypatch.setattr(job, "survey_tables", lambda *_: Survey(tuple(self.problems), ()))
        monkeypatch.setattr(job, "describe_table", self.describe)
        monkeypatch.setattr("sync_rules.jobs.backfill.page.WAIT_MAX_SECONDS", 0)

    def describe(self, _client, table, _retrying):
        count = len(self.scene.memory.items(table.name))
        return {"TableArn": ARN + table.physical_name, "TableId": self.ids[table.name], "ItemCount": count}

    def books(self, count: int, shelf: str = "x", **values) -> None:
        self.scene.there(
            "books", *({"book_id": s(f"{shelf}-{i}"), "author_id": s("a1"), **values} for i in range(count))
        )

    def house(self) -> None:
        self.scene.there("houses", {"house_id": s("h"), "author_id": s("a1")})

    def __call__(self, *options: str) -> tuple[int, str, str]:
        answer = super().__call__(*options)
        assert not self.state.exists() or SECRET not in self.state.read_text()
        return answer

    def summary(self, *options: str) -> tuple[int, dict]:
        code, out, err = self(*options, "--format", "jsonl")
        assert out, err
        return code, json.loads(out.splitlines()[-1])["summary"]

    def copied(self) -> set[str]:
        """The keys of the books that have their copy."""
        return {item["book_id"]["S"] for item in self.scene.memory.items("books") if "author_name" in item}

    @property
    def applied(self) -> set[str]:
        return {
            title
            for title, digest in read_applied_fingerprints(FileState(self.state)).items()
            if fingerprints.compute_rule_fingerprints(self.scene.rules).get(title) == digest
        }


# ---------------------------------------------------------------- what it does and says
def test_backfill_exits_0_when_all_of_it_is_done(command):
    """Every copy is made; the last line of JSON says what came of it; a second one has nothing to write."""
    command.books(5)
    command.house()
    code, summary = command.summary()
    assert code == 0
    assert command.copied() == {f"x-{i}" for i in range(5)}
    assert summary["done"]
    assert (summary["items"], summary["copied"], summary["right"], summary["parked"]) == (6, 6, 0, 0)
    assert summary["rules"]["names"]["copied"] == 5
    assert (summary["writes"], summary["left"]) == (12, [])  # each is in an index that shows everything
    code, summary = command.summary()
    assert (code, summary["copied"], summary["right"], summary["writes"]) == (0, 0, 6, 0)


def test_backfill_warns_where_changes_are_not_seen(command):
    """A backfill begins although a table has no stream, and warns about it on standard error."""
    command.problems = [TableProblem("books", "it has no stream, so changes would not be seen", "Enable a stream")]
    code, _, err = command()
    assert code == 0
    assert "changes made meanwhile are not seen: table books: it has no stream" in err


def test_backfill_exits_1_when_something_is_parked(command):
    """A backfill parks an item that is too large with a failure record, writes the others and exits with 1."""
    command.books(3)
    command.scene.there("books", {"book_id": s("x-big"), "author_id": s("a1"), "text": {"B": b"x" * (400 * 1024 - 40)}})
    code, out, _ = command()
    assert code == 1
    assert command.copied() == {"x-0", "x-1", "x-2"}
    assert f"Failure records: {command.failures}." in out
    (record,) = map(json.loads, command.failures.read_text().splitlines())
    assert (record["rule"], record["key"], record["reason"]) == ("names", {"book_id": "x-big"}, "ItemTooLarge")
    assert command.applied == {"names", "houses", "kept"}


def test_backfill_exits_1_when_something_was_left(command):
    """A segment that does not answer is named with its reason, and --resume completes the backfill."""
    command.books(20)

    def before(request: object) -> None:
        if isinstance(request, Scan) and (request.table, request.segment, request.total_segments) == (
            "books",
            1,
            2,
        ):
            raise StoreError("ThrottlingException", "table books")

    command.scene.tap.before = before
    code, out, _ = command()
    assert code == 1
    assert "not finished: books/1-of-2: ThrottlingException: table books" in out
    assert "Continue with the same command and --resume." in out
    assert command.applied == set()
    command.scene.tap.before = lambda _request: None
    code, summary = command.summary("--resume")
    assert (code, summary["items"], summary["copied"]) == (0, 20, 20)
    assert command.applied == {"names", "houses", "kept"}


# ---------------------------------------------------------------- which rules


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rule", "kept"], ["rule kept is one of kind call", "nothing to backfill"]),
        (["--rule", "name"], ["name", "names"]),
        (["--table", "book"], ["book", "books"]),
        (["--table", "authors"], ["keep nothing in table authors, but in books, houses"]),
        (["--where", "a ="], ["--where", "is not a JMESPath expression"]),
        (["--where", "@"], ["--where", "reads the whole item"]),
        (["--resume"], ["state.json has no unfinished backfill"]),
        (["--state", "table:books"], ["table books belongs to the rules"]),
        (["--stop"], ["--stop needs --remote"]),
        (["--changed", "--rule", "names"], ["--changed and --rule"]),
    ],
    ids=lambda value: " ".join(value) if value[0].startswith("--") else "",
)
def test_backfill_refuses_what_it_cannot_do(command, options, words):
    """Exit code 2, a message that says what was expected, and nothing read or written."""
    command.books(1)
    code, out, err = command(*options)
    assert (code, out) == (2, "")
    assert all(word in err for word in words), err
    assert [request for request in command.scene.tap.requests if not isinstance(request, Read)] == []


def test_backfill_of_changed_rules_only(command):
    """--changed: what is new, and what says something else than when it was done; then nothing."""
    command.books(1)
    command.house()
    assert command.summary("--changed")[1]["copied"] == 2
    code, out, _ = command("--changed")
    assert (code, out) == (0, "no rule that keeps something in a table is new or changed\n")
    command.file.write_text(RULES.replace("book.author_name", "book.written_by"))
    code, summary = command.summary("--changed")
    assert (code, list(summary["rules"]), summary["copied"]) == (0, ["names"], 1)
    assert command("--changed")[1].startswith("no rule")


# ---------------------------------------------------------------- stopping and going on
def test_backfill_with_one_unfinished_wants_to_know(command):
    """An unfinished backfill without --resume or --restart exits with 2 and names its scope and both options."""
    command.books(6)
    command.stop_after(1)
    code, out, _ = command("--rule", "names", "--where", "shelf == 'x'")
    assert code == 130
    assert "Not done: " in out
    command.stop_after(None)
    command.scene.tap.requests.clear()
    code, out, err = command()
    assert (code, out) == (2, "")
    assert "has an unfinished backfill, of names, --where shelf == 'x'" in err
    assert "--resume" in err
    assert "--restart" in err
    assert command.scene.tap.requests == []


def test_backfill_keeps_to_its_rate(command):
    """Every write is asked for in write units, before it is made, of the rate that was given."""
    taken: list[float] = []
    rates: list[float] = []

    def make_rate(ceiling: float) -> SimpleNamespace:
        rates.append(ceiling)
        return SimpleNamespace(ceiling=ceiling, take=taken.append)

    command.patch.setattr(backfill, "Rate", make_rate)
    command.books(3, text=s("x" * 1_500))
    command("--rate", "7")
    assert (rates, taken) == ([7.0], [4, 4, 4])
    command("--rate", "0")
    assert rates == [7.0, 0.0]


@pytest.mark.parametrize(("rate", "workers"), [(0.0, 32), (5.0, 4), (500.0, 4), (2_000.0, 16), (1e9, 1_000)])
def test_backfill_in_the_account_has_more_workers_for_a_higher_rate(rate, workers):
    """At least those of a run on this machine, at most those that a machine may have."""
    assert backfill._count_remote_workers(rate) == workers


# ---------------------------------------------------------------- how it shows itself
def run_like(scene: Scene, before: Totals) -> BackfillRun:
    """A run that stands in its only step."""
    names = frozenset(["names"])
    run = BackfillRun(Selection(scene.rules, names), scene.tap, scene.parked, MemoryState(), {}, supplies=lambda _n: ())
    run.before = before
    return run


def totals_of(items: int, copied: int, writes: float = 0.0) -> Totals:
    return Totals(items, items, Counter({("names", Outcome.COPIED): copied}), 1.0, writes)


def test_backfill_meter_says_how_long_it_will_take(command):
    """The time left follows from the items of this process alone, and is unknown if the table's count was too low."""
    now = Clock()
    meter = Meter(lambda _names: 1_000, now)
    run = run_like(command.scene, Totals())
    meter.begin(totals_of(200, 100, 100))
    meter.begin(totals_of(999, 999))
    now.sleep(10)
    figures = meter.figures(run, totals_of(400, 250, 250))
    assert (figures["of_items"], figures["seconds_left"], figures["writes_per_second"]) == (1_000, 30, 15.0)
    assert (figures["step"], figures["steps"], figures["round"]) == (1, 1, 1)
    figures = meter.figures(run, totals_of(1_001, 250))
    assert (figures["of_items"], figures["seconds_left"]) == (None, None)


def test_backfill_lines_come_every_few_seconds(command, capsys):
    """A log has a line every ten seconds, machines a JSON object; not one for each page."""
    now = Clock()
    figures = {**Meter(lambda _n: 10, now).figures(run_like(command.scene, Totals()), totals_of(4, 3)), "refused": 1}
    out = StringIO()
    console = Console(file=out)
    with (
        open_backfill_display(console, as_json=False, clock=now) as plain,
        open_backfill_display(console, as_json=True, clock=now) as machine,
    ):
        for _ in range(25):
            now.sleep(1)
            plain.update(lambda: figures)
            machine.update(lambda: figures)
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("step 1 of 1 · 4 of about 10 items · 3 written · 0 right · 1 refused · 0 write units/s")
    assert [json.loads(line)["progress"]["items"] for line in capsys.readouterr().out.splitlines()] == [4, 4]


MISSPELLED = RULES.replace("author.name into book", "author.nmae into book")


def test_backfill_stops_before_its_first_write_if_a_sample_hits_nothing(command):
    """Exit 2, with rule, what was found and the cure; --accept names the rule and goes on."""
    command.file.write_text(MISSPELLED)
    command.books(3)
    command.scene.there("authors", {"author_id": s("a2"), "name": s(SECRET)})
    code, out, err = command()
    assert (code, out, command.scene.tap.writes) == (2, "", [])
    assert (
        "rule names: 2 of 2 sampled author items have no attribute nmae (closest: name) · write name in place of nmae"
        in err
    )
    assert "add --accept names" in err
    assert command.applied == set()
    assert command("--accept", "names")[0] == 0
    command.file.write_text(RULES)
    assert command()[0] == 0
