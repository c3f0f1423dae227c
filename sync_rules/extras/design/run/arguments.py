"""Check the arguments of a call of a pattern, by name, and make raw values of them.

Invariant: every argument is used, or it is an error. No message has a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sync_rules.extras.design.patterns.declarations import GetPattern, GraphPattern, Range, TreePattern
from sync_rules.model.errors import UserError
from sync_rules.model.values import TYPES, AttributeValue
from sync_rules.read.reader import Reader
from sync_rules.rules.ruleset import Rules

KEY_TYPES: Final = frozenset("SNB")
PAIR: Final = 2
Readable = GetPattern | GraphPattern | TreePattern


@dataclass(frozen=True)
class CallValues:
    """The raw values of a call: of fields, and of the ends of the pattern's range."""

    fields: Mapping[str, AttributeValue] = field(default_factory=dict)
    least: AttributeValue | None = None
    greatest: AttributeValue | None = None
    beginning: AttributeValue | None = None

    def rename_fields(self, names: Mapping[str, str]) -> CallValues:
        """Return the same values, with fields under the names of a mirror."""
        fields = {names.get(name, name): value for name, value in self.fields.items()}
        return CallValues(fields, self.least, self.greatest, self.beginning)


def require(pattern: str, expected: Sequence[str], found: Iterable[str]) -> None:
    """Raise UserError unless the names of arguments are exactly the expected ones."""
    names = [*found]
    missing = [name for name in expected if name not in names]
    surplus = [name for name in names if name not in expected]
    if not missing and not surplus:
        return
    parts = [f"expected {' and '.join(expected) or 'no arguments'}"]
    parts += [f"missing: {', '.join(missing)}"] if missing else []
    parts += [f"unknown: {', '.join(surplus)}"] if surplus else []
    raise UserError(f"pattern {pattern}: {'; '.join(parts)}")


def list_arguments(rules: Rules, pattern: Readable) -> tuple[tuple[str, ...], Range | None]:
    """Return the names of a pattern's arguments, and its range."""
    match pattern:
        case GetPattern():
            return pattern.by, pattern.within
        case GraphPattern():
            return rules.entities[pattern.start].identity, None
        case TreePattern():
            return rules.entities[pattern.entity].identity, None


def parse_call(rules: Rules, reader: Reader, asked: Readable, arguments: Mapping[str, Any]) -> CallValues:
    """Parse the arguments of a call into raw values.

    Raises:
        UserError: if an argument is missing or unknown, or cannot be part of a key.
    """
    pattern = asked.name
    fields, within = list_arguments(rules, asked)
    require(pattern, (*fields, *([within.attribute] if within is not None else ())), arguments)
    equal = {name: _make_raw(pattern, reader, name, arguments[name]) for name in fields}
    if within is None:
        return CallValues(equal)
    name, value = within.attribute, arguments[within.attribute]
    if within.form == "between":
        if not isinstance(value, tuple | list) or len(value) != PAIR:
            found = f"{len(value)} values" if isinstance(value, tuple | list) else f"one {type(value).__name__}"
            raise UserError(f"pattern {pattern}: {name}: expected both ends, (least, greatest); found {found}")
        least, greatest = (_make_raw(pattern, reader, name, end) for end in value)
        if least.keys() != greatest.keys():
            kinds = " and ".join(TYPES[kind] for end in (least, greatest) for kind in end)
            raise UserError(f"pattern {pattern}: {name}: expected two ends of one type; found {kinds}")
        return CallValues(equal, least, greatest)
    end = _make_raw(pattern, reader, name, value)
    if within.form == "begins_with":
        if "S" not in end:
            raise UserError(f"pattern {pattern}: {name}: expected a text, the beginning of others")
        return CallValues(equal, beginning=end)
    return CallValues(equal, least=end) if within.form == "at_least" else CallValues(equal, greatest=end)


def _make_raw(pattern: str, reader: Reader, name: str, value: Any) -> AttributeValue:
    raw = reader.raw_attributes({name: value}, (name,))[name]
    kinds = [*raw]
    if len(kinds) != 1 or kinds[0] not in KEY_TYPES:
        found = TYPES.get(kinds[0], "something else") if kinds else "nothing"
        raise UserError(
            f"pattern {pattern}: {name}: expected a text, a number or binary, as keys have; found a {found}"
        )
    return raw
