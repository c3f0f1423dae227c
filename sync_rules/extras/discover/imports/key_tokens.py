"""A key's text in pieces: words that say the kind of an item, and values, told apart by separators.

A word is a part of a key that is the same for all items of a kind, such as USER in `USER#7`. It stands first or after a
value, or is written in capitals; what follows it is a value.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

SEPARATORS: Final = ("#", "|", "::", "~", ";", ":", "/")  # the first that a text has splits it
FIRST_ONLY: Final = ("/",)  # what follows a word may be a path of any depth
WORD: Final = re.compile(r"[$@_]{0,2}[A-Za-z][A-Za-z_.]*|\$[A-Za-z][A-Za-z_]*_\d{1,3}")  # the last: ElectroDB's $user_1
CAPITALS: Final = re.compile(r"[$@_]?[A-Z][A-Z_]+")
DATED: Final = re.compile(r"\d{4}-\d\d|\d\d:\d\d")
ADDRESSED: Final = re.compile(r"[A-Za-z][A-Za-z+.-]*://")
BEGUN: Final = re.compile(r"([A-Za-z]{2,20}[_-])(.+)")
PREFIXED: Final = re.compile(r"([A-Za-z]{2,20}[_-])(?=.*\d)(.+)")
WORD_MAX: Final = 40
TOKENS_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a key: a word if `word`, else a value; `before` is the separator in front of it."""

    text: str
    word: bool
    before: str = ""

    @property
    def kind(self) -> tuple[str, str | None]:
        """The separator and the word: keys of one kind have the same in each place."""
        return self.before, self.text if self.word else None

    def as_value(self) -> Token:
        return Token(self.text, word=False, before=self.before)


Tokens = tuple[Token, ...]


def separator_of(text: str) -> str:
    """The separator that splits a key; "" where none does."""
    if ADDRESSED.match(text):
        return ""
    for separator in SEPARATORS:
        if separator in text:
            if separator in (":", "/") and (
                DATED.match(text) or not WORD.fullmatch(text.split(separator, maxsplit=1)[0])
            ):
                continue
            return separator
    return ""


def tokens_of(text: str) -> Tokens:
    """The pieces of a key's text. Words are what looks like one: which of them are values shows in many keys."""
    separator = separator_of(text)
    if not separator:
        return (Token(text, word=bool(CAPITALS.fullmatch(text))),)
    pieces = text.split(separator, 1 if separator in FIRST_ONLY else TOKENS_MAX)
    made: list[Token] = []
    after_word = False
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        word = not piece or (
            not after_word
            and len(piece) <= WORD_MAX
            and WORD.fullmatch(piece) is not None
            and (number == 0 or not last or CAPITALS.fullmatch(piece) is not None)
        )
        made.append(Token(piece, word, separator if number else ""))
        after_word = word and bool(piece)
    return tuple(made)


def prefixed(text: str, starts: Collection[str]) -> Tokens:
    """The pieces of a text such as user_7, or user_x, that begins with one of these words: whole where none fits."""
    match = BEGUN.fullmatch(text)
    if match is None or match[1] not in starts:
        return (Token(text, word=False),)
    return (Token(match[1], word=True), Token(match[2], word=False))
