"""Write what an importer found as a rules file, with a `# CHECK:` at every uncertain place.

Invariant: the text passes `check`. A part that would not pass is written as a comment with the reason, or the import is
refused.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from sync_rules.extras.discover.imports.foreign_document import AGAIN, ImportedFileError
from sync_rules.extras.discover.imports.imported_model import NO_STREAM, ImportedModel, RulesDraft
from sync_rules.extras.discover.imports.normalization import (
    SettledEntity,
    SettledModel,
    SettledPattern,
    SettledTable,
    settle,
)
from sync_rules.language.load import check_rules
from sync_rules.language.problems import Problem, list_errors
from sync_rules.model.entities import Index, KeyAttribute

EDITOR_LINE: Final = "# yaml-language-server: $schema=./sync-rules.schema.json"
LINE_MAX: Final = 110
PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
NO_RULES: Final = "rules: {}"
Part = str | dict[str, str]  # YAML on one line, or of each key of a map


def draft_rules(found: ImportedModel, file: str) -> RulesDraft:
    """Make the rules file of what was found.

    Raises:
        ImportedFileError: if it has no table, or no rules file can be made from it.
    """
    if not found.tables:
        raise ImportedFileError(file, "", f"a table in the {found.origin}", "none", AGAIN)
    settled = settle(found, file)
    head = f"# Made from {join_lines(Path(file).name)} ({found.origin}). Look at each CHECK before you rely on it."
    text = _drop_refused_parts(settled, head, file)
    notes = [*settled.notes, *_list_notes(settled)]
    return RulesDraft(text, tuple(dict.fromkeys(join_lines(note) for note in notes)), found.origin)


def _drop_refused_parts(settled: SettledModel, head: str, file: str) -> str:
    """The text without what check refuses: it is taken out, with a remark, until nothing is refused."""
    while True:
        text = "\n".join([EDITOR_LINE, head, *write_sections(settled), NO_RULES, ""])
        wrong = list_errors(check_rules(text, {})[1])
        if not wrong:
            return text
        taken = [_take_out(settled, problem) for problem in wrong]
        if not any(taken):
            expected = "a document that a rules file can be made of"
            raise ImportedFileError(file, "", expected, wrong[0].message, AGAIN)


def _take_out(settled: SettledModel, problem: Problem) -> bool:
    """Take out the entity, the index or the pattern that a problem is about; False for none, or where it is out."""
    match problem.location.key_path:
        case ("patterns", str(name), *_):
            for pattern in settled.patterns:
                if pattern.name == name and not pattern.refused:
                    pattern.refused = problem.message
                    return True
        case ("entities", str(name), *_):
            for entity in settled.entities:
                if entity.name == name and not entity.refused:
                    entity.refused = problem.message
                    return True
        case ("tables", str(name), "indexes", str(index), *_):
            for table in settled.tables:
                if table.name == name and any(one.name == index for one in table.indexes):
                    table.indexes = [one for one in table.indexes if one.name != index]
                    table.checks.append(f"index {index} is left out: {problem.message}")
                    return True
    return False


def _list_notes(settled: SettledModel) -> Iterator[str]:
    for table in settled.tables:
        yield from (f"table {table.name}: {check}" for check in _list_table_checks(table))
    for entity in settled.entities:
        yield from (f"entity {entity.name}: {check}" for check in entity.checks)
        if entity.refused:
            yield f"entity {entity.name} is written as a comment: {entity.refused}"
    for pattern in settled.patterns:
        yield from (f"pattern {pattern.name}: {check}" for check in pattern.found.checks)
        if pattern.refused:
            yield f"pattern {pattern.name} is written as a comment: {pattern.refused}"


def _list_table_checks(table: SettledTable) -> list[str]:
    streams = [NO_STREAM[table.found.stream]] if table.found.stream in NO_STREAM else []
    return [*table.checks, *streams]


# ---------------------------------------------------------------- lines
def write_sections(settled: SettledModel) -> Iterator[str]:
    """The sections above the rules."""
    yield "tables:"
    for table in settled.tables:
        yield from _wrap_checks(_list_table_checks(table))
        yield from _write_entry(table.name, _make_table_parts(table))
    yield ""
    kept = [entity for entity in settled.entities if not entity.refused]
    yield "entities:" if kept else "entities: {}"
    for entity in settled.entities:
        if entity.refused:
            yield from _wrap_checks(
                [*entity.checks, f"{entity.refused}. Give each keys of its own, then take this in:"]
            )
            yield from (f"  #{line[1:]}" for line in _write_entry(entity.name, _make_entity_parts(entity)))
        else:
            yield from _wrap_checks(entity.checks)
            yield from _write_entry(entity.name, _make_entity_parts(entity))
    yield ""
    if settled.patterns:
        yield from _write_patterns(settled.patterns)
        yield ""


def _write_patterns(patterns: list[SettledPattern]) -> Iterator[str]:
    yield "patterns:" if any(not pattern.refused for pattern in patterns) else "patterns: {}"
    for pattern in patterns:
        if pattern.found.said:
            yield from wrap_comment(pattern.found.said)
        if not pattern.refused:
            yield from _wrap_checks(pattern.found.checks)
            yield from _write_entry(format_scalar(pattern.name), _make_pattern_parts(pattern))
            continue
        yield from _wrap_checks([f"{pattern.name} is not written: {pattern.refused}", *pattern.found.checks])
        if pattern.entities:
            yield from (
                f"  #{line[1:]}" for line in _write_entry(format_scalar(pattern.name), _make_pattern_parts(pattern))
            )


def _make_pattern_parts(pattern: SettledPattern) -> dict[str, Part]:
    found = pattern.found
    names = [one.name for one in pattern.entities]
    parts: dict[str, Part] = {found.verb: _format_names(names) if names[1:] else format_scalar(names[0])}
    if found.by:
        parts["by"] = _format_names(found.by)
    if found.within:
        parts[found.within[0]] = format_scalar(found.within[1])
    parts |= {name: "true" for name in ("one", "consistent") if getattr(found, name)}
    parts |= {} if found.keys is None else {"keys": str(found.keys)}
    listed = {"attributes": found.returns, "sets": found.sets}
    parts |= {name: _format_names(some) for name, some in listed.items() if some}
    parts |= {name: format_scalar(text) for name in ("where", "via") if (text := getattr(found, name))}
    return parts


def _format_names(names: Iterable[str]) -> str:
    return f"[{', '.join(format_scalar(name) for name in names)}]"


def _make_table_parts(table: SettledTable) -> dict[str, Part]:
    parts: dict[str, Part] = {"name": format_scalar(table.physical)} if table.physical else {}
    parts["key"] = _format_types(table.found.key)
    if table.indexes:
        parts["indexes"] = {one.name: _format_index(one) for one in table.indexes}
    return parts


def _format_index(index: Index) -> str:
    if len(index.partition) == 1 and len(index.sort) <= 1 and index.projection in (None, "all") and not index.local:
        return _format_types(index.attributes)
    parts = [f"partition: {_format_types(index.partition)}"]
    if index.sort:
        parts.append(f"sort: {_format_types(index.sort)}")
    if isinstance(index.projection, tuple):
        parts.append(f"projection: {_format_names(index.projection)}")
    elif index.projection is not None:
        parts.append(f"projection: {index.projection}")
    if index.local:
        parts.append("local: true")
    return "{" + ", ".join(parts) + "}"


def _format_types(attributes: Iterable[KeyAttribute]) -> str:
    return format_flow({one.name: one.type for one in attributes})


def _make_entity_parts(entity: SettledEntity) -> dict[str, Part]:
    parts: dict[str, Part] = {"table": format_scalar(entity.table.name)}
    if entity.key:
        parts["key"] = {name: format_scalar(text) for name, text in entity.key.items()}
    required = [name for name in dict.fromkeys(entity.found.required) if name not in entity.key]
    if required:
        parts["required"] = _format_names(required)
    return parts


def _write_entry(name: str, parts: Mapping[str, Part]) -> Iterator[str]:
    """An entry on one line where it fits, else on a line for each of its keys, and for each key of a map."""
    line = f"  {name}: {format_flow({key: _format_part(part) for key, part in parts.items()})}"
    if len(line) <= LINE_MAX:
        yield line
        return
    yield f"  {name}:"
    for key, part in parts.items():
        line = f"    {key}: {_format_part(part)}"
        if len(line) <= LINE_MAX or isinstance(part, str):
            yield line
        else:
            yield f"    {key}:"
            yield from (f"      {format_scalar(inner)}: {text}" for inner, text in part.items())


def _format_part(part: Part) -> str:
    return part if isinstance(part, str) else format_flow(part)


def _wrap_checks(checks: Iterable[str]) -> Iterator[str]:
    for check in dict.fromkeys(checks):
        yield from wrap_comment(f"CHECK: {check}")


def wrap_comment(text: str) -> list[str]:
    """Return a comment of an entry, wrapped to lines."""
    return textwrap.wrap(
        join_lines(text), LINE_MAX, initial_indent="  # ", subsequent_indent="  #   ", break_long_words=False
    )


def join_lines(text: str) -> str:
    """Return a text on one line, valid in a YAML comment."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def format_flow(values: Mapping[str, str]) -> str:
    """Return a map on one line; its values are YAML already."""
    return "{" + ", ".join(f"{format_scalar(name)}: {text}" for name, text in values.items()) + "}"


def format_scalar(text: str) -> str:
    """Return a text as YAML: plain if every reader takes it for a text, else in double quotes."""
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    escaped = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else _escape(char) for char in escaped)


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"  # noqa: PLR2004 - the end of four digits
