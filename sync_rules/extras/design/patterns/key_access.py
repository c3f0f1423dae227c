"""The access paths to items by key: a table or an index, and how much of its key a call's fields determine.

Invariant: DynamoDB finds by a whole partition key, by equality along the sort key from its left, and by one range or
beginning after that.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.KeyConditionExpressions.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sync_rules.extras.design.patterns.answers import Term
from sync_rules.extras.design.patterns.declarations import Range
from sync_rules.extras.design.patterns.key_makers import Field, Maker, Makers
from sync_rules.model.entities import Entity, Index, KeyAttribute, Table
from sync_rules.rules.formula import Formula
from sync_rules.rules.ruleset import Rules


@dataclass(frozen=True)
class AccessPath:
    """A table (index None) or an index, with its key."""

    table: Table
    index: Index | None

    @property
    def partition(self) -> tuple[KeyAttribute, ...]:
        return (self.table.partition,) if self.index is None else self.index.partition

    @property
    def sort(self) -> tuple[KeyAttribute, ...]:
        return self.table.key[1:] if self.index is None else self.index.sort

    @property
    def place_name(self) -> str:
        return f"table {self.table.name}" if self.index is None else f"index {self.index.name}"

    @property
    def eventual(self) -> bool:
        """True if it has no strongly consistent reads."""
        return self.index is not None and not self.index.local

    def shows(self, entity: Entity, attribute: str) -> bool:
        """Return True if its rows contain an attribute, or a field, of the entity."""
        if self.index is None or self.index.projection in ("all", None):
            return True
        top = attribute.partition(".")[0]
        keys = {one.name for one in (*self.table.key, *self.index.attributes)}
        projected = self.index.projection if isinstance(self.index.projection, tuple) else ()
        stored = entity.bound_fields[top].path[0] if top in entity.bound_fields else top
        return bool({top, stored} & (keys | set(projected)))


def list_access_paths(table: Table) -> Iterator[AccessPath]:
    """The table itself, and each of its indexes."""
    yield AccessPath(table, None)
    for index in table.indexes:
        yield AccessPath(table, index)


@dataclass(frozen=True)
class Reach:
    """How much of an access path's key a call's fields determine. `terms` are those of the key condition. `used` are
    the fields that it compares by equality, `as_written` those that are equal letter by letter. `sorts` are the
    names that sort the items: the next attribute of the sort key, and the field at its beginning. `item`: at most
    one item has this key.
    """

    way: AccessPath
    terms: tuple[Term, ...]
    used: frozenset[str]
    as_written: frozenset[str]
    sorts: tuple[str, ...]
    item: bool


def find_reach(
    makers: Makers, entity: Entity, way: AccessPath, given: frozenset[str], within: Range | None
) -> Reach | None:
    """Return how much of a key these fields determine. None if they do not make the partition key, or the range does
    not fit the key.
    """
    partition = [makers.choose_maker(entity, attribute, given) for attribute in way.partition]
    if not all(maker.whole(given) for maker in partition):
        return None
    terms = [Term(maker, "equals", tuple(maker.fields)) for maker in partition]
    used = {name for maker in partition for name in maker.exact}
    as_written = {name for maker in partition for name in maker.literal_fields}
    whole, ranged = True, within is None
    sorts: tuple[str, ...] = ()
    for attribute in way.sort:
        maker = makers.choose_maker(
            entity, attribute, given | ({within.attribute} if within is not None else frozenset())
        )
        if maker.whole(given):
            terms.append(Term(maker, "equals", tuple(maker.fields)))
            used |= maker.exact
            as_written |= maker.literal_fields
            continue
        whole = False
        known = tuple(name for name in maker.fields if name in _list_leading_fields(maker, given))
        upcoming = maker.find_next_field(given)
        ordered = upcoming is not None and upcoming.in_order and not _is_sorted_as_text(makers, entity, maker, upcoming)
        if within is not None and upcoming is not None and upcoming.name == within.attribute:
            by_letters = within.form == "begins_with"
            if not (upcoming.begins if by_letters else ordered) or (by_letters and attribute.type != "S"):
                return None
            terms.append(Term(maker, within.form, known, upcoming))
            used |= {*(maker.exact & set(known)), within.attribute}
            as_written |= maker.literal_fields & set(known)
            ranged = True
        elif maker.beginning(given):
            terms.append(Term(maker, "begins_with", known))
            used |= maker.exact & set(known)
            as_written |= maker.literal_fields & set(known)
        sorts = (upcoming.name, attribute.name) if upcoming is not None and ordered else (attribute.name,)
        break
    if not ranged:
        return None
    return Reach(way, tuple(terms), frozenset(used), frozenset(as_written), sorts, whole and way.index is None)


def find_shared_reach(
    makers: Makers, entities: Sequence[Entity], way: AccessPath, given: frozenset[str], within: Range | None
) -> Reach | None:
    """Return the Query that finds items of several entities: by the same partition key, and by a range of the sort key
    or the text that all their sort keys begin with. None without such a partition key, or if a range has no place.
    """
    reaches = [find_reach(makers, entity, way, given, None) for entity in entities]
    found = [one for one in reaches if one is not None]
    width = len(way.partition)
    if len(found) < len(entities) or len({tuple(t.condition_text for t in one.terms[:width]) for one in found}) > 1:
        return None
    terms = found[0].terms[:width]
    if any(isinstance(term.maker.source, Formula) for term in terms):
        return None  # the check of a row would read fields of one entity alone
    used = frozenset(name for term in terms for name in term.maker.exact)
    if within is not None:
        if (
            not way.sort
            or way.sort[0].name != within.attribute
            or (within.form == "begins_with" and way.sort[0].type != "S")
        ):
            return None
        terms = (*terms, Term(Maker(way.sort[0]), within.form, (), Field(within.attribute)))
    elif way.sort and way.sort[0].type == "S":
        sorts = [makers.choose_maker(entity, way.sort[0], given) for entity in entities]
        if beginning := _find_common_beginning(["".join(_list_first_texts(maker)) for maker in sorts]):
            terms = (*terms, Term(sorts[0], "begins_with", text=beginning))
    return Reach(way, terms, used, used, tuple(one.name for one in way.sort[:1]), item=False)


def _find_common_beginning(texts: Sequence[str]) -> str:
    """The longest text that all these texts begin with."""
    least, greatest = min(texts), max(texts)
    return next((least[:end] for end in range(len(least), 0, -1) if greatest.startswith(least[:end])), "")


def _is_sorted_as_text(makers: Makers, entity: Entity, maker: Maker, field: Field) -> bool:
    """True if a number stands in a text without zeros before it: 10 comes before 9."""
    bare = field.padded is None and (field.slot is None or not field.slot.formats)
    return not maker.plain and maker.attribute.type == "S" and bare and makers.is_number(entity, field.name)


def _list_leading_fields(maker: Maker, given: frozenset[str]) -> set[str]:
    return {part.name for part in maker.parts[: maker.count_known_parts(given)] if not isinstance(part, str)}


def list_strangers(rules: Rules, makers: Makers, entity: Entity, found: Reach) -> tuple[Entity, ...]:
    """List other entities whose items a key condition finds too, as far as the file says how their keys are made."""
    return tuple(
        other
        for other in rules.entities.values()
        if other is not entity and other.table == entity.table and "." not in other.name
        if all(_meets(makers, other, term) for term in found.terms) and _is_on_path(makers, other, found.way)
    )


def _is_on_path(makers: Makers, entity: Entity, way: AccessPath) -> bool:
    """True if the file says that items of the entity are on a way."""
    keys = {attribute.name for attribute in entity.table.key}
    return all(one.name in keys or makers.says(entity, one) for one in (*way.partition, *way.sort))


def _meets(makers: Makers, other: Entity, term: Term) -> bool:
    """True if an attribute of another entity may fulfil a term."""
    begins = term.text or "".join(_list_first_texts(term.maker))
    theirs = makers.choose_maker(other, term.maker.attribute, frozenset())
    literal = theirs.literal
    if term.form == "at_least" and term.text is not None:
        return literal >= begins or begins.startswith(literal)
    if not theirs.fields and term.form != "begins_with" and not term.maker.fields:
        return literal == begins
    return literal.startswith(begins) or begins.startswith(literal)


def _list_first_texts(maker: Maker) -> Iterator[str]:
    """The text at the beginning of a maker before its first field."""
    for part in maker.parts:
        if not isinstance(part, str):
            return
        yield part
