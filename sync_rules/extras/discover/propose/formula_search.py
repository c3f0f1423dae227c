"""Formulas inferred from an item: how a text of the item may be made from its other values.

Invariant: a formula is only a guess from one item; the caller tries it on others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from sync_rules.extras.discover.propose.frames import Column
from sync_rules.model.errors import UserError
from sync_rules.model.values import AttributeValue
from sync_rules.rules.formula import Formula, join_fields, parse_formula, parse_moment

RUN: Final = re.compile(r"[^\W\d_]+|\d+|.", re.DOTALL)
PADDED: Final = re.compile(r"(0\d*)(\.\d+)?")
DATES: Final = (
    "%Y-%m-%d", "%Y-%m", "%Y", "%Y%m%d", "%Y%m", "%m", "%d", "%G-W%V", "%Y/%m/%d", "%Y/%m", "%d.%m.%Y", "%m/%d/%Y",
    "%d/%m/%Y", "%H", "%H:%M", "%Y-%m-%dT%H", "%Y-%j", "%u",
)  # fmt: skip
FORMULAS_MAX: Final = 40  # of an item
STEPS_MAX: Final = 4_000
PIECES_MAX: Final = 12
RENDERED_MAX: Final = 20_000
SECONDS_DIGITS: Final = 9  # of a moment as seconds since 1970, at least


@dataclass(frozen=True)
class FormulaSlot:
    """A column in a formula, with its formats as the rules file spells them: `:upper`."""

    column: Column
    formats: str = ""

    @property
    def text(self) -> str:
        return f"{{{self.column.path}{self.formats}}}"


@dataclass(frozen=True)
class Guess:
    """A formula: texts and slots. With a separator, its present slots are joined."""

    pieces: tuple[str | FormulaSlot, ...]
    separator: str | None = None

    @property
    def slots(self) -> tuple[FormulaSlot, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, FormulaSlot))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it reads, each once."""
        return tuple(dict.fromkeys(slot.column for slot in self.slots))

    @property
    def letters(self) -> int:
        """The letters and digits that stand in it as they are."""
        return sum(one.isalnum() for piece in self.pieces if isinstance(piece, str) for one in piece)

    @property
    def text(self) -> str:
        return "".join(piece if isinstance(piece, str) else piece.text for piece in self.pieces)

    @property
    def pattern(self) -> str:
        """The form of what it makes of any values, as a regular expression."""
        forms = {"lower": r"[^A-Z]*", "upper": r"[^a-z]*", "nospace": r"\S*"}
        return "".join(
            re.escape(piece) if isinstance(piece, str) else forms.get(piece.formats.rpartition(":")[2], ".*")
            for piece in self.pieces
        )

    @property
    def rule(self) -> dict[str, object]:
        """The options of a derive rule."""
        if self.separator is None:
            return {"as": self.text}
        fields: dict[str, object] = {"join": [slot.column.path for slot in self.slots]}
        return fields if self.separator == " " else {**fields, "separator": self.separator}

    @cached_property
    def formula(self) -> Formula | None:
        """The formula as the product runs it; None for one that no rules file can have."""
        try:
            if self.separator is not None:
                return join_fields(tuple(slot.column.path for slot in self.slots), self.separator)
            return parse_formula(self.text, {})
        except UserError:
            return None

    def join_slots(self) -> Guess | None:
        """The same slots joined by the text between them, if it is the same between each two."""
        between = self.pieces[1::2]
        plain = between and len(self.pieces) % 2 and all(isinstance(one, str) for one in between)
        slots = self.pieces[::2]
        if (
            not plain
            or len(set(between)) > 1
            or not all(isinstance(one, FormulaSlot) and not one.formats for one in slots)
        ):
            return None
        return Guess(self.pieces, str(between[0]))


def list_guesses(text: str, values: Mapping[Column, AttributeValue]) -> list[Guess]:
    """List the formulas that make a text from some values, those that explain most of it first."""
    runs = [match.span() for match in RUN.finditer(text)]
    starts = {start for start, _ in runs}
    ends = {end for _, end in runs}
    rendered: dict[str, list[FormulaSlot]] = {}
    for column, value in values.items():
        for shown, formats in _list_renderings(value):
            if shown and shown in text:
                rendered.setdefault(shown, []).append(FormulaSlot(column, formats))
    found: list[Guess] = []
    steps = 0

    def walk(position: int, pieces: tuple[str | FormulaSlot, ...]) -> None:
        nonlocal steps
        steps += 1
        if steps > STEPS_MAX or len(found) >= FORMULAS_MAX or len(pieces) > PIECES_MAX:
            return
        if position == len(text):
            if any(isinstance(piece, FormulaSlot) for piece in pieces) and not any(
                _has_braces(piece) for piece in pieces
            ):
                found.append(Guess(pieces))
            return
        for end, slot in _list_slots(text, position, ends, rendered, values):
            walk(end, (*pieces, slot))
        end = next(stop for start, stop in runs if start <= position < stop)
        more = text[position:end]
        joined = (*pieces[:-1], pieces[-1] + more) if pieces and isinstance(pieces[-1], str) else (*pieces, more)
        walk(end, joined)

    if starts:
        walk(0, ())
    return sorted(found, key=lambda one: (one.letters, len(one.pieces)))


def _has_braces(piece: str | FormulaSlot) -> bool:
    """True for a text that a rules file would take for a field or a variable."""
    return isinstance(piece, str) and bool({"{", "}"} & {*piece})


def _list_slots(
    text: str,
    position: int,
    ends: set[int],
    rendered: Mapping[str, Sequence[FormulaSlot]],
    values: Mapping[Column, AttributeValue],
) -> Iterator[tuple[int, FormulaSlot]]:
    """The slots that a text may go on with, the longest first."""
    for shown in sorted(rendered, key=len, reverse=True):
        if text.startswith(shown, position) and position + len(shown) in ends:
            for slot in rendered[shown]:
                yield position + len(shown), slot
    padded = PADDED.match(text, position)
    if padded is None:
        return
    for column, value in values.items():
        before, *rest = value.get("N", value.get("S", "")).split(".", 1)
        for digits, after in {(padded[1], padded[2] or ""), (padded[1], "")}:
            same = before.isascii() and before.isdecimal() and digits.lstrip("0") == before.lstrip("0")
            if same and len(before) < len(digits) and rest == ([after[1:]] if after else []):
                yield position + len(digits) + len(after), FormulaSlot(column, f":pad({len(digits)})")


def may_fill(value: AttributeValue, text: str) -> bool:
    """Return True if a text contains a value in some form."""
    return any(shown and shown in text for shown, _ in _list_renderings(value))


def _list_renderings(value: AttributeValue) -> Sequence[tuple[str, str]]:
    ((kind, text),) = value.items()
    return _render(kind, str(text))


@lru_cache(maxsize=RENDERED_MAX)
def _render(kind: str, text: str) -> tuple[tuple[str, str], ...]:
    value: AttributeValue = {kind: text}
    shown = {text: ""}
    if kind == "S":
        packed = "".join(text.split())
        for made, formats in (
            (text.lower(), ":lower"), (text.upper(), ":upper"), (packed, ":nospace"),
            (packed.lower(), ":nospace:lower"), (packed.upper(), ":nospace:upper"),
        ):  # fmt: skip
            shown.setdefault(made, formats)
    if kind != "N" or len(text.partition(".")[0]) >= SECONDS_DIGITS:
        moment = parse_moment(value)
        if moment is not None:
            for pattern in DATES:
                formula = parse_formula("{x:date(" + pattern + ")}", {})
                shown.setdefault(formula.text(lambda _: value) or "", f":date({pattern})")
    return tuple(shown.items())
