"""`sync-rules selftest` on an emulator: whole, each fact made false, killed at any point."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

import boto3
import pytest

from sync_rules.cli import main
from sync_rules.extras.proof import cost_estimate
from sync_rules.extras.proof import proof_stack as sites
from sync_rules.extras.proof.commands import selftest
from sync_rules.extras.proof.commands import selftest as running
from sync_rules.extras.proof.commands.selftest import PROBES
from sync_rules.extras.proof.probe import Polling, ProbeResult, ProbeVerdict, run_probe
from sync_rules.extras.proof.probes import stream_facts
from sync_rules.extras.proof.proof_stack import (
    PREFIX,
    Clients,
    ProofSite,
    create,
    list_stacks,
    new_journal,
    remove,
    template,
)
from tests.deploy import forked
from tests.deploy.lies import CORRECTIONS, LIES, together
from tests.deploy.stacks import NOBODY
from tests.deploy.tools import REGION, run, tool
from tests.support.depth import deep
from tests.support.engines import Endpoints
from tests.support.lying_proxy import Answer, Asked, Engine, Lie, Proxy, Watched, before, lying_proxy

PATIENT_SECONDS = 120  # a loop through a function takes half of it on an idle machine
LIED_SECONDS = 10  # for what never comes, where a shorter wait did not show why
IMPATIENT_SECONDS = 1.0
LOOK_SECONDS = 0.05  # an emulator has no limit for looks, and each of them is free
STACKED = {1, 53, 71}  # their lies are put before the corrections: the others take their place
STATEMENTS = 1  # a gap of the engine as it is, which its process in the package closes
REPLICAS = 73  # without its correction the engine makes a replica that no stack removes
EXPIRY = 9  # its correction would be a record among those of all other probes
MADE_BY_THE_ENGINE = {12, 13, 64}  # their lies leave a gap of the engine as it is, and change nothing
KILLS = 20  # a third of them in a run of every day: each operation once
APPEARS_SECONDS = 0.5  # the engine has answered before the process is killed: its stack is there, or never will be


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
def site(engine: str, proxied: tuple[str, Proxy], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProofSite]:
    """A stack, asked through the proxy."""
    waiting: Polling[Any] = Polling(
        PATIENT_SECONDS, LOOK_SECONDS, sleep=lambda asked: time.sleep(min(asked, LOOK_SECONDS))
    )
    clients = Clients(engine)
    journal = new_journal(tmp_path_factory.mktemp("selftest"), clients)
    journal.write()
    made = create(journal, clients, waiting)
    yield replace(made, clients=Clients(proxied[0]), waiting=waiting)
    remove(journal.stack, clients, waiting)
    assert list_stacks(clients) == []


def found_on(site: ProofSite, proxy: Proxy, number: int, lie: Lie | None, seconds: float) -> ProbeResult:
    """The finding of one probe while a lie is in force."""
    asked = replace(site, waiting=replace(site.waiting, seconds=seconds))
    proxy.lie = lie
    try:
        return run_probe(number, lambda: PROBES[number](asked))
    finally:
        proxy.lie = None


def test_selftest_template_is_one_that_cloudformation_takes(tmp_path):
    """cfn-lint finds nothing in the stack's template."""
    path = tmp_path / "template.json"
    path.write_text(template(f"{PREFIX}0123456789"))
    assert not run(tool("sam", "bin", "cfn-lint"), path)


# ---------------------------------------------------------------- true
def test_selftest_finds_that_an_item_expired(site, proxied):
    """With the engine's gap corrected, the fact is found to hold. The test of a whole run has all others."""
    seen = found_on(site, proxied[1], EXPIRY, CORRECTIONS[EXPIRY](), PATIENT_SECONDS)
    assert seen.verdict is ProbeVerdict.HOLDS, seen


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.xfail(strict=True, reason="a gap of ministack")) for number in CORRECTIONS if number not in (STATEMENTS, REPLICAS)]
)  # fmt: skip
def test_selftest_finds_the_gaps_of_the_engine(site, proxied, number):
    """Without the corrections the engine lacks these facts: one that it learns, or a wrong entry, fails the run."""
    seen = found_on(site, proxied[1], number, None, IMPATIENT_SECONDS)
    assert seen.verdict is ProbeVerdict.HOLDS


# ---------------------------------------------------------------- false
def test_selftest_every_fact_has_a_lie():
    """Each fact that is tested is made false once; 66 is told by the stack's outputs."""
    assert LIES.keys() == PROBES.keys() - {66}


@pytest.mark.night
@pytest.mark.parametrize("number", LIES)
def test_selftest_catches_each_lie(site, proxied, number):
    """A fact that is made false is found false, for the reason that the lie made."""
    make, words = LIES[number]
    for seconds in (IMPATIENT_SECONDS, LIED_SECONDS):
        lie = Watched(make())
        stacked = before(lie, CORRECTIONS[number]()) if number in STACKED else lie
        seen = found_on(site, proxied[1], number, stacked, seconds)
        told = lie.told or number in MADE_BY_THE_ENGINE  # else it was the impatience that made the fact false
        if (seen.verdict, words in seen.seen, told) == (ProbeVerdict.FALSE, True, True):
            return
    pytest.fail(f"{seen}: expected {words!r}; the lie was {'' if told else 'not '}told")


@pytest.mark.parametrize("outputs", [{}, {"State": "CREATING"}])
def test_selftest_catches_a_resource_that_was_made_too_early(site, outputs):
    """A custom resource that saw no table, or was never answered, is found."""
    asked = replace(site, outputs=outputs)
    assert run_probe(66, lambda: PROBES[66](asked)).verdict is ProbeVerdict.FALSE


# ---------------------------------------------------------------- whole
def test_selftest_runs_whole_and_within_its_estimate(engine, proxied, tmp_path, monkeypatch, capsys):
    """All probes in one command: exit code 0, a report, nothing left, no more than estimated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stream_facts, "READ_SECONDS", LOOK_SECONDS)
    monkeypatch.setattr(running, "STACK_LOOK_SECONDS", LOOK_SECONDS)
    url, proxy = proxied
    proxy.counts.clear()
    proxy.lie = together(*(make() for number, make in CORRECTIONS.items() if number != EXPIRY))
    code = main.main(["selftest", "--yes", "--wait", str(PATIENT_SECONDS), "--endpoint-url", url])
    proxy.lie = None
    out, told = capsys.readouterr()
    text = (tmp_path / "sync-rules-selftest.json").read_text()
    assert "a table of ACCOUNT" in text  # people attach it: no account's number, no item
    assert not re.search(r"\d{12}", text)
    assert '"pk"' not in text
    report = json.loads(text)
    false = [one for one in report["assumptions"] if one["verdict"] not in {"holds", "not tested"}]
    assert (code, false) == (0, []), out
    assert report["counts"]["holds"] == len(PROBES) - 1
    assert "Estimated at" in told
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    assert leftovers(engine) == []
    quantities = {part.what: part.quantity for part in cost_estimate.parts()}
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
    assert "1 do not hold, 1 not tested" in out
    assert leftovers(url) == []


# ---------------------------------------------------------------- killed
@cache
def iam(url: str) -> Any:
    """A client that takes the roles as the engine lists them, of which some have another form than AWS's."""
    return boto3.client("iam", endpoint_url=url, region_name=REGION, **NOBODY)


def leftovers(url: str) -> list[str]:
    """Everything of a self-test that an engine has, but for the stack of the other tests here."""
    clients = Clients(url)
    names = [
        *clients.dynamodb.list_tables()["TableNames"],
        *(one["FunctionName"] for one in clients.lambdas.list_functions()["Functions"]),
        *(one["RoleName"] for one in iam(url).list_roles()["Roles"]),
        *(one["Name"] for one in clients.s3.list_buckets()["Buckets"]),
        *(one["name"] for one in clients.stepfunctions.list_state_machines()["stateMachines"]),
        *(one.rpartition("/")[2] for one in clients.sqs.list_queues().get("QueueUrls", ())),
        *(
            one["FunctionArn"].rpartition(":")[2]
            for one in clients.lambdas.list_event_source_mappings()["EventSourceMappings"]
        ),
        *list_stacks(clients),
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
        self._pid, self._started = 0, Event()

    def __call__(self, asked: Asked, engine: Engine) -> Answer:
        if asked.operation != self._operation:
            return engine(asked)
        self._left -= 1
        answer = engine(asked) if self._left or self._carried_out else None
        if self._left == 0:
            assert self._started.wait(PATIENT_SECONDS)
            os.kill(self._pid, self._number)
        return answer or Answer(500, b"")

    def exit_code(self, folder: Path, proxied: tuple[str, Proxy]) -> int | None:
        """The exit code of a self-test that is killed."""
        url, proxy = proxied
        proxy.lie = self
        try:
            process = forked.started(folder, url)
            self._pid = process.pid or 0
            self._started.set()
            process.join(PATIENT_SECONDS)
            return process.exitcode
        finally:
            proxy.lie = None


@pytest.fixture(scope="module")
def killable(proxied: tuple[str, Proxy]) -> tuple[str, Proxy]:
    """The proxy, and a server that forks what is to be killed."""
    forked.serve()
    return proxied


@pytest.mark.parametrize(("operation", "nth"), [("CreateStack", 1), ("DescribeStacks", 2), ("PutItem", 5)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_selftest_removes_everything_when_it_is_interrupted(killable, tmp_path, operation, nth, number):
    """After Ctrl-C or SIGTERM the stack is removed, then the command ends with 130: no file is left, and no report."""
    clients = Clients(killable[0])
    before_it = set(list_stacks(clients))
    assert Killer(operation, nth, carried_out=True, number=number).exit_code(tmp_path, killable) == 130
    assert set(list_stacks(clients)) <= before_it
    assert list(tmp_path.iterdir()) == []


@pytest.mark.night
@pytest.mark.parametrize("seed", range(deep(KILLS)))
def test_selftest_clean_removes_what_a_kill_left(killable, tmp_path, monkeypatch, seed):
    """Killed at any request, before or after the engine has it: --clean in the same folder leaves nothing."""
    draw = random.Random(seed)
    turn, number = divmod(seed, len(POINTS))
    operation = list(POINTS)[number]
    killer = Killer(operation, draw.choice(POINTS[operation]), carried_out=(turn + number) % 2 == 0)
    assert killer.exit_code(tmp_path, killable) == -signal.SIGKILL
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(selftest, "STACK_LOOK_SECONDS", LOOK_SECONDS)
    monkeypatch.setattr(sites, "APPEARS_SECONDS", APPEARS_SECONDS)
    noted = list(Path().glob(f".{PREFIX}*.json"))
    assert len(noted) == 1
    stack = json.loads(noted[0].read_text())["stack"]
    assert main.main(["selftest", "--clean", "--yes", "--endpoint-url", killable[0]]) == 0
    assert [name for name in leftovers(killable[0]) if name.startswith(stack)] == []
    assert list(tmp_path.iterdir()) == []
