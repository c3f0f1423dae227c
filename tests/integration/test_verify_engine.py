"""`sync-rules verify` through the command line on the embedded engine."""

from __future__ import annotations

import json

import pytest

from sync_rules import aws, cli
from sync_rules.rulefile import parse_rules
from tests import engines
from tests.builders import author_item, book_item, s

RULES = """
tables:
  authors: {{name: {prefix}authors, key: {{author_id: S}}}}
  books: {{name: {prefix}books, key: {{book_id: S}}, indexes: {{by_author: {{author_id: S}}}}}}
entities: {{author: {{table: authors}}, book: {{table: books}}}}
rules:
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

    def run(*options: str) -> tuple[int, list[dict]]:
        fixed = ["--endpoint-url", engine, "--grace-seconds", "0", "--failures", str(tmp_path / "f.jsonl"), "--json"]
        code = cli.main(["verify", str(file), *fixed, *options])
        return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    run.put = lambda table, item: client.put_item(TableName=rules.tables[table].physical_name, Item=item)
    run.drop = lambda: client.delete_table(TableName=rules.tables["books"].physical_name)
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
