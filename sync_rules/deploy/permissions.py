"""Computes the permissions of each function from the rules: actions, resources, and why.

Invariant: the code needs each permission, which names the rule that needs it. No other permission is granted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.files import read_part
from sync_rules.deploy.resources import make_stream_arn
from sync_rules.rules.description import Moment, Operation
from sync_rules.rules.rule import Rule

STREAM: Final = "StreamFunction"
FANOUT: Final = "FanoutFunction"
VERIFY: Final = "VerifyFunction"
BACKFILL: Final = "BackfillFunction"
REDRIVE: Final = "RedriveFunction"
WRITE: Final = "WriteFunction"  # there only where it is asked for
FUNCTIONS: Final = (STREAM, FANOUT, VERIFY, BACKFILL, REDRIVE)  # of every deployment

STREAM_READ: Final = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
SPAN_READ: Final = ("dynamodb:GetRecords", "dynamodb:GetShardIterator")
QUEUE_SEND: Final = ("sqs:GetQueueAttributes", "sqs:SendMessage")  # how large a message may be, and to send it

# A transaction has no permission of its own: it needs those of its parts.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
ACTIONS: Final[Mapping[Operation, tuple[str, ...]]] = {
    Operation.READ: ("dynamodb:BatchGetItem", "dynamodb:GetItem"),  # of one key it is GetItem
    Operation.QUERY: ("dynamodb:Query",),
    Operation.SCAN: ("dynamodb:Scan",),
    Operation.DESCRIBE: ("dynamodb:DescribeTable",),
    Operation.CHECK: ("dynamodb:ConditionCheckItem",),
    Operation.DELETE: ("dynamodb:DeleteItem",),
    Operation.PUT: ("dynamodb:PutItem",),
    Operation.UPDATE: ("dynamodb:UpdateItem",),
    Operation.UPDATES: ("dynamodb:PartiQLUpdate", "dynamodb:UpdateItem"),
}
READ: Final = ACTIONS[Operation.READ]
CHECK: Final = ACTIONS[Operation.CHECK]
PUT: Final = ACTIONS[Operation.PUT]
DELETE: Final = ACTIONS[Operation.DELETE]
UPDATE: Final = ACTIONS[Operation.UPDATE]
OWN_ITEMS: Final = (*READ, *CHECK, *PUT, *UPDATE, *DELETE)
# In the application's own transaction an update of an item that is not there yet is a put.
IN_A_TRANSACTION: Final[Mapping[Operation, tuple[str, ...]]] = {
    Operation.READ: (*READ, *CHECK),
    Operation.QUERY: ACTIONS[Operation.QUERY],
    Operation.CHECK: CHECK,
    Operation.DELETE: DELETE,
    Operation.PUT: PUT,
    Operation.UPDATE: (*UPDATE, *PUT),
    Operation.UPDATES: (*UPDATE, *PUT),
}


@dataclass(frozen=True)
class Need:
    """One action on one resource, a CloudFormation value, that a function needs. `rule` is the title of the rule that
    needs it, "" if it is the pipeline itself; `why` is for people.
    """

    function: str
    action: str
    resource: Any
    rule: str
    why: str


Grant = tuple[tuple[str, ...], Any, str]  # actions, resource, and why


def list_functions(deployment: Deployment) -> tuple[str, ...]:
    """The functions of a deployment, by their logical ids."""
    return (*FUNCTIONS, WRITE) if deployment.write else FUNCTIONS


def list_needs(deployment: Deployment) -> tuple[Need, ...]:
    return tuple(need for function in list_functions(deployment) for need in _list_function_needs(deployment, function))


def _list_function_needs(deployment: Deployment, function: str) -> Iterator[Need]:
    if function == WRITE:
        yield from _list_write_needs(deployment)
        return
    for rule in deployment.rules.rules.values():
        uses = [*rule.uses()]
        for use in (use for moment in WORK[function] for use in uses if use.moment is moment):
            resource = deployment.table_arn(use.table, f"/index/{use.index}" if use.index else "")
            yield from _list_action_needs(function, (ACTIONS[use.operation], resource, use.why), rule.title)
        for way_out in OUTSIDE[function]:
            for grant in way_out(deployment, rule):
                yield from _list_action_needs(function, grant, rule.title)
        if rule.calls and function in CALLING:
            itself = {"Fn::Sub": f"{LAMBDA}-{function}-*"}  # a role that named its function would wait for it
            # the answer has an environment: it is the caller's own
            looked_up = ("lambda:GetFunctionConfiguration",), itself, "when the rule was deployed"
            for grant in (*(one for name in CALLING[function] for one in read_part(name)), looked_up):
                yield from _list_action_needs(function, grant, rule.title)
    for grant in read_part("grants")[function]:
        yield from _list_action_needs(function, grant, "")


def _list_action_needs(function: str, grant: Grant, rule: str) -> Iterator[Need]:
    actions, resource, why = grant
    return (Need(function, action, resource, rule, why) for action in actions)


def _list_write_needs(deployment: Deployment) -> Iterator[Need]:
    """Yield the needs of the write function: its writes of the application's items, and the uses of rules. A
    transaction also checks the values that the function read.
    """
    rules = deployment.rules
    made = {entity.name for rule in rules.rules.values() for entity in rule.owned_entities}
    for entity in rules.entities.values():
        if entity.name not in made and "." not in entity.name:  # those of the pipeline have a dot in their names
            grant = (OWN_ITEMS, deployment.table_arn(entity.table), f"{entity.name}, which the application writes")
            yield from _list_action_needs(WRITE, grant, "")
    for rule in rules.rules.values():
        for use in rule.uses() if rule.swept_entities else ():
            if actions := IN_A_TRANSACTION.get(use.operation):
                resource = deployment.table_arn(use.table, f"/index/{use.index}" if use.index else "")
                yield from _list_action_needs(WRITE, (actions, resource, use.why), rule.title)
    yield from (need for grant in read_part("grants")[WRITE] for need in _list_action_needs(WRITE, grant, ""))


# The uses that each function makes of tables. A stream record contains the image of a target, a message only its key; a
# backfill scans the images; only a record or a message of a source lists and deletes targets. Verify writes with
# --repair. With a limit the stream handler reads what it writes; no other function writes what it has not read.
WORK: Final[Mapping[str, tuple[Moment, ...]]] = {
    STREAM: (Moment.CHECKED, Moment.HINTED, Moment.PRICED, Moment.LISTED, Moment.WRITTEN, Moment.DELETED),
    FANOUT: (Moment.CHECKED, Moment.BY_KEY, Moment.LISTED, Moment.WRITTEN, Moment.DELETED),
    VERIFY: (Moment.DESCRIBED, Moment.SCANNED, Moment.CHECKED, Moment.BY_KEY, Moment.WRITTEN),
    BACKFILL: (Moment.DESCRIBED, Moment.SCANNED, Moment.CHECKED, Moment.WRITTEN),
    REDRIVE: (Moment.CHECKED, Moment.BY_KEY, Moment.LISTED, Moment.WRITTEN, Moment.DELETED),
}

# ---------------------------------------------------------------- outside the tables
LAMBDA: Final = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}"
FANOUT_QUEUE: Final = {"Fn::GetAtt": ["FanoutQueue", "Arn"]}
CALLING: Final = {STREAM: ("calls",), FANOUT: ("calls", "fetched-calls"), REDRIVE: ("calls", "fetched-calls")}


def list_stream_grants(_deployment: Deployment, rule: Rule) -> Iterator[Grant]:
    """List the grants that let Lambda read the streams of a rule's tables."""
    for table in dict.fromkeys(rule.streamed_tables):
        yield STREAM_READ, make_stream_arn(table), f"the changes of {table.name}"


def list_reread_grants(_deployment: Deployment, rule: Rule) -> Iterator[Grant]:
    """List the grants to read the same streams again, for a batch that Lambda gave up without its records."""
    for table in dict.fromkeys(rule.streamed_tables):
        yield SPAN_READ, make_stream_arn(table), f"the changes of {table.name} in a batch that came without them"


def list_queue_grants(_deployment: Deployment, rule: Rule) -> Iterator[Grant]:
    """List the grants to send messages to the fan-out queue."""
    if rule.calls:
        yield QUEUE_SEND, FANOUT_QUEUE, "calls that failed, to be made again"
    elif rule.swept_entities:
        yield QUEUE_SEND, FANOUT_QUEUE, "second looks, the rest of large fan-outs, what is parked"


OUTSIDE: Final[Mapping[str, tuple[Callable[[Deployment, Rule], Iterator[Grant]], ...]]] = {
    STREAM: (list_stream_grants, list_queue_grants),
    FANOUT: (list_queue_grants,),
    VERIFY: (),
    BACKFILL: (),
    REDRIVE: (list_reread_grants, list_queue_grants),
}
