"""Messages to the pipeline itself, as JSON: the rest of a push, chunks of its targets, a second look through an index,
a retry of a pull, of a part or of a call.

Invariant: a message names keys and rules, never a value. Its receiver reads everything afresh, so it may arrive late,
twice, or out of order. The one exception is a call: the items that the function is given may have changed since, so a
`CallMessage` carries both images, or says where they are kept. Calls are made once per change, so it too may arrive
late and twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final

from sync_rules.model import json_bytes
from sync_rules.model.errors import RecordError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.json_bytes import format_compact_json, tag_binary, untag_binary
from sync_rules.model.numbers import SPELLING
from sync_rules.model.values import Item
from sync_rules.pipeline.records import DATES, read_image

COUNT_MAX: Final = 10_000  # of tries or seconds, in a message


@dataclass(frozen=True, slots=True)
class PushMessage:
    """A request to reconcile the targets of a source, from `cursor` on.

    `removed`: a REMOVE record of the source started this, so `on_delete: delete` applies. `delay_seconds`: the delay
    before this second look, 0 for the first pass. `found`: an earlier page of this pass wrote something. `spread`:
    workers share the push. The receiver sends the keys of an index on as chunks, and reconciles none. From the base
    table it reconciles a page, and sends the rest on before it writes.
    """

    rules: tuple[str, ...]
    source: ItemKey
    removed: bool = False
    cursor: Item | None = None
    delay_seconds: int = 0
    found: bool = False
    spread: bool = False


@dataclass(frozen=True, slots=True)
class ChunkMessage:
    """A request to reconcile these targets of a source, for these rules. `removed`: a REMOVE record of the source
    started this, so `on_delete: delete` applies.
    """

    rules: tuple[str, ...]
    source: ItemKey
    targets: tuple[ItemKey, ...]
    removed: bool = False


@dataclass(frozen=True, slots=True)
class PullMessage:
    """A request to pull one target, for all its rules, with a fresh image. `attempt` counts how often the target was
    parked. `delay_seconds`: the delay before a second look at members that an index lists, else 0.
    """

    target: ItemKey
    attempt: int = 0
    delay_seconds: int = 0


@dataclass(frozen=True, slots=True)
class PartMessage:
    """A request to reconcile one part again. `attempt` counts how often the part was parked."""

    rule: str
    target: ItemKey
    source: ItemKey | None
    element: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class CallMessage:
    """A request to call a user's function with this change, values and all. `attempt` counts the failed calls.

    `kept`: the place of a change that is too large for a message; the message then has only the item's key.
    """

    rule: str
    function: str
    change: Change
    attempt: int = 0
    kept: str = ""

    def move_images(self, place: str) -> CallMessage:
        """Return the message without its images, which the caller stored at this place."""
        return replace(self, change=replace(self.change, old=None, new=None), kept=place)


Look = PullMessage | PartMessage  # at one thing, which may be parked
Message = PushMessage | ChunkMessage | PullMessage | PartMessage | CallMessage
KINDS: Final[Mapping[type[Message], str]] = {
    PushMessage: "push",
    ChunkMessage: "chunk",
    PullMessage: "pull",
    PartMessage: "part",
    CallMessage: "call",
}


def list_rule_names(message: Message) -> tuple[str, ...]:
    """List the names of the rules that a message asks for. A pull names none: it asks for all rules of its target."""
    match message:
        case PushMessage() | ChunkMessage():
            return message.rules
        case PartMessage() | CallMessage():
            return (message.rule,)
    return ()


def find_item(message: Message) -> ItemKey:
    """Find the item that a message is about: the source of a fan-out, the target of a look, the item that changed."""
    match message:
        case PushMessage() | ChunkMessage():
            return message.source
        case CallMessage():
            return message.change.key
    return message.target


def format_message(message: Message) -> str:
    """Format a message as JSON. Equal messages have the same text."""
    bare = replace(message, targets=()) if isinstance(message, ChunkMessage) else message  # `asdict` would copy each
    body = {"kind": KINDS[type(message)], **asdict(bare)}
    if isinstance(message, ChunkMessage):
        body["targets"] = _fold_keys(message.targets)
    elif isinstance(message, PushMessage) and not message.spread:
        del body["spread"]  # so that an older version can read it
    elif isinstance(message, CallMessage):
        del body["change"]["shrank_from"]  # a call does not ask for it
        if not message.kept:
            del body["kept"]
    return _write_text(body)


def count_key_bytes(key: ItemKey) -> int:
    """Count the bytes that one more target key adds to the text of a chunk message."""
    return len(_write_text(_fold_keys([key])[0]["values"]).encode()) - 1


def _write_text(body: object) -> str:
    return format_compact_json(_convert_keys(body), default=tag_binary, sort_keys=True)


def _convert_keys(body: Any) -> Any:
    """Keys as maps: JSON would write a named tuple as a list."""
    if isinstance(body, ItemKey):
        return body._asdict()
    return {name: _convert_keys(value) for name, value in body.items()} if isinstance(body, dict) else body


def _fold_keys(keys: Iterable[ItemKey]) -> list[dict[str, Any]]:
    """Group keys by table and attribute names, which are then written once."""
    groups: dict[tuple[object, ...], list[list[str | bytes]]] = {}
    for key in keys:
        attributes = tuple((name, kind) for name, kind, _ in key.values)
        groups.setdefault((key.table, attributes), []).append([value for *_, value in key.values])
    return [{"table": table, "attributes": names, "values": values} for (table, names), values in groups.items()]


def _unfold_keys(groups: Iterable[Mapping[str, Any]]) -> tuple[ItemKey, ...]:
    return tuple(
        _read_key({"table": one["table"], "values": [(*a, v) for a, v in zip(one["attributes"], values, strict=True)]})
        for one in groups
        for values in one["values"]
    )


def parse_message(text: str) -> Message:
    """Parse the text that `format_message` wrote.

    Raises:
        RecordError: when the text is not such a message.
    """
    try:
        body = json_bytes.parse_json(text, object_hook=untag_binary)
        make = _TYPES.get(body.pop("kind"))
        body |= {name: read(body[name]) for name, read in _READERS.items() if name in body}
        message = None if make is None else make(**body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"not a message of sync-rules: {type(error).__name__}") from error
    if message is None or not isinstance(find_item(message), ItemKey) or not _is_well_formed(message):
        raise RecordError("not a message of sync-rules: expected a push, a chunk, a pull, a part or a call")
    return message


def _is_well_formed(message: Message | Change) -> bool:
    return all(_CHECKS[field.name](getattr(message, field.name)) for field in fields(message) if field.name in _CHECKS)


def _read_change(body: Mapping[str, Any]) -> Change:
    images = {name: None if body.get(name) is None else read_image(body[name]) for name in ("old", "new")}
    return Change(**{**body, **images, "key": _read_key(body["key"])})


def _read_key(body: Mapping[str, Any]) -> ItemKey:
    values = tuple((name, kind, value) for name, kind, value in body["values"])
    if not isinstance(body["table"], str) or not all(map(_is_key_value, values)):
        raise TypeError
    return ItemKey(body["table"], values)


def _is_key_value(entry: tuple[object, object, object]) -> bool:
    name, kind, value = entry
    if not isinstance(name, str) or kind not in ("S", "N", "B"):
        return False
    if kind == "B":
        return isinstance(value, bytes)
    return isinstance(value, str) and (kind == "S" or SPELLING.fullmatch(value) is not None)


_TYPES: Final = {kind: make for make, kind in KINDS.items()}
_READERS: Final[Mapping[str, Callable[[Any], object]]] = {  # of fields that JSON has in another form
    "rules": tuple,
    "source": lambda body: None if body is None else _read_key(body),
    "target": lambda body: None if body is None else _read_key(body),
    "targets": _unfold_keys,
    "cursor": lambda body: None if body is None else read_image(body),
    "change": _read_change,
}
_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("rule", "function", "element", "kept", "position"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("removed", "found", "spread", "in_order", "expired"), lambda value: isinstance(value, bool)),
    **dict.fromkeys(("attempt", "delay_seconds"), lambda value: type(value) is int and 0 <= value <= COUNT_MAX),
    **dict.fromkeys(("cursor", "old", "new"), lambda value: value is None or isinstance(value, dict)),
    "rules": lambda names: all(isinstance(name, str) for name in names),
    "created_ms": lambda value: value is None or (type(value) is int and value in DATES),
    "change": _is_well_formed,
}
