"""`sync-rules replay`: exit codes, what it says, and that what it shrank fails again by the command it prints."""

from __future__ import annotations

import json
import re

import pytest

from sync_rules.cli.commands.replay import SHOWN_MAX_EVENTS
from sync_rules.language.load import parse_rules
from sync_rules.model.writes import Delete
from sync_rules.pipeline import consumer
from tests.support import every_kind
from tests.support.builders import key, s
from tests.support.engines import ROOT
from tests.support.tapes import Tape, lines, recorded, shopping

RULES = every_kind.rules_of()


@pytest.fixture(autouse=True)
def rules_file(here):
    """Rules of every kind, in the folder where the user is."""
    (here / "rules.yaml").write_text(every_kind.text_of(every_kind.RULES | every_kind.EFFECTS))


@pytest.fixture
def tape(tmp_path):
    """A recording of a busy shop. At last a user comes with two orders, and one order is deleted."""
    tape = shopping(RULES, 5, actions=12)
    tape.put("shop", every_kind.user("z", name=s("Zoe")), every_kind.order("z", "1", 5), every_kind.order("z", "2", 5))
    tape.do(Delete(key(RULES.tables["shop"], "USER#z", "ORDER#1"), ()))
    recorded(tmp_path / "tape.jsonl", RULES, tape.bodies)
    return tape


def break_deletes(monkeypatch) -> None:
    """A pipeline that does not look at records of deletes."""
    real = consumer.make_tasks
    monkeypatch.setattr(
        consumer, "make_tasks", lambda changes, rules: real([c for c in changes if c.new is not None], rules)
    )


def test_replay_command_says_that_all_is_right(run, tape):
    """A replay runs every variant and seed, and prints how many records were skipped and why."""
    code, out, err = run("replay", "tape.jsonl", "--seeds", "1")
    assert (code, err) == (0, "")
    assert "7 replays in" in out
    assert "every copy is right at the end" in out
    assert "written by the recorded pipeline" in out
    assert "of a ledger" in out
    code, out, _ = run(
        "replay", "tape.jsonl", "--variant", "in-order", "--seed", "4", "--with-copies", "--format", "json"
    )
    row = json.loads(out)
    assert (code, row["ok"], row["replays"], row["copies"]) == (0, True, 1, 0)
    assert row["records"] == len(tape.bodies)


def test_replay_command_names_its_data(run, tmp_path, monkeypatch):
    """Data that a replay needs is in the command that shows it again; a long history is cut in its middle."""
    (tmp_path / "data.yaml").write_text("shop: [{PK: USER#1, SK: PROFILE, name: Ada}]\n")
    order = key(RULES.tables["shop"], "USER#1", "ORDER#2")
    tape = Tape(RULES)
    for number in range(SHOWN_MAX_EVENTS + 10):
        tape.put("shop", every_kind.order("1", "2", number, user_name=s("x")))
    tape.do(Delete(order, ()))
    recorded(tmp_path / "tape.jsonl", RULES, tape.bodies)
    break_deletes(monkeypatch)
    code, out, _ = run("replay", "tape.jsonl", "--data", "data.yaml")
    assert code == 1
    assert "--data data.yaml" in out
    assert " more ..." in out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["none.jsonl"], "none.jsonl: expected a recording to read"),
        (["torn.jsonl"], "torn.jsonl:2"),
        (["other.jsonl"], "no record is of a table of the rules"),
        (["tape.jsonl", "--variant", "backwards"], "no variant 'backwards'"),
        (["tape.jsonl", "--rules", "none.yaml"], "none.yaml"),
        (["tape.jsonl", "--data", "none.yaml"], "none.yaml"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_replay_command_of_a_mistake_is_2_and_does_nothing(run, tape, tmp_path, words, found):
    """The mistake is named, with file and line, before anything is replayed or written."""
    lines(tmp_path / "torn.jsonl", [tape.bodies[0], {"oops": 1}])
    elsewhere = tape.bodies[0]["eventSourceARN"].replace("table/", "table/my-")
    lines(tmp_path / "other.jsonl", [{**tape.bodies[0], "eventSourceARN": elsewhere}])
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, err = run("replay", *words)
    assert (code, out) == (2, "")
    assert found in err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_replay_command_needs_no_variables(run, tmp_path, monkeypatch):
    """Rules whose tables are called by variables that are not set here are read all the same."""
    text = every_kind.text_of({"names": "copy user.name into order.user_name"}, "STAGE-")
    for name in RULES.tables:
        text = text.replace(f"name: STAGE-{name}", f"name: '${{STAGE}}-{name}'")
    (tmp_path / "other.yaml").write_text(text)
    rules = parse_rules(text, environ={"STAGE": "prod"})
    tape = Tape(rules)
    tape.put("shop", every_kind.user("1", name=s("Ada")), every_kind.order("1", "2", 5))
    recorded(tmp_path / "tape.jsonl", rules, tape.bodies)
    monkeypatch.delenv("STAGE", raising=False)
    assert run("replay", "tape.jsonl", "--rules", "other.yaml", "--seeds", "1")[0] == 0


def test_replay_page_shows_what_the_command_says(run, tmp_path, monkeypatch):
    """The example in docs/replay.md is true to the letter, but for the time it takes."""
    text = (ROOT / "docs/replay.md").read_text()
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (rules,) = (body for language, body in found if language == "yaml")
    (records,) = (body for language, body in found if language == "jsonl")
    well, wrong = (body for language, body in found if language == "text")
    (tmp_path / "rules.yaml").write_text(rules)
    (tmp_path / "monday.jsonl").write_text(records)
    code, out, _ = run("replay", "monday.jsonl")
    assert (code, timeless(out)) == (0, timeless(well))
    break_deletes(monkeypatch)
    code, out, _ = run("replay", "monday.jsonl")
    assert (code, out) == (1, wrong)
    assert '"Ada' not in out
    assert '"Ada' in run("replay", "monday.jsonl", "--values")[1]


def timeless(text: str) -> str:
    return re.sub(r"in [\d.]+ s", "in some time", text)
