"""References that go with the item that they refer to.

No rule may write the attribute that it links by, so this is left to a function of the application's: a rule of kind call
has it called for each item that was deleted, and it removes the references to that item, unless it is there again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.model.items import Call
from sync_rules.model.values import get, is_same_value
from sync_rules.pipeline.requests import Read
from tests.peers.bench import Bench
from tests.peers.builder import Builder, UnsupportedError, path_of
from tests.peers.states import changed_item, state_of

FUNCTION: Final = "application.remove_references"
REMOVE: Final = ("remove", "clear", "nullify", "set_null")


def removal(builder: Builder, table: str, attribute: str, to: str) -> None:
    """The rule that has the function called. Raises UnsupportedError."""
    builder.keys_of(table)
    builder.id_of(to)
    if builder.is_list(table, path_of(attribute)):
        raise UnsupportedError("references: removal from a list")
    builder.rule((to, ("references",)), {"call": FUNCTION, "on": to, "when": ["deleted"]})


@dataclass(frozen=True)
class Application:
    """Answers calls: the function, over the tables of a run."""

    bench: Bench
    references: Sequence[Mapping[str, Any]]

    def call(self, call: Call) -> None:
        gone = call.change.key
        if self.bench.store.read(Read((gone,)))[0] is not None:
            return
        ((_, kind, value),) = gone.values
        for reference in self.references:
            if reference["on_delete"] not in REMOVE or reference["to"] != gone.table:
                continue
            path = path_of(reference["attr"])
            for key, item in state_of(self.bench).items():
                if key.table == reference["table"] and is_same_value(get(item, path), {kind: str(value)}):
                    self.bench.put(self.bench.rules.tables[key.table], changed_item(item, {path: None}))


class Nobody:
    """Answers the calls of a dry run."""

    def call(self, call: Call) -> None: ...
