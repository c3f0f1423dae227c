"""Key attributes as the rules file makes them, and how much of them some fields determine.

Invariant: a maker assumes no more than the file states. An attribute without a template and without a rule is the field
of its own name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sync_rules.model.entities import Entity, KeyAttribute
from sync_rules.model.templates import PIECE, Template, convert_to_key, read_key_text
from sync_rules.model.values import AttributeValue
from sync_rules.rules.formula import PLAIN, Formula, Slot, keeps_order
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.ruleset import Rules

AFTER_ALL: Final = "\U0010ffff"  # the greatest letter there is: texts are compared by their UTF-8 bytes


@dataclass(frozen=True)
class Field:
    """A field within a key attribute; `slot` if a rule formats it."""

    name: str
    slot: Slot | None = None
    padded: int | None = None
    form: str = ""  # the formats, as the file writes them

    @property
    def placeholder(self) -> str:
        """The field as the file writes it."""
        return f"{{{self.name}{self.form}}}"

    @property
    def in_order(self) -> bool:
        """True if keys sort in the order of the field."""
        return self.slot is None or all(map(keeps_order, self.slot.formats))

    @property
    def exact(self) -> bool:
        """True if equal texts come from equal values, except for case and spaces: not for a hash, a month or a
        weight.
        """
        return self.slot is None or all(keeps_order(one) or one in PLAIN.values() for one in self.slot.formats)

    @property
    def is_literal(self) -> bool:
        """True if equal texts come from equal values of one type: a rule makes the same text of 5 and "5"."""
        return self.slot is None

    @property
    def begins(self) -> bool:
        """True if the beginning of a value makes the beginning of its text."""
        return self.padded is None and (self.slot is None or set(self.slot.formats) <= {*PLAIN.values()})


@dataclass(frozen=True)
class Maker:
    """A key attribute and its source: a template, a formula, or the field of the attribute's name (None)."""

    attribute: KeyAttribute
    source: Template | Formula | None = None

    @cached_property
    def parts(self) -> tuple[str | Field, ...]:
        """Texts and fields, in their order."""
        source = self.source
        if source is None:
            return (Field(self.attribute.name),)
        if isinstance(source, Template):
            pads, cases = dict(source.pads), dict(source.cases)
            made: list[str | Field] = [source.literals[0]]
            for name, after in zip(source.fields, source.literals[1:], strict=True):
                case = cases.get(name)
                slot = None if case is None else Slot(name, (PLAIN[case],))
                made += [Field(name, slot, pads.get(name), "" if case is None else f":{case}"), after]
        else:
            made = []
            text = source.source if isinstance(source.source, str) else ""
            fields = (one[1] for one in re.finditer(PIECE, text) if one[2] is None)
            forms = (field[field.find(":") :] if ":" in field else "" for field in fields)
            for piece in source.pieces:
                if made and source.separator is not None:
                    made.append(source.separator)
                made.append(piece if isinstance(piece, str) else Field(piece.field, piece, form=next(forms, "")))
        return tuple(part for part in made if part != "")

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields it is made of, in order, each once."""
        return tuple(dict.fromkeys(part.name for part in self.parts if isinstance(part, Field)))

    @property
    def is_joined(self) -> bool:
        """True if the formula joins only the fields that an item has."""
        return isinstance(self.source, Formula) and self.source.separator is not None

    @property
    def exact(self) -> frozenset[str]:
        """The fields whose values are equal if the keys are equal."""
        return frozenset(part.name for part in self.parts if isinstance(part, Field) and part.exact)

    @property
    def literal_fields(self) -> frozenset[str]:
        """The fields whose values are the same, letter by letter, if the keys are equal."""
        return frozenset(part.name for part in self.parts if isinstance(part, Field) and part.is_literal)

    @property
    def plain(self) -> bool:
        """True if the attribute is one field and nothing else, of any type."""
        return len(self.parts) == 1 and isinstance(self.parts[0], Field) and self.parts[0].slot is None

    @property
    def text(self) -> str:
        """The attribute as the file writes it."""
        if isinstance(self.source, Template):
            return self.source.text
        return "".join(part if isinstance(part, str) else part.placeholder for part in self.parts)

    def count_known_parts(self, given: Collection[str]) -> int:
        """Return the number of parts at the beginning that these fields determine. If the formula joins only present
        fields, no part is known without all fields.
        """
        if self.is_joined and not set(self.fields) <= set(given):
            return 0
        for count, part in enumerate(self.parts):
            if isinstance(part, Field) and part.name not in given:
                return count
        return len(self.parts)

    def whole(self, given: Collection[str]) -> bool:
        """Return True if these fields make the attribute."""
        return self.count_known_parts(given) == len(self.parts)

    def beginning(self, given: Collection[str]) -> str:
        """Return the text, with fields in braces, that all values for these fields begin with."""
        known = self.parts[: self.count_known_parts(given)]
        return "".join(part if isinstance(part, str) else part.placeholder for part in known)

    def find_next_field(self, given: Collection[str]) -> Field | None:
        """Return the first field that is not among these fields, which sorts the values; None if a text comes next."""
        rest = () if self.is_joined else self.parts[self.count_known_parts(given) :]
        return rest[0] if rest and isinstance(rest[0], Field) else None

    @property
    def literal(self) -> str:
        """The text that every value begins with."""
        first = self.parts[0] if self.parts else ""
        return first if isinstance(first, str) else ""

    # ------------------------------------------------------------ values
    def value(self, fields: Mapping[str, AttributeValue]) -> AttributeValue | None:
        """Return the attribute's value for these fields; None if they do not make it."""
        if self.source is None:
            value = fields.get(self.attribute.name)
            return None if value is None else convert_to_key(value, self.attribute.type)
        if isinstance(self.source, Template):
            return self.source.build(fields, self.attribute.type)
        text = self.source.text(fields.get)
        return None if text is None else convert_to_key({"S": text}, self.attribute.type)

    def prefix(self, fields: Mapping[str, AttributeValue]) -> str | None:
        """Return the text of the parts that these fields determine; None if a value cannot be in a key."""
        texts: list[str] = []
        for part in self.parts[: self.count_known_parts(fields)]:
            text = part if isinstance(part, str) else self.inner(part, fields[part.name])
            if not text:
                return None
            texts.append(text)
        return "".join(texts)

    def inner(self, field: Field, value: AttributeValue) -> str | None:
        """Return a value as text, as the attribute contains it; None if it cannot."""
        if field.slot is not None:
            return field.slot.text({field.name: value, field.slot.field: value}.get)
        text = read_key_text(value)
        return text.zfill(field.padded) if text is not None and field.padded else text


class Makers:
    """The makers of key attributes, by entity: what a rule derives, what a template says, or the field of that name."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._derived: dict[tuple[str, str], DeriveRule] = {}
        for rule in rules.rules.values():
            if isinstance(rule, DeriveRule) and len(rule.path) == 1:
                self._derived[rule.target.name, rule.path[0]] = rule

    def of(self, entity: Entity, attribute: KeyAttribute) -> Iterator[Maker]:
        """Yield the makers of one attribute: any of them may give its value."""
        rule = self._derived.get((entity.name, attribute.name))
        if rule is not None and isinstance(rule.formula, Formula) and not rule.cases:
            yield Maker(attribute, rule.formula)
        template = entity.templates.get(attribute.name)
        renamed = template is not None and template.whole != attribute.name
        if renamed:
            yield Maker(attribute, template)
        yield Maker(attribute, None)

    def choose_maker(self, entity: Entity, attribute: KeyAttribute, given: Collection[str]) -> Maker:
        """Return the maker that matches most of these fields."""

        def says(one: Maker) -> tuple[bool, int, int]:
            return one.whole(given), len(set(one.fields) & set(given)), one.count_known_parts(given)

        return max(self.of(entity, attribute), key=says)

    def says(self, entity: Entity, attribute: KeyAttribute) -> bool:
        """Return True if the file says how items of the entity get this attribute, or that they have it."""
        stated = attribute.name in entity.required or attribute.name in entity.templates
        return stated or (entity.name, attribute.name) in self._derived

    def is_number(self, entity: Entity, name: str) -> bool:
        """True if rules say that an attribute is a number."""
        for rule in self._rules.from_source(entity):
            if rule.required_types.get((name,)) == ("N",):
                return True
        into = self._rules.into_target(entity)
        return any((name,) in rule.copies and rule.type_of((name,), lambda *_: None) == "N" for rule in into)

    def list_rule_titles(self, entity: Entity, attributes: Iterable[KeyAttribute]) -> frozenset[str]:
        """List the titles of the rules that write any of these attributes."""
        names = {attribute.name for attribute in attributes}
        into = self._rules.into_target(entity)
        return frozenset(rule.title for rule in into for path in rule.copies if path[0] in names)

    def find_default_rule(self, entity: Entity, attribute: KeyAttribute) -> DeriveRule | None:
        """Return the rule that gives items a default in this attribute, or None."""
        rule = self._derived.get((entity.name, attribute.name))
        return rule if rule is not None and rule.default is not None else None
