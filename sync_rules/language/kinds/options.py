"""A kind of rule as the rules file knows it; options, whose descriptions editors show, and steps that kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from sync_rules.language import links
from sync_rules.language.compiler import RuleCompiler
from sync_rules.model.entities import Entity
from sync_rules.model.limits import DELAY_MAX_SECONDS
from sync_rules.model.lookups import Find, Link
from sync_rules.model.numbers import SPELLING, format_number, is_holdable
from sync_rules.model.values import Path, show_path
from sync_rules.model.where import Where
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.rule import Rule

SHARDS_MAX: Final = 1000
NO_FORM: Final = "no_form"  # pydantic's type of the error for a value that is in none of several forms


class Model(BaseModel):
    """Strict: a number is not text, and an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def choose_by_type(forms: Mapping[type[Any], str], expected: str) -> Discriminator:
    """Choose the form of an option by the type of its value. `expected`: the message for a value of any other type."""
    return Discriminator(lambda value: forms.get(type(value)), custom_error_type=NO_FORM, custom_error_message=expected)


Names = Annotated[list[str], Field(min_length=1)]
Renames = Annotated[dict[str, str], Field(min_length=1)]
Chosen = Annotated[
    Annotated[Names, Tag("form:several")] | Annotated[Renames, Tag("form:renamed")],
    choose_by_type(
        {list: "form:several", dict: "form:renamed"}, "a list of attributes, or a map from attribute to new name"
    ),
]
LinkOption = Annotated[
    dict[str, str],
    Field(
        description="How an item names the one it points to, where the names differ: {field of the one pointed to: "
        "field of the one that points}.",
        examples=[{"user_id": "owner_id"}],
    ),
]
Settle = Annotated[
    int,
    Field(
        ge=0,
        le=DELAY_MAX_SECONDS,
        description="Seconds until the second look at targets found through an index, which may lag. 0: none.",
    ),
]
Shards = Annotated[int, Field(ge=1, le=SHARDS_MAX)]
OwnWhere = Annotated[
    str | None,
    Field(description="JMESPath over the source item's own fields: which items count.", examples=["status == 'OPEN'"]),
]
Via = Annotated[str | None, Field(description="The index that lists the items that point to one.")]
Sparse = Annotated[
    bool,
    Field(description="Only the items in the index are meant; without it, an index must list all items."),
]
OnDelete = Annotated[
    Literal["keep", "delete", "restrict"],
    Field(description="When the parent is deleted: keep its items, delete them, or report that there still are some."),
]
RenamedFrom = Annotated[
    str | None,
    Field(description="The rule's name before it was renamed: what waits under that name is carried over."),
]


def make_parent_rule(
    compiler: RuleCompiler,
    rule: Rule,
    link: Link,
    find: Find | None,
    *,
    where: Where | None,
    on_delete: Literal["keep", "delete", "restrict"],
    child: Entity | None = None,
) -> tuple[CopyRule, ...]:
    """Make the rule that deletes or reports the items of a deleted parent of `rule`; none for `keep`."""
    if on_delete == "keep" or find is None:
        return ()
    beside = CopyRule(
        name=f"{compiler.name}.parent",
        source=rule.target,
        target=child or rule.source,
        find=find,
        settle_seconds=rule.settle_seconds,
        link=link,
        where=where,
        on_delete=on_delete,
        mapping=(),
    )
    return (beside,)


def require_text(compiler: RuleCompiler, entity: Entity, fields: Iterable[str], option: str) -> None:
    """Report binary fields in an option that makes a name of the texts of its fields."""
    attributes = entity.table.key_attributes
    binary = {name for a in attributes if a.type == "B" for name in (a.name, *links.find_template(entity, a).fields)}
    found = [field for field in fields if field in binary]
    if found:
        verb = "are" if found[1:] else "is"
        compiler.add("SR216", option, f"{format_fields(found)} of {entity.name!r} {verb} binary")


def format_fields(fields: Iterable[str]) -> str:
    """Return fields as templates spell them: `{a}, {b}`."""
    return ", ".join(f"{{{field}}}" for field in fields)


def read_exact_number(compiler: RuleCompiler, number: float, *key_path: str) -> Decimal:
    """Read a number of the rule with all the digits in the file. A float keeps only 17."""
    written = compiler.known.document.numbers.get(("rules", compiler.name, *key_path), "").replace("_", "")
    return Decimal(written) if isinstance(number, float) and SPELLING.fullmatch(written) else Decimal(repr(number))


def format_plain_number(compiler: RuleCompiler, number: float, *key_path: str) -> str:
    """Format a number of the rule without an exponent, as the file has it: 0.1, and not the nearest float."""
    held, written = Decimal(repr(number)), read_exact_number(compiler, number, *key_path)
    return format(held, "f") if held == written or not is_holdable(written) else format_number(written)


def parse_fields(compiler: RuleCompiler, given: list[str] | Mapping[str, str]) -> tuple[tuple[Path, str], ...]:
    """Return pairs of (path in an item, name in the map that is made of it). A name inside a map is reported."""
    found = compiler.parse_renames(given, "fields")
    for _, name in found:
        if len(name) > 1:
            message = f"{show_path(name)!r} is inside a map: an entry is flat"
            compiler.add("SR120", "fields", message, f"give it a name of its own: {name[-1]}")
    return tuple((path, name[0]) for path, name in found)


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of rule. It works as soon as it is in `registry.KINDS`.

    `name`: the key that a rule of this kind has, and that its `form` requires. `compile` returns the compiled rules:
    first the rule with the name of the entry, then others named NAME.part; none after a reported error.
    """

    name: str
    form: type[Model]
    compile: Callable[[RuleCompiler, Any], tuple[Rule, ...]]
    sentence: str = ""  # the short form, such as "count ENTITY into ENTITY.ATTRIBUTE"; empty for none
    example: str = ""  # a sentence for the JSON Schema
    alone: bool = False  # its rules read nothing but the item that they write
    gives: bool = False  # a rule with a default gives an attribute to every target
    several: bool = False  # whether a sentence may name several sources, separated by commas
    missing: Mapping[str, str] = field(default_factory=dict)  # by option: the cure when it is missing
    meant: Mapping[str, str] = field(
        default_factory=dict
    )  # by option: the cure when a single value, put in for {}, stands for a map
