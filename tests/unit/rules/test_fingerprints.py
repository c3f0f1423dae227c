"""Fingerprints: what is the same to the pipeline has the same. tests/unit/language/test_compiling.py has what changes one."""

from __future__ import annotations

from sync_rules.language.load import parse_rules
from sync_rules.rules import fingerprints

FILE = """
tables:
  authors: {name: "${A}", key: {author_id: S}}
  books:   {key: {book_id: S}, indexes: {by_author: {author_id: S}}}
entities: {author: {table: authors}, book: {table: books}}
rules:
  names: copy author.name into book.author_name
  bios: {copy: author.bio, into: book.author_bio, where: "kind == 'NOVEL'"}
"""


def prints(text: str, name: str = "authors") -> dict[str, str]:
    return fingerprints.compute_rule_fingerprints(parse_rules(text, environ={"A": name}))


def test_fingerprints_do_not_depend_on_order_comments_or_physical_names():
    """The same rules under other table names, in another order, commented, have the same fingerprints."""
    names, bios = FILE.splitlines()[-2:]
    swapped = FILE.replace(f"{names}\n{bios}", f"{bios}  # a comment\n{names}")
    assert swapped != FILE
    assert prints(FILE) == prints(swapped) == prints(FILE, "other-authors")
