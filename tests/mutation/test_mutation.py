"""Random edits: those that are named as harmless."""

from __future__ import annotations

import pytest

from tests.mutation.__main__ import every_edit, harmless


@pytest.mark.night
def test_edits_that_are_harmless_can_still_be_made():
    """An entry of harmless.toml names an edit of the code as it is now, and a reason."""
    known = harmless()
    assert known.keys() <= {edit.name for edit in every_edit()}
    assert all(known.values())
