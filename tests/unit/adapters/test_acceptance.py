"""Rules that a stack accepts: those that a backfill applied."""

from __future__ import annotations

from datetime import UTC, datetime

from sync_rules.adapters.acceptance import Acceptance, make_stack_acceptance
from sync_rules.adapters.state import MemoryState, save_applied_fingerprints
from sync_rules.jobs.backfill.progress import HEAD
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError, UserError
from sync_rules.rules import fingerprints

TEXT = """
tables: {users: {key: {user: S}}, orders: {key: {user: S, order: S}}, ledger: {key: {PK: S, SK: S}}}
entities: {user: {table: users}, order: {table: orders}}
rules:
  counted: count order into user.orders
"""
NAMES = "  names: copy user.name into order.user_name\n"
RULES = parse_rules(TEXT + NAMES)
CHANGED = parse_rules(TEXT + "  names: copy user.nick into order.user_name\n")
RENAMED = parse_rules(TEXT + "  titles: {copy: user.name, into: order.user_name, renamed_from: names}\n")


def test_acceptance_of_a_stack_is_a_backfill_that_ended():
    """Only the rule that could alter values of others is guarded: a counter waits for its books."""
    state = MemoryState()
    assert make_stack_acceptance(RULES, state)() == {"names": "run `sync-rules backfill --remote --rule names`"}
    state.save(HEAD, {"done": False})
    state.save("applied", {})
    assert make_stack_acceptance(RULES, state, "other")() == {
        "names": "run `SYNC_RULES_STACK=other sync-rules backfill --remote --rule names`"
    }
    save_applied_fingerprints(
        state, {"names": fingerprints.compute_rule_fingerprints(RULES)["names"]}, datetime.now(UTC)
    )
    assert make_stack_acceptance(RULES, state)() == {}
    assert make_stack_acceptance(RENAMED, state)() == {}
    assert make_stack_acceptance(CHANGED, state)().keys() == {"names"}


def test_acceptance_reads_the_state_again_each_minute():
    """A state that does not answer leaves the rules unaccepted, and is asked again a minute later."""
    now, answers = (
        [0.0],
        [frozenset(), StoreError("Throttled"), UserError("a file that is no state"), frozenset({"names"})],
    )

    def accepted():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    acceptance = Acceptance(RULES, accepted, "{}", lambda: now[0])
    seen = []
    for now[0] in (0.0, 59.0, 60.0, 100.0, 120.0, 180.0, 10_000.0):
        seen.append(bool(acceptance()))
    assert seen == [True, True, True, True, True, False, False]
    assert answers == []
