"""Names for the rules file: words made from the names in a source, each name used once."""

from __future__ import annotations

import re
from typing import Final

from sync_rules.language.yaml_source import CONSTANTS

NAME_MAX: Final = 64
SMALL_NAME: Final = re.compile(r"[a-z][A-Za-z0-9_-]{0,63}")
WORDS: Final = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
PLURALS: Final = (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("s", ""))
VOWELS: Final = ("a", "e", "i", "o", "u", "")
NO_PLURALS: Final = ("ss", "us", "is", "news", "series", "status", "details", "settings", "metadata")
ENDINGS: Final = frozenset({"table", "tables", "db", "ddb", "dynamodb", "dynamo"})
GENERIC_KEY: Final = re.compile(
    r"(gsi|gs|lsi|ls|index|idx)?\d*(pk|sk|hk|rk|hash|range|(hash|range|partition|sort|primary)?key)\d*"
)
SHORT_MAX: Final = 2  # letters of a word that tells nothing by itself
# Words in keys that do not say what an item is.
GENERIC: Final = frozenset({
    "metadata", "meta", "profile", "info", "details", "detail", "root", "head", "header", "data", "item", "self", "a",
    "main", "base", "config", "record", "v", "current", "latest",
})  # fmt: skip
RESERVED: Final = frozenset({*CONSTANTS, "null"})


def split_words(text: str) -> list[str]:
    """Split a name into its words in lower case: OrderItem, order-item, ORDER_ITEM."""
    return [word.lower() for word in WORDS.findall(text)]


def make_slug(text: str, default: str = "thing") -> str:
    """Return a name of the rules file for any name: lower case, joined by underscores, a letter first."""
    parts = split_words(text)
    while parts and parts[0].isdigit():
        parts = parts[1:]
    made = "_".join(parts)[:NAME_MAX].rstrip("_") or default
    return f"{made}_" if made in RESERVED else made


def keep_name(text: str, default: str = "thing") -> str:
    """Return a name unchanged if it begins with a small letter; else a name made from it."""
    return text if SMALL_NAME.fullmatch(text) and text not in RESERVED else make_slug(text, default)


def make_singular(name: str) -> str:
    """Return the singular of a plural name."""
    if name.endswith(NO_PLURALS):
        return name
    for many, one in PLURALS:
        if name.endswith(many) and len(name) > len(many) + 1:
            return name.removesuffix(many) + one
    return name


def make_plural(name: str) -> str:
    """Return the plural of a singular name."""
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return f"{name}es" if not name.endswith(NO_PLURALS) and make_singular(name) == name else name
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2:-1] not in VOWELS else f"{name}s"


def make_table_slug(called: str) -> str:
    """Return the name of a table for the file, without the word table that many names end with."""
    parts = split_words(called)
    kept = [part for part in parts if part not in ENDINGS] or parts
    return make_slug("_".join(kept), "table")


def make_variable_name(*parts: str) -> str:
    """Return the name of an environment variable."""
    made = "_".join(word for part in parts for word in split_words(part)).upper() or "TABLE"
    return made if not made[0].isdigit() else f"V_{made}"


def join_words(name: str) -> str:
    """Return a name in small letters, with its words joined."""
    return "".join(split_words(name))


def is_generic_key(name: str) -> bool:
    """Return True if the name of a key attribute does not describe its content, such as PK or GSI1SK."""
    return GENERIC_KEY.fullmatch(join_words(name)) is not None


class Unique:
    """A register of names that gives each name once: a repeated name gets a number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def name(self, wanted: str) -> str:
        """Return the name itself, or the name with the first free number."""
        made, number = wanted[:NAME_MAX], 1
        while made in self._taken:
            number += 1
            ending = f"_{number}"
            made = wanted[: NAME_MAX - len(ending)] + ending
        self._taken.add(made)
        return made
