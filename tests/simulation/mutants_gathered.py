"""Mutants of embed and recount: which members are looked at, and what is a reason to look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sync_rules.pipeline import fanout, reconcile, sources
from sync_rules.rules.kinds import embed
from sync_rules.rules.kinds.embed import EmbedRule
from sync_rules.rules.kinds.gathered_rule import GatheredRule
from sync_rules.rules.kinds.recount import RecountRule
from tests.simulation.breaking import Mutant, Mutation, Work
from tests.simulation.worlds import among, small


def hint_for_the_new_parent_only() -> Any:
    original = GatheredRule.hints

    def hints(rule: GatheredRule, change: Any) -> Any:
        now = {hint.target for hint in original(rule, replace(change, old=None))}
        return [hint for hint in original(rule, change) if change.new is None or hint.target in now]

    return patch.object(GatheredRule, "hints", hints)


def never_pulled(kind: type[GatheredRule]) -> Mutant:
    return lambda: patch.object(kind, "pulls", lambda _rule, _change: False)


def hinting_member_not_read() -> Any:
    """Only what the index lists, and what the map names, is looked at."""
    original = sources.Target

    def target(*args: Any, members: Any = (), **more: Any) -> Any:
        return original(*args, **more)

    return patch.object(fanout, "Target", target)


def named_members_not_read() -> Any:
    """Entries that the index does not show yet are forgotten."""
    return patch.object(EmbedRule, "list_present_members", lambda _rule, _key, _target: ())


@contextmanager
def refused_hint_dropped() -> Iterator[None]:
    """Mutant: a refused write drops the hints of its members."""
    original = reconcile._take

    def _take(intent: Any, *args: Any) -> Work:
        return (yield from original(replace(intent, target=replace(intent.target, members=())), *args))

    with patch.object(reconcile, "_take", _take):
        yield


def no_second_look_at_members() -> Any:
    def _second_look_of_pull(*_args: Any) -> Work:
        return
        yield

    return patch.object(fanout, "_send_second_look_of_pull", _second_look_of_pull)


def belongs_not_checked() -> Any:
    return patch.object(GatheredRule, "is_member", lambda _rule, _key, _member: True)


def first_come_first_served() -> Any:
    """Mutant: a child that has an entry keeps it, even if another child claims it."""
    original, place = EmbedRule.compute_values, embed._make_sort_key

    def compute_values(rule: EmbedRule, found: Any, target: Any) -> Any:
        there = target.get("kids", {}).get("M", {}).values()
        names = {entry["M"]["child"]["S"] for entry in there if "child" in entry.get("M", {})}
        with patch.object(
            embed, "_make_sort_key", lambda entry: (entry.child.values[-1][2] not in names, place(entry))
        ):
            return original(rule, found, target)

    return patch.object(EmbedRule, "compute_values", compute_values)


def listed_no_further_than_the_limit() -> Any:
    """Mutant: one more child than there may be entries is enough, though some have none."""
    original = EmbedRule.members

    def members(rule: EmbedRule, *args: Any) -> Any:
        listing = original(rule, *args)
        if listing is None or rule.max_items is None or listing.index is not None or not rule.may_leave_out:
            return listing
        return replace(listing, max_items=rule.max_items + 1, enough=True)

    return patch.object(EmbedRule, "members", members)


def left_out_in_silence() -> Any:
    return patch.object(EmbedRule, "find_omission", lambda _rule, _found, _image: None)


def entries_name_nobody() -> Any:
    """Mutant: an entry that shows its child's key is not read for it."""
    return patch.object(EmbedRule, "_read_ids", lambda _rule, _entry: None)


MEMBERS = small("", "embed", "count-ranked")
SHOWN_LATE = among("hinted", "embed-index")
CLAIMED = among("", "embed-claimed")

MUTANTS: Mapping[str, Mutation] = {
    "hint for the new parent only": Mutation(hint_for_the_new_parent_only, MEMBERS),
    "embedding parent not pulled": Mutation(never_pulled(EmbedRule), MEMBERS),
    "recounting parent not pulled": Mutation(never_pulled(RecountRule), among("", "recount")),
    "hinting member not read": Mutation(hinting_member_not_read, SHOWN_LATE),
    "named members not read": Mutation(named_members_not_read, SHOWN_LATE),
    "refused write of a hint dropped": Mutation(refused_hint_dropped, SHOWN_LATE),
    "no second look at members": Mutation(no_second_look_at_members, small("", "embed")),
    "entry claimed: first come first served": Mutation(first_come_first_served, CLAIMED),
    "entry claimed: listed no further than the limit": Mutation(listed_no_further_than_the_limit, CLAIMED),
    "entry claimed: left out in silence": Mutation(left_out_in_silence, CLAIMED),
    "entry claimed: entries name nobody": Mutation(entries_name_nobody, among("hinted", "embed-claimed-index")),
    "belonging not checked": Mutation(belongs_not_checked, MEMBERS),
}
