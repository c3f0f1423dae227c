"""The keys of a rules file and their types, as pydantic models; their descriptions become the JSON Schema for editors.

Names that must exist elsewhere, templates and links are checked by `load`, `compiler`, `links` and `lint`.
"""

from __future__ import annotations

import json
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag, create_model

from sync_rules.language.kinds.options import NO_FORM, Kind, Model, choose_by_type
from sync_rules.language.kinds.registry import KINDS, find_kind_of_rule, list_kinds_with_sentences
from sync_rules.language.sections import Section, load_all_sections
from sync_rules.model.entities import Distance, KeyType

DIALECT = "https://json-schema.org/draft/2020-12/schema"
KEY_ATTRIBUTES_MAX = 4  # per partition key and per sort key of an index; Amazon DynamoDB Developer Guide, GSI
NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
INDEX_NAME = r"^[A-Za-z0-9_.-]{3,255}$"  # DynamoDB's own rule

SECTION_FIELD = "section_{}"  # the field of a section's value, so that no name hides a method of pydantic
ATTRIBUTE_NAME_MAX = 255
Name = Annotated[str, StringConstraints(pattern=NAME)]
IndexName = Annotated[str, StringConstraints(pattern=INDEX_NAME)]
AttributeName = Annotated[str, StringConstraints(min_length=1, max_length=ATTRIBUTE_NAME_MAX)]
Projection = Annotated[
    Annotated[Literal["all", "keys"], Tag("form:word")] | Annotated[list[AttributeName], Tag("form:names")],
    choose_by_type({str: "form:word", list: "form:names"}, "all, keys, or a list of attribute names"),
]
IndexKey = Annotated[dict[AttributeName, KeyType], Field(min_length=1, max_length=KEY_ATTRIBUTES_MAX)]
ShortKey = Annotated[dict[AttributeName, KeyType], Field(min_length=1, max_length=2)]


class IndexForm(Model):
    """The long form of a secondary index, which may say more than its keys."""

    partition: IndexKey = Field(description="The partition key: one to four attributes with their types.")
    sort: Annotated[dict[AttributeName, KeyType], Field(max_length=KEY_ATTRIBUTES_MAX)] = Field(
        default={}, description="The sort key: none to four attributes with their types, in order."
    )
    projection: Projection | None = Field(
        default=None, description="What the index shows: all, keys, or the names of the attributes besides the keys."
    )
    local: bool = Field(
        default=False,
        description="A local secondary index: the table's own partition key, and another sort key. DynamoDB makes it "
        "with the table and never later.",
    )


def choose_index_form(value: Any) -> str:
    """Choose the form of an index: long if `partition` or `sort` holds a map, else short."""
    full = isinstance(value, dict) and any(isinstance(value.get(part), dict) for part in ("partition", "sort"))
    return "form:full" if full else "form:short"


IndexEntry = Annotated[
    Annotated[ShortKey, Tag("form:short")] | Annotated[IndexForm, Tag("form:full")],
    Discriminator(choose_index_form),
]


class VectorForm(Model):
    """A vector index."""

    vector: str = Field(description="The attribute that holds the vector, a list of numbers.", examples=["embedding"])
    dimensions: Annotated[int, Field(ge=1)] = Field(description="The numbers in each vector.", examples=[1024])
    distance: Distance = Field(default="cosine", description="How two vectors are compared. Default: cosine.")
    partition: Annotated[dict[AttributeName, KeyType], Field(max_length=1)] = Field(
        default={}, description="The attribute whose value each search must give, with its type."
    )
    filters: dict[AttributeName, KeyType] = Field(
        default={}, description="The attributes that a search may filter by, with their types."
    )
    projection: Projection = Field(
        default="all", description="What a search shows: all, keys, or the names of the attributes beside these."
    )


class TableForm(Model):
    """A DynamoDB table."""

    name: str | None = Field(
        default=None,
        min_length=1,
        description="The table's name in DynamoDB; ${VAR} and ${VAR:-default} are taken from the environment. "
        "Without it, the name it has here.",
        examples=["${SHOP_TABLE}", "${SHOP_TABLE:-shop}"],
    )
    key: ShortKey = Field(
        description="The partition key and, if there is one, the sort key, with their types: S, N or B.",
        examples=[{"PK": "S", "SK": "S"}],
    )
    indexes: dict[IndexName, IndexEntry] = Field(
        default={},
        description="Global secondary indexes. Short: {GSI1: {GSI1PK: S, GSI1SK: S}}, partition key first.",
    )
    vectors: dict[IndexName, VectorForm] = Field(
        default={},
        description="Vector indexes, for SearchVectors. No rule lists by one.",
        examples=[{"by_meaning": {"vector": "embedding", "dimensions": 1024, "filters": {"brand": "S"}}}],
    )
    max_write_units_per_second: int | None = Field(
        default=None,
        ge=1,
        description="The write units per second that these rules may spend on the table, so that the application has "
        "the others. Without it, the rules spend as many as the table takes.",
        examples=[500],
    )
    ttl: str | None = Field(
        default=None,
        description="The attribute of Time to Live of the application's own. Rules that need one name it themselves.",
        examples=["expires_at"],
    )


class EntityForm(Model):
    """A kind of item, recognised by its key."""

    table: str = Field(description="The table that holds its items.")
    key: dict[AttributeName, str] = Field(
        default={},
        description="How its key attributes are made of fields. One that is not given is the field of its own name. "
        "Key attributes of indexes may be given too.",
        examples=[{"PK": "USER#{user_id}", "SK": "PROFILE"}],
    )
    required: list[AttributeName] = Field(
        default=[],
        description="Attributes that every item of it has, so that an index by one of them lists all items. An item "
        "without one is reported.",
        examples=[["created_at"]],
    )
    made_by: Literal["rules"] | None = Field(
        default=None,
        description="rules: count, sum, mean, min and max make its items, and remove those without members. "
        "Nothing else writes them.",
    )


WriteFunction = Annotated[
    Annotated[bool, Tag("form:flag")] | Annotated[Literal["url"], Tag("form:word")],
    choose_by_type({bool: "form:flag", str: "form:word"}, "true, false or url"),
]


class DeployForm(Model):
    """Parts of the deployment that are there only where they are asked for."""

    write: WriteFunction = Field(
        default=False,
        description="The function that writes by transact, for applications in other languages: true, or url for one "
        "with a Function URL. IAM authorises its callers.",
    )


class FileForm(Model):
    """Rules that keep copied data in DynamoDB true."""

    tables: dict[Name, TableForm] = Field(description="The tables, by the names the rest of this file uses.")
    entities: dict[Name, EntityForm] = Field(description="The kinds of items, by name.")
    rules: dict[Name, Any] = Field(
        default={},
        description="The rules, by name. Short: copy user.name into order.user_name",
    )
    deploy: DeployForm = Field(default=DeployForm(), description="Parts of the deployment that are optional.")

    def section(self, name: str) -> Any:
        return getattr(self, SECTION_FIELD.format(name))


def make_file_form(sections: tuple[Section, ...]) -> type[FileForm]:
    """Make the form of a rules file with these sections, whose rules are of the kinds in the registry."""
    return _make_file_form(tuple(KINDS.values()), sections)


@cache
def _make_file_form(kinds: tuple[Kind, ...], sections: tuple[Section, ...]) -> type[FileForm]:
    examples = [kind.example for kind in list_kinds_with_sentences().values() if kind.example]
    forms: list[Any] = [Annotated[str, Field(examples=examples), Tag("form:sentence")]]
    forms += [Annotated[kind.form, Tag(f"form:{kind.name}")] for kind in kinds]
    told_apart = Discriminator(
        _choose_rule_form,
        custom_error_type=NO_FORM,
        custom_error_message=f"a sentence such as `{examples[0]}`, or a map with copy and into",
    )
    rules: Any = (dict[Name, Annotated[reduce(or_, forms), told_apart]], FileForm.model_fields["rules"])  # type: ignore[misc]
    fields: dict[str, Any] = {"rules": rules}
    if bases := tuple(section.entity for section in sections if section.entity is not None):
        entity: Any = create_model("EntityForm", __base__=(*bases, EntityForm), __doc__=EntityForm.__doc__)
        fields["entities"] = dict[Name, entity], FileForm.model_fields["entities"]
    for one in sections:
        field = Field(default=one.default, alias=one.name, description=one.description)
        fields[SECTION_FIELD.format(one.name)] = one.form, field
    return create_model("FileForm", __base__=FileForm, __doc__=FileForm.__doc__, **fields)


def _choose_rule_form(value: Any) -> str | None:
    kind = find_kind_of_rule(value)
    return "form:sentence" if isinstance(value, str) else f"form:{kind.name}" if kind else None


def make_json_schema() -> dict[str, Any]:
    """Make the JSON Schema of rules files from the models that validate them."""
    body = make_file_form(load_all_sections()).model_json_schema(by_alias=True)
    body["properties"]["deploy"] = body["properties"].pop("deploy")  # after the sections
    return {"$schema": DIALECT, **body, "title": "sync-rules: rules file"}


def format_schema() -> str:
    return json.dumps(make_json_schema(), indent=2, ensure_ascii=False) + "\n"
