"""The search for rules, as one call: read the items, find links, find what holds along them, choose, name, check."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Final

from sync_rules.extras.discover.imports.identifiers import NAME_MAX, RESERVED, Unique, make_plural, split_words
from sync_rules.extras.discover.imports.normalization import SettledEntity
from sync_rules.extras.discover.propose import copies, derives, groups, mirrors, number_search, paths
from sync_rules.extras.discover.propose.choice import Lead, choose
from sync_rules.extras.discover.propose.database import Database, explain_full_disk
from sync_rules.extras.discover.propose.frame_loader import LoadedFrames, load
from sync_rules.extras.discover.propose.frames import Frame, add_periods, profile_all
from sync_rules.extras.discover.propose.link_search import Join, list_joins, measure_overlaps
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
from sync_rules.extras.discover.propose.proposal_writer import settle_proposal
from sync_rules.extras.discover.propose.row_staging import COLUMNS_MAX
from sync_rules.extras.discover.propose.table_files import Gathered

CANDIDATES_MAX: Final = 5_000
RATE_HIGH: Final = 0.85
NO_FORM: Final = "their keys have no form that others share"


def ignore_progress(stage: str, share: float) -> None:
    """Report no progress."""


def propose(
    gathered: Gathered, workspace: Path, *, progress: Progress = ignore_progress, threads: int = 2, memory: str = "1GB"
) -> Proposal:
    """Propose the rules that the items of some tables seem to follow. `workspace` holds staged rows and spilled data.

    Raises:
        UserError: if a file is not a file of items, or DuckDB is not installed.
    """
    database = Database(workspace, threads=threads, memory=memory)
    try:
        with explain_full_disk(workspace):
            loaded = load(database, gathered, workspace, progress, threads)
        progress("looking at values", 0.5)
        profile_all(database, loaded.frames)
        add_periods(database, loaded.frames)
        progress("lead links", 0.6)
        shares = measure_overlaps(database, loaded.frames)
        joins = list_joins(database, loaded.frames, shares)
        leads = list(_find_leads(database, loaded.frames, joins, progress))
        leads += mirrors.find_mirrors(database, loaded.frames, shares)
    finally:
        database.close()
    taken = choose(leads)
    progress("done", 1.0)
    return settle_proposal(_make_proposal(gathered, loaded, joins, leads, taken))


def _find_leads(
    database: Database, frames: Sequence[Frame], joins: Sequence[Join], progress: Progress
) -> Iterator[Lead]:
    along = (copies.find_copies, number_search.find_numbers, groups.find_groups, paths.find_paths)
    steps = len(joins) * len(along) + len(frames)
    for number, (join, find) in enumerate(product(joins, along), 1):
        if find is number_search.find_numbers or not join.is_of_periods:
            yield from (_lower_grade(one, join) for one in find(database, join))
        progress("comparing", 0.65 + 0.35 * number / steps)
    for number, frame in enumerate(frames, 1 + len(joins) * len(along)):
        yield from derives.find_derives(database, frame)
        progress("comparing", 0.65 + 0.35 * number / steps)


def _lower_grade(lead: Lead, join: Join) -> Lead:
    """The lead, with the reason why it is no rule where its target does not name its source whole."""
    if join.missing_fields and lead.is_likely:
        lacking = " and ".join(one.path for one in join.missing_fields)
        lead.grade = "weak"
        lead.spoke_against.append(
            f"{join.target.name} does not hold {lacking}, which is part of what names {join.source.name}: add it first"
        )
    return lead


# ---------------------------------------------------------------- the proposal
def _make_proposal(
    gathered: Gathered, loaded: LoadedFrames, joins: Sequence[Join], leads: Sequence[Lead], taken: Sequence[Lead]
) -> Proposal:
    unique = Unique()
    order = sorted(taken, key=lambda one: (not one.is_likely, one.target.name, one.source.name, str(one.rule)))
    rules = tuple(_propose_rule(one, _choose_name(one, unique)) for one in order)
    named = {id(lead): rule.name for lead, rule in zip(order, rules, strict=True)}
    candidates = tuple(_make_candidate(one, named.get(id(one), "")) for one in leads)[:CANDIDATES_MAX]
    tables = tuple(_list_tables(gathered, loaded))
    found = [one for one in joins if not one.by_chance]
    links = tuple(
        Link(
            one.source.name, one.target.name, tuple((field.path, column.path) for field, column in one.pairs),
            one.target.rows, one.held, one.reached,
        )
        for one in found
    )  # fmt: skip
    because = "" if any(one.held_back is None for one in rules) else _explain_nothing(tables, found, rules)
    return Proposal(tables, rules, candidates, links, because, gathered.without_items)


def _explain_nothing(tables: Sequence[ProposedTable], joins: Sequence[Join], rules: Sequence[Proposed]) -> str:
    items = sum(table.items for table in tables)
    if not items:
        return "the tables hold no items"
    if items == 1:
        return "there is one item, and nothing that it could be compared with"
    if not any(table.entities for table in tables):
        return "the items have no common form of keys"
    if rules:
        return "the findings are comments, each with the reason why it is not a rule"
    if not joins:
        return "no attribute names items of another kind, and no attribute follows from others of its item"
    return "no attribute agrees with that of an item which it names, beyond chance"


def _list_tables(gathered: Gathered, loaded: LoadedFrames) -> Iterator[ProposedTable]:
    by_called = {one.found.called: one for one in gathered.tables}
    frames = {frame.name: frame for frame in loaded.frames}
    for table in loaded.settled.tables:
        own = [entity for entity in loaded.settled.entities if entity.table is table]
        entities = tuple(
            _make_entity(entity, frames.get(entity.name), loaded.left_out.get(entity.name, 0))
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


def _make_entity(entity: SettledEntity, frame: Frame | None, left_out: int) -> ProposedEntity:
    attributes = tuple(one.path for one in frame.columns if not one.is_field) if frame is not None else ()
    rows = frame.rows if frame is not None else 0
    columns = frame.columns if frame is not None else ()
    always = tuple(one.path for one in columns if len(one.road) == 1 and one.profile.count - one.profile.empty == rows)
    checks = list(entity.checks)
    if left_out:
        checks.append(f"{left_out:,} values were not looked at: attributes beyond {COLUMNS_MAX}, or of odd names")
    return ProposedEntity(entity.name, entity.table.name, rows, dict(entity.key), attributes, always, tuple(checks))


def _propose_rule(lead: Lead, name: str) -> Proposed:
    against = lead.spoke_against[-1] if lead.spoke_against else "the evidence is thin"
    held_back = lead.source.entity.refused or lead.target.entity.refused or (None if lead.is_likely else against)
    return Proposed(
        name, lead.kind, lead.rule, lead.source.name, lead.target.name, lead.checked, lead.agree, lead.differ,
        _choose_confidence(lead), lead.examples, held_back, sources=lead.sources, orphans=lead.orphans,
        remarks=tuple(lead.remarks), overwrites=lead.overwrites,
    )  # fmt: skip


def _choose_confidence(lead: Lead) -> Confidence:
    if lead.grade == "weak":
        return "low"
    return "high" if lead.grade == "sure" and lead.rate >= RATE_HIGH else "medium"


def _make_candidate(lead: Lead, rule: str) -> Candidate:
    shown = lead.writes[0].column_name if lead.writes else lead.target.name
    source = ", ".join(one.column_name for one in lead.reads) or lead.source.name
    return Candidate(shown, source, lead.kind, rule, tuple(lead.spoke_for), tuple(lead.spoke_against), lead.figures)


def _choose_name(lead: Lead, unique: Unique) -> str:
    """A name for a rule, which no other one has."""
    source, target = lead.source.name, make_plural(lead.target.name)
    written = _slug(*lead.writes[0].road) if lead.writes else ""
    match lead.kind:
        case "copy":
            read = _slug(*lead.reads[0].road)
            own = read if read.startswith(_slug(source)) else f"{_slug(source)}-{read}"
            wanted = f"{own}-on-{_slug(target)}"
        case "mirror":
            wanted = f"{_slug(make_plural(source))}-as-{_slug(target)}"
        case _:
            wanted = f"{written}-of-{_slug(target)}"
    made = wanted[:NAME_MAX].rstrip("-")
    return unique.name(made if re.match("[a-z]", made) and made not in RESERVED else f"rule-{made}"[:NAME_MAX])


def _slug(*names: str) -> str:
    return "-".join(re.sub(r"[^a-z0-9]", "", word) for name in names for word in split_words(name)).strip("-") or "it"
