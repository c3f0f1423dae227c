"""Every probe by the number of its fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sync_rules.extras.proof.probes import (
    item_facts,
    mapping_facts,
    partiql_facts,
    read_facts,
    service_facts,
    stream_facts,
    write_facts,
)
from sync_rules.extras.proof.proof_stack import Site

PROBES: Final[Mapping[int, Callable[[Site], str]]] = {
    **stream_facts.PROBES,
    **read_facts.PROBES,
    **write_facts.PROBES,
    **partiql_facts.PROBES,
    **item_facts.PROBES,
    **mapping_facts.PROBES,
    **service_facts.PROBES,
}
