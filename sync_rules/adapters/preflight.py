"""Compare the account with the rules: tables, keys, indexes, streams, Time to Live.

Invariant: it only describes, and reports all problems at once, each with its cure.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tenacity import Retrying

from sync_rules import DOCS
from sync_rules.adapters import aws, aws_errors, retries
from sync_rules.model.entities import KeyAttribute, Table
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.values import escape_invisible
from sync_rules.rules.description import Moment
from sync_rules.rules.ruleset import Rules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

IMAGES = "NEW_AND_OLD_IMAGES"
STRONG = "STRONG"  # MultiRegionConsistency of a global table that is strongly consistent in all of its Regions
REFUSES = "it has strong multi-Region consistency, with which DynamoDB refuses"
UNDESCRIBED: Final = aws_errors.NOT_ALLOWED | {"UnknownOperation", "UnknownOperationException"}


@dataclass(frozen=True, slots=True)
class TableProblem:
    """A difference between the account and the rules."""

    table: str
    found: str
    cure: str

    def __post_init__(self) -> None:
        for name in ("found", "cure"):  # which name attributes
            object.__setattr__(self, name, escape_invisible(getattr(self, name)))

    def __str__(self) -> str:
        return f"table {self.table}: {self.found}. {self.cure}."


@dataclass(frozen=True, slots=True)
class Survey:
    """All problems, and the current ARNs of the streams. A stream that was enabled again has a new ARN."""

    problems: tuple[TableProblem, ...]
    stream_arns: tuple[str, ...]


def survey_tables(
    client: DynamoDBClient,
    rules: Rules,
    *,
    streams: bool = True,
    times_to_live: bool = False,
    retrying: Retrying | None = None,
) -> Survey:
    """Describe each table that rules read or write once. `streams=False` ignores streams, for commands that read none.
    `times_to_live` also checks the Times to Live that rules need, which matter only where rules run.

    Raises:
        StoreError: when a table cannot be described, unless it does not exist.
    """
    retrying = retrying or retries.make_retry(first=True)
    problems: list[TableProblem] = []
    arns: list[str] = []
    used = {side.table.name for rule in rules.rules.values() for side in (rule.source, rule.target)}
    descriptions = {
        table: describe_table(client, table, retrying) for name, table in rules.tables.items() if name in used
    }
    where = ""
    if None in descriptions.values():
        where = aws.format_place(client, _find_account(descriptions.values()) or aws.find_account(client))
    for table, description in descriptions.items():
        if description is None:
            cure = (
                "Create it with `sync-rules tables create`, or correct its `name` in the rules file, the Region, the "
                "credentials or the endpoint"
            )
            problems.append(TableProblem(table.physical_name, f"it does not exist at {where}", cure))
            continue
        problems += _list_key_problems(table, description)
        uses = _list_listing_indexes(rules, table)
        problems += _list_index_problems(table, description, uses)
        problems += list_refused_features(rules, table, description, uses, rules.needed_times_to_live)
        if streams and table in rules.streamed_tables:
            problems += _list_stream_problems(table, description)
            arns += [description["LatestStreamArn"]] if "LatestStreamArn" in description else []
        if times_to_live and not is_strong(description):
            problems += _check_time_to_live(client, rules, table, retrying)
    return Survey(tuple(problems), tuple(arns))


def list_table_problems(rules: Rules, table: Table, description: Mapping[str, Any]) -> tuple[TableProblem, ...]:
    """List the differences between a table's description and the rules file: its key, all its indexes, its stream."""
    uses = list_declared_indexes(table) | _list_listing_indexes(rules, table)
    streams = _list_stream_problems(table, description) if table in rules.streamed_tables else ()
    refused = list_refused_features(rules, table, description, uses, rules.times_to_live)
    return (
        *_list_key_problems(table, description),
        *_list_index_problems(table, description, uses),
        *refused,
        *streams,
    )


def is_strong(description: Mapping[str, Any]) -> bool:
    """True for a global table with strong multi-Region consistency.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/V2globaltables_HowItWorks.html
    """
    return description.get("MultiRegionConsistency") == STRONG


def list_refused_features(
    rules: Rules,
    table: Table,
    description: Mapping[str, Any],
    uses: Mapping[str, str],
    times_to_live: Mapping[str, str],
) -> Iterator[TableProblem]:
    """List the problems of a table that `is_strong`: rules, local indexes, Time to Live. `uses`: the indexes that rules
    or the file need, each with the reason.
    """
    if not is_strong(description):
        return
    for name in (name for name in uses if table.index(name).local):
        found = f"{REFUSES} local indexes: {name}, which {uses[name]}"
        yield TableProblem(table.physical_name, found, "Leave out local: true")
    move = f"use a table without it ({DOCS}/limits.md): the mode of a table cannot change"
    refused: dict[str, TableProblem] = {}
    for rule in rules.rules.values():
        parts = [use for use in rule.list_transaction_uses() if use.table == table]
        if parts and rule.title not in refused:
            deletes = any(use.moment is Moment.DELETED for use in parts)
            ways = {"leave out `strict: true`": rule.strict, "write another `on_delete`": deletes}
            change = " and ".join(way for way, fits in ways.items() if fits) or "leave out the rule"
            found = f"{REFUSES} transactions: rule {rule.title} needs them for {parts[-1].why}"
            refused[rule.title] = TableProblem(
                table.physical_name, found, f"{change[0].upper()}{change[1:]}, or {move}"
            )
    yield from refused.values()
    if table.name in times_to_live:
        named = [rule.title for rule in rules.rules.values() for where, _ in rule.times_to_live if where == table]
        needs = f"rule {named[0]} needs it" if named else "the rules file names it"
        found = f"{REFUSES} Time to Live: {needs} on {times_to_live[table.name]}"
        yield TableProblem(table.physical_name, found, f"Leave it out of the rules file, or {move}")


def list_declared_indexes(table: Table) -> dict[str, str]:
    """List the indexes that the rules file declares, each with that as the reason why it is needed."""
    return {index.name: "the rules file declares" for index in table.indexes}


def _list_listing_indexes(rules: Rules, table: Table) -> dict[str, str]:
    """The indexes of a table that rules list by, and which rule does."""
    finding = (r for r in rules.rules.values() if r.listed_entity.table == table and r.find and r.find.index)
    return {r.find.index: f"rule {r.title} lists by" for r in finding if r.find and r.find.index}


def _find_account(descriptions: Iterable[Mapping[str, Any] | None]) -> str:
    """The account of these tables; "" where none of them exists."""
    arns = (description.get("TableArn", "") for description in descriptions if description is not None)
    return next((arn.split(":")[4] for arn in arns if arn.count(":") > 4), "")  # noqa: PLR2004 - the fifth part of an ARN


def require_tables(
    client: DynamoDBClient, rules: Rules, *, streams: bool = True, times_to_live: bool = False
) -> Survey:
    """Return the survey of tables without problems. Raises UserError that lists all problems, StoreError like
    `survey_tables`.
    """
    found = survey_tables(client, rules, streams=streams, times_to_live=times_to_live)
    if found.problems:
        lines = "\n".join(f"  {each}" for each in found.problems)
        raise UserError(f"the tables are not as the rules need them:\n{lines}")
    return found


def describe_table(client: DynamoDBClient, table: Table, retrying: Retrying) -> Mapping[str, Any] | None:
    """Return DescribeTable's answer; None if the table does not exist. Raises StoreError."""
    try:
        answer: Mapping[str, Any] = retrying(client.describe_table, TableName=table.physical_name)["Table"]
    except aws_errors.ERRORS as error:
        if aws_errors.read_reason(error) == "TableNotFound":
            return None
        raise aws_errors.make_store_error(error, f"DescribeTable of {table.physical_name}", client=client) from error
    return answer


def _check_time_to_live(
    client: DynamoDBClient, rules: Rules, table: Table, retrying: Retrying
) -> tuple[TableProblem, ...]:
    """The problem with the Time to Live of a table. One that may not be described, or that an emulator does not know,
    counts as right.
    """
    name = rules.needed_times_to_live.get(table.name)
    if name is None:
        return ()
    try:
        found = describe_time_to_live(client, table, retrying)
    except StoreError as error:
        if error.reason not in UNDESCRIBED:
            raise
        return ()
    return list_time_to_live_problems(table, name, found, options=format_cli_options(client))


def describe_time_to_live(client: DynamoDBClient, table: Table, retrying: Retrying) -> Mapping[str, Any]:
    """Return the Time to Live of a table, as DescribeTimeToLive answers. Raises StoreError."""
    where, asked = f"DescribeTimeToLive of {table.physical_name}", client.describe_time_to_live
    answer: Any = retries.ask(retrying, where, asked, TableName=table.physical_name)
    found: Mapping[str, Any] = answer.get("TimeToLiveDescription") or {}
    return found


def format_cli_options(client: DynamoDBClient) -> tuple[str, ...]:
    """Return the options that make the AWS CLI use the Region and endpoint of this client."""
    region = ("--region", client.meta.region_name)
    return region if aws.is_aws(client) else (*region, "--endpoint-url", client.meta.endpoint_url)


def list_time_to_live_problems(
    table: Table,
    name: str,
    found: Mapping[str, Any],
    harm: str = "expired items stay",
    options: Sequence[str] = (),
) -> tuple[TableProblem, ...]:
    """List the differences between a Time to Live as described and the attribute that is needed. `options` of the AWS
    CLI name the Region and endpoint of the table.
    """
    on = found.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    other = found.get("AttributeName")
    if on and other == name:
        return ()
    enable = _format_update_command(table, name, options, on=True)
    if not on:
        return (
            TableProblem(
                table.physical_name, f"its Time to Live on {name} is not on, so {harm}", f"Enable it: {enable}"
            ),
        )
    disable = _format_update_command(table, str(other), options, on=False)
    cure = f"Use {other} in the rules file, or disable it: {disable}, and an hour later enable the other one: {enable}"
    return (TableProblem(table.physical_name, f"its Time to Live is on {other} and not on {name}, so {harm}", cure),)


def _format_update_command(table: Table, name: str, options: Sequence[str], *, on: bool) -> str:
    """The command of the AWS CLI."""
    specification = json.dumps({"Enabled": on, "AttributeName": name})
    words = ("aws", "dynamodb", "update-time-to-live", "--table-name", table.physical_name)
    return f"`{shlex.join((*words, '--time-to-live-specification', specification, *options))}`"


def list_stream_arns(client: DynamoDBClient, tables: Iterable[Table]) -> dict[str, str | None]:
    """Return the ARN of the enabled stream of each table; None if it has none. Tries once: the caller asks again
    anyway.

    Raises StoreError.
    """
    once = retries.make_retry(attempts_max=1)
    found = {table.physical_name: describe_table(client, table, once) or {} for table in tables}
    return {name: it.get("LatestStreamArn") if _has_stream(it) else None for name, it in found.items()}


def _has_stream(description: Mapping[str, Any]) -> bool:
    return bool((description.get("StreamSpecification") or {}).get("StreamEnabled"))


def require_answer(client: DynamoDBClient, table: Table) -> None:
    """Check that DynamoDB answers, even with a refusal. Raises StoreError within seconds if nothing answers."""
    try:
        retries.make_retry(first=True)(client.describe_table, TableName=table.physical_name)
    except aws_errors.ERRORS as error:
        if aws_errors.describe_no_answer(error, client):
            raise aws_errors.make_store_error(error, "", client=client) from error


def _list_key_problems(table: Table, description: Mapping[str, Any]) -> Iterator[TableProblem]:
    found = _format_schema(description["KeySchema"], description)
    expected = _format_expected_key((table.partition,), table.key[1:])
    if found != expected:
        yield TableProblem(
            table.physical_name,
            f"its key is {found}, and the rules file says {expected}",
            "Correct `key` in the rules file: the key of a table cannot change",
        )


def _list_index_problems(
    table: Table, description: Mapping[str, Any], uses: Mapping[str, str]
) -> Iterator[TableProblem]:
    kinds = ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")  # either lists what the key says
    found = {index["IndexName"]: index for kind in kinds for index in description.get(kind) or ()}
    for name, use in uses.items():
        index = table.index(name)
        expected = _format_expected_key(index.partition, index.sort)
        if index.local and is_strong(description):
            continue  # `list_refused_features` names it
        if name not in found:
            missing = f"it has no index {name}, which {use}"
            cure = "A local index is made with its table only: make another table, or leave out local: true"
            yield TableProblem(
                table.physical_name, missing, cure if index.local else f"Create the index with {expected}"
            )
        elif (schema := _format_schema(found[name]["KeySchema"], description)) != expected:
            yield TableProblem(
                table.physical_name,
                f"index {name} has {schema}, and the rules file says {expected}",
                "Correct `indexes` in the rules file, or create an index with these keys",
            )


def _list_stream_problems(table: Table, description: Mapping[str, Any]) -> Iterator[TableProblem]:
    stream = description.get("StreamSpecification") or {}
    if not _has_stream(description):
        yield TableProblem(
            table.physical_name, "it has no stream, so changes would not be seen", f"Enable a stream with {IMAGES}"
        )
    elif stream.get("StreamViewType") != IMAGES:
        yield TableProblem(
            table.physical_name,
            f"its stream shows {stream.get('StreamViewType')}, and both images are needed",
            f"Disable the stream and enable it again with {IMAGES}: the view of a stream cannot change",
        )


def _format_schema(schema: list[dict[str, str]], description: Mapping[str, Any]) -> str:
    types = {entry["AttributeName"]: entry["AttributeType"] for entry in description["AttributeDefinitions"]}
    return _format_key((e["KeyType"], e["AttributeName"], types.get(e["AttributeName"], "?")) for e in schema)


def _format_expected_key(partition: tuple[KeyAttribute, ...], sort: tuple[KeyAttribute, ...]) -> str:
    kinds = {"HASH": partition, "RANGE": sort}
    return _format_key((kind, a.name, a.type) for kind, attributes in kinds.items() for a in attributes)


def _format_key(attributes: Iterable[tuple[str, str, str]]) -> str:
    """A key in words, of the kind, name and type of each attribute."""
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for kind, name, of_type in attributes:
        parts[kind].append(f"{name} ({of_type})")
    words = {"HASH": "partition key", "RANGE": "sort key"}
    return ", ".join(f"{part} {' + '.join(parts[kind])}" for kind, part in words.items() if parts[kind])
