"""The keys of access patterns in a rules file and their types; editors show the descriptions."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from sync_rules.language.kinds.options import NO_FORM, Model, choose_by_type

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html: BatchGetItem
KEYS_MAX: Final = 100
DEPTH_MAX: Final = 1_000
ITEMS_MAX: Final = 10**15  # more than all tables together can have

Size = Annotated[
    Annotated[int, Field(ge=1), Tag("form:number")]
    | Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)? ?(B|KB)$"), Tag("form:size")],
    choose_by_type({int: "form:number", str: "form:size"}, "a size such as 1.6KB"),
]
Attributes = Annotated[
    list[str] | None,
    Field(
        description="The attributes that are needed. Default: all. One of another entity: user.name.",
        examples=[["user_name", "total"]],
    ),
]
EntityOrEntities = Annotated[
    Annotated[str, Tag("form:entity")] | Annotated[list[str], Tag("form:entities")],
    choose_by_type({str: "form:entity", list: "form:entities"}, "an entity, or a list of entities"),
]
Share = Annotated[str | None, Field(examples=["5%"])]


class EntityStatement(Model):
    """The keys of an entity that estimates need."""

    size: Size | None = Field(
        default=None, description="The size of an item, names and values: for estimates.", examples=["1.6KB", 500]
    )
    items: int | None = Field(default=None, ge=0, le=ITEMS_MAX, description="How many items there are: for estimates.")


class PatternForm(Model):
    """The keys of each pattern, for its row in the matrix."""

    description: str | None = Field(default=None, description="What the application does with it, for the matrix.")
    priority: Literal["high", "medium", "low"] | None = Field(default=None, description="How much depends on it.")
    peak_hours: str | None = Field(
        default=None,
        description="The hours of the day, in UTC, with the most calls: shown in the matrix.",
        examples=["18-22"],
    )
    rate: str | None = Field(
        default=None, description="Calls per time: a number and a unit.", examples=["120/s", "30/min", "5/h", "1/day"]
    )


class KeyedForm(PatternForm):
    """The keys of patterns that ask for items by their keys."""

    busiest: Share = Field(
        default=None,
        description="The share of the calls that asks for the same key, where one key is asked more than others.",
    )


class ReadForm(KeyedForm):
    """The keys of reads that find pages of items."""

    attributes: Attributes = None
    page: int | None = Field(
        default=None, ge=1, le=ITEMS_MAX, description="Items per request. Default: as many as 1 MB holds."
    )
    items: int | None = Field(
        default=None, ge=0, le=ITEMS_MAX, description="The items that one call finds in all.", examples=[40]
    )


class GetForm(ReadForm):
    """Items of one entity, or of several that one Query finds."""

    get: EntityOrEntities = Field(
        description="The entity whose items are read, or several: a parent with its children.",
        examples=["order", ["organisation", "user"]],
    )
    by: list[str] = Field(default=[], description="The fields whose values each call gives.", examples=[["user_id"]])
    between: str | None = Field(default=None, description="A field. Each call gives its least and its greatest value.")
    at_least: str | None = Field(default=None, description="A field. Each call gives its least value.")
    at_most: str | None = Field(default=None, description="A field. Each call gives its greatest value.")
    begins_with: str | None = Field(default=None, description="A field. Each call gives the beginning of its value.")
    order: str | None = Field(
        default=None, description="The field that sorts the items; `desc` after it reverses them.",
        examples=["order_id desc"],
    )  # fmt: skip
    one: bool = Field(default=False, description="At most one item is found.")
    keys: int | None = Field(
        default=None,
        ge=2,
        le=KEYS_MAX,
        description="Each call reads this number of items by their keys: a BatchGetItem.",
    )
    where: str | None = Field(
        default=None,
        description="JMESPath over the item's own fields: which items are meant. What no key serves is a filter.",
        examples=["status == 'OPEN'"],
    )
    keeps: Share = Field(default=None, description="The share of the items that `where` lets in.")
    consistent: bool = Field(default=False, description="A read right after a write must see it.")
    via: str | None = Field(
        default=None, description="The only way that is meant: `table`, the name of an index, or `mirror`."
    )


class GraphForm(ReadForm):
    """The nodes that edges lead to from one item."""

    graph: str = Field(description="The entity of the nodes.", examples=["goal"])
    start: str = Field(alias="from", description="The entity of the item that edges lead from.", examples=["user"])
    through: str = Field(description="The entity of the edges.", examples=["membership"])
    at_least: str | None = Field(
        default=None, description="The least text of the edges' sort key.", examples=["400-CONTRIBUTOR"]
    )
    begins_with: str | None = Field(default=None, description="The beginning of the edges' sort key.")
    order: Literal["asc", "desc"] | None = Field(
        default=None, description="The edges in the order of their sort key, or the other way."
    )
    neighbours: list[str] = Field(
        default=[], description="The entities at the other ends of each node's edges, read too.", examples=[["user"]]
    )
    link: dict[str, str] = Field(
        default={},
        description="The fields of an edge that name start and neighbours, if they differ: {user_id: owner_id}. "
        "Or those that hold a key attribute of theirs: {PK: member}, where members are users and teams.",
    )
    via: str | None = Field(default=None, description="The index that lists the edges, or `table`.")


class TreeForm(ReadForm):
    """Items of a hierarchy, around one."""

    tree: str = Field(description="The entity whose items make the hierarchy.", examples=["component"])
    under: str | None = Field(default=None, description="The id of an item whose descendants are read.")
    above: str | None = Field(default=None, description="The id of an item whose ancestors are read.")
    children: str | None = Field(default=None, description="The id of an item whose children are read.")
    depth: int | None = Field(default=None, ge=1, le=DEPTH_MAX, description="The greatest number of levels down.")
    itself: bool = Field(default=False, description="That item too.")


class SearchForm(PatternForm):
    """Items whose vectors are near to one that each call gives."""

    search: str = Field(description="The entity whose items are searched.", examples=["product"])
    by: list[str] = Field(
        default=[],
        description="The attributes whose values each call gives. One of another entity: maker.status.",
        examples=[["brand", "maker.status"]],
    )
    top: int | None = Field(default=None, ge=1, description="The number of nearest items to return.", examples=[10])
    attributes: Attributes = None
    via: str | None = Field(default=None, description="The only vector index that is meant.")


class PutForm(KeyedForm):
    """Items that the application puts."""

    put: str = Field(description="The entity whose items are put.")


class UpdateForm(KeyedForm):
    """Items that the application updates."""

    update: str = Field(description="The entity whose items are updated.")
    sets: list[str] | None = Field(default=None, description="The attributes that change.", examples=[["name"]])


class DeleteForm(KeyedForm):
    """Items that the application deletes."""

    delete: str = Field(description="The entity whose items are deleted.")


FORMS: Final[dict[str, type[Model]]] = {
    "get": GetForm,
    "graph": GraphForm,
    "tree": TreeForm,
    "search": SearchForm,
    "put": PutForm,
    "update": UpdateForm,
    "delete": DeleteForm,
}


def find_form(value: Any) -> type[Model] | None:
    """Return the form of a pattern, by the key that only this form has; None if no form matches."""
    return next((form for word, form in FORMS.items() if isinstance(value, dict) and word in value), None)


def suggest_option(name: str, value: Any, as_list: bool) -> str | None:  # noqa: FBT001 - a section is called so
    """Return an option's probable spelling for a value of a wrong type, or None."""
    if not isinstance(value, str | int | float):
        return None
    if as_list:
        return f"{name}: [{value}]"
    share = value * 100 if isinstance(value, float) and value < 1 else value
    shares = {option: f"{option}: {share:g}%" for option in ("busiest", "keeps") if not isinstance(share, str)}
    return {"rate": f"rate: {value}/s", **shares}.get(name)


def _find_tag(value: Any) -> str | None:
    form = find_form(value)
    return None if form is None else f"form:{form.__name__}"


PatternEntry = Annotated[
    Annotated[GetForm, Tag("form:GetForm")]
    | Annotated[GraphForm, Tag("form:GraphForm")]
    | Annotated[TreeForm, Tag("form:TreeForm")]
    | Annotated[SearchForm, Tag("form:SearchForm")]
    | Annotated[PutForm, Tag("form:PutForm")]
    | Annotated[UpdateForm, Tag("form:UpdateForm")]
    | Annotated[DeleteForm, Tag("form:DeleteForm")],
    Discriminator(
        _find_tag,
        custom_error_type=NO_FORM,
        custom_error_message="a map with one of get, graph, tree, search, put, update or delete, "
        "such as {get: order, by: [user_id]}",
    ),
]
