"""Signing: every request has the headers that botocore's own signer gives it."""

from __future__ import annotations

from datetime import datetime
from unittest import mock

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import NoCredentialsError
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.adapters import aws, signing

VALUES = st.text(st.sampled_from("aZ1-. \tü"), min_size=1).filter(lambda text: text.strip())
SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1)
USUAL = {"X-Amz-Target": "DynamoDB_20120810.Query", "Content-Type": "application/x-amz-json-1.0", "User-Agent": "us"}
TIMES = [datetime.fromisoformat(text) for text in ("2026-01-01T23:59:59", "2026-01-02T00:00:00", "2026-01-02T07:08:09")]
URLS = (
    "https://dynamodb.eu-west-1.amazonaws.com",
    "https://dynamodb.eu-west-1.amazonaws.com:443/",
    "http://localhost:8000",
    "http://LOCALHOST:80/",
    "http://[::1]:8000/",
    "http://localhost:8000/path/",
    "http://localhost:8000/?asked=1",
)


@pytest.fixture(autouse=True)
def proven(monkeypatch):
    """As after a first request that both signed alike."""
    monkeypatch.setattr(signing.KeptKeyAuth, "agrees", True)


def signed(signer: type[auth.SigV4Auth], given: dict, now: datetime, credentials: object, region: str) -> dict:
    request = AWSRequest(**{**given, "headers": dict(given["headers"])})
    request.context = {"client_region": region}
    with (
        mock.patch.object(auth, "get_current_datetime", return_value=now),
        mock.patch.object(signing, "_now", return_value=now),
    ):
        signer(credentials, "dynamodb", region).add_auth(request)
    return {"headers": request.headers.items(), "context": request.context}


@given(
    given=st.fixed_dictionaries(
        {
            "method": st.sampled_from(["POST", "POST", "POST", "GET"]),
            "url": st.sampled_from(URLS),
            "data": st.binary(),
            "params": st.sampled_from([{}, {}, {"asked": "1"}]),
            "headers": st.builds(
                lambda more: USUAL | more,
                st.dictionaries(
                    st.sampled_from(["X-Other", "x-amzn-trace-id", "Date", "X-Amz-Date", "Authorization", "Host"]),
                    VALUES,
                ),
            ),
        }
    ),
    now=st.sampled_from(TIMES),
    credentials=st.builds(ReadOnlyCredentials, SECRETS, SECRETS, st.none() | SECRETS, st.none()),
    region=st.sampled_from(["eu-west-1", "us-gov-west-1"]),
)
def test_signing_signs_as_botocore_does(given, now, credentials, region):
    """Whatever is asked, the headers are those of botocore, in its order: a signature of today's key or tomorrow's."""
    ours, theirs = (signed(one, given, now, credentials, region) for one in (signing.KeptKeyAuth, auth.SigV4Auth))
    assert ours == theirs


def test_signing_needs_credentials():
    """Without credentials nothing is signed, and botocore's own error says so."""
    given = {"method": "POST", "url": URLS[0], "data": b"{}", "headers": USUAL}
    with pytest.raises(NoCredentialsError):
        signed(signing.KeptKeyAuth, given, TIMES[0], None, "eu-west-1")


@pytest.mark.parametrize("right", [True, False])
def test_signing_is_left_to_botocore_where_they_do_not_agree(right, monkeypatch):
    """The first request has botocore's signature. If ours is another, so have all that follow."""
    monkeypatch.setattr(signing.KeptKeyAuth, "agrees", None)
    original = signing.KeptKeyAuth._authorization
    made = []

    def authorization(*given):
        made.append(original(*given))
        return made[-1] if right else "other"

    monkeypatch.setattr(signing.KeptKeyAuth, "_authorization", authorization)
    given = {"method": "POST", "url": URLS[0], "data": b"{}", "headers": USUAL}
    credentials = ReadOnlyCredentials("AKIA", "secret", None, None)
    asked = given, TIMES[0], credentials, "eu-west-1"
    theirs = signed(auth.SigV4Auth, *asked)
    assert [signed(signing.KeptKeyAuth, *asked) for _ in range(3)] == [theirs] * 3
    assert signing.KeptKeyAuth.agrees is right
    assert len(made) == (3 if right else 1)


def test_signing_is_used_by_the_client_of_dynamodb(monkeypatch):
    """A client of DynamoDB signs with kept keys, and botocore's own version stays what it was for everybody else."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    used = []
    monkeypatch.setattr(signing.KeptKeyAuth, "_authorization", lambda *_: used.append(1) or "signed")
    client = aws.dynamodb("http://127.0.0.1:9")
    sent = []

    def answer(request, **_):
        sent.append(request.headers["Authorization"])
        raise ConnectionError

    client.meta.events.register_first("before-send.dynamodb", answer)
    try:
        with pytest.raises(ConnectionError):
            client.list_tables()
    finally:
        client.meta.events.unregister("before-send.dynamodb", answer)
    assert (used, [text.decode() if isinstance(text, bytes) else text for text in sent]) == ([1], ["signed"])
    assert auth.AUTH_TYPE_MAPS["v4"] is not signing.KeptKeyAuth
