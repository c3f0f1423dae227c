"""`sync-rules failures`: what failed and was kept, in groups; nothing is taken out of where it lies."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from sync_rules.adapters.kept_calls import CallsInFolder
from sync_rules.cli import main
from sync_rules.cli.commands.failures import show
from sync_rules.jobs.redrive.work import describe_entry
from sync_rules.model.items import Change, Failure, ItemKey
from sync_rules.pipeline.failed_entries import FailureGroup, read_entry
from sync_rules.pipeline.failure_records import make_failure_record
from sync_rules.pipeline.messages import CallMessage, PartMessage, PullMessage, format_message
from tests.unit.cli.command_line import SECRET, lines
from tests.unit.pipeline.test_failed_entries import batch

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
KEY = ItemKey("shop", (("PK", "S", "USER#1"),))
RULES = """
tables: {shop: {key: {PK: S}}}
entities: {user: {table: shop, key: {PK: "USER#{user_id}"}}}
rules: {names: {derive: user.seen, as: "{user_id}!"}}
"""


@pytest.fixture
def failures(monkeypatch, tmp_path, capsys):
    """The command in a directory of its own; gives exit code, rows of JSON, or text, and what was said beside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*options: str, as_json: bool = True) -> tuple[int, list | str]:
        code = main.main(["failures", *options, *(["--format", "jsonl"] if as_json else [])])
        out, run.err = capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines()] if as_json else out

    return run


def told(rule: str = "names", reason: str = "ItemTooLarge", hours: int = 0) -> dict:
    return make_failure_record(Failure(rule, KEY, reason), AT + timedelta(hours=hours))


def test_failures_groups_what_the_local_files_hold(failures, tmp_path):
    """Without options, `failures` groups the entries of `run`'s files, exits with 1 and changes nothing."""
    bodies = [told(), told(hours=3), told(reason="Contended", hours=1)]
    lines(tmp_path / ".sync-rules-failures.jsonl", *bodies, "{")
    lines(tmp_path / ".sync-rules-failures.batches.jsonl", batch(payload={"Records": [{}] * 2}), batch())
    before = [path.read_text() for path in sorted(tmp_path.iterdir())]
    code, rows = failures()
    assert code == 1
    batches, large, contended, unreadable = rows
    assert (batches["sort"], batches["count"], batches["records"]) == ("batches", 2, 5)
    assert (large["what"], large["reason"], large["count"]) == ("names", "ItemTooLarge", 2)
    assert (large["first"], large["last"]) == ("2026-11-21T12:00:00.000+00:00", "2026-11-21T15:00:00.000+00:00")
    assert (contended["count"], contended["example"]) == (1, {"PK": "USER#1"})
    assert (large["items"], contended["items"], batches.get("items")) == (1, 1, None)
    assert unreadable["example"].endswith("failures.jsonl:4")
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == before


def test_failures_shows_tables_to_people(failures, tmp_path):
    """A table for each sort, with every column; what cannot be seen of a key or a name is written out."""
    odd = {**told("n\x1b[31m"), "key": {"PK": "U\n"}}
    lines(tmp_path / "f", told(), odd, format_message(PullMessage(KEY)), "{")
    lines(tmp_path / "b", batch(payload={"Records": [{"dynamodb": {"NewImage": {"name": {"S": SECRET}}}}]}))
    code, out = failures("--file", str(tmp_path / "f"), "--file", str(tmp_path / "b"), as_json=False)
    assert code == 1
    for words in (
        "failure records", "batches given up", "messages not processed", "entries that cannot be read", "ItemTooLarge",
        "2026-11-21 12:00:00", '{"PK": "USER#1"}', "RetryAttemptsExhausted in shard-1", "arn:f", "pull message", "not JSON",
        "n\\u001b[31m",
    ):  # fmt: skip
        assert words in out
    assert "\x1b" not in out
    assert SECRET not in out


LONG = "user-name-on-orders-and-on-all-that-is-below-them"


def test_failures_on_a_narrow_terminal_cuts_nothing(monkeypatch, capsys):
    """A key was once cut: a narrow terminal breaks it."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show([FailureGroup("failures", LONG, "ItemTooLarge", 1, example="".join(map(chr, range(65, 91))))], frozenset(), [])
    assert "".join(re.findall(r"[A-Z]+(?= *$)", capsys.readouterr().out, re.MULTILINE)) == "".join(
        map(chr, range(65, 91))
    )


def test_failures_says_which_rules_are_gone(failures, tmp_path):
    """With the rules file at hand; of a record that several rules wanted, when all of them are."""
    (tmp_path / "rules.yaml").write_text(RULES)
    lines(tmp_path / "f", told(), told("gone"), told("gone, names"), told("names.part"))
    _, rows = failures("rules.yaml", "--file", str(tmp_path / "f"))
    assert {row["what"]: row["gone"] for row in rows} == {
        "names": False, "gone": True, "gone, names": False, "names.part": True,
    }  # fmt: skip
    _, out = failures("rules.yaml", "--file", str(tmp_path / "f"), as_json=False)
    assert "gone (gone)" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--file", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["--queue", "failed"], "'failed' is not a queue URL"),
        (["--bucket", "failed"], "'failed' is not an S3 address"),
        (["rules.yaml", "--rule", "name"], "Did you mean 'names'"),
        (["missing.yaml"], "missing.yaml"),
        (["--what"], "No such option"),
        (["--file", "f", "--drop"], "give the rules file too"),
        (["rules.yaml", "--file", "f", "--drop", "--rule", "names"], "rule names exists"),
    ],
    ids=["file", "queue", "bucket", "rule", "rules", "option", "drop-without-rules", "drop-of-a-rule"],
)
def test_failures_exits_2_for_the_users_mistakes(failures, tmp_path, options, words):
    """Named, on standard error. No failure is dropped without rules, nor one of a rule that exists."""
    (tmp_path / "rules.yaml").write_text(RULES)
    lines(tmp_path / "f", told(), told("gone"))
    code, out = failures(*options, as_json=False)
    assert (code, out) == (2, "")
    assert words in failures.err
    assert len((tmp_path / "f").read_text().splitlines()) == 2


# ---------------------------------------------------------------- counters, and rules that are gone
def test_failures_of_a_counter_show_the_item_that_is_not_counted(failures, tmp_path):
    """The key in the ledger means nothing to people: the item is shown and counted, by redrive too."""
    children = [ItemKey("orders", (("id", "S", name),)) for name in ("a", "b")]
    entry = ItemKey("ledger", (("PK", "S", "spent/?"), ("SK", "S", "a-digest")))
    bodies = [make_failure_record(Failure("spent.ledger", entry, "NotANumber", member=one), AT) for one in children]
    lines(tmp_path / "f", *bodies, bodies[0])
    _, (row,) = failures("--file", str(tmp_path / "f"))
    assert (row["what"], row["count"], row["items"], row["example"]) == ("spent.ledger", 3, 2, {"id": "a"})
    assert describe_entry(read_entry(json.dumps(bodies[1]))) == "spent.ledger on orders[b]: NotANumber"


def test_failures_drops_those_of_rules_that_are_gone(failures, tmp_path):
    """--drop removes records and messages of rules that no longer exist, of one rule if it is named, and no others; the
    advice says so, and does not offer to retry what cannot be. What a rule no longer has a part for is gone too.
    """
    (tmp_path / "rules.yaml").write_text(RULES.replace("{derive:", "{renamed_from: old, derive:"))
    gone = [
        told("gone"),
        told("gone.parent"),
        told("away, gone"),
        format_message(PartMessage("away", KEY, None, "")),
        told("names.parent"),
    ]
    kept = [
        told(),
        told("gone, names"),
        told("old"),
        told(""),
        format_message(PullMessage(KEY)),
        batch(),
        "{",
    ]
    lines(tmp_path / "f", *gone, *kept)
    _, text = failures("rules.yaml", "--file", "f", as_json=False)
    assert text.splitlines()[-3:] == [
        "if such a rule was renamed, say `renamed_from: OLD` in the new one, and `sync-rules redrive` retries them",
        "to remove those of rules that no longer exist: `sync-rules failures RULES --drop`, with the same files, queues and buckets",
        "to retry them: `sync-rules redrive`, with the same files, queues and buckets",
    ]
    before = (tmp_path / "f").read_text().splitlines()
    assert failures("rules.yaml", "--file", "f", "--drop", "--rule", "away") == (
        0, [{"dropped": "away", "count": 1}, {"dropped": "away, gone", "count": 1}],
    )  # fmt: skip
    assert failures("rules.yaml", "--file", "f", "--drop", as_json=False) == (
        0, "dropped: 1 of gone\ndropped: 1 of gone.parent\ndropped: 1 of names.parent\n",
    )  # fmt: skip
    assert (tmp_path / "f").read_text().splitlines() == before[len(gone) :]
    code, text = failures("rules.yaml", "--file", "f", "--drop", as_json=False)
    assert (code, text) == (0, "no failures of rules that no longer exist\n")


def test_failures_drops_the_kept_changes_of_calls(failures, tmp_path):
    """With the failure record of a call goes the file with the values of its change; other files stay."""
    (tmp_path / "rules.yaml").write_text(RULES)
    folder = CallsInFolder(tmp_path / "f.calls")
    change = Change(KEY, None, {"PK": {"S": SECRET}}, "1")
    places = [folder.keep_call(CallMessage(rule, "a.b", change, 8)) for rule in ("gone", "names")]
    bodies = [make_failure_record(Failure(at.split("/")[0], KEY, "CallFailed", "1", call=at), AT) for at in places]
    lines(tmp_path / "f.jsonl", *bodies)
    assert failures("rules.yaml", "--file", "f.jsonl", "--drop") == (0, [{"dropped": "gone", "count": 1}])
    assert [(tmp_path / "f.calls" / place).exists() for place in places] == [False, True]
