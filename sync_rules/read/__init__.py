"""For applications: reading what the rules keep, by Query and BatchGetItem alone. `docs/reading.md` shows how.

Law: never a Scan, never a result cut short unsaid, never a name repeated that a rule already says. What rules keep, and
every index, follows the items it is made of within moments: a reader sees it then.
"""

from __future__ import annotations

from sync_rules.read.graph import Graph, Neighbour, Neighbours, ThreeSteps
from sync_rules.read.hierarchy import Hierarchy
from sync_rules.read.listing import Listing, Page
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
