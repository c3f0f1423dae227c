"""The search for rules, as one call: read the items, find links, find what holds along them, choose, name, check."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from sync_rules.extras.discover.imports.identifiers import Unique
from sync_rules.extras.discover.imports.normalization import SettledEntity
from sync_rules.extras.discover.propose import copies, derives, groups, mirrors, number_search, paths
from sync_rules.extras.discover.propose.candidates import Finding
from sync_rules.extras.discover.propose.choice import chosen
from sync_rules.extras.discover.propose.database import Database, full_disk_as_mistake
from sync_rules.extras.discover.propose.frame_loader import Loaded, load
from sync_rules.extras.discover.propose.frames import Frame, profile_all
from sync_rules.extras.discover.propose.link_search import Join, joins_of, overlaps
from sync_rules.extras.discover.propose.proposal import (
    Candidate,
    Confidence,
    Link,
    Progress,
    Proposal,
    Proposed,
    ProposedEntity,
    ProposedTable,
)
from sync_rules.extras.discover.propose.proposal_writer import settled
from sync_rules.extras.discover.propose.row_staging import COLUMNS_MAX
from sync_rules.extras.discover.propose.rule_names import name_of
from sync_rules.extras.discover.propose.table_files import Gathered

CANDIDATES_MAX: Final = 5_000
RATE_HIGH: Final = 0.85
NO_FORM: Final = "their keys have no form that others share"


def silent(stage: str, share: float) -> None:
    """Report no progress."""


def propose(
    gathered: Gathered, workspace: Path, *, progress: Progress = silent, threads: int = 2, memory: str = "1GB"
) -> Proposal:
    """The rules that the items of some tables seem to follow. `workspace` takes what is staged, and what spills.

    Raises:
        UserError: when a file is no file of items, or DuckDB is not installed.
    """
    database = Database(workspace, threads=threads, memory=memory)
    try:
        with full_disk_as_mistake(workspace):
            loaded = load(database, gathered, workspace, progress, threads)
        progress("looking at values", 0.5)
        profile_all(database, loaded.frames)
        progress("finding links", 0.6)
        shares = overlaps(database, loaded.frames)
        joins = joins_of(database, loaded.frames, shares)
        findings = list(_findings(database, loaded.frames, joins, progress))
        findings += mirrors.mirrors(database, loaded.frames, shares)
    finally:
        database.close()
    taken = chosen(findings)
    progress("done", 1.0)
    return settled(_proposal(gathered, loaded, joins, findings, taken))


def _findings(
    database: Database, frames: Sequence[Frame], joins: Sequence[Join], progress: Progress
) -> Iterator[Finding]:
    along: list[Callable[[Database, Join], list[Finding]]] = [
        copies.copies,
        number_search.numbers,
        groups.groups,
        paths.paths,
    ]
    within: list[Callable[[Database, Frame], list[Finding]]] = [derives.derives]
    steps = len(joins) * len(along) + len(frames) * len(within) or 1
    done = 0
    for join in joins:
        for find in along:
            yield from (_as_far_as_known(one, join) for one in find(database, join))
            done += 1
            progress("comparing", 0.65 + 0.35 * done / steps)
    for frame in frames:
        for look in within:
            yield from look(database, frame)
            done += 1
            progress("comparing", 0.65 + 0.35 * done / steps)


def _as_far_as_known(finding: Finding, join: Join) -> Finding:
    """The finding, with the reason why it is no rule where its target does not name its source whole."""
    if join.lacking and finding.is_likely:
        lacking = " and ".join(one.path for one in join.lacking)
        finding.grade = "weak"
        finding.spoke_against.append(
            f"{join.target.name} does not hold {lacking}, which is part of what names {join.source.name}: add it first"
        )
    return finding


# ---------------------------------------------------------------- the proposal
def _proposal(
    gathered: Gathered, loaded: Loaded, joins: Sequence[Join], findings: Sequence[Finding], taken: Sequence[Finding]
) -> Proposal:
    unique = Unique()
    order = sorted(taken, key=lambda one: (not one.is_likely, one.target.name, one.source.name, str(one.rule)))
    rules = tuple(_proposed(one, name_of(one, unique)) for one in order)
    kept = {id(one) for one in taken}
    candidates = tuple(_candidate(one, taken=id(one) in kept) for one in findings)[:CANDIDATES_MAX]
    tables = tuple(_tables(gathered, loaded))
    found = [one for one in joins if not one.by_chance]
    links = tuple(
        Link(
            one.source.name, one.target.name, tuple((field.path, column.path) for field, column in one.pairs),
            one.target.rows, one.held, one.reached,
        )
        for one in found
    )  # fmt: skip
    because = "" if any(one.held_back is None for one in rules) else _nothing(tables, found, rules)
    return Proposal(tables, rules, candidates, links, because, gathered.without_items)


def _nothing(tables: Sequence[ProposedTable], joins: Sequence[Join], rules: Sequence[Proposed]) -> str:
    items = sum(table.items for table in tables)
    if not items:
        return "the tables hold no items"
    if items == 1:
        return "there is one item, and nothing that it could be compared with"
    if not any(table.entities for table in tables):
        return "the items have no common form of keys"
    if rules:
        return "what was found stands as comments, each with the reason why it is no rule"
    if not joins:
        return "no attribute names items of another kind, and no attribute follows from others of its item"
    return "no attribute agrees with that of an item which it names, beyond chance"


def _tables(gathered: Gathered, loaded: Loaded) -> Iterator[ProposedTable]:
    by_called = {one.found.called: one for one in gathered.tables}
    frames = {frame.name: frame for frame in loaded.frames}
    for table in loaded.settled.tables:
        own = [entity for entity in loaded.settled.entities if entity.table is table]
        entities = tuple(
            _entity(entity, frames.get(entity.name), loaded.left_out.get(entity.name, 0))
            for entity in own
            if not entity.refused
        )
        refused = [f"{entity.name} is left out: {entity.refused}" for entity in own if entity.refused]
        checks = [*table.checks, *refused]
        unknown = loaded.unknown.get(table.name, 0)
        if unknown:
            because = f"see {' and '.join(one.name for one in own if one.refused)}" if refused else NO_FORM
            checks.append(f"{unknown:,} items are of no entity: {because}")
        yield ProposedTable(table.name, table.found, by_called[table.found.called].items, entities, tuple(checks))


def _entity(entity: SettledEntity, frame: Frame | None, left_out: int) -> ProposedEntity:
    attributes = tuple(one.path for one in frame.columns if not one.is_field) if frame is not None else ()
    rows = frame.rows if frame is not None else 0
    columns = frame.columns if frame is not None else ()
    always = tuple(one.path for one in columns if len(one.road) == 1 and one.profile.count - one.profile.empty == rows)
    checks = list(entity.checks)
    if left_out:
        checks.append(f"{left_out:,} values were not looked at: attributes beyond {COLUMNS_MAX}, or of odd names")
    return ProposedEntity(entity.name, entity.table.name, rows, dict(entity.key), attributes, always, tuple(checks))


def _proposed(finding: Finding, name: str) -> Proposed:
    return Proposed(
        name,
        finding.kind,
        finding.rule,
        finding.source.name,
        finding.target.name,
        finding.checked,
        finding.agree,
        finding.differ,
        _confidence(finding),
        finding.examples,
        None if finding.is_likely else (finding.spoke_against[-1] if finding.spoke_against else "the evidence is thin"),
        sources=finding.sources,
        orphans=finding.orphans,
        remarks=tuple(finding.remarks),
    )


def _confidence(finding: Finding) -> Confidence:
    if finding.grade == "weak":
        return "low"
    return "high" if finding.grade == "sure" and finding.rate >= RATE_HIGH else "medium"


def _candidate(finding: Finding, *, taken: bool) -> Candidate:
    shown = finding.writes[0].shown if finding.writes else finding.target.name
    source = ", ".join(one.shown for one in finding.reads) or finding.source.name
    return Candidate(
        shown, source, finding.kind, taken, tuple(finding.spoke_for), tuple(finding.spoke_against), finding.figures
    )
