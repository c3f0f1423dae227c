"""Uses of tables that several families of rules give alike."""

from __future__ import annotations

from collections.abc import Iterator

from sync_rules.rules.description import Moment, Operation, Use, name_of
from sync_rules.rules.rule import Rule


def list_uses_to_list(rule: Rule, moment: Moment) -> Iterator[Use]:
    """The reads of a listing, for a rule that lists."""
    if rule.find is not None:
        why = f"every {name_of(rule.listed_entity)} of one {name_of(rule.anchor)}"
        yield Use(moment, Operation.QUERY, rule.listed_entity.table, why, rule.find.index)
        if rule.find.index is not None:
            yield Use(moment, Operation.READ, rule.listed_entity.table, "what the index lists, as it is now")


def list_uses_to_sweep(rule: Rule) -> Iterator[Use]:
    """Return the scans that check what a rule keeps, and the description of its tables before the first scan."""
    for table in dict.fromkeys(entity.table for entity in rule.swept_entities):
        yield Use(Moment.SCANNED, Operation.SCAN, table, "all that it keeps")
    for table in dict.fromkeys((rule.source.table, rule.target.table)):
        yield Use(Moment.DESCRIBED, Operation.DESCRIBE, table, "that tables and indexes are as it needs them")


def make_check_use(rule: Rule, why: str = "") -> Use:
    """The check of the source in a transaction."""
    why = f"{why}{name_of(rule.source)} still is as it was read"
    return Use(Moment.WRITTEN, Operation.CHECK, rule.source.table, why)
