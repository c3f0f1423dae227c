"""copy: attributes of a source, kept equal on every target that points to it.

Law: the value of a copy is a function of the two items as they are now, never of how they came to be so. `mode:
snapshot` is the same law with a guard more: it only ever fills what is not there.
"""

from __future__ import annotations

from collections.abc import Mapping

from sync_rules.attributes import AttributeValue, Item, Path, changed, get
from sync_rules.model import Change, Condition, Test, equals_seen
from sync_rules.rules import CopyRule


def pushes(rule: CopyRule, change: Change) -> bool:
    """A source came, went, or changed in what the rule reads of it. A snapshot is pushed only to be filled."""
    if change.new is None:
        return rule.mode == "live" and rule.on_delete != "keep"
    if change.old is None:
        return True
    if rule.mode == "snapshot":
        return _may_fill(rule, change.old, change.new)
    return changed(change.old, change.new, rule.source_paths)


def _may_fill(rule: CopyRule, old: Item, new: Item) -> bool:
    """Whether something appeared in the source that targets which came before it still lack."""
    appeared = any(get(old, path) is None and get(new, path) is not None for path, _ in rule.mapping)
    return appeared or (rule.where is not None and changed(old, new, rule.where.source_paths))


def pulls(rule: CopyRule, change: Change) -> bool:
    """A target came, or changed in anything a guard compares or a listing goes by: its link, its copies and the maps
    they stand in, what `where` reads, its place in the listing index.
    """
    if change.new is None or change.old is None:
        return change.new is not None
    if changed(change.old, change.new, rule.relevant_paths):
        return True
    maps = (copy[:length] for copy in rule.copies for length in range(1, len(copy)))
    return any(_standing(change.old, path) != _standing(change.new, path) for path in maps)


def _standing(item: Item, path: Path) -> str:
    """What stands where a copy needs a map."""
    value = get(item, path)
    return "nothing" if value is None else "a map" if "M" in value else "something else"


def desired(rule: CopyRule, source: Item | None, target: Item) -> Mapping[Path, AttributeValue | None] | None:
    """The copies as the source has them. Without a source (or where `where` says no) the delete policy decides."""
    if rule.mode == "snapshot" and any(get(target, copy) is not None for copy in rule.copies):
        return None
    if source is None or not rule.where_holds(source, target):
        return ABSENT[rule.on_delete](rule)
    return rule.values(source)


def _says_nothing(_rule: CopyRule) -> None:
    return None


def _says_absent(rule: CopyRule) -> Mapping[Path, None]:
    return dict.fromkeys(rule.copies)


def deletes(rule: CopyRule, target: Item) -> bool:
    """Whether a target goes with its source. Where `where` does not hold, the rule says nothing of it; `check` sees to
    it that it reads no attribute of a source that is gone.
    """
    return rule.on_delete == "delete" and rule.where_holds({}, target)


ABSENT = {
    "keep": _says_nothing,
    "clear": _says_absent,
    "delete": _says_nothing,  # only a REMOVE record of the source deletes, and only in a transaction
}


def link_guard(rule: CopyRule, image: Item) -> tuple[Condition, ...]:
    """Never one user's name on another user's order: what names the source must be as it was seen."""
    still_linked = tuple(equals_seen(path, get(image, path)) for path in rule.link_paths)
    still_where = tuple(equals_seen(path, get(image, path)) for path in rule.where_paths)
    still_empty = tuple(equals_seen(path, None) for path in rule.copies) if rule.mode == "snapshot" else ()
    return still_linked + still_where + still_empty


def source_guard(rule: CopyRule, source: Item | None) -> tuple[Condition, ...]:
    """The source is as it was read: gone, or there with the same values at every path the rule reads."""
    there = (rule.source.table.partition.name,)
    if source is None:
        return (Condition(Test.ABSENT, there),)
    return (Condition(Test.EXISTS, there), *(equals_seen(path, get(source, path)) for path in rule.source_paths))
