"""Make the key condition of a step for given values, and the check that makes it exact.

Invariant: the condition finds every requested item; the check drops every other item. A field inside a composite key is
compared as the key has it: as text, formatted as the rule formats it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sync_rules.extras.design.patterns.answers import ProvedRequest, Term
from sync_rules.extras.design.patterns.key_makers import AFTER_ALL, Field, Maker
from sync_rules.extras.design.run.arguments import CallValues
from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import KeyConditions
from sync_rules.model.templates import (
    PARTITION_KEY_MAX_BYTES,
    SORT_KEY_MAX_BYTES,
    Template,
    convert_to_key,
    is_possible,
)
from sync_rules.model.values import AttributeValue, Item
from sync_rules.read.key_range import KeyRange
from sync_rules.rules.formula import Formula

Check = Callable[[Item], bool]


@dataclass(frozen=True)
class CallCondition:
    """The key condition of one call. `conditions` is None if no item can have such a key."""

    conditions: KeyConditions | None
    within: KeyRange | None = None


NOTHING = CallCondition(None)


def make_condition(step: ProvedRequest, given: CallValues) -> CallCondition:
    """Make the condition for these values. Raises UserError for a range that ends before it begins."""
    equals: list[tuple[str, AttributeValue]] = []
    begins: tuple[str, str] | None = None
    within: KeyRange | None = None
    partition = (step.entity.table.partition,) if step.index is None else step.index.partition
    for term in step.terms:
        name = term.maker.attribute.name
        if term.text is not None and term.form == "begins_with":
            begins = (name, term.text)
        elif term.text is not None:
            within = KeyRange(name, {"S": term.text})
        elif term.form == "equals":
            value = term.maker.value(given.fields)
            most = PARTITION_KEY_MAX_BYTES if term.maker.attribute in partition else SORT_KEY_MAX_BYTES
            if value is None or not is_possible(value, most):
                return NOTHING
            equals.append((name, value))
        else:
            prefix = term.maker.prefix(given.fields)
            if prefix is None or len(prefix.encode()) > SORT_KEY_MAX_BYTES:
                return NOTHING
            found = (prefix, None) if term.ranged is None else _make_range(term, term.ranged, prefix, given)
            if found is None:
                return NOTHING
            beginning, within = found
            begins = (name, beginning) if beginning else None
    return CallCondition(KeyConditions(tuple(equals), begins), within)


def make_key(step: ProvedRequest, given: CallValues) -> ItemKey | None:
    """Make the key of the item that a GetItem reads; None if no item can have it."""
    found = make_condition(step, given).conditions
    if found is None:
        return None
    return step.entity.table.key_of(dict(found.equals))


# ---------------------------------------------------------------- ranges
def _make_range(term: Term, ranged: Field, prefix: str, given: CallValues) -> tuple[str, KeyRange | None] | None:
    """The beginning, or the range, of a sort key; None where no key is in it."""
    maker = term.maker
    if _is_native(maker):
        if given.beginning is not None:
            return given.beginning["S"], None
        ends = [
            None if end is None else convert_to_key(end, maker.attribute.type) for end in (given.least, given.greatest)
        ]
        if any(made is None for made, end in zip(ends, (given.least, given.greatest), strict=True) if end is not None):
            return None
        if any(end is not None and not is_possible(end, SORT_KEY_MAX_BYTES) for end in ends):
            return None
        return "", KeyRange(maker.attribute.name, *ends)
    bounds = _Bounds.of(maker, ranged, given)
    if bounds is None:
        return None
    if bounds.beginning is not None:
        whole = prefix + bounds.beginning
        return (whole, None) if len(whole.encode()) <= SORT_KEY_MAX_BYTES else None
    least = prefix if bounds.least is None else prefix + bounds.least
    greatest = _find_greatest(maker, ranged, prefix, bounds)
    made = [None if not text else {"S": text} for text in (_cut(least), greatest)]
    return ("", KeyRange(maker.attribute.name, *made)) if any(made) else ("", None)


def _is_native(maker: Maker) -> bool:
    """True if the key attribute is the field itself, so that DynamoDB compares it."""
    return maker.source is None or (isinstance(maker.source, Template) and maker.source.whole is not None)


@dataclass(frozen=True)
class _Bounds:
    """The ends of a range as texts within a composite key."""

    least: str | None
    greatest: str | None
    beginning: str | None

    @classmethod
    def of(cls, maker: Maker, ranged: Field, given: CallValues) -> _Bounds | None:
        """The ends; None where one cannot be in such a key."""
        texts: list[str | None] = []
        for end in (given.least, given.greatest, given.beginning):
            text = None if end is None else maker.inner(ranged, end)
            if end is not None and text is None and end is not given.beginning:
                return None
            texts.append(text)
        least, greatest, beginning = texts
        if least is not None and greatest is not None and least > greatest:
            raise UserError(f"the range of {ranged.name!r} ends before it begins")
        return cls(least, greatest, (beginning or "") if given.beginning is not None else None)

    def hold(self, text: str) -> bool:
        """True for a text in the range."""
        if self.beginning is not None:
            return text.startswith(self.beginning)
        return (self.least is None or self.least <= text) and (self.greatest is None or text <= self.greatest)


def _find_greatest(maker: Maker, ranged: Field, prefix: str, bounds: _Bounds) -> str | None:
    """The text that no key of the range exceeds; None: no such end is needed.

    Where the key goes on after the field, a value that the greatest one begins with may come after it: with `#` behind
    the field, A! comes before A in keys, though A is less. So the end is that of the furthest of these.
    """
    top = bounds.greatest
    if top is None:
        return _find_text_beyond(prefix)
    after = _find_text_after(maker, ranged)
    if after is None:
        return _cut(prefix + top, up=True)
    least = bounds.least or ""
    beginnings = [top] if ranged.padded else [top[:end] for end in range(1, len(top) + 1) if top[:end] >= least]
    ends = [_find_text_beyond(prefix + one + after) for one in beginnings or [top]]
    return None if None in ends else max(end for end in ends if end is not None)


def _find_text_after(maker: Maker, one: Field) -> str | None:
    """The text that follows a field in a key attribute, "" where another field does; None at the end."""
    at = [isinstance(part, Field) and part.name == one.name for part in maker.parts].index(True)
    rest = maker.parts[at + 1 :]
    if not rest:
        return None
    return rest[0] if isinstance(rest[0], str) else ""


def _find_text_beyond(text: str) -> str | None:
    """The least text that is greater than all that begin with this one; None without one. DynamoDB compares texts by
    their UTF-8 bytes, and so by code points.
    """
    text = text.rstrip(AFTER_ALL)
    if not text:
        return None
    following = ord(text[-1]) + 1
    surrogates = range(0xD800, 0xE000)  # no characters
    return _cut(text[:-1] + chr(surrogates.stop if following in surrogates else following), up=True)


def _cut(text: str, *, up: bool = False) -> str:
    """A text that fits into a sort key, and is no greater than the given one, or no less if `up`."""
    if len(text.encode()) <= SORT_KEY_MAX_BYTES:
        return text
    room = SORT_KEY_MAX_BYTES - len(AFTER_ALL.encode())
    short = text.encode()[:room].decode(errors="ignore")
    return short + AFTER_ALL if up else short


# ---------------------------------------------------------------- exactness
def make_check(step: ProvedRequest, given: CallValues) -> Check:
    """Make the check of a row: its entity, and the fields that a composite key holds."""
    entity, checks = step.entity, [*_list_checks(step, given)]
    entities = (entity, *step.beside)

    def holds(row: Item) -> bool:
        key = entity.table.key_of(row)
        return key is not None and any(one.has(key) for one in entities) and all(check(row) for check in checks)

    return holds


def _list_checks(step: ProvedRequest, given: CallValues) -> Iterator[Check]:
    for term in step.terms:
        formula = isinstance(term.maker.source, Formula)
        if (term.form == "equals" and not formula) or term.text is not None or _is_native(term.maker):
            continue
        if isinstance(term.maker.source, Template):
            yield _make_form_check(term.maker.source, term.maker.attribute.name)
        fields = [part for part in term.maker.parts if isinstance(part, Field) and part.name in term.given]
        for one in fields:
            text = term.maker.inner(one, given.fields[one.name])
            yield _make_equal_check(step.entity, term.maker, one, text)
        if term.ranged is not None:
            bounds = _Bounds.of(term.maker, term.ranged, given)
            if bounds is not None:
                yield _make_range_check(step.entity, term, term.ranged, bounds, term.maker.prefix(given.fields) or "")


def _make_form_check(template: Template, name: str) -> Check:
    return lambda row: template.parse(row.get(name)) is not None


def _make_equal_check(entity: Entity, maker: Maker, one: Field, text: str | None) -> Check:
    def check(row: Item) -> bool:
        found = _find_text(entity, maker, one, row)
        return found is None or found == text

    return check


def _make_range_check(entity: Entity, term: Term, one: Field, bounds: _Bounds, prefix: str) -> Check:
    def check(row: Item) -> bool:
        found = _find_text(entity, term.maker, one, row)
        if found is None:  # the row does not show the field: it ends where the text that follows it begins
            text = str(row.get(term.maker.attribute.name, {}).get("S", ""))
            after = _find_text_after(term.maker, one)
            found = text[len(prefix) :].partition(after)[0] if after else text[len(prefix) :]
        return bounds.hold(found)

    return check


def _find_text(entity: Entity, maker: Maker, one: Field, row: Item) -> str | None:
    """The text that a field has in a key attribute of a row; None where a row does not say so."""
    if isinstance(maker.source, Template):
        found = (maker.source.parse(row.get(maker.attribute.name)) or {}).get(one.name)
        return None if found is None else maker.inner(one, found)
    assert isinstance(maker.source, Formula), "any other key attribute is compared by DynamoDB"
    value = entity.ref(one.name).read(row)
    return None if value is None else maker.inner(one, value)


def list_formula_fields(step: ProvedRequest) -> tuple[str, ...]:
    """List the fields, apart from the key, that the check reads if rows show them: those of formulas."""
    formulas = (term for term in step.terms if isinstance(term.maker.source, Formula))
    return tuple(dict.fromkeys(name for term in formulas for name in term.maker.fields))
