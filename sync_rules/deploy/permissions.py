"""Computes the permissions of each function from the rules: actions, resources, and why.

Invariant: code needs each permission, which names the rule that the code needs it for. No other is granted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.resources import stream_arn
from sync_rules.rules.description import Moment, Operation, name_of
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
QUEUE_READ: Final = ("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
QUEUE_TAKE: Final = ("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage")
LOGS: Final = ("logs:CreateLogStream", "logs:PutLogEvents")

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
GET: Final = ("dynamodb:GetItem",)
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
    """All needs of the functions of a deployment."""
    return tuple(need for function in list_functions(deployment) for need in _of_function(deployment, function))


def _of_function(deployment: Deployment, function: str) -> Iterator[Need]:
    if function == WRITE:
        yield from _list_write_needs(deployment)
        return
    for rule in deployment.rules.rules.values():
        uses = [*rule.uses()]
        for use in (use for moment in WORK[function] for use in uses if use.moment is moment):
            resource = deployment.table_arn(use.table, f"/index/{use.index}" if use.index else "")
            yield from _each(function, (ACTIONS[use.operation], resource, use.why), rule.title)
        for way_out in OUTSIDE[function]:
            for grant in way_out(deployment, rule):
                yield from _each(function, grant, rule.title)
        if rule.calls and function in CALLING:
            itself = {"Fn::Sub": f"{LAMBDA}-{function}-*"}  # a role that named its function would wait for it
            # the answer has an environment: it is the caller's own
            looked_up = ("lambda:GetFunctionConfiguration",), itself, "when the rule was deployed"
            for grant in (*CALLING[function], looked_up):
                yield from _each(function, grant, rule.title)
    for grant in OWN[function]:
        yield from _each(function, grant, "")


def _each(function: str, grant: Grant, rule: str) -> Iterator[Need]:
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
            yield from _each(WRITE, grant, "")
    for rule in rules.rules.values():
        for use in rule.uses() if rule.swept_entities else ():
            if actions := IN_A_TRANSACTION.get(use.operation):
                resource = deployment.table_arn(use.table, f"/index/{use.index}" if use.index else "")
                yield from _each(WRITE, (actions, resource, use.why), rule.title)
    yield from _each(WRITE, _log(WRITE), "")


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
STATE_TABLE: Final = {"Fn::GetAtt": ["StateTable", "Arn"]}
LAMBDA: Final = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}"
CALLS: Final = {"Fn::Sub": "${Bucket.Arn}/calls/*"}


def archive_grants(deployment: Deployment, rule: Rule) -> Iterator[Grant]:
    """Objects in the bucket of an archive."""
    if rule.archive is not None:
        objects = deployment.fill(f"{rule.archive.bucket}/{rule.archive.prefix}*")
        whole = {"Fn::Sub": f"arn:${{AWS::Partition}}:s3:::{objects}"}
        yield ("s3:PutObject",), whole, f"a deleted {name_of(rule.source)}, as it last was"


def stream_grants(_deployment: Deployment, rule: Rule) -> Iterator[Grant]:
    """The streams of a rule's tables, for Lambda."""
    for table in dict.fromkeys(rule.streamed_tables):
        yield STREAM_READ, stream_arn(table), f"the changes of {table.name}"


def reread_grants(_deployment: Deployment, rule: Rule) -> Iterator[Grant]:
    """The same streams, for a batch that Lambda gave up without its records."""
    for table in dict.fromkeys(rule.streamed_tables):
        yield SPAN_READ, stream_arn(table), f"the changes of {table.name} in a batch that came without them"


def queue_grants(_deployment: Deployment, rule: Rule) -> Iterator[Grant]:
    """Messages to the fan-out queue."""
    if rule.calls:
        yield QUEUE_SEND, queue("FanoutQueue"), "calls that failed, to be made again"
    elif rule.swept_entities:
        yield QUEUE_SEND, queue("FanoutQueue"), "second looks, the rest of large fan-outs, what is parked"


OUTSIDE: Final[Mapping[str, tuple[Callable[[Deployment, Rule], Iterator[Grant]], ...]]] = {
    STREAM: (stream_grants, queue_grants, archive_grants),
    FANOUT: (queue_grants,),
    VERIFY: (),
    BACKFILL: (),
    REDRIVE: (reread_grants, queue_grants, archive_grants),
}

# ---------------------------------------------------------------- calls
NOTE_CALLS: Final[tuple[Grant, ...]] = (
    (ACTIONS[Operation.DESCRIBE], STATE_TABLE, "that the table can remember calls"),
    (PUT, STATE_TABLE, "a call is noted before it is made"),
    (UPDATE, STATE_TABLE, "a call is noted when it is done"),
    (DELETE, STATE_TABLE, "a call that failed may be made again"),
    (GET, STATE_TABLE, "since when the rule calls, and what it called under a former name"),
    (ACTIONS[Operation.SCAN], STATE_TABLE, "whether calls were made before their beginning was noted"),
    (("s3:PutObject",), CALLS, "calls too large for a message, and calls that were given up"),
)
FETCH_CALLS: Final[Grant] = ("s3:GetObject",), CALLS, "the change of such a call"
CALLING: Final[Mapping[str, tuple[Grant, ...]]] = {
    STREAM: NOTE_CALLS,
    FANOUT: (*NOTE_CALLS, FETCH_CALLS),
    REDRIVE: (*NOTE_CALLS, FETCH_CALLS),
}


# ---------------------------------------------------------------- the pipeline itself
def queue(name: str) -> Any:
    """The ARN of a queue of the template."""
    return {"Fn::GetAtt": [name, "Arn"]}


def _log(function: str) -> Grant:
    return LOGS, {"Fn::GetAtt": [function.replace("Function", "Logs"), "Arn"]}, "its log"


def _state(what: str) -> tuple[Grant, ...]:
    return (
        ((*READ, *PUT), STATE_TABLE, f"how far {what} is"),
        (DELETE, STATE_TABLE, f"what is known of a step of {what} that is done"),
    )


SEND: Final = ("sqs:SendMessage",)
BUCKET: Final = {"Fn::GetAtt": ["Bucket", "Arn"]}
GIVEN_UP: Final = {"Fn::Sub": "${Bucket.Arn}/aws/lambda/*"}
OWN: Final[Mapping[str, tuple[Grant, ...]]] = {
    STREAM: (
        _log(STREAM),
        (("dynamodb:ListStreams",), "*", "Lambda asks for it when it makes a mapping, and it knows no resources"),
        (SEND, queue("FailuresQueue"), "failure records"),
        (("s3:PutObject",), GIVEN_UP, "batches that Lambda gives up, with all records"),
        (("s3:ListBucket",), BUCKET, "Lambda asks for it where it puts such batches"),
        (READ, STATE_TABLE, "which rules are accepted"),
    ),
    FANOUT: (
        _log(FANOUT),
        (QUEUE_READ, queue("FanoutQueue"), "Lambda takes messages from the queue"),
        (("sqs:ChangeMessageVisibility",), queue("FanoutQueue"), "a message that failed comes again soon"),
        (SEND, queue("FailuresQueue"), "failure records"),
        (READ, STATE_TABLE, "which rules are accepted"),
    ),
    VERIFY: (
        _log(VERIFY),
        *_state("a verify"),
        (SEND, queue("AsyncDeadLetters"), "scheduled runs that failed"),
        (SEND, queue("FailuresQueue"), "failure records of items that --repair cannot repair"),
        (("s3:GetObject", "s3:PutObject"), {"Fn::Sub": "${Bucket.Arn}/reports/*"}, "its reports"),
    ),
    BACKFILL: (_log(BACKFILL), *_state("a backfill"), (SEND, queue("FailuresQueue"), "failure records")),
    REDRIVE: (
        _log(REDRIVE),
        ((*READ, *PUT), STATE_TABLE, "how far a redrive is"),
        (QUEUE_TAKE, queue("FanoutDeadLetters"), "messages that failed each time"),
        (QUEUE_TAKE, queue("FailuresQueue"), "failure records"),
        (SEND, queue("FailuresQueue"), "failure records that are new, or failed again"),
        (("s3:ListBucket",), BUCKET, "which batches Lambda gave up"),
        (("s3:DeleteObject", "s3:GetObject"), GIVEN_UP, "batches that Lambda gave up"),
    ),
}
