"""The keys and indexes of exported tables, which an export does not contain: as given, or inferred from the items.

Invariant: a key is never guessed. Each item holds an inferred key with one type, and no two items share its values. If
several attributes qualify, none is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

from sync_rules.extras.discover.imports.identifiers import join_words, make_singular, make_table_slug, split_words
from sync_rules.extras.discover.imports.key_schemas import make_key
from sync_rules.model.entities import Index, KeyAttribute, KeyType
from sync_rules.model.errors import UserError
from sync_rules.model.suggest import explain_unknown_name

Names = tuple[str, ...]
Item = Mapping[str, Mapping[str, Any]]
TYPES: Final[tuple[KeyType, ...]] = ("S", "N", "B")
PARTITIONS: Final = frozenset({"pk", "partitionkey", "hashkey", "hk"})
SORTS: Final = frozenset({"sk", "sortkey", "rangekey", "rk"})
IDS: Final = frozenset({"id", "uuid", "guid", "key"})
PAIRED_MAX: Final = 8  # attributes that are tried in pairs
TRIED_MAX: Final = 64  # attributes that are tried alone
SHOWN_MAX: Final = 4
NAMES_MAX: Final = 2  # attributes of a key
FORMS: Final = "TABLE=PARTITION or TABLE=PARTITION,SORT, or TABLE/INDEX for an index"
GIVE: Final = "give what is right with"
OR_NAME: Final = ", or name the table in the account with --table"


@dataclass(frozen=True)
class GivenKeys:
    """The key attributes of tables and, by index name, of their indexes, as the user gave them."""

    keys: Mapping[str, Names]
    indexes: Mapping[str, Mapping[str, Names]]


def parse_keys(keys: Iterable[str], tables: Collection[str]) -> GivenKeys:
    """Parse keys from texts such as shop=PK,SK, and index keys from texts such as shop/GSI1=GSI1PK,GSI1SK.

    Raises:
        UserError: if a text has another form, or its table is not in `tables`.
    """
    by_table: dict[str, Names] = {}
    of_indexes: dict[str, dict[str, Names]] = {}
    for text in keys:
        place, sign, rest = text.partition("=")
        names = tuple(rest.split(","))
        table, slash, index = place.partition("/")
        if not (sign and place and all(names)) or len(names) > NAMES_MAX or len(set(names)) < len(names):
            raise UserError(f"--key {text}: expected {FORMS}")
        if table not in tables or (slash and not index):
            raise UserError(f"--key {text}: {explain_unknown_name('table', table, tables)}")
        if slash:
            of_indexes.setdefault(table, {})[index] = names
        else:
            by_table[table] = names
    return GivenKeys(by_table, of_indexes)


# ---------------------------------------------------------------- what all items have
@dataclass
class Shape:
    """The attributes that could be a part of the key: each item so far has them, with one type of a key.

    `asked`: attributes that some items may lack, as those of an index's key. `lost`: attributes that some items lack.
    """

    asked: Collection[str] = ()
    types: dict[str, KeyType] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    items: int = 0

    def __post_init__(self) -> None:
        self._asked: dict[str, KeyType] = {}

    def add(self, item: Item) -> None:
        """Look at one more item."""
        if not self.items:
            self.types = {name: kind for name, value in item.items() if (kind := _find_key_type(value)) is not None}
        else:
            for name in [name for name, kind in self.types.items() if kind not in item.get(name, ())]:
                self.lost.add(name)
                del self.types[name]
        self.items += 1
        for name in self.asked:
            if name not in self._asked and (kind := _find_key_type(item.get(name))) is not None:
                self._asked[name] = kind

    def index(self, name: str, names: Names) -> Index:
        """An index whose key has these attributes. One that no item showed is a text."""
        partition, *sort = make_key({one: self._asked.get(one, "S") for one in names})
        return Index(name, (partition,), tuple(sort))


def _find_key_type(value: object) -> KeyType | None:
    return next((kind for kind in TYPES if kind in value), None) if isinstance(value, Mapping) else None


# ---------------------------------------------------------------- the key
class KeyNotToldError(UserError):
    """The items do not determine the key of a table. `option` is the option that gives it."""

    def __init__(self, table: str, found: str, option: str) -> None:
        super().__init__(f"table {table}: the key cannot be told from the export: {found}", f"{GIVE} {option}{OR_NAME}")
        self.table, self.could, self.option = table, found, option


def explain_untold(errors: Sequence[KeyNotToldError]) -> UserError:
    """The error about all tables whose keys cannot be told, so that one more command is enough."""
    if len(errors) == 1:
        return errors[0]
    each = "; ".join(f"{one.table}: {one.could}" for one in errors)
    options = " ".join(one.option for one in errors)
    said = f"the keys of {len(errors)} tables cannot be told from their exports: {each}"
    return UserError(said, f"{GIVE} {options}{OR_NAME}")


Unique = Callable[[Sequence[Names]], Sequence[Names]]  # those of some keys whose values no two items share


def choose_key(table: str, shape: Shape, given: Names | None, unique: Unique) -> tuple[KeyAttribute, ...]:
    """Return the key of a table that has items.

    Raises:
        UserError: if the given key does not fit the items, or the items do not determine the key.
    """
    names = _check_key(table, shape, given, unique) if given else _infer_key(table, shape, unique)
    return make_key({name: shape.types[name] for name in names})


def _check_key(table: str, shape: Shape, given: Names, unique: Unique) -> Names:
    for name in given:
        if name not in shape.types:
            found = (
                "some items lack it, or have it with another type" if name in shape.lost else "the first item lacks it"
            )
            raise UserError(
                f"table {table}: expected the key attribute {name} in each item as text, number or binary; {found}. "
                f"Correct --key; attributes that each item has: {_join_names(shape.types)}"
            )
    if not unique([given]):
        raise UserError(f"table {table}: two items have the same {', '.join(given)}. Correct --key: it is not the key")
    return given


def _infer_key(table: str, shape: Shape, unique: Unique) -> Names:
    named = _find_named_key(shape.types)
    if named and unique([named]):
        return named
    alone = unique([(name,) for name in list(shape.types)[:TRIED_MAX]])
    ids = [names for names in alone if _is_id(names[0], table)]
    if len(ids) == 1 or (len(alone) == 1 and shape.items > 1):
        return (ids or alone)[0]
    pairs = () if alone else unique(list(combinations(list(shape.types)[:PAIRED_MAX], 2)))
    if len(pairs) == 1:
        return pairs[0]
    could = [",".join(names) for names in (ids or alone or pairs)][:SHOWN_MAX]
    found = f"it could be {' or '.join(could)}" if could else "no attribute or pair of them names each item once"
    raise KeyNotToldError(table, found, f"--key {table}={could[0] if could else 'PARTITION,SORT'}")


def _find_named_key(types: Iterable[str]) -> Names:
    """The attributes that are called as keys often are."""
    partition = next((name for name in types if join_words(name) in PARTITIONS), "")
    sort = next((name for name in types if join_words(name) in SORTS), "")
    return tuple(name for name in (partition, sort) if name) if partition else ()


def _is_id(name: str, table: str) -> bool:
    """True for a name such as id, and customer_id in a table of customers."""
    one = "".join(split_words(make_singular(make_table_slug(table))))
    return join_words(name) in IDS | {f"{one}{ending}" for ending in IDS}


def _join_names(names: Iterable[str]) -> str:
    few = list(names)
    return ", ".join(few[:SHOWN_MAX]) + (f" and {len(few) - SHOWN_MAX} more" if len(few) > SHOWN_MAX else "") or "none"
