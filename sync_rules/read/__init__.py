"""Lets applications read what rules keep, by GetItem, Query and BatchGetItem alone. `docs/reading.md` shows how.

Invariant: no Scan, and no result that is silently cut short. Derived data and indexes lag by moments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sync_rules.read.graph import Graph, ThreeSteps
from sync_rules.read.hierarchy import Hierarchy
from sync_rules.read.listing import Listing, Page
from sync_rules.read.neighbours import Neighbour, Neighbours
from sync_rules.read.reader import Client, KeyClient, Reader, UnprocessedKeysError
from sync_rules.read.request_counts import Requests, requests_of

if TYPE_CHECKING:
    from sync_rules.extras.design.run.pattern_reader import Patterns

__all__ = [
    "Client",
    "Graph",
    "Hierarchy",
    "KeyClient",
    "Listing",
    "Neighbour",
    "Neighbours",
    "Page",
    "Patterns",
    "Reader",
    "Requests",
    "ThreeSteps",
    "UnprocessedKeysError",
    "requests_of",
]


def __getattr__(name: str) -> Any:
    """Load `Patterns` when it is used: it needs the prover of access patterns, which imports this room."""
    if name != "Patterns":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sync_rules.extras.design.run.pattern_reader import Patterns  # noqa: PLC0415 - see above

    return Patterns
