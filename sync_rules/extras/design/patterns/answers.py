"""The answers of the prover: the requests of a pattern, in order, or why no request serves it, with cures.

Invariant: a step holds all that a client needs to make the request, except the values, which come with each call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from sync_rules.extras.design.patterns.declarations import Pattern, RangeForm
from sync_rules.extras.design.patterns.key_makers import Field, Maker
from sync_rules.model.entities import Entity, Index
from sync_rules.model.sizes import count_read_units

Request = Literal["GetItem", "BatchGetItem", "Query", "SearchVectors", "PutItem", "UpdateItem", "DeleteItem"]
Form = Literal["equals"] | RangeForm
RESPONSE_MAX_BYTES: Final = (
    1_048_576  # Query; https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.html
)
BATCH_KEYS_MAX: Final = (
    100  # BatchGetItem, of 16 MB: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
)
SHOWN: Final = {"at_least": ">=", "at_most": "<="}


def count_batches(items: int | None) -> int:
    """Return the number of BatchGetItems for this number of keys; 1 if the number is unknown."""
    return 1 if items is None else max(1, math.ceil(items / BATCH_KEYS_MAX))


@dataclass(frozen=True)
class Term:
    """One term of a key condition: a key attribute, its maker, and the comparison. `given`: the fields that are known.
    `ranged`: the field whose range comes with the call, after the text that `given` makes. `text`: a text that the
    pattern itself gives.
    """

    maker: Maker
    form: Form
    given: tuple[str, ...] = ()
    ranged: Field | None = None
    text: str | None = None

    @property
    def condition_text(self) -> str:
        """The term in the notation of key conditions."""
        name, begins = self.maker.attribute.name, self.maker.beginning(self.given)
        if self.ranged is not None and not self.maker.plain and self.form != "begins_with":
            return f"{name} {self._format_range(begins, self.ranged.name)}"
        if self.text is not None:
            value = self.text
        elif self.form == "equals":
            value = self.maker.text if self.maker.whole(self.given) else begins
        else:
            value = begins + (self.ranged.placeholder if self.ranged is not None else "")
        if self.form == "begins_with":
            return f"begins_with({name}, {value})"
        if self.form == "between" and self.ranged is not None:
            return f"{name} between {{{self.ranged.name} from}} and {{{self.ranged.name} to}}"
        return f"{name} {SHOWN.get(self.form, '=')} {value}"

    def _format_range(self, begins: str, field: str) -> str:
        """A range within a longer text. `~` is the greatest letter: texts that go on after the field are less."""
        goes_on = not (isinstance(self.maker.parts[-1], Field) and self.maker.parts[-1].name == field)
        both = self.form == "between"
        field_at = [one.name if isinstance(one, Field) else "" for one in self.maker.parts].index(field)
        after = self.maker.parts[field_at + 1] if goes_on else ""
        after = after if isinstance(after, str) else ""
        least = "" if self.form == "at_most" else f"{{{field} from}}" if both else f"{{{field}}}"
        most = (
            "~"
            if self.form == "at_least"
            else (f"{{{field} to}}" if both else f"{{{field}}}") + (after + "~") * goes_on
        )
        if not begins and self.form != "between":
            return f">= {least}" if self.form == "at_least" else f"<= {most}"
        return f"between {begins}{least} and {begins}{most}"


@dataclass(frozen=True)
class ProvedRequest:
    """One request, or a request for each page, chunk or item of the step before. `items` is the number of items per
    page, `size_bytes` their size; None: not stated. `requests`: the number of requests for one page, as far as
    known. `projects`: the requested attributes, None for all. `follows`: the origin of a later step's keys. `fixed`:
    the fields that the pattern itself gives, as texts. `fetches`: a local index reads from the table what it does
    not project. `renames`: replacements of fields in the displayed condition. `beside`: other entities whose items
    it finds.
    """

    request: Request
    entity: Entity
    index: Index | None = None
    terms: tuple[Term, ...] = ()
    backward: bool = False
    limit: int | None = None
    projects: tuple[str, ...] | None = None
    filters: str = ""
    fetches: bool = False
    renames: tuple[tuple[str, str], ...] = ()
    consistent: bool = False
    follows: str = ""
    fixed: tuple[tuple[str, str], ...] = ()
    requests: int = 1
    items: int | None = None
    size_bytes: int | None = None
    beside: tuple[Entity, ...] = ()

    @property
    def writes(self) -> bool:
        """True if the request is a PutItem, UpdateItem or DeleteItem."""
        return self.request in ("PutItem", "UpdateItem", "DeleteItem")

    @property
    def units(self) -> float | None:
        """The read units of one page; None for a write, or if number or size of the items is not stated."""
        if self.writes:
            return None
        if self.request == "SearchVectors":
            return 0  # it is billed by the bytes that it searches
        if self.request == "GetItem" or (self.request == "Query" and self.items == 0):
            return None if self.size_bytes is None else count_read_units(self.size_bytes, consistent=self.consistent)
        if self.items is None or self.size_bytes is None:
            return None
        if self.request == "BatchGetItem":
            return self.items * count_read_units(self.size_bytes, consistent=self.consistent)
        each = count_read_units(math.ceil(self.items * self.size_bytes / self.requests), consistent=self.consistent)
        fetched = self.items * count_read_units(self.size_bytes, consistent=self.consistent) if self.fetches else 0
        return self.requests * each + fetched

    @property
    def place(self) -> str:
        """The requested table or index."""
        return self.entity.table.name + ("" if self.index is None else f"/{self.index.name}")

    @property
    def condition(self) -> str:
        if self.follows:
            return self.follows
        text = " and ".join(term.condition_text for term in self.terms)
        for shown, value in self.renames:
            text = text.replace(shown, value)
        return text

    @property
    def partition(self) -> str:
        """The partition key, if it is the same in every call; else ""."""
        count = 1 if self.index is None else len(self.index.partition)
        terms = self.terms[:count]
        given = {name for name, _ in self.fixed}
        if self.follows or any(set(term.maker.fields) - given for term in terms):
            return ""
        return replace(self, terms=terms).condition


@dataclass(frozen=True)
class Cure:
    """One change of the rules file that serves a pattern: a title, its cost, and entries to merge into the file, by
    section.
    """

    title: str
    price: str
    entries: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class PatternUse:
    """The parts of the file that a request uses: attributes by entity (None: all), indexes by table, and rules."""

    attributes: frozenset[tuple[str, str | None]] = frozenset()
    indexes: frozenset[tuple[str, str]] = frozenset()
    rules: frozenset[str] = frozenset()

    def __or__(self, other: PatternUse) -> PatternUse:
        return PatternUse(self.attributes | other.attributes, self.indexes | other.indexes, self.rules | other.rules)


@dataclass(frozen=True)
class PatternAnswer:
    """The requests that serve a pattern, or the reason why no request does. `remarks` describe costs and omissions of
    the requests.
    """

    pattern: Pattern
    steps: tuple[ProvedRequest, ...] = ()
    reason: str = ""
    cures: tuple[Cure, ...] = ()
    remarks: tuple[str, ...] = ()
    use: PatternUse = field(default_factory=PatternUse)

    @property
    def is_served(self) -> bool:
        return bool(self.steps)

    @property
    def requests(self) -> int:
        return sum(step.requests for step in self.steps)

    @property
    def units(self) -> float | None:
        """The read units of one page; None if unknown."""
        each = [step.units for step in self.steps]
        return None if None in each else sum(units for units in each if units is not None)

    def add_remarks(self, *texts: str) -> PatternAnswer:
        return replace(self, remarks=(*self.remarks, *(text for text in texts if text)))


def merge_entries(data: Mapping[str, Any], entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rules file's values with a cure's entries: maps are merged, any other value is replaced."""
    made = dict(data)
    for name, value in entries.items():
        before = made.get(name)
        made[name] = merge_entries(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return made


def list_used_indexes(steps: tuple[ProvedRequest, ...]) -> Iterator[tuple[str, str]]:
    """Yield the indexes that requests use, each with its table."""
    for step in steps:
        if step.index is not None:
            yield step.entity.table.name, step.index.name
