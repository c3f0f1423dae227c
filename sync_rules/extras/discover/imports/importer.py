"""From a file to a rules file. The importer detects the format from the content of the file, not from its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sync_rules import DOCS
from sync_rules.extras.discover.imports import (
    cloudformation,
    electrodb,
    modelling_server,
    onetable,
    table_requests,
    terraform,
    workbench,
)
from sync_rules.extras.discover.imports.foreign_document import (
    DocumentNode,
    ImportedFileError,
    parse_json_document,
    parse_yaml_document,
    quote_name,
)
from sync_rules.extras.discover.imports.imported_model import ImportedModel, RulesDraft
from sync_rules.extras.discover.imports.rules_writer import draft_rules

SIZE_MAX_MB: Final = 32
KEYS_SHOWN_MAX: Final = 6


@dataclass(frozen=True)
class DocumentFormat:
    """A format: its name, the test whether a document has it, and its reader."""

    name: str
    fits: Callable[[Any], bool]
    read: Callable[[DocumentNode], ImportedModel]


FORMATS: Final = tuple(
    DocumentFormat(module.NAME, module.fits, module.read)
    for module in (workbench, cloudformation, terraform, modelling_server, table_requests, onetable, electrodb)
)


def rules_from(source: Path, *, name: str | None = None) -> RulesDraft:
    """Make the rules file from the content of a file. `name` replaces the path in messages.

    Raises:
        ImportedFileError: with file, place, what was expected and found, and the cure.
    """
    file = name or str(source)
    return rules_from_text(_read_text(source, file), file)


def rules_from_text(text: str, file: str) -> RulesDraft:
    """Make the rules file from a text. `file` is its name in messages. Raises ImportedFileError."""
    root = _parse_document(text, file)
    for form in FORMATS:
        if form.fits(root.value):
            return draft_rules(form.read(root), file)
    known = ", ".join(form.name for form in FORMATS)
    cure = f"{DOCS}/discover/importing.md says how to export each"
    return root.fail(f"one of: {known}", cure, _describe(root.value))


def _read_text(source: Path, file: str) -> str:
    expected = "a file with JSON or YAML"
    try:
        if source.is_dir():
            cure = "name a file in it, such as cdk.out/STACK.template.json"
            raise ImportedFileError(file, "", expected, "a directory", cure)
        if source.stat().st_size > SIZE_MAX_MB * 1024 * 1024:
            cure = "take out the sample data, or the resources that are no tables"
            raise ImportedFileError(file, "", f"at most {SIZE_MAX_MB} MB", "more", cure)
        return source.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise ImportedFileError(file, "", expected, "no such file", "correct the name") from error
    except UnicodeDecodeError as error:
        place = f"byte {error.start}"
        raise ImportedFileError(file, place, expected, "bytes that are not UTF-8", "save the file as UTF-8") from error
    except (OSError, ValueError) as error:
        found = getattr(error, "strerror", None) or "a name that cannot be opened"
        raise ImportedFileError(file, "", expected, found, "make the file readable, or copy it") from error


def _parse_document(text: str, file: str) -> DocumentNode:
    if terraform.is_hcl(text):
        raise ImportedFileError(file, "", "JSON", "Terraform's own language", terraform.HCL_CURE)
    if text.lstrip()[:1] in ("{", "["):
        try:
            return parse_json_document(text, file)
        except ImportedFileError:
            if text.lstrip()[:1] == "[" or '"' in text.lstrip()[1:].lstrip()[:1]:
                raise
    return parse_yaml_document(text, file)


def _describe(value: Any) -> str:
    """A document in words: the first keys of a map."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"a list of maps with {_format_keys(value[0])}"
    return f"a map with {_format_keys(value)}" if isinstance(value, dict) and value else ""


def _format_keys(value: dict[str, Any]) -> str:
    names = [quote_name(str(key)) for key in list(value)[:KEYS_SHOWN_MAX]]
    return ", ".join(names) + (", ..." if len(value) > KEYS_SHOWN_MAX else "")
