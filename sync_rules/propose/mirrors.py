"""Mirrors: items that have the content of another item under a key that is made of its attributes.

Invariant: a mirror exists for each source that has what its key is made of, and holds nothing of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any, Final

from sync_rules.propose.copies import EXAMPLES
from sync_rules.propose.database import Database
from sync_rules.propose.evidence import AGREE_MIN
from sync_rules.propose.findings import Finding
from sync_rules.propose.frames import Column, Frame
from sync_rules.propose.links import Overlap, equal
from sync_rules.propose.proposal import Example

HELD_MIN: Final = 0.75  # of the mirrors have a source, and of the sources a mirror
WAYS_MAX: Final = 12
ITEMS_MIN: Final = 3
Overlaps = dict[tuple[Column, Column], Overlap]


def mirrors(database: Database, frames: Sequence[Frame], overlaps: Overlaps) -> Iterator[Finding]:
    """Find the entities that mirror another one."""
    for mirror in frames:
        for source in frames:
            if mirror is not source and mirror.identity and mirror.rows >= ITEMS_MIN and source.rows >= ITEMS_MIN:
                best = _best(database, source, mirror, overlaps)
                if best is not None:
                    yield best


def _best(database: Database, source: Frame, mirror: Frame, overlaps: Overlaps) -> Finding | None:
    """The best way to fill the mirror's key from columns of the source."""
    choices = []
    for field in mirror.identity:
        there = [
            column
            for column in source.columns
            if not column.is_shadowed
            and (overlap := overlaps.get((column, field))) is not None
            and overlap.values >= HELD_MIN
        ]
        choices.append(there)
    found = []
    for columns in islice(product(*choices), WAYS_MAX):
        if len(set(columns)) == len(columns):
            finding = _measured(database, source, mirror, columns)
            if finding is not None:
                found.append(finding)
    return max(found, key=lambda one: (one.rate, one.named), default=None)


def _measured(database: Database, source: Frame, mirror: Frame, columns: Sequence[Column]) -> Finding | None:
    pairs = list(zip(mirror.identity, columns, strict=True))
    on = " AND ".join(equal(column, "s", field, "m") for field, column in pairs)
    there = " AND ".join(f"s.{column.sql} IS NOT NULL" for column in columns)
    wanted, distinct, both = database.row(
        f"SELECT (SELECT count(*) FROM {source.sql} s WHERE {there}), "
        f"(SELECT count(DISTINCT m.rid) FROM {source.sql} s JOIN {mirror.sql} m ON {on}), "
        f"(SELECT count(*) FROM {source.sql} s JOIN {mirror.sql} m ON {on})"
    )
    if not both or distinct < both or both < HELD_MIN * wanted or distinct < HELD_MIN * mirror.rows:
        return None
    attributes = _attributes(database, source, mirror, on)
    if attributes is None:
        return None
    return _finding(database, source, mirror, pairs, attributes=attributes, wanted=wanted)


def _attributes(database: Database, source: Frame, mirror: Frame, on: str) -> list[tuple[Column, Column]] | None:
    """The attributes of the mirror with those of the source that they equal; None if it has some of its own."""
    own = [
        one
        for one in mirror.columns
        if not one.is_field and not one.is_shadowed and len(one.road) == 1 and one.profile.count
    ]
    own = [one for one in own if not one.in_index]
    theirs = [one for one in source.columns if not one.is_shadowed and one.profile.count]
    found = []
    for column in own:
        parts = [f"count(*) FILTER (m.{column.sql} IS NOT DISTINCT FROM s.{one.sql})" for one in theirs]
        if not parts:
            return None
        total, *counts = database.row(
            f"SELECT count(*), {', '.join(parts)} FROM {source.sql} s JOIN {mirror.sql} m ON {on}"
        )
        ranked = sorted(zip(counts, theirs, strict=True), key=lambda one: (-one[0], one[1].path != column.path))
        count, best = ranked[0]
        if count >= AGREE_MIN * total and not (column.profile.is_constant and best.path != column.path):
            found.append((column, best))
        elif not column.profile.is_constant:
            return None
    return found


def _finding(
    database: Database, source: Frame, mirror: Frame, pairs: list[tuple[Column, Column]],
    *, attributes: list[tuple[Column, Column]], wanted: int,
) -> Finding:  # fmt: skip
    kept = [(one, other) for one, other in attributes if not other.in_identity or one.path != other.path]
    alike = " AND ".join(f"m.{one.sql} IS NOT DISTINCT FROM s.{other.sql}" for one, other in kept) or "true"
    on = " AND ".join(equal(column, "s", field, "m") for field, column in pairs)
    there = " AND ".join(f"s.{column.sql} IS NOT NULL" for _, column in pairs)
    (agree,) = database.row(f"SELECT count(*) FROM {source.sql} s JOIN {mirror.sql} m ON {on} WHERE {alike}")
    (strangers,) = database.row(
        f"SELECT count(*) FROM {mirror.sql} m WHERE NOT EXISTS (SELECT 1 FROM {source.sql} s WHERE {on})"
    )
    rows = database.rows(
        f"SELECT {source.key_shown('s')} k FROM {source.sql} s LEFT JOIN {mirror.sql} m ON {on} "
        f"WHERE {there} AND (m.rid IS NULL OR NOT ({alike})) ORDER BY k LIMIT {EXAMPLES}"
    )
    rule: dict[str, Any] = {"mirror": source.name, "into": mirror.name}
    link = {field.path: column.path for field, column in pairs if field.path != column.path}
    if link:
        rule["link"] = link
    if kept:
        plain = all(one.path == other.path for one, other in kept)
        rule["attributes"] = [one.path for one, _ in kept] if plain else {o.path: one.path for one, o in kept}
    reads = (*(column for _, column in pairs), *(other for _, other in kept))
    finding = Finding(
        "mirror", source, mirror, tuple(one for one, _ in attributes), reads, rule,
        "sure" if agree >= AGREE_MIN * wanted else "none", wanted, agree, strangers,
    )  # fmt: skip
    finding.examples = tuple(Example(key, "a mirror like it", "another, or none") for (key,) in rows)
    finding.plainness, finding.sources, finding.named = 6, wanted, 0.5
    finding.spoke_for = [f"{agree} of {wanted} have an item of the same content under the other key"]
    return finding
