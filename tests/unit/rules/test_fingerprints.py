"""Fingerprints: what is the same to the pipeline has the same, what is not has another."""

from __future__ import annotations

import pytest

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


def changed(old: str, new: str) -> set[str]:
    """The rules whose fingerprint is another one."""
    assert old in FILE
    before, now = prints(FILE), prints(FILE.replace(old, new))
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}


def test_fingerprints_do_not_depend_on_order_comments_or_physical_names():
    """The same rules under other table names, in another order, commented, have the same fingerprints."""
    names, bios = FILE.splitlines()[-2:]
    swapped = FILE.replace(f"{names}\n{bios}", f"{bios}  # a comment\n{names}")
    assert swapped != FILE
    assert prints(FILE) == prints(swapped) == prints(FILE, "other-authors")


@pytest.mark.parametrize(
    ("old", "new", "rules"),
    [
        ("'NOVEL'", "'ESSAY'", {"bios"}),
        ("author_bio,", "bio_of_author,", {"bios"}),
        ("author_name", "name_of_author", {"names"}),
        ("key: {author_id: S}}", "key: {author_id: N}}", {"names", "bios"}),
        ("names:", "called:", {"names", "called"}),
        ("book: {table: books}", "book: {table: books, key: {book_id: 'B#{book_id}'}}", {"names", "bios"}),
    ],
)
def test_fingerprints_change_with_what_a_rule_says(old, new, rules):
    """Each change of a rule's text changes exactly the fingerprints of the rules concerned."""
    text = FILE.replace("author_id: S", "author_id: N") if "author_id: N" in new else None
    if text is not None:  # both ends of a link are of one type
        before, now = prints(FILE), prints(text)
        assert {name for name in before if before[name] != now[name]} == rules
    else:
        assert changed(old, new) == rules


PARTS = """
tables:
  users:  {key: {PK: S}}
  orders: {key: {PK: S, SK: S}}
  ledger: {key: {PK: S, SK: S}}
entities:
  user:  {table: users, key: {PK: "{u}"}}
  order: {table: orders, key: {PK: "USER#{a}#{b}", SK: "ORDER#{id}"}}
rules:
  counted: {count: order, into: user.n, link: {u: FIELD}}
"""


def test_fingerprints_tell_the_fields_of_a_key_apart():
    """Books of `a` are not books of `b`, although both are in one key attribute."""
    found = [parse_rules(PARTS.replace("FIELD", field)) for field in ("a", "b")]
    assert len({fingerprints.compute_rule_fingerprints(rules)["counted"] for rules in found}) == 2
    assert len({books.fingerprint for rules in found for rule in rules.rules.values() if (books := rule.books)}) == 2
