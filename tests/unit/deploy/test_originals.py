"""Merging: what one side changed is taken, what both changed stays as mine is, and nothing else happens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sync_rules.deploy.originals import merged

LINES = st.lists(st.sampled_from("abcdef"), max_size=12)


@given(LINES, LINES)
def test_merge_takes_what_one_side_changed(base, changed):
    """Whichever side it is; both sides may also have changed alike."""
    assert merged(base, changed, base) == (changed, ())
    assert merged(base, base, changed) == (changed, ())
    assert merged(base, changed, changed) == (changed, ())


@given(LINES, LINES, LINES)
def test_merge_keeps_every_line_of_mine_that_is_new(base, mine, theirs):
    """A line that I wrote is in the result; a conflict is told with the lines of both sides."""
    own = [f"my {line}" if at % 3 == 0 else line for at, line in enumerate(mine)]
    result, kept = merged(base, own, theirs)
    assert [line for line in result if line.startswith("my ")] == [line for line in own if line.startswith("my ")]
    for one in kept:
        assert "\n".join(one.mine) in "\n".join(result)
        assert one.mine != one.theirs
    if not kept:
        new = [line for line in theirs if line not in base]
        assert [line for line in result if line not in base and not line.startswith("my ") and line not in mine] == [
            line for line in new if line not in mine
        ]


def test_merge_of_changes_far_apart_and_of_the_same_line():
    """Both changes where they are apart; mine alone where they meet, with theirs beside it."""
    base = [*"abcdefgh"]
    assert merged(base, [*"aXcdefgh"], [*"abcdefYhi"]) == ([*"aXcdefYhi"], ())
    result, (kept,) = merged(base, [*"abXdefgh"], [*"abYdefgZ"])
    assert result == [*"abXdefgZ"]
    assert (kept.mine, kept.theirs) == (("X",), ("Y",))
