"""Rules and items for tests, built as values: no rules file needed.

Two small worlds: `shop` (one table, users and their orders) and `library` (authors, books, found through an index).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from sync_rules.adapters.memory import MemoryStore
from sync_rules.model.entities import Entity, Index, KeyAttribute, KeyType, Ref, Table
from sync_rules.model.errors import StoreError
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import Find, KeyConditions
from sync_rules.model.templates import parse_template
from sync_rules.model.values import AttributeValue, Item, Path, parse_path
from sync_rules.model.writes import Condition, Test, Update
from sync_rules.pipeline.books import list_books
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.ruleset import Rules

Keys = Mapping[str, KeyType]


def s(text: str) -> AttributeValue:
    return {"S": text}


def attribute_value(value: Any) -> AttributeValue:
    """A plain value as DynamoDB holds it. Numbers keep the digits they print with; dates are their ISO text; a set is a
    string set, or a number set.
    """
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case int() | float() | Decimal():
            return {"N": str(value)}
        case str():
            return {"S": value}
        case date():
            return {"S": value.isoformat()}
        case bytes():
            return {"B": value}
        case list() | tuple():
            return {"L": [attribute_value(inner) for inner in value]}
        case set() | frozenset():
            texts = all(isinstance(one, str) for one in value)
            return {"SS" if texts else "NS": sorted(map(str, value))}
        case Mapping():
            return {"M": {str(name): attribute_value(inner) for name, inner in value.items()}}
    raise TypeError(f"a {type(value).__name__} is no attribute value")


def n(number: float | str) -> AttributeValue:
    return {"N": str(number)}


def m(**values: AttributeValue) -> AttributeValue:
    return {"M": values}


def attributes(keys: Keys) -> tuple[KeyAttribute, ...]:
    return tuple(KeyAttribute(name, kind) for name, kind in keys.items())


def index(
    name: str, partition: Keys, sort: Keys | None = None, projection: Literal["all", "keys"] | tuple[str, ...] = "keys"
) -> Index:
    return Index(name, attributes(partition), attributes(sort or {}), projection)


def table(name: str, keys: Keys, *indexes: Index, prefix: str = "") -> Table:
    """A table; `prefix` makes its physical name its own, so that tests can share an engine."""
    partition, *sort = attributes(keys)
    return Table(name, prefix + name, partition, sort[0] if sort else None, indexes)


def entity(name: str, table: Table, **templates: str) -> Entity:
    """An entity; without templates its key attributes are its fields."""
    texts = templates or {attribute.name: f"{{{attribute.name}}}" for attribute in table.key}
    return Entity(name, table, {attribute: parse_template(text) for attribute, text in texts.items()})


def mapping(**paths: str) -> tuple[tuple[Path, Path], ...]:
    """Source paths and target paths; a double underscore stands for the dot: name="author__name"."""
    return tuple(
        (parse_path(source.replace("__", ".")), parse_path(target.replace("__", ".")))
        for source, target in paths.items()
    )


def complete_books(store: MemoryStore, rules: Rules) -> None:
    """Mark the books of all rules complete, whatever is in the tables: as after a backfill that took place before."""
    for books in list_books(rules).values():
        with suppress(StoreError):  # a table that is not there
            store.put(books.mark.table, books.finish(None, 1).item)


def rules_of(*rules: CopyRule) -> Rules:
    entities = {e.name: e for rule in rules for e in (rule.source, rule.target)}
    return Rules({e.table.name: e.table for e in entities.values()}, entities, {rule.name: rule for rule in rules})


# ---------------------------------------------------------------- users and orders in one table
def shop(prefix: str = "", **options: object) -> Rules:
    """A user's name on the user's orders. `options` are fields of CopyRule."""
    shop_table = table("shop", {"PK": "S", "SK": "S"}, prefix=prefix)
    user = entity("user", shop_table, PK="USER#{user_id}", SK="PROFILE")
    order = entity("order", shop_table, PK="USER#{user_id}", SK="ORDER#{order_id}")
    rule = {
        "name": "user-name-on-orders",
        "source": user,
        "target": order,
        "mapping": mapping(name="user_name"),
        "link": (("user_id", Ref("user_id", ("PK",), order.templates["PK"])),),
        "find": Find(
            None,
            ((shop_table.partition, order.templates["PK"]),),
            ((KeyAttribute("SK", "S"), order.templates["SK"]),),
        ),
    }
    return rules_of(CopyRule(**{**rule, **options}))


def user_item(user_id: str, **values: AttributeValue) -> Item:
    return {"PK": s(f"USER#{user_id}"), "SK": s("PROFILE"), **values}


def order_item(user_id: str, order_id: str, **values: AttributeValue) -> Item:
    return {"PK": s(f"USER#{user_id}"), "SK": s(f"ORDER#{order_id}"), **values}


# ---------------------------------------------------------------- authors and books in two tables
def library(prefix: str = "", **options: object) -> Rules:
    """An author's name and bio in a map on the author's books. `options` are fields of CopyRule."""
    authors = table("authors", {"author_id": "S"}, prefix=prefix)
    by_author = index("by_author", {"author_id": "S"}, {"book_id": "S"})
    books = table("books", {"book_id": "S"}, by_author, prefix=prefix)
    rule = {
        "name": "author-on-books",
        "source": entity("author", authors),
        "target": entity("book", books),
        "mapping": mapping(name="author_name", bio="author_bio"),
        "link": (("author_id", Ref("author_id", ("author_id",))),),
        "find": Find("by_author", ((KeyAttribute("author_id", "S"), parse_template("{author_id}")),)),
    }
    return rules_of(CopyRule(**{**rule, **options}))


def author_item(author_id: str, **values: AttributeValue) -> Item:
    return {"author_id": s(author_id), **values}


def book_item(book_id: str, author_id: str, **values: AttributeValue) -> Item:
    return {"book_id": s(book_id), "author_id": s(author_id), **values}


# ---------------------------------------------------------------- keys, guards, updates
def key(table: Table, *values: str | bytes) -> ItemKey:
    """The key of an item by its key values, in order."""
    return ItemKey(table.name, tuple((a.name, a.type, value) for a, value in zip(table.key, values, strict=True)))


def exists(table: Table) -> Condition:
    """The guard every write has: the item is there."""
    return Condition(Test.EXISTS, (table.partition.name,))


def update(
    table: Table, at: ItemKey, *guard: Condition, removes: tuple[str, ...] = (), **sets: AttributeValue
) -> Update:
    """A guarded update as the core makes it. Paths as in `mapping`."""
    paths = tuple((parse_path(path.replace("__", ".")), value) for path, value in sets.items())
    return Update(at, paths, tuple(parse_path(path) for path in removes), (exists(table), *guard))


def of_partition(name: str, value: AttributeValue, begins_with: tuple[str, str] | None = None) -> KeyConditions:
    return KeyConditions(((name, value),), begins_with)
