"""The roles of the functions, as CloudFormation resources: the needs of `permissions`, in few statements.

Invariant: a statement allows some actions on some resources, each by name; no action has a wildcard. The same rules
give the same text, so a difference in a role comes from a change in the rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.permissions import FUNCTIONS, Need, needs
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
GIVEN_CHARACTERS: Final = 32  # of a parameter without a default
NAMED_CHARACTERS: Final = 80  # of a resource that CloudFormation names, its ARN's other parts included
MARK: Final = re.compile(r"\$\{([^}]+)\}")
SORTS: Final = ("Tables", "Indexes", "Streams", "Queues", "Objects", "Buckets", "Functions", "Log")
WORDS: Final[Mapping[str, str]] = {
    "BatchGetItem": "Read", "GetItem": "Read", "Query": "Query", "Scan": "Scan", "PutItem": "Put",
    "UpdateItem": "Update", "PartiQLUpdate": "Update",
    "DeleteItem": "Delete", "ConditionCheckItem": "Check", "DescribeTable": "Describe",
    "DescribeStream": "Read",
    "GetRecords": "Read", "GetShardIterator": "Read", "ListStreams": "List", "SendMessage": "Send",
    "ReceiveMessage": "Receive", "DeleteMessage": "Receive", "GetQueueAttributes": "Receive",
    "ChangeMessageVisibility": "Receive", "PutObject": "Put", "GetObject": "Get", "DeleteObject": "Delete",
    "ListBucket": "List", "GetFunctionConfiguration": "Read", "CreateLogStream": "Write", "PutLogEvents": "Write",
}  # fmt: skip


@dataclass(frozen=True)
class Statement:
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


def role_of(function: str) -> str:
    """The logical id of a function's role."""
    return function.replace("Function", "Role")


def statements(deployment: Deployment) -> dict[str, tuple[Statement, ...]]:
    """The statements of each role, by its logical id."""
    found: dict[str, list[Need]] = {function: [] for function in FUNCTIONS}
    for need in needs(deployment):
        found[need.function].append(need)
    return {role_of(function): grouped(of_one) for function, of_one in found.items()}


def grouped(some: Iterable[Need]) -> tuple[Statement, ...]:
    """The needs of one function as statements: one for all resources with the same actions; each resource is in one
    statement only.
    """
    of_resource: dict[str, list[Need]] = {}
    for need in some:
        of_resource.setdefault(text_of(need.resource), []).append(need)
    together: dict[tuple[str, tuple[str, ...]], list[list[Need]]] = {}
    for name in sorted(of_resource):
        actions = tuple(sorted({need.action for need in of_resource[name]}))
        together.setdefault((_sort(name, actions), actions), []).append(of_resource[name])
    return tuple(
        Statement(
            sid="".join(dict.fromkeys(WORDS[action.partition(":")[2]] for action in actions)) + sort,
            actions=actions,
            resources=tuple(of_one[0].resource for of_one in resources),
            needs=tuple(need for of_one in resources for need in of_one),
        )
        for (sort, actions), resources in sorted(together.items(), key=lambda one: (SORTS.index(one[0][0]), one[0][1]))
    )


def text_of(resource: Any) -> str:
    """A resource as text, the same for the same resource."""
    return resource if isinstance(resource, str) else json.dumps(resource, sort_keys=True)


def _sort(resource: str, actions: tuple[str, ...]) -> str:
    """The sort of a statement's resources, for its name."""
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


def role_resources(deployment: Deployment) -> dict[str, Any]:
    """The roles as resources of a template, by their logical ids.

    Raises:
        UserError: when a role would be longer than IAM allows.
    """
    resources: dict[str, Any] = {}
    for role, some in statements(deployment).items():
        policy = {"Version": "2012-10-17", "Statement": [statement.body() for statement in some]}
        _require_short(role, policy, deployment)
        resources[role] = {
            "Type": "AWS::IAM::Role",
            "Properties": {
                "AssumeRolePolicyDocument": {
                    "Version": "2012-10-17",
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Principal": {"Service": "lambda.amazonaws.com"},
                            "Action": "sts:AssumeRole",
                        }
                    ],
                },
                "Policies": [{"PolicyName": "rules", "PolicyDocument": policy}],
            },
        }
    return resources


# ---------------------------------------------------------------- length
def _require_short(role: str, policy: Any, deployment: Deployment) -> None:
    long = {variable.parameter: variable.default or "x" * GIVEN_CHARACTERS for variable in deployment.variables}
    characters = len(json.dumps(_filled(policy, {**FILLED, **long}), separators=(",", ":")))
    if characters > ROLE_MAX_CHARACTERS:
        raise UserError(
            f"{role} would have {characters:,} characters, and IAM allows {ROLE_MAX_CHARACTERS:,} in the policies of a "
            f"role: {len(deployment.rules.rules)} rules on {len(deployment.rules.tables)} tables are too many for one "
            "deployment. Split the rules file, rules of the same tables together, and deploy each part by itself."
        )


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    """A value of about the length that CloudFormation will give it."""
    if isinstance(value, list):
        return [_filled(one, known) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"Fn::Sub"}:
        return MARK.sub(lambda match: known.get(match[1], "x" * NAMED_CHARACTERS), value["Fn::Sub"])
    if len(value) == 1 and next(iter(value)).startswith(("Fn::", "Ref")):
        return "x" * (NAMED_CHARACTERS + 40 * ("Fn::If" in value))
    return {name: _filled(one, known) for name, one in value.items()}
