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


def kind_of_rule(rule: Any) -> Kind | None:
    """The kind of a rule written as a map: of several keys that name one, the first counts."""
    return next((KINDS[word] for word in rule if word in KINDS), None) if isinstance(rule, dict) else None


def kind_of_form(form: Model) -> Kind:
    return next(kind for kind in KINDS.values() if isinstance(form, kind.form))


def kinds_with_sentences() -> dict[str, Kind]:
    """The kinds that have a short form: those that write an attribute first, then those that write whole items."""
    short = [kind for kind in KINDS.values() if kind.sentence]
    return {kind.name: kind for kind in sorted(short, key=lambda kind: "." not in kind.sentence.rpartition(" ")[2])}
