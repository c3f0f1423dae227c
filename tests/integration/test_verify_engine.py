"""`sync-rules verify` through the command line on the embedded engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sync_rules.adapters import aws
from sync_rules.cli import main
from sync_rules.language.load import parse_rules
from tests.support import drifts, engines, every_kind
from tests.support.builders import author_item, book_item, key, s

RULES = """
tables:
  authors: {{name: {prefix}authors, key: {{author_id: S}}}}
  books: {{name: {prefix}books, key: {{book_id: S}}, indexes: {{by_author: {{author_id: S}}}}}}
  pages: {{name: {prefix}pages, key: {{page_id: S}}, indexes: {{by_book: {{book_id: S}}}}}}
entities: {{author: {{table: authors}}, book: {{table: books}}, page: {{table: pages}}}}
rules:
  bylines: {{copy: book.author.name, into: page.byline}}
  names: {{copy: author.name, into: book.author.name, on_delete: clear}}
"""


@pytest.fixture
def verify(engine, tmp_path, capsys):
    """Runs the command and gives its exit code and rows; its `put` writes an item."""
    text = RULES.format(prefix=engines.unique_prefix())
    rules = parse_rules(text)
    engines.create(engine, rules.tables)
    client = aws.dynamodb(engine)
    file = tmp_path / "rules.yaml"
    file.write_text(text)

    def run(*options: str, file: Path = file) -> tuple[int, list[dict]]:
        fixed = [
            "--endpoint-url",
            engine,
            "--grace-seconds",
            "0",
            "--failures",
            str(tmp_path / "f.jsonl"),
            "--format",
            "jsonl",
        ]
        code = main.main(["verify", str(file), *fixed, *options])
        run.out, run.err = capsys.readouterr()
        return code, [json.loads(line) for line in run.out.splitlines()[1:]]

    def with_text(old: str, new: str) -> Path:
        assert old in text
        other = tmp_path / "other.yaml"
        other.write_text(text.replace(old, new))
        return other

    run.put = lambda table, item: client.put_item(TableName=rules.tables[table].physical_name, Item=item)
    run.drop = lambda: client.delete_table(TableName=rules.tables["books"].physical_name)
    run.with_text = with_text
    return run


def test_verify_engine_finds_and_mends_drift(verify):
    """Wrong, missing, extra and orphaned copies are found in a real table and repaired by --repair."""
    verify.put("authors", author_item("a1", name=s("Ada")))
    right = {"M": {"name": s("Ada")}}
    verify.put("books", book_item("right", "a1", author=right))
    verify.put("books", book_item("wrong", "a1", author={"M": {"name": s("Bea")}}))
    verify.put("books", book_item("missing", "a1"))
    verify.put("books", book_item("extra", "mute", author=right))
    verify.put("authors", author_item("mute"))
    verify.put("books", book_item("orphan", "nobody", author=right))
    found = {"wrong": "wrong", "missing": "missing", "extra": "extra", "orphan": "orphan"}
    code, rows = verify()
    assert code == 1
    assert {row["target"]["key"]["book_id"]: row["drift"] for row in rows[:-1]} == found
    assert rows[-1]["rules"]["names"]["right"] == 1
    assert verify("--key", '{"book_id": "right"}')[0] == 0
    code, rows = verify("--repair")
    assert code == 0
    assert all(row["repaired"] for row in rows[:-1])
    assert verify()[0] == 0


def test_verify_engine_of_a_missing_table_is_2(verify):
    """A table that is not there is an error, never an empty table."""
    verify.drop()
    assert verify()[0] == 2
    assert "does not exist" in verify.err


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("key: {page_id: S}", "key: {id: S}", "its key is partition key page_id (S)"),
        ("key: {book_id: S}", "key: {book_id: N}", "its key is partition key book_id (S)"),
        ("{by_author: {author_id: S}}", "{of_author: {author_id: S}}", "it has no index of_author"),
    ],
)
def test_verify_engine_of_tables_that_do_not_fit_is_2(verify, old, new, found):
    """Tables with other keys or indexes than the rules file are refused with exit code 2."""
    other = verify.with_text(old, new)
    verify.put("authors", author_item("a1", name=s("Ada")))
    code, rows = verify(file=other)
    assert (code, rows) == (2, [])
    assert found in verify.err


def test_verify_engine_repairs_a_cascade_at_once(verify):
    """Copies of copies are right after one repair, and a right one is not set to what its source wrongly held."""
    verify.put("authors", author_item("a1", name=s("Ada")))
    verify.put("books", book_item("b1", "a1", author={"M": {"name": s("x")}}))
    verify.put("pages", {"page_id": s("right"), "book_id": s("b1"), "byline": s("Ada")})
    verify.put("pages", {"page_id": s("wrong"), "book_id": s("b1"), "byline": s("x")})
    code, rows = verify("--repair")
    assert code == 0
    assert [tuple(row["target"]["key"].values()) for row in rows[:-1]] == [("b1",), ("wrong",)]
    assert rows[-1]["items"] == 3
    code, (totals,) = verify()
    assert (code, totals["rules"]["bylines"]["right"]) == (0, 2)


def test_verify_engine_of_a_sample_and_by_workers(verify):
    """Segments of a real parallel scan, whatever their number, are together the table; a share of them is less."""
    verify.put("authors", author_item("a1", name=s("Ada")))
    for number in range(60):
        verify.put("books", book_item(f"b{number}", "a1"))
    assert [verify(*options)[1][-1]["items"] for options in ((), ("--workers", "4"))] == [60, 60]
    code, rows = verify("--sample", "30:11", "--rule", "names")
    assert code == 1
    assert 0 < rows[-1]["items"] < 60
    assert verify("--sample", "30:11", "--rule", "names")[1][:-1] == rows[:-1]


# ---------------------------------------------------------------- every kind
class Shop:
    """A shop of every kind on an engine, in which `verify --repair` has made everything right."""

    def __init__(self, engine: str, folder: Path, capsys) -> None:
        self._engine = engine
        self._capsys = capsys
        self._failures = folder / "failures.jsonl"
        self.file = folder / "rules.yaml"
        self.file.write_text(every_kind.text_of(drifts.RULES, engines.unique_prefix()))
        self.rules = parse_rules(self.file.read_text())
        engines.create(engine, self.rules.tables)
        self.client = aws.dynamodb(engine)
        for table, item in drifts.ITEMS:
            self._put(table, item)

    def _put(self, table: str, item: dict) -> None:
        self.client.put_item(TableName=self.rules.tables[table].physical_name, Item=item)

    def inject(self, drifted: drifts.Drifted) -> None:
        for (table, *values), changes in drifted.edits:
            at = key(self.rules.tables[table], *values).attributes()
            name = self.rules.tables[table].physical_name
            if changes is None:
                self.client.delete_item(TableName=name, Key=at)
                continue
            before = self.client.get_item(TableName=name, Key=at, ConsistentRead=True).get("Item", at)
            self._put(table, {name: value for name, value in {**before, **changes}.items() if value is not None})

    def verify(self, *options: str) -> tuple[int, str]:
        fixed = [
            "--endpoint-url",
            self._engine,
            "--grace-seconds",
            "0",
            "--failures",
            str(self._failures),
            "--format",
            "jsonl",
        ]
        self._capsys.readouterr()
        code = main.main(["verify", str(self.file), *fixed, *options])
        return code, self._capsys.readouterr().out


@pytest.mark.parametrize("by_report", [False, True], ids=["sweep", "report"])
def test_verify_engine_finds_and_mends_injected_drift_of_every_kind(engine, tmp_path, capsys, by_report):
    """Verify finds exactly the injected drift of every kind and exits with 1; repair, at once or by report, removes it."""
    shop = Shop(engine, tmp_path, capsys)
    assert shop.verify("--repair")[0] == 0
    assert shop.verify()[0] == 0
    repairable = [one for one in drifts.DRIFTS if one.repairable]
    injected = drifts.apart(
        repairable[::-1] if by_report else repairable
    )  # others first, so that both together have all
    assert {one.told[1].value for one in injected} >= {"extra", "orphan", "missing" if by_report else "wrong"}
    for drifted in injected:
        shop.inject(drifted)
    code, out = shop.verify()
    rows = [json.loads(line) for line in out.splitlines()]
    found = {
        (row["rule"], row["drift"], (row["target"]["table"], *row["target"]["key"].values())) for row in rows[1:-1]
    }
    assert (code, found) == (1, {(rule, drift.value, at) for one in injected for rule, drift, at in one.found})
    (tmp_path / "report.jsonl").write_text(out)
    assert shop.verify("--repair", *(["--from", str(tmp_path / "report.jsonl")] if by_report else []))[0] == 0
    assert shop.verify()[0] == 0
