"""Files that commands write: whole or not at all, and never over one that the same command uses."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

import pytest

from sync_rules.adapters.files import name_temporary, replace_file, require_own, require_place, write_whole
from sync_rules.model.errors import UserError


def test_files_are_replaced_as_a_whole_or_stay(tmp_path):
    """The file has its old content until the block ends, and after a block that raises; no open or second file is left."""
    place = tmp_path / "state.json"
    place.write_text("old")
    with replace_file(place) as written:
        written.write(b"new")
        written.flush()
        assert place.read_text() == "old"
    assert (place.read_text(), written.closed) == ("new", True)
    with suppress(RuntimeError), replace_file(place) as written:
        written.write(b"half")
        raise RuntimeError
    assert (place.read_text(), written.closed) == ("new", True)
    assert [*tmp_path.iterdir()] == [place]


@pytest.mark.parametrize("there", [False, True], ids=["to come", "there"])
def test_files_of_one_command_are_different_files(tmp_path, there):
    """A file is refused that another option names too, by whatever name, or that would be written on the way to it."""
    place, folder = tmp_path / "state.json", tmp_path / "folder"
    folder.mkdir()
    others = [folder / ".." / "state.json", name_temporary(place)]
    if there:
        place.write_text("")
        (folder / "link.json").hardlink_to(place)
        others.append(folder / "link.json")
    for other in others:
        with pytest.raises(UserError, match=r"state\.json: .* is used here too"):
            require_own(place, None, other)
    require_own(place, tmp_path / "other.json", None)
    require_own(None, place)


@pytest.mark.parametrize("place", ["sub", "missing/file", "file/below", "/dev/null"])
def test_wholefile_refuses_what_is_no_place(tmp_path, place):
    """A directory, a device, or a place in no directory is named and refused, before and when it is written."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "sub").mkdir()
    with pytest.raises(UserError, match=Path(place).name):
        require_place(tmp_path / place)
    if place != "/dev/null":  # the world's own
        with pytest.raises(UserError, match=Path(place).name):
            write_whole(tmp_path / place, "text")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "sub"}


def test_wholefile_is_its_owner_s_whatever_was_left_there(tmp_path):
    """A report is readable by its owner alone, even if a process that died left a temporary file that all can read."""
    left = tmp_path / "a.new"
    left.write_text("half of an older, longer one")
    left.chmod(0o644)
    write_whole(tmp_path / "a", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "new")]
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
