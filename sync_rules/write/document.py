"""A write as a JSON document, for applications in other languages: the actions and options of `transact`, its answer.

Invariant: a document with any mistake is refused, with the place of the mistake. No message contains a value of the
document.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Final

from sync_rules.model.errors import RecordError, SyncRulesError
from sync_rules.model.json_bytes import JSON_MAX_LEVELS, encode_base64, format_compact_json
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.pipeline.records import read_image
from sync_rules.write.actions import Given
from sync_rules.write.deadline import DEADLINE_SECONDS
from sync_rules.write.errors import Cancelled, TransactionCanceled, WriteError
from sync_rules.write.transaction import Result, Transact

TEXT: Final = "text"
FLAG: Final = "true or false"
NUMBER: Final = "a number above 0"
LIST: Final = "a list"
NAMES: Final = "a map of texts"
TEXTS: Final = "a list of texts"
VALUES: Final = "a map of values"  # of an item: plain, or with `raw` attribute values
REQUIRED: Final = {"actions", "entity", "item", "key"}
CONDITION: Final = {"condition": TEXT, "names": NAMES, "values": VALUES, "returns": FLAG}
ACTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "put": {"entity": TEXT, "item": VALUES, **CONDITION, "new": FLAG, "override": FLAG},
    "update": {
        "entity": TEXT, "key": VALUES, "set": VALUES, "remove": TEXTS, "add": VALUES, "delete": VALUES, **CONDITION,
        "override": FLAG,
    },
    "delete": {"entity": TEXT, "key": VALUES, **CONDITION},
    "check": {"entity": TEXT, "key": VALUES, **CONDITION},
}  # fmt: skip
GIVEN: Final = {"entity": TEXT, "item": VALUES}
OPTIONS: Final = {
    "actions": LIST, "sources": LIST, "raw": FLAG, "require": FLAG, "token": TEXT, "deadline_seconds": NUMBER,
}  # fmt: skip
STATUS: Final = {"WriteError": 400, "TransactionCanceled": 409, "StoreError": 503}
# A function's answer may have 6 MB; each quote of a Function URL's body takes two bytes of it.
ITEMS_MAX_CHARACTERS: Final = 2_500_000
FLOAT_MAX: Final = sys.float_info.max  # a larger number cannot become a float
FITS: Final[Mapping[str, Callable[[Any], bool]]] = {
    TEXT: lambda value: isinstance(value, str),
    FLAG: lambda value: isinstance(value, bool),
    NUMBER: lambda value: (
        isinstance(value, int | float | Decimal) and not isinstance(value, bool) and 0 < value <= FLOAT_MAX
    ),
    LIST: lambda value: isinstance(value, list),
    NAMES: lambda value: isinstance(value, dict) and all(isinstance(one, str) for one in value.values()),
    TEXTS: lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    VALUES: lambda value: isinstance(value, dict),
}
EXAMPLE: Final = '{"actions": [{"put": {"entity": "order", "item": {"user_id": "7"}}}]}'
RAW_CURE: Final = 'with "raw": true give attribute values such as {"S": "x"}, binary as base64'
PLAIN_CURE: Final = 'give plain JSON, or attribute values with "raw": true'


@dataclass(frozen=True, slots=True)
class WriteDocument:
    """A parsed write: each action as its verb and arguments, each given item as its entity and the item."""

    actions: tuple[tuple[str, Mapping[str, Any]], ...]
    sources: tuple[tuple[str, Given], ...] = ()
    items: tuple[tuple[str, Given], ...] = ()
    raw: bool = False
    require: bool = False
    token: str | None = None
    deadline_seconds: float = DEADLINE_SECONDS
    counted: Mapping[str, int] = field(default_factory=dict)  # how many actions of each sort: "put order" -> 2

    def add_to(self, tx: Transact) -> None:
        """Add the actions and sources to a transaction. Raises WriteError, which names the place of the mistake."""
        with_place = [("actions", number, verb, arguments) for number, (verb, arguments) in enumerate(self.actions)]
        given = [{"entity": entity, "item": item} for entity, item in self.sources]
        with_place += [("sources", number, "source", arguments) for number, arguments in enumerate(given)]
        for part, number, verb, arguments in with_place:
            try:
                getattr(tx, verb)(**arguments)
            except WriteError as error:
                raise WriteError(f"{part}[{number}]: {error.found}", error.cure) from error


def parse_document(body: object, *, items: bool = False) -> WriteDocument:
    """Parse a write from JSON. A float keeps the digits of its spelling. With `items`, the document may also hold the
    items of the tables.

    Raises:
        WriteError: if it is not a write, with the place of the mistake.
    """
    options = _check_map(body, {**OPTIONS, **({"items": LIST} if items else {})}, "")
    raw = options.get("raw", False)
    actions = tuple(_read_action(one, f"actions[{number}]", raw=raw) for number, one in enumerate(options["actions"]))
    if not actions:
        raise WriteError("actions: expected at least one action, found none", f"such as {EXAMPLE}")
    counted = Counter(f"{verb} {arguments['entity']}" for verb, arguments in actions)
    return WriteDocument(
        actions,
        _read_given_items(options, "sources", raw=raw),
        _read_given_items(options, "items", raw=raw),
        raw,
        options.get("require", False),
        options.get("token"),
        float(options.get("deadline_seconds", DEADLINE_SECONDS)),
        counted,
    )


def _read_action(body: object, place: str, *, raw: bool) -> tuple[str, Mapping[str, Any]]:
    given = body if isinstance(body, dict) else {}
    verbs = [*given]
    if len(verbs) != 1 or verbs[0] not in ACTIONS:
        found = (
            explain_unknown_name("action", str(verbs[0]), ACTIONS)
            if len(verbs) == 1
            else "expected a map with one action"
        )
        raise WriteError(f"{place}: {found}", f"expected {', '.join(ACTIONS)}, such as {EXAMPLE}")
    (verb,) = verbs
    inside = f"{place}.{verb}"
    arguments = _read_values(_check_map(given[verb], ACTIONS[verb], inside), ACTIONS[verb], inside, raw=raw)
    if verb == "check" and "condition" not in arguments:
        raise WriteError(f"{inside}: condition is missing", "say what must hold")
    return verb, arguments


def _read_given_items(options: Mapping[str, Any], name: str, *, raw: bool) -> tuple[tuple[str, Given], ...]:
    found = []
    for number, one in enumerate(options.get(name, ())):
        place = f"{name}[{number}]"
        arguments = _read_values(_check_map(one, GIVEN, place), GIVEN, place, raw=raw)
        found.append((arguments["entity"], arguments["item"]))
    return tuple(found)


# ---------------------------------------------------------------- types
def _check_map(body: object, options: Mapping[str, str], place: str) -> dict[str, Any]:
    """A map of these options, each of its type. An option that is null is as one that is not there."""
    begin = f"{place}: " if place else ""
    if not isinstance(body, dict):
        raise WriteError(f"{begin}expected a map, found {_name_type(body)}", f"such as {EXAMPLE}")
    for name in body:
        if name not in options:
            raise WriteError(
                f"{begin}{explain_unknown_name('option', str(name), options)}", "leave it out, or correct its name"
            )
    given = {name: value for name, value in body.items() if value is not None}
    for name in options:
        if name in REQUIRED and name not in given:
            raise WriteError(f"{begin}{name} is missing", f"such as {EXAMPLE}")
    for name, value in given.items():
        if not FITS[options[name]](value):
            raise WriteError(f"{begin}{name}: expected {options[name]}, found {_name_type(value)}", "correct it")
    return given


def _name_type(value: object) -> str:
    names = {bool: FLAG, str: TEXT, int: "a number", float: "a number", Decimal: "a number", list: LIST, dict: "a map"}
    return names.get(type(value), "nothing")


# ---------------------------------------------------------------- values
def _read_values(given: Mapping[str, Any], kinds: Mapping[str, str], place: str, *, raw: bool) -> dict[str, Any]:
    found = dict(given)
    for name in given:
        if kinds[name] == VALUES:
            found[name] = (
                _read_attribute_values(given[name], f"{place}.{name}") if raw else _read_exact(given[name], place)
            )
    return found


def _read_attribute_values(given: Mapping[str, Any], place: str) -> Given:
    for name, value in given.items():
        try:
            read_image({name: value})
        except RecordError as error:
            raise WriteError(f"{place}: {str(name)!r} is no attribute value", RAW_CURE) from error
    return read_image(dict(given))


def _read_exact(value: Any, place: str, levels: int = JSON_MAX_LEVELS) -> Any:
    """Plain JSON, with each number as it is spelt."""
    if levels == 0:
        raise WriteError(f"{place}: nests more than {JSON_MAX_LEVELS} levels", PLAIN_CURE)
    match value:
        case float():
            return Decimal(repr(value))
        case dict():
            return {name: _read_exact(inner, place, levels - 1) for name, inner in value.items()}
        case list():
            return [_read_exact(inner, place, levels - 1) for inner in value]
    return value


# ---------------------------------------------------------------- answers
def make_answer(result: Result) -> dict[str, Any]:
    """Make the answer to a write that succeeded: work left to the stream, number of actions, number of attempts."""
    return {"left": [asdict(one) for one in result.left], "actions": result.actions, "attempts": result.attempts}


def make_refusal(error: SyncRulesError, *, raw: bool) -> dict[str, Any]:
    """Make the answer to a write that failed: the error's type, message and cure, and DynamoDB's reasons for refused
    actions of the application. `again` says whether the same write may succeed later.
    """
    said: dict[str, Any] = {"type": "StoreError", "message": str(error)}
    if isinstance(error, WriteError):
        said = {"type": "WriteError", "message": error.found, "cure": error.cure, "again": error.again}
    if isinstance(error, TransactionCanceled):
        said |= {"type": "TransactionCanceled", "reasons": [_show_reason(one, raw=raw) for one in error.reasons]}
    reason = getattr(error, "reason", None)
    return _fit_size({"error": said if reason is None else {**said, "reason": reason}})


def _fit_size(answer: dict[str, Any]) -> dict[str, Any]:
    """Shorten an answer to the greatest size: leave out the items if necessary, and note it in `items_left_out`."""
    reasons = answer["error"].get("reasons", ())
    if any("item" in one for one in reasons) and len(format_compact_json(answer)) > ITEMS_MAX_CHARACTERS:
        for one in reasons:
            one.pop("item", None)
        answer["error"]["items_left_out"] = True
    return answer


def choose_status(answer: Mapping[str, Any]) -> int:
    error = answer.get("error", {})
    return 503 if error.get("again") else STATUS.get(error.get("type", ""), 200)


def _show_reason(one: Cancelled, *, raw: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"action": one.action, "code": one.code}
    if one.item is not None:
        found["item"] = {
            name: encode_binary(value) if raw else make_plain_json(value) for name, value in one.item.items()
        }
    return found


def encode_binary(value: Any) -> Any:
    """Return attribute values, or the parameters of a request, ready for JSON: binary as base64, sets as lists."""
    match value:
        case bytes():
            return encode_base64(value)
        case Mapping():
            return {name: encode_binary(inner) for name, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [encode_binary(inner) for inner in value]
    return value


def make_plain_json(value: Any) -> Any:
    """Return a plain value ready for JSON: sets become lists, binary becomes base64, fractional numbers become
    floats.
    """
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case set():
            return sorted(map(make_plain_json, value))
        case Mapping():
            return {name: make_plain_json(inner) for name, inner in value.items()}
        case list() | tuple():
            return [make_plain_json(inner) for inner in value]
    return encode_binary(value)
