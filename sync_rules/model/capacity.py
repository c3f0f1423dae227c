"""Settings of tables that no rule depends on: billing, capacity, class, protection, Time to Live.

Invariant: `None` means that the rules file does not say. Then a table that exists is left as it is, and the template
has its own default. Only what creates and compares tables reads settings: the functions are deployed without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from sync_rules.model.entities import Index

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html: what each new table has anyway
WARM_READ_MIN: Final = 12_000
WARM_WRITE_MIN: Final = 4_000
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/AutoScaling.html
TARGET_MIN_PERCENT: Final = 20
TARGET_MAX_PERCENT: Final = 90
TARGET_PERCENT: Final = 70  # the console's

Distance = Literal["cosine", "euclidean", "dot-product"]
TableClass = Literal["standard", "infrequent-access"]


@dataclass(frozen=True)
class Scaling:
    """Autoscaling: the least and the most units a second, and how many percent of them shall be used."""

    min: int
    max: int
    target: int = TARGET_PERCENT


@dataclass(frozen=True)
class Units:
    """Provisioned units a second; with `scaling` those at the beginning."""

    number: int
    scaling: Scaling | None = None


@dataclass(frozen=True)
class Provisioned:
    """Billed by provisioned units."""

    read: Units
    write: Units


@dataclass(frozen=True)
class OnDemand:
    """Billed by request, at most so many units a second; None: no maximum."""

    max_read: int | None = None
    max_write: int | None = None


Billing = OnDemand | Provisioned


@dataclass(frozen=True)
class Warm:
    """Units a second that are there at once; None: not said."""

    read: int | None = None
    write: int | None = None


@dataclass(frozen=True)
class IndexSettings:
    """Settings of one index, as far as the rules file has them."""

    billing: Billing | None = None
    warm: Warm | None = None


@dataclass(frozen=True)
class VectorIndex:
    """A vector index: `index` has its name and projection, the attribute that each search gives as the partition, and
    the other attributes that may filter a search as the sort key. `vector`: the attribute that holds the vector.
    """

    index: Index
    vector: str
    dimensions: int
    distance: Distance


@dataclass(frozen=True)
class TableSettings:
    """Settings of one table and of its indexes by name, as far as the rules file has them. `ttl`: the application's own
    attribute of Time to Live.
    """

    billing: Billing | None = None
    warm: Warm | None = None
    table_class: TableClass | None = None
    deletion_protection: bool | None = None
    backups: bool | None = None
    ttl: str | None = None
    indexes: Mapping[str, IndexSettings] = field(default_factory=dict)
    vectors: tuple[VectorIndex, ...] = ()

    @property
    def scales(self) -> bool:
        """True if a capacity of the table or of an index has autoscaling."""
        billings = (self.billing, *(one.billing for one in self.indexes.values()))
        provisioned = (one for one in billings if isinstance(one, Provisioned))
        return any(units.scaling is not None for one in provisioned for units in (one.read, one.write))

    @property
    def costs_while_empty(self) -> bool:
        """True if the table costs money before there is an item in it."""
        warm = self.warm is not None or any(one.warm is not None for one in self.indexes.values())
        return warm or isinstance(self.billing, Provisioned)

    def of(self, index: Index) -> IndexSettings:
        """The settings of an index: one without a billing of its own has that of the table; a local one has none."""
        if index.local:
            return NO_INDEX_SETTINGS
        own = self.indexes.get(index.name, NO_INDEX_SETTINGS)
        return IndexSettings(self.billing if own.billing is None else own.billing, own.warm)


NO_INDEX_SETTINGS: Final = IndexSettings()
NO_SETTINGS: Final = TableSettings()
