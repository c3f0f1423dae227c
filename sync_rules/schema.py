"""The shape of a rules file, as pydantic models: what keys there are, of what type, and what each means.

Law: shape only. Names that must exist elsewhere, templates, links and lints are the business of `rulefile`, `links` and
`lint`. The descriptions here become the JSON Schema that editors show (`sync-rules schema`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag

from sync_rules.limits import DELAY_MAX_SECONDS

KEY_ATTRIBUTES_MAX = 4  # per partition key and per sort key of an index; Amazon DynamoDB Developer Guide, GSI
ATTRIBUTE_NAME_MAX = 255
NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
INDEX_NAME = r"^[A-Za-z0-9_.-]{3,255}$"  # DynamoDB's own rule

Name = Annotated[str, StringConstraints(pattern=NAME)]
IndexName = Annotated[str, StringConstraints(pattern=INDEX_NAME)]
AttributeName = Annotated[str, StringConstraints(min_length=1, max_length=ATTRIBUTE_NAME_MAX)]
KeyType = Literal["S", "N", "B"]
IndexKey = Annotated[dict[AttributeName, KeyType], Field(min_length=1, max_length=KEY_ATTRIBUTES_MAX)]
ShortKey = Annotated[dict[AttributeName, KeyType], Field(min_length=1, max_length=2)]


# What may be written in several forms is told apart by the type of its value.
PROJECTION_FORMS: dict[type[Any], str] = {str: "word", list: "names"}
COPY_FORMS: dict[type[Any], str] = {str: "one", list: "several", dict: "renamed"}
RULE_FORMS: dict[type[Any], str] = {str: "sentence", dict: "full"}


class Model(BaseModel):
    """Strict: a number is not text, and a key nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def projection_form(value: Any) -> str | None:
    """Which form a projection is written in."""
    return PROJECTION_FORMS.get(type(value))


Projection = Annotated[
    Annotated[Literal["all", "keys"], Tag("word")] | Annotated[list[AttributeName], Tag("names")],
    Discriminator(projection_form),
]


class IndexForm(Model):
    """A global secondary index in full."""

    partition: IndexKey = Field(description="The partition key: one to four attributes with their types.")
    sort: Annotated[dict[AttributeName, KeyType], Field(max_length=KEY_ATTRIBUTES_MAX)] = Field(
        default={}, description="The sort key: none to four attributes with their types, in order."
    )
    projection: Projection | None = Field(
        default=None, description="What the index shows: all, keys, or the names of the attributes beside the keys."
    )


def index_form(value: Any) -> str:
    """Which form an index is written in: in full when `partition` holds a map."""
    full = isinstance(value, dict) and any(isinstance(value.get(part), dict) for part in ("partition", "sort"))
    return "full" if full else "short"


IndexEntry = Annotated[
    Annotated[ShortKey, Tag("short")] | Annotated[IndexForm, Tag("full")],
    Discriminator(index_form),
]


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


class EntityForm(Model):
    """A kind of item, recognised by its key."""

    table: str = Field(description="The table that holds its items.")
    key: dict[AttributeName, str] = Field(
        default={},
        description="How its key attributes are made of fields. One that is not given is the field of its own name. "
        "Key attributes of indexes may be given too.",
        examples=[{"PK": "USER#{user_id}", "SK": "PROFILE"}],
    )


def copy_form(value: Any) -> str | None:
    """Which form `copy` is written in."""
    return COPY_FORMS.get(type(value))


def rule_form(value: Any) -> str | None:
    """Which form a rule is written in."""
    return RULE_FORMS.get(type(value))


Copied = Annotated[
    Annotated[str, Tag("one")]
    | Annotated[list[str], Field(min_length=1), Tag("several")]
    | Annotated[dict[str, str], Field(min_length=1), Tag("renamed")],
    Discriminator(copy_form),
]


class RuleForm(Model):
    """A copy rule in full."""

    copied: Copied = Field(
        alias="copy",
        description="What is copied: one path (user.name), a list of paths, or a map from path to new name.",
        examples=["user.name", ["author.name", "author.bio"], {"author.name": "author_name"}],
    )
    into: str = Field(
        description="Where to: for one path the whole path of the copy (order.user_name); for several, the entity or "
        "the map in it that takes them (book, book.author).",
    )
    where: str | None = Field(
        default=None,
        description="JMESPath. Bare names are attributes of the target, user.active is one of the source user.",
        examples=["status == 'OPEN'"],
    )
    mode: Literal["live", "snapshot"] = Field(
        default="live", description="live: kept equal for ever. snapshot: copied once, when the target has none."
    )
    link: dict[str, str] = Field(
        default={},
        description="How a target names its source, where the names differ: {field of the source: field of the target}",
        examples=[{"user_id": "owner_id"}],
    )
    via: str | None = Field(default=None, description="The index of the target's table by which targets are found.")
    on_delete: Literal["keep", "clear", "delete"] = Field(
        default="keep",
        description="When the source is deleted: keep the copy, clear it, or delete the whole target.",
    )
    strict: bool = Field(
        default=False,
        description="Copy in a transaction that checks the source: exact when it is written, at four times the cost.",
    )
    settle_seconds: int = Field(
        default=60,
        ge=0,
        le=DELAY_MAX_SECONDS,
        description="Seconds until the second look at targets found through an index, which may lag. 0: none.",
    )


Sentence = Annotated[str, Field(examples=["copy user.name into order.user_name"])]
RuleEntry = Annotated[
    Annotated[Sentence, Tag("sentence")] | Annotated[RuleForm, Tag("full")],
    Discriminator(rule_form),
]


class FileForm(Model):
    """Rules that keep copied data in DynamoDB true."""

    tables: dict[Name, TableForm] = Field(description="The tables, by the names the rest of this file uses.")
    entities: dict[Name, EntityForm] = Field(description="The kinds of items, by name.")
    rules: dict[Name, RuleEntry] = Field(
        description="The rules, by name. Short: copy user.name into order.user_name",
    )
