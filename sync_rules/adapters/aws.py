"""Clients of AWS. The only importer of boto3.

Clients are those of boto3, which has botocore make them. So do we, and import boto3 itself only where its conditions
are read: it loads resources and transfers of S3, a fifth of the CPU time of `boto3.client`. Clients come from one
session and are made once per process, when first used.

Invariant: botocore tries each call once; `retries` tries it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import botocore.session
from botocore.config import Config
from botocore.credentials import CredentialResolver, EnvProvider
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import Loader
from botocore.parsers import ResponseParserError

from sync_rules import __version__
from sync_rules.adapters.answers import Parsers, require_answers
from sync_rules.model.errors import UserError

if TYPE_CHECKING:  # the stubs are a development dependency
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient
    from mypy_boto3_sqs import SQSClient

CONNECTIONS_MAX: Final = 16  # per client; above the writer's workers
CONNECT_TIMEOUT_SECONDS: Final = 2
READ_TIMEOUT_SECONDS: Final = 10
# Parameters are not validated before they are sent: it takes a third of the time, and the service does the same. The
# model also refuses some shard ids as too short.
UNVALIDATED: Final = frozenset({"dynamodb", "dynamodbstreams"})
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
STATEMENTS: Final = "x-sync-rules-statements"  # a header of the embedded engine's answers

LOCAL_REGION: Final = "us-east-1"
LOCAL_CREDENTIALS: Final = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
CONFIGURATION_CURES: Final[Mapping[str, str]] = {  # by the name of the exception, where no client can be made
    "NoRegionError": "Give --region, or set AWS_REGION or a profile with a Region; an emulator takes any",
    "InvalidRegionError": "Correct --region, AWS_REGION or the profile's Region: expected a name such as eu-central-1",
    "ProfileNotFound": "Correct AWS_PROFILE, or unset it: `aws configure list-profiles` lists the profiles there are",
    "PartialCredentialsError": "Set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither and AWS_PROFILE",
    "ConfigParseError": "Correct the file of profiles that it names",
}

_session_lock = Lock()  # a session is not thread-safe


def dynamodb(endpoint_url: str | None = None, region: str | None = None) -> DynamoDBClient:
    """The DynamoDB client of this process. Raises UserError when no region or profile can be found."""
    return cast("DynamoDBClient", _make_client("dynamodb", endpoint_url, region))


def dynamodbstreams(endpoint_url: str | None = None, region: str | None = None) -> DynamoDBStreamsClient:
    """The DynamoDB Streams client of this process. Raises UserError like `dynamodb`."""
    return cast("DynamoDBStreamsClient", _make_client("dynamodbstreams", endpoint_url, region))


def sqs(endpoint_url: str | None = None, region: str | None = None) -> SQSClient:
    """The SQS client of this process. Raises UserError like `dynamodb`."""
    return cast("SQSClient", _make_client("sqs", endpoint_url, region))


def read_condition(condition: Any) -> tuple[str, Mapping[str, str], Mapping[str, Any]] | None:
    """Return the text, names and values (in plain Python) of a condition that boto3's `Attr` made; None for anything
    else.
    """
    from boto3.dynamodb.conditions import ConditionBase, ConditionExpressionBuilder  # noqa: PLC0415 - slow to load, and few use it

    if not isinstance(condition, ConditionBase):
        return None
    made = ConditionExpressionBuilder().build_expression(condition)
    return made.condition_expression, made.attribute_name_placeholders, made.attribute_value_placeholders


def format_place(client: Any, account: str = "") -> str:
    """Format the endpoint, Region and account of a client for messages, without a password in the address."""
    address = urlsplit(client.meta.endpoint_url)
    where = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
    return f"{where} (Region {client.meta.region_name}{f', account {account}' if account else ''})"


def find_account(client: Any) -> str:
    """Find the account whose credentials a client of AWS has, for messages; "" if it is unknown."""
    if not is_aws(client):
        return ""
    try:
        return str(_make_client("sts", None, client.meta.region_name).get_caller_identity()["Account"])
    except (BotoCoreError, ClientError, ResponseParserError, UserError):
        return ""


def is_aws(client: Any) -> bool:
    """Tell AWS itself from an emulator, by the client's endpoint."""
    host = urlsplit(client.meta.endpoint_url).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


def is_recording_statements(client: Any) -> bool:
    """True if a PartiQL statement leaves a stream record: on AWS, and on an emulator whose answers showed that."""
    return is_aws(client) or client.meta.endpoint_url in _recording


def isolate_engine(endpoint_url: str) -> None:
    """Make clients of this endpoint independent of the user's configuration. This process started the engine there for
    itself. The user's Region, or a profile that asks for a login, is of no use there.
    """
    _embedded.add(endpoint_url)


_embedded: set[str] = set()
_recording: set[str] = set()  # endpoints of emulators whose answers said STATEMENTS


@cache
def _make_session() -> botocore.session.Session:
    """The session of all clients of AWS: it reads configuration, credentials and models once."""
    return _make_core_session()


@cache
def _make_local_session() -> botocore.session.Session:
    """A session for emulators on this machine: it finds what the user gave by variables or files. A role of the machine
    is not given by the user, is looked for in the network, and has no business in an emulator.
    """
    session = _make_core_session()
    for role in ("container-role", "iam-role"):
        session.get_component("credential_provider").remove(role)
    return session


def _make_core_session() -> botocore.session.Session:
    """A session of botocore. Where the environment has credentials, as in Lambda, botocore looks in no other place;
    here it does not get ready to ask, either: that makes a TLS context for a service of containers.
    """
    session = botocore.session.Session()
    folders = (session.get_config_variable("data_path") or "").split(os.pathsep)  # models of the user's own
    models = _Models([str(Path(os.path.expandvars(folder)).expanduser()) for folder in folders if folder])
    session.register_component("data_loader", models)
    session.register_component("response_parser_factory", Parsers())
    if os.environ.get(EnvProvider.ACCESS_KEY):
        session.register_component("credential_provider", CredentialResolver([EnvProvider()]))
    return session


class _Models(Loader):
    """Finds the model of a service by the name of its folder. botocore lists the folders of its 400 services first:
    making a client then takes 76 ms of CPU in place of 54.
    """

    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002 -- as botocore calls it
        """The services that may have a model of this type. Whether one has it is seen when it is read."""
        there = (Path(folder) for folder in self.search_paths)
        return [service.name for folder in there if folder.is_dir() for service in folder.iterdir()]


def _choose_local_defaults(
    session: botocore.session.Session, region: str | None, *, embedded: bool
) -> dict[str, str | None]:
    """The Region and credentials for an emulator, which accepts any: only those that the user did not give are made up.
    An emulator may keep tables apart by both.
    """
    if embedded:
        return {"region_name": LOCAL_REGION, **LOCAL_CREDENTIALS}
    place = {"region_name": region or session.get_config_variable("region") or LOCAL_REGION}
    return {**place, **({} if session.get_credentials() is not None else LOCAL_CREDENTIALS)}


def find_client(service: str, endpoint_url: str | None = None, region: str | None = None) -> Any:
    """Return the client of a service, made once per process. Raises UserError if no region or profile can be found."""
    return _make_client(service, endpoint_url, region)


@cache
def _make_client(service: str, endpoint_url: str | None, region: str | None) -> Any:
    config = Config(
        retries={"mode": "standard", "total_max_attempts": 1},
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        tcp_keepalive=True,
        max_pool_connections=CONNECTIONS_MAX,
        account_id_endpoint_mode="disabled",  # emulators do not know hosts that begin with an account
        parameter_validation=service not in UNVALIDATED,
        s3={"addressing_style": "path" if endpoint_url else "auto"},  # no emulator has a host name for each bucket
        user_agent=f"sync-rules/{__version__}",  # botocore would compute its own for each request
    )
    region = region or os.environ.get("AWS_REGION")  # set by Lambda, and not read by botocore
    if endpoint_url is not None and urlsplit(endpoint_url).scheme not in ("http", "https"):
        raise UserError(f"{endpoint_url!r} is not an endpoint: expected http://HOST:PORT or https://HOST")
    local = endpoint_url is not None and urlsplit(endpoint_url).hostname in LOOPBACK
    try:
        with _session_lock:
            session = _make_local_session() if local else _make_session()
            given: dict[str, str | None] = {"region_name": region}
            if local:
                given = _choose_local_defaults(session, region, embedded=endpoint_url in _embedded)
            make: Callable[..., Any] = session.create_client
            made = make(service, endpoint_url=endpoint_url, config=config, **given)
    except (BotoCoreError, ValueError) as error:
        found = str(error).rstrip(".")
        cure = CONFIGURATION_CURES.get(type(error).__name__, "Correct the Region, the credentials or the endpoint")
        raise UserError(f"no {service} client could be made: {found}. {cure}.") from error
    require_answers(made, service)
    if service == "dynamodb" and endpoint_url is not None:
        made.meta.events.register_last("after-call.dynamodb", partial(_note_statements, made.meta.endpoint_url))
    return made


def _note_statements(endpoint_url: str, http_response: Any, **_: Any) -> None:
    if STATEMENTS in http_response.headers:
        _recording.add(endpoint_url)


# Clients of other services.
s3: Final = partial(find_client, "s3")
cloudformation: Final = partial(find_client, "cloudformation")
lambdas: Final = partial(find_client, "lambda")
stepfunctions: Final = partial(find_client, "stepfunctions")
