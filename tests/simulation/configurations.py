"""The small worlds that histories play in, by name, and their compiled rules."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from sync_rules.language.load import parse_rules
from sync_rules.rules.ruleset import Rules
from tests.kinds import TRIALS
from tests.simulation import (
    worlds_booked,
    worlds_collected,
    worlds_default,
    worlds_gathered,
    worlds_history,
    worlds_mirrored,
    worlds_mixed,
    worlds_moved,
    worlds_often,
    worlds_own,
    worlds_ranked,
    worlds_valued,
)
from tests.simulation.facts import IMPOSSIBLE
from tests.simulation.worlds_many import cascade, hops, keyed, shared_map, two, writes_link, writes_where
from tests.simulation.worlds_one import base, delete_where, listed, nested, own, shop, unlisted, where, with_links

CONFIGURATIONS = {
    one.name: one
    for one in (
        base("base", "on_delete: clear"),
        listed("index", "on_delete: clear"),
        base("strict", "on_delete: clear, strict: true", strict=True),
        listed("strict-index", "on_delete: clear, strict: true", strict=True),
        base("keep", "on_delete: keep", on_delete="keep"),
        base("delete", "on_delete: delete", on_delete="delete"),
        listed("delete-index", "on_delete: delete", on_delete="delete"),
        shop(),
        two("two", "clear", "clear", indexed=False),
        two("two-index", "clear", "keep", indexed=True),
        two("two-delete", "delete", "clear", indexed=False),
        nested("nested"),
        shared_map(),
        unlisted(),
        base("snapshot", "mode: snapshot", snapshot=True, on_delete="keep"),
        cascade(),
        own("own", "on_delete: clear"),
        own("own-strict", "on_delete: clear, strict: true", strict=True),
        where(),
        delete_where(),
        writes_link("writes-link", strict=False),
        writes_link("writes-link-strict", strict=True),
        writes_where("writes-where", strict=False),
        writes_where("writes-where-strict", strict=True),
        hops("hops", indexed=False),
        hops("hops-index", indexed=True),
        keyed(),
        with_links(base("impossible", "on_delete: clear, strict: true", strict=True), *IMPOSSIBLE),
        replace(base("unordered", "on_delete: clear"), in_order=False),
        *worlds_default.WORLDS,
        *worlds_own.WORLDS,
        *worlds_gathered.WORLDS,
        *worlds_mixed.WORLDS,
        *worlds_collected.WORLDS,
        *worlds_mirrored.WORLDS,
        *worlds_booked.WORLDS,
        *worlds_ranked.WORLDS,
        *worlds_history.WORLDS,
        *worlds_valued.WORLDS,
        *worlds_moved.WORLDS,
        *worlds_often.WORLDS,
        *(world for trial in TRIALS for world in trial.worlds),
    )
}


@cache
def rules_of(configuration: str, *, second_look: bool = True) -> Rules:
    """The compiled rules, optionally without a second look through indexes."""
    rules = parse_rules(CONFIGURATIONS[configuration].rules)
    if second_look:
        return rules
    return replace(rules, rules={name: replace(rule, settle_seconds=0) for name, rule in rules.rules.items()})
