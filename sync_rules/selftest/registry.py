"""Every probe by the number of its fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sync_rules.selftest.probes import items, mappings, partiql, reads, services, streams, writes
from sync_rules.selftest.site import Site

PROBES: Final[Mapping[int, Callable[[Site], str]]] = {
    **streams.PROBES,
    **reads.PROBES,
    **writes.PROBES,
    **partiql.PROBES,
    **items.PROBES,
    **mappings.PROBES,
    **services.PROBES,
}
