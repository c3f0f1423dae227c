"""What each function of the pipeline must be allowed to do, computed from the rules: actions, resources, and why.

Law: a permission is here because code asks for it, and it names the rule for which it does; what no rule and no part
of the pipeline asks for is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sync_rules.deploy.deployment import Deployment
from sync_rules.deploy.resources import stream_arn
from sync_rules.deploy.uses import (
    DELETE,
    DESCRIBE,
    PUT,
    READ,
    UPDATE,
    Use,
    deleted,
    described,
    hinted,
    judged,
    listed,
    looked_at,
    name_of,
    priced,
    scanned,
    written,
)
from sync_rules.rules.kinds.archive import ArchiveRule
from sync_rules.rules.kinds.call import CallRule
from sync_rules.rules.rule import EffectRule, Rule

STREAM: Final = "StreamFunction"
FANOUT: Final = "FanoutFunction"
VERIFY: Final = "VerifyFunction"
BACKFILL: Final = "BackfillFunction"
REDRIVE: Final = "RedriveFunction"
FUNCTIONS: Final = (STREAM, FANOUT, VERIFY, BACKFILL, REDRIVE)

STREAM_READ: Final = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
SPAN_READ: Final = ("dynamodb:GetRecords", "dynamodb:GetShardIterator")
QUEUE_READ: Final = ("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
QUEUE_TAKE: Final = ("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage")
LOGS: Final = ("logs:CreateLogStream", "logs:PutLogEvents")


@dataclass(frozen=True)
class Need:
    """One action on one resource, a CloudFormation value, that a function needs. `rule` is the title of the rule that
    asks for it, "" where it is the pipeline itself; `why` is for people.
    """

    function: str
    action: str
    resource: Any
    rule: str
    why: str


def needs(deployment: Deployment) -> tuple[Need, ...]:
    """Everything that the functions of a deployment need."""
    return tuple(need for function in FUNCTIONS for need in _of_function(deployment, function))


def _of_function(deployment: Deployment, function: str) -> Iterator[Need]:
    for rule in deployment.rules.rules.values():
        for way in WORK[function]:
            for use in way(rule):
                resource = deployment.table_arn(use.table, f"/index/{use.index}" if use.index else "")
                for action in use.actions:
                    yield Need(function, action, resource, rule.title, use.why)
        for way_out in OUTSIDE[function]:
            for actions, resource, why in way_out(deployment, rule):
                for action in actions:
                    yield Need(function, action, resource, rule.title, why)
    for actions, resource, why in OWN[function](deployment):
        for action in actions:
            yield Need(function, action, resource, "", why)


# Which of this each function does. A stream's record brings the image of a target, a message its key only; a backfill
# scans the images; only a record or a message of a source lists, and deletes. Verify writes when it is asked to repair.
# A limit makes the stream handler look at what it writes: no other one writes what it has not read.
WORK: Final[Mapping[str, tuple[Callable[[Rule], Iterator[Use]], ...]]] = {
    STREAM: (judged, hinted, priced, listed, written, deleted),
    FANOUT: (judged, looked_at, listed, written, deleted),
    VERIFY: (described, scanned, judged, looked_at, written),
    BACKFILL: (described, scanned, judged, written),
    REDRIVE: (judged, looked_at, listed, written, deleted),
}

# ---------------------------------------------------------------- outside the tables
Granted = Iterator[tuple[tuple[str, ...], Any, str]]
STATE_TABLE: Final = {"Fn::GetAtt": ["StateTable", "Arn"]}


def archived(deployment: Deployment, rule: Rule) -> Granted:
    """Objects in the bucket of an archive."""
    if isinstance(rule, ArchiveRule):
        whole = {"Fn::Sub": f"arn:${{AWS::Partition}}:s3:::{_filled(deployment, f'{rule.bucket}/{rule.prefix}')}*"}
        yield ("s3:PutObject",), whole, f"a deleted {name_of(rule.source)}, as it last was"


def called(_deployment: Deployment, rule: Rule) -> Granted:
    """The memory of the calls that were made."""
    if isinstance(rule, CallRule):
        yield DESCRIBE, STATE_TABLE, "that the table can remember calls"
        yield PUT, STATE_TABLE, "a call is noted before it is made"
        yield UPDATE, STATE_TABLE, "a call is noted when it is done"
        yield DELETE, STATE_TABLE, "a call that failed may be made again"


def streamed(_deployment: Deployment, rule: Rule) -> Granted:
    """The streams of the tables whose records a rule must see, as Lambda reads them."""
    for table in dict.fromkeys(rule.streamed):
        yield STREAM_READ, stream_arn(table), f"the changes of {table.name}"


def reread(_deployment: Deployment, rule: Rule) -> Granted:
    """The same streams, for a batch that was given up without its records."""
    for table in dict.fromkeys(rule.streamed):
        yield SPAN_READ, stream_arn(table), f"the changes of {table.name} in a batch that came without them"


def sent_later(_deployment: Deployment, rule: Rule) -> Granted:
    """Messages to the fan-out queue."""
    if isinstance(rule, CallRule):
        yield ("sqs:SendMessage",), queue("FanoutQueue"), "calls that failed, to be made again"
    elif not isinstance(rule, EffectRule):
        yield ("sqs:SendMessage",), queue("FanoutQueue"), "second looks, the rest of large fan-outs, what is parked"


OUTSIDE: Final[Mapping[str, tuple[Callable[[Deployment, Rule], Granted], ...]]] = {
    STREAM: (streamed, sent_later, archived, called),
    FANOUT: (sent_later, called),
    VERIFY: (),
    BACKFILL: (),
    REDRIVE: (reread, sent_later, archived, called),
}


# ---------------------------------------------------------------- the pipeline itself
def queue(name: str) -> Any:
    """The ARN of a queue of the template."""
    return {"Fn::GetAtt": [name, "Arn"]}


def _filled(deployment: Deployment, text: str) -> str:
    filled = deployment.text(text)
    return filled if isinstance(filled, str) else str(filled["Fn::Sub"])


def _own(function: str) -> Granted:
    """What every function does."""
    yield LOGS, {"Fn::GetAtt": [function.replace("Function", "Logs"), "Arn"]}, "its log"


def _stream(deployment: Deployment) -> Granted:  # noqa: ARG001 -- as the others
    yield from _own(STREAM)
    yield ("dynamodb:ListStreams",), "*", "Lambda asks for it when it makes a mapping, and it knows no resources"
    yield ("sqs:SendMessage",), queue("FailuresQueue"), "failure records"
    yield ("s3:PutObject",), {"Fn::Sub": "${Bucket.Arn}/aws/lambda/*"}, "batches that Lambda gives up, with all records"
    yield ("s3:ListBucket",), {"Fn::GetAtt": ["Bucket", "Arn"]}, "Lambda asks for it where it puts such batches"


def _fanout(deployment: Deployment) -> Granted:  # noqa: ARG001 -- as the others
    yield from _own(FANOUT)
    yield QUEUE_READ, queue("FanoutQueue"), "Lambda takes messages from the queue"
    yield ("sqs:ChangeMessageVisibility",), queue("FanoutQueue"), "a message that failed comes again soon"
    yield ("sqs:SendMessage",), queue("FailuresQueue"), "failure records"


def _verify(deployment: Deployment) -> Granted:  # noqa: ARG001 -- as the others
    yield from _own(VERIFY)
    yield from _kept("a verify")
    yield ("sqs:SendMessage",), queue("AsyncDeadLetters"), "scheduled runs that failed"
    yield ("sqs:SendMessage",), queue("FailuresQueue"), "failure records of what --repair cannot mend"
    yield ("s3:GetObject", "s3:PutObject"), {"Fn::Sub": "${Bucket.Arn}/reports/*"}, "its reports"


def _backfill(deployment: Deployment) -> Granted:  # noqa: ARG001 -- as the others
    yield from _own(BACKFILL)
    yield from _kept("a backfill")
    yield ("sqs:SendMessage",), queue("FailuresQueue"), "failure records"


def _kept(what: str) -> Granted:
    yield (*READ, *PUT), STATE_TABLE, f"how far {what} is"
    yield DELETE, STATE_TABLE, f"what is known of a step of {what} that is done"


def _redrive(deployment: Deployment) -> Granted:  # noqa: ARG001 -- as the others
    yield from _own(REDRIVE)
    yield (*READ, *PUT), STATE_TABLE, "how far a redrive is"
    yield QUEUE_TAKE, queue("FanoutDeadLetters"), "messages that nobody could handle"
    yield QUEUE_TAKE, queue("FailuresQueue"), "failure records"
    yield ("sqs:SendMessage",), queue("FailuresQueue"), "failure records that are new, or failed again"
    yield ("s3:ListBucket",), {"Fn::GetAtt": ["Bucket", "Arn"]}, "which batches Lambda gave up"
    yield ("s3:DeleteObject", "s3:GetObject"), {"Fn::Sub": "${Bucket.Arn}/aws/lambda/*"}, "batches that Lambda gave up"


OWN: Final[Mapping[str, Callable[[Deployment], Granted]]] = {
    STREAM: _stream,
    FANOUT: _fanout,
    VERIFY: _verify,
    BACKFILL: _backfill,
    REDRIVE: _redrive,
}
