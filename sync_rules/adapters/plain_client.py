"""Makes a plain client from what an application has: a boto3 client, a resource, a table of a resource, or their
client.

Invariant: the plain client shares credentials, endpoint, configuration, connections and event handlers with the given
one. It lacks only the handlers that convert Python values to attribute values and back.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Final

# The handlers that boto3.dynamodb.transform registers on the client of a resource: the name of each, and its event.
CONVERTING: Final = {
    "dynamodb-create-params-copy": "provide-client-params.dynamodb",
    "dynamodb-condition-expression": "before-parameter-build.dynamodb",
    "dynamodb-attr-value-input": "before-parameter-build.dynamodb",
    "dynamodb-attr-value-output": "after-call.dynamodb",
}


def make_plain_client(given: Any) -> Any:
    """Make a client that takes and returns attribute values. Each call makes a new client, in half a millisecond for a
    resource. So it has every handler that was registered before, such as those of a test.
    """
    client = unwrap_client(given)
    if not is_converting(client):
        return client
    twin = object.__new__(type(client))
    vars(twin).update(vars(client))
    twin.meta, twin.meta.events = copy(client.meta), copy(client.meta.events)
    for name, event in CONVERTING.items():
        twin.meta.events.unregister(event, unique_id=name)
    return twin


def unwrap_client(given: Any) -> Any:
    """Return the client of a resource or of a resource's table. A client is returned as it is."""
    return given.meta.client if is_resource(given) else given


def is_resource(given: Any) -> bool:
    """Tell whether this is a resource of boto3, or a part of one."""
    return type(getattr(given, "meta", None)).__name__ == "ResourceMeta"


def find_table_name(given: Any) -> str | None:
    """Return the name of a table that is given as a resource; None for anything else."""
    named = is_resource(given) and given.meta.resource_model.name == "Table"
    return given.name if named else None


def is_converting(client: Any) -> bool:
    """Tell whether a client takes and returns Python values, as that of a resource does."""
    events = getattr(getattr(client, "meta", None), "events", None)
    known = getattr(getattr(events, "_emitter", events), "_unique_id_handlers", {})
    return "dynamodb-attr-value-input" in known
