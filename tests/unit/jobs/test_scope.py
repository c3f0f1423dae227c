"""The scope of a backfill: --resume continues the same work, and names each difference to other work."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sync_rules.adapters.state import MemoryState, read_applied_time
from sync_rules.jobs.backfill.backfill_run import BackfillRun
from sync_rules.jobs.backfill.page import Selection
from sync_rules.jobs.backfill.progress import HEAD, Totals
from sync_rules.jobs.backfill.scope import Scope, note_applied_rules, require_same
from sync_rules.model.errors import UserError
from tests.support import every_kind
from tests.support.worlds import Scene

ONE = {"rules": {"a": "1", "b": "2"}, "tables": {"shop": "arn id"}, "segments": 4}
DIFFERENCES = [
    ({"rules": {"a": "1"}}, "rules: it has a, b, this command a"),
    ({"rules": {}}, "rules: it has a, b, this command none"),
    ({"rules": {"a": "1", "b": "3"}}, "rules: b has changed since"),
    ({"rules": {"a": "0", "b": "3"}}, "rules: a has changed since\n  rules: b has changed since"),
    ({"tables": {"shop": "arn id-2"}}, "tables: shop: it has arn id, this command arn id-2"),
    ({"tables": {"shop": "arn id", "x": "y"}}, "tables: it has shop, this command shop, x"),
    ({"table": "shop"}, "--table: it has none, this command shop"),
    ({"where": "a == `1`"}, "--where: it has none, this command a == `1`"),
    ({"segments": 8}, "segments: it has 4, this command 8"),
]  # fmt: skip


@pytest.mark.parametrize(("other", "lines"), DIFFERENCES)
def test_scope_names_each_difference_and_no_other(other, lines):
    """The options and rules that differ, each in one line with both values; the same scope is accepted."""
    found, asked = Scope(**ONE).body(), Scope(**{**ONE, **other}).body()
    require_same(asked, asked)
    with pytest.raises(UserError) as error:
        require_same(found, asked)
    said = str(error.value).splitlines()
    assert "\n".join(said[1:-1]).strip() == lines


def test_scope_of_another_version_may_lack_a_part():
    """A state that does not have the tables names none of them."""
    asked = Scope(**ONE).body()
    with pytest.raises(UserError, match="tables: it has none, this command shop"):
        require_same({name: value for name, value in asked.items() if name != "tables"}, asked)


@pytest.mark.parametrize("odd", [["a"], "x", 7])
def test_scope_of_another_form_is_refused_with_its_cure(odd):
    """A state that something else wrote, or damaged, is no fault of ours."""
    asked = Scope(**ONE).body()
    with pytest.raises(UserError, match="other options or rules"):
        require_same({**asked, "rules": odd}, asked)


def test_scope_notes_since_when_all_applied_rules_are_applied():
    """A backfill of one rule leaves the time of the others; one of all brings its own beginning, not its end."""
    rules, state = every_kind.rules_of(), MemoryState()
    titles = {rule.title for rule in rules.rules.values()}
    moments = [datetime(2026, 11, day, tzinfo=UTC) for day in (1, 2, 3)]
    found = []
    for moment, some in zip(moments, (titles, {"names"}, titles - {"called", "kept"}), strict=True):
        state.save(HEAD, {"began": moment.isoformat()})
        note_applied_rules(state, rules, some)
        found.append(read_applied_time(state))
    assert found == [moments[0], moments[0], moments[2]]
    state.save("applied", {"at": "yesterday"})
    assert read_applied_time(state) is None


def test_scope_of_a_resumed_backfill_begins_when_it_was_first_begun():
    """A backfill that another process began keeps its beginning, through each save."""
    scene = Scene(every_kind.rules_of(effects=False))
    head = {"run": "1", "place": {"step": 0}, "steps": Totals().body(), "rounds": Totals().body(), "scope": {}}
    scene_state = MemoryState()
    scene_state.save(HEAD, {**head, "began": "2026-11-01T00:00:00+00:00"})
    selection = Selection(scene.rules, scene.rules.keeper_names)
    run = BackfillRun(selection, scene.tap, [], scene_state, {}, supplies=lambda _names: ())
    run.begin()
    assert scene_state.load(HEAD)["began"] == "2026-11-01T00:00:00+00:00"
