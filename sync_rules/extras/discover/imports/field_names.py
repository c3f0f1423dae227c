"""Names for the values in keys: the attribute that holds the same, or the word before it.

Two values of one item share a name only where the same word stands before both, or where several items show it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Final

from sync_rules.extras.discover.imports.identifiers import (
    GENERIC,
    RESERVED,
    SHORT_MAX,
    letters,
    says_nothing,
    singular,
    slug,
    words,
)
from sync_rules.extras.discover.imports.key_kinds import DATED, Tokens

SHOWN_MIN: Final = 2  # different values, that two columns are the same by more than chance


@dataclass
class Values:
    """The attributes of the items of a kind, as text, and the fields that were bound so far, with each item's value."""

    plain: Sequence[Mapping[str, str]]
    bound: dict[str, list[str]]

    def same(self, values: list[str], spoken: str, mine: Collection[str], *, sure: bool) -> str:
        """The field that was bound to the same values, if that is no chance; "" if there is none."""
        several = sure or len(set(values)) >= SHOWN_MIN
        alike = (name for name, others in self.bound.items() if others == values and name not in mine)
        return next((name for name in alike if several or name == spoken), "")

    def bind(self, wanted: Sequence[str], values: list[str]) -> str:
        """Bind the first name that is free, else the first with a number."""
        numbered = (f"{wanted[0]}_{number}" for number in count(2))
        free = next(name for name in chain(wanted, numbered) if name not in self.bound)
        self.bound[free] = values
        return free


@dataclass(frozen=True)
class Namer:
    """Makes templates. `roots` are the entities that words stand for: c for customer."""

    roots: Mapping[str, str]
    fields: dict[str, str] = field(default_factory=dict)  # by word, as the first entity named them

    def template(self, attribute: str, column: Sequence[Tokens], known: Values, alias: str = "") -> str:
        """The template of a column of keys of one kind. `known` gains the fields that it binds."""
        text, word, used = "", "", False
        mine: set[str] = set()
        single = sum(not token.word for token in column[0]) == 1
        for number, token in enumerate(column[0]):
            text += token.before
            if token.word:
                text += token.text
                word, used = token.text or word, False
                continue
            values = [tokens[number].text for tokens in column]
            start = _start(values)
            text += start
            values = [value.removeprefix(start) for value in values]
            spoken = self._suggest_name(start or word, values, first=not used)
            name = known.same(values, spoken, mine, sure=letters(word) in GENERIC)
            if not name:
                tells = len(start or word) > SHORT_MAX or not single or says_nothing(attribute)
                own = "" if tells else slug(attribute)
                spoken = "" if used and spoken in known.bound else spoken
                name = self._new(attribute, values, known, spoken=spoken, alias=alias if single else "", own=own)
                if (start or word) and not used:
                    self.fields.setdefault(start or word, name)
            mine.add(name)
            text += f"{{{name}}}"
            used = True
        return text

    def _new(self, attribute: str, values: list[str], known: Values, *, spoken: str, alias: str, own: str) -> str:
        """A new field: the attribute that holds the same, the name of the key attribute, or what the word says."""
        held = [name for name in known.plain[0] if _simple(name) and [one.get(name) for one in known.plain] == values]
        told = sorted(held, key=lambda name: (not name.lower().endswith("id"), name.lower() == "id"))
        known_word = spoken in self.fields.values() and (spoken in held or spoken not in known.plain[0])
        wanted = [spoken if known_word else "", alias, *told, own, spoken]
        return known.bind([name for name in wanted if name and _simple(name)] or [f"{slug(attribute)}_part"], values)

    def _suggest_name(self, word: str, values: Sequence[str], *, first: bool) -> str:
        """The name that the word before a value suggests; "" without a word."""
        if first and word in self.fields:
            return self.fields[word]
        parts = [part for part in words(self.roots.get(word, word)) if part.isalpha()]
        if not parts or parts[0] in RESERVED:
            return ""
        ending = "at" if all(DATED.match(value) for value in values) else "id"
        return "_".join([*parts[:-1], singular(parts[-1]), ending])


def _simple(name: str) -> bool:
    """True if a name can stand in braces."""
    return name.replace("_", "a").isalnum() and name.isascii() and not name[0].isdigit()


def _start(values: Sequence[str]) -> str:
    """The word that all of several values begin with, as in authorname_smith."""
    if len(set(values)) < SHOWN_MIN:
        return ""
    first = values[0]
    for mark in ("_", "=", "-"):
        start = first[: first.find(mark) + 1]
        rest = [value.removeprefix(start) for value in values]
        if (
            len(start) > SHOWN_MIN
            and start[:-1].isalpha()
            and all(one and one != value for one, value in zip(rest, values, strict=True))
        ):
            return start
    return ""
