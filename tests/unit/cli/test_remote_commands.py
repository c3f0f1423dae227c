"""`--remote` as it is typed: what is refused before anything is started, what is taken from before, what is printed."""

from __future__ import annotations

import os
from collections import Counter
from types import SimpleNamespace

import pytest

from sync_rules.audit.compare import Drift
from sync_rules.audit.verify_tally import Tally
from sync_rules.cli import main
from sync_rules.cli.account import Account
from sync_rules.cli.commands import backfill, redrive, verify
from sync_rules.jobs.account.stack import Execution, Stack
from sync_rules.jobs.backfill.progress import HEAD
from sync_rules.language.load import parse_rules
from sync_rules.model.errors import StoreError
from sync_rules.pipeline.requests import Scan
from tests.support.builders import s
from tests.support.worlds import Scene
from tests.unit.cli.test_backfill_command import RULES
from tests.unit.jobs.test_remote_backfill import Account as Deployed
from tests.unit.jobs.test_remote_backfill import InPeace

STAGED = RULES.replace("books: {key", "books: {name: '${STAGE}-books', key")


class Local:
    """The state machine: an execution runs to its end when it is started, and ends as the real one does."""

    def __init__(self, deployed: Deployed) -> None:
        self.deployed = deployed
        self.asked: list[dict] = []
        self.ended: dict[str, Execution] = {}
        self.runs: list[str] = []
        self.stopped: list[str] = []
        self.left = False  # whether who watches presses Ctrl-C

    def start(self, verb: str, asked: dict) -> str:
        self.asked.append(asked)
        name = f"{verb}-{len(self.asked)}"
        if verb == "backfill":
            said = self.deployed.machine(InPeace(), name).run(asked)
            status = "FAILED" if said["error"] not in ("", "Refused") else "SUCCEEDED"
            self.ended[name] = Execution(name, status, said["error"], said["cause"])
        return name

    def list_running_executions(self) -> list[str]:
        return self.runs

    def stop(self, name: str) -> None:
        self.stopped.append(name)

    def watch(self, name: str, look) -> Execution:
        if self.left:
            raise KeyboardInterrupt(f"{name} goes on in the account")
        look()
        return self.ended[name]


class Command:
    """The command line, and the account in memory."""

    def __init__(self, monkeypatch, tmp_path, capsys) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("STAGE", "dev")
        monkeypatch.delenv("SYNC_RULES_STACK", raising=False)
        self.patch, self.capsys = monkeypatch, capsys
        self.file = tmp_path / "rules.yaml"
        self.file.write_text(STAGED)
        self.scene = Scene(parse_rules(STAGED))
        self.scene.there("authors", {"author_id": s("a1"), "name": s("Ada")})
        self.scene.there("books", *({"book_id": s(f"x-{i}"), "author_id": s("a1")} for i in range(9)))
        self.deployed = Deployed(self.scene)
        self.machine = Local(self.deployed)
        self.stack = "sync-rules"
        monkeypatch.setattr(verify.aws, "s3", lambda *_: None)
        for module in (backfill, verify, redrive):
            monkeypatch.setattr(module, "find_account", self.account)
        monkeypatch.setattr(backfill.opt, "SEGMENTS", 3)
        monkeypatch.setattr(backfill, "SEGMENTS_OF_WORKER", 0)

    def account(self, _machine: str, endpoint_url: str | None, region: str | None) -> Account:
        name = os.environ.get("SYNC_RULES_STACK", "sync-rules")
        outputs = {"FailuresQueueUrl": "https://queue", "BucketName": "bucket", "FanoutDeadLettersUrl": "https://dead"}
        return Account(Stack(name, "eu-west-1", outputs), self.machine, self.deployed.state, endpoint_url, region)

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = main.main(words)
        said = self.capsys.readouterr()
        return code, said.out, said.err

    def leave_something(self, *options: str) -> None:
        """Run a backfill that leaves a segment."""

        def before(request: object) -> None:
            if isinstance(request, Scan) and request.segment == 1:
                raise StoreError("ThrottlingException", "table books")

        self.scene.tap.before = before
        code, _, err = self("backfill", "--remote", *options)
        assert code == 1, err
        self.scene.tap.before = lambda _request: None


@pytest.fixture
def command(monkeypatch, tmp_path, capsys) -> Command:
    return Command(monkeypatch, tmp_path, capsys)


# ---------------------------------------------------------------- going on
def test_resume_takes_what_is_not_typed_from_what_was_asked(command):
    """--resume without other options continues with those of the start, also the second time."""
    command.leave_something("--rule", "names", "--rate", "70")
    first = command.machine.asked[0]
    for _ in range(2):  # it is left again, and gone on with again
        command.leave_something("--resume")
    code, out, err = command("backfill", "--remote", "--resume", "--rate", "2000")
    assert code == 0, err
    assert "Done" in out
    assert "9 copies written (sets 9)" in out
    words = ("rules", "changed", "table", "where", "segments")
    for later in command.machine.asked[1:]:
        assert {word: later[word] for word in words} == {word: first[word] for word in words}
    assert [(one["rate"], one["workers"]) for one in command.machine.asked] == [(70, 4), (70, 4), (70, 4), (2_000, 16)]
    assert [name for name in command.deployed.state.documents if name.startswith("backfill-remote")] == [
        "backfill-remote/backfill-4"
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--rule", "houses"), "rules: it has names, this command houses"),
        (("--where", "shelf == 'x'"), "--where: it has none, this command shelf == 'x'"),
    ],
    ids=["rule", "where"],
)
def test_resume_with_other_options_starts_nothing(command, options, words):
    """`--resume` with options that differ from the saved run is refused, names the difference and starts no execution."""
    command.leave_something("--rule", "names")
    code, _, err = command("backfill", "--remote", "--resume", *options)
    assert code == 2
    assert words in err
    assert len(command.machine.asked) == 1


def test_resume_of_one_that_runs_refuses_another_rate(command):
    """--resume of a running backfill refuses other options, and accepts the same ones."""
    command.leave_something("--rate", "70")
    command.machine.runs = ["backfill-1"]
    code, _, err = command("backfill", "--remote", "--resume", "--rate", "80")
    assert code == 2
    assert "backfill-1 runs with --rate 70.0, not 80.0" in err
    code, _, err = command("backfill", "--remote", "--resume", "--rate", "70")
    assert code == 1, err


def test_printed_commands_are_complete(command, tmp_path):
    """A printed command works as it stands, with stack, file and region."""
    other = tmp_path / "my rules.yaml"
    other.write_text(STAGED)
    command.machine.runs = ["backfill-7"]
    command.patch.setenv("SYNC_RULES_STACK", "shop")
    where = ("backfill", str(other), "--remote", "--region", "eu-west-1")
    code, out, _ = command(*where, "--stop")
    line = f"SYNC_RULES_STACK=shop sync-rules backfill '{other}' --remote --resume --region eu-west-1"
    assert (code, command.machine.stopped) == (0, ["backfill-7"])
    assert f"Continue with: {line}\n" in out
    code, _, err = command(*where)
    assert code == 2
    assert f"Watch it with: {line};" in err
    assert f"stop it with: {line.replace('--resume', '--stop')}" in err
    command.patch.delenv("SYNC_RULES_STACK")
    _, _, err = command("backfill", "rules.yaml", "--remote")
    assert "Watch it with: sync-rules backfill --remote --resume;" in err


# ---------------------------------------------------------------- what is seen from here
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("backfill", "--rule", "nams"), "Did you mean 'names'?"),
        (("backfill", "--rule", "kept"), "it acts on changes"),
        (("backfill", "--table", "bokks"), "books"),
        (("backfill", "--rate", "99999999"), "a backfill also a lower --rate"),
        (("backfill", "--where", "a b"), "--where"),
        (("backfill", "--resume"), "stack sync-rules in eu-west-1 has no unfinished backfill: leave out --resume"),
        (("backfill", "--state", "table:t"), "--remote and --state cannot be given together"),
        (("verify", "--key", "{}"), "--remote and --key cannot be given together"),
        (("redrive", "--file", "f"), "--remote and --file cannot be given together"),
        (("verify", "--rule", "nams"), "Did you mean 'names'?"),
        (("redrive", "--rule", "nams"), "Did you mean 'names'?"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_mistakes_are_seen_before_anything_is_started(command, words, said):
    """No execution is started for what can be seen to be wrong from here."""
    command.patch.setattr(backfill, "SEGMENTS_OF_WORKER", 4)
    code, _, err = command(*words, "--remote")
    assert code == 2
    assert said in err
    assert command.machine.asked == []


def test_other_stage_is_refused(command):
    """The same rules on other tables are another stack's: both are named, and it ends with the user's exit code."""
    command.patch.setenv("STAGE", "prod")
    code, _, err = command("backfill", "--remote")
    assert code == 2
    assert "table books: the stack has dev-books, your rules file prod-books" in err
    assert "set the environment variables" in err
    assert HEAD not in command.deployed.state.documents


# ---------------------------------------------------------------- watching


def test_verify_that_is_left_says_where_its_report_will_be(command):
    """A remote verify prints its name and the place of its report at the start: you need not watch it."""
    command.machine.left = True
    code, _, err = command("verify", "--remote", "--region", "eu-west-1")
    place = "s3://bucket/reports/verify-1/report.jsonl"
    assert code == 130
    assert err.startswith("verify-1 in stack sync-rules")
    assert f"Its report will be {place}; get it with: aws s3 cp {place} report.jsonl --region eu-west-1" in err


def test_repair_in_the_account_names_its_queue(command):
    """`verify --remote --repair` names the stack's failures queue for drift that it could not repair."""
    tally = Tally(drift=Counter(names=1), unmended=Counter({("names", Drift.WRONG): 1}), items=3)
    found = {"tally": tally.body(), "names": ["names"], "share": {"segments": 1, "numbers": [0]}}
    more = {"unlooked": {}, "broken": 0, "cure": "", "report": "verify-1/report"}
    command.deployed.state.save("verify/verify-1", found | more)
    body = SimpleNamespace(iter_lines=lambda: iter(()))
    command.patch.setattr(verify.aws, "s3", lambda *_: SimpleNamespace(get_object=lambda **_named: {"Body": body}))
    command.machine.watch = lambda name, _look: Execution(name, "SUCCEEDED")
    code, out, err = command("verify", "--remote", "--repair")
    assert code == 1, err
    line = "the failures queue (sync-rules failures --queue https://queue) has the reasons"
    assert line in out
