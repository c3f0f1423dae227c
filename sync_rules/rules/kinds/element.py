"""The element of a `collect` rule: a text that is built from the fields of an edge and parsed again to name the edge.

Invariant: an element that is built parses into the values that it was built from. It is parsed
from its end, so that its first field may contain the text between fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sync_rules.model.errors import UserError
from sync_rules.model.numbers import normalize_number
from sync_rules.model.templates import Template, parse_template, read_key_text
from sync_rules.model.values import AttributeValue

Reader = Callable[[str], AttributeValue | None]  # what an edge holds in a field or an attribute


@dataclass(frozen=True, slots=True)
class Element:
    """A template such as `{target}-{memberRole}` for the elements of a set."""

    template: Template

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.template.fields))

    def text(self, read: Reader) -> str | None:
        """Return the text of the element, also if it does not parse into the same values. None if a value is missing,
        empty, or neither text nor number.
        """
        values = self._values(read)
        return None if values is None else self._join_values(values)

    def build(self, read: Reader) -> str | None:
        """Return the element; None if it has no text, or does not parse into the same values."""
        values = self._values(read)
        if values is None:
            return None
        text = self._join_values(values)
        return text if self._split_text(text) == values else None

    def parse(self, text: str) -> dict[str, AttributeValue] | None:
        """Parse an element into its values, all of them as text; None if it does not fit this template."""
        values = self._split_text(text)
        return None if values is None else {field: {"S": value} for field, value in values.items()}

    def _values(self, read: Reader) -> dict[str, str] | None:
        values: dict[str, str] = {}
        for field in self.fields:
            value = read(field)
            text = normalize_number(value["N"]) if value is not None and "N" in value else read_key_text(value)
            if not text:
                return None
            values[field] = text
        return values

    def _join_values(self, values: dict[str, str]) -> str:
        first, *others = self.template.literals
        return first + "".join(values[field] + after for field, after in zip(self.template.fields, others, strict=True))

    def _split_text(self, text: str) -> dict[str, str] | None:
        first, *between, last = self.template.literals
        start, end = len(first), len(text) - len(last)
        if not (text.startswith(first) and text.endswith(last)):
            return None
        values: dict[str, str] = {}
        for field, before in zip(reversed(self.template.fields), (*reversed(between), ""), strict=True):
            found = text.rfind(before, start, end) if before else start
            value = text[found + len(before) : end]
            if found < start or not value or values.setdefault(field, value) != value:
                return None
            end = found
        return values


def parse_element(text: str, cure: str = "name a field of the edge in braces") -> Element:
    """Parse a template such as ``{target}-{memberRole}``. `cure`: for a template without a field.

    Raises:
        UserError: for an unbalanced brace, two fields with nothing between them, or no field at all.
    """
    template = parse_template(text)
    if not template.fields:
        raise UserError(f"{text!r} is the same for every edge", cure)
    return Element(template)
