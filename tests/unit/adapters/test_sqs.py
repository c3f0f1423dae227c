"""The queue, the failure sink and queues of what failed on SQS (moto, single-threaded)."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from sync_rules.adapters import aws, retries, sqs
from sync_rules.adapters.sqs import (
    AGAIN_FIRST_SECONDS,
    MESSAGE_MAX_BYTES,
    FailedMessages,
    Receipts,
    SqsFailures,
    SqsQueue,
    require_queue_url,
)
from sync_rules.jobs.redrive.redriver import Redriver
from sync_rules.model.errors import StoreError, UserError
from sync_rules.model.items import Change, Failure, ItemKey
from sync_rules.model.limits import DELAY_MAX_SECONDS
from sync_rules.model.writes import Result, Status
from sync_rules.pipeline.messages import CallMessage, PullMessage, format_message
from tests.support import every_kind
from tests.support.builders import s
from tests.support.worlds import Scene
from tests.unit.adapters.test_dynamodb import OK, Client, failed

KEY = ItemKey("shop", (("PK", "S", "USER#1"), ("SK", "B", b"\x00\xff")))


@pytest.fixture
def client(moto):
    return moto("sqs")


@pytest.fixture
def queue_url(client) -> str:
    return client.create_queue(QueueName="later")["QueueUrl"]


def received(client, queue_url):
    return [m["Body"] for m in client.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10).get("Messages", [])]


def call(length: int) -> CallMessage:
    """A call whose image holds so much text."""
    return CallMessage("r", "f.g", Change(KEY, {"B": {"B": b"\xff"}, "S": {"S": "x" * length}}, None, "1"))


@pytest.mark.parametrize(("asked", "given"), [(0, 0), (60, 60), (900, 900), (5000, 900)])
def test_queue_delays_at_most_900_seconds(asked, given):
    """The limit of SQS; a look may come early, never not at all."""
    client = Mock()
    SqsQueue(client, "http://127.0.0.1/later").send(PullMessage(KEY), asked)
    assert client.send_message.call_args.kwargs["DelaySeconds"] == given


def test_queue_that_is_missing_raises(client):
    """A StoreError that names the queue: the record that asked for it is reported as failed."""
    with pytest.raises(StoreError, match="QueueNotFound: queue nowhere"):
        SqsQueue(client, "https://sqs.us-east-1.amazonaws.com/123456789012/nowhere").send(PullMessage(KEY), 0)


def test_queue_refuses_what_is_too_large(client, queue_url):
    """A call with large images is sent up to the limit of SQS; beyond it, MessageTooLarge, and its record is reported."""
    queue = SqsQueue(client, queue_url)
    largest = MESSAGE_MAX_BYTES - len(format_message(call(0)))
    with pytest.raises(StoreError, match="MessageTooLarge"):
        queue.send(call(largest + 1), 0)
    queue.send(call(largest), 0)
    assert len(received(client, queue_url)) == 1


@pytest.mark.parametrize("allowed", [True, False])
def test_queue_that_takes_less_than_sqs_is_told(client, allowed, monkeypatch):
    """A queue with a smaller MaximumMessageSize refuses what it cannot take as too large, and says so once; where it may
    not be asked, it counts as any other.
    """
    url = client.create_queue(QueueName="small", Attributes={"MaximumMessageSize": "4096"})["QueueUrl"]
    told = []
    queue = SqsQueue(client, url, on_small=told.append)
    if not allowed:
        refused = aws.ClientError({"Error": {"Code": "AccessDenied"}}, "GetQueueAttributes")
        monkeypatch.setattr(client, "get_queue_attributes", Mock(side_effect=refused))
    queue.send(call(10), 0)
    assert told == []
    queue.send(call(2_000), 0)
    for _ in range(2):
        with pytest.raises(StoreError) as error:
            queue.send(call(5_000), 0)
        assert (error.value.reason == "MessageTooLarge") is allowed
    assert [words.split(" bytes")[0] for words in told] == ["queue small takes messages of up to 4,096"] * allowed


def test_queue_of_failures_is_not_asked_what_it_takes(client, queue_url, monkeypatch):
    """A failure record of long keys is sent with the permission to send alone."""
    monkeypatch.setattr(client, "get_queue_attributes", Mock(side_effect=AssertionError))
    values = (("PK", "S", "p" * 2_048), ("SK", "S", "s" * 1_024))
    SqsFailures(client, queue_url).park(Failure("rule", ItemKey("shop", values), "Failed"))
    assert len(received(client, queue_url)) == 1


# ---------------------------------------------------------------- as a place
@pytest.fixture
def place(client, queue_url, monkeypatch):
    """A queue with 25 messages, and a way to look at it."""
    monkeypatch.setattr(sqs, "RECEIVE_WAIT_SECONDS", 0)
    for number in range(25):
        client.send_message(QueueUrl=queue_url, MessageBody=f"m{number}")
    return lambda **options: FailedMessages(client, queue_url, **options)


def messages_in(client, queue_url) -> int:
    """How many messages a queue has, those that somebody hides included."""
    attributes = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    counts = client.get_queue_attributes(QueueUrl=queue_url, AttributeNames=attributes)["Attributes"]
    return sum(map(int, counts.values()))


def texts(entries) -> list[str]:
    return sorted((entry.text.decode() for entry in entries), key=lambda text: int(text[1:]))


def test_failed_messages_are_seen_once_and_are_there_afterwards(place):
    """A look at a queue shows each message once, hides them while it looks, and leaves them for the next."""
    looking = place(peek=True)
    assert looking.count == 0
    entries = [*looking.entries()]
    assert texts(entries) == [f"m{number}" for number in range(25)]
    assert len({entry.where for entry in entries}) == 25
    assert looking.count == 25
    assert [*place(peek=True).entries()] == []
    looking.close()
    assert len([*place().entries()]) == 25


@pytest.mark.parametrize("mark", [None, ""], ids=["one redrive", "of several calls"])
def test_failed_messages_that_fail_again_are_never_doubled(client, queue_url, monkeypatch, mark):
    """A message that fails again in redrive after redrive stays one message: its replacement is not there beside it."""
    monkeypatch.setattr(sqs, "RECEIVE_WAIT_SECONDS", 0)
    scene = Scene(every_kind.rules_of(effects=False))
    at = scene.there("shop", every_kind.user("1", name=s("Ada")), every_kind.order("1", "a", 1))
    scene.tap.result = lambda _write: Result(Status.REJECTED, reason="ItemTooLarge")
    SqsFailures(client, queue_url).park(Failure("names", at, "ItemTooLarge"))
    for _ in range(3):
        place = FailedMessages(client, queue_url, mark=mark)
        redriver = Redriver(scene.rules, scene.world)
        redriver.take(place)
        redriver.rest()
        place.close()
        assert redriver.tally.again == 1
        assert messages_in(client, queue_url) == 1


def test_failed_messages_each_stand_for_themselves(client, queue_url, place, monkeypatch):
    """One that is too large by now, or that SQS does not take, keeps no other from being replaced or from being there
    again at once. Sizes are bytes, not letters.
    """
    refused, send = [], client.send_message

    def choosy(**parameters):
        if parameters["MessageBody"] == "m97":
            refused.append("m97")
            raise aws.ClientError({"Error": {"Code": "AccessDenied"}}, "SendMessage")
        return send(**parameters)

    monkeypatch.setattr(client, "send_message", choosy)
    taken = place()
    first, second, third, *_ = taken.entries()
    taken.replace(first, "ü" * (MESSAGE_MAX_BYTES // 2 + 1))
    taken.replace(second, "m97")
    taken.replace(third, "m99")
    with pytest.raises(StoreError, match="AccessDenied"):
        taken.close()
    assert refused == ["m97"]
    now = texts(place().entries())
    assert len(now) == 25
    assert {first.text.decode(), second.text.decode(), "m99"} <= {*now}
    assert third.text.decode() not in now


def test_failed_messages_are_sampled_where_there_are_many(place, monkeypatch):
    """A peek ends after a bounded number of messages."""
    monkeypatch.setattr(sqs, "PEEKED_MAX_MESSAGES", 10)
    assert len([*place(peek=True).entries()]) == 10


def test_failed_messages_that_are_released_are_given_to_the_next_reader(place):
    """A message that was not tried comes again, and no other one does."""
    first = place(mark="")
    given = [*first.entries()]
    for entry in given[5:8]:
        first.release(entry)
    first.close()
    assert texts(place(mark=first.mark).entries()) == texts(given[5:8])


def test_failed_messages_with_a_mark_are_each_given_once(place):
    """Successive readers with one mark are each given different messages, and none sent after the first reader began."""
    first = place(mark="")
    some = first.entries()
    given = [next(some) for _ in range(12)]
    first.remove(given[0])
    first.replace(given[1], "m99")
    assert first.held_count == 20 - 2  # two pages were received
    first.close()
    assert first.held_count == 0
    second = place(mark=first.mark)
    rest = [*second.entries()]
    assert texts([*given, *rest]) == [f"m{number}" for number in range(25)]
    assert second.count == 24
    second.close()
    third = place(mark=second.mark)
    assert [*third.entries()] == []
    third.close()
    assert texts(place(mark="").entries()) == [*(f"m{number}" for number in range(2, 25)), "m99"]


def test_failed_messages_that_cannot_be_let_go_are_counted(client, place, monkeypatch):
    """Messages that could not be made visible again are counted."""
    denied = aws.ClientError({"Error": {"Code": "AccessDenied"}}, "ChangeMessageVisibility")
    monkeypatch.setattr(client, "change_message_visibility", Mock(side_effect=denied))
    taken = place(mark="")
    assert len([*taken.entries()]) == 25
    taken.close()
    assert taken.held_count == 25


def test_failed_messages_with_a_mark_are_never_cut_short_in_silence(place, monkeypatch):
    """Listing more messages than one reader can hold raises an error, because a silent end would mean an empty queue."""
    monkeypatch.setattr(sqs, "TAKEN_MAX_MESSAGES", 10)
    with pytest.raises(StoreError, match="OverLimit"):
        list(place(mark="").entries())


def test_failed_messages_that_come_twice_are_shown_once():
    """A queue may deliver a message twice; the last receipt is the one that deletes it."""
    answers = [["a", "b"], ["b", "c"], ["c"], []]
    deleted = []

    class Client:
        def receive_message(self, **_):
            names = answers.pop(0)
            receipt = str(len(answers))
            return {"Messages": [{"MessageId": n, "ReceiptHandle": n + receipt, "Body": n} for n in names]}

        def delete_message(self, **parameters):
            deleted.append(parameters["ReceiptHandle"])

    place = FailedMessages(Client(), "http://127.0.0.1/failed")
    entries = [*place.entries()]
    assert [entry.text for entry in entries] == [b"a", b"b", b"c"]
    for entry in entries:
        place.remove(entry)
    assert deleted == ["a3", "b2", "c1"]


def test_failed_messages_of_a_missing_queue_are_the_users_mistake(client):
    """The URL is named; what is no URL is refused before anybody is asked."""
    place = FailedMessages(client, "https://sqs.us-east-1.amazonaws.com/123456789012/nowhere")
    with pytest.raises(UserError, match="nowhere does not exist"):
        next(place.entries())
    for text in ("failures", "arn:aws:sqs:us-east-1:1:failures", "https://sqs.us-east-1.amazonaws.com/", "s3://x/y"):
        with pytest.raises(UserError, match="is not a queue URL"):
            require_queue_url(text)
    assert require_queue_url("http://127.0.0.1:4566/000000000000/failures").startswith("http")


@pytest.mark.parametrize(
    ("received", "seconds"),
    [(1, AGAIN_FIRST_SECONDS), (2, 60), (3, 120), (6, DELAY_MAX_SECONDS), (40, DELAY_MAX_SECONDS)],
)
def test_receipts_wait_twice_as_long_each_time(received, seconds):
    """Half a minute first: the timeout of the queue is for workers that died, and much longer."""
    client = Client(OK)
    Receipts(client, "https://sqs/q").shorten_timeout("receipt", received)
    ((operation, asked),) = client.calls
    assert operation == "change_message_visibility"
    assert asked == {"QueueUrl": "https://sqs/q", "ReceiptHandle": "receipt", "VisibilityTimeout": seconds}


def test_receipts_that_sqs_does_not_take_are_no_error():
    """The message comes again all the same, only later; a refusal is not repeated."""
    client = Client(failed("AccessDeniedException"), OK)
    Receipts(client, "https://sqs/q", retrying=retries.make_retry(sleep=lambda _: None)).shorten_timeout("receipt", 1)
    assert len(client.calls) == 1
