"""What the pipeline does with tables and indexes for a rule: what it reads, lists, scans and writes, and what for.

Law: each use is one that code makes: `sources`, `fanout`, `parts`, `decide`, the kinds and `backfilling.metered`. A
transaction has no permission of its own: it needs those of its parts, each on the table of its part. A kind that is not
known here is an error, so that none is forgotten.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sync_rules.model.entities import Entity, Table
from sync_rules.rules.kinds.collect import CollectRule
from sync_rules.rules.kinds.copy import CopyRule
from sync_rules.rules.kinds.derive import DeriveRule
from sync_rules.rules.kinds.gathered import GatheredRule
from sync_rules.rules.kinds.linked import LinkedRule
from sync_rules.rules.kinds.mirror import MirrorRule
from sync_rules.rules.kinds.rank import RankRule
from sync_rules.rules.kinds.tally import TallyRule, TotalRule
from sync_rules.rules.rule import EffectRule, PartRule, Rule, TargetRule

READ: Final = ("dynamodb:BatchGetItem", "dynamodb:GetItem")  # of one key it is GetItem
QUERY: Final = ("dynamodb:Query",)
SCAN: Final = ("dynamodb:Scan",)
DESCRIBE: Final = ("dynamodb:DescribeTable",)
CHECK: Final = ("dynamodb:ConditionCheckItem",)
DELETE: Final = ("dynamodb:DeleteItem",)
PUT: Final = ("dynamodb:PutItem",)
UPDATE: Final = ("dynamodb:UpdateItem",)
UPDATES: Final = ("dynamodb:PartiQLUpdate", "dynamodb:UpdateItem")  # many at a time as statements, or one


@dataclass(frozen=True)
class Use:
    """What is done with a table, or with one of its indexes, for a rule."""

    actions: tuple[str, ...]
    table: Table
    why: str
    index: str | None = None


Uses = Iterator[Use]


# ---------------------------------------------------------------- reading, for a rule
def judged(rule: Rule) -> Uses:
    """What is read whenever a target or a part is judged, its own image aside."""
    match rule:
        case PartRule():
            yield Use(READ, rule.target.table, f"{name_of(rule.target)} as it is, before it is written")
            yield Use(READ, rule.source.table, f"{name_of(rule.source)}, from which it is made")
        case GatheredRule():
            yield from _query(rule, f"every {name_of(rule.source)} of one {name_of(rule.target)}")
            if rule.find is not None and rule.find.index is not None:
                yield Use(READ, rule.source.table, "what the index lists, as it is now")
        case LinkedRule() | TotalRule():
            yield Use(READ, rule.source.table, f"{name_of(rule.source)}, whose values {name_of(rule.target)} has")
        case DeriveRule() | EffectRule():
            pass
        case _:
            raise AssertionError(f"what does a rule of kind {rule.kind} read?")


def hinted(rule: Rule) -> Uses:
    """The images of targets that records of their sources name; other images are in the record of the target itself."""
    if isinstance(rule, GatheredRule | TotalRule):
        yield Use(READ, rule.target.table, f"{name_of(rule.target)}, which a record of {name_of(rule.source)} names")


def looked_at(rule: Rule) -> Uses:
    """The images of targets that only their key is known of."""
    if isinstance(rule, TargetRule):
        yield Use(READ, rule.target.table, f"{name_of(rule.target)}, of which only the key is known")


def priced(rule: Rule) -> Uses:
    """Targets whose image came in a record, where what they cost is paid for."""
    if (
        isinstance(rule, TargetRule)
        and rule.target.table.max_write_units_per_second is not None
        and any(True for way in (written, deleted) for _ in way(rule))
    ):
        yield Use(READ, rule.target.table, f"{name_of(rule.target)}: how large it is, as its table has a limit")


def listed(rule: Rule) -> Uses:
    """Everything that one item lists: its targets, its edges."""
    if not isinstance(rule, LinkedRule | CollectRule) or rule.find is None:
        return
    yield from _query(rule, f"every {name_of(rule.listed)} of one {name_of(rule.anchor)}")
    if rule.find.index is not None:
        yield Use(READ, rule.listed.table, "what the index lists, as it is now")


def _query(rule: Rule, why: str) -> Uses:
    if rule.find is not None:
        yield Use(QUERY, rule.listed.table, why, rule.find.index)


def scanned(rule: Rule) -> Uses:
    """The tables that hold what a rule keeps, and for parts what they are made from."""
    if not isinstance(rule, EffectRule):
        for table in dict.fromkeys(side.table for side in _swept(rule)):
            yield Use(SCAN, table, "all that it keeps")


def described(rule: Rule) -> Uses:
    """The tables whose keys and indexes are looked at before anything is done."""
    for table in () if isinstance(rule, EffectRule) else dict.fromkeys(rule.streamed):
        yield Use(DESCRIBE, table, "that tables and indexes are as it needs them")


def _swept(rule: Rule) -> tuple[Entity, ...]:
    return (rule.source, rule.target) if isinstance(rule, PartRule) else (rule.target,)


def name_of(entity: Entity) -> str:
    """An entity as people know it: those of the pipeline have names of their own."""
    words = {"ledger": "ledger entry", "total": "total", "rank": "ledger entry"}
    return words.get(entity.name.rpartition(".")[2], entity.name) if "." in entity.name else entity.name


# ---------------------------------------------------------------- writing, for a rule
def written(rule: Rule) -> Uses:
    """What is written when something is not as the rule says."""
    on, made_from = rule.target.table, rule.source.table
    match rule:
        case CopyRule(mapping=()) | EffectRule():
            pass  # about deletes alone; outside the tables
        case TargetRule():
            yield Use(UPDATE if rule.strict else UPDATES, on, f"copies on {name_of(rule.target)}")
            if rule.strict:
                yield Use(CHECK, made_from, f"strict: {name_of(rule.source)} still is as it was read")
        case CollectRule():
            yield Use(UPDATE, on, f"elements on {name_of(rule.target)}")
            if rule.strict:
                yield Use(CHECK, made_from, f"strict: {name_of(rule.source)} still is as it was read")
        case MirrorRule():
            yield Use(PUT, on, f"{name_of(rule.target)}, where one is missing")
            yield Use(DELETE, on, f"{name_of(rule.target)}, where there should be none")
            if rule.attributes is None or rule.copies:
                yield Use(UPDATE, on, f"what differs on {name_of(rule.target)}")
            yield Use(CHECK, made_from, f"{name_of(rule.source)} still is as it was read")
        case TallyRule():
            yield Use(PUT, on, "the entry of a child")
            yield Use(DELETE, on, "the entry of a child that counts no more")
            yield Use(UPDATE, on, "the total, in the same transaction")
        case RankRule():
            yield Use(PUT, on, "the entry of a child")
            yield Use(DELETE, on, "the entry of a child that counts no more")
            yield Use(CHECK, made_from, f"{name_of(rule.source)} still is as it was read")
        case _:
            raise AssertionError(f"what does a rule of kind {rule.kind} write?")


def deleted(rule: Rule) -> Uses:
    """Targets that go with their source, which only its own record brings about."""
    if isinstance(rule, LinkedRule) and rule.on_delete == "delete":
        yield Use(DELETE, rule.target.table, f"on_delete: {name_of(rule.target)} goes with its {name_of(rule.source)}")
        yield Use(CHECK, rule.source.table, f"on_delete: {name_of(rule.source)} still is gone")
