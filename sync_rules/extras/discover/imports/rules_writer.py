"""Writes what an importer found as a rules file, with a `# CHECK:` wherever it is not sure.

Invariant: the text passes `check`. What would not is written as a comment that says why, or the import is refused.
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
from sync_rules.language.problems import Problem, errors
from sync_rules.model.entities import Index, KeyAttribute

EDITOR_LINE: Final = "# yaml-language-server: $schema=./sync-rules.schema.json"
LINE_MAX: Final = 110
PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
NO_RULES: Final = "rules: {}"
Part = str | dict[str, str]  # YAML on one line, or of each key of a map


def draft_rules(found: ImportedModel, file: str) -> RulesDraft:
    """The rules file of what was found.

    Raises:
        ImportedFileError: when there is no table in it, or no rules file can be made of it.
    """
    if not found.tables:
        raise ImportedFileError(file, "", f"a table in the {found.origin}", "none", AGAIN)
    settled = settle(found, file)
    head = f"# Made from {one_line(Path(file).name)} ({found.origin}). Look at each CHECK before you rely on it."
    text = _drop_refused_parts(settled, head, file)
    notes = [*settled.notes, *_notes(settled)]
    return RulesDraft(text, tuple(dict.fromkeys(one_line(note) for note in notes)), found.origin)


def _drop_refused_parts(settled: SettledModel, head: str, file: str) -> str:
    """The text without what check refuses: it is taken out, with a remark, until nothing is refused."""
    while True:
        text = "\n".join([EDITOR_LINE, head, *write_sections(settled), NO_RULES, ""])
        wrong = errors(check_rules(text, {})[1])
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


def _notes(settled: SettledModel) -> Iterator[str]:
    for table in settled.tables:
        yield from (f"table {table.name}: {check}" for check in _table_checks(table))
    for entity in settled.entities:
        yield from (f"entity {entity.name}: {check}" for check in entity.checks)
        if entity.refused:
            yield f"entity {entity.name} is written as a comment: {entity.refused}"
    for pattern in settled.patterns:
        yield from (f"pattern {pattern.name}: {check}" for check in pattern.found.checks)
        if pattern.refused:
            yield f"pattern {pattern.name} is written as a comment: {pattern.refused}"


def _table_checks(table: SettledTable) -> list[str]:
    streams = [NO_STREAM[table.found.stream]] if table.found.stream in NO_STREAM else []
    return [*table.checks, *streams]


# ---------------------------------------------------------------- lines
def write_sections(settled: SettledModel) -> Iterator[str]:
    """The sections above the rules."""
    yield "tables:"
    for table in settled.tables:
        yield from _checks(_table_checks(table))
        yield from _entry(table.name, _table(table))
    yield ""
    kept = [entity for entity in settled.entities if not entity.refused]
    yield "entities:" if kept else "entities: {}"
    for entity in settled.entities:
        if entity.refused:
            yield from _checks([*entity.checks, f"{entity.refused}. Give each keys of its own, then take this in:"])
            yield from (f"  #{line[1:]}" for line in _entry(entity.name, _entity(entity)))
        else:
            yield from _checks(entity.checks)
            yield from _entry(entity.name, _entity(entity))
    yield ""
    if settled.patterns:
        yield from _patterns(settled.patterns)
        yield ""


def _patterns(patterns: list[SettledPattern]) -> Iterator[str]:
    yield "patterns:" if any(not pattern.refused for pattern in patterns) else "patterns: {}"
    for pattern in patterns:
        if pattern.found.said:
            yield from wrap_comment(pattern.found.said)
        if not pattern.refused:
            yield from _checks(pattern.found.checks)
            yield from _entry(scalar(pattern.name), _pattern(pattern))
            continue
        yield from _checks([f"{pattern.name} is not written: {pattern.refused}", *pattern.found.checks])
        if pattern.entities:
            yield from (f"  #{line[1:]}" for line in _entry(scalar(pattern.name), _pattern(pattern)))


def _pattern(pattern: SettledPattern) -> dict[str, Part]:
    found = pattern.found
    names = [one.name for one in pattern.entities]
    parts: dict[str, Part] = {found.verb: _names(names) if names[1:] else scalar(names[0])}
    if found.by:
        parts["by"] = _names(found.by)
    if found.within:
        parts[found.within[0]] = scalar(found.within[1])
    parts |= {name: "true" for name in ("one", "consistent") if getattr(found, name)}
    parts |= {} if found.keys is None else {"keys": str(found.keys)}
    listed = {"attributes": found.returns, "sets": found.sets}
    parts |= {name: _names(some) for name, some in listed.items() if some}
    parts |= {name: scalar(text) for name in ("where", "via") if (text := getattr(found, name))}
    return parts


def _names(names: Iterable[str]) -> str:
    return f"[{', '.join(scalar(name) for name in names)}]"


def _table(table: SettledTable) -> dict[str, Part]:
    parts: dict[str, Part] = {"name": scalar(table.physical)} if table.physical else {}
    parts["key"] = _types(table.found.key)
    if table.indexes:
        parts["indexes"] = {one.name: _index(one) for one in table.indexes}
    return parts


def _index(index: Index) -> str:
    if len(index.partition) == 1 and len(index.sort) <= 1 and index.projection in (None, "all") and not index.local:
        return _types(index.attributes)
    parts = [f"partition: {_types(index.partition)}"]
    if index.sort:
        parts.append(f"sort: {_types(index.sort)}")
    if isinstance(index.projection, tuple):
        parts.append(f"projection: {_names(index.projection)}")
    elif index.projection is not None:
        parts.append(f"projection: {index.projection}")
    if index.local:
        parts.append("local: true")
    return "{" + ", ".join(parts) + "}"


def _types(attributes: Iterable[KeyAttribute]) -> str:
    return flow({one.name: one.type for one in attributes})


def _entity(entity: SettledEntity) -> dict[str, Part]:
    parts: dict[str, Part] = {"table": scalar(entity.table.name)}
    if entity.key:
        parts["key"] = {name: scalar(text) for name, text in entity.key.items()}
    required = [name for name in dict.fromkeys(entity.found.required) if name not in entity.key]
    if required:
        parts["required"] = _names(required)
    return parts


def _entry(name: str, parts: Mapping[str, Part]) -> Iterator[str]:
    """An entry on one line where it fits, else on a line for each of its keys, and for each key of a map."""
    line = f"  {name}: {flow({key: _flat(part) for key, part in parts.items()})}"
    if len(line) <= LINE_MAX:
        yield line
        return
    yield f"  {name}:"
    for key, part in parts.items():
        line = f"    {key}: {_flat(part)}"
        if len(line) <= LINE_MAX or isinstance(part, str):
            yield line
        else:
            yield f"    {key}:"
            yield from (f"      {scalar(inner)}: {text}" for inner, text in part.items())


def _flat(part: Part) -> str:
    return part if isinstance(part, str) else flow(part)


def _checks(checks: Iterable[str]) -> Iterator[str]:
    for check in dict.fromkeys(checks):
        yield from wrap_comment(f"CHECK: {check}")


def wrap_comment(text: str) -> list[str]:
    """A comment of an entry, on as many lines as it takes."""
    return textwrap.wrap(
        one_line(text), LINE_MAX, initial_indent="  # ", subsequent_indent="  #   ", break_long_words=False
    )


def one_line(text: str) -> str:
    """A text on one line that YAML takes in a comment."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def flow(values: Mapping[str, str]) -> str:
    """A map on one line, of values that are YAML."""
    return "{" + ", ".join(f"{scalar(name)}: {text}" for name, text in values.items()) + "}"


def scalar(text: str) -> str:
    """A text as YAML: plain where any reader takes it for a text, else in double quotes."""
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    escaped = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else _escape(char) for char in escaped)


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"  # noqa: PLR2004 - the end of four digits
