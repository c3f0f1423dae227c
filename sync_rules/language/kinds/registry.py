"""The kinds of rules. A new kind is one file here, one in `rules/kinds`, and its line in `KINDS`.

All code reads `KINDS` when it runs, so that a test can add a kind.
"""

from __future__ import annotations

from typing import Any

from sync_rules.language.kinds import call, collect, copy, count, derive, embed, history, mirror, path
from sync_rules.language.kinds.options import Kind, Model

# Messages and the JSON Schema list them in this order.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        copy.KIND,
        embed.KIND,
        collect.KIND,
        derive.KIND,
        path.KIND,
        mirror.KIND,
        history.KIND,
        *count.KINDS,
        call.KIND,
    )
}


def find_kind_of_rule(rule: Any) -> Kind | None:
    """Find the kind of a rule that is written as a map. If several keys name a kind, the first counts."""
    return next((KINDS[word] for word in rule if word in KINDS), None) if isinstance(rule, dict) else None


def find_kind_of_form(form: Model) -> Kind:
    return next(kind for kind in KINDS.values() if isinstance(form, kind.form))


def list_kinds_with_sentences() -> dict[str, Kind]:
    """List the kinds that have a short form: first those that write an attribute, then those that write whole items."""
    short = [kind for kind in KINDS.values() if kind.sentence]
    return {kind.name: kind for kind in sorted(short, key=lambda kind: "." not in kind.sentence.rpartition(" ")[2])}
