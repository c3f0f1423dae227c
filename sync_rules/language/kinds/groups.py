"""Groups in the link of count, sum, mean, min and max: fields of the parent's key that are made from an item."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from sync_rules.language.compiler import RuleCompiler
from sync_rules.language.kinds.options import NO_FORM, Model
from sync_rules.language.links import find_ref, list_field_types
from sync_rules.model.entities import Entity, Ref
from sync_rules.model.errors import UserError
from sync_rules.model.groups import Beginning, Constant, Each
from sync_rules.model.numbers import normalize_number
from sync_rules.model.suggest import explain_unknown_name
from sync_rules.model.values import Path, parse_path


class FirstForm(Model):
    """The first characters of a time."""

    first: Literal[4, 7, 10, 13, 16] = Field(
        description="How many characters: 4 name the year, 7 the month, 10 the day, 13 the hour, 16 the minute."
    )
    of: str = Field(
        description="The attribute, an ISO 8601 time in UTC: 2026-11-27T09:31:33Z.", examples=["created_at"]
    )


class ConstantForm(Model):
    """The same text for all items."""

    constant: Annotated[str, Field(min_length=1)] = Field(description="The text.", examples=["ALL"])


class EachForm(Model):
    """Each element of a list or set, or each part of a text: the item is in a group for each."""

    each: str = Field(description="The attribute, a list or set of texts or numbers.", examples=["tags"])
    separator: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The text between the parts, if the attribute is a text: a path.", examples=["|"]
    )


Given = str | FirstForm | ConstantForm | EachForm
EXPECTED: Final = "the name of a field, {first: 10, of: field}, {each: field} or {constant: text}"


def _choose_form(value: Any) -> str | None:
    if not isinstance(value, dict):
        return "form:field" if isinstance(value, str) else None
    if "each" in value:
        return "form:each"
    return "form:constant" if "constant" in value else "form:first" if value.keys() & {"first", "of"} else None


GroupName = Annotated[
    Annotated[str, Tag("form:field")]
    | Annotated[FirstForm, Tag("form:first")]
    | Annotated[ConstantForm, Tag("form:constant")]
    | Annotated[EachForm, Tag("form:each")],
    Discriminator(_choose_form, custom_error_type=NO_FORM, custom_error_message=EXPECTED),
]

GroupLink = Annotated[
    dict[str, GroupName],
    Field(
        description="How an item names its parent, where the names differ: {field of the parent: field of the item}. A "
        "field of the parent may also be {first: 10, of: a time in UTC}, for a day, {each: list}, or {constant: text}.",
        examples=[{"user_id": "owner_id"}, {"day": {"first": 10, "of": "created_at"}}, {"name": {"constant": "ALL"}}],
    ),
]


def compile_groups(
    compiler: RuleCompiler, given: Mapping[str, Given], parent: Entity, child: Entity
) -> dict[str, Ref] | None:
    """Compile the groups in a link, by the parent's field. Return None if a group is wrong, which is reported."""
    found: dict[str, Ref | None] = {name: None for name, one in given.items() if not isinstance(one, str)}
    for name, one in given.items():
        if isinstance(one, str) and parent.made and not _is_path(one):
            cure = f"for a text that is the same for all items: link: {{{name}: {{constant: {one!r}}}}}"
            compiler.add("SR108", compiler.at("link", name), f"{one!r} is not the name of an attribute", cure)
            found[name] = None
        elif isinstance(one, EachForm) and any(isinstance(other, Each) for other in found.values()):
            compiler.refuse("link", "only one field is of each element of a list", "keep one `each`")
        elif isinstance(one, FirstForm | ConstantForm | EachForm) and name not in parent.identity:
            message = explain_unknown_name("key field", name, parent.identity, f"entity {parent.name!r}")
            compiler.add("SR202", compiler.at_key("link", name), message)
        elif isinstance(one, ConstantForm):
            number = list_field_types(parent)[name] == "N"
            if normalize_number(one.constant) is None if number else not _makes_key(parent, name, one.constant):
                message = f"expected {'a number' if number else f'a text that fits into the key of {parent.name!r}'}"
                compiler.add("SR106", compiler.at("link", name, "constant"), f"{message}, found {one.constant!r}")
            found[name] = Constant(name, (child.table.partition.name,), text=one.constant)
        elif isinstance(one, FirstForm | EachForm):
            text, option = (one.of, "of") if isinstance(one, FirstForm) else (one.each, "each")
            at = compiler.at("link", name, option)
            ref = None if compiler.path(text, at) is None else find_ref(child, text, name)
            compiler.own(child, text, "link", name, option)
            first = one.first if isinstance(one, FirstForm) else 0
            separator = (one.separator or "") if isinstance(one, EachForm) else ""
            keys: dict[Path, str] = {(key.name,): key.type for key in child.table.key_attributes}
            texts = "S" if first or (separator and ref is not None and ref.template is None) else ""
            if ref is not None and keys.get(ref.path, "") not in ("", texts):
                needed = "the text of a time" if first else "a text alone" if separator else "a list or set"
                compiler.add("SR322", at, f"{text!r} is in a key of {child.name!r}, and {option!r} takes {needed}")
                ref = None
            whole = {
                one if isinstance(one, str) else one.of for one in given.values() if isinstance(one, str | FirstForm)
            }
            if separator and text in whole:
                compiler.refuse("link", f"{text!r} names one field whole, and another by its parts", "name another one")
            made = ref and Beginning(ref.field, ref.path, ref.template, characters=first)
            found[name] = made if first else ref and Each(name, ref.path, separator=separator)
    right = {name: ref for name, ref in found.items() if ref is not None}
    return right if len(right) == len(found) else None


def _makes_key(entity: Entity, field: str, text: str) -> bool:
    """True if a text may be this field of a key, beside some other fields."""
    fills = [{name: {"S": fill} for name in entity.identity} for fill in "0x"]
    return any(entity.key_of({**fill, field: {"S": text}}) is not None for fill in fills)


def _is_path(text: str) -> bool:
    with suppress(UserError):
        return bool(parse_path(text))
    return False
