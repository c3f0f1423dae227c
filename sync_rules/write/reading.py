"""`fresh`: an item with its copies as they must be now, from one strongly consistent read of it and its sources.

Invariant: the rules judge in memory, and nothing is written. A repair is a pull of the pipeline, under its guards.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from sync_rules.adapters.dynamodb import DynamoStore
from sync_rules.adapters.expressions import same_item
from sync_rules.adapters.plain_client import plain
from sync_rules.model.items import Failure, ItemKey
from sync_rules.model.limits import Bounds, Limits
from sync_rules.model.python_values import plain_of
from sync_rules.model.sizes import possible_key
from sync_rules.model.values import Item
from sync_rules.pipeline.consumer import process_message
from sync_rules.pipeline.messages import PullMessage
from sync_rules.pipeline.requests import DroppingQueue, Store, World, run_work
from sync_rules.rules.ruleset import Rules
from sync_rules.write.actions import Actions, Given, place_of
from sync_rules.write.read_through import ReadThrough
from sync_rules.write.rehearsal import Rehearsal
from sync_rules.write.transaction import DEADLINE_SECONDS, Client

REPAIRING: Final = Limits(parked_max_looks=0)


class _Unrecorded:
    """Failures that nobody keeps: the stream reports what stays blocked."""

    def park(self, failure: Failure) -> None:
        """Does nothing."""


def fresh(
    rules: Rules,
    client: Client,
    entity: str,
    item: Given,
    *,
    raw: bool = False,
    repair: bool = False,
    deadline_seconds: float = DEADLINE_SECONDS,
    store: Store | None = None,
) -> dict[str, Any] | None:
    """The item of this entity as the rules that keep attributes of it want it now; None where there is none.

    `item` has the fields of its key. With all that names its sources, such as the item as it was read before, one
    request reads all; else what names them is read first. `repair` writes what differs, under guard.

    Raises:
        WriteError: when no key can be made of the fields.
        StoreError: when a request failed.
    """
    actions = Actions(rules, raw=raw)
    values = actions.values(item)
    _, key = actions.key_of(entity, values)
    until = time.monotonic() + deadline_seconds
    inner = store or DynamoStore(
        plain(client), rules.tables, remaining_seconds=lambda: until - time.monotonic(), write_mode="update"
    )
    seen = ReadThrough(inner, rules.tables)
    likely = (key, *_sources(key, {**values, **key.attributes()}, rules))
    seen.load(one for one in likely if possible_key(one))
    Rehearsal(rules, seen, lambda: time.monotonic() > until).pull(key)
    place = place_of(key)
    before, now = seen.before[place], seen.now(place)
    if repair and not same_item(before, now):
        world = World(inner, DroppingQueue(), _Unrecorded())
        bounds = Bounds(REPAIRING, lambda: time.monotonic() > until)
        run_work(process_message(PullMessage(key), rules, bounds), world)
    return None if now is None else {name: value if raw else plain_of(value) for name, value in now.items()}


def _sources(key: ItemKey, image: Item, rules: Rules) -> Iterator[ItemKey]:
    """The keys of the sources that this image names, and of the marks of books."""
    entity = rules.entity_of(key)
    for rule in () if entity is None else rules.into_target(entity):
        yield from rule.source_keys(image)
        if rule.books is not None:
            yield rule.books.mark
