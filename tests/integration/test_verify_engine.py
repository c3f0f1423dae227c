"""`sync-rules verify` through the command line on the embedded engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sync_rules import aws, cli
from sync_rules.rulefile import parse_rules
from tests import engines
from tests.builders import author_item, book_item, s

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
        fixed = ["--endpoint-url", engine, "--grace-seconds", "0", "--failures", str(tmp_path / "f.jsonl"), "--json"]
        code = cli.main(["verify", str(file), *fixed, *options])
        out, run.err = capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines()]

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
    """Wrong, missing and extra copies are found in a real table, mended by --repair, and gone at the next look."""
    verify.put("authors", author_item("a1", name=s("Ada")))
    right = {"M": {"name": s("Ada")}}
    verify.put("books", book_item("right", "a1", author=right))
    verify.put("books", book_item("wrong", "a1", author={"M": {"name": s("Bea")}}))
    verify.put("books", book_item("missing", "a1"))
    verify.put("books", book_item("extra", "nobody", author=right))
    found = {"wrong": "wrong", "missing": "missing", "extra": "extra"}
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
    """A rules file that speaks of other keys or indexes than the tables have is refused; it never passes for no drift."""
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
