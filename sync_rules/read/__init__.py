"""Lets applications read what rules keep, by Query and BatchGetItem alone. `docs/reading.md` shows how.

Invariant: no Scan, and no result that is silently cut short. Derived data and indexes lag by moments.
"""

from __future__ import annotations

from sync_rules.read.graph import Graph, ThreeSteps
from sync_rules.read.hierarchy import Hierarchy
from sync_rules.read.listing import Listing, Page
from sync_rules.read.neighbours import Neighbour, Neighbours
from sync_rules.read.reader import Client, Reader, UnprocessedKeysError

__all__ = [
    "Client",
    "Graph",
    "Hierarchy",
    "Listing",
    "Neighbour",
    "Neighbours",
    "Page",
    "Reader",
    "ThreeSteps",
    "UnprocessedKeysError",
]
