"""`sync-rules selftest` on an emulator: whole, each fact made false, killed at any point."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore.client import BaseClient

from sync_rules.cli import main
from sync_rules.extras.proof import cost_estimate
from sync_rules.extras.proof import proof_stack as sites
from sync_rules.extras.proof.commands import selftest
from sync_rules.extras.proof.commands.selftest import PROBES
from sync_rules.extras.proof.probe import Polling, ProbeResult, ProbeVerdict, run_probe
from sync_rules.extras.proof.probes import stream_facts
from sync_rules.extras.proof.proof_stack import (
    PREFIX,
    Clients,
    ProofSite,
    create,
    list_stacks,
    make_journal,
    make_template,
    remove,
)
from tests.deploy.lies import CORRECTIONS, LIES, together
from tests.deploy.stacks import NOBODY
from tests.deploy.tools import REGION, run, tool
from tests.support.engines import Endpoints
from tests.support.lying_proxy import Lie, Proxy, Watched, before, lying_proxy

PATIENT_SECONDS = 120  # a loop through a function takes half of it on an idle machine
LIED_SECONDS = 10  # for what never comes, where a shorter wait did not show why
IMPATIENT_SECONDS = 1.0
LOOK_SECONDS = 0.05  # an emulator has no limit for looks, and each of them is free
STACKED = {1, 53, 71}  # their lies are put before the corrections: the others take their place
EXPIRY = 9  # its correction would be a record among those of all other probes
MADE_BY_THE_ENGINE = {12, 13, 64}  # their lies leave a gap of the engine as it is, and change nothing


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
    journal = make_journal(tmp_path_factory.mktemp("selftest"), clients)
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


@pytest.mark.night
def test_selftest_template_is_one_that_cloudformation_takes(tmp_path):
    """cfn-lint finds nothing in the stack's template."""
    path = tmp_path / "template.json"
    path.write_text(make_template(f"{PREFIX}0123456789"))
    assert not run(tool("sam", "bin", "cfn-lint"), path)


# ---------------------------------------------------------------- true
def test_selftest_finds_that_an_item_expired(site, proxied):
    """With the engine's gap corrected, the fact is found to hold. The test of a whole run has all others."""
    seen = found_on(site, proxied[1], EXPIRY, CORRECTIONS[EXPIRY](), PATIENT_SECONDS)
    assert seen.verdict is ProbeVerdict.HOLDS, seen


# ---------------------------------------------------------------- false
def test_selftest_every_fact_has_a_lie():
    """Each tested fact has a lie that makes it false. The stack's outputs decide 66."""
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
@pytest.mark.night
def test_selftest_runs_whole_and_within_its_estimate(engine, proxied, tmp_path, monkeypatch, capsys):
    """All probes in one command: exit code 0, a report, nothing left, no more than estimated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(stream_facts, "READ_SECONDS", LOOK_SECONDS)
    monkeypatch.setattr(selftest, "STACK_LOOK_SECONDS", LOOK_SECONDS)
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
    quantities = {part.what: part.quantity for part in cost_estimate.list_parts()}
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
    """A client that takes the roles as the engine lists them. Some roles have another form than AWS's."""
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


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """The folder where the user is; an emulator has a stack at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(selftest, "STACK_LOOK_SECONDS", LOOK_SECONDS)
    monkeypatch.setattr(sites, "APPEARS_SECONDS", LOOK_SECONDS)
    return tmp_path


def test_selftest_removes_everything_when_it_is_interrupted(proxied, here, monkeypatch):
    """After Ctrl-C or SIGTERM the stack is removed, then the command ends with 130: no file is left, and no report."""
    url, proxy = proxied
    proxy.counts.clear()

    @contextmanager
    def signals():
        yield lambda: proxy.counts["PutItem"] > 0

    monkeypatch.setattr(selftest, "stop_signals", signals)
    assert main.main(["selftest", "--yes", "--only", "21", "--endpoint-url", url]) == 130
    assert leftovers(url) == []
    assert list(here.iterdir()) == []


class KilledError(BaseException):
    """The end of a process that does nothing any more."""


@pytest.mark.night
@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize(
    ("operation", "nth"), [("CreateStack", 1), ("DescribeStacks", 3), ("PutItem", 5), ("DeleteStack", 1)]
)
def test_selftest_clean_removes_what_a_kill_left(engine, here, operation, nth, carried_out):
    """Killed at a request, before or after the engine has it: --clean in the same folder leaves nothing."""
    call, left = BaseClient._make_api_call, nth

    def call_until_killed(client: BaseClient, name: str, given: Any) -> Any:
        nonlocal left
        left -= name == operation and left > 0
        if left > 0:
            return call(client, name, given)
        if carried_out and name == operation:
            call(client, name, given)
        raise KilledError

    with patch.object(BaseClient, "_make_api_call", call_until_killed), pytest.raises(KilledError):
        main.main(["selftest", "--yes", "--only", "21", "--endpoint-url", engine])
    assert len([*here.glob(f".{PREFIX}*.json")]) == 1
    assert main.main(["selftest", "--clean", "--yes", "--endpoint-url", engine]) == 0
    assert leftovers(engine) == []
    assert list(here.iterdir()) == []
