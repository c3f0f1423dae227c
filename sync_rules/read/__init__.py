"""Lets applications read what rules keep, by GetItem, Query and BatchGetItem alone. `docs/reading.md` shows how.

Invariant: no Scan, and no result that is silently cut short. Derived data and indexes lag by moments.
"""

from __future__ import annotations

from sync_rules.read.counting import Requests, requests_of
from sync_rules.read.graph import Graph, ThreeSteps
from sync_rules.read.hierarchy import Hierarchy
from sync_rules.read.listing import Listing, Page
from sync_rules.read.neighbours import Neighbour, Neighbours
from sync_rules.read.patterns import Patterns
from sync_rules.read.reader import Client, KeyClient, Reader, UnprocessedKeysError

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
