"""The ledger: the pipeline's own table, where numbers and collect keep the contribution of each child.

Invariant: a child has one entry, and the transaction that writes it moves the totals. So each total is the sum of its
entries. An entry holds the whole key of its total, so that a changed rule still finds it. Numbers are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from sync_rules.model.entities import Entity, Table
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import Find, Link
from sync_rules.model.numbers import EXPONENT_MIN, format_number, is_holdable, list_digits, read_number, read_text
from sync_rules.model.templates import Fields, Template, parse_template
from sync_rules.model.values import AttributeValue, Item
from sync_rules.rules.books import MARK

AMOUNT: Final = "n"  # the number of an entry or a total; what a rank item holds
INTO: Final = "into"  # an entry's total: partition key and sort key
AT: Final = "at"  # the attribute of the total that it is part of: AMOUNT, or one per group
VERSION: Final = "v"  # of a total: how often it was added to, so that the same number twice is two states
GROUP: Final = "="  # what the attribute of a group or a further sum begins with: no other attribute is named like it
MEMBERS: Final = GROUP  # of the total of a mean or a made item: the number of its entries. No group has an empty name
ENTRY: Final = (INTO, AT, AMOUNT)
RESERVED: Final = (*ENTRY, VERSION, *MARK)

BETWEEN: Final = "\x1f"  # parts two keys in one: no text has it, and it sorts before every digit
TOTAL: Final = "T"  # what the key of a total has after the rule's name; the shard comes then
EACH: Final = "E"  # in the keys of a rule with several entries for a child: no key without it reads like one
RANK: Final = "rank"
RANKED_MAX_CHARACTERS: Final = 64  # of a text: a rank shares the 1,024 bytes of a sort key with the key of its child
SHARD: Final = "shard"
ALONE: Final = "-"  # the sort key of what is alone in its partition
Role = Literal["child", "parent"]


def format_rank(number: Decimal) -> str:
    """Format a number as a text that sorts as the number does: sign, exponent, digits.

    Below zero exponent and digits are counted backwards, and the end sorts behind every digit: -1.23 is less than -1.2.
    """
    assert is_holdable(number), "only what DynamoDB can hold is ranked"
    if not number:
        return "0"
    exponent, digits = number.adjusted() - EXPONENT_MIN, list_digits(number)
    if number > 0:
        return f"1{exponent:03d}{digits}"
    backwards = "".join(str(9 - int(digit)) for digit in digits)
    return f"-{999 - exponent:03d}{backwards}~"


def format_text_rank(text: str) -> str:
    """Return the beginning of a text, which sorts as the text does, up to control characters."""
    return "".join(max(one, " ") for one in text[:RANKED_MAX_CHARACTERS])


@dataclass(frozen=True, slots=True)
class Contribution:
    """A child's amount for an attribute of a total. It is zero only if each child counts as a member, too. `sums`: the
    amounts for further attributes of the same total, by attribute, none of them zero.
    """

    total: ItemKey
    at: str
    amount: Decimal
    sums: tuple[tuple[str, Decimal], ...] = ()


def make_entry(key: ItemKey, contribution: Contribution) -> Item:
    into: AttributeValue = {"L": [{"S": value} for _, _, value in contribution.total.values]}
    amounts = {name: format_number(amount) for name, amount in ((AMOUNT, contribution.amount), *contribution.sums)}
    numbers: Item = {name: {"N": number} for name, number in amounts.items()}
    return {**key.attributes(), INTO: into, AT: {"S": contribution.at}, **numbers}


def read_contribution(table: Table, entry: Item) -> Contribution | None:
    """Read the contribution in a ledger item; None for an item that the pipeline did not write."""
    amount = read_number(entry.get(AMOUNT))
    at = entry.get(AT, {}).get("S")
    into = [value.get("S") for value in entry.get(INTO, {}).get("L", ())]
    if amount is None or at is None or not holds_amount(at) or None in into or len(into) != len(table.key):
        return None
    sums: list[tuple[str, Decimal]] = []
    for name in list_sums(entry):
        number = read_number(entry[name])
        if number is None:
            return None
        sums.append((name, number))
    return Contribution(make_ledger_key(table, *into), at, amount, tuple(sums))


def list_sums(entry: Item) -> list[str]:
    """List the attributes of an entry that hold further amounts, in order."""
    return sorted(name for name in entry if name.startswith(GROUP))


def holds_amount(name: str) -> bool:
    """True for an attribute of a total that holds a number: that of all children, a group, a sum, or the members."""
    return name == AMOUNT or name.startswith(GROUP)


def is_total(rule: str, key: ItemKey) -> bool:
    """True if a key is that of a total of the rule with this name, however many shards it had."""
    return str(key.values[0][2]).startswith((f"{rule}/{TOTAL}", f"{rule}/{EACH}{TOTAL}"))


@dataclass(frozen=True, eq=False)
class Ledger:
    """The entities of one rule in its ledger's table. `find` lists the rank items of a parent in the order of their
    amounts; each points to its parent by `link`.
    """

    entries: Entity
    totals: Entity
    ranks: Entity
    marks: Entity
    link: Link
    find: Find


def make_ledger_entities(
    name: str, child: Entity, parent: Entity, table: Table, shards: int = 1, *, each: str | None = None
) -> Ledger:
    """Make the entities of a rule's ledger. The table must be `is_suitable`, both entities `is_supported`. `each`: the
    field of the parent that differs between the entries of a child, if a child has several.
    """
    parents, children = _format_templates(parent, "parent"), _format_templates(child, "child")
    mode = "" if each is None else EACH
    total = f"{name}/{mode}{TOTAL}{{{SHARD}}}/" if shards > 1 else f"{name}/{mode}{TOTAL}/"
    sort = children[1:] if each is None else (BETWEEN.join((*children[1:], f"{{parent.{each}}}")),)
    ranks = _make_entity(
        f"{name}.rank", table, f"{name}/R/{BETWEEN.join(parents)}", BETWEEN.join((f"{{{RANK}}}", *children))
    )
    return Ledger(
        _make_entity(f"{name}.ledger", table, f"{name}/{mode}L/{children[0]}", *sort),
        _make_entity(f"{name}.total", table, f"{total}{parents[0]}", *parents[1:]),
        ranks,
        _make_entity(f"{name}.books", table, f"{name}/B"),
        tuple((field, ranks.ref(f"parent.{field}")) for field in parent.identity),
        Find(None, ((table.partition, ranks.templates[table.partition.name]),)),
    )


def is_supported(entity: Entity) -> bool:
    """True if the ledger's keys can name items of this entity: they are texts, and cannot hold binary keys."""
    return all(attribute.type != "B" for attribute in entity.table.key)


def is_suitable(table: Table) -> bool:
    """True if a table can be a ledger: a key of two strings, under names that no item of a ledger uses."""
    return len(table.key) == 2 and all(  # noqa: PLR2004 - partition and sort
        attribute.type == "S" and attribute.name not in RESERVED and not attribute.name.startswith(GROUP)
        for attribute in table.key
    )


def write_fields(role: Role, entity: Entity, key: ItemKey) -> dict[str, AttributeValue]:
    """Return the fields that name an item in the ledger's keys. Equal numbers have one text."""
    fields = (entity.fields(key) or {}).items()
    return {f"{role}.{f}": {"N": read_text(value)} if "N" in value else value for f, value in fields}


def read_key(role: Role, entity: Entity, fields: Fields | None) -> ItemKey | None:
    """Read the key of the item that a ledger key with these fields names; None if it names none."""
    if fields is None:
        return None
    prefix = f"{role}."
    return entity.key_of({f.removeprefix(prefix): value for f, value in fields.items() if f.startswith(prefix)})


def make_vacant_key(rule: str, table: Table, key: ItemKey) -> ItemKey:
    """Make a ledger key that no item ever has. A check of this key reports why a child is blocked."""
    return make_ledger_key(table, f"{rule}/?", key.digest())


def make_ledger_key(table: Table, partition: str, sort: str = ALONE) -> ItemKey:
    """Make a key in a ledger's table; without `sort`, the key of a mark."""
    values = zip(table.key, (partition, sort), strict=True)
    return ItemKey(table.name, tuple((attribute.name, attribute.type, value) for attribute, value in values))


def keeps_books(rule: str) -> bool:
    """True for the name of a rule that writes ledger entries, one for each item of the application."""
    return rule.endswith(".ledger")


def hide_amount(key: ItemKey) -> ItemKey:
    """Return a ledger key in a form that may be shown. In the key of a rank item, the rank is a value of its child, and
    is left out.
    """
    if len(key.values) != 2:  # noqa: PLR2004 - partition and sort
        return key
    partition, (name, kind, sort) = key.values
    if not (isinstance(sort, str) and BETWEEN in sort and "/R/" in str(partition[2])):
        return key
    return ItemKey(key.table, (partition, (name, kind, f"…{BETWEEN}{sort.partition(BETWEEN)[2]}")))


def _make_entity(name: str, table: Table, partition: str, sort: str = ALONE) -> Entity:
    texts = zip(table.key, (partition, sort), strict=True)
    return Entity(name, table, {attribute.name: parse_template(text) for attribute, text in texts})


def _format_templates(entity: Entity, role: Role) -> tuple[str, ...]:
    return tuple(_format_template(entity.templates[attribute.name], role) for attribute in entity.table.key)


def _format_template(template: Template, role: Role) -> str:
    text = template.literals[0]
    for field, after in zip(template.fields, template.literals[1:], strict=True):
        text += f"{{{role}.{field}}}{after}"
    return text
