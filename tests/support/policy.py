"""IAM's decision on a request, for the statements of the template; and clients that are held to it.

Invariant: exact, and for the statements used here only: statements that allow, actions without wildcards, resources
whose only wildcard is `*`. Anything else, such as an unknown operation, is an error and never allowed.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.exceptions import ClientError

REGION: Final = "us-east-1"
ACCOUNT: Final = "000000000000"
MARK: Final = re.compile(r"\$\{([^}]+)\}")
Pair = tuple[str, str]  # an action, and a resource as a statement names it


def arn(service: str, name: str) -> str:
    """The ARN of something in the account."""
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{name}"


# ---------------------------------------------------------------- policies
def resolved(value: Any, given: Mapping[str, str]) -> str:
    """A CloudFormation value, where `given` has parameters, pseudo parameters, attributes as `X.Arn`, and conditions.
    A condition that is "" does not hold.
    """
    match value:
        case str(text):
            return text
        case {"Ref": name}:
            return given[name]
        case {"Fn::GetAtt": [name, attribute]}:
            return given[f"{name}.{attribute}"]
        case {"Fn::Sub": str(text)}:
            return MARK.sub(lambda match: given[match[1]], text)
        case {"Fn::If": [condition, yes, no]}:
            return resolved(yes if given[condition] else no, given)
    raise AssertionError(f"{value} is no value that is known here")


def pairs_of(policy: Mapping[str, Any], given: Mapping[str, str]) -> frozenset[Pair]:
    """All that a policy allows, each action on each resource."""
    found: set[Pair] = set()
    for statement in policy["Statement"]:
        assert statement.keys() == {"Sid", "Effect", "Action", "Resource"}, f"{statement} says something else too"
        assert statement["Effect"] == "Allow", "what is denied is not known here"
        assert not any("*" in action or "?" in action for action in statement["Action"]), "an action with a wildcard"
        found |= {(action, resolved(one, given)) for action in statement["Action"] for one in statement["Resource"]}
    return frozenset(found)


def matches(pattern: str, resource: str) -> bool:
    """Match the resource of a statement, with `*` as wildcard, against an ARN."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), resource, re.DOTALL) is not None


# ---------------------------------------------------------------- requests
TRANSACTED: Final = {
    "ConditionCheck": "ConditionCheckItem", "Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem",
    "Get": "GetItem",
}  # fmt: skip
STATEMENT: Final = re.compile(
    r'\s*(UPDATE|INSERT\s+INTO|DELETE\s+FROM|SELECT\b.*?\bFROM)\s+"([^"]+)"', re.IGNORECASE | re.DOTALL
)
ALIASES: Final = {  # operations whose permission has another name
    "SendMessageBatch": "SendMessage", "DeleteMessageBatch": "DeleteMessage", "ListObjectsV2": "ListBucket",
    "ChangeMessageVisibilityBatch": "ChangeMessageVisibility", "HeadBucket": "ListBucket", "HeadObject": "GetObject",
}  # fmt: skip
NO_RESOURCE: Final = frozenset({"ListStreams", "ListTables", "ListQueues", "GetMetricStatistics"})


def asked(service: str, operation: str, parameters: Mapping[str, Any]) -> Iterator[Pair]:
    """The actions that a request needs, each with the resource that it is about."""
    if operation in NO_RESOURCE:
        yield f"{service}:{operation}", "*"
    elif operation in SEVERAL:
        yield from SEVERAL[operation](parameters)
    else:
        name = next((name for name in ABOUT if name in parameters), None)
        assert name is not None, f"what does {service}:{operation} need?"
        yield f"{service}:{ALIASES.get(operation, operation)}", ABOUT[name](parameters)


def _transacted(parameters: Mapping[str, Any]) -> Iterator[Pair]:
    for action in parameters["TransactItems"]:
        ((verb, body),) = action.items()
        yield f"dynamodb:{TRANSACTED[verb]}", table_arn(body["TableName"])


def _stated(parameters: Mapping[str, Any]) -> Iterator[Pair]:
    for statement in parameters.get("Statements", parameters.get("TransactStatements", [parameters])):
        found = STATEMENT.match(statement["Statement"])
        assert found is not None, "a statement that is not known here"
        yield f"dynamodb:PartiQL{found[1].split()[0].capitalize()}", table_arn(found[2])


def _table(parameters: Mapping[str, Any]) -> str:
    index = parameters.get("IndexName")
    return table_arn(parameters["TableName"]) + (f"/index/{index}" if index else "")


def _object(parameters: Mapping[str, Any]) -> str:
    key = parameters.get("Key")
    return f"arn:aws:s3:::{parameters['Bucket']}" + (f"/{key}" if key else "")


SEVERAL: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterable[Pair]]]] = {
    "BatchGetItem": lambda p: [("dynamodb:BatchGetItem", table_arn(table)) for table in p["RequestItems"]],
    "BatchWriteItem": lambda p: [("dynamodb:BatchWriteItem", table_arn(table)) for table in p["RequestItems"]],
    "TransactWriteItems": _transacted,
    "TransactGetItems": _transacted,
    "ExecuteStatement": _stated,
    "BatchExecuteStatement": _stated,
    "ExecuteTransaction": _stated,
}
ABOUT: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "TableName": _table,
    "StreamArn": lambda p: str(p["StreamArn"]),
    "QueueUrl": lambda p: arn("sqs", p["QueueUrl"].rpartition("/")[2]),
    "Bucket": _object,
    "FunctionName": lambda p: arn("lambda", f"function:{p['FunctionName']}"),
}


def table_arn(name: str) -> str:
    """The ARN of a table, which may be named by it."""
    return name if name.startswith("arn:") else arn("dynamodb", f"table/{name}")


def refusal(service: str, operation: str, role: str, pair: Pair) -> ClientError:
    """The error that a service answers with."""
    status = 400 if service == "dynamodb" else 403
    code = "AccessDeniedException" if service in ("dynamodb", "lambda") else "AccessDenied"
    message = f"User: {role} is not authorized to perform: {pair[0]} on resource: {pair[1]}"
    answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, operation)  # type: ignore[arg-type]


# ---------------------------------------------------------------- clients
@dataclass
class Guard:
    """Holds clients to the policies of the acting role.

    `used` collects the policy pairs that were needed, `denied` the requests that were not allowed. Without a role the
    client is the application, which may do anything.
    """

    policies: Mapping[str, frozenset[Pair]]
    role: str = ""
    used: set[tuple[str, Pair]] = field(default_factory=set)
    denied: list[tuple[str, Pair]] = field(default_factory=list)
    _iterators: dict[str, str] = field(default_factory=dict)  # whose stream each is of

    @contextmanager
    def acting(self, role: str) -> Iterator[None]:
        """Make all requests inside the block as a role."""
        before, self.role = self.role, role
        try:
            yield
        finally:
            self.role = before

    def require(self, pair: Pair, operation: str = "?") -> None:
        """Raise ClientError, as the service would, unless the acting role may do this."""
        if not self.role:
            return
        action, resource = pair
        allowing = [one for one in self.policies[self.role] if one[0] == action and matches(one[1], resource)]
        if not allowing:
            self.denied.append((self.role, pair))
            raise refusal(action.partition(":")[0], operation, self.role, pair)
        self.used.update((self.role, one) for one in allowing)

    @contextmanager
    def watching(self, *clients: Any) -> Iterator[None]:
        """Hold these clients to it, for a while."""
        hooks = {"provide-client-params": self._before, "after-call": self._after}
        for client in clients:
            for event, hook in hooks.items():
                client.meta.events.register(event, hook, unique_id=f"guard-{event}")
        try:
            yield
        finally:
            for client in clients:
                for event, hook in hooks.items():
                    client.meta.events.unregister(event, hook, unique_id=f"guard-{event}")

    def _before(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        service = str(model.service_model.signing_name)
        if model.name == "GetRecords":
            params = {"StreamArn": self._iterators[params["ShardIterator"]]}
        for pair in asked(service, model.name, params):
            self.require(pair, model.name)
        self._stream = params.get("StreamArn", "")

    def _after(self, parsed: Mapping[str, Any], model: Any, **_: Any) -> None:
        if model.name in ("GetShardIterator", "GetRecords"):
            for name in ("ShardIterator", "NextShardIterator"):
                if parsed.get(name):
                    self._iterators[parsed[name]] = self._stream


SAME = {f"dynamodb:{name}": "read" for name in ("GetItem", "BatchGetItem")}
SAME |= {f"dynamodb:{name}": "update" for name in ("UpdateItem", "PartiQLUpdate")}


def together(pairs: Iterable[Pair]) -> dict[frozenset[Pair], Pair]:
    """Pairs by what they permit: to read an item by its key is one permission, whether one or several are asked for, and so is to update one."""
    found: dict[tuple[str, str], set[Pair]] = {}
    for action, resource in pairs:
        name = SAME.get(action, action)
        found.setdefault((name, resource), set()).add((action, resource))
    return {frozenset(some): min(some) for some in found.values()}
