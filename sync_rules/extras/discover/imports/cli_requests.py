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
    Names,
    NotReadError,
    RequestCondition,
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
CAPITAL: Final = re.compile(r"[A-Z]")
PAGE: Final = re.compile(r"[1-9]\d{0,5}")
JSON_WORDS: Final = {"True": "true", "False": "false", "None": "null"}
SCAN: Final = "it is a Scan, which reads the whole table: write what it asks for, and `by` which fields"
TRANSACTION: Final = "it is part of a transaction, which costs twice as many units"
NAMES: Final = "AttributesToGet"  # as requests named them before there were expressions
OLD_FILTERS: Final = frozenset({"QueryFilter", "ConditionalOperator"})
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
    within: RequestCondition | None = None
    filters: Sequence[RequestCondition] = ()
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
    return [request for one in _commands(words) for request in _requests(one)]


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


def _requests(words: Sequence[str]) -> Iterator[Request]:
    """The requests of one command."""
    if list(words[:2]) != ["aws", "dynamodb"] or len(words) <= 2:  # noqa: PLR2004 - aws dynamodb OPERATION
        raise NotReadError("its command is not one of `aws dynamodb`")
    given = {"".join(map(str.capitalize, name.split("-"))): value for name, value in _options(words[3:])}
    if "CliInputJson" in given or "CliInputYaml" in given:
        raise NotReadError("its command takes its options from elsewhere")
    match words[2]:
        case "query":
            yield _GivenRequest(given).query()
        case "scan":
            raise NotReadError(SCAN)
        case "batch-get-item":
            yield from _batch_get(_GivenRequest(given).map("RequestItems"))
        case "batch-write-item":
            yield from _batch_write(_GivenRequest(given).map("RequestItems"))
        case "transact-get-items" | "transact-write-items":
            yield from _transaction(given)
        case operation if operation in ITEMS:
            yield _GivenRequest(given).item(ITEMS[operation])
        case operation:
            raise NotReadError(f"`aws dynamodb {quoted(operation)[1:-1]}` neither reads nor writes items by key")


class _GivenRequest:
    """A request as the options of a command, or a part of its JSON, give it, by the names of the API: TableName."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.known = Names(self.map("ExpressionAttributeNames"), self.map("ExpressionAttributeValues"))

    def map(self, name: str) -> dict[str, Any]:
        """A map; empty where it is not given."""
        found = _parsed(self.given.get(name, {}))
        if not isinstance(found, dict):
            raise NotReadError(f"{_option(name)} is no map of JSON")
        return found

    def text(self, name: str) -> str:
        """A text; "" where it is not given."""
        found = self.given.get(name)
        return found if isinstance(found, str) else ""

    def query(self) -> Request:
        """The request of a query."""
        equal: dict[str, Value] = {}
        within = None
        for one in conditions(self._required("KeyConditionExpression"), self.known):
            if one.operator == "=" and len(one.path) == 1:
                equal[one.path[0]] = one.values[0]
            elif within is None and len(one.path) == 1:
                within = one
            else:
                raise NotReadError("its key condition has two ranges, or one of a nested attribute")
        filters, remarks = self._filters()
        backward = "NoScanIndexForward" in self.given or self.text("ScanIndexForward") == "false"
        page = self.text("Limit") or self.text("MaxItems")
        return Request(
            "query", self._required("TableName"), self.text("IndexName"), equal, within, filters, self._returns,
            backward, self._consistent, int(page) if PAGE.fullmatch(page) else None, remarks=remarks,
        )  # fmt: skip

    def item(self, operation: Operation, *, batch: bool = False, remarks: Sequence[str] = ()) -> Request:
        """The request for one item by its key."""
        equal = _attributes(self.map("Item" if operation == "put" else "Key"))
        sets: list[str] = []
        try:
            sets = updated(self.text("UpdateExpression"), self.known)
        except NotReadError as error:
            remarks = [f"the attributes that it sets are left out: {error}", *remarks]
        return Request(
            operation, self._required("TableName"), "", equal, None, (), self._returns, consistent=self._consistent,
            sets=sets, batch=batch, remarks=remarks,
        )  # fmt: skip

    def _required(self, name: str) -> str:
        return self.text(name) or _missing(_option(name))

    @property
    def _consistent(self) -> bool:
        return str(self.given.get("ConsistentRead", False)).lower() != "false"

    @property
    def _returns(self) -> list[str]:
        names = self.given.get(NAMES, [])
        if isinstance(names, str):
            names = _parsed(names) if names.startswith("[") else names.replace(",", " ").split()
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise NotReadError(f"{_option(NAMES)} is no list of names")
        return projected(self.text("ProjectionExpression"), self.known) or names

    def _filters(self) -> tuple[list[RequestCondition], list[str]]:
        text = self.text("FilterExpression")
        if not text:
            return [], [OLD_FILTER] if OLD_FILTERS & self.given.keys() else []
        try:
            return conditions(text, self.known), []
        except NotReadError as error:
            return [], [f"its filter is left out: {error}"]


def _batch_get(tables: Mapping[str, Any]) -> Iterator[Request]:
    for table, asked in tables.items():
        for key in _maps(asked, "Keys"):
            yield _GivenRequest({**asked, "TableName": table, "Key": key}).item("get", batch=True)


def _batch_write(tables: Mapping[str, Any]) -> Iterator[Request]:
    for table, asked in tables.items():
        for one in _maps({"writes": asked}, "writes"):
            operation: Operation = "put" if "PutRequest" in one else "delete"
            given = one.get("PutRequest", one.get("DeleteRequest"))
            if not isinstance(given, dict):
                raise NotReadError("its command lacks a PutRequest or a DeleteRequest")
            yield _GivenRequest({**given, "TableName": table}).item(operation, remarks=(BATCH,))


def _transaction(given: Mapping[str, Any]) -> Iterator[Request]:
    for one in _maps({"transact-items": _parsed(given.get("TransactItems", ""))}, "transact-items"):
        name, part = next(iter(one.items()))
        if name == "ConditionCheck":
            continue  # writes nothing
        if name not in ACTIONS:
            raise NotReadError(f"{quoted(name)} is no part of a transaction")
        asked = {**(part if isinstance(part, dict) else {}), "ConsistentRead": name == "Get"}
        yield _GivenRequest(asked).item(ACTIONS[name], remarks=(TRANSACTION,))


# ---------------------------------------------------------------- values
def _parsed(value: Any) -> Any:
    """The value of a JSON text, which may have Python's words for true and false; None for any other text."""
    if not isinstance(value, str):
        return value
    for written in (value, PYTHON_WORD.sub(lambda match: JSON_WORDS[match[1]], value)):
        try:
            return json_bytes.parsed(written)
        except ValueError:
            continue
    return None


def _option(name: str) -> str:
    """The option of the AWS CLI for a name of the API: --table-name."""
    return "-" + CAPITAL.sub(lambda match: f"-{match[0].lower()}", name)


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
            while name == "attributes-to-get" and place < len(words) and not words[place].startswith("--"):
                value, place = f"{value} {words[place]}", place + 1
        yield name, value


def _missing(what: str) -> Any:
    raise NotReadError(f"its command lacks {what}")


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
