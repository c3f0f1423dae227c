"""Generated blocks of a file: text between the marks is replaced, all else kept, and wrong marks are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync_rules.deploy.blocks import compare_blocks, replace_blocks
from sync_rules.model.errors import UserError

TEXT = """a: 1
  # >>> sync-rules: one
  old
  # <<< sync-rules: one
b: 2
# >>> sync-rules: two
# <<< sync-rules: two
"""


def test_blocks_are_written_where_their_marks_stand():
    """Each block at its own indent, and twice is the same as once."""
    new = replace_blocks(TEXT, {"one": {"x": 1, "w": 2}, "two": {"z": 3}}, "f")
    assert new == TEXT.replace("  old\n", "  x: 1\n  w: 2\n").replace("two\n# <<<", "two\nz: 3\n# <<<")
    assert replace_blocks(new, {"one": {"x": 1, "w": 2}, "two": {"z": 3}}, "f") == new
    one = TEXT.replace("  old\n", "  new\n")
    assert [name for name, _ in compare_blocks(TEXT, one, "f")] == ["one"]


@given(before=st.text(), between=st.text(), after=st.text())
def test_blocks_leave_all_else_byte_for_byte(before, between, after):
    """All text outside of the marks is kept, line ends and trailing blanks included."""
    mark = "\n# {} sync-rules: one\n"
    parts = [text.replace("#", "") for text in (before, between, after)]
    text = parts[0] + mark.format(">>>") + parts[1] + mark.format("<<<") + parts[2]
    new = replace_blocks(text, {"one": {"x": 1}}, "f")
    assert new == parts[0] + mark.format(">>>") + "x: 1" + mark.format("<<<") + parts[2]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TEXT.replace("  # >>> sync-rules: one\n", ""), "f:3: block one ends here, but did not begin"),
        (TEXT.replace("  # <<< sync-rules: one\n", ""), "f:5: block two begins before block one ends"),
        (TEXT.replace("# <<< sync-rules: two\n", ""), "f: block two begins but does not end"),
        (TEXT.replace("two", "one"), "f:6: block one appears twice"),
        (TEXT.replace("two", "three"), "f: block three is not known"),
        (TEXT.partition("b: 2")[0], "f: no block two. Put"),
    ],
    ids=["no-begin", "no-end", "no-last-end", "twice", "unknown", "missing"],
)
def test_blocks_with_wrong_marks_are_told_by_file_and_name(text, told):
    """Wrong marks are refused with the file and the name of the block."""
    with pytest.raises(UserError) as error:
        replace_blocks(text, {"one": {"x": 1}, "two": {"z": 3}}, "f")
    assert str(error.value).startswith(told)
