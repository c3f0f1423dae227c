"""`make facts` on the installed botocore, and on models that were falsified: each change is found, with number and code."""

from __future__ import annotations

import copy
import subprocess
import zipfile
from types import SimpleNamespace

import pytest

from sync_rules.extras.proof.probe import ASSUMPTIONS
from tests.facts import __main__ as facts
from tests.facts.service_models import SERVICES, ServiceModels, compare_models, read_calls
from tests.support.depth import spread_over_night

INSTALLED = facts.find_installed()
STATEMENTS = [(one.number, path) for one in ASSUMPTIONS.values() for path in one.model]


def falsify(change, service="dynamodb"):
    """The installed models with one service changed."""
    altered = copy.deepcopy(INSTALLED.service(service))
    change(altered["shapes"], altered["operations"])
    models = ServiceModels(INSTALLED.data, "9.9.9")
    models.service = lambda name: altered if name == service else INSTALLED.service(name)
    return models


def test_facts_hold_in_the_installed_botocore(capsys):
    """Exit code 0, and the number of statements compared."""
    assert facts.report(INSTALLED, INSTALLED) == 0
    assert f"{len(STATEMENTS)} statements about" in capsys.readouterr().out


CHANGES = {
    "a limit": (
        23,
        lambda shapes, _: shapes["KeyList"].update(max=50),
        "dynamodb.KeyList.max is 50, expected 100 (sync_rules.adapters.batch_reader:BATCH_GET_MAX_KEYS)",
    ),
    "a shape": (32, lambda shapes, _: shapes.pop("TransactWriteItemList") and shapes["TransactWriteItemsInput"]["members"].pop("TransactItems"), "dynamodb.TransactWriteItemList.max is not in the model any more"),
    "a value": (1, lambda shapes, _: shapes["StreamViewType"].update(enum=["KEYS_ONLY"]), "has no NEW_AND_OLD_IMAGES any more"),
    "a text": (22, lambda shapes, _: shapes["BatchGetItemOutput"]["members"]["Responses"].update(documentation=""), "no longer says"),
    "an error": (33, lambda _, operations: operations["UpdateItem"].update(errors=[]), "has no TransactionConflictException any more"),
    "an operation": (72, lambda _, operations: operations.pop("ListBulkOperations"), "dynamodb ListBulkOperations is gone"),
    "a member": (72, lambda shapes, _: shapes["GetItemInput"]["members"].pop("ConsistentRead"), "GetItem has no member ConsistentRead any more"),
    "a type": (72, lambda shapes, _: shapes["ConsistentRead"].update(type="string"), "GetItem.ConsistentRead is a string, and was a boolean"),
    "a required member": (72, lambda shapes, _: shapes["GetItemInput"]["required"].append("Reason"), "GetItem now requires Reason"),
    "a value of a call": (72, lambda shapes, _: shapes["ShardIteratorType"].update(enum=["LATEST"]), "GetShardIterator.ShardIteratorType has no value TRIM_HORIZON any more"),
}  # fmt: skip


@pytest.mark.parametrize("what", spread_over_night(CHANGES, share=len(CHANGES)))
def test_facts_names_number_and_code_of_what_changed(capsys, what):
    """Exit code 1; the line has the fact's number and the difference, and the code is named."""
    number, change, text = CHANGES[what]
    service = "dynamodbstreams" if "Shard" in text else "dynamodb"
    assert facts.report(falsify(change, service), INSTALLED) == 1
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith(f"fact {number} changed: ") and text in line]
    code = out[out.index(line) :].splitlines()[2]
    assert code.startswith("  Relied on by: sync_rules")
    if number != facts.CALLS_FACT:
        assert ASSUMPTIONS[number].relied_on[0] in code


@pytest.mark.parametrize(("number", "path"), STATEMENTS, ids=[f"{number}-{path}" for number, path in STATEMENTS])
def test_facts_each_statement_can_be_false(number, path):
    """A model with another value at the place contradicts the fact."""
    found = INSTALLED.find(path)
    other = found + 1 if isinstance(found, int) else type(found)()
    assert facts.find_difference(SimpleNamespace(find=lambda _: other), path, ASSUMPTIONS[number].model[path])


def test_facts_lists_what_is_new_and_does_not_fail(capsys):
    """Operations, members and values that are new are named with their version: exit code 0."""

    def add(shapes, operations):
        operations["StartDreaming"] = {}
        shapes["GetItemInput"]["members"]["Mood"] = {"shape": "ConsistentRead"}
        shapes["ReturnConsumedCapacity"]["enum"].append("ALWAYS")

    assert facts.report(falsify(add), INSTALLED) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"new in 9.9.9: dynamodb StartDreaming", "new in 9.9.9: dynamodb GetItem: member Mood"} <= {*lines}
    assert any(line.endswith("ReturnConsumedCapacity: value ALWAYS") for line in lines)
    assert facts.REVIEW in lines


def test_facts_ignores_what_the_code_does_not_name():
    """A member that no line of the code names may go; an operation that no line calls too."""
    calls = read_calls([("a.py", "client.get_item(Key=1)")])

    def remove(shapes, operations):
        del shapes["GetItemInput"]["members"]["ConsistentRead"], operations["PutItem"]

    assert [*compare_models(INSTALLED, falsify(remove), calls)] == []
    (change,) = compare_models(
        INSTALLED, falsify(lambda shapes, _: shapes["GetItemInput"]["members"].pop("Key")), calls
    )
    assert change.files == ("a.py",)


def test_facts_reads_a_wheel(tmp_path):
    """The models in a wheel are those in the folder."""
    wheel = tmp_path / f"botocore-{INSTALLED.version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted((INSTALLED.data / "sqs").rglob("service-2*")):
            archive.write(path, f"botocore/data/{path.relative_to(INSTALLED.data)}")
    models = ServiceModels.of_wheel(wheel)
    assert models.version == INSTALLED.version
    assert models.service("sqs") == INSTALLED.service("sqs")


@pytest.mark.parametrize("answer", ["ERROR: No matching distribution", ""])
def test_facts_says_why_nothing_was_compared(monkeypatch, capsys, answer):
    """Without a registry: exit code 2, with pip's last line."""
    failed = subprocess.CompletedProcess([], 1, "", answer)
    monkeypatch.setattr(facts.subprocess, "run", lambda *_, **__: failed)
    assert facts.main([]) == 2
    assert "nothing was compared: pip cannot download botocore: " in capsys.readouterr().err


def test_facts_watches_every_service_that_the_code_calls():
    """A client of the product is of a service whose model is compared."""
    texts = dict(facts.read_sources())
    named = {
        name
        for call in (r'_client\("(\w+)"', r"clients\.(\w+)\.")
        for text in texts.values()
        for name in facts.re.findall(call, text)
    }
    named |= {name for text in texts.values() for name in facts.re.findall(r'find_client\("(\w+)"', text)}
    assert {one.replace("lambdas", "lambda") for one in named} <= {*SERVICES}
