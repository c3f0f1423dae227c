"""`sync-rules verify`: what it prints, for people and machines, and the codes it exits with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.audit.compare import Difference, Drift
from sync_rules.audit.drift_report import make_row
from sync_rules.audit.verify_tally import DriftFinding, Tally
from sync_rules.cli.commands import verify
from sync_rules.language.load import parse_rules
from sync_rules.model.items import ItemKey
from sync_rules.rules.key_json import parse_key
from sync_rules.rules.ruleset import Rules
from tests.support import every_kind
from tests.support.builders import n, s
from tests.unit.cli.command_line import SECRET, CommandLine

RULES = """
tables:
  authors: {key: {author_id: S}}
  books: {key: {book_id: S}, indexes: {by_author: {author_id: S}}}
  houses: {key: {house_id: N}, indexes: {by_author: {author_id: S}}}
  scans: {key: {scan_id: B}}
  pages: {key: {book_id: S}}
entities: {author: {table: authors}, book: {table: books}, house: {table: houses}, scan: {table: scans}, page: {table: pages}}
rules:
  names: copy author.name into book.author_name
  bios: copy author.bio into book.author_bio
  houses: {copy: author.name, into: house.author_name, link: {author_id: author_id}, via: by_author}
"""
RIGHT = {"book_id": s("b1"), "author_id": s("a1"), "author_name": s("Ada"), "author_bio": s("...")}


class Command(CommandLine):
    """The command, without a wait."""

    def __init__(self, monkeypatch, capsys) -> None:
        super().__init__(verify, RULES, monkeypatch, capsys)
        self.scene.there("authors", {"author_id": s("a1"), "name": s("Ada"), "bio": s("...")})
        self.failures = Path("failures.jsonl")
        self.given = (self.file, "--grace-seconds", 0, "--failures", self.failures)
        self.required: list[tuple[Rules, bool]] = []
        monkeypatch.setattr(
            verify, "require_tables", lambda _client, rules, *, streams: self.required.append((rules, streams))
        )

    def rows(self, *options: str) -> tuple[int, list[dict]]:
        """The exit code of a verify with --format jsonl and the rows of its report, without the first."""
        code, out, _ = self(*options, "--format", "jsonl")
        self.head, *rows = map(json.loads, out.splitlines())
        assert rows[-1].pop("at") >= self.head["at"]
        return code, rows

    def report(self, path: Path, *options: str) -> Path:
        """A report in a file."""
        path.write_text(self(*options, "--format", "jsonl")[1])
        return path


def test_verify_exits_1_with_drift_and_0_once_it_is_mended(command):
    """Drift is printed without values and exits with 1; --repair repairs it and exits with 0."""
    book = command.scene.there("books", {**RIGHT, "author_name": s(SECRET)})
    code, (row, totals) = command.rows()
    assert code == 1
    assert row == {
        "rule": "names",
        "drift": "wrong",
        "target": {"table": "books", "key": {"book_id": "b1"}},
        "source": {"table": "authors", "key": {"author_id": "a1"}},
        "element": None,
        "paths": ["author_name"],
        "reason": None,
        "repaired": False,
        "came_right": False,
    }
    assert totals["rules"]["names"]["drift"] == 1
    code, (row, totals) = command.rows("--repair")
    assert (code, row["repaired"], totals["rules"]["names"]["repaired"]) == (0, True, 1)
    assert totals["alterations"] == {"names": {"replaced": 1}}
    assert command.scene.item(book) == RIGHT
    assert command.rows()[0] == 0


def test_verify_of_one_key(command):
    """--key checks one item, in the key type of the table with these attributes."""
    command.scene.there("books", {"book_id": s("b1"), "author_id": s("a1")}, {"book_id": s("b2"), "author_id": s("a1")})
    code, rows = command.rows("--key", '{"book_id": "b2"}', "--table", "books")
    assert code == 1
    assert {row["target"]["key"]["book_id"] for row in rows[:-1]} == {"b2"}
    command.scene.there("houses", {"house_id": {"N": "7"}, "author_id": s("a1"), "author_name": s("Ada")})
    assert command.rows("--key", '{"house_id": 7}')[0] == 0
    assert command.rows("--key", '{"house_id": "7.0"}')[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rule", "name"], ["name", "names"]),
        (["--key", "b1"], ["'b1' is not a key", "JSON object"]),
        (["--key", "[]"], ["is not a key"]),
        (["--key", '{"id": 1}'], ["no table has a key with id", "books: book_id"]),
        (["--key", '{"book_id": "b1"}'], ["several tables", "--table"]),
        (["--key", '{"book_id": "b1"}', "--table", "book"], ["book", "books"]),
        (["--key", '{"book_id": 5}', "--table", "books"], ["book_id", "text"]),
        (["--key", '{"house_id": "seven"}'], ["house_id", "number"]),
        (["--key", '{"house_id": true}'], ["house_id", "number"]),
        (["--key", '{"scan_id": "xyz"}'], ["scan_id", "hexadecimal"]),
        (["--key", '{"author_id": "a1"}'], ["authors[a1]", "author"]),
        (["--key", '{"author_id": "nobody"}'], ["item authors[nobody] does not exist"]),
        (["--grace-seconds", "-1"], ["grace-seconds"]),
        (["--sample", "0"], ["sample"]),
        (["--sample", "101"], ["sample"]),
        (["--sample", "5:"], ["such as 5 or 5:4711"]),
        (["--workers", "0"], ["workers"]),
        (["--sample", "5", "--from", "r.jsonl"], ["cannot be given together"]),
        (["--key", '{"author_id": "a1"}', "--sample", "5"], ["cannot be given together"]),
        (["--from", "nowhere.jsonl"], ["nowhere.jsonl", "No such file"]),
    ],
)
def test_verify_exits_2_for_the_users_mistakes(command, options, words):
    """A user's mistake exits with 2 and prints the problem and the cure on standard error."""
    code, out, err = command(*options)
    assert code == 2
    assert out == ""
    assert all(word in err for word in words)


def test_verify_keeps_a_record_of_what_cannot_be_mended(command, tmp_path):
    """A repair that cannot succeed leaves exit code 1 and a line with rule, key and reason in the failures file."""
    command.file.write_text(RULES.replace("book.author_name", "book.author.name"))
    command.scene.rules = parse_rules(command.file.read_text())
    command.scene.there("books", {**RIGHT, "author": s(SECRET)})
    code, _, _ = command("--repair")
    assert code == 1
    line = command.failures.read_text()
    record = json.loads(line)
    assert (record["rule"], record["key"]) == ("names", {"book_id": "b1"})
    again, rows = command.rows("--key", json.dumps(record["key"]), "--table", record["table"])
    assert (again, [row["rule"] for row in rows[:-1]]) == (1, ["names"])
    assert record["reason"] == "author is a string: expected a map to hold name"
    assert SECRET not in line


def test_verify_says_which_rules_saw_no_targets(command):
    """A rule that had nothing to look at is named to people: that it found no drift proves nothing."""
    command.scene.there("books", RIGHT)
    _, out, _ = command()
    assert "rule houses found no targets: no key in table houses matches entity house" in out
    assert "rule names found no targets" not in out
    assert "found no targets" not in command("--key", '{"book_id": "b1"}', "--table", "books")[1]


NUMBERS = st.decimals(-(10**28), 10**28, places=9).map(str) | st.integers(-(10**37), 10**37).map(str)  # 38 digits


@given(key=st.one_of(
    st.tuples(st.just("books"), st.just("book_id"), st.just("S"), st.text(min_size=1)),
    st.tuples(st.just("houses"), st.just("house_id"), st.just("N"), NUMBERS),
    st.tuples(st.just("scans"), st.just("scan_id"), st.just("B"), st.binary(min_size=1)),
))  # fmt: skip
def test_verify_takes_the_keys_it_prints(key):
    """`--key` takes every key that --format jsonl prints: any text, every digit of a number, binary as hex."""
    table, name, kind, value = key
    at = ItemKey(table, ((name, kind, value),))
    finding = DriftFinding(Difference("names", Drift.WRONG, at, None, (), held="", truth=""))
    printed = json.loads(json.dumps(make_row(finding)))["target"]
    assert isinstance(printed["key"][name], str)
    assert parse_key(json.dumps(printed["key"]), printed["table"], parse_rules(RULES)) == at


def test_verify_shows_people_the_first_of_many(capsys):
    """People see twenty drifts of a rule and how many more there are; machines see every one."""
    target = ItemKey("books", (("book_id", "S", "b1"),))
    found = [DriftFinding(Difference("r", Drift.WRONG, target, None, (("name",),), held="", truth=""))] * 25
    for as_json, lines in ((False, 20), (True, 25)):
        verify.show(iter(found), Tally(), frozenset({"r"}), head={} if as_json else None)
        out = capsys.readouterr().out
        assert sum("b1" in line for line in out.splitlines()) == lines
        assert ("and 5 more of rule r" in out) is not as_json


# ---------------------------------------------------------------- every kind
@pytest.fixture
def shop(command) -> Command:
    """The command on a shop with a rule of every kind, at rest."""
    command.restart(every_kind.text_of(every_kind.RULES | every_kind.EFFECTS))
    command.scene.put("shop", every_kind.order("1", "a", 10), every_kind.user("1", name=s("Ada"), email=s("a@x")))
    command.scene.put("parts", every_kind.part("a"))
    command.scene.rest()
    return command


def test_verify_of_a_rule_takes_its_parts_with_it(shop):
    """--rule NAME means the rule of the file with all that it was compiled into, and so does the name of a part, which
    is what is shown beside a drift.
    """
    for name in ("spent", "spent.ledger"):
        assert list(shop.rows("--rule", name)[1][-1]["rules"]) == ["spent", "spent.ledger"]


def test_verify_says_what_repair_can_mend_and_what_not(shop):
    """The last line counts what is left by kind: --repair is named only where it helps and was not asked for."""
    shop.scene.there("parts", every_kind.part("loop", "loop"))
    stuck = "1 drift left: 1 stuck. No repair corrects what is stuck: see its reason."
    assert shop("--rule", "paths")[1].rstrip().endswith(stuck)
    assert shop("--rule", "paths", "--repair")[1].rstrip().endswith(stuck)
    at = shop.scene.at("shop", "EMAIL#a@x", "EMAIL")
    shop.scene.there("shop", {**shop.scene.item(at), "name": s("B")})
    last = shop("--rule", "mails", "--rule", "paths")[1].rstrip().splitlines()[-1]
    assert "2 drift left: 1 wrong, 1 stuck. --repair corrects: wrong. No repair corrects what is stuck" in last


def test_verify_says_of_orphans_that_nothing_brings_them_back(command):
    """An orphan is left by --repair, and the output does not promise otherwise."""
    command.file.write_text(
        RULES.replace(
            "copy author.name into book.author_name", "{copy: author.name, into: book.author_name, on_delete: restrict}"
        )
    )
    command.scene.rules = parse_rules(command.file.read_text())
    command.scene.there("books", {**RIGHT, "author_id": s("gone")})
    for options in ((), ("--repair",)):
        code, out, _ = command("--rule", "names", *options)
        assert code == 1
        assert "1 drift left: 1 orphan. No repair removes orphans" in out
        assert "--repair" not in out
        assert "failures file" not in out


# ---------------------------------------------------------------- a sample, several at a time
def test_verify_of_a_sample_says_what_was_looked_at(shop):
    """A sample is the same for the same seed, and the output says that it is one without totals."""
    for number in range(200):
        shop.scene.there("parts", every_kind.part(f"p{number}"))
    shop.scene.put("ledger", shop.scene.item(shop.scene.at("ledger", "spent/T/USER#1", "PROFILE")) | {"n": n(99)})
    shop.scene.records.clear()
    code, rows = shop.rows("--sample", "20:7")
    assert (shop.head["sampled"], shop.head["seed"]) == (20.0, 7)
    assert shop.rows("--sample", "20:7") == (code, rows)
    assert 0 < rows[-1]["items"] < 150
    assert "spent.ledger" not in {row["rule"] for row in rows[:-1]}
    _, out, _ = shop("--sample", "20:7")
    assert "a sample: 20 % of each table was checked (200 of 1000 segments; --sample 20:7)" in out
    assert "totals of ledgers were not checked" in out
    _, out, _ = shop("--sample", "100")
    assert "a sample" not in out
    assert shop.rows()[1][-1]["rules"]["spent.ledger"]["drift"] == 1


# ---------------------------------------------------------------- from a report
def broken(command: Command, *names: str) -> None:
    command.scene.there("books", *({**RIGHT, "book_id": s(name), "author_name": s("x")} for name in names))


def test_verify_from_a_report_mends_what_it_lists_and_nothing_else(command, tmp_path):
    """`--repair --from` repairs only copies that the report lists, and calls those that came right `right by now`."""
    broken(command, "b1", "b2", "b3")
    report = command.report(tmp_path / "report.jsonl")
    broken(command, "b4")
    command.scene.there("books", {**RIGHT, "book_id": s("b2")})
    command.scene.memory.delete(command.scene.at("books", "b3"))
    code, out, _ = command("--repair", "--from", str(report))
    assert code == 0
    assert "wrong: books[b1] author_name from authors[a1] · rule names · repaired" in out
    for name in ("b2", "b3"):
        assert f"wrong: books[{name}] author_name from authors[a1] · rule names · right by now" in out
    assert "3 items checked (the repair replaces 1), no drift left" in out
    assert command.scene.item(command.scene.at("books", "b4"))["author_name"] == s("x")
    code, rows = command.rows("--repair", "--from", str(report))
    assert (code, [row["came_right"] for row in rows[:-1]]) == (0, [True] * 3)


@pytest.mark.parametrize("place", [".", "/", "rules.yaml", "nowhere/f.jsonl", "drift.jsonl"])
def test_verify_refuses_a_bad_place_for_failures(command, place):
    """Before it begins: a folder, a folder that is not there, the rules file, and the report that --from reads."""
    code, out, err = command("--from", "drift.jsonl", "--failures", place)
    assert (code, out) == (2, "")
    assert f"{place}: " in err
    assert command.required == []
