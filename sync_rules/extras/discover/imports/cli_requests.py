"""Commands of the AWS CLI for DynamoDB: the request that a command makes, in a form that all requests share.

Invariant: nothing is run. An option that changes what is read or written is understood, or NotReadError says which.
https://docs.aws.amazon.com/cli/latest/reference/dynamodb/
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sync_rules.extras.discover.imports.foreign_document import quoted
from sync_rules.extras.discover.imports.imported_model import Verb
from sync_rules.extras.discover.imports.request_expressions import (
    Condition,
    Names,
    NotReadError,
    Value,
    conditions,
    projected,
    updated,
)
from sync_rules.model import json_bytes

Operation = Verb | Literal["query"]
ITEMS: Final[Mapping[str, Operation]] = {
    "get-item": "get",
    "put-item": "put",
    "update-item": "update",
    "delete-item": "delete",
}
ACTIONS: Final[Mapping[str, Operation]] = {"Get": "get", "Put": "put", "Update": "update", "Delete": "delete"}
ENDS: Final = ("&&", "||", ";", "|")
PYTHON_WORD: Final = re.compile(r"(?<=[:\[,\s])(True|False|None)(?=[\s,\]}])")
JSON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}
SCAN: Final = "it is a Scan, which reads the whole table: write what it asks for, and `by` which fields"
TRANSACTION: Final = "it is part of a transaction, which costs twice as many units"
NAMES: Final = "attributes-to-get"  # as commands said it before there were expressions
OLD_FILTERS: Final = frozenset({"query-filter", "conditional-operator"})
OLD_FILTER: Final = "its filter is left out: --query-filter is not read; write it as `where`"
BATCH: Final = "one request does this for several items"


@dataclass(frozen=True)
class Request:
    """One request to one table. `equal` are the attributes that it fixes: of the key, or of the item that it puts.
    `filters` are conditions on what it found. `batch`: it is for one of several keys.
    """

    operation: Operation
    table: str
    index: str = ""
    equal: Mapping[str, Value] | None = None
    within: Condition | None = None
    filters: Sequence[Condition] = ()
    returns: Sequence[str] = ()
    backward: bool = False
    consistent: bool = False
    page: int | None = None
    sets: Sequence[str] = ()
    batch: bool = False
    remarks: Sequence[str] = ()


def requests_of(command: str) -> list[Request]:
    """The requests of a command, or of several that are joined. Raises NotReadError."""
    try:
        words = shlex.split(command.replace("\\\n", " "))
    except ValueError:
        raise NotReadError("the quotes of its command do not match") from None
    return [request for one in _commands(words) for request in _Command(one).requests()]


def _commands(words: Sequence[str]) -> Iterator[list[str]]:
    one: list[str] = []
    for word in words:
        ends = word in ENDS or word.endswith(";")
        if not ends or word not in ENDS:
            one.append(word.removesuffix(";"))
        if ends and one:
            yield one
            one = []
    if one:
        yield one


class _Command:
    """One command: its operation and its options."""

    def __init__(self, words: Sequence[str]) -> None:
        if list(words[:2]) != ["aws", "dynamodb"] or len(words) <= 2:  # noqa: PLR2004 - aws dynamodb OPERATION
            raise NotReadError("its command is not one of `aws dynamodb`")
        self.operation = words[2]
        self.options = dict(_options(words[3:]))
        self.known = Names(self._json("expression-attribute-names"), self._json("expression-attribute-values"))

    def requests(self) -> list[Request]:
        """The requests of the command."""
        if "cli-input-json" in self.options or "cli-input-yaml" in self.options:
            raise NotReadError("its command takes its options from elsewhere")
        match self.operation:
            case "query":
                return [self._query()]
            case "scan":
                raise NotReadError(SCAN)
            case "batch-get-item":
                return list(self._batch_get())
            case "batch-write-item":
                return list(self._batch_write())
            case "transact-get-items" | "transact-write-items":
                return list(self._transaction())
        if self.operation not in ITEMS:
            raise NotReadError(f"`aws dynamodb {quoted(self.operation)[1:-1]}` neither reads nor writes items by key")
        return [self._item(ITEMS[self.operation])]

    # ------------------------------------------------------------ options
    def _json(self, option: str) -> dict[str, Any]:
        """The map of an option; empty where it is not given."""
        found = _parsed(self.options.get(option, "{}"))
        if not isinstance(found, dict):
            raise NotReadError(f"--{option} is no map of JSON")
        return found

    def _text(self, option: str) -> str:
        text = self.options.get(option, "")
        return text or _missing(f"--{option}")

    def _page(self) -> int | None:
        text = self.options.get("limit") or self.options.get("max-items") or ""
        return int(text) if re.fullmatch(r"[1-9]\d{0,5}", text) else None

    @property
    def _consistent(self) -> bool:
        return self.options.get("consistent-read", "false").lower() != "false"

    @property
    def _returns(self) -> list[str]:
        names = self.options.get(NAMES, "")
        given = _parsed(names) if names.startswith("[") else names.replace(",", " ").split()
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise NotReadError(f"--{NAMES} is no list of names")
        return projected(self.options.get("projection-expression", ""), self.known) or given

    # ------------------------------------------------------------ operations
    def _query(self) -> Request:
        equal: dict[str, Value] = {}
        within = None
        for one in conditions(self._text("key-condition-expression"), self.known):
            if one.operator == "=" and len(one.path) == 1:
                equal[one.path[0]] = one.values[0]
            elif within is None and len(one.path) == 1:
                within = one
            else:
                raise NotReadError("its key condition has two ranges, or one of a nested attribute")
        filters, remarks = self._filters()
        backward = "no-scan-index-forward" in self.options or self.options.get("scan-index-forward") == "false"
        return Request(
            "query", self._text("table-name"), self.options.get("index-name", ""), equal, within, filters,
            self._returns, backward, self._consistent, self._page(), remarks=remarks,
        )  # fmt: skip

    def _filters(self) -> tuple[list[Condition], list[str]]:
        text = self.options.get("filter-expression", "")
        if not text:
            return [], [OLD_FILTER] if OLD_FILTERS & self.options.keys() else []
        try:
            return conditions(text, self.known), []
        except NotReadError as error:
            return [], [f"its filter is left out: {error}"]

    def _item(self, operation: Operation) -> Request:
        equal = _attributes(self._json("item" if operation == "put" else "key"))
        sets, remarks = self._updated(self.options.get("update-expression", ""), self.known)
        table = self._text("table-name")
        return Request(
            operation, table, "", equal, None, (), self._returns, consistent=self._consistent, sets=sets,
            remarks=remarks,
        )  # fmt: skip

    def _updated(self, text: str, known: Names) -> tuple[list[str], list[str]]:
        try:
            return updated(text, known), []
        except NotReadError as error:
            return [], [f"the attributes that it sets are left out: {error}"]

    def _batch_get(self) -> Iterator[Request]:
        for table, given in self._json("request-items").items():
            asked = _dict(given)
            known = Names(_dict(asked.get("ExpressionAttributeNames")), {})
            text = asked.get("ProjectionExpression")
            old = asked.get("AttributesToGet")
            names = [one for one in old if isinstance(one, str)] if isinstance(old, list) else []
            returns = projected(text, known) if isinstance(text, str) else names
            consistent = asked.get("ConsistentRead") is True
            for key in _maps(asked, "Keys"):
                equal = _attributes(key)
                yield Request("get", table, "", equal, None, (), returns, consistent=consistent, batch=True)

    def _batch_write(self) -> Iterator[Request]:
        for table, asked in self._json("request-items").items():
            for one in _maps({"writes": asked}, "writes"):
                put = one.get("PutRequest")
                delete = one.get("DeleteRequest")
                if isinstance(put, dict) and isinstance(put.get("Item"), dict):
                    yield Request("put", table, "", _attributes(put["Item"]), remarks=(BATCH,))
                elif isinstance(delete, dict) and isinstance(delete.get("Key"), dict):
                    yield Request("delete", table, "", _attributes(delete["Key"]), remarks=(BATCH,))
                else:
                    _missing("a PutRequest or a DeleteRequest")

    def _transaction(self) -> Iterator[Request]:
        for one in _maps({"transact-items": _parsed(self._text("transact-items"))}, "transact-items"):
            name, given = next(iter(one.items()))
            asked = _dict(given)
            table = asked.get("TableName")
            if not isinstance(table, str):
                raise NotReadError("its transaction lacks a TableName")
            if name == "ConditionCheck":
                continue  # writes nothing
            if name not in ACTIONS:
                raise NotReadError(f"{quoted(name)} is no part of a transaction")
            equal = _attributes(_map(asked, "Item" if name == "Put" else "Key"))
            known = Names(_dict(asked.get("ExpressionAttributeNames")), _dict(asked.get("ExpressionAttributeValues")))
            update = asked.get("UpdateExpression")
            sets, remarks = self._updated(update if isinstance(update, str) else "", known)
            yield Request(
                ACTIONS[name], table, "", equal, consistent=name == "Get", sets=sets,
                remarks=(*remarks, TRANSACTION),
            )  # fmt: skip


def _parsed(text: str) -> Any:
    """The value of a JSON text, which may have Python's words for true and false; None for anything else."""
    for written in (text, PYTHON_WORD.sub(lambda match: JSON_WORDS[match[1]], text)):
        try:
            return json_bytes.parsed(written)
        except ValueError:
            continue
    return None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options of a command. One without a value is "true"."""
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if not word.startswith("--"):
            raise NotReadError(f"{quoted(word)} in its command is no option")
        name, sign, value = word[2:].partition("=")
        if not sign:
            value = "true"
            if place < len(words) and not words[place].startswith("--"):
                value = words[place]
                place += 1
            while name == NAMES and place < len(words) and not words[place].startswith("--"):
                value, place = f"{value} {words[place]}", place + 1
        yield name, value


def _missing(what: str) -> Any:
    raise NotReadError(f"its command lacks {what}")


def _map(held: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = held.get(name)
    return found if isinstance(found, dict) else _missing(name)


def _maps(held: Any, name: str) -> list[dict[str, Any]]:
    found = held.get(name) if isinstance(held, dict) else None
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) and one for one in found):
        _missing(f"a list in {name}")
    return list(found or ())


def _attributes(item: Mapping[str, Any]) -> dict[str, Value]:
    """The attributes of a key or an item. Raises NotReadError for what is not in DynamoDB's JSON, or nothing."""
    if not item or not all(isinstance(value, dict) and len(value) == 1 for value in item.values()):
        raise NotReadError("its command has no key, or one that is not in DynamoDB's JSON")
    return {str(name): value for name, value in item.items()}
