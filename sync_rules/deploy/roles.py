"""The roles of the functions, as CloudFormation resources: the needs of `permissions`, in few statements.

Invariant: a statement allows some actions on some resources, each by name; no action has a wildcard. The same rules
give the same text, so a difference in a role comes from a change in the rules.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from sync_rules.deploy import files
from sync_rules.deploy.deployment import Deployment, Variable
from sync_rules.deploy.permissions import Need, list_functions, list_needs
from sync_rules.model.errors import UserError

# For all inline policies of a role together, without white space.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
ROLE_MAX_CHARACTERS: Final = 10_240
# Values of the assumed length for names that CloudFormation fills in later.
FILLED: Final[Mapping[str, str]] = {
    "AWS::Partition": "aws",
    "AWS::Region": "ap-southeast-2",
    "AWS::AccountId": "1" * 12,
}
GIVEN_CHARACTERS: Final = 32  # that a parameter without a default has room for
TABLE_NAME_MAX: Final = 255
NAMED_CHARACTERS: Final = 80  # of a resource that CloudFormation names, its ARN's other parts included
PIPELINE: Final = "the pipeline"  # in place of a rule where the pipeline itself needs a permission
MARK: Final = re.compile(r"\$\{([^}]+)\}")
SORTS: Final = ("Tables", "Indexes", "Streams", "Queues", "Objects", "Buckets", "Functions", "Log")
WORDS: Final[Mapping[str, str]] = {
    "BatchGetItem": "Read", "GetItem": "Read", "Query": "Query", "Scan": "Scan", "PutItem": "Put",
    "UpdateItem": "Update", "PartiQLUpdate": "Update",
    "DeleteItem": "Delete", "ConditionCheckItem": "Check", "DescribeTable": "Describe",
    "DescribeStream": "Read",
    "GetRecords": "Read", "GetShardIterator": "Read", "ListStreams": "List", "SendMessage": "Send",
    "ReceiveMessage": "Receive", "DeleteMessage": "Receive", "GetQueueAttributes": "Describe",
    "ChangeMessageVisibility": "Receive", "PutObject": "Put", "GetObject": "Get", "DeleteObject": "Delete",
    "ListBucket": "List", "GetFunctionConfiguration": "Read", "CreateLogStream": "Write", "PutLogEvents": "Write",
}  # fmt: skip


@dataclass(frozen=True)
class PolicyStatement:
    """One statement of a policy: all of these actions on each of these resources, and the needs behind it."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[Any, ...]
    needs: tuple[Need, ...]

    def body(self) -> dict[str, Any]:
        """The statement in IAM's form."""
        return {
            "Sid": self.sid, "Effect": "Allow", "Action": list(self.actions), "Resource": list(self.resources),
        }  # fmt: skip


def format_role_id(function: str) -> str:
    """Return the logical id of a function's role."""
    return function.replace("Function", "Role")


def list_statements(deployment: Deployment) -> dict[str, tuple[PolicyStatement, ...]]:
    """Return the statements of each role, by its logical id."""
    found: dict[str, list[Need]] = {function: [] for function in list_functions(deployment)}
    for need in list_needs(deployment):
        found[need.function].append(need)
    return {format_role_id(function): group_needs(of_one) for function, of_one in found.items()}


def group_needs(some: Iterable[Need]) -> tuple[PolicyStatement, ...]:
    """Group the needs of one function into statements: one for all resources with the same actions. Each resource is in
    one statement only.
    """
    of_resource: dict[str, list[Need]] = {}
    for need in some:
        of_resource.setdefault(format_resource(need.resource), []).append(need)
    together: dict[tuple[str, tuple[str, ...]], list[list[Need]]] = {}
    for name in sorted(of_resource):
        actions = tuple(sorted({need.action for need in of_resource[name]}))
        together.setdefault((_choose_sort(name, actions), actions), []).append(of_resource[name])
    return tuple(
        PolicyStatement(
            sid="".join(dict.fromkeys(WORDS[action.partition(":")[2]] for action in actions)) + sort,
            actions=actions,
            resources=tuple(of_one[0].resource for of_one in resources),
            needs=tuple(need for of_one in resources for need in of_one),
        )
        for (sort, actions), resources in sorted(together.items(), key=lambda one: (SORTS.index(one[0][0]), one[0][1]))
    )


def format_resource(resource: Any) -> str:
    """Return a resource as text; equal resources give equal text."""
    return resource if isinstance(resource, str) else json.dumps(resource, sort_keys=True)


def _choose_sort(resource: str, actions: tuple[str, ...]) -> str:
    service = actions[0].partition(":")[0]
    if service == "dynamodb":
        if any(action.endswith(("Stream", "Streams", "Records", "Iterator")) for action in actions):
            return "Streams"
        return "Indexes" if "/index/" in resource else "Tables"
    return {
        "sqs": "Queues",
        "s3": "Objects" if resource.endswith('*"}') else "Buckets",
        "logs": "Log",
        "lambda": "Functions",
    }[service]


def compute_value_limits(deployment: Deployment) -> dict[str, int]:
    """Return the greatest length of each variable's parameter. It keeps names within AWS's limits and the policies of
    every role within IAM's. So CloudFormation refuses a longer value before IAM does.
    """
    policies = [make_policy(some) for some in list_statements(deployment).values()]
    least = {variable.parameter: len(variable.default or "x" * GIVEN_CHARACTERS) for variable in deployment.variables}
    most = {
        one.parameter: max(least[one.parameter], _compute_name_limit(deployment, one)) for one in deployment.variables
    }

    def limits(most_characters: int) -> dict[str, int]:
        return {name: max(least[name], min(most[name], most_characters)) for name in most}

    def too_long(most_characters: int) -> bool:
        lengths = limits(most_characters)
        return any(_count_characters(policy, lengths) > ROLE_MAX_CHARACTERS for policy in policies)

    caps = range(max(most.values(), default=0) + 1)
    return limits(bisect_left(caps, 1, key=lambda cap: int(too_long(cap))) - 1)


def _compute_name_limit(deployment: Deployment, variable: Variable) -> int:
    """The longest value with which every table name that holds it is one that AWS takes."""
    found = [TABLE_NAME_MAX]
    for table in deployment.rules.tables.values():
        if times := table.physical_name.count(variable.mark):
            others = reduce(lambda text, other: text.replace(other.mark, ""), deployment.variables, table.physical_name)
            found.append((TABLE_NAME_MAX - len(others)) // times)
    return min(found)


def make_policy(some: Iterable[PolicyStatement]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [statement.body() for statement in some]}


def make_roles(deployment: Deployment) -> dict[str, Any]:
    """Make the roles as resources of a template, by their logical ids.

    Raises:
        UserError: if a role would be longer than IAM allows.
    """
    resources: dict[str, Any] = {}
    lengths = compute_value_limits(deployment)
    for role, some in list_statements(deployment).items():
        policy = make_policy(some)
        _require_short(role, policy, deployment, lengths)
        resources[role] = files.read_part("role")
        resources[role]["Properties"]["Policies"][0]["PolicyDocument"] = policy
    return resources


# ---------------------------------------------------------------- length
def _require_short(role: str, policy: Any, deployment: Deployment, lengths: Mapping[str, int]) -> None:
    characters = _count_characters(policy, lengths)
    if characters > ROLE_MAX_CHARACTERS:
        raise UserError(
            f"{role} would have {characters:,} characters, and IAM allows {ROLE_MAX_CHARACTERS:,} in the policies of a "
            f"role: {len(deployment.rules.rules)} rules on {len(deployment.rules.tables)} tables are too many for one "
            "deployment. Split the rules file, rules of the same tables together, and deploy each part by itself."
        )


def _count_characters(policy: Any, lengths: Mapping[str, int]) -> int:
    values = {name: "x" * length for name, length in lengths.items()}
    return len(json.dumps(_fill_names(policy, {**FILLED, **values}), separators=(",", ":")))


def _fill_names(value: Any, known: Mapping[str, str]) -> Any:
    """A value of about the length that CloudFormation will give it."""
    if isinstance(value, list):
        return [_fill_names(one, known) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"Fn::Sub"}:
        return MARK.sub(lambda match: known.get(match[1], "x" * NAMED_CHARACTERS), value["Fn::Sub"])
    if len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref")):
        return "x" * (NAMED_CHARACTERS + 40 * ("Fn::If" in value))
    return {name: _fill_names(one, known) for name, one in value.items()}


# ---------------------------------------------------------------- for people
def describe_roles(deployment: Deployment, *, explain: bool) -> Iterator[str]:
    """Describe the statements of each role, line by line; with `explain`, the reasons below each resource."""
    for role, some in list_statements(deployment).items():
        yield role
        for statement in some:
            yield f"  {statement.sid}: {', '.join(statement.actions)}"
            for resource in statement.resources:
                yield f"    {shorten_name(resource)}"
                yield from _describe_reasons(statement, resource) if explain else ()
        yield ""


def _describe_reasons(statement: PolicyStatement, resource: Any) -> Iterator[str]:
    """One line for each reason to use a resource: the rule, why, and the actions."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for need in statement.needs:
        if format_resource(need.resource) == format_resource(resource):
            actions = reasons.setdefault((need.rule or PIPELINE, need.why), [])
            actions += [] if need.action in actions else [need.action]
    for (who, why), actions in reasons.items():
        yield f"      {who}: {why} ({', '.join(action.partition(':')[2] for action in actions)})"


def shorten_name(resource: Any) -> str:
    """Return a resource in a few words: the name of a table, not its whole ARN."""
    match resource:
        case {"Fn::Sub": str(text)}:
            name = text.partition(":table/")[2] or text.partition(":s3:::")[2] or text
            return f"{'table' if ':table/' in text else 'objects'} {name.replace('.Arn}', '}')}"
        case {"Fn::If": [_, {"Fn::GetAtt": [table, _]}, _]}:
            return f"stream of {str(table).removesuffix('Table')}"
        case {"Fn::GetAtt": [name, _]}:
            return str(name)
    return "any" if resource == "*" else str(resource)
