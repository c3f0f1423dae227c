"""From files of items to frames: infer entities from keys, stage rows, load tables.

Invariant: each item of a file is in the frame of its entity, or counts as an item of no entity.
"""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from sync_rules.extras.discover.imports.identifiers import make_singular, make_table_slug
from sync_rules.extras.discover.imports.imported_model import FoundEntity, FoundTable, ImportedModel
from sync_rules.extras.discover.imports.key_kinds import Sample
from sync_rules.extras.discover.imports.normalization import SettledEntity, SettledModel, settle
from sync_rules.extras.discover.imports.sample_entities import list_entities
from sync_rules.extras.discover.propose.database import Database
from sync_rules.extras.discover.propose.evidence import AGREE_MIN
from sync_rules.extras.discover.propose.frames import Column, Frame
from sync_rules.extras.discover.propose.link_search import make_equality
from sync_rules.extras.discover.propose.proposal import Progress
from sync_rules.extras.discover.propose.row_staging import (
    ENTRY_COLUMNS,
    Layout,
    StagedBatch,
    find_opened_maps,
    make_layout,
    stage,
)
from sync_rules.extras.discover.propose.table_files import Gathered, GatheredTable, read_items
from sync_rules.model.errors import UserError
from sync_rules.model.templates import parse_template

PART: Final = re.compile(r"(?<=[^A-Za-z])([A-Za-z]{2,20}[_-])\{(\w+)\}")
SAMPLES: Final = 4_000  # items of a table that entities are read off
PARALLEL_MIN: Final = 50_000  # items, below which a second process costs more than it saves
PARTS_MAX: Final = 1_000  # of a table
SHARES_EACH: Final = 8  # of the files, for each process, which reports its progress after each
ROUNDS: Final = 3  # times that entities are read off again, for items that fit none


@dataclass
class LoadedFrames:
    """The frames of all tables, and what to report about them."""

    settled: SettledModel
    frames: list[Frame] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)  # by table: items that fit no entity
    left_out: dict[str, int] = field(default_factory=dict)  # by entity: values of attributes that are not looked at


def load(database: Database, gathered: Gathered, directory: Path, progress: Progress, threads: int) -> LoadedFrames:
    """Stage and load all tables. Progress goes from 0 to 0.5.

    Raises:
        UserError: if a file is not a file of items.
    """
    samples = {id(one.found): list(read_items(one.files, max(1, one.items // SAMPLES))) for one in gathered.tables}
    for attempt in range(ROUNDS):
        settled = _find_entities([one.found for one in gathered.tables], samples)
        loaded, strangers = _attempt(
            database, gathered, settled, samples, directory=directory, progress=progress, threads=threads
        )
        if not any(strangers.values()) or attempt == ROUNDS - 1:
            break
        for key, items in strangers.items():
            samples[key] = [*samples[key], *items]
    return loaded


def _find_entities(tables: Sequence[FoundTable], samples: Mapping[int, Sequence[dict[str, Any]]]) -> SettledModel:
    found = ImportedModel("items")
    others = [
        (name, content)
        for items in samples.values()
        for item in items
        for name, value in item.items()
        if isinstance(content := value.get("S"), str)
    ]
    for table in tables:
        fresh = FoundTable(
            table.called, table.physical, table.key, list(table.indexes), table.stream, list(table.checks)
        )
        found.tables.append(fresh)
        entities = list_entities(fresh, [Sample(item) for item in samples[id(table)]], live=True)
        own = {one.name for one in table.key}
        texts = {content for name, content in others if name not in own}
        _restore_whole_parts(entities, texts, samples[id(table)])
        if len(entities) == 1:
            _restore_whole_ids(entities[0], texts, samples[id(table)])
        found.entities += entities
    return settle(found, "items")


def _restore_whole_ids(entity: FoundEntity, texts: AbstractSet[str], items: Sequence[Mapping[str, Any]]) -> None:
    """Take ids such as cus_123 for the field itself in the one kind of a table, unless others leave the word out."""
    for attribute in entity.table.key:
        template = entity.key.get(attribute.name, "")
        own = {str(item[attribute.name].get("S")) for item in items if attribute.name in item}
        start = template.partition("{")[0]
        if not start or template.count("{") != 1 or not template.endswith("}"):
            continue
        cut = {text.removeprefix(start) for text in own}
        whole = len(own & texts)
        field_name = template[len(start) + 1 : -1]
        is_held = sum(field_name in item for item in items) > len(items) // 2
        if whole > len(cut & texts) or (start[-1] in "_-" and not is_held):
            del entity.key[attribute.name]
            entity.called = make_singular(make_table_slug(entity.table.called))


def _restore_whole_parts(
    entities: Sequence[FoundEntity], texts: AbstractSet[str], items: Sequence[Mapping[str, Any]]
) -> None:
    """Take the word of an id such as usr_12 in USER#usr_12 for a part of it, where others name it with the word."""
    values: dict[str, set[str]] = defaultdict(set)
    for attribute, text in ((name, text) for entity in entities for name, text in entity.key.items()):
        for match in PART.finditer(text):
            template = parse_template(text)
            for item in items:
                bound = template.parse(item.get(attribute)) or {}
                if match[2] in bound:
                    values[match[1]].add(str(bound[match[2]].get("S")))
    for word, found in values.items():
        if len({word + one for one in found} & texts) > len(found & texts):
            for entity in entities:
                for name, text in entity.key.items():
                    entity.key[name] = re.sub(rf"(?<=[^A-Za-z]){word}(?=\{{\w)", "", text)


def _attempt(
    database: Database,
    gathered: Gathered,
    settled: SettledModel,
    samples: Mapping[int, Sequence[dict[str, Any]]],
    *,
    directory: Path,
    progress: Progress,
    threads: int,
) -> tuple[LoadedFrames, dict[int, list[dict[str, Any]]]]:
    loaded = LoadedFrames(settled)
    strangers: dict[int, list[dict[str, Any]]] = {}
    total = sum(one.items for one in gathered.tables) or 1
    done = 0
    by_called = {table.found.called: table for table in settled.tables}
    for number, one in enumerate(gathered.tables):
        table = by_called.get(one.found.called)
        if table is None:
            continue
        entities = [each for each in settled.entities if each.table is table]  # the refused come last
        layouts = _make_layouts(entities, samples[id(one.found)])

        def on_share(share: float, before: int = done, items: int = one.items) -> None:
            progress("reading items", 0.5 * (before + share * items) / total)

        parts = _stage_all(one, layouts, directory / "spool", number, threads=threads, on_share=on_share)
        strangers[id(one.found)] = [item for part in parts for item in part.strangers]
        loaded.unknown[table.name] = sum(part.unknown for part in parts)
        for entity, layout in zip(entities, layouts, strict=True):
            loaded.frames.append(_load_frame(database, entity, layout, parts, len(loaded.frames)))
            loaded.unknown[table.name] += loaded.frames[-1].rows if entity.refused else 0
            loaded.left_out[entity.name] = sum(part.entities[layout.name].left_out for part in parts)
        done += one.items
        progress("reading items", 0.5 * done / total)
    return loaded, strangers


def _make_layouts(entities: Sequence[SettledEntity], samples: Sequence[dict[str, Any]]) -> list[Layout]:
    """The layouts, the one whose keys say most first, as a key may fit a looser one too."""
    plain = [make_layout(one) for one in entities]
    own: dict[str, list[dict[str, Any]]] = {one.name: [] for one in plain}
    for item in samples:
        for layout in plain:
            if layout.read_fields(item) is not None:
                own[layout.name].append(item)
                break
    return [make_layout(one, find_opened_maps(own[one.name])) for one in entities]


def _stage_all(
    table: GatheredTable,
    layouts: Sequence[Layout],
    directory: Path,
    number: int,
    *,
    threads: int,
    on_share: Callable[[float], None],
) -> list[StagedBatch]:
    """Read the files, several at once where that pays. `on_share` gets the share of them that is done."""
    workers = min(threads, len(table.files))
    base = number * PARTS_MAX
    if workers <= 1 or table.items < PARALLEL_MIN:
        return [stage(table.files, layouts, directory, base)]
    count = min(len(table.files), workers * SHARES_EACH, PARTS_MAX)
    shares = [table.files[start::count] for start in range(count)]
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_end_silently)
    try:
        with _interrupt_later():  # its processes begin here
            jobs = [pool.submit(stage, share, layouts, directory, base + part) for part, share in enumerate(shares)]
        parts = []
        for job in jobs:
            parts.append(job.result())
            on_share(len(parts) / count)
    except BrokenProcessPool as error:
        raise UserError("a process that read items was ended from outside", "give the machine more memory") from error
    finally:
        pool.shutdown(cancel_futures=True)
    return parts


@contextmanager
def _interrupt_later() -> Iterator[None]:
    """Hold Ctrl-C back, also for processes that begin meanwhile: they would print where they stood."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _end_silently() -> None:
    """Let Ctrl-C end this process at once: the one that began it says so."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _load_frame(
    database: Database, entity: SettledEntity, layout: Layout, parts: Sequence[StagedBatch], number: int
) -> Frame:
    staged = [part.entities[entity.name] for part in parts]
    roads = dict.fromkeys(road for one in staged for road in one.columns)
    order = {road: place for place, road in enumerate(roads)}
    frame = Frame(entity, f"e{number}", f"x{number}", sum(one.count for one in staged))
    frame.roads = list(dict.fromkeys(road for one in staged for road in one.roads))
    bound = set(layout.fields)
    for place, field_name in enumerate(layout.fields):
        frame.columns.append(
            Column(frame, (field_name,), f"f{place}", is_field=True, in_identity=place < layout.identity)
        )
    for road, place in order.items():
        column = Column(frame, road, f"c{place}", is_shadowed=road[0] in bound)
        if not column.in_key:
            frame.columns.append(column)
    fields = {f"f{place}": "VARCHAR" for place in range(len(layout.fields))}
    columns = {f"c{place}": "VARCHAR" for place in order.values()}
    _create(database, frame.sql, {"rid": "BIGINT", **fields, **columns})
    _create(database, frame.entries, ENTRY_COLUMNS)
    for one in staged:
        own = {f"c{order[road]}": "VARCHAR" for road in one.columns}
        if one.count:
            database.load(frame.sql, one.rows, {"rid": "BIGINT", **fields, **own})
        if one.roads:
            database.load(frame.entries, one.entries, ENTRY_COLUMNS)
        one.rows.unlink()
        one.entries.unlink()
    _drop_contradicted_keys(database, frame, layout)
    return frame


def _drop_contradicted_keys(database: Database, frame: Frame, layout: Layout) -> None:
    """Read no field from an index key that attributes contradict: they are the truth, and the key is made of them."""
    key = frame.entity.key
    for name, template in layout.indexed:
        differ = sum(_count_contradictions(database, frame, field) for field in template.fields)
        if differ:
            del key[name]
            frame.entity.checks.append(f"{name} is not what the attributes of {differ:,} items say: they are read")
    bound = {*layout.fields[: layout.identity]}
    bound |= {field for name, template in layout.indexed if name in key for field in template.fields}
    frame.columns = [one for one in frame.columns if not one.is_field or one.road[0] in bound]
    for column in frame.columns:
        column.is_shadowed = not column.is_field and column.road[0] in bound


def _count_contradictions(database: Database, frame: Frame, name: str) -> int:
    """The items whose attribute differs from a field of an index key: that of its name, or one that mostly agrees."""
    field = next(one for one in frame.columns if one.is_field and one.road == (name,))
    others = [one for one in frame.columns if not (one.is_field or one.in_index) and len(one.road) == 1]
    if field.in_identity or not others:
        return 0
    agree = (f"count(*) FILTER ({make_equality(one, 't', field, 't')}), count({one.sql})" for one in others)
    counts = database.row(f"SELECT {', '.join(agree)} FROM {frame.sql} t WHERE {field.sql} IS NOT NULL")
    found = zip(others, counts[::2], counts[1::2], strict=True)
    return max(
        (total - same for one, same, total in found if one.road == field.road or same >= AGREE_MIN * total), default=0
    )


def _create(database: Database, name: str, columns: Mapping[str, str]) -> None:
    inner = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    database.run(f"CREATE OR REPLACE TABLE {name} ({inner})")
