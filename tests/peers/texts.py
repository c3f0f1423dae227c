"""Texts that join what is there of an item's attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sync_rules.model.values import show_path
from tests.peers.builder import Builder, Target, path_of


def text(builder: Builder, into: Target, rule: Mapping[str, Any]) -> None:
    """Parts that are there, joined."""
    assert rule.keys() <= {"table", "attr", "text", "sep"}, rule
    assert all(part.keys() == {"attr"} for part in rule["text"]), rule
    fields = [show_path(path_of(part["attr"])) for part in rule["text"]]
    builder.rule(into, {"derive": show_path((into[0], *into[1])), "join": fields, "separator": rule.get("sep") or ""})
