"""Cures of errors that have nothing to do with the request: configuration, permissions, proxies, outages, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sync_rules import DOCS

WRONG_KEYS: Final = (
    "AWS does not know these credentials. Correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the profile, and use "
    "--endpoint-url for an emulator"
)
EXPIRED: Final = "the credentials have expired. Sign in again, for example with `aws sso login`"
DENIED: Final = (
    f"these credentials may not do this. Use others, or allow it: {DOCS}/permissions.md and "
    "`sync-rules infra iam --explain` list what is needed"
)
REFUSED: Final = (
    "the request was refused before the service saw it, as by a proxy. Correct --endpoint-url, the proxy's settings or "
    "the credentials"
)
DOWN: Final = "the service or a proxy before it is not available. Try again later, or correct --endpoint-url"
LIMITED: Final = "a table, an index or the account is at its limit. Try again later, or raise the limit"
ELSEWHERE: Final = (
    "the request was sent elsewhere, as by a proxy or for a bucket of another Region. Correct --endpoint-url or "
    "--region"
)
CURES: Final[Mapping[str, str]] = {  # by the reason of the error
    **dict.fromkeys(("UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId"), WRONG_KEYS),
    "InvalidSignatureException": "the signature is wrong. Correct AWS_SECRET_ACCESS_KEY, or set this machine's clock",
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "RequestExpired"), EXPIRED),
    **dict.fromkeys(("UnauthorizedSSOTokenError", "SSOTokenLoadError", "TokenRetrievalError"), EXPIRED),
    "CredentialRetrievalError": "no credentials could be fetched. Correct the profile or the program that gives them",
    **dict.fromkeys(("AccessDenied", "AccessDeniedException"), DENIED),
    **dict.fromkeys(("301", "302", "303", "307", "308", "PermanentRedirect"), ELSEWHERE),
    **dict.fromkeys(("401", "403", "407"), REFUSED),
    **dict.fromkeys(("502", "503", "504", "ServiceUnavailable", "ServiceUnavailableException"), DOWN),
    **dict.fromkeys(("500", "InternalServerError", "InternalFailure", "RequestTimeout"), DOWN),
    **dict.fromkeys(("ConnectTimeoutError", "ReadTimeoutError", "EndpointConnectionError"), DOWN),
    **dict.fromkeys(("ConnectionClosedError", "ProxyConnectionError", "HTTPClientError", "ResponseParserError"), DOWN),
    **dict.fromkeys(("ThrottlingException", "Throttling", "RequestThrottled", "RequestLimitExceeded"), LIMITED),
    "ProvisionedThroughputExceededException": LIMITED,
}
CONFIGURATION_CURES: Final[Mapping[str, str]] = {  # by the name of the exception, where no client can be made
    "NoRegionError": "Give --region, or set AWS_REGION or a profile with a Region; an emulator takes any",
    "InvalidRegionError": "Correct --region, AWS_REGION or the profile's Region: expected a name such as eu-central-1",
    "ProfileNotFound": "Correct AWS_PROFILE, or unset it: `aws configure list-profiles` lists the profiles there are",
    "PartialCredentialsError": "Set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither and AWS_PROFILE",
    "ConfigParseError": "Correct the file of profiles that it names",
}
