"""The stack of a self-test: what cannot be made is named with its cure, and only what is its own is removed."""

from __future__ import annotations

# ruff: noqa: N803 -- parameters have the names of CloudFormation
import json
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from sync_rules.adapters import aws
from sync_rules.cli import main
from sync_rules.extras.proof.commands import selftest as running
from sync_rules.extras.proof.probe import Polling, ProbeVerdict, run_probe
from sync_rules.extras.proof.proof_stack import PREFIX, list_journals, list_stacks, make_journal, remove
from sync_rules.model.errors import SyncRulesError, UserError


def at_once() -> Polling[Any]:
    """Waits without time: a clock that only sleep moves."""
    slept: list[float] = [0.0]
    return Polling(0.0, clock=lambda: sum(slept), sleep=slept.append)


AT_ONCE = at_once()


def refusal(code: str, message: str = "") -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}}, "Call"
    )


class CloudFormation:
    """CloudFormation as it answers: its stacks by name, and what it refuses."""

    def __init__(self, becomes: str = "CREATE_COMPLETE", reason: str = "", **refuses: ClientError) -> None:
        self.meta: Any = None
        self.stacks: dict[str, Any] = {}
        self._becomes, self._reason, self._refuses = becomes, reason, refuses

    def _may(self, call: str) -> None:
        if call in self._refuses:
            raise self._refuses[call]

    def create_stack(self, StackName, Tags, **_):
        self._may("create_stack")
        self.stacks[StackName] = {"StackName": StackName, "Tags": Tags, "StackStatus": self._becomes}

    def describe_stacks(self, StackName=None):
        self._may("describe_stacks")
        if StackName is None:
            return {"Stacks": list(self.stacks.values())}
        if StackName not in self.stacks:
            raise refusal("ValidationError", "does not exist")
        return {"Stacks": [self.stacks[StackName]]}

    def describe_stack_events(self, StackName):
        resource = {"LogicalResourceId": "ItemsTable", "ResourceType": "AWS::DynamoDB::Table"}
        return {"StackEvents": [{**resource, "ResourceStatus": "CREATE_FAILED", "ResourceStatusReason": self._reason}]}

    def delete_stack(self, StackName):
        self._may("delete_stack")
        self.stacks.pop(StackName, None)


def clients_of(cloudformation: CloudFormation) -> Any:
    s3 = SimpleNamespace(list_objects_v2=lambda **_: {})
    cloudformation.meta = SimpleNamespace(endpoint_url="https://cloudformation.eu-central-1.amazonaws.com")
    return SimpleNamespace(cloudformation=cloudformation, s3=s3, endpoint_url=None, region="eu-central-1")


def run(cloudformation: CloudFormation, folder: Any, numbers: Any = (4,), stopping: Callable[[], bool] = lambda: False):
    clients = clients_of(cloudformation)
    journal = make_journal(folder, clients)
    quiet = {"tell": lambda _: None, "found": lambda _: None}
    return running.run(journal, clients, numbers=numbers, waiting=AT_ONCE, stopping=stopping, **quiet)


DENIED = "User: arn:aws:iam::1:user/x is not authorized to perform: {} on resource: *"


@pytest.mark.parametrize(
    ("cloudformation", "words"),
    [
        (CloudFormation(create_stack=refusal("AccessDenied", DENIED.format("cloudformation:CreateStack"))), "need cloudformation:CreateStack"),
        (CloudFormation(describe_stacks=refusal("AccessDenied", DENIED.format("cloudformation:DescribeStacks"))), "need cloudformation:DescribeStacks"),
        (CloudFormation("ROLLBACK_COMPLETE", DENIED.format("dynamodb:CreateTable")), "ItemsTable: these credentials need dynamodb:CreateTable"),
        (CloudFormation("ROLLBACK_COMPLETE", "Subscriber limit exceeded: 2500 tables"), "Raise the quota"),
        (CloudFormation(create_stack=refusal("LimitExceededException", "stacks")), "LimitExceededException"),
        (CloudFormation(create_stack=refusal("ExpiredToken")), "Sign in again"),
    ],
)  # fmt: skip
def test_site_that_cannot_be_made_is_named_and_leaves_nothing(cloudformation, words, tmp_path):
    """The missing right, the quota or the cure is in the sentence; no stack and no file is left."""
    with pytest.raises(SyncRulesError) as raised:
        run(cloudformation, tmp_path)
    assert words in raised.value.sentence
    assert cloudformation.stacks == {}
    assert list(tmp_path.iterdir()) == []


def test_site_under_a_name_that_is_taken_is_left_alone(tmp_path, monkeypatch):
    """A stack of somebody else's under the drawn name is neither used nor removed."""
    cloudformation = CloudFormation()
    monkeypatch.setattr("sync_rules.extras.proof.proof_stack.token_hex", lambda _: "taken")
    cloudformation.stacks[f"{PREFIX}taken"] = {"StackName": f"{PREFIX}taken", "StackStatus": "CREATE_COMPLETE"}
    with pytest.raises(UserError, match="another name is drawn"):
        run(cloudformation, tmp_path)
    assert list(cloudformation.stacks) == [f"{PREFIX}taken"]
    with pytest.raises(UserError, match="no tag"):
        remove(f"{PREFIX}taken", clients_of(cloudformation), AT_ONCE)
    assert list(cloudformation.stacks) == [f"{PREFIX}taken"]
    assert list_stacks(clients_of(cloudformation)) == []


def test_site_whose_answer_was_lost_is_its_own(tmp_path):
    """CreateStack is sent again after a lost answer, and finds the stack there: it is used, and removed."""

    class Losing(CloudFormation):
        def create_stack(self, StackName, Tags, **more):
            if StackName in self.stacks:
                raise refusal("AlreadyExistsException")
            super().create_stack(StackName, Tags, **more)
            raise ReadTimeoutError(endpoint_url="here")

    cloudformation = Losing("ROLLBACK_COMPLETE", "by the test")
    with pytest.raises(UserError, match="by the test"):
        run(cloudformation, tmp_path)
    assert cloudformation.stacks == {}
    assert list(tmp_path.iterdir()) == []


def test_site_that_was_taken_at_the_last_moment_is_left_alone(tmp_path):
    """A stack of the drawn name that another made in between is neither used nor removed."""

    class Raced(CloudFormation):
        def create_stack(self, StackName, **_):
            self.stacks[StackName] = {"StackName": StackName, "StackStatus": "CREATE_COMPLETE"}
            raise refusal("AlreadyExistsException")

    cloudformation = Raced()
    with pytest.raises(UserError, match="another name is drawn"):
        run(cloudformation, tmp_path)
    assert len(cloudformation.stacks) == 1
    assert list(tmp_path.iterdir()) == []


def test_site_is_noted_before_it_is_asked_for(tmp_path):
    """When CreateStack is called, the file that names the stack is there; after the run it is gone."""
    seen: list[str] = []

    class Watched(CloudFormation):
        def create_stack(self, StackName, Tags, **more):
            seen.extend(journal.stack for journal in list_journals(tmp_path))
            assert all(journal.is_in_use() for journal in list_journals(tmp_path))
            super().create_stack(StackName, Tags, **more)

    cloudformation = Watched("CREATE_FAILED")
    with pytest.raises(UserError):
        run(cloudformation, tmp_path)
    assert len(seen) == 1
    assert list(tmp_path.iterdir()) == []


def test_site_that_cannot_be_removed_stays_noted(tmp_path):
    """If the stack cannot be deleted, its name stays on disk and the missing right is named."""
    message = DENIED.format("cloudformation:DeleteStack")
    cloudformation = CloudFormation("ROLLBACK_COMPLETE", delete_stack=refusal("AccessDenied", message))
    with pytest.raises(UserError, match="cloudformation:DeleteStack"):
        run(cloudformation, tmp_path)
    (journal,) = list_journals(tmp_path)
    assert [journal.stack] == list(cloudformation.stacks)
    assert not journal.is_in_use()
    assert list_stacks(clients_of(cloudformation)) == [journal.stack]


def test_journal_of_another_form_is_a_mistake(tmp_path):
    """A file that is none of a self-test's is named, and nothing is removed because of it."""
    for number, text in enumerate(
        ["", "[]", json.dumps({"stack": "production", "endpoint_url": None, "region": None})]
    ):
        path = tmp_path / f".{PREFIX}{number}.json"
        path.write_text(text)
        with pytest.raises(UserError, match=f"{PREFIX}{number}.json: expected a file"):
            list(list_journals(tmp_path))
        path.unlink()


@pytest.mark.parametrize(
    ("error", "verdict", "words"),
    [
        (refusal("AccessDeniedException", DENIED.format("dynamodb:PartiQLUpdate")), ProbeVerdict.FAILED, "dynamodb:PartiQLUpdate"),
        (refusal("ThrottlingException"), ProbeVerdict.FAILED, "run it again"),
        (refusal("ValidationException"), ProbeVerdict.FALSE, "ValidationException"),
        (KeyError("Responses"), ProbeVerdict.FALSE, "another form"),
    ],
)  # fmt: skip
def test_probe_that_meets_an_error_says_for_whose_reason(error, verdict, words):
    """A missing right counts neither way and is named; a refusal counts against the fact."""

    def probe() -> str:
        raise error

    seen = run_probe(1, probe)
    assert seen.verdict is verdict
    assert words in seen.seen


def test_command_without_credentials_leaves_nothing(tmp_path, monkeypatch, capsys):
    """Without credentials the cure is printed, and no file is left."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.chdir(tmp_path)
    for cached in (aws._make_session, aws._make_client):  # another test may have found credentials
        monkeypatch.setattr(aws, cached.__name__, cache(cached.__wrapped__))
    assert main.main(["selftest", "--yes", "--region", "eu-central-1"]) == 2
    assert "No AWS credentials found" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "words"), [(["--only", "99"], "from 1 to"), ([], "give --yes")])
def test_command_names_a_mistake(arguments, words, tmp_path, monkeypatch, capsys):
    """An unknown number, and a question that you cannot answer."""
    monkeypatch.chdir(tmp_path)
    assert main.main(["selftest", "--endpoint-url", "http://127.0.0.1:1", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
