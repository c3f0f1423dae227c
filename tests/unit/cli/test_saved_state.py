"""The saved state of backfills: the place that --state, or the environment, names."""

from __future__ import annotations

import pytest

from sync_rules.cli.options import STATE
from sync_rules.cli.saved_state import state_file
from sync_rules.model.errors import UserError


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in ("SYNC_RULES_STATE", "SYNC_RULES_STATE_TABLE"):
        monkeypatch.delenv(name, raising=False)


def test_variable_of_earlier_versions_is_refused(monkeypatch):
    """A local file would silently take the place of the table, and --changed would find everything new."""
    monkeypatch.setenv("SYNC_RULES_STATE_TABLE", "kept")
    with pytest.raises(UserError, match="set SYNC_RULES_STATE to table:kept, or remove SYNC_RULES_STATE_TABLE"):
        state_file(STATE)
