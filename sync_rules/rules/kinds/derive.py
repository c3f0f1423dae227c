"""derive: an attribute made from other attributes of the same item, such as `500-LEAD` or `STATE#CITY#ZIP`.

Invariant: the rule reads only the item itself, and writes only if every input is as it was read. A composite key or a
Time to Live is made whole, or the default takes its place. A date that gives no Time to Live is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sync_rules.model.entities import Entity, Table
from sync_rules.model.numbers import normalize_number
from sync_rules.model.sizes import KeyLimit, find_index_key_limits, fit_value
from sync_rules.model.values import AttributeValue, Item, Path, get, is_same_value, parse_path
from sync_rules.model.where import Where
from sync_rules.model.writes import Desired
from sync_rules.rules.description import Drawing, TypeOf, Use
from sync_rules.rules.expiry import Expiry
from sync_rules.rules.families import TargetRule
from sync_rules.rules.formula import Formula
from sync_rules.rules.rule import Blocked, Node, let_in


@dataclass(frozen=True, eq=False, kw_only=True)
class DeriveRule(TargetRule):
    """A rule whose source and target are one entity. `path` holds what the formula makes of the item. It holds
    `default` if there is no value, or if `where` does not hold. The first of `cases` whose condition holds has a
    formula of its own.
    """

    path: Path
    formula: Formula | Expiry
    default: AttributeValue | None = None
    where: Where | None = None
    cases: tuple[tuple[Where, Formula], ...] = ()
    kind = "derive"
    fills_index_keys = True
    watches_in_source = ()  # the target itself

    @cached_property
    def copies(self) -> tuple[Path, ...]:
        return (self.path,)

    @cached_property
    def inputs(self) -> tuple[Path, ...]:
        conditions = (*((self.where,) if self.where else ()), *(where for where, _ in self.cases))
        filters = (path for where in conditions for path in where.paths)
        return tuple(
            dict.fromkeys(self._read_as.locate_field(path) for path in (*self._field_paths.values(), *filters))
        )

    @cached_property
    def _read_as(self) -> Entity:
        """The entity without the template of the derived attribute. A field that only this template binds is read from
        the attribute of its name: the derived key cannot give its first value.
        """
        keys = {attribute.name for attribute in self.target.table.key}
        templates = self.target.templates.items()
        others = {name: template for name, template in templates if name in keys or (name,) != self.path}
        return replace(self.target, templates=others)

    @cached_property
    def _field_paths(self) -> Mapping[str, Path]:
        return {name: parse_path(name) for formula in self._formulas for name in formula.fields}

    @property
    def _formulas(self) -> tuple[Formula | Expiry, ...]:
        return (self.formula, *(formula for _, formula in self.cases))

    @cached_property
    def deciding_paths(self) -> tuple[Path, ...]:
        """The inputs, without those in the item's key, which cannot change. A rule that writes an input runs first."""
        return self.target.drop_key_paths(self.inputs)

    @property
    def always_writes(self) -> tuple[str, ...]:
        """The attribute, if it has a default, or if the key's fields alone make it, in formats that take any text."""
        if self.default is not None:
            return (self.path[0],) if len(self.path) == 1 else ()
        binary = {attribute.name for attribute in self.target.table.key if attribute.type == "B"}
        sure = {field for field in self.target.identity if self.target.ref(field).path[0] not in binary}
        asked = self._index_key_limit is None or self._index_key_limit[0] == "S"
        total = asked and self.where is None and not self.cases and self.formula.is_total(sure)
        return (self.path[0],) if len(self.path) == 1 and total else ()

    def type_of(self, path: Path, known: TypeOf) -> str | None:
        asked = self._index_key_limit is not None and self._index_key_limit[0] == "N"
        made = "N" if asked and any(one.may_be_number for one in self._formulas) else self.formula.type
        return made if self.default is None or self._index_key_limit is not None or made in self.default else None

    def list_defaults(self, item: Item) -> tuple[Path, ...]:
        return self.copies if self.default is not None and is_same_value(get(item, self.path), self.default) else ()

    def fills(self, path: Path, item: Item) -> bool:
        values = self.compute_values((), item)
        return not isinstance(values, Blocked) and values.get(path) is not None

    def nodes(self) -> tuple[Node, ...]:
        reads = tuple((self.target, path) for path in self.inputs)
        return (
            Node(self, (self.target, self.path), reads, tuple((self.target, path) for path in self.deciding_paths)),
        )

    def body(self) -> Mapping[str, object]:
        default = {} if self.default is None else {"default": self.default}
        where = {} if self.where is None else {"where": self.where.text}
        cases = {"cases": [[one.text, formula.body()] for one, formula in self.cases]} if self.cases else {}
        return {"path": self.path, **self.formula.body(), **default, **where, **cases}

    def is_known_by_key(self, entity: Entity) -> bool:
        return True  # nothing is read but the item itself

    def draw(self) -> Drawing:
        said = {"Time to Live": bool(self.times_to_live), "default": self.default is not None}
        notes = tuple(note for note, is_so in said.items() if is_so)
        return Drawing(self.target, tuple(self._field_paths.values()), self.copies, notes)

    @property
    def times_to_live(self) -> tuple[tuple[Table, str], ...]:
        return ((self.target.table, self.path[0]),) if isinstance(self.formula, Expiry) else ()

    def list_uses_to_read(self) -> Iterator[Use]:
        return iter(())

    def list_uses_to_find(self) -> Iterator[Use]:
        return iter(())

    def compute_values(self, sources: Sequence[Item | None], target: Item) -> Desired | Blocked:
        """Return the value of the formula, a number if an index key needs one; the default if there is no value, or if
        `where` does not hold.
        """
        formula = self._choose_formula(target)
        if isinstance(formula, Blocked):
            return formula
        text = None if formula is None else formula.text(lambda name: self._read(target, self._field_paths[name]))
        made = None if text is None else self._type_text(text)
        return {self.path: self.default if made is None else made}

    def _choose_formula(self, item: Item) -> Formula | Expiry | Blocked | None:
        """Return the formula for an item; None if `where` does not hold, Blocked if a condition fails."""
        holds = let_in(self.where, item, self._read_as)
        if holds is not True:
            return holds or None
        for where, formula in self.cases:
            holds = let_in(where, item, self._read_as)
            if holds is not False:
                return formula if holds is True else holds
        return self.formula

    def find_omission(self, sources: Sequence[Item | None], target: Item) -> Blocked | None:
        if let_in(self.where, target, self._read_as) is not True:
            return None
        reason = self.formula.unread(lambda name: self._read(target, self._field_paths[name]))
        return None if reason is None else Blocked(reason)

    def _read(self, item: Item, path: Path) -> AttributeValue | None:
        """A field of the item, from the very place that is watched and guarded."""
        bound = self._read_as.bound_fields.get(path[0])
        if bound is None:
            return get(item, path)
        return bound.read(item) if len(path) == 1 else None

    def _type_text(self, text: str) -> AttributeValue | None:
        """Return the text in the type of the index key that it fills: DynamoDB rejects an item with another type."""
        if self._index_key_limit is None:
            return {self.formula.type: text}
        match self._index_key_limit:
            case "S", max_bytes:
                return fit_value({"S": text}, max_bytes)
            case "N", _:
                number = normalize_number(text)
                return None if number is None else {"N": number}
        return None  # no text is binary

    @cached_property
    def _index_key_limit(self) -> KeyLimit | None:
        return find_index_key_limits(self.target.table).get(self.path[0]) if len(self.path) == 1 else None
