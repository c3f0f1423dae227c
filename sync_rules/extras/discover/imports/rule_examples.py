"""Rules that may fit what was imported: copies along links that keys and names suggest.

Invariant: an example passes `check` where it stands. It is a suggestion, which the file holds as a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from sync_rules.extras.discover.imports.identifiers import NAME_MAX, letters, plural, says_nothing, words
from sync_rules.extras.discover.imports.normalization import SettledEntity
from sync_rules.model.templates import parse_template

EXAMPLES_MAX: Final = 2
TRIED_MAX: Final = 12  # candidates that are checked
PAIRS_MAX: Final = 20_000
TELLING: Final = ("name", "title", "display_name", "full_name", "username", "label", "email", "status", "price")
CAMEL: Final = re.compile(r"^_*[a-z][a-z0-9]*[A-Z]")
SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class RuleExample:
    """A rule as lines of YAML, to be written under `rules:`."""

    name: str
    lines: tuple[str, ...]


def examples(
    entities: Sequence[SettledEntity], passes: Callable[[RuleExample, SettledEntity, SettledEntity], bool]
) -> list[RuleExample]:
    """The first few rules that pass, each of another source or target."""
    kept = [entity for entity in entities if not entity.refused]
    found: list[RuleExample] = []
    taken: set[str] = set()
    for source, target, link in islice(_links(kept), TRIED_MAX):
        if len(found) == EXAMPLES_MAX:
            break
        if target.name in taken:
            continue
        example = _copy(source, target, link)
        if passes(example, source, target):
            found.append(example)
            taken.add(target.name)
    return found


def _links(entities: Sequence[SettledEntity]) -> Iterator[tuple[SettledEntity, SettledEntity, dict[str, str]]]:
    """The pairs of source and target that a link seems to join; with the names that differ."""
    pairs = ((source, target) for source in entities for target in entities if source is not target)
    for source, target in islice(pairs, PAIRS_MAX):
        link = _link(source, target)
        if link is not None and _listable(target, link):
            yield source, target, {field: there for field, there in link.items() if field != there}


def _link(source: SettledEntity, target: SettledEntity) -> dict[str, str] | None:
    """The target's name for each field of the source's key; None if it does not seem to hold one of them."""
    identity = source.identity
    if not identity or set(identity) >= set(target.identity):
        same = set(identity) == set(target.identity)
        if not identity or same or source.table is target.table:
            return None
    known = _fields(target)
    link = {}
    for field in identity:
        if field in known and not says_nothing(field) and letters(field) != "id":
            link[field] = field
            continue
        longer = [name for name in known if words(name) == [*words(source.name), *words(field)]]
        if not longer:
            return None
        link[field] = longer[0]
    return link


def _fields(entity: SettledEntity) -> list[str]:
    """The names of all values that an entity's items hold: in keys, in index keys, as attributes."""
    templated = [name for text in entity.key.values() for name in parse_template(text, pads=True).fields]
    keys = [one.name for one in entity.table.found.key if one.name not in entity.key]
    held = entity.found.attributes or [one.name for index in entity.table.indexes for one in index.attributes]
    return list(dict.fromkeys([*templated, *keys, *(name for name in held if name not in entity.key)]))


def _listable(target: SettledEntity, link: dict[str, str]) -> bool:
    """True if the link fills the partition key of the target's table or of an index."""
    there = set(link.values())
    partitions = [[target.table.found.key[0]], *(list(index.partition) for index in target.table.indexes)]
    for partition in partitions:
        texts = [target.key.get(one.name) for one in partition]
        fields = {
            name
            for one, text in zip(partition, texts, strict=True)
            for name in ([one.name] if text is None else parse_template(text, pads=True).fields)
        }
        if fields and fields <= there:
            return True
    return False


def _copy(source: SettledEntity, target: SettledEntity, link: dict[str, str]) -> RuleExample:
    attribute = _telling(source)
    names = [*_fields(source), *_fields(target)]
    if attribute[0].islower() and not any(CAMEL.search(name) for name in names):
        made = f"{source.name}_{attribute}"
    else:
        made = f"{_camel(source.name)}{attribute[0].upper()}{attribute[1:]}"
        made = made if attribute[0].isupper() else made[0].lower() + made[1:]
    copy, into = f"{source.name}.{attribute}", f"{target.name}.{made}"
    name = "-".join([*words(source.name), *words(attribute), "on", *words(plural(target.name))])[:NAME_MAX].rstrip("-")
    if not link:
        return RuleExample(name, (f"{name}: copy {copy} into {into}",))
    pairs = ", ".join(f"{field}: {there}" for field, there in link.items())
    return RuleExample(name, (f"{name}:", f"  copy: {copy}", f"  into: {into}", f"  link: {{{pairs}}}"))


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in words(name))


def _telling(source: SettledEntity) -> str:
    """The attribute of a source that copies are most often made of."""
    identity = {*source.identity, *source.table.found.types}
    free = [name for name in source.found.attributes if SIMPLE.fullmatch(name) and name not in identity]
    best = {letters(name): name for name in reversed(free)}
    telling = (best.get(letters(one)) for one in TELLING)
    return next((name for name in telling if name), free[0] if free else "name")
