"""The shape of a rule as written, one pydantic model per kind, told apart by the word that names the kind.

Law: shape only, as in `schema`. A kind has the options that mean something for it and no others; what each does is said
here once, and editors show it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from sync_rules.model.limits import DELAY_MAX_SECONDS

SHARDS_MAX = 1000
EMBED_ITEMS_MAX = 10_000

# What may be written in several forms is told apart by the type of its value.
COPY_FORMS: dict[type[Any], str] = {str: "form:one", list: "form:several", dict: "form:renamed"}
ATTRIBUTES_FORMS: dict[type[Any], str] = {str: "form:word", list: "form:several", dict: "form:renamed"}
SIZE_FORMS: dict[type[Any], str] = {int: "form:number", str: "form:size"}
CELL_FORMS: dict[type[Any], str] = {int: "form:number", float: "form:fraction", str: "form:text"}


class Model(BaseModel):
    """Strict: a number is not text, and a key nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def copy_form(value: Any) -> str | None:
    """Which form `copy` is written in."""
    return COPY_FORMS.get(type(value))


def fields_form(value: Any) -> str | None:
    """Which form `fields` is written in."""
    return None if isinstance(value, str) else ATTRIBUTES_FORMS.get(type(value))


def attributes_form(value: Any) -> str | None:
    """Which form `attributes` is written in."""
    return ATTRIBUTES_FORMS.get(type(value))


def size_form(value: Any) -> str | None:
    """Which form a size in bytes is written in."""
    return SIZE_FORMS.get(type(value))


def cell_form(value: Any) -> str | None:
    """Which form a value in a table of a formula is written in."""
    return CELL_FORMS.get(type(value))


def weight_form(value: Any) -> str | None:
    """Which form a weight is written in."""
    return None if isinstance(value, str) else CELL_FORMS.get(type(value))


Names = Annotated[list[str], Field(min_length=1)]
Renames = Annotated[dict[str, str], Field(min_length=1)]
Copied = Annotated[
    Annotated[str, Tag("form:one")] | Annotated[Names, Tag("form:several")] | Annotated[Renames, Tag("form:renamed")],
    Discriminator(copy_form),
]
Chosen = Annotated[
    Annotated[Names, Tag("form:several")] | Annotated[Renames, Tag("form:renamed")], Discriminator(fields_form)
]
Mirrored = Annotated[
    Annotated[Literal["all"], Tag("form:word")]
    | Annotated[Names, Tag("form:several")]
    | Annotated[Renames, Tag("form:renamed")],
    Discriminator(attributes_form),
]
Size = Annotated[
    Annotated[int, Field(ge=1), Tag("form:number")]
    | Annotated[str, Field(pattern=r"^[1-9][0-9]* ?(B|KB)$"), Tag("form:size")],
    Discriminator(size_form),
]
# An integer is a number too: of pydantic's own `oneOf` it would be two, and editors would call it wrong.
Weight = Annotated[
    Annotated[int, Tag("form:number")] | Annotated[float, Tag("form:fraction")],
    Discriminator(weight_form),
    WithJsonSchema({"type": "number"}),
]
Cell = Annotated[
    Annotated[int, Tag("form:number")] | Annotated[float, Tag("form:fraction")] | Annotated[str, Tag("form:text")],
    Discriminator(cell_form),
    WithJsonSchema({"type": ["number", "string"]}),
]
Link = Annotated[
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


class CopyForm(Model):
    """copy: attributes of a source on every item that points to it."""

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
    link: Link = {}
    via: str | None = Field(default=None, description="The index of the target's table by which targets are found.")
    on_delete: Literal["keep", "clear", "delete", "restrict"] = Field(
        default="keep",
        description="When the source is deleted: keep the copy, clear it, delete the whole target, or report that "
        "there still are targets.",
    )
    strict: bool = Field(
        default=False,
        description="Copy in a transaction that checks the source: exact when it is written, at four times the cost.",
    )
    settle_seconds: Settle = 60


class DeriveForm(Model):
    """derive: an attribute computed from the item it is on, whole or absent."""

    derive: str = Field(description="The attribute that is computed: entity.attribute.", examples=["membership.gsi0"])
    formula: str | None = Field(
        default=None,
        alias="as",
        description="Text with fields in braces, each with formats if need be: {memberRole:rank}-{memberRole}. Absent "
        "as long as one of the fields is.",
        examples=["{state:upper}#{city:upper}#{zip}"],
    )
    join: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="Instead of `as`: fields, of which those that are there are joined."
    )
    separator: str | None = Field(default=None, description="What stands between the joined fields; default a blank.")
    tables: dict[str, dict[str, Cell]] = Field(
        default={},
        alias="map",
        description="Tables from text to text, to be used as formats. What is in no table has no value.",
        examples=[{"rank": {"LEAD": 500, "CONTRIBUTOR": 400}}],
    )


class PathForm(Model):
    """path: the way from the root of a hierarchy to each of its items."""

    path: str = Field(description="The attribute that holds the path: entity.attribute.", examples=["component.Path"])
    parent: str = Field(
        description="The attribute with the parent's id: the parent has it as the last field of its key.",
        examples=["ParentId"],
    )
    separator: str = Field(default="|", min_length=1, description="What stands between the ids of a path.")
    graph: str | None = Field(
        default=None, description="An attribute for the root's id with a shard number: CM1#1.", examples=["GraphId"]
    )
    shards: Shards = Field(default=1, description="How many shards the items of one root are spread over by `graph`.")
    depth: str | None = Field(default=None, description="An attribute for the depth: 0 for a root.")
    carry: Annotated[list[str], Field(min_length=1)] | None = Field(
        default=None, description="Attributes that every item has from its root."
    )
    via: str | None = Field(default=None, description="The index by which the children of an item are listed.")
    on_delete: Literal["keep", "clear", "delete", "restrict"] = Field(
        default="keep",
        description="When a parent is deleted: keep its children's paths, clear them, delete the children, or report.",
    )
    settle_seconds: Settle = 60


class MirrorForm(Model):
    """mirror: an item for an item, under another key."""

    mirror: str = Field(description="The source entity.", examples=["user"])
    into: str = Field(description="The entity of the mirrored items.", examples=["user_by_email"])
    link: dict[str, str] = Field(
        default={},
        description="Which field of the source fills a field of the mirror's key, where the names differ: {field of "
        "the mirror: field of the source}.",
        examples=[{"owner": "user_id"}],
    )
    attributes: Mirrored | None = Field(
        default=None,
        description="What is mirrored beside the keys: a list of attributes, a map to new names, or all; default "
        "nothing. The source's own key fields always are.",
    )
    each: Annotated[dict[str, str], Field(min_length=1, max_length=1)] | None = Field(
        default=None,
        description="One mirror per element of a list or set: {field of the mirror: attribute of the source}.",
        examples=[{"post_id": "postIds"}],
    )
    where: OwnWhere = None


class ArchiveForm(Model):
    """archive: items that go are kept in S3 as they last were."""

    archive: str = Field(description="The entity whose items are kept.", examples=["game"])
    when: Literal["expired", "deleted"] = Field(
        default="expired", description="expired: removed by Time to Live. deleted: removed by anybody."
    )
    into: str = Field(
        description="The bucket and the beginning of the objects' names; ${VAR} is taken from the environment.",
        examples=["s3://${BUCKET}/games/"],
    )
    where: OwnWhere = None


class CallForm(Model):
    """call: a Python function of yours, once per change."""

    call: str = Field(description="The function: module.function.", examples=["mypkg.notify"])
    on: str = Field(description="The entity whose changes it is called with.", examples=["order"])
    when: Annotated[list[Literal["created", "changed", "deleted"]], Field(min_length=1)] | None = Field(
        default=None, description="Which changes; default all."
    )
    watch: Names | None = Field(
        default=None, description="For `changed`: only when one of these attributes did.", examples=[["status"]]
    )
    where: OwnWhere = None
