"""The application's own actions: entities and fields in, keys and attribute values out, each action checked at once.

Invariant: an item is written as it was given, with the key that its fields make. An attribute that a rule keeps may be
written with the value that was read. Any other value is refused, unless the application gives `override`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, Literal

from sync_rules.adapters import aws
from sync_rules.model.entities import Entity
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.json_bytes import is_encodable
from sync_rules.model.numbers import normalize_numbers, read_number
from sync_rules.model.python_values import (
    HALF_PAIR,
    HALF_PAIR_CURE,
    has_encodable_texts,
    make_plain_value,
    make_raw_value,
)
from sync_rules.model.semantics import SETS, InvalidUpdateError, apply_update, is_storable
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import (
    TYPES,
    AttributeValue,
    Item,
    Path,
    get,
    has_overlap,
    is_same_value,
    parse_path,
    show_path,
)
from sync_rules.model.writes import Update
from sync_rules.rules.ruleset import Rules
from sync_rules.write.conditions import OwnCondition, check_condition
from sync_rules.write.errors import WriteError

Verb = Literal["put", "update", "delete", "check"]
Given = Mapping[str, Any]
BINARY: Final = (bytes, bytearray)
SCALARS: Final[Mapping[str, type | tuple[type, ...]]] = {"S": str, "N": str, "B": BINARY, "BOOL": bool, "NULL": bool}


@dataclass(frozen=True, slots=True)
class Own:
    """One action of the application. `item` is the item of a put, `update` the change of an update; `number` is the
    action's place in the order of calls. `new`: the application asserts that the item does not exist. `returns`: a
    refused condition returns the stored item.
    """

    verb: Verb
    entity: Entity
    key: ItemKey
    number: int = 0
    item: Item = field(default_factory=dict)
    update: Update | None = None
    condition: OwnCondition | None = None
    new: bool = False
    override: bool = False
    returns: bool = False

    @property
    def paths(self) -> tuple[Path, ...]:
        """The paths that the action writes; for a put, all attributes except the key."""
        if self.update is not None:
            return list_paths(self.update)
        key = {name for name, _, _ in self.key.values}
        return tuple((name,) for name in self.item if name not in key)

    def after(self, item: Item | None) -> Item | None:
        """Return the item after this action."""
        if self.verb == "put":
            return self.item
        if self.verb == "delete":
            return None
        if self.update is None:
            return item
        try:
            return apply_update({**(item or {}), **self.key.attributes()}, self.update)
        except InvalidUpdateError as error:
            paths = ", ".join(map(show_path, self.paths))
            raise WriteError(f"{error}: one of {paths} of {self.entity.name}", error.cure) from error


class Actions:
    """A maker of actions from the application's values: plain Python or, with `raw`, attribute values."""

    def __init__(self, rules: Rules, *, raw: bool) -> None:
        self._rules = rules
        self._raw = raw

    def put(self, entity: str, item: Given) -> Own:
        values = self.values(item)
        found, key = self.key_of(entity, values)
        return Own("put", found, key, item={**values, **key.attributes()})

    def update(self, entity: str, key: Given, changes: tuple[Given, Iterable[str], Given, Given]) -> Own:
        """Make the update of an item: paths to set and remove, values to add, elements to delete from sets."""
        sets, removes, adds, discards = changes
        found, place = self.key_alone(entity, key)
        update = Update(
            place,
            tuple(self._make_pairs(sets)),
            tuple(self._parse_path(path) for path in removes),
            (),
            tuple(self._make_pairs(adds)),
            tuple(self._make_pairs(discards)),
        )
        _require_well_formed_paths(update, entity)
        return Own("update", found, place, update=update)

    def other(self, verb: Verb, entity: str, key: Given) -> Own:
        """Make the delete, or the check, of an item."""
        return Own(verb, *self.key_alone(entity, key))

    def condition(self, given: Any, names: Mapping[str, str] | None, values: Given | None) -> OwnCondition | None:
        """Return the application's condition, given as a text or as boto3's `Attr`; None for None. Raises
        WriteError.
        """
        if given is None:
            if names or values:
                raise WriteError("names or values, and no condition that uses them", "give the condition too")
            return None
        if isinstance(given, str):
            return check_condition(OwnCondition(given, dict(names or {}), self.values(values or {})))
        found = aws.read_condition(given)
        if found is None or names or values:
            raise WriteError(
                "a condition that cannot be read", "give a text with its names and values, or one of `Attr` without"
            )
        text, names, values = found
        return check_condition(OwnCondition(text, names, Actions(self._rules, raw=False).values(values)))

    def key_of(self, entity: str, item: Item) -> tuple[Entity, ItemKey]:
        """Return the entity of this name, and the key that the item has, or that its fields make. Raises WriteError."""
        found = self._rules.entities.get(entity)
        if found is None:
            known = [one.name for one in self._rules.declared_entities]
            raise WriteError(explain_unknown_name("entity", entity, known), "name an entity of the rules file")
        key = found.table.key_of(item) or found.key_of(item)
        if key is None:
            wanted = ", ".join(found.identity) or ", ".join(one.name for one in found.table.key)
            raise WriteError(
                f"no key of entity {entity!r} can be made of these fields", f"give the fields of its key: {wanted}"
            )
        for name, kind, content in key.values:
            if name in item and not is_same_value(item[name], {kind: content}):
                raise WriteError(
                    f"{name} is not the {TYPES[kind]} that the fields of the key of {entity} make",
                    f"give it as a {TYPES[kind]}, or leave it out if other fields make it",
                )
        for name, value in (found.fields(key) or {}).items():
            if name in item and name in found.bound_fields and not _is_same_field(item[name], value):
                raise WriteError(
                    f"{name} contradicts the key of {entity}", f"leave {name} out, or give the key of the item you mean"
                )
        if self._rules.entity_of(key) is not found:
            raise WriteError(f"the key that was given is none of entity {entity!r}", "name the entity whose key it has")
        return found, key

    def key_alone(self, entity: str, given: Given) -> tuple[Entity, ItemKey]:
        """Return the entity of this name, and the key that the fields of a key make. Raises WriteError for other
        fields.
        """
        item = self.values(given)
        found, key = self.key_of(entity, item)
        known = dict.fromkeys((*found.identity, *(one.name for one in found.table.key)))
        for name in item:
            if name not in known:
                raise WriteError(
                    explain_unknown_name("field of the key", name, known),
                    f"leave it out: {entity} has no such key field",
                )
        return found, key

    def values(self, given: Given) -> Item:
        if not isinstance(given, Mapping) or not all(isinstance(name, str) and name for name in given):
            raise WriteError("not a dict with a name for each value", 'give a dict such as {"user_id": "7"}')
        if self._raw:
            if not all(map(_is_attribute_value, given.values())):
                raise WriteError("not all are attribute values", 'with raw=True give values such as {"S": "x"}')
            values: Item = {name: normalize_numbers(value) for name, value in given.items()}
        else:
            try:
                values = {name: make_raw_value(value) for name, value in given.items()}
            except UserError as error:
                raise WriteError(str(error), "give values that DynamoDB has types for") from error
        if not all(is_encodable(name) and has_encodable_texts(value) for name, value in values.items()):
            raise WriteError(HALF_PAIR, HALF_PAIR_CURE)
        bad = [name for name, value in values.items() if not is_storable(value)]
        if bad:
            raise WriteError(
                f"no item can hold the value of {bad[0]}", "remove empty sets, and numbers that DynamoDB cannot hold"
            )
        return values

    def output(self, item: Item) -> dict[str, Any]:
        """Return an item in the application's form: plain values, or attribute values with `raw`."""
        return dict(item) if self._raw else {name: make_plain_value(value) for name, value in item.items()}

    def _make_pairs(self, given: Given) -> Iterable[tuple[Path, AttributeValue]]:
        return [(self._parse_path(path), value) for path, value in self.values(given).items()]

    def _parse_path(self, text: str) -> Path:
        if isinstance(text, str) and not is_encodable(text):
            raise WriteError(HALF_PAIR, HALF_PAIR_CURE)
        try:
            return parse_path(text)
        except UserError as error:
            raise WriteError(str(error), "quote a name that has a dot or a bracket") from error


def _is_same_field(given: AttributeValue, value: AttributeValue) -> bool:
    """True if a given field says what its part of a key says, which is text where the template has text around it."""
    ((_, content),) = given.items()
    number = read_number(given)
    if is_same_value(given, value) or (isinstance(content, str) and {"S": content} == value):
        return True
    return number is not None and number == read_number({"N": value["S"]} if "S" in value else value)


def _is_attribute_value(value: Any) -> bool:
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    ((kind, content),) = value.items()
    match kind:
        case "M":
            names = isinstance(content, Mapping) and all(isinstance(name, str) for name in content)
            return names and all(map(_is_attribute_value, content.values()))
        case "L":
            return isinstance(content, list | tuple) and all(map(_is_attribute_value, content))
        case "SS" | "NS" | "BS":
            return isinstance(content, list | tuple) and all(isinstance(one, SCALARS[kind[0]]) for one in content)
        case "NULL":
            return content is True
    return kind in SCALARS and isinstance(content, SCALARS[kind])


def _require_well_formed_paths(update: Update, entity: str) -> None:
    paths, key = list_paths(update), {name for name, _, _ in update.key.values}
    if not paths:
        raise WriteError(f"an update of {entity} that changes nothing", "give set, remove, add or delete")
    for number, path in enumerate(paths):
        if path[0] in key:
            raise WriteError(
                f"{show_path(path)} is part of the key of {entity}, which no update changes", "leave it out"
            )
        if any(has_overlap(path, other) for other in paths[:number]):
            raise WriteError(f"{show_path(path)} of {entity} is changed twice", "change each path once")
    for path, value in update.adds:
        if len(path) > 1 or not (SETS | {"N"}) & value.keys():
            raise WriteError(
                f"{show_path(path)} of {entity} cannot be added to", "add a number, or a set, to an attribute"
            )
    for path, value in update.discards:
        if len(path) > 1 or not SETS & value.keys():
            raise WriteError(
                f"nothing can be taken out of {show_path(path)} of {entity}",
                "delete takes elements out of a set: give a set of them, or remove the attribute",
            )


def list_paths(update: Update) -> tuple[Path, ...]:
    """List every path that an update names."""
    return (*(path for path, _ in (*update.sets, *update.adds, *update.discards)), *update.removes)


def subtract_elements(kind: str, elements: Iterable[str], others: Iterable[str]) -> AttributeValue | None:
    """Return a set of the elements that are not among the others; numbers are compared by value. None if no element is
    left.
    """
    known = {Decimal(one) for one in others} if kind == "NS" else set(others)
    left = [one for one in elements if (Decimal(one) if kind == "NS" else one) not in known]
    return {kind: left} if left else None


# ---------------------------------------------------------------- what rules keep
def refuse_kept_attributes(own: Own, before: Item | None, rules: Rules) -> None:
    """Raise WriteError if an action sets an attribute that a rule keeps to another value."""
    if own.override or own.verb in ("delete", "check"):
        if own.verb == "delete" and not own.override:
            _refuse_owned_items(own, before, rules)
        return
    after = own.after(before) or {}
    _refuse_owned_items(own, after, rules)
    for rule in (*rules.into_target(own.entity), *rules.parts_of(own.entity)):
        if rule.snapshot or rule.target is not own.entity or own.entity in rule.owned_entities:
            continue
        for path in rule.list_own_copies(own.key, after):
            if any(has_overlap(path, given) for given in own.paths) and not is_same_value(
                get(after, path), get(before, path)
            ):
                raise WriteError(
                    f"{show_path(path)} of {own.entity.name} is kept by rule {rule.title}",
                    "leave it out, or give override=True: the stream then corrects it",
                )


def _refuse_owned_items(own: Own, item: Item | None, rules: Rules) -> None:
    for rule in rules.rules.values():
        if own.entity in rule.owned_entities and (item is None or rule.owns(item)):
            raise WriteError(
                f"items of {own.entity.name} are made by rule {rule.title}", "write what they are made from instead"
            )


# ---------------------------------------------------------------- two actions on one item
def merge_actions(first: Own, second: Own) -> Own:
    """Merge two actions of the application on one item into one. Raises WriteError if they cannot be merged."""
    returns = first.returns or second.returns
    if second.verb == "check" or first.verb == "check":
        change, check = (first, second) if second.verb == "check" else (second, first)
        if change.verb == "check" or change.condition is None or check.condition is None:
            decides = check if change.condition is None and check.condition is not None else change
            return replace(change, condition=decides.condition, number=decides.number, returns=returns)
    elif second.condition is None and first.verb == "put" and second.verb == "update":
        item, override = second.after(first.item) or {}, first.override or second.override
        return replace(first, item=item, override=override, returns=returns)
    elif second.condition is None and first.update is not None and second.update is not None:
        one, two = first.update, second.update
        both = Update(
            one.key,
            one.sets + two.sets,
            one.removes + two.removes,
            (),
            one.adds + two.adds,
            one.discards + two.discards,
        )
        if not any(has_overlap(left, right) for left in list_paths(one) for right in list_paths(two)):
            return replace(first, update=both, override=first.override or second.override, returns=returns)
    raise WriteError(
        f"{first.verb} and {second.verb} of one item of {first.entity.name} cannot be one action",
        "say in one call what the item shall be, or use two transactions",
    )
