"""collect: a set on a node with an element for each edge that points to it.

Invariant: an element is in the set exactly if its edge exists, points to this node, and passes the conditions. A write
adds or deletes one element and never creates the node. The record of each change of a set, by any program, checks the
changed elements, so a late write does not last and needs no guard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from sync_rules.model.entities import Entity, Ref
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.lookups import KeyConditions, describe_link, translate_identity
from sync_rules.model.numbers import normalize_number
from sync_rules.model.sizes import FULL_BYTES
from sync_rules.model.templates import Fields, read_key_text
from sync_rules.model.values import AttributeValue, Item, Path, has_changed, is_same_value
from sync_rules.model.where import Where
from sync_rules.model.writes import Check, Transaction, Update, Write, expect_existence, expect_item
from sync_rules.rules.description import Connection, Drawing, Moment, Operation, TypeOf, Use, format_entity_name
from sync_rules.rules.families import ListingRule, Part, PartRule
from sync_rules.rules.kinds.element import Element
from sync_rules.rules.rule import Blocked, Node, let_in, make_check_use

NOT_A_SET: Final = Blocked("NotASet", of_target=True)


@dataclass(frozen=True, slots=True)
class Claim:
    """An edge's claim: this element in the set of this node. `unfit` says why membership cannot be decided: the
    edge's condition cannot be evaluated, or the element and the node's key do not name the edge; "" for none.
    """

    node: ItemKey
    element: str
    unfit: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class CollectRule(ListingRule, PartRule):
    """A rule that keeps a set on a node with an element for each edge. `source` is the edge, `target` the node, `into`
    the node's attribute. `numbers`: the set is of numbers, and the element is one whole field.
    """

    into: str
    element: Element
    numbers: bool
    where: Where | None
    omit: Where | None
    strict: bool
    kind = "collect"

    @property
    def copies(self) -> tuple[Path, ...]:
        return ((self.into,),)

    def nodes(self) -> tuple[Node, ...]:
        keys = ((attribute.name,) for attribute in self.source.table.key)  # a rule may make the edge
        reads = tuple((self.source, path) for path in (*keys, *self.source_paths))
        return (Node(self, (self.target, (self.into,)), reads),)

    def type_of(self, path: Path, known: TypeOf) -> str:
        return self._type

    def body(self) -> Mapping[str, object]:
        return {
            "into": self.into,
            "as": self.element.template.text,
            "numbers": self.numbers,
            "where": self.where and self.where.text,
            "omit": self.omit and self.omit.text,
            "link": describe_link(self.link),
            "via": self.find and self.find.index,
            "strict": self.strict,
            "settle_seconds": self.settle_seconds,
            **({"sparse": True} if self.sparse else {}),  # others keep the body of before
        }

    @property
    def connection(self) -> Connection | None:
        found = super().connection
        return found and replace(found, reads=tuple((self.source, (field,)) for field in self.element.fields))

    # ---------------------------------------------------------------- finding
    def conditions(self, anchor: ItemKey) -> KeyConditions | None:
        named = self._identify_node(anchor)
        return None if self.find is None or named is None else self.find.conditions(named)

    def pushes(self, change: Change) -> bool:
        """True for a new node, because its edges may be older. True for a node that could take no element before: it
        was full, or held another type.
        """
        if change.new is None or change.old is None:
            return change.new is not None
        return change.shrank_from >= FULL_BYTES or (
            self._has_other_type(change.old) and not self._has_other_type(change.new)
        )

    # ---------------------------------------------------------------- what an edge asks for
    @cached_property
    def element_refs(self) -> Mapping[str, Ref]:
        return {field: self.source.ref(field) for field in self.element.fields}

    @cached_property
    def source_paths(self) -> tuple[Path, ...]:
        """The paths that decide about an edge, without those in its key, which cannot change."""
        filters = [path for where in (self.where, self.omit) if where for path in where.paths]
        paths = [
            *(ref.path for _, ref in self.link),
            *(ref.path for ref in self.element_refs.values()),
            *map(self.source.locate_field, filters),
            *self.sparse_paths,
        ]
        return self.source.drop_key_paths(paths)

    def list_read_paths(self, source: Item) -> tuple[Path, ...]:
        return self.source_paths

    def unconditional(self) -> CollectRule:
        find = None if self.find is None else replace(self.find, sparse=False)
        return replace(self, where=None, omit=None, find=find)

    def is_known_by_key(self, entity: Entity) -> bool:
        """True if redrive finds all elements of an item. Elements that a node lost are found among its edges, which are
        listed.
        """
        return entity is not self.source or not self.unconditional().source_paths

    def draw(self) -> Drawing:
        return Drawing(self.target, tuple((field,) for field in self.element.fields), self.copies)

    def list_uses_to_write(self) -> Iterator[Use]:
        yield Use(Moment.WRITTEN, Operation.UPDATE, self.target.table, f"elements on {format_entity_name(self.target)}")
        if self.strict:
            yield make_check_use(self, "strict: ")

    def claim(self, key: ItemKey, edge: Item | None) -> Claim | None:
        """Return the claim of an edge. None if the edge is missing, names no node, is left out, or has no element."""
        node = None if edge is None else self.pointer(edge)
        if edge is None or node is None or _is_same(node, key):
            return None
        lets_in = self._lets_in(edge)
        if not lets_in:
            return None

        def read(field: str) -> AttributeValue | None:
            return self.element_refs[field].read(edge)

        built = self.element.build(read)
        text = self.element.text(read) if built is None else built
        if text is not None and self.numbers:
            text = normalize_number(text)
        if text is None:
            return None
        named = self.edge_key(node, text)
        if isinstance(lets_in, Blocked):
            return Claim(node, text, lets_in.reason)
        fit = named is not None and _is_same(named, key) and built is not None
        return Claim(node, text, "" if fit else "ElementAmbiguous")

    def _lets_in(self, edge: Item) -> bool | Blocked:
        if self.find is not None and self.find.leaves_out(edge):
            return False
        meant = let_in(self.where, edge, self.source)
        if meant is not True or self.omit is None:
            return meant
        omitted = let_in(self.omit, edge, self.source)
        return omitted if isinstance(omitted, Blocked) else not omitted

    # ---------------------------------------------------------------- what an element names
    def edge_key(self, node: ItemKey, element: str) -> ItemKey | None:
        """Return the key of the edge that an element in a node's set names; None for no edge, and for the node's own
        key.
        """
        named, parsed = self._identify_node(node), self.element.parse(element)
        if named is None or parsed is None:
            return None
        fields: dict[str, AttributeValue] = dict(named)
        if not _agrees(fields, parsed):
            return None
        for attribute in self.source.table.key:
            template = self.source.templates[attribute.name]
            if attribute.name in fields and template.whole != attribute.name:  # the key attribute by its own name
                bound = template.parse(fields.pop(attribute.name))
                if bound is None or not _agrees(fields, bound):
                    return None
        key = self.source.key_of(fields)
        return None if key is None or _is_same(key, node) else key

    def _identify_node(self, node: ItemKey) -> Fields | None:
        """The node's identity, in the names that its edges use; None when no edge can point to it."""
        fields: dict[str, AttributeValue] = {}
        for pair in self.link:
            if not _agrees(fields, translate_identity((pair,), self.target, node)):
                return None
        return fields

    # ---------------------------------------------------------------- what is in a set
    @property
    def _type(self) -> str:
        return "NS" if self.numbers else "SS"

    def _has_other_type(self, node: Item) -> bool:
        value = node.get(self.into)
        return value is not None and self._type not in value

    def _elements(self, node: Item | None) -> frozenset[str]:
        texts = (node or {}).get(self.into, {}).get(self._type, ())
        return frozenset(_normalize_element(text) if self.numbers else text for text in texts)

    def _has(self, node: Item, element: str) -> bool:
        texts = node.get(self.into, {}).get(self._type, ())
        return element in texts or (self.numbers and any(_normalize_element(text) == element for text in texts))

    # ---------------------------------------------------------------- parts
    def parts(self, change: Change, entity: Entity) -> Iterable[Part]:
        """Return the parts that a change affects. For an edge: what its images claim. For a node: elements that were
        added or removed, and a part without an edge if another type took the place of the set.
        """
        found: list[Part] = []
        if entity is self.source:
            found += self._list_edge_parts(change)
        if entity is self.target and change.new is not None:
            came_or_went = self._elements(change.old) ^ self._elements(change.new)
            found += (Part(self, change.key, self.edge_key(change.key, e), e) for e in sorted(came_or_went))
            if self._has_other_type(change.new) and not is_same_value(
                (change.old or {}).get(self.into), change.new[self.into]
            ):
                found.append(Part(self, change.key, None))
        return dict.fromkeys(found)

    def _list_edge_parts(self, change: Change) -> Iterator[Part]:
        if (
            change.old is not None
            and change.new is not None
            and not has_changed(change.old, change.new, self.source_paths)
        ):
            return
        before, now = self.claim(change.key, change.old), self.claim(change.key, change.new)
        for claim in (before, now) if before != now else ():
            if claim is not None:
                yield Part(self, claim.node, change.key, claim.element)

    def expand_part(self, part: Part, target: Item | None, source: Item | None) -> Iterable[Part]:
        """Replace a part without an element by parts for the elements of its edge that the node's set has or should
        have. A part without element and edge is for a value that is not a set, or for elements that name no edge.
        """
        if part.element or (part.source is None and target is not None and self._has_other_type(target)):
            return (part,)
        claim = None if part.source is None else self.claim(part.source, source)
        found = {e for e in self._elements(target) if _is_one(self.edge_key(part.target, e), part.source)}
        if claim is not None and _is_same(claim.node, part.target):
            found.add(claim.element)
        return tuple(replace(part, element=element) for element in sorted(found))

    def label(self, part: Part) -> str:
        """Return the element if the edge's key alone makes it; else "", because it may hold values."""
        return part.element if self._of_keys and part.source is not None else ""

    @cached_property
    def _of_keys(self) -> bool:
        return not self.source.drop_key_paths(ref.path for ref in self.element_refs.values())

    def write_for(self, part: Part, target: Item | None, source: Item | None) -> Write | Blocked | None:
        """Return the update that adds one element or deletes it; None if the set is right about it."""
        if target is None:
            return None
        if not part.element:
            return NOT_A_SET if self._has_other_type(target) else None
        claim = None if part.source is None else self.claim(part.source, source)
        if claim is not None and not (_is_same(claim.node, part.target) and claim.element == part.element):
            claim = None
        if claim is not None and claim.unfit:
            return Blocked(claim.unfit, member=part.source)
        wanted = claim is not None
        named = self.edge_key(part.target, part.element)
        if not wanted and named is not None and (part.source is None or not _is_same(named, part.source)):
            return None  # it is for the edge that it names to say
        if wanted == self._has(target, part.element):
            return None
        if self._has_other_type(target):
            return NOT_A_SET
        return self._write(part, source, wanted=wanted)

    def _write(self, part: Part, source: Item | None, *, wanted: bool) -> Write:
        elements = (((self.into,), {self._type: [part.element]}),)
        update = Update(
            part.target,
            (),
            (),
            (expect_existence(part.target),),
            adds=elements if wanted else (),
            discards=() if wanted else elements,
        )
        if not self.strict or part.source is None:
            return update
        as_read = expect_item(self.source.table.partition.name, source, self.source_paths)
        return Transaction((Check(part.source, as_read), update))


def _normalize_element(text: str) -> str:
    return normalize_number(text) or text


def _is_same(left: ItemKey, right: ItemKey) -> bool:
    """True if two keys are of one item: numbers by value."""
    if left == right or all(kind == "S" for _, kind, _ in left.values):
        return left == right
    return left.table == right.table and is_same_value({"M": left.attributes()}, {"M": right.attributes()})


def _is_one(left: ItemKey | None, right: ItemKey | None) -> bool:
    return left is right if left is None or right is None else _is_same(left, right)


def _agrees(fields: dict[str, AttributeValue], more: Fields) -> bool:
    """Take more fields in; False when one of them is known as something else."""
    for field, value in more.items():
        known = fields.setdefault(field, value)
        if known != value and (read_key_text(known) is None or read_key_text(known) != read_key_text(value)):
            return False
    return True
