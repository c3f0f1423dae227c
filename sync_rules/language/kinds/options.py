"""The shape of a rule as written, one pydantic model per kind, told apart by the word that names the kind.

Law: shape only, as in `schema`. A kind has the options that mean something for it and no others; what each does is said
here once, and editors show it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sync_rules.model.limits import DELAY_MAX_SECONDS

SHARDS_MAX = 1000

ATTRIBUTES_FORMS: dict[type[Any], str] = {str: "form:word", list: "form:several", dict: "form:renamed"}


class Model(BaseModel):
    """Strict: a number is not text, and a key nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Names = Annotated[list[str], Field(min_length=1)]
Renames = Annotated[dict[str, str], Field(min_length=1)]
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


Via = Annotated[str | None, Field(description="The index of their table by which the items of one parent are listed.")]


OnDelete = Annotated[
    Literal["keep", "delete", "restrict"],
    Field(description="When the parent is deleted: keep its items, delete them, or report that there still are some."),
]
