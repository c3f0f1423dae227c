"""The figures of a verify through JSON, and added up over calls that saw parts of the same.

Law: what two calls saw counts once. A row tells a rule, keys and an element, and never a value.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

from sync_rules.audit.compare import Drift
from sync_rules.audit.findings import Tally
from sync_rules.jobs.account.protocol import Body

COUNTERS: Final = ("right", "kept", "orphaned", "lag", "drift", "repaired")
PAIRED: Final = ("unmended", "hopeless")


def tally_body(tally: Tally) -> dict[str, Any]:
    """As JSON."""
    single = {name: dict(getattr(tally, name)) for name in COUNTERS}
    paired = {
        name: [[rule, drift.value, count] for (rule, drift), count in getattr(tally, name).items()] for name in PAIRED
    }
    return {"items": tally.items, **single, **paired}


def tally_of(body: Body) -> Tally:
    """From JSON."""
    tally = Tally(items=body["items"])
    for name in COUNTERS:
        setattr(tally, name, Counter(body[name]))
    for name in PAIRED:
        setattr(tally, name, Counter({(rule, Drift(drift)): count for rule, drift, count in body[name]}))
    return tally


def add(tally: Tally, other: Tally) -> None:
    """Take in what another call found elsewhere."""
    for name in (*COUNTERS, *PAIRED):
        getattr(tally, name).update(getattr(other, name))
    tally.items += other.items


def take_out(tally: Tally, rule: str, drift: Drift, *, repaired: bool) -> None:
    """Take out what was counted twice."""
    tally.drift[rule] -= 1
    tally.repaired[rule] -= repaired
    tally.unmended[rule, drift] -= not repaired
    if drift is Drift.STUCK and not repaired:  # of parts, nothing else is hopeless
        tally.hopeless[rule, drift] -= 1


def is_new(row: Body, known: set[int]) -> bool:
    """Whether a row is of something that no row before it told; `known` is what is remembered of those."""
    about = hash(json.dumps([row["rule"], row["target"], row["element"], row["source"]]))
    new = row["element"] is None or about not in known  # who is no part is seen once
    known.add(about)
    return new
