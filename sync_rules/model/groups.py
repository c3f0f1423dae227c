"""The groups of a roll-up: fields of a parent's key that are made from an item, and not stored on it.

Invariant: the groups of an item follow from the item alone. A text that is not a time in UTC is in no group, because
its first characters could name a day of another time zone.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Final

from sync_rules.model.entities import Ref
from sync_rules.model.lookups import Link
from sync_rules.model.values import AttributeValue, Item, get, list_elements, replace_path

HOUR_TO_SECOND: Final = r"([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)([.,]\d+)?)?"
GROUPS_MAX: Final = 100  # of an item in one rule: each takes two actions, and 100 fill two transactions
UTC_TIME: Final = re.compile(rf"(\d{{4}}-\d\d-\d\d)T{HOUR_TO_SECOND}(Z|[+]00:00)", re.ASCII)


@dataclass(frozen=True)
class Beginning(Ref):
    """The first characters of a time in UTC, such as 2026-11-27T09:31:33Z."""

    characters: int = 0

    @property
    def body(self) -> object:
        return ("first", self.characters, self.path, *([self.field] if self.template else []))

    def within(self, value: AttributeValue | None) -> AttributeValue | None:
        text = (super().within(value) or {}).get("S", "")
        return {"S": text[: self.characters]} if is_utc_time(text) else None

    def find_fault(self, value: AttributeValue | None) -> str:
        return "NotATime" if value is not None and self.within(value) is None else ""


@dataclass(frozen=True)
class Constant(Ref):
    """The same text for every item. `path`: an attribute of the key, which every item has."""

    text: str = ""

    @property
    def body(self) -> object:
        return ("constant", self.text)

    def within(self, _value: AttributeValue | None) -> AttributeValue | None:
        return {"S": self.text}


@dataclass(frozen=True)
class Each(Ref):
    """Each element of a list or set, or with `separator` each part of a text: an item is in one group for each."""

    separator: str = ""

    @property
    def body(self) -> object:
        return ("each", self.path, *([self.separator] if self.separator else []))

    @property
    def types(self) -> tuple[str, ...]:
        """The types of values that have elements, or name none."""
        return ("S", "NULL") if self.separator else ("L", "SS", "NS", "BS", "NULL")

    def list_elements(self, item: Item) -> list[AttributeValue]:
        value = get(item, self.path)
        if not self.separator:
            return [*list_elements(value)]
        return [{"S": part} for part in value["S"].split(self.separator)] if value is not None and "S" in value else []

    def find_fault(self, value: AttributeValue | None) -> str:
        return "NoParentKey" if value is not None and not value.keys() & {"S", "N", "NULL"} else ""


def find_list(link: Link) -> Each | None:
    """Return the list, set or text whose elements name groups; None for a link that names one group."""
    return next((ref for _, ref in link if isinstance(ref, Each)), None)


def list_views(link: Link, item: Item) -> list[Item]:
    """List the item once for each group that it names, with one element in place of its list. Without `each`, list the
    item itself.
    """
    each = find_list(link)
    return [item] if each is None else [replace_path(item, each.path, one) for one in each.list_elements(item)]


def is_utc_time(text: str) -> bool:
    """True for a text with a date and a time of ISO 8601, in UTC and the extended form: 2026-11-27T09:31:33Z."""
    with suppress(ValueError):
        return (found := UTC_TIME.fullmatch(text)) is not None and bool(date.fromisoformat(found[1]))
    return False
