"""Replace a client, a resource or a table of boto3, and note each write through it on a declared entity.

Invariant: a write goes to the client unchanged, and its answer has the form that the application requested. The former
item comes from the answer if possible; otherwise it is read before the write.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final

from sync_rules.adapters.plain_client import find_table_name, is_converting, unwrap_client
from sync_rules.model.entities import Table
from sync_rules.model.errors import UserError
from sync_rules.model.items import ItemKey
from sync_rules.model.python_values import make_raw_value
from sync_rules.model.semantics import Place, make_place
from sync_rules.model.values import Item
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Given


@dataclass(eq=False)
class FollowBlock:
    """The items that were written in one block, each with its image before the block."""

    noted: dict[Place, tuple[ItemKey, Item | None]] = field(default_factory=dict)


@dataclass(eq=False)
class FollowBlocks:
    """The blocks of one `follow`, which may run in several threads and tasks at once. `outside` holds writes outside
    all blocks, such as in a thread that a block started. The block that ends next processes them.
    """

    outside: FollowBlock = field(default_factory=FollowBlock)
    open: list[FollowBlock] = field(default_factory=list)
    result: Any = None

    def here(self) -> FollowBlock:
        """Return the innermost block of this thread or task."""
        return next((block for owner, block in reversed(_HERE.get()) if owner is self), self.outside)

    def begin(self) -> FollowBlock:
        """Begin a block in this thread or task."""
        block = FollowBlock()
        self.open.append(block)
        _HERE.set((*_HERE.get(), (self, block)))
        return block

    def end(self) -> list[tuple[ItemKey, Item | None]]:
        """End the innermost block and return its items. If a framework ends the block in another context than it began
        it, end the last open block.
        """
        block = self.here()
        if block is self.outside and self.open:
            block = self.open[-1]
        _HERE.set(tuple(one for one in _HERE.get() if one[1] is not block))
        if block in self.open:
            self.open.remove(block)
        outside, self.outside = self.outside, FollowBlock()
        return [*outside.noted.values(), *(() if block is outside else block.noted.values())]


_HERE: Final[ContextVar[tuple[tuple[FollowBlocks, FollowBlock], ...]]] = ContextVar("sync_rules_follow", default=())


class Original:
    """A client, resource or table that the application gave. `python`: it takes Python values. `usual` holds the
    parameters that a table adds to each request.
    """

    def __init__(self, given: Any) -> None:
        name = find_table_name(given)
        self.given = given
        self.client = unwrap_client(given)
        self.python = is_converting(self.client)
        self.usual: Mapping[str, Any] = {} if name is None else {"TableName": name}


class ClientProxy(ABC):
    """A proxy of a client, resource or table. It passes on all attributes that it does not define."""

    def __init__(self, rules: Rules, given: Any) -> None:
        self._rules = rules
        self._tables: Mapping[str, Table] = {table.physical_name: table for table in rules.tables.values()}
        self._original = Original(given)
        self._blocks = FollowBlocks()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._original.given, name)
        return self._make_table if name == "Table" else found

    def _make_table(self, *named: Any, **given: Any) -> Any:
        """A table of the resource, on which writes are noted too."""
        twin = copy(self)
        vars(twin)["_original"] = Original(self._original.given.Table(*named, **given))
        return twin

    def _note(self, key: ItemKey, before: Item | None) -> None:
        self._blocks.here().noted.setdefault(make_place(key), (key, before))

    def _is_noted(self, key: ItemKey) -> bool:
        return make_place(key) in self._blocks.here().noted

    @abstractmethod
    def _read(self, keys: tuple[ItemKey, ...]) -> Iterable[Item | None]:
        """Read items, strongly consistent."""

    # ------------------------------------------------------------ writes
    def put_item(self, **parameters: Any) -> Any:
        return self._write_item(self._original.client.put_item, parameters, parameters.get("Item"))

    def update_item(self, **parameters: Any) -> Any:
        return self._write_item(self._original.client.update_item, parameters, parameters.get("Key"))

    def delete_item(self, **parameters: Any) -> Any:
        return self._write_item(self._original.client.delete_item, parameters, parameters.get("Key"))

    def batch_write_item(self, **parameters: Any) -> Any:
        """Write several items, and note them."""
        requests = [(name, one) for name, some in parameters.get("RequestItems", {}).items() for one in some]
        self._before((name, of.get("Item") or of.get("Key")) for name, one in requests for of in one.values())
        return self._original.client.batch_write_item(**parameters)

    def transact_write_items(self, **parameters: Any) -> Any:
        """Write several items together, and note them."""
        actions = [
            of for one in parameters.get("TransactItems", ()) for verb, of in one.items() if verb != "ConditionCheck"
        ]
        self._before((of["TableName"], of.get("Item") or of.get("Key")) for of in actions)
        return self._original.client.transact_write_items(**parameters)

    def batch_writer(self, **options: Any) -> Any:
        """Return the batch writer of a table. Its writes are noted."""
        made = type(self._original.given.batch_writer())
        return made(self._original.usual["TableName"], self, **options)

    # ------------------------------------------------------------ what they were before
    def _write_item(self, call: Callable[..., Any], given: Mapping[str, Any], named: Given | None) -> Any:
        """Make a write of one item. The answer brings the former item, unless the application wants another one."""
        parameters = {**self._original.usual, **given}
        key = self._key(parameters.get("TableName", ""), named or {})
        if key is None or self._is_noted(key):
            return call(**parameters)
        if parameters.get("ReturnValues", "NONE") not in ("NONE", "ALL_OLD"):
            self._before([(parameters["TableName"], named)])
            return call(**parameters)
        answer = call(**{**parameters, "ReturnValues": "ALL_OLD"})
        former = answer.get("Attributes")
        self._note(key, self._raw(former) if former else None)
        if parameters.get("ReturnValues", "NONE") == "NONE":
            answer.pop("Attributes", None)
        return answer

    def _before(self, named: Iterable[tuple[str, Given | None]]) -> None:
        keys = (self._key(table, item or {}) for table, item in named)
        unread = tuple(key for key in dict.fromkeys(keys) if key is not None and not self._is_noted(key))
        if unread:
            for key, item in zip(unread, self._read(unread), strict=True):
                self._note(key, item)

    def _key(self, physical_name: str, item: Given) -> ItemKey | None:
        """The key of an item of a declared entity; None for any other, and for one that the client will refuse."""
        table = self._tables.get(physical_name.rpartition("/")[2])  # an ARN is good too
        if table is None:
            return None
        try:
            key = table.key_of(self._raw({one.name: item[one.name] for one in table.key if one.name in item}))
        except (UserError, TypeError):
            return None
        return None if key is None or self._rules.entity_of(key) is None else key

    def _raw(self, item: Given) -> Item:
        return {name: make_raw_value(value) for name, value in item.items()} if self._original.python else dict(item)
