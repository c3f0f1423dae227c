"""Key templates: how `USER#{user_id}` recognises a key, binds its fields, and is built again from them.

Invariant: a template parses in one way only. A field may not contain the text that follows it, and a key that would not
parse back into the same fields is not built. A key that does not parse is of another entity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Final, Generic, TypeVar

from sync_rules.model.errors import UserError
from sync_rules.model.numbers import normalize_number, parse_number
from sync_rules.model.values import BRACES, AttributeValue

T = TypeVar("T")
Fields = Mapping[str, AttributeValue]
PIECE = r"\{([^{}]*)\}|([^{}]+)"
NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
PADDED = re.compile(r"([^{}:]*):pad\((\d+)\)")
PAD_MAX_DIGITS = 38  # as many as a number has
CASED = re.compile(r"([^{}:]*):(lower|upper)")
CASES: Final[Mapping[str, Callable[[str], str]]] = {"lower": str.lower, "upper": str.upper}
WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]*")
CANONICAL_NUMBER = re.compile(r"0|-?([1-9]\d*(\.\d*[1-9])?|0\.\d*[1-9])")


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed key template of one attribute: literals with a field between each two. Only the first and the last
    literal may be empty. `pads`: the digits to which a number is padded with zeros, so that keys sort. `cases`: the
    case of a field in the key, "lower" or "upper"; the attribute of its name keeps its letters. `whole`: the field's
    name if the attribute is the field itself, as in `{author_id}`, so that it may have any key type.
    """

    text: str
    literals: tuple[str, ...]
    fields: tuple[str, ...]
    pads: tuple[tuple[str, int], ...] = ()
    cases: tuple[tuple[str, str], ...] = ()
    whole: str | None = dataclass_field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole = self.fields[0] if self.literals == ("", "") and not (self.pads or self.cases) else None
        object.__setattr__(self, "whole", whole)  # once: every key that is parsed or built asks

    def is_cased(self, field: str) -> bool:
        """True if the key holds a field in lower or upper case, and its attribute may have other letters."""
        return field in dict(self.cases)

    def parse(self, value: AttributeValue | None) -> dict[str, AttributeValue] | None:
        """Return the fields that the value of a key attribute binds; None if it does not match."""
        if value is None:
            return None
        if self.whole is not None:
            return {self.whole: value}
        text = value.get("S")
        if text is None or not text.startswith(self.literals[0]):
            return None
        bound: dict[str, AttributeValue] = {}
        position = len(self.literals[0])
        for field, after in zip(self.fields, self.literals[1:], strict=True):
            last = after == ""  # only the last field of a template is followed by nothing
            end = len(text) if last else text.find(after, position)
            if end <= position:
                return None
            inner = self._parse_field(field, text[position:end]) if self.pads or self.cases else text[position:end]
            if inner is None:
                return None
            found = {"S": inner}
            if bound.setdefault(field, found) != found:
                return None
            position = end + len(after)
        return bound if position == len(text) else None

    def build(self, fields: Fields, kind: str) -> AttributeValue | None:
        """Build the key attribute of the given type (S, N, B) from these fields; None if a field is missing or does not
        fit.
        """
        if self.whole is not None:
            value = fields.get(self.whole)
            return None if value is None else convert_to_key(value, kind)
        text = self.literals[0]
        for field, after in zip(self.fields, self.literals[1:], strict=True):
            inner = self._inner(field, fields)
            if not inner or (after and after in inner + after[:-1]):
                return None
            text += inner + after
        return {kind: text} if kind == "S" else None

    def _inner(self, field: str, fields: Fields) -> str | None:
        """The text of a field in a key. A padded field is a whole number of no more digits than that."""
        value = fields.get(field)
        digits = dict(self.pads).get(field) if self.pads else None
        if digits is None:
            text = read_key_text(value)
            return text if text is None or not self.cases else self._apply_case(field, text)
        text = normalize_number(value["N"]) if value is not None and "N" in value else read_key_text(value)
        whole = text is not None and WHOLE_NUMBER.fullmatch(text) and len(text) <= digits
        return text.zfill(digits) if text is not None and whole else None

    def _apply_case(self, field: str, text: str) -> str:
        """Return the text of a field in the case (lower or upper) that the key template demands."""
        case = dict(self.cases).get(field)
        return text if case is None else CASES[case](text)

    def _parse_field(self, field: str, text: str) -> str | None:
        """The field in the text of a key, without zeros in front; None for a text that the template does not make."""
        digits = dict(self.pads).get(field)
        if digits is None:
            return text if text == self._apply_case(field, text) else None
        return (text.lstrip("0") or "0") if len(text) == digits and text.isascii() and text.isdecimal() else None

    def prefix(self, fields: Fields) -> str:
        """Return the text that every key with these fields begins with: up to the first field that is not given."""
        text = self.literals[0]
        for field, after in zip(self.fields, self.literals[1:], strict=True):
            inner = self._inner(field, fields)
            if not inner:
                break
            text += inner + after
        return text


def parse_template(text: str, *, pads: bool = False) -> Template:
    """Parse a template such as ``ORDER#{order_id}``. With `pads`, a field may be padded, as in ``V#{version:pad(6)}``,
    or in one case, as in ``EMAIL#{email:lower}``.

    Raises:
        UserError: for an unbalanced brace, a field without a name, or two fields with nothing between them.
    """
    literals, fields, position = [""], list[str](), 0
    padded: dict[str, int] = {}
    cased: dict[str, str] = {}
    for piece in re.finditer(PIECE, text):
        if piece.start() != position:
            break
        position = piece.end()
        if piece[2] is not None:
            literals[-1] += piece[2]
            continue
        name = piece[1]
        if pads:
            name = _strip_form(name, padded, cased)
        if not re.fullmatch(NAME, name):
            found = f"{{{name}}} is not a field: expected a name in braces, such as {{user_id}}"
            raise UserError(found, "write a letter between the braces; then letters, digits, _, - and .")
        if fields and not literals[-1]:
            found = f"{{{fields[-1]}}} and {{{name}}} have no separator: two sources could have one key"
            raise UserError(found, f"put text between them, such as {{{fields[-1]}}}#{{{name}}}")
        fields.append(name)
        literals.append("")
    if position != len(text) or not text:
        found = f"{text!r} is not a key template: expected text with fields in braces, such as USER#{{user_id}}"
        raise UserError(found, suggest_braces(text) if text else "write a text, such as PROFILE")
    return Template(text, tuple(literals), tuple(fields), tuple(padded.items()), tuple(cased.items()))


def suggest_braces(text: str) -> str:
    """Suggest a cure for braces that enclose no fields: two braces on each side, or one that is missing."""
    single = text.replace("{{", "{").replace("}}", "}")
    if single != text and not re.search(r"[{}]", re.sub(BRACES, "", single)):
        return f"write one brace on each side: {single}"
    return "open and close the braces of each field"


def _strip_form(field: str, padded: dict[str, int], cased: dict[str, str]) -> str:
    """The name of a field; its form is added. Raises UserError for a form that cannot be, or a second one."""
    if (given := PADDED.fullmatch(field)) is not None:
        name, digits = given[1], int(given[2])
        if not 1 <= digits <= PAD_MAX_DIGITS or padded.setdefault(name, digits) != digits:
            message = f"{{{field}}} pads to {digits} digits: expected 1 to {PAD_MAX_DIGITS}, always the same"
            raise UserError(message, f"write {{{name}:pad(6)}}")
    elif (given := CASED.fullmatch(field)) is not None:
        name = given[1]
        if cased.setdefault(name, given[2]) != given[2]:
            raise UserError(f"{{{name}}} is in two cases: expected one", f"write {{{name}:lower}}")
    else:
        return field
    if name in padded and name in cased:
        raise UserError(f"{{{name}}} is padded and in one case", f"write {{{name}:pad({padded[name]})}}")
    return name


def read_key_text(value: AttributeValue | None) -> str | None:
    if value is None:
        return None
    text = value.get("S", value.get("N"))
    return text if isinstance(text, str) else None


def convert_to_key(value: AttributeValue, kind: str) -> AttributeValue | None:
    """Return the value as a key attribute of the given type; None if that is impossible. Text from a composite key may
    become a number, and a number text.
    """
    if kind in value:
        return value
    if kind == "N" and CANONICAL_NUMBER.fullmatch(value.get("S", "")):
        return {"N": value["S"]}
    if kind == "S" and "N" in value:
        return {"S": value["N"]}
    return None


PARTITION_KEY_MAX_BYTES = 2048  # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
SORT_KEY_MAX_BYTES = 1024


def is_possible(value: AttributeValue, max_bytes: int) -> bool:
    """True if a key attribute can hold this value: it is not empty, not too long, and a valid number."""
    ((kind, content),) = value.items()
    if kind == "S" and 0 < 4 * len(content) <= max_bytes:  # a character has at most four bytes
        return True
    if kind == "N":
        return parse_number(content) is not None
    return 0 < len(content.encode() if isinstance(content, str) else content) <= max_bytes


def may_overlap(left: Template, right: Template) -> bool:
    """True if a key may match both templates, or if that is unknown."""
    if not left.fields and not right.fields:
        return left.text == right.text
    for one, other in ((left, right), (right, left)):
        if not one.fields:
            return other.parse({"S": one.text}) is not None
    starts = left.literals[0], right.literals[0]
    ends = left.literals[-1], right.literals[-1]
    return (starts[0].startswith(starts[1]) or starts[1].startswith(starts[0])) and (
        ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])
    )


class Beginnings(Generic[T]):
    """A mapping of values by the beginning of a key, "" for any key. For speed, callers look up each length, longest
    first, in their own loops.
    """

    def __init__(self, values: Mapping[str, T]) -> None:
        self.values = values
        self.lengths = tuple(sorted({len(begins) for begins in values}, reverse=True))
