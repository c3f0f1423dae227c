"""`sync-rules selftest` on an emulator: whole, each fact made false, killed at any point."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from sync_rules.cli import main
from sync_rules.selftest import cost
from sync_rules.selftest.probe import Finding, Verdict, Waiting, finding
from sync_rules.selftest.registry import PROBES
from sync_rules.selftest.site import PREFIX, Clients, Site, create, left, new_journal, remove
from sync_rules.selftest.template import template
from tests.deploy.lies import CORRECTIONS, LIES, together
from tests.deploy.stacks import NOBODY
from tests.deploy.tools import REGION, run, tool
from tests.support.engines import ROOT, Endpoints
from tests.support.lying_proxy import Answer, Asked, Engine, Lie, Proxy, before, lying_proxy

PATIENT_SECONDS = 120  # a loop through a function takes half of it on an idle machine
LIED_SECONDS = 10
STACKED = {1, 53}  # their lies are put before the corrections: the others take their place
STATEMENTS = 1  # a gap of the engine as it is, which its process in the package closes
EXPIRY = 9  # its correction would be a record among those of all other probes
KILLS = 20


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """An engine with functions; its URL."""
    with ExitStack() as stack:
        yield Endpoints(stack).of("ministack")


@pytest.fixture(scope="module")
def proxied(engine: str) -> Iterator[tuple[str, Proxy]]:
    """A proxy before the engine."""
    with lying_proxy(engine) as found:
        yield found


@pytest.fixture(scope="module")
def site(engine: str, proxied: tuple[str, Proxy], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A stack, asked through the proxy."""
    waiting: Waiting[Any] = Waiting(PATIENT_SECONDS)
    clients = Clients(engine)
    journal = new_journal(tmp_path_factory.mktemp("selftest"), clients)
    journal.write()
    made = create(journal, clients, waiting)
    yield replace(made, clients=Clients(proxied[0]), waiting=waiting)
    remove(journal.stack, clients, waiting)
    assert left(clients) == []


def found_on(site: Site, proxy: Proxy, number: int, lie: Lie | None, seconds: float) -> Finding:
    """The finding of one probe while a lie is in force."""
    asked = replace(site, waiting=replace(site.waiting, seconds=seconds))
    proxy.lie = lie
    try:
        return finding(number, lambda: PROBES[number](asked))
    finally:
        proxy.lie = None


def test_selftest_template_is_one_that_cloudformation_takes(tmp_path):
    """cfn-lint finds nothing in the stack's template."""
    path = tmp_path / "template.json"
    path.write_text(template(f"{PREFIX}0123456789"))
    assert not run(tool("sam", "bin", "cfn-lint"), path)


# ---------------------------------------------------------------- true
@pytest.mark.parametrize("number", PROBES)
def test_selftest_finds_a_fact_that_holds(site, proxied, number):
    """On an engine that does as AWS does, with its known gaps corrected, each fact is found to hold."""
    correction = CORRECTIONS.get(number, lambda: None)()
    seen = found_on(site, proxied[1], number, correction, PATIENT_SECONDS)
    assert seen.verdict is Verdict.HOLDS, seen


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.xfail(strict=True, reason="a gap of ministack")) for number in CORRECTIONS if number != STATEMENTS]
)  # fmt: skip
def test_selftest_finds_the_gaps_of_the_engine(site, proxied, number):
    """Without the corrections the engine lacks these facts: one that it learns, or a wrong entry, fails the run."""
    seen = found_on(site, proxied[1], number, None, LIED_SECONDS)
    assert seen.verdict is Verdict.HOLDS


# ---------------------------------------------------------------- false
def test_selftest_every_fact_has_a_lie():
    """Each fact that is tested is made false once; 66 is told by the stack's outputs."""
    assert LIES.keys() == PROBES.keys() - {66}


@pytest.mark.parametrize("number", LIES)
def test_selftest_catches_each_lie(site, proxied, number):
    """A fact that is made false is found false, for the reason that the lie made."""
    make, words = LIES[number]
    lie = before(make(), CORRECTIONS[number]()) if number in STACKED else make()
    seen = found_on(site, proxied[1], number, lie, LIED_SECONDS)
    assert seen.verdict is Verdict.FALSE, seen
    assert words in seen.seen


@pytest.mark.parametrize("outputs", [{}, {"State": "CREATING"}])
def test_selftest_catches_a_resource_that_was_made_too_early(site, outputs):
    """A custom resource that saw no table, or was never answered, is found."""
    asked = replace(site, outputs=outputs)
    assert finding(66, lambda: PROBES[66](asked)).verdict is Verdict.FALSE


# ---------------------------------------------------------------- whole
@pytest.mark.timeout(1200)
def test_selftest_runs_whole_and_within_its_estimate(engine, proxied, tmp_path, monkeypatch, capsys):
    """All probes and the measurement in one command: exit code 0, two reports, nothing left, no more than estimated."""
    monkeypatch.chdir(tmp_path)
    url, proxy = proxied
    proxy.counts.clear()
    proxy.lie = together(*(make() for number, make in CORRECTIONS.items() if number != EXPIRY))
    code = main.main(["selftest", "--yes", "--wait", str(PATIENT_SECONDS), "--endpoint-url", url])
    proxy.lie = None
    out, told = capsys.readouterr()
    report = json.loads((tmp_path / "sync-rules-selftest.json").read_text())
    false = [one for one in report["assumptions"] if one["verdict"] not in {"holds", "not tested"}]
    assert (code, false) == (0, []), out
    assert report["counts"]["holds"] == len(PROBES) - 1
    assert report["measured"]["p50_ms"] <= report["measured"]["p95_ms"] <= report["measured"]["p99_ms"]
    assert report["measured"]["copies_per_second"] > 0
    assert (
        (tmp_path / "sync-rules-selftest.md").read_text().startswith("# sync-rules selftest: every tested fact holds")
    )
    assert "Estimated at" in told
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert leftovers(engine) == []
    quantities = {part.what: part.quantity for part in cost.parts()}
    sqs = ("SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility")
    assert sum(proxy.counts[name] for name in sqs) < quantities["SQS requests"]
    assert proxy.counts["GetMetricStatistics"] < quantities["CloudWatch requests"]
    assert proxy.counts["GET"] + proxy.counts["PUT"] < quantities["S3 lists and puts"]
    assert proxy.counts["GetRecords"] < quantities["DynamoDB Streams reads"]
    assert proxy.counts["StartExecution"] * 20 < quantities["Step Functions transitions"]


def test_selftest_says_what_depends_on_a_fact_that_does_not_hold(proxied, tmp_path, monkeypatch, capsys):
    """Exit code 1, the consequence, the code and the setting that avoids it; what was made is removed."""
    monkeypatch.chdir(tmp_path)
    url, proxy = proxied
    proxy.lie = LIES[38][0]()
    code = main.main(["selftest", "--yes", "--only", "38", "--only", "4", "--endpoint-url", url])
    proxy.lie = None
    out = capsys.readouterr().out
    assert code == 1
    for text in (
        "38 does not hold",
        "If it is false",
        "sync_rules.adapters.batch_writer:Batches",
        "SYNC_RULES_WRITES=update",
    ):
        assert text in out
        assert text in (tmp_path / "sync-rules-selftest.md").read_text().replace("**38.**", "38 does not hold")
    assert "1 do not hold, 1 not tested" in out
    assert leftovers(url) == []


# ---------------------------------------------------------------- killed
def leftovers(url: str) -> list[str]:
    """Everything of a self-test that an engine has, but for the stack of the other tests here."""
    clients = Clients(url)
    iam = boto3.client("iam", endpoint_url=url, region_name=REGION, **NOBODY)
    names = [
        *clients.dynamodb.list_tables()["TableNames"],
        *(one["FunctionName"] for one in clients.lambdas.list_functions()["Functions"]),
        *(one["RoleName"] for one in iam.list_roles()["Roles"]),
        *(one["Name"] for one in clients.s3.list_buckets()["Buckets"]),
        *(one["name"] for one in clients.stepfunctions.list_state_machines()["stateMachines"]),
        *(one.rpartition("/")[2] for one in clients.sqs.list_queues().get("QueueUrls", ())),
        *(
            one["FunctionArn"].rpartition(":")[2]
            for one in clients.lambdas.list_event_source_mappings()["EventSourceMappings"]
        ),
        *left(clients),
    ]
    return sorted(name for name in names if name.startswith(PREFIX) and not name.startswith(tuple(KEPT)))


KEPT: list[str] = ["nothing yet"]


@pytest.fixture(autouse=True)
def _others(request: pytest.FixtureRequest) -> None:
    """The stack that other tests of this module use is no leftover."""
    if "site" in request.fixturenames:
        KEPT.append(request.getfixturevalue("site").name)


# Requests at which a process is killed; the first DescribeStacks comes before anything is noted or made.
POINTS = {
    "CreateStack": range(1, 2),
    "DescribeStacks": range(2, 5),
    "PutItem": range(1, 21),
    "BatchGetItem": range(1, 21),
    "GET": range(1, 2),
    "DeleteStack": range(1, 2),
}


class Killer:
    """Signals a process at the n-th request of an operation, before the engine has it or after."""

    def __init__(self, operation: str, nth: int, *, carried_out: bool, number: int = signal.SIGKILL) -> None:
        self._operation, self._left, self._carried_out, self._number = operation, nth, carried_out, number
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self, asked: Asked, engine: Engine) -> Answer:
        if asked.operation != self._operation:
            return engine(asked)
        self._left -= 1
        answer = engine(asked) if self._left or self._carried_out else None
        if self._left == 0 and self.process is not None:
            self.process.send_signal(self._number)
        return answer or Answer(500, b"")


def started(folder: Path, url: str) -> subprocess.Popen[bytes]:
    """The command with one probe, in a process and a folder of its own."""
    command = [sys.executable, "-m", "sync_rules", "selftest", "--yes", "--only", "21", "--endpoint-url", url]
    silent: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, **silent)


@pytest.mark.parametrize(("operation", "nth"), [("CreateStack", 1), ("DescribeStacks", 2), ("PutItem", 5)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_selftest_removes_everything_when_it_is_interrupted(engine, tmp_path, operation, nth, number):
    """After Ctrl-C or SIGTERM the stack is removed, then the command ends with 130: no file is left, and no report."""
    killer = Killer(operation, nth, carried_out=True, number=number)
    with lying_proxy(engine) as (url, proxy):
        proxy.lie = killer
        before_it = set(left(Clients(engine)))
        killer.process = started(tmp_path, url)
        assert killer.process.wait() == 130
    assert set(left(Clients(engine))) <= before_it
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", range(KILLS))
def test_selftest_clean_removes_what_a_kill_left(engine, tmp_path, monkeypatch, seed):
    """Killed at any request, before or after the engine has it: --clean in the same folder leaves nothing."""
    draw = random.Random(seed)
    operation = draw.choice(list(POINTS))
    killer = Killer(operation, draw.choice(POINTS[operation]), carried_out=draw.random() < 0.5)
    monkeypatch.chdir(tmp_path)
    with lying_proxy(engine) as (url, proxy):
        proxy.lie = killer
        killer.process = started(tmp_path, url)
        assert killer.process.wait() == -signal.SIGKILL
        proxy.lie = None
        noted = list(Path().glob(f".{PREFIX}*.json"))
        assert len(noted) == 1
        stack = json.loads(noted[0].read_text())["stack"]
        assert main.main(["selftest", "--clean", "--yes", "--endpoint-url", url]) == 0
    assert [name for name in leftovers(engine) if name.startswith(stack)] == []
    assert list(tmp_path.iterdir()) == []
