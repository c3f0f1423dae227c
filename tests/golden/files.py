"""The expected files: as text, or, where one is long, as text in gzip."""

from __future__ import annotations

import gzip
from pathlib import Path

EXPECTED = Path(__file__).parent / "expected"


def get(name: str) -> bytes:
    """The bytes that are expected."""
    body = (EXPECTED / name).read_bytes()
    return gzip.decompress(body) if name.endswith(".gz") else body


def put(name: str, text: str) -> None:
    """Expect these from now on."""
    body = text.encode()
    (EXPECTED / name).write_bytes(gzip.compress(body, mtime=0) if name.endswith(".gz") else body)
