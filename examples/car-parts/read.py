"""How the application reads it: one level, all levels one by one, all levels at once; and the way up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sync_rules.read import Hierarchy
from sync_rules.rules.ruleset import Rules


def ids(parts: Iterable[Mapping[str, Any] | None]) -> list[str]:
    """The ids of parts that are there."""
    return [part["ComponentId"] for part in parts if part is not None]


def read(rules: Rules, client: Any) -> dict[str, list[Any]]:
    """Ids of parts, by question."""
    parts = Hierarchy.of(rules, "composition", client)
    cm2, cm10 = parts.items(["CM2", "CM10"])
    assert cm2 is not None
    assert cm10 is not None
    return {
        "parts of CM2, one level (index GSI1)": ids(parts.children("CM2")),
        "parts of CM2, level by level (index GSI1)": [ids(level) for level in parts.levels("CM2")],
        "parts of CM2, all by one prefix (index GSI2)": ids(parts.descendants(cm2)),
        "what CM10 is part of, the root first (keys)": ids(parts.ancestors(cm10)),
    }
