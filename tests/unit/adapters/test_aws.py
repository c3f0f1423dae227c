"""Clients and their errors: what the user gave counts, only what is missing is made up, and each error names its cure."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from sync_rules.adapters import aws, aws_errors
from sync_rules.adapters.preflight import require_tables
from sync_rules.model.errors import StoreError, UserError
from tests.support.builders import shop

EMULATOR = "http://127.0.0.1:9"
AWS_VARIABLES = ("PROFILE", "REGION", "DEFAULT_REGION", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")
PROFILE = "[profile team]\nregion = eu-west-3\naws_access_key_id = of-profile\naws_secret_access_key = s\n"


CACHED = (aws._make_client, aws._make_session, aws._make_local_session)


def forget_clients() -> None:
    for cached in CACHED:
        cached.cache_clear()


@pytest.fixture(autouse=True)
def configuration(monkeypatch, tmp_path) -> Iterator[None]:
    """Each test sets its configuration. Only a profile `team` is there, and nothing selects it."""
    for name in AWS_VARIABLES:
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    (tmp_path / "config").write_text(PROFILE)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    forget_clients()
    yield
    forget_clients()


@pytest.mark.parametrize(
    ("variables", "region", "found"),
    [
        ({}, None, ("us-east-1", "local")),
        ({}, "eu-central-1", ("eu-central-1", "local")),
        ({"AWS_REGION": "eu-west-1"}, None, ("eu-west-1", "local")),
        ({"AWS_DEFAULT_REGION": "eu-west-2"}, None, ("eu-west-2", "local")),
        ({"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "s"}, None, ("us-east-1", "mine")),
        ({"AWS_PROFILE": "team"}, None, ("eu-west-3", "of-profile")),
        ({"AWS_PROFILE": "team"}, "eu-central-1", ("eu-central-1", "of-profile")),
    ],
)
def test_client_of_an_emulator_has_what_the_user_gave(monkeypatch, variables, region, found):
    """An emulator may keep tables apart by Region and access key. The client makes up only what you did not give."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    client = aws.dynamodb(EMULATOR, region)
    assert (client.meta.region_name, client._request_signer._credentials.access_key) == found


def test_client_of_an_emulator_looks_for_no_role_of_the_machine(monkeypatch):
    """A role is not given by the user, would be asked for over the network, and is not shown to an emulator."""
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/")
    client = aws.dynamodb(EMULATOR)
    assert client._request_signer._credentials.access_key == "local"


def test_client_with_credentials_in_the_environment_gets_ready_to_ask_nobody_else(monkeypatch):
    """As in Lambda: each process would make a TLS context for a service that it never asks."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "mine")
    credentials = aws.dynamodb(region="eu-west-1")._request_signer._credentials
    assert (credentials.method, credentials.access_key, credentials.token) == ("env", "mine", "mine")
    assert [one.METHOD for one in aws._make_session().get_component("credential_provider").providers] == ["env"]


def test_client_of_the_demos_engine_takes_nothing_from_the_user(monkeypatch):
    """A profile that asks for a login, or does not exist, stops no demo."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    aws.isolate_engine("http://127.0.0.1:10")
    client = aws.dynamodb("http://127.0.0.1:10")
    assert (client.meta.region_name, client._request_signer._credentials.access_key) == ("us-east-1", "local")


@pytest.mark.parametrize(
    ("variables", "region", "cure"),
    [
        ({}, None, "Give --region, or set AWS_REGION"),
        ({}, "eu central 1", "Correct --region"),
        ({"AWS_PROFILE": "nobody", "AWS_REGION": "eu-west-1"}, None, "Correct AWS_PROFILE"),
        ({"AWS_ACCESS_KEY_ID": "half", "AWS_REGION": "eu-west-1"}, None, "Set both AWS_ACCESS_KEY_ID and"),
    ],
)
def test_client_that_cannot_be_made_says_what_to_correct(monkeypatch, variables, region, cure):
    """Each mistake in the configuration has a cure of its own."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=f"no dynamodbstreams client could be made: .*{cure}"):
        aws.dynamodbstreams(None, region)


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "DescribeTable")


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        ("UnrecognizedClientException", "AWS_ACCESS_KEY_ID"),
        ("InvalidSignatureException", "clock"),
        ("ExpiredTokenException", "Sign in again"),
        ("AccessDeniedException", "sync-rules infra iam --explain"),
        ("403", "Correct --endpoint-url, the proxy"),
        ("503", "Try again later"),
        ("301", "Correct --endpoint-url or --region"),
    ],
)
def test_error_of_access_names_its_cure(code, cure):
    """The code stays first, for failure records and counters; the cure follows it."""
    error = aws_errors.make_store_error(refusal(code), "DescribeTable of shop")
    assert error.reason == code
    assert str(error).startswith(f"{code}: DescribeTable of shop: ")
    assert cure in error.sentence


class Account:
    """A client of an account without tables."""

    def __init__(self, endpoint: str) -> None:
        self.meta = SimpleNamespace(endpoint_url=endpoint, region_name="eu-west-1")

    def describe_table(self, TableName):  # noqa: N803 - boto3's
        raise refusal("ResourceNotFoundException")


def test_table_that_does_not_exist_is_missed_at_a_named_place(monkeypatch):
    """Endpoint, Region and account: most often one of these is not the one that was meant."""
    url = "https://dynamodb.eu-west-1.amazonaws.com"
    sts = SimpleNamespace(get_caller_identity=lambda: {"Account": "111122223333"})
    monkeypatch.setattr(aws, "_make_client", lambda *_: sts)
    with pytest.raises(
        UserError, match=rf"shop: it does not exist at {url} \(Region eu-west-1, account 111122223333\)"
    ):
        require_tables(Account(url), shop())
    with pytest.raises(UserError, match=rf"shop: it does not exist at {EMULATOR} \(Region eu-west-1\)\."):
        require_tables(Account(EMULATOR), shop())


def test_error_of_missing_credentials_stays_one_sentence():
    """The most common mistake needs no code."""
    assert isinstance(aws_errors.make_store_error(NoCredentialsError(), "x"), StoreError)
    assert aws_errors.make_store_error(NoCredentialsError(), "x").sentence == aws_errors.NO_CREDENTIALS
