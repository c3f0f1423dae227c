"""Sample the links of rules before the first write: find links that hit no item, and attributes that no item has. A
valid link may still be useless: its attribute is misspelled, or its values name no item. A count is then 0 on every
parent, and the rule would remove copies that people made. `sample_links` reads a bounded number of items.

Invariant: a finding needs every sampled item to fail. A child may come before its parent, so one item that names an
existing item acquits the link. A finding holds names of entities and attributes, and no key or value of an item.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from sync_rules.model.entities import Entity
from sync_rules.model.groups import list_views
from sync_rules.model.items import ItemKey
from sync_rules.model.lookups import Link, Pointer
from sync_rules.model.sizes import count_item_bytes, count_read_units
from sync_rules.model.values import Item, Path, get, has_overlap, show_path
from sync_rules.pipeline.requests import Read, Scan, Store
from sync_rules.rules.description import Connection
from sync_rules.rules.rule import Node, Rule
from sync_rules.rules.ruleset import Rules

SAMPLE_ITEMS: Final = 50  # of one entity
SAMPLE_SEGMENTS: Final = 4  # of a scan, one page of each in turn: so that one large partition is not the whole sample
SAMPLE_PAGE_ITEMS: Final = 100
SAMPLE_MAX_PAGES: Final = 12  # of one table
SAMPLE_MAX_READ_UNITS: Final = 500.0  # of the scan of one table; the last page may exceed it by 128
ENOUGH_ITEMS: Final = 5  # fewer may all be children that came before their parents
FEWEST_ITEMS: Final = 2  # enough if the sample shows what was meant (another attribute or case, a close name) or a loss
CLUE_ITEMS: Final = 5  # items that test a clue
CLUE_ATTRIBUTES: Final = 20  # other attributes that are tried as a link
CASES: Final = ("lower", "upper")


@dataclass(frozen=True)
class LinkFinding:
    """One result of a sample. `title` is the rule's name in the rules file. `stops`: the rule should not write until
    somebody checks it. Otherwise the finding says why the sample could not judge the rule.
    """

    title: str
    found: str
    cure: str
    stops: bool = True

    @property
    def text(self) -> str:
        """The finding in one line."""
        return f"rule {self.title}: {self.found} · {self.cure}"


@dataclass(frozen=True)
class EntitySample:
    """Sampled items of one entity, by key. `whole`: the scan reached the end of the table. `unknown` counts the sampled
    items of the table that match no entity of the rules file.
    """

    items: Mapping[ItemKey, Item] = field(default_factory=dict)
    whole: bool = False
    unknown: int = 0


def sample_links(rules: Rules, names: Iterable[str], store: Store) -> tuple[LinkFinding, ...]:
    """Sample the links of the named compiled rules. Scan each of their tables once, within the limits above, and read
    the items that the sample names. Raises StoreError.
    """
    asked = (rules.rules[name] for name in sorted(names))
    connected = [(rule, rule.connection) for rule in asked if rule.connection is not None]
    wanted = dict.fromkeys(entity for _, one in connected for entity in (one.pointing, one.named))
    if not wanted:
        return ()
    samples = sample_entities(wanted, store, rules)
    written = tuple(node for rule in rules.rules.values() for node in rule.nodes())
    found: dict[tuple[str, str], LinkFinding] = {}
    for rule, one in connected:
        for finding in (*_report_unmatched_items(rule, one, samples), *_judge(rule, one, samples, written, store)):
            found.setdefault((finding.title, finding.found), finding)
    return tuple(found.values())


# ---------------------------------------------------------------- reading
def sample_entities(wanted: Collection[Entity], store: Store, rules: Rules) -> dict[Entity, EntitySample]:
    """Sample the items of these entities with one bounded scan of each table. Raises StoreError."""
    found: dict[Entity, EntitySample] = {}
    for table in dict.fromkeys(entity.table for entity in wanted):
        of_table = [entity for entity in wanted if entity.table is table]
        items: dict[Entity, dict[ItemKey, Item]] = {entity: {} for entity in of_table}
        cursors: dict[int, Item | None] = dict.fromkeys(range(SAMPLE_SEGMENTS))
        pages, units, unknown = 0, 0.0, 0
        while cursors and pages < SAMPLE_MAX_PAGES and units < SAMPLE_MAX_READ_UNITS:
            segment = next(iter(cursors))
            scan = Scan(table.name, SAMPLE_PAGE_ITEMS, cursors.pop(segment), segment, SAMPLE_SEGMENTS)
            page = store.scan(scan)
            pages, units = pages + 1, units + count_read_units(sum(map(count_item_bytes, page.items)), consistent=False)
            if page.cursor is not None:
                cursors[segment] = page.cursor  # at the end: its turn comes after the others
            for item in page.items:
                key = table.key_of(item)
                entity = None if key is None else next((one for one in of_table if one.has(key)), None)
                if key is not None and entity is not None:
                    items[entity][key] = item
                elif key is not None and rules.entity_of(key) is None:
                    unknown += 1
            if pages >= SAMPLE_SEGMENTS and all(len(some) >= SAMPLE_ITEMS for some in items.values()):
                break
        for entity, some in items.items():
            found[entity] = EntitySample(_spread(some), not cursors, unknown)
    return found


def _spread(items: Mapping[ItemKey, Item]) -> dict[ItemKey, Item]:
    """At most `SAMPLE_ITEMS` of these, from all over them."""
    step = max(1, len(items) // SAMPLE_ITEMS)
    return dict([*items.items()][::step][:SAMPLE_ITEMS])


def _read(keys: Iterable[ItemKey], store: Store) -> dict[ItemKey, Item]:
    """The items of these keys that exist."""
    asked = tuple(dict.fromkeys(keys))
    items = store.read(Read(asked)) if asked else ()
    return {key: item for key, item in zip(asked, items, strict=True) if item is not None}


# ---------------------------------------------------------------- judging
def _report_unmatched_items(
    rule: Rule, one: Connection, samples: Mapping[Entity, EntitySample]
) -> Iterator[LinkFinding]:
    """Report an entity without sampled items in a table with unmatched items: its key template may be wrong."""
    for entity in dict.fromkeys((one.pointing, one.named)):
        sampled = samples[entity]
        if not sampled.items and sampled.unknown >= ENOUGH_ITEMS:
            found = (
                f"no sampled item of table {entity.table.name} is a {entity.name}; {sampled.unknown} match no entity"
            )
            cure = f"compare entities.{entity.name}.key with the keys of these items"
            yield LinkFinding(rule.title, found, cure, stops=False)


def _judge(
    rule: Rule,
    one: Connection,
    samples: Mapping[Entity, EntitySample],
    written: Sequence[Node],
    store: Store,
) -> Iterator[LinkFinding]:
    """The findings of one rule. Attributes that rules of the file write are not judged: they may still be missing."""
    pointing = {key: item for key, item in samples[one.pointing].items.items() if one.includes(item)}
    pointing = {key: next(iter(list_views(one.link, item)), item) for key, item in pointing.items()}
    sources = dict(samples[one.named].items)
    fields = ", ".join(show_path((ref.field,)) for _, ref in one.link)
    by_rule = any(_is_written(one.pointing, ref.path, written) for _, ref in one.link)
    pointer = Pointer(one.link, one.named)
    keys = {key: None if by_rule else pointer(item) for key, item in pointing.items()}
    named = [key for key in keys.values() if key is not None]
    there = {key: key.attributes() for key in named} if one.named.made else _read(named, store)
    sources |= there
    if pointing and not sources and not one.named.made:
        found = f"the sample has no {one.named.name} item, so it cannot judge link {fields}"
        yield LinkFinding(rule.title, found, "nothing to do if these items come later", stops=False)
    elif pointing and not there and not by_rule:
        yield from _report_missed_link(rule, one, Evidence(pointing, keys, sources), store)
    for entity, path in dict.fromkeys((*one.reads, *one.conditions)):
        decides = (entity, path) in one.conditions
        own = samples[one.pointing].items if decides else pointing  # a condition may leave out all items
        items = own if entity is one.pointing and (decides or entity is not one.named) else sources
        if not _is_written(entity, stored := entity.locate_field(path), written):
            lost = "" if decides and pointing else _find_value_at_stake(rule, (entity, stored), samples, written)
            yield from _report_missing_attribute(rule, entity, path, tuple(items.values()), lost)


def _is_plain(name: str) -> bool:
    """True for a name that a rules file takes as it is, and that a terminal only prints."""
    return name.isprintable() and show_path((name,)) == name


def _is_written(entity: Entity, path: Path, written: Iterable[Node]) -> bool:
    return any(of is entity and has_overlap(path, at) for of, at in (node.writes for node in written))


def _find_value_at_stake(
    rule: Rule, read: tuple[Entity, Path], samples: Mapping[Entity, EntitySample], nodes: Iterable[Node]
) -> str:
    """An attribute that the rule makes of the one that it reads, and that sampled items hold: without the one that it
    reads, the rule would remove these values, or put 0 in their place. "" if there is none.
    """
    for node in (node for node in nodes if node.rule.title == rule.title):
        entity, path = node.writes
        made_of_it = node.rule is not rule or any(of is read[0] and has_overlap(read[1], at) for of, at in node.reads)
        items = samples[entity].items.values() if path and made_of_it and entity in samples else ()
        if any(get(item, path) is not None for item in items):
            return f"{entity.name}.{show_path(path)}"
    return ""


@dataclass(frozen=True)
class Evidence:
    """The sample of a link that hits nothing: items that point, the key that each names, and items of the other end."""

    items: Mapping[ItemKey, Item]
    keys: Mapping[ItemKey, ItemKey | None]
    sources: Mapping[ItemKey, Item]

    @property
    def some(self) -> dict[ItemKey, Item]:
        """The items that test a clue."""
        return dict([*self.items.items()][:CLUE_ITEMS])


def _report_missed_link(rule: Rule, one: Connection, seen: Evidence, store: Store) -> Iterator[LinkFinding]:
    """The finding for a link that hits no item: what the sampled items lack or name, and what was meant."""
    count, fields = len(seen.items), ", ".join(show_path((ref.field,)) for _, ref in one.link)
    lacking = [ref for _, ref in one.link if all(ref.read(item) is None for item in seen.items.values())]
    named = [key for key in seen.keys.values() if key is not None]
    clue = ""
    if count >= FEWEST_ITEMS:
        clue = _suggest_other_case(one, seen, store)
    if not clue and count >= (FEWEST_ITEMS if lacking else ENOUGH_ITEMS):
        clue = _suggest_other_attribute(one, seen, store)
    late = len(named) == count and len(set(named)) < ENOUGH_ITEMS  # children of few parents, which may come later
    if not clue and (count < ENOUGH_ITEMS or late or (one.optional and not named)):
        return
    found = f"{count} of {count} sampled {one.pointing.name} items point to no {one.named.name}: link {fields}"
    if lacking:
        found += f"; none has {', '.join(show_path((ref.field,)) for ref in lacking)}"
    elif named:
        found += f"; {len(named)} of {count} name a {one.named.name} that does not exist"
    where = f"correct `link`: compare the keys of {one.named.name} with the attributes of {one.pointing.name}"
    yield LinkFinding(rule.title, found, clue or where)


def _report_missing_attribute(
    rule: Rule, entity: Entity, path: Path, items: Sequence[Item], lost: str
) -> Iterator[LinkFinding]:
    """The finding for an attribute that no sampled item has. It stops the rule if another name is close, or if values
    of the attribute `lost` would go. Otherwise the attribute may be new or optional.
    """
    count, shown = len(items), show_path(path)
    if any(get(entity.view(item, (path,)), path) is not None for item in items):
        return
    names = {name for item in items for name in item if _is_plain(name)} | {*entity.identity}
    # keys of a nested map may be values, so that only top-level names are proposed
    close = get_close_matches(path[0], sorted(names), n=1) if path[0] not in names else []
    if count < (FEWEST_ITEMS if close or lost else ENOUGH_ITEMS):
        return
    found = f"{count} of {count} sampled {entity.name} items have no attribute {shown}"
    if close:
        meant = show_path((close[0], *path[1:]))
        yield LinkFinding(rule.title, f"{found} (closest: {meant})", f"write {meant} in place of {shown}")
        return
    found += f", and {lost} holds values that the rule would not make" if lost else ""
    yield LinkFinding(rule.title, found, f"correct the name {entity.name}.{shown}, if it is misspelled", bool(lost))


# ---------------------------------------------------------------- clues
def _suggest_other_case(one: Connection, seen: Evidence, store: Store) -> str:
    """The cure for values that name existing items in another case; "" if they do not."""
    some = [*seen.some.values()]
    for case in CASES:
        keys = [key for item in some if (key := _make_key_in_case(one, item, case)) is not None]
        if not _read(keys, store):
            continue
        texts = [(name, ref) for name, ref in one.link if any("S" in (ref.read(item) or {}) for item in some)]
        (field, ref), *others = texts
        name = f"{ref.field}_{case}"
        derived = f'{{derive: {one.pointing.name}.{name}, as: "{{{ref.field}:{case}}}"}}'
        link = ", ".join([f"{field}: {name}", *(f"{other}: {at.field}" for other, at in others)])
        return f"these ids exist in {case} case: add a rule {derived}, and link: {{{link}}}"
    folded = {_fold_case(key) for key in seen.sources}
    if any(_fold_case(key) in folded for key in seen.keys.values() if key is not None):
        return f"these ids exist in another case: write them in one case on {one.named.name} and {one.pointing.name}"
    return ""


def _fold_case(key: ItemKey) -> tuple[object, ...]:
    """Return the key's values with texts in folded case, for comparison."""
    return tuple(value.casefold() if isinstance(value, str) else value for _, _, value in key.values)


def _make_key_in_case(one: Connection, item: Item, case: str) -> ItemKey | None:
    """The key that an item would name if its texts were in this case; None if it names none, or the same."""
    values = {name: value for name, ref in one.link if (value := ref.read(item)) is not None}
    changed = {
        name: {"S": str(getattr(value["S"], case)())} if "S" in value else value for name, value in values.items()
    }
    return None if changed == values else one.named.key_of(changed)


def _suggest_other_attribute(one: Connection, seen: Evidence, store: Store) -> str:
    """The cure that names an attribute of the sampled items that hits in place of one of the link; "" if none does."""
    some = seen.some
    linked = {ref.field for _, ref in one.link}
    names = {*one.pointing.bound_fields, *(name for item in some.values() for name in item)} - linked
    plain = sorted(filter(_is_plain, names))
    trials: dict[str, list[ItemKey]] = {}
    for place, (wanted, ref) in enumerate(one.link):
        for name in get_close_matches(ref.field, plain, n=CLUE_ATTRIBUTES, cutoff=0.0):
            link: Link = (*one.link[:place], (wanted, one.pointing.ref(name)), *one.link[place + 1 :])
            pointer = Pointer(link, one.named)
            keys = {key: pointer(item) for key, item in some.items()}
            if all(named is not None and named != own for own, named in keys.items()):
                trials.setdefault(_format_link(link), [named for named in keys.values() if named is not None])
    there = _read((key for keys in trials.values() for key in keys), store)
    return next((f"write {text}" for text, keys in trials.items() if all(key in there for key in keys)), "")


def _format_link(link: Link) -> str:
    """A link as the rules file spells it: only the names that differ."""
    return f"link: {{{', '.join(f'{name}: {ref.field}' for name, ref in link if name != ref.field)}}}"
