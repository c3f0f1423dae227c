"""The shape of the rules that make one thing of many: embed, collect, count, sum, min and max; and of any rule at all.

Law: shape only, as in `forms`. Each says by `link` how its items point to the one they are gathered on.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from sync_rules.language.kinds.options import (
    EMBED_ITEMS_MAX,
    ArchiveForm,
    CallForm,
    Chosen,
    CopyForm,
    DeriveForm,
    Link,
    MirrorForm,
    Model,
    OwnWhere,
    PathForm,
    Settle,
    Shards,
    Size,
    Weight,
)

Via = Annotated[str | None, Field(description="The index of their table by which the items of one parent are listed.")]
OnDelete = Annotated[
    Literal["keep", "delete", "restrict"],
    Field(description="When the parent is deleted: keep its items, delete them, or report that there still are some."),
]


class Limit(Model):
    """How much an embedded map or list may hold; at least one of the two."""

    items: int | None = Field(default=None, ge=1, le=EMBED_ITEMS_MAX, description="At most so many entries.")
    bytes: Size | None = Field(default=None, description="At most so many bytes.", examples=["100KB", 50000])


class EmbedForm(Model):
    """embed: children as a map or a list inside their parent."""

    embed: str = Field(description="The child entity.", examples=["address"])
    into: str = Field(description="Where to: parent entity, then a path.", examples=["customer.MailingAddresses"])
    by: str | None = Field(
        default=None,
        description="What each entry is called; default: the child's key fields that its parent does not have.",
        examples=["{address_id}"],
    )
    fields: Chosen | None = Field(
        default=None,
        description="Which attributes: a list, or a map to new names; default all but the child's key.",
        examples=[["street", "city"], {"line1": "street"}],
    )
    form: Literal["map", "list"] = Field(default="map", alias="as", description="A map by `by`, or a list in `order`.")
    order: str | None = Field(
        default=None,
        description="The child's field that orders a list, and that `oldest` goes by; - before it: the other way.",
        examples=["-created_at"],
    )
    limit: Limit | None = Field(
        default=None,
        description="How much is embedded. An item cannot hold more than 400 KB.",
        examples=[{"items": 20}],
    )
    on_overflow: Literal["fail", "oldest", "omit"] = Field(
        default="fail",
        description="When there are more: fail leaves all as it was and reports it, oldest leaves out the first in "
        "order, omit writes NULL, so that readers query the children.",
    )
    where: OwnWhere = None
    link: Link = {}
    via: Via = None
    on_delete: OnDelete = "keep"
    settle_seconds: Settle = 60


class CollectForm(Model):
    """collect: a set on a node, with an element for each of its edges."""

    collect: str = Field(description="The edge entity.", examples=["membership"])
    into: str = Field(description="The set: node entity, then a top-level attribute.", examples=["goal.edges"])
    element: str = Field(
        alias="as",
        description="An edge's element, made of its fields. Together with the node's key it must name the edge.",
        examples=["{target}-{memberRole}"],
    )
    numbers: bool = Field(default=False, description="A set of numbers instead of texts; then `as` is one field.")
    where: OwnWhere = None
    omit: str | None = Field(
        default=None, description="JMESPath over the edge: those left out.", examples=["kind == 'COMMENT'"]
    )
    strict: bool = Field(
        default=False, description="Write in a transaction that checks the edge, at four times the cost."
    )
    link: Link = {}
    via: Via = None
    on_delete: OnDelete = "keep"
    settle_seconds: Settle = 60


class GroupForm(Model):
    """What count, sum, min and max have in common."""

    into: str = Field(description="Where to: parent entity, then a path.", examples=["user.open_orders"])
    where: OwnWhere = None
    per: str | None = Field(
        default=None,
        description="An attribute of the items: then a map is kept, with a number for each of its values.",
        examples=["status"],
    )
    mode: Literal["ledger", "recount"] = Field(
        default="ledger",
        description="ledger: exact books in a table of their own, for any number of items. recount: the items are "
        "listed each time, for small groups that the base table lists.",
    )
    ledger: str | None = Field(
        default=None, description="The table for the books, with a key of two strings; default the one named ledger."
    )
    link: Link = {}
    via: Via = None
    on_delete: OnDelete = "keep"
    settle_seconds: Settle = 60


class ShardedForm(GroupForm):
    """What count and sum have in common."""

    shards: Shards = Field(default=1, description="How many totals are kept per parent: for parents that are hot.")


class CountForm(ShardedForm):
    """count: how many items point to their parent."""

    count: str = Field(description="The entity that is counted.", examples=["order"])
    weights: (
        Annotated[dict[str, Annotated[dict[str, Weight], Field(min_length=1)]], Field(min_length=1, max_length=1)]
        | None
    ) = Field(
        default=None,
        description="How much each counts, by the value of one attribute; a value that is not named counts nothing.",
        examples=[{"memberRole": {"LEAD": 3, "CONTRIBUTOR": 1}}],
    )


class SumForm(ShardedForm):
    """sum: the total of a number attribute of the items."""

    sum: str = Field(description="The number: entity.attribute.", examples=["order.total"])


class MinForm(GroupForm):
    """min: the least of a number attribute of the items."""

    min: str = Field(description="The number: entity.attribute.", examples=["order.total"])


class MaxForm(GroupForm):
    """max: the greatest of a number attribute of the items."""

    max: str = Field(description="The number: entity.attribute.", examples=["order.total"])


# ---------------------------------------------------------------- any rule
FORMS: dict[str, type[Model]] = {
    "copy": CopyForm,
    "embed": EmbedForm,
    "collect": CollectForm,
    "derive": DeriveForm,
    "path": PathForm,
    "mirror": MirrorForm,
    "count": CountForm,
    "sum": SumForm,
    "min": MinForm,
    "max": MaxForm,
    "archive": ArchiveForm,
    "call": CallForm,
}
EXAMPLES = ["copy user.name into order.user_name", "count order into user.orders", "mirror user into user_by_email"]


def kind_of_rule(value: Any) -> str | None:
    """The word that names the kind of a rule written as a map; the first of them, if there are several."""
    return next((word for word in value if word in FORMS), None) if isinstance(value, dict) else None


def rule_form(value: Any) -> str | None:
    """Which form a rule is written in."""
    kind = kind_of_rule(value)
    return "form:sentence" if isinstance(value, str) else f"form:{kind}" if kind else None


Sentence = Annotated[str, Field(examples=EXAMPLES)]
RuleForm = (
    CopyForm | EmbedForm | CollectForm | DeriveForm | PathForm | MirrorForm
    | CountForm | SumForm | MinForm | MaxForm | ArchiveForm | CallForm
)  # fmt: skip
RuleEntry = Annotated[
    Annotated[Sentence, Tag("form:sentence")]
    | Annotated[CopyForm, Tag("form:copy")]
    | Annotated[EmbedForm, Tag("form:embed")]
    | Annotated[CollectForm, Tag("form:collect")]
    | Annotated[DeriveForm, Tag("form:derive")]
    | Annotated[PathForm, Tag("form:path")]
    | Annotated[MirrorForm, Tag("form:mirror")]
    | Annotated[CountForm, Tag("form:count")]
    | Annotated[SumForm, Tag("form:sum")]
    | Annotated[MinForm, Tag("form:min")]
    | Annotated[MaxForm, Tag("form:max")]
    | Annotated[ArchiveForm, Tag("form:archive")]
    | Annotated[CallForm, Tag("form:call")],
    Discriminator(rule_form),
]
