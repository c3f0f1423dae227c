"""`where` of a scenario, as JMESPath: equal values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sync_rules.model.values import Path
from tests.peers.builder import path_of

Test = Callable[[str], str]  # given the name of an attribute, a condition on it


def read(where: Mapping[str, Any]) -> list[tuple[Path, Test]]:
    """The attributes of a condition, and how each is tested."""
    return [(path_of(name), _equal(value)) for name, value in where.items()]


def name_of(path: Path) -> str:
    """An attribute's name in JMESPath."""
    return ".".join(name if name.isidentifier() and name.isascii() else json.dumps(name) for name in path)


def _equal(value: Any) -> Test:
    assert isinstance(value, str | int | bool), value
    literal = "`" + json.dumps(value).replace("`", r"\`") + "`"
    return lambda name: f"{name} == {literal}"
