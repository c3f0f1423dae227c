"""Expiries: how `ttl(created_at, 60d)` makes the attribute of Time to Live from a date of the same item.

Invariant: the number follows from the date alone. A date that cannot be read gives no number, and is reported, because
its item never expires.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sync_rules.model.durations import parse_duration
from sync_rules.model.errors import UserError
from sync_rules.model.numbers import read_text
from sync_rules.model.values import TYPES, parse_path
from sync_rules.rules.formula import EPOCH, Read, parse_moment

EXPIRY = re.compile(r"\s*ttl\s*\((.*)\)\s*", re.DOTALL)
ARGUMENTS = re.compile(r'\s*((?:"[^"]*"|[^",\s{}])+)\s*,\s*(\w+)\s*')
DURATION: Final = re.compile(r"\d+[smhd]", re.ASCII)
TURNED: Final = re.compile(rf'\s*({DURATION.pattern})\s*,\s*(?!\d)((?:"[^"]*"|[^",\s{{}}])+)\s*', re.ASCII)
MEANT: Final = "expected a date and a duration, such as ttl(created_at, 60d)"
TIME: Final = "expected an ISO 8601 date and time, or seconds since 1970"


@dataclass(frozen=True)
class Expiry:
    """A formula for Time to Live: the moment in `field` plus `seconds`, as seconds since 1970."""

    field: str
    seconds: int
    type = "N"
    may_be_number = True

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)

    def text(self, read: Read) -> str | None:
        """Return the number in digits; None if the field is missing, or has no date."""
        value = read(self.field)
        moment = None if value is None else parse_moment(value)
        return None if moment is None else str((moment - EPOCH) // timedelta(seconds=1) + self.seconds)

    def is_total(self, given: object) -> bool:
        """True if the formula makes a number of every item. It never does, because not every text is a date."""
        return False

    def unread(self, read: Read) -> str | None:
        """Return why a field with a value gives no number, without the value; None if it gives a number, or has no
        value.
        """
        value = read(self.field)
        if value is None or "NULL" in value or self.text(read) is not None:
            return None
        found = TYPES[next(iter(value))]
        return f"{self.field} is a {found}{' that is not a time' if read_text(value) is not None else ''}: {TIME}"

    def body(self) -> Mapping[str, object]:
        """Return the expiry as plain values. Expiries with equal values make the same numbers."""
        return {"ttl": self.field, "seconds": self.seconds}


def is_expiry(text: str) -> bool:
    """True if a formula is meant as an expiry."""
    return EXPIRY.fullmatch(text) is not None


def parse_expiry(text: str) -> Expiry:
    """Parse an expiry such as ``ttl(created_at, 60d)``.

    Raises:
        UserError: when it has other arguments, a field that is no path, or a duration that is none.
    """
    inside = EXPIRY.fullmatch(text)
    found = ARGUMENTS.fullmatch(inside[1]) if inside else None
    turned = TURNED.fullmatch(inside[1]) if inside else None
    if turned is not None:
        raise UserError(f"{text!r} is not an expiry: {MEANT}", f"write the date first: ttl({turned[2]}, {turned[1]})")
    if found is None:
        raise UserError(f"{text!r} is not an expiry: {MEANT}", "name one attribute and one duration")
    parse_path(found[1])
    try:
        seconds = parse_duration(found[2])
    except UserError as error:
        if DURATION.fullmatch(found[1]):
            raise UserError(error.found, "name one attribute and one duration") from error
        raise UserError(error.found, f"write ttl({found[1]}, 60d), or the like") from error
    return Expiry(found[1], seconds)
