"""Find attributes that two rules write, or one rule twice: each would undo the other's write."""

from __future__ import annotations

from collections.abc import Iterator

from sync_rules.language.problems import Location, Problem
from sync_rules.language.yaml_source import Document
from sync_rules.model.entities import Entity, Ref
from sync_rules.model.prefixes import Prefixes
from sync_rules.model.values import Path, overlaps, show_path
from sync_rules.rules.kinds.copy import HopRule
from sync_rules.rules.kinds.path import TreeRule
from sync_rules.rules.rule import Rule
from sync_rules.rules.ruleset import Rules

Writer = tuple[Rule, Entity, Path]


def attribute(entity: Entity, path: Path) -> str:
    """A path with its entity, as the rules file spells it; the empty path is the whole item."""
    return f"{entity.name}.{show_path(path)}" if path else entity.name


def locate_write(rule: Rule, document: Document, option: str = "into") -> Location:
    """Return the location of `option` in a rule; the location of the rule if the option is missing."""
    key_path = ("rules", rule.title, "link" if isinstance(rule, HopRule) else option)
    return document.value(*(key_path if key_path in document.locations else (*key_path[:2], rule.kind)))


def two_writers(rules: Rules, document: Document) -> Iterator[Problem]:
    """Report attributes that two rules write, or one rule twice. A mirror writes what it keeps, and its key."""
    mirrors = set[tuple[str, str]]()
    for (one, target, left), (two, entity, right) in _find_overlaps(rules):
        what, location = attribute(entity, right or left), locate_write(two, document)
        if one is two:
            carried = document.locations.get(("rules", one.title, "carry"))
            cure = "remove it from carry" if carried else None
            yield Problem("SR301", f"{what} is written twice by this rule", carried or location, cure)
            continue
        line = locate_write(one, document).line
        both = entity in one.owned_entities and entity in two.owned_entities
        if both and one.title == two.title:
            continue  # each has items of its own
        makers = one.makes and two.makes
        if makers and any(attribute.name == right[0] for attribute in entity.table.key):
            continue  # of one entity: the first member of any of them makes the item
        if both and not makers:
            if (one.name, two.name) not in mirrors:
                made = "made by" if one.makes or two.makes else "the mirrors of"
                message = f"the items of {entity.name!r} are {made} rule {one.title} in line {line} already"
                yield Problem("SR301", message, location)
            mirrors.add((one.name, two.name))
            continue
        inside = "" if left == right or not right else f" as {attribute(target, left)}"
        message = f"{what} is written by rule {one.title} in line {line} already{inside}"
        cure = _own_ids(one, two, right) or _own_ids(two, one, left)
        cure = cure or _elsewhere(one, two, rules) or _elsewhere(two, one, rules)
        yield Problem("SR301", message, location, cure)


def _own_ids(rule: Rule, other: Rule, path: Path) -> str | None:
    """The cure if another rule writes the ids of a rule with a breadcrumb."""
    if not isinstance(rule, TreeRule) or rule.crumb is None or not overlaps(rule.path, path):
        return None
    return f"rule {rule.title} keeps its ids itself: give its `ids` another name, or remove rule {other.title}"


def _elsewhere(hop: Rule, other: Rule, rules: Rules) -> str | None:
    """The cure where another rule writes what a link over several items keeps."""
    if not isinstance(hop, HopRule):
        return None
    kept = {kept for _, kept in hop.mapping}
    onward = [rule for rule in rules.rules.values() if rule.title == hop.title and rule is not hop]
    pairs: list[tuple[Rule, tuple[str, Ref]]] = [(rule, pair) for rule in onward for pair in getattr(rule, "link", ())]
    rule, (field, ref) = next((rule, pair) for rule, pair in pairs if pair[1].path in kept)
    cure = f"let rule {hop.title} keep it in another attribute: through: {{{field}: ANOTHER}}"
    if isinstance(rule, HopRule) or hop.title == other.title:
        return cure
    return f"{cure}; or link by what rule {other.title} keeps: link: {{{field}: {show_path(ref.path)}}}"


def _find_overlaps(rules: Rules) -> Iterator[tuple[Writer, Writer]]:
    """Yield pairs of writers of one attribute: a later writer with an earlier one of its rule, and of another rule."""
    writers: dict[Entity, Prefixes[Writer]] = {}
    for rule in rules.rules.values():
        own: list[Writer] = [] if rule.moves else [(rule, *node.writes) for node in rule.nodes()]
        for number, two in enumerate(own):
            _, entity, path = two
            mine = (one for one in own[:number] if one[1] is entity and overlaps(one[2], path))
            others = writers[entity].find_overlaps(path) if entity in writers else iter(())
            yield from ((one, two) for one in (next(mine, None), next(others, None)) if one is not None)
        for writer in own:
            writers.setdefault(writer[1], Prefixes()).add(writer[2], writer)
