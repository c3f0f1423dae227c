"""`sync-rules verify --report`: the page is written as a whole at the end, or refused before the verify begins."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from sync_rules.adapters.files import require_place, write_whole
from sync_rules.cli.commands import verify
from sync_rules.model.errors import StoreError, UserError
from sync_rules.pipeline.requests import Scan
from tests.support.builders import s
from tests.unit.cli.test_verify_command import RIGHT, Command


@pytest.fixture
def command(monkeypatch, tmp_path, capsys) -> Command:
    made = Command(monkeypatch, tmp_path, capsys)
    meta = SimpleNamespace(endpoint_url="https://me:pw@dynamodb.example:443/", region_name="eu-west-1")
    monkeypatch.setattr(verify.aws, "dynamodb", lambda *_: SimpleNamespace(meta=meta))
    return made


def test_verify_report_is_written_for_its_owner(command, tmp_path):
    """The page says what was found, where and by which command; the exit code stays; others may not read the keys."""
    command.scene.there("books", {**RIGHT, "author_name": s("SECRET")})
    file = tmp_path / "out.html"
    file.write_text("an older one")
    file.chmod(0o644)
    assert command("--report", str(file))[0] == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    page = file.read_text()
    assert "Drift left: 1" in page
    assert "{&quot;book_id&quot;: &quot;b1&quot;}" in page
    assert "dynamodb.example:443" in page
    assert "eu-west-1" in page
    assert f"--grace-seconds 0 --failures {command.failures} --report {file}" in page
    assert "me:pw" not in page
    assert "SECRET" not in page
    assert {path.name for path in tmp_path.iterdir()} == {"out.html", "rules.yaml"}


def test_verify_report_of_one_item_says_so(command, tmp_path):
    """With --key only the rules that had something to look at are in the page."""
    command.scene.there("books", RIGHT)
    file = tmp_path / "out.html"
    assert command("--key", '{"book_id": "b1"}', "--table", "books", "--report", str(file))[0] == 0
    page = file.read_text()
    assert "Only one item was checked." in page
    assert 'id="rule-1"' in page
    assert 'id="rule-2"' not in page


@pytest.mark.parametrize(
    "place", ["rules.yaml", "link.html", "same.html", "a.txt", "a", "drift.html", "f.html", "b.html"]
)
def test_verify_report_is_written_over_nothing_that_is_read(command, tmp_path, place):
    """--report refuses to overwrite the rules file, the --from report or the failures file, before any read."""
    (tmp_path / "link.html").symlink_to(command.file)
    (tmp_path / "same.html").hardlink_to(command.file)
    (tmp_path / "b.html.new").symlink_to(command.file)
    (tmp_path / "drift.html").write_text("x")
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    options = ["--from", str(tmp_path / "drift.html"), "--failures", str(tmp_path / "f.html")]
    code, _, err = command(*options, "--report", str(tmp_path / place))
    assert code == 2
    assert f"{tmp_path / place}: " in err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
    assert command.required == []


@pytest.mark.parametrize("place", [".", "/", "rules.yaml", "nowhere/f.jsonl"])
def test_verify_refuses_a_bad_place_for_failures(command, tmp_path, monkeypatch, place):
    """Before it begins: a folder, a folder that is not there, and the rules file."""
    monkeypatch.chdir(tmp_path)
    code, out, err = command("--failures", place)
    assert (code, out) == (2, "")
    assert f"{place}: " in err
    assert command.required == []


def test_verify_report_is_not_written_by_half(command, tmp_path):
    """A verify that fails leaves the previous page as it was."""
    file = tmp_path / "out.html"
    file.write_text("an older one")

    def fail(request: object) -> None:
        if isinstance(request, Scan):
            raise StoreError("ResourceNotFoundException")

    command.scene.tap.before = fail
    assert command("--report", str(file))[0] == 2
    assert file.read_text() == "an older one"
    assert {path.name for path in tmp_path.iterdir()} == {"out.html", "rules.yaml"}


# ---------------------------------------------------------------- files as a whole


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


def test_wholefile_keeps_the_old_file_when_the_new_one_fails(tmp_path, monkeypatch):
    """A file that cannot be written to its end changes nothing and leaves nothing beside."""
    file = tmp_path / "a"
    file.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sync_rules.adapters.files.os.fsync", full)
    with pytest.raises(UserError, match="No space left"):
        write_whole(file, "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]
