"""Billing, capacity, class and protection of tables: as parameters of DynamoDB's API, and beside a table that exists.

Invariant: only what the rules file says is compared. Each cure is one UpdateTable that makes the difference go. That
autoscaling is set up is not compared, only that the units are within its bounds. CloudFormation has the same parameters
as the API.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tenacity import Retrying

from sync_rules.adapters import retries
from sync_rules.adapters.preflight import UNDESCRIBED, Problem
from sync_rules.model.capacity import (
    Billing,
    IndexSettings,
    OnDemand,
    Provisioned,
    TableSettings,
    Units,
    VectorIndex,
    Warm,
)
from sync_rules.model.entities import Index, KeyAttribute, Table
from sync_rules.model.errors import StoreError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CLASSES: Final = {"standard": "STANDARD", "infrequent-access": "STANDARD_INFREQUENT_ACCESS"}
DISTANCES: Final = {"cosine": "COSINE", "euclidean": "EUCLIDEAN", "dot-product": "DOT_PRODUCT"}
ON_DEMAND: Final = "PAY_PER_REQUEST"
PROVISIONED: Final = "PROVISIONED"
MODES: Final = {ON_DEMAND: "on demand", PROVISIONED: "by provisioned units"}
FIGURES: Final = {  # the parameter of each kind of figures, with its reads and its writes
    ON_DEMAND: ("OnDemandThroughput", ("MaxReadRequestUnits", "MaxWriteRequestUnits")),
    PROVISIONED: ("ProvisionedThroughput", ("ReadCapacityUnits", "WriteCapacityUnits")),
}
WARM: Final = ("ReadUnitsPerSecond", "WriteUnitsPerSecond")
NO_MAXIMUM: Final = -1
Difference = tuple[str, dict[str, Any]]


# ---------------------------------------------------------------- parameters
def of_table(settings: TableSettings) -> dict[str, Any]:
    """The parameters of a table that is created."""
    made: dict[str, Any] = {"BillingMode": _mode(settings.billing), **_throughput(settings.billing)}
    made |= _warm(settings.warm)
    if settings.vectors:
        made["VectorIndexes"] = [_vector(one) for one in settings.vectors]
    if settings.table_class is not None:
        made["TableClass"] = CLASSES[settings.table_class]
    if settings.deletion_protection is not None:
        made["DeletionProtectionEnabled"] = settings.deletion_protection
    return made


def of_index(settings: IndexSettings) -> dict[str, Any]:
    """The parameters of an index that is created."""
    return {**_throughput(settings.billing), **_warm(settings.warm)}


def projection_of(index: Index) -> dict[str, Any]:
    """The Projection of an index; all, as the console creates it, if the rules file does not say."""
    if isinstance(index.projection, tuple):
        return {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.projection)}
    return {"ProjectionType": "KEYS_ONLY" if index.projection == "keys" else "ALL"}


def _vector(one: VectorIndex) -> dict[str, Any]:
    """A VectorIndex of CreateTable, https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_VectorIndex.html."""
    parts = (("HASH", one.index.partition), ("INLINE_FILTER", one.index.sort))
    schema = [{"AttributeName": a.name, "SearchSchemaElementType": role} for role, some in parts for a in some]
    return {
        "IndexName": one.index.name,
        "VectorAttribute": {"AttributeName": one.vector},
        **({"SearchSchema": schema} if schema else {}),
        "Projection": projection_of(one.index),
        "Dimensions": one.dimensions,
        "DistanceFunction": DISTANCES[one.distance],
    }


def defined(attributes: Iterable[KeyAttribute]) -> list[dict[str, str]]:
    """The AttributeDefinitions of these attributes, each once."""
    types = {one.name: one.type for one in attributes}
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def _vector_differences(
    settings: TableSettings, description: Mapping[str, Any], *, emulated: bool
) -> Iterator[Difference]:
    """The vector indexes that the table lacks, or has in another form. DynamoDB makes and deletes them alone."""
    if emulated and "VectorIndexes" not in description:
        return
    found = {one["IndexName"]: one for one in description.get("VectorIndexes") or ()}
    for one in settings.vectors:
        wanted, name = _vector(one), one.index.name
        there = found.get(name)
        if there is None:
            known = description.get("AttributeDefinitions") or ()
            more = [a for a in defined(one.index.attributes) if a not in known]
            update = {"VectorIndexUpdates": [{"Create": wanted}]}
            yield f"it has no vector index {name}", {"AttributeDefinitions": [*known, *more], **update}
        elif different := [part for part in wanted if _in_order(there.get(part)) != _in_order(wanted[part])]:
            text = f"its vector index {name} has another {' and '.join(different)} than the rules file says"
            yield f"{text}, and none can be changed", {"VectorIndexUpdates": [{"Delete": {"IndexName": name}}]}


def _in_order(part: Any) -> Any:
    """A part of an index for comparison: lists in any order."""
    if isinstance(part, Mapping):
        return {name: _in_order(value) for name, value in part.items()}
    return sorted(part, key=str) if isinstance(part, list) else part


def _mode(billing: Billing | None) -> str:
    return PROVISIONED if isinstance(billing, Provisioned) else ON_DEMAND


def _throughput(billing: Billing | None) -> dict[str, Any]:
    name, parts = FIGURES[_mode(billing)]
    numbers = [number for number, _, _ in _bounds(billing)]
    said = {part: number for part, number in zip(parts, numbers, strict=True) if number != NO_MAXIMUM}
    return {name: said} if said else {}


def _warm(warm: Warm | None) -> dict[str, Any]:
    if warm is None:
        return {}
    said = zip(WARM, (warm.read, warm.write), strict=True)
    return {"WarmThroughput": {name: number for name, number in said if number is not None}}


def _bounds(billing: Billing | None) -> tuple[tuple[int, int, int], ...]:
    """Reads and writes: each with the figure at the beginning, the least and the most."""
    if isinstance(billing, Provisioned):
        return tuple(_scaled(units) for units in (billing.read, billing.write))
    most = billing or OnDemand()
    figures = (NO_MAXIMUM if figure is None else figure for figure in (most.max_read, most.max_write))
    return tuple((figure, figure, figure) for figure in figures)


def _scaled(units: Units) -> tuple[int, int, int]:
    scaling = units.scaling
    return (units.number, scaling.min, scaling.max) if scaling else (units.number, units.number, units.number)


# ---------------------------------------------------------------- beside a table that exists
def problems(
    table: Table,
    settings: TableSettings,
    description: Mapping[str, Any],
    options: Sequence[str] = (),
    *,
    emulated: bool = False,
) -> Iterator[Problem]:
    """The differences between a table as described and its settings. `options` of the AWS CLI say where it is. An
    emulator may not know a parameter: what it does not describe counts as right.
    """
    for found, update in _differences(table, settings, description, emulated=emulated):
        body = json.dumps({"TableName": table.physical_name, **update})
        command = shlex.join(("aws", "dynamodb", "update-table", "--cli-input-json", body, *options))
        yield Problem(table.physical_name, found, f"Correct the rules file, or change the table: `{command}`")


def backup_problems(
    client: DynamoDBClient, table: Table, settings: TableSettings, retrying: Retrying, options: Sequence[str] = ()
) -> tuple[Problem, ...]:
    """The difference between the point-in-time recovery of a table and its settings. One that an emulator does not
    know, or that may not be described, counts as right. Raises StoreError.
    """
    if settings.backups is None:
        return ()
    where, asked = f"DescribeContinuousBackups of {table.physical_name}", client.describe_continuous_backups
    try:
        answer: Any = retries.ask(retrying, where, asked, TableName=table.physical_name)
    except StoreError as error:
        if error.reason not in UNDESCRIBED:
            raise
        return ()
    recovery = (answer.get("ContinuousBackupsDescription") or {}).get("PointInTimeRecoveryDescription") or {}
    on = recovery.get("PointInTimeRecoveryStatus") == "ENABLED"
    if on is settings.backups:
        return ()
    words = {True: "on", False: "off"}
    specification = json.dumps(recovery_of(on=settings.backups))
    named = ("aws", "dynamodb", "update-continuous-backups", "--table-name", table.physical_name)
    command = shlex.join((*named, "--point-in-time-recovery-specification", specification, *options))
    found = f"its point-in-time recovery is {words[on]}, and the rules file says otherwise"
    return (Problem(table.physical_name, found, f"Correct the rules file, or switch it {words[not on]}: `{command}`"),)


def recovery_of(*, on: bool) -> dict[str, Any]:
    """The PointInTimeRecoverySpecification."""
    return {"PointInTimeRecoveryEnabled": on}


def _differences(
    table: Table, settings: TableSettings, description: Mapping[str, Any], *, emulated: bool
) -> Iterator[Difference]:
    indexes = {index.name: index for index in table.indexes if not index.local}
    there = [i for i in description.get("GlobalSecondaryIndexes") or () if i["IndexName"] in indexes]
    expected, found = _mode(settings.billing), _mode_of(description)
    if settings.billing is not None and found != expected:
        figures = [(indexes[one["IndexName"]], settings.of(indexes[one["IndexName"]]).billing) for one in there]
        updates = [_update(index.name, made) for index, billing in figures if (made := _throughput(billing))]
        if expected == PROVISIONED:  # each index needs figures; one that the file lacks has those of its table
            others = [i["IndexName"] for i in description.get("GlobalSecondaryIndexes") or () if i not in there]
            updates += [_update(name, _throughput(settings.billing)) for name in others]
        update = {"BillingMode": expected, **_throughput(settings.billing)}
        update |= {"GlobalSecondaryIndexUpdates": updates} if updates else {}
        yield f"it is billed {MODES[found]}, and the rules file says {MODES[expected]}", update
    elif settings.billing is not None:
        yield from _figures("", settings.billing, description, emulated=emulated)
    yield from _warm_differences("", settings.warm, description, emulated=emulated)
    for one in there:
        index = indexes[one["IndexName"]]
        own = settings.of(index)
        same = own.billing is not None and found == _mode(own.billing)
        within = [*_figures(index.name, own.billing, one, emulated=emulated)] if same else []
        within += _warm_differences(index.name, own.warm, one, emulated=emulated)
        yield from ((text, {"GlobalSecondaryIndexUpdates": [_update(index.name, update)]}) for text, update in within)
    yield from _vector_differences(settings, description, emulated=emulated)
    yield from _other_differences(settings, description, emulated=emulated)


def _update(index: str, change: Mapping[str, Any]) -> dict[str, Any]:
    return {"Update": {"IndexName": index, **change}}


def _mode_of(description: Mapping[str, Any]) -> str:
    """The billing mode of a table: a provisioned one that never was another need not say so."""
    said = (description.get("BillingModeSummary") or {}).get("BillingMode")
    units = (description.get("ProvisionedThroughput") or {}).get("ReadCapacityUnits", 0)
    return str(said) if said in MODES else PROVISIONED if units else ON_DEMAND


def _figures(
    index: str, billing: Billing | None, description: Mapping[str, Any], *, emulated: bool
) -> Iterator[Difference]:
    """The difference between figures of one billing mode."""
    name, parts = FIGURES[_mode(billing)]
    if emulated and name not in description:
        return
    found = [(description.get(name) or {}).get(part, NO_MAXIMUM) for part in parts]
    bounds = _bounds(billing)
    if all(least <= number <= most for number, (_, least, most) in zip(found, bounds, strict=True)):
        return
    said = _sentence([_shown(number, number) for number in found], [_shown(low, high) for _, low, high in bounds])
    what = _of(index, "units a second" if name == "ProvisionedThroughput" else "maximum units a second")
    yield f"{what} {said}", {name: {part: first for part, (first, _, _) in zip(parts, bounds, strict=True)}}


def _warm_differences(
    index: str, warm: Warm | None, description: Mapping[str, Any], *, emulated: bool
) -> Iterator[Difference]:
    """A warm throughput that is lower. A higher one stays: it cannot be lowered."""
    found = description.get("WarmThroughput") or {}
    wanted = (_warm(warm).get("WarmThroughput") or {}).items()
    short = {part: number for part, number in wanted if found.get(part, 0) < number}
    if not short or (emulated and not any(found.get(part) for part in WARM)):  # some describe zeros
        return
    numbers = [_shown(found.get(part, 0), found.get(part, 0)) for part in WARM]
    expected = ["any" if number is None else f"{number:,}" for number in ((warm.read, warm.write) if warm else ())]
    yield f"{_of(index, 'warm units a second')} {_sentence(numbers, expected)}", {"WarmThroughput": short}


def _other_differences(
    settings: TableSettings, description: Mapping[str, Any], *, emulated: bool
) -> Iterator[Difference]:
    summary = description.get("TableClassSummary")
    if settings.table_class is not None and not (emulated and summary is None):
        names = {name: word for word, name in CLASSES.items()}
        found = names.get((summary or {}).get("TableClass", "STANDARD"), "another")
        if found != settings.table_class:
            text = f"its class is {found}, and the rules file says {settings.table_class}"
            yield text, {"TableClass": CLASSES[settings.table_class]}
    protected = description.get("DeletionProtectionEnabled", None if emulated else False)
    if settings.deletion_protection is not None and protected not in (None, settings.deletion_protection):
        words = {True: "on", False: "off"}
        text = f"its deletion protection is {words[bool(protected)]}, and the rules file says otherwise"
        yield text, {"DeletionProtectionEnabled": settings.deletion_protection}


def _of(index: str, what: str) -> str:
    return f"the {what} of index {index}" if index else f"its {what}"


def _sentence(found: Sequence[str], expected: Sequence[str]) -> str:
    return f"are {found[0]} read, {found[1]} write, and the rules file says {expected[0]} read, {expected[1]} write"


def _shown(low: int, high: int) -> str:
    if low == NO_MAXIMUM:
        return "none"
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
