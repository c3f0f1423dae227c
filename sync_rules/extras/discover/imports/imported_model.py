"""The parts of a rules file that an importer finds: tables with their indexes, entities, access patterns,
uncertainties.

Invariant: an importer never guesses silently. An uncertain point is a check, which becomes a `# CHECK:` comment in its
place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from sync_rules.extras.discover.imports.identifiers import is_generic_key, make_singular, make_table_slug
from sync_rules.language.links import make_default_template
from sync_rules.model.entities import Index, KeyAttribute
from sync_rules.model.errors import UserError
from sync_rules.model.templates import parse_template

Stream = Literal["both", "other", "none", "unknown"]
Verb = Literal["get", "put", "update", "delete"]
Projection = Literal["all", "keys"] | tuple[str, ...] | None  # of an index; None: not known
RangeForm = Literal["between", "at_least", "at_most", "begins_with"]
IMAGES: Final = "NEW_AND_OLD_IMAGES"
NO_STREAM: Final[Mapping[Stream, str]] = {
    "none": f"it has no stream: rules see no changes until it has one with {IMAGES}",
    "other": f"its stream does not show both images: rules need {IMAGES}",
}

UNKNOWN_ITEMS: Final = (
    "nothing is known of the items. Write an entity for each kind, with a template for each key attribute, such as "
    '"USER#{user_id}"'
)


@dataclass(frozen=True)
class RulesDraft:
    """A rules file made from another source.
    `text` passes `check`. `notes` say what to review. `origin` names the kind of source.
    """

    text: str
    notes: tuple[str, ...]
    origin: str


@dataclass(eq=False)
class FoundTable:
    """A table. `called` is its name in the source, which becomes its name in the file. `physical` is its name in
    DynamoDB, with ${VAR} and ${VAR:-default}.
    """

    called: str
    physical: str
    key: tuple[KeyAttribute, ...]
    indexes: list[Index] = field(default_factory=list)
    stream: Stream = "unknown"
    checks: list[str] = field(default_factory=list)
    at: str = ""  # its place in the source, for problems

    @property
    def types(self) -> dict[str, str]:
        """The types of its own key attributes and of those of its indexes."""
        found: dict[str, str] = {}
        for one in (*self.key, *(attribute for index in self.indexes for attribute in index.attributes)):
            found.setdefault(one.name, one.type)
        return found


@dataclass(eq=False)
class FoundEntity:
    """A kind of item: the templates of its key attributes, except those that are the field of their own name.
    `attributes` are the known attributes of its items, apart from the table's key.
    """

    called: str
    table: FoundTable
    key: dict[str, str] = field(default_factory=dict)
    attributes: Sequence[str] = ()
    required: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    facets: Sequence[str] = ()  # the names of its items in the source

    def list_fields(self, attributes: Iterable[KeyAttribute]) -> list[str]:
        """List the fields of key attributes, each once; none of a template that cannot be parsed."""
        found: dict[str, None] = {}
        for one in attributes:
            text = self.key.get(one.name)
            try:
                template = make_default_template(one.name) if text is None else parse_template(text, pads=True)
            except UserError:
                continue
            found |= dict.fromkeys(template.fields)
        return list(found)


def make_whole_table_entity(table: FoundTable, attributes: Sequence[str] = ()) -> FoundEntity:
    """Make the entity for all items of a table if only the key of the table is known."""
    checks = [UNKNOWN_ITEMS] if any(is_generic_key(one.name) for one in table.key) else []
    return FoundEntity(make_singular(make_table_slug(table.called)), table, attributes=attributes, checks=checks)


@dataclass(eq=False)
class FoundPattern:
    """An access pattern in the words of a rules file. `said` is the source's description, for a comment. `refused` says
    why it is written as a comment; a pattern without an entity always is.
    """

    called: str
    verb: Verb = "get"
    entity: FoundEntity | None = None
    by: list[str] = field(default_factory=list)
    within: tuple[RangeForm, str] | None = None
    one: bool = False
    keys: int | None = None
    returns: list[str] = field(default_factory=list)
    where: str = ""
    consistent: bool = False
    via: str = ""
    sets: list[str] = field(default_factory=list)
    said: str = ""
    refused: str = ""
    checks: list[str] = field(default_factory=list)
    beside: Sequence[FoundEntity] = ()


@dataclass(eq=False)
class ImportedModel:
    """Everything that an importer found in a source."""

    origin: str
    tables: list[FoundTable] = field(default_factory=list)
    entities: list[FoundEntity] = field(default_factory=list)
    patterns: list[FoundPattern] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
