"""Formulas: how `{state}#{city:upper}` makes one text out of fields of an item.

Invariant: a text has all its fields or there is none. Equal fields make equal texts on every machine: no locale, no
clock, UTC only, one hash.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import Final

from sync_rules.model.errors import UserError
from sync_rules.model.numbers import read_text, read_word
from sync_rules.model.templates import PIECE, suggest_braces
from sync_rules.model.values import AttributeValue, parse_path

Read = Callable[[str], AttributeValue | None]  # what an item holds in a field
Format = Callable[[AttributeValue], str | None]  # a value as text, or None when it has none of that form
Tables = Mapping[str, Mapping[str, str]]

PAD_MAX_DIGITS: Final = 128  # a number of DynamoDB has at most 126 before its point
SHARDS_MAX: Final = 100_000
FIELD = re.compile(r'((?:"[^"]*"|[^":])*)')
STEP = re.compile(r":([^:()\s]+)(?:\(([^()]*)\))?")
DIGITS = re.compile(r"\d+", re.ASCII)
ISO_DATE = re.compile(r"(\d{4}-\d\d-\d\d|\d{8}|\d{4}-W\d\d-\d|\d{4}W\d{3})([Tt ][\d:.,+-]+[Zz]?)?", re.ASCII)
IN_NUMBERS: Final = frozenset("0123456789+-.eE")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def compute_stable_hash(text: str) -> int:
    """Compute a number of 64 bits for a text, the same on every machine and in every version."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


@dataclass(frozen=True, slots=True)
class Slot:
    """A field, and the formats its value goes through from left to right."""

    field: str
    formats: tuple[Format, ...] = ()

    def text(self, read: Read) -> str | None:
        """Return the text for this slot, never empty; None if the field or a format gives none."""
        value = read(self.field)
        for form in self.formats:
            text = None if value is None else form(value)
            value = None if text is None else {"S": text}
        return read_text(value) or None


@dataclass(frozen=True, eq=False)
class Formula:
    """A parsed formula: texts and fields in order. With a `separator`, it joins the pieces that have a text."""

    source: str | tuple[str, ...]  # as the rules file has it
    pieces: tuple[str | Slot, ...]
    tables: Tables  # those it uses
    separator: str | None = None
    type = "S"

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(piece.field for piece in self.pieces if isinstance(piece, Slot)))

    def text(self, read: Read) -> str | None:
        """Return the whole text. None if a field is missing, empty, of a wrong type, or not in its table. With a
        separator, None if no field has a text.
        """
        texts = [piece if isinstance(piece, str) else piece.text(read) for piece in self.pieces]
        there = [text for text in texts if text is not None]
        if self.separator is not None:
            return self.separator.join(there) or None
        return "".join(there) if len(there) == len(texts) else None

    def is_total(self, given: Container[str]) -> bool:
        """True if the formula makes a text of every item that has the `given` fields, as texts or numbers."""
        slots = [piece for piece in self.pieces if isinstance(piece, Slot)]
        sure = [slot.field in given and all(map(_takes_any, slot.formats)) for slot in slots]
        return all(sure) if self.separator is None else any(sure)

    def unread(self, read: Read) -> str | None:
        """Return why to report a missing text: always None, because missing fields are normal."""
        return None

    @property
    def may_be_number(self) -> bool:
        """False if the formula has text around its fields that a number cannot have."""
        return all(set(piece) <= IN_NUMBERS for piece in self.pieces if isinstance(piece, str))

    def body(self) -> Mapping[str, object]:
        """Return the formula as plain values. Formulas with equal values make the same texts."""
        given = self.source if isinstance(self.source, str) else list(self.source)
        return {"formula": given, "tables": {n: dict(t) for n, t in self.tables.items()}, "separator": self.separator}


def join_fields(fields: tuple[str, ...], separator: str) -> Formula:
    """Return a formula that joins the fields an item has. An item without any of them gets no value.

    Raises:
        UserError: when `fields` is empty, or one of them is not a path.
    """
    if not fields:
        raise UserError("nothing to join: expected a list of fields", "join: [name.first, name.last]")
    for name in fields:
        parse_path(name)
    return Formula(fields, tuple(map(Slot, fields)), {}, separator)


def parse_formula(text: str, tables: Tables) -> Formula:
    """Parse a formula such as ``{memberRole:rank}-{memberRole}``; `tables` are the user's own formats.

    Raises:
        UserError: for an unbalanced brace, a field that is no path, an unknown format or an argument that does not fit.
    """
    if taken := [name for name in tables if name in FORMATS]:
        found = f"a table of `map` has the name of a format: {taken[0]!r}"
        raise UserError(found, "give the table another name, here and in `as`")
    pieces: list[str | Slot] = []
    used: dict[str, Mapping[str, str]] = {}
    position = 0
    for piece in re.finditer(PIECE, text):
        if piece.start() != position:
            break
        position = piece.end()
        pieces.append(_parse_slot(piece[1], tables, used) if piece[2] is None else piece[2])
    if position != len(text) or not text:
        found = f"{text!r} is not a formula: expected text with fields in braces, such as {{state}}#{{city}}"
        raise UserError(found, suggest_braces(text) if text else "name a field in braces")
    return Formula(text, tuple(pieces), used)


def _parse_slot(text: str, tables: Tables, used: dict[str, Mapping[str, str]]) -> Slot:
    """Parse the text between two braces. The tables it names are added to `used`."""
    match = FIELD.match(text)
    assert match is not None, "it matches nothing, too"
    name = match[1]
    position = len(name)
    formats: list[Format] = []
    while step := STEP.match(text, position):
        position = step.end()
        formats.append(_parse_format(step, tables))
        if step[1] in tables:
            used[step[1]] = tables[step[1]]
    found = f"{{{text}}} is not a field: expected {{field}} or {{field:format}}, such as {{zip:nospace}}"
    if not name:
        raise UserError(found, "name a field between the braces")
    parse_path(name)
    if position != len(text):
        raise UserError(found, f"write {{{name}}}, or a format behind it, as in {{{name}:upper}}")
    return Slot(name, tuple(formats))


def _parse_format(step: re.Match[str], tables: Tables) -> Format:
    """Parse one format of a slot. A cure repeats the slot, with the right format in it."""
    name, argument = step[1], step[2]
    before, after = step.string[: step.start()], step.string[step.end() :]
    if name in WITH_ARGUMENT:
        return WITH_ARGUMENT[name](argument)
    if name in PLAIN or name in tables:
        if argument is not None:
            cure = f"write {{{before}:{name}{after}}}"
            raise UserError(f"{name} takes no argument, found {name}({argument})", cure)
        return PLAIN[name] if name in PLAIN else partial(_in_table, tables[name])
    known = [*FORMATS, *tables]
    close = get_close_matches(name.lower(), known)
    found = f"no format {name!r}. Known: {', '.join(known)}."
    if not close:
        raise UserError(found, f"use one of these, as in {{{before}:upper{after}}}")
    meant = close[0]
    if meant in EXAMPLES:
        meant = EXAMPLES[meant] if argument is None else f"{meant}({argument})"
    raise UserError(f"{found} Did you mean {close[0]!r}?", f"write {{{before}:{meant}{after}}}")


# Each is a function of the module, with its argument bound: rules that are compiled once are kept in a file.
def _upper(value: AttributeValue) -> str:
    return (read_text(value) or "").upper()


def _lower(value: AttributeValue) -> str:
    return (read_text(value) or "").lower()


def _takes_any(form: Format) -> bool:
    """True if a format makes a text of every text and every number."""
    return form in (_upper, _lower) or (isinstance(form, partial) and form.func is _sharded)


def keeps_order(form: Format) -> bool:
    """True if the texts that a format makes sort in the order of the values."""
    return isinstance(form, partial) and form.func is _padded


def _nospace(value: AttributeValue) -> str:
    return "".join((read_text(value) or "").split())


def _in_table(rows: Mapping[str, str], value: AttributeValue) -> str | None:
    return rows.get(read_text(value) or read_word(value) or "")


def _parse_pad(argument: str | None) -> Format:
    return partial(_padded, _parse_count("pad", argument, PAD_MAX_DIGITS, "digits", EXAMPLES["pad"]))


def _padded(width: int, value: AttributeValue) -> str | None:
    """Zeros before a number, up to `width` digits before the point, so that text sorts as numbers do. A wider number
    stays whole; a negative number does not sort.
    """
    text = read_text(value) or None
    if text is None or ("N" not in value and not DIGITS.fullmatch(text)):
        return None
    before, point, after = text.removeprefix("-").partition(".")
    return ("-" if text.startswith("-") else "") + before.rjust(width, "0") + point + after


def _parse_shard(argument: str | None) -> Format:
    return partial(_sharded, _parse_count("shard", argument, SHARDS_MAX, "shards", EXAMPLES["shard"]))


def _sharded(shards: int, value: AttributeValue) -> str | None:
    text = read_text(value) or None
    return None if text is None else str(compute_stable_hash(text) % shards)


def _parse_date(argument: str | None) -> Format:
    pieces = re.split(r"%(.?)", argument or "", flags=re.DOTALL)
    if len(pieces) == 1:
        found = f"date needs a pattern, such as date(%Y-%m): known are {_list_directives()}"
        raise UserError(found, "write date(%Y-%m), or the like")
    for letter in pieces[1::2]:
        if letter not in DIRECTIVES:
            raise UserError(f"date knows no %{letter}: expected {_list_directives()}", "use one of these")
    return partial(_dated, tuple(pieces))


def _dated(pieces: tuple[str, ...], value: AttributeValue) -> str | None:
    """Formats ISO 8601 text (without an offset: UTC) or a number of seconds since 1970, in UTC."""
    moment = parse_moment(value)
    if moment is None:
        return None
    return "".join(DIRECTIVES[text](moment) if odd % 2 else text for odd, text in enumerate(pieces))


def parse_moment(value: AttributeValue) -> datetime | None:
    """Parse the moment in a value, in UTC: an ISO 8601 text, or a number of seconds since 1970. None for other
    values.
    """
    text = read_text(value) or None
    if text is None:
        return None
    try:
        if "N" in value:
            return EPOCH + timedelta(seconds=math.floor(Decimal(text)))
        if not ISO_DATE.fullmatch(text):  # which fromisoformat would take more of, such as the digits of a timestamp
            return None
        moment = datetime.fromisoformat(text.upper())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


# Written out, because strftime depends on the locale and on the machine.
DIRECTIVES: Final[Mapping[str, Callable[[datetime], str]]] = MappingProxyType(
    {
        "Y": lambda moment: f"{moment.year:04}",
        "m": lambda moment: f"{moment.month:02}",
        "d": lambda moment: f"{moment.day:02}",
        "H": lambda moment: f"{moment.hour:02}",
        "M": lambda moment: f"{moment.minute:02}",
        "S": lambda moment: f"{moment.second:02}",
        "j": lambda moment: f"{moment.timetuple().tm_yday:03}",
        "G": lambda moment: f"{moment.isocalendar().year:04}",
        "V": lambda moment: f"{moment.isocalendar().week:02}",
        "u": lambda moment: f"{moment.isoweekday()}",
        "%": lambda _: "%",
    }
)


def _list_directives() -> str:
    return ", ".join(f"%{letter}" for letter in DIRECTIVES)


def _parse_count(name: str, argument: str | None, most: int, unit: str, example: str) -> int:
    if argument is not None and re.fullmatch(r"[1-9]\d{0,5}", argument, re.ASCII) and int(argument) <= most:
        return int(argument)
    found = f"{name} needs a number of {unit} from 1 to {most}, such as {example}"
    raise UserError(found, f"write {example}, or the like")


PLAIN: Final[Mapping[str, Format]] = MappingProxyType({"upper": _upper, "lower": _lower, "nospace": _nospace})
WITH_ARGUMENT: Final[Mapping[str, Callable[[str | None], Format]]] = MappingProxyType(
    {"pad": _parse_pad, "date": _parse_date, "shard": _parse_shard}
)
EXAMPLES: Final = {"pad": "pad(8)", "date": "date(%Y-%m)", "shard": "shard(10)"}
FORMATS: Final = (*PLAIN, *WITH_ARGUMENT)
