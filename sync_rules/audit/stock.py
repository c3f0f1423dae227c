"""The stock of items at rest: the targets and parts that rules find in items that were read, not in records. Backfill
turns it into tasks; verify compares the same targets and parts, and writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sync_rules.model.entities import Entity, Table
from sync_rules.model.errors import StoreError
from sync_rules.model.items import Change, ItemKey
from sync_rules.model.values import Item
from sync_rules.pipeline.requests import Work, read_all
from sync_rules.pipeline.sources import Target, make_absent_target
from sync_rules.pipeline.tasks import PartLook, Pull, Tasks
from sync_rules.rules.families import Part, TargetRule
from sync_rules.rules.ruleset import Concern, Rules


@dataclass
class Stock:
    """Targets and parts. Most parts are found twice, from their source and from their target: the flag says whether the
    part counts when it is right. `unlisted`: items that an index does not list, by rule. `named`: targets that books
    name, which may be missing, with the rules that make them.
    """

    targets: list[Target] = field(default_factory=list)
    parts: dict[Part, bool] = field(default_factory=dict)
    unlisted: list[tuple[str, ItemKey]] = field(default_factory=list)
    named: dict[ItemKey, tuple[TargetRule, ...]] = field(default_factory=dict)
    _concerns: dict[tuple[str, frozenset[str]], Concern] = field(default_factory=dict)

    def add(self, item: Item, table: Table, rules: Rules, only: frozenset[str], *, alone: bool = False) -> bool:
        """Add an item by the rules in `only`: as a target, and as one side of parts. Return True if it concerns any of
        them. A right part counts from the side of its source, or from either side if the item is checked `alone`.
        """
        key = table.key_of(item)
        entity = rules.entity_of(key) if key is not None else None
        if key is None or entity is None:
            return False
        unlisted = [rule for rule in rules.list_blind_rules(entity, item, at_rest=True) if rule.name in only]
        self.unlisted += ((rule.name, key) for rule in unlisted)
        concern = self._find_concern(entity, rules, only)
        if concern.into:
            self.targets.append(Target(key, item, concern.into))
        for rule in concern.parts:
            for part in rule.parts(Change(key, None, item), entity):
                self.parts[part] = self.parts.get(part, False) or alone or part.source == key
        for maker in (rule for rule in concern.hinting if rule.makes):
            makers = tuple(rule for rule in rules.into_target(maker.target) if rule.makes and rule.name in only)
            self.named |= {hint.target: makers for hint in maker.hints(Change(key, None, item))}
        return bool(concern.into or concern.parts or unlisted)

    def _find_concern(self, entity: Entity, rules: Rules, only: frozenset[str]) -> Concern:
        """The rules in `only` that an item of an entity concerns. They are kept: every scanned item asks."""
        asked = entity.name, only
        if asked not in self._concerns:
            whole = rules.find_concern(entity)
            self._concerns[asked] = replace(
                whole,
                into=tuple(rule for rule in whole.into if rule.name in only),
                parts=tuple(rule for rule in whole.parts if rule.name in only),
                hinting=tuple(rule for rule in whole.hinting if rule.name in only),
            )
        return self._concerns[asked]

    def tasks(self) -> tuple[Tasks, Tasks]:
        """Return the tasks that make these items right, and the tasks of the parts that do not count here."""
        pulls = tuple(Pull(target.key, target.image, target.rules) for target in self.targets)
        counted = tuple(PartLook(part) for part, counts in self.parts.items() if counts)
        others = tuple(PartLook(part) for part, counts in self.parts.items() if not counts)
        return Tasks(pulls, parts=counted), Tasks(parts=others, unlisted=tuple(self.unlisted))

    def read_missing_targets(self) -> Work[list[Target]]:
        """Return the named targets that do not exist. Raises StoreError if a target cannot be read."""
        missing: list[Target] = []
        for key, item in (yield from read_all(self.named)).items():
            if isinstance(item, StoreError):
                raise item
            target = make_absent_target(key, self.named[key]) if item is None else None
            missing += [] if target is None else [target]
        return missing
