"""Signs requests to DynamoDB as botocore does, in less than half of the time.

botocore makes the key of the day anew for each request, and handles headers as those of mail. Here the key is kept for
its day, and the text that is signed is written at once, as all requests to DynamoDB have one form.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html

Invariant: signatures are those of botocore, or botocore makes them. A request of another form is left to botocore. The
first request is signed both ways, and only if they agree, the next ones are signed here. Credentials come from botocore
with each request.
"""

from __future__ import annotations

import hmac
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from botocore.auth import AUTH_TYPE_MAPS, SIGNED_HEADERS_BLACKLIST, SIGV4_TIMESTAMP, SigV4Auth

BOTOCORES: Final = "v4"
VERSION: Final = "v4-with-kept-key"
UNSIGNED: Final = frozenset(SIGNED_HEADERS_BLACKLIST)
OF_SIGNATURE: Final = frozenset(
    {"authorization", "date", "host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"}
)
PORTS: Final = {"http": 80, "https": 443}

Headers = list[tuple[str, str]]


def keep_keys(client: Any) -> None:
    """Sign the requests of a DynamoDB client here, if botocore's own code would. That of `awscrt` is faster."""
    if AUTH_TYPE_MAPS.get(BOTOCORES) is SigV4Auth:
        AUTH_TYPE_MAPS[VERSION] = KeptKeyAuth
        client.meta.events.register("choose-signer.dynamodb", _version)


def _version(signature_version: object, **_: Any) -> str | None:
    return VERSION if signature_version == BOTOCORES else None


class KeptKeyAuth(SigV4Auth):
    """The signature of one request. `agrees`: botocore signed the first one of the process alike."""

    agrees: ClassVar[bool | None] = None

    def __init__(self, credentials: Any, service_name: str, region_name: str) -> None:
        super().__init__(credentials, service_name, region_name)
        self._place = region_name, service_name

    def add_auth(self, request: Any) -> None:
        """Add the headers of the signature to a request. Raises NoCredentialsError."""
        credentials = self.credentials
        headers = [(name.lower(), value) for name, value in request.headers.items()]
        host = _host(request.url)
        if credentials is None or host is None or self.agrees is False or not _has_form(request, headers):
            super().add_auth(request)
            return
        headers.append(("host", host))
        if credentials.token:
            headers.append(("x-amz-security-token", credentials.token))
        if self.agrees is None:
            super().add_auth(request)
            ours = self._authorization(request.body, request.context["timestamp"], headers)
            type(self).agrees = request.headers["Authorization"] == ours
            return
        request.context["timestamp"] = stamp = _now().strftime(SIGV4_TIMESTAMP)
        request.headers["X-Amz-Date"] = stamp
        if credentials.token:
            request.headers["X-Amz-Security-Token"] = credentials.token
        request.headers["Authorization"] = self._authorization(request.body, stamp, headers)

    def _authorization(self, body: bytes, stamp: str, headers: Headers) -> str:
        signed = sorted([*(header for header in headers if header[0] not in UNSIGNED), ("x-amz-date", stamp)])
        lines = "\n".join([f"{name}:{' '.join(value.split())}" for name, value in signed])
        names = ";".join([name for name, _ in signed])
        asked = f"POST\n/\n\n{lines}\n\n{names}\n{sha256(body).hexdigest()}"
        day, (region, service) = stamp[:8], self._place
        scope = f"{day}/{region}/{service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(asked.encode()).hexdigest()}"
        signature = _hmac(_key(self.credentials.secret_key, day, region, service), text).hex()
        of = f"{self.credentials.access_key}/{scope}"
        return f"AWS4-HMAC-SHA256 Credential={of}, SignedHeaders={names}, Signature={signature}"


def _has_form(request: Any, headers: Headers) -> bool:
    """True for a request as botocore makes those to DynamoDB."""
    names = {name for name, _ in headers}
    return (
        request.method == "POST"
        and type(request.body) is bytes
        and not request.params
        and "checksum" not in request.context
        and request.context.get("payload_signing_enabled", True)
        and len(names) == len(headers)
        and names.isdisjoint(OF_SIGNATURE)
        and all(type(value) is str for _, value in headers)
    )


@lru_cache(maxsize=64)
def _host(url: str) -> str | None:
    """The host of an address that has nothing else; None for others."""
    parts = urlsplit(url)
    host = parts.hostname
    if not host or ":" in host or parts.path not in ("", "/") or parts.query:
        return None
    return host if parts.port is None or parts.port == PORTS.get(parts.scheme) else f"{host}:{parts.port}"


@lru_cache(maxsize=8)
def _key(secret: str, day: str, region: str, service: str) -> bytes:
    """The key of a day, which is made of the secret and good for nothing else."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = _hmac(key, part)
    return key


def _now() -> datetime:
    return datetime.now(UTC)


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
