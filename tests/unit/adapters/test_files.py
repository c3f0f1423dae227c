"""Files that commands write: whole or not at all, and never over one that the same command uses."""

from __future__ import annotations

from contextlib import suppress

import pytest

from sync_rules.adapters.files import name_temporary, replace_file, require_own, write_whole
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


def test_files_that_cannot_be_written_are_the_users_mistake(tmp_path):
    """A file is written whole, or named with the reason."""
    write_whole(tmp_path / "out", "text")
    assert (tmp_path / "out").read_text() == "text"
    with pytest.raises(UserError, match="no/out"):
        write_whole(tmp_path / "no" / "out", "text")
