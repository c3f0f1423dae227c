"""`sync-rules prune`: what it prints, what it removes, and the codes it exits with."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sync_rules.adapters.state import FileState, read_applied_fingerprints, save_applied_fingerprints
from sync_rules.cli.commands import prune
from sync_rules.model.writes import Result, Status
from tests.support.builders import s
from tests.support.every_kind import RULES, order, text_of, user
from tests.support.worlds import Scene
from tests.unit.cli.command_line import SECRET, CommandLine

BEFORE = {name: RULES[name] for name in ("names", "spent", "mails")} | {
    "was": "{copy: user.name, into: order.was, mode: snapshot}"
}


class Command(CommandLine):
    """The command, with tables at rest under the rules as they were."""

    def __init__(self, monkeypatch, capsys) -> None:
        super().__init__(prune, text_of(BEFORE), monkeypatch, capsys)
        self.scene.put("shop", order("1", "a", 10), user("1", name=s(SECRET), email=s("a@x")))
        self.scene.rest()
        self.before = Path("before.yaml")
        self.file.rename(self.before)
        self.given = (self.before, self.file)
        self.become("mails")
        monkeypatch.setattr(prune, "require_answer", lambda *_: None)

    def become(self, *names: str) -> None:
        """The rules of today."""
        self.file.write_text(text_of({name: BEFORE[name] for name in names}))

    def __call__(self, *options: str) -> tuple[int, list[str], str]:
        code, out, err = super().__call__(*options)
        return code, out.splitlines(), err


def test_prune_shows_and_removes_nothing_without_apply(command):
    """Leftovers are shown with key, path and rule, and no value; the exit code is 1; nothing is written."""
    command.scene.tap.requests.clear()
    code, out, _ = command()
    assert code == 1
    assert "shop[USER#1, ORDER#a] user_name · rule names" in out
    assert "ledger[spent/T/USER#1, PROFILE] the whole item · rule spent" in out
    assert out[-1].endswith("5 leftovers: --apply removes them")
    assert command.scene.tap.writes == []


def test_prune_says_what_could_not_be_removed(command):
    """Prune counts leftovers that it could not remove, exits with 1 and advises another run."""
    command.scene.tap.result = lambda write: Result(Status.REFUSED) if "ledger" in str(write) else None
    code, out, _ = command("--apply")
    assert code == 1
    assert out[-1] == "2 leftovers removed, 3 changed meanwhile or could not be written: run it again"


def test_prune_of_one_rule(command):
    """--rule, given once or again, limits it; only so is a snapshot removed."""
    assert [line.partition("rule ")[2] for line in command("--rule", "was")[1][:-1]] == ["was"]
    assert len(command("--rule", "was", "--rule", "names")[1]) == 3
    assert command("--rule", "was", "--apply")[0] == 0
    assert "was" not in command.scene.item(command.scene.at("shop", "USER#1", "ORDER#a"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rule", "spend"], ["spend", "spent", "before.yaml"]),
        (["--rule", "spent.ledger"], ["spent.ledger"]),
        (["--what"], ["No such option"]),
    ],
)
def test_prune_exits_2_for_the_users_mistakes(command, options, words):
    """Standard error names a rule that the old file does not have; the exit code is 2."""
    code, out, err = command(*options)
    assert (code, out) == (2, [])
    assert all(word in err for word in words)


def test_prune_exits_2_without_a_sound_file(command):
    """Both files must be rules files: an error names the wrong file and says what is wrong with it."""
    command.file.write_text("rules: [")
    code, _, err = command()
    assert code == 2
    assert "rules.yaml" in err
    command.before.unlink()
    code, _, err = command()
    assert code == 2
    assert "before.yaml: no such file. Expected the rules file before the change" in err
    assert "write one" not in err


@pytest.mark.parametrize(
    ("options", "words"),
    [([], "nothing was removed"), (["--apply"], "2 leftovers were removed")],
    ids=["show", "apply"],
)
def test_prune_that_is_stopped_says_what_was_removed(command, options, words):
    """Ctrl-C ends it after the page in hand, with exit code 130 and the number that is true by then."""
    command.stop_after(1)
    code, _, err = command(*options)
    assert code == 130
    assert err.endswith(f"sync-rules: interrupted: {words}. Run it again for the rest\n")
    command.stop_after(None)
    assert command("--apply")[1][-1] == f"{5 if not options else 3} leftovers removed"


def test_prune_exits_2_for_a_table_that_is_gone(command):
    """A table of the old rules that does not exist is an error, and never passes for nothing left."""
    command.scene.tap._store = Scene(command.scene.rules, tables={}).memory
    code, out, err = command()
    assert (code, out) == (2, [])
    assert "TableNotFound" in err


def test_prune_skips_a_table_that_is_gone_with_its_rules(command, tmp_path):
    """A table that the rules of today do not name may be deleted: its rules are dropped from the saved state. In the wrong
    Region every table is missing: the saved state stays, and the message names the place.
    """
    state = tmp_path / "state.json"
    save_applied_fingerprints(FileState(state), {"names": "1", "spent": "3"}, datetime(2026, 1, 2, tzinfo=UTC))
    there = {name: table for name, table in command.scene.rules.tables.items() if name != "shop"}
    command.file.write_text("tables: {other: {key: {id: S}}}\nentities: {one: {table: other}}\nrules: {}\n")
    command.scene.tap._store = Scene(command.scene.rules, tables={}).memory
    code, _, err = command("--apply", "--state", str(state))
    assert code == 2
    assert "exists in this place: correct --region or --endpoint-url" in err
    assert read_applied_fingerprints(FileState(state)) == {"names": "1", "spent": "3"}
    command.scene.tap._store = Scene(command.scene.rules, tables=there).memory
    code, out, err = command("--apply", "--state", str(state))
    assert (code, out[-1]) == (0, "dropped from the saved state: names, spent")
    assert "table shop does not exist, nor in the rules of today: skipped" in err


def test_prune_drops_the_deleted_rules_from_the_saved_state(command, tmp_path):
    """Once --apply has left nothing, a plan no longer reports them; the other rules stay applied."""
    state = FileState(tmp_path / "state.json")
    save_applied_fingerprints(
        state, {"names": "1", "mails": "2", "spent": "3", "other": "4"}, datetime(2026, 1, 2, tzinfo=UTC)
    )
    command("--state", str(tmp_path / "state.json"))
    assert read_applied_fingerprints(FileState(tmp_path / "state.json")).keys() == {"names", "mails", "spent", "other"}
    code, out, _ = command("--apply", "--state", str(tmp_path / "state.json"))
    assert (code, out[-1]) == (0, "dropped from the saved state: names, spent")
    assert read_applied_fingerprints(FileState(tmp_path / "state.json")) == {"mails": "2", "other": "4"}
