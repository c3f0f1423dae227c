"""Billing, capacity and other settings of tables: their forms in a rules file, and the checks of what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from sync_rules.language.kinds.options import NO_FORM, Model, by_type
from sync_rules.language.problems import Location, Problems
from sync_rules.language.yaml_source import Document
from sync_rules.model.capacity import (
    TARGET_MAX_PERCENT,
    TARGET_MIN_PERCENT,
    TARGET_PERCENT,
    WARM_READ_MIN,
    WARM_WRITE_MIN,
    Billing,
    Distance,
    IndexSettings,
    OnDemand,
    Provisioned,
    Scaling,
    TableSettings,
    Units,
    VectorIndex,
    Warm,
)
from sync_rules.model.entities import Index, KeyAttribute, KeyType, Table
from sync_rules.model.errors import UserError
from sync_rules.model.values import parse_path

if TYPE_CHECKING:
    from sync_rules.language.schema import TableForm

ATTRIBUTE_NAME_MAX: Final = 255
AttributeName = Annotated[str, StringConstraints(min_length=1, max_length=ATTRIBUTE_NAME_MAX)]
Projection = Annotated[
    Annotated[Literal["all", "keys"], Tag("form:word")] | Annotated[list[AttributeName], Tag("form:names")],
    by_type({str: "form:word", list: "form:names"}, "all, keys, or a list of attribute names"),
]
UNITS_MAX: Final = 10**9  # more than AWS gives anybody
UnitsASecond = Annotated[int, Field(ge=1, le=UNITS_MAX)]


# ---------------------------------------------------------------- forms
class ScalingForm(Model):
    """Autoscaling of reads and writes alike."""

    min: UnitsASecond = Field(description="The fewest units a second.")
    max: UnitsASecond = Field(description="The most units a second.")
    target: int = Field(
        default=TARGET_PERCENT,
        ge=TARGET_MIN_PERCENT,
        le=TARGET_MAX_PERCENT,
        description="The share of the units, in percent, that shall be used.",
    )


class EachScalingForm(Model):
    """Autoscaling of reads, of writes, or of each in its own way."""

    read: ScalingForm | None = Field(default=None, description="Of the read units.")
    write: ScalingForm | None = Field(default=None, description="Of the write units.")


def _scaling_form(value: Any) -> str:
    each = isinstance(value, dict) and not {"read", "write"}.isdisjoint(value)
    return "form:each" if each else "form:both"


class ProvisionedForm(Model):
    """Provisioned units a second, with or without autoscaling."""

    read: UnitsASecond = Field(description="Read units a second; with autoscaling those at the beginning.")
    write: UnitsASecond = Field(description="Write units a second; with autoscaling those at the beginning.")
    autoscaling: (
        Annotated[
            Annotated[ScalingForm, Tag("form:both")] | Annotated[EachScalingForm, Tag("form:each")],
            Discriminator(_scaling_form),
        ]
        | None
    ) = Field(
        default=None,
        description="Autoscaling of both, {min, max, target}, or of each: {read: {min, max, target}, write: ...}.",
        examples=[{"min": 5, "max": 500, "target": 70}],
    )


class OnDemandForm(Model):
    """The most that is served on demand."""

    max_read: UnitsASecond | None = Field(default=None, description="At most so many read units a second.")
    max_write: UnitsASecond | None = Field(default=None, description="At most so many write units a second.")


class BillingForm(Model):
    """One of the two billing modes, with its figures."""

    on_demand: OnDemandForm | None = Field(
        default=None, alias="on-demand", description="Billed by request, with a maximum throughput."
    )
    provisioned: ProvisionedForm | None = Field(default=None, description="Billed by provisioned units.")


def _billing_form(value: Any) -> str | None:
    return "form:word" if value == "on-demand" else "form:figures" if isinstance(value, dict) else None


BillingEntry = Annotated[
    Annotated[Literal["on-demand"], Tag("form:word")] | Annotated[BillingForm, Tag("form:figures")],
    Discriminator(
        _billing_form,
        custom_error_type=NO_FORM,
        custom_error_message="on-demand, or a map such as {provisioned: {read: 5, write: 5}}",
    ),
]


class WarmForm(Model):
    """Warm throughput."""

    read: int | None = Field(default=None, description=f"Read units a second, {WARM_READ_MIN:,} or more.")
    write: int | None = Field(default=None, description=f"Write units a second, {WARM_WRITE_MIN:,} or more.")


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


# ---------------------------------------------------------------- compiled and checked
def settings_of(document: Document, problems: Problems, table: Table, form: TableForm) -> TableSettings:
    """The settings of a table. What cannot be is reported."""
    compiler = _Compiler(document, problems, table)
    billing = compiler.billing(form.billing)
    mode = None if form.billing is not None and billing is None else _mode(billing)
    of_indexes = {
        index.name: compiler.index(index, mode, getattr(entry, "billing", None), getattr(entry, "warm", None))
        for index, entry in ((table.index(name), entry) for name, entry in form.indexes.items())
    }
    return TableSettings(
        billing,
        compiler.warm(form.warm),
        form.table_class,
        form.deletion_protection,
        form.backups,
        compiler.time_to_live(form.ttl),
        {name: one for name, one in of_indexes.items() if one != IndexSettings()},
        tuple(compiler.vector(name, one, mode) for name, one in form.vectors.items()),
    )


def _mode(billing: Billing | None) -> str:
    """The word for a billing in the rules file."""
    return "provisioned" if isinstance(billing, Provisioned) else "on-demand"


class _Compiler:
    """The entry of one table, and where its problems go."""

    def __init__(self, document: Document, problems: Problems, table: Table) -> None:
        self._document, self._problems, self._table = document, problems, table

    def _at(self, *key_path: str) -> Location:
        return self._document.value("tables", self._table.name, *key_path)

    # ------------------------------------------------------------ billing
    def billing(self, entry: str | BillingForm | None, *within: str) -> Billing | None:
        """The billing; None where there is none, or none that can be."""
        if entry is None:
            return None
        if isinstance(entry, str):
            return OnDemand()
        place = (*within, "billing")
        if (entry.on_demand is None) == (entry.provisioned is None):
            message = "expected one of on-demand and provisioned, found "
            message += "none" if entry.on_demand is None else "both"
            self._problems.add("SR130", self._at(*place), message, "billing: {provisioned: {read: 5, write: 5}}")
            return None
        if entry.provisioned is not None:
            return self._provisioned(entry.provisioned, *place, "provisioned")
        return self._on_demand(entry.on_demand or OnDemandForm(), *place, "on-demand")

    def _on_demand(self, form: OnDemandForm, *place: str) -> OnDemand:
        if form.max_read is None and form.max_write is None:
            message = "expected max_read, max_write or both, found none"
            self._problems.add("SR130", self._at(*place), message, "write billing: on-demand for no maximum")
        return OnDemand(form.max_read, form.max_write)

    def _provisioned(self, form: ProvisionedForm, *place: str) -> Provisioned:
        scaling = form.autoscaling
        made: list[Units] = []
        for name, number in (("read", form.read), ("write", form.write)):
            own, where = scaling, (*place, "autoscaling")
            if isinstance(own, EachScalingForm):
                own, where = own.read if name == "read" else own.write, (*where, name)
            made.append(Units(number, None if own is None else self._scaling(own, number, name, place, where)))
        return Provisioned(*made)

    def _scaling(
        self, form: ScalingForm, number: int, name: str, place: tuple[str, ...], where: tuple[str, ...]
    ) -> Scaling:
        if form.min > form.max:
            message = f"min is {form.min} and max is {form.max}: no number of units is between them"
            self._problems.add("SR130", self._at(*where), message, f"min: {form.max}, max: {form.min}")
        elif not form.min <= number <= form.max:
            message = f"{name} begins with {number} units a second, and autoscaling keeps {form.min} to {form.max}"
            cure = f"{name}: {min(max(number, form.min), form.max)}; or change min and max"
            self._problems.add("SR130", self._at(*place, name), message, cure)
        return Scaling(form.min, form.max, form.target)

    # ------------------------------------------------------------ indexes
    def index(
        self, index: Index, mode: str | None, billing: str | BillingForm | None, warm: WarmForm | None
    ) -> IndexSettings:
        """The settings of an index of a table that is billed in a mode; None: nobody knows which."""
        within = ("indexes", index.name)
        if index.local:
            for option, found in (("billing", billing), ("warm", warm)):
                if found is not None:
                    message = "a local index has no capacity of its own: it takes that of its table"
                    self._problems.add("SR131", self._at(*within, option), message, f"remove {option}")
            return IndexSettings()
        own = self.billing(billing, *within)
        if own is not None and mode not in (None, _mode(own)):
            message = f"index {index.name!r} is {_mode(own)}, and its table is {mode}"
            cure = f"remove billing here, so that it has the capacity of its table; or say {_mode(own)} of the table"
            self._problems.add("SR131", self._at(*within, "billing"), message, cure)
        return IndexSettings(own, self.warm(warm, *within))

    def vector(self, name: str, form: VectorForm, mode: str | None) -> VectorIndex:
        """A vector index of a table that is billed in a mode."""
        within = ("vectors", name)
        if mode == _mode(Provisioned(Units(1), Units(1))):
            message = (
                "DynamoDB has vector indexes on tables that are billed on demand alone, and this one is provisioned"
            )
            self._problems.add("SR134", self._at(*within), message, "billing: on-demand")
        if name in {index.name for index in self._table.indexes}:
            message = f"table {self._table.name!r} has another index {name!r}"
            self._problems.add("SR134", self._at(*within), message, "give it another name")
        types = {one.name: one.type for one in self._table.key_attributes}
        for part, attributes in (("partition", form.partition), ("filters", form.filters)):
            for attribute, kind in attributes.items():
                if types.setdefault(attribute, kind) != kind:
                    message = f"{attribute} is {kind} here, and {types[attribute]} in another key of the table"
                    place = self._at(*within, part, attribute)
                    self._problems.add("SR134", place, message, f"{attribute}: {types[attribute]}")
        partition, filters = (
            tuple(KeyAttribute(one, kind) for one, kind in attributes.items())
            for attributes in (form.partition, form.filters)
        )
        shows = tuple(form.projection) if isinstance(form.projection, list) else form.projection
        return VectorIndex(Index(name, partition, filters, shows), form.vector, form.dimensions, form.distance)

    # ------------------------------------------------------------ other settings
    def warm(self, form: WarmForm | None, *within: str) -> Warm | None:
        """The warm throughput."""
        if form is None:
            return None
        place = (*within, "warm")
        if form.read is None and form.write is None:
            message = "expected read, write or both, found none"
            self._problems.add("SR132", self._at(*place), message, f"warm: {{read: {WARM_READ_MIN}}}, or remove warm")
        for name, found, least in (("read", form.read, WARM_READ_MIN), ("write", form.write, WARM_WRITE_MIN)):
            if found is not None and found < least:
                message = f"expected {least:,} {name} units a second or more, found {found:,}"
                self._problems.add("SR132", self._at(*place, name), message, f"{name}: {least}, or remove it")
        return Warm(form.read, form.write)

    def time_to_live(self, text: str | None) -> str | None:
        """The attribute of Time to Live; None where it is none."""
        if text is None:
            return None
        location, types = self._at("ttl"), {one.name: one.type for one in self._table.key_attributes}
        try:
            name, *inner = parse_path(text)
        except UserError as error:
            self._problems.add("SR125", location, error.found, error.cure or None)
            return None
        message = None
        if inner:
            message = f"{text} is inside of a map: DynamoDB takes an attribute of the item itself"
        elif name in {one.name for one in self._table.key}:
            message = f"{text} is part of the key of table {self._table.name!r}, which no item can change"
        elif types.get(name, "N") != "N":
            message = f"{text} is no number by the keys of indexes: Time to Live is one, in seconds since 1970"
        if message is not None:
            self._problems.add(
                "SR125", location, message, "name an attribute of numbers that is no key: ttl: expires_at"
            )
            return None
        return name
