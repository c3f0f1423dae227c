"""Long commands while the service answers nothing: each shows what it waits for, stops by itself, and names a cure."""

from __future__ import annotations

import json
import sys
from itertools import count

import pytest

from sync_rules.adapters import aws, patience
from sync_rules.cli import main
from sync_rules.jobs.failure_log import FailureLog
from sync_rules.jobs.local_files import Files
from sync_rules.language.load import parse_rules
from sync_rules.model.items import Failure
from tests.support import engines
from tests.support.builders import author_item, book_item, key, s
from tests.support.depth import spread_over_night
from tests.support.lying_proxy import Answer, Asked, Engine, lying_proxy

RULES = """
tables:
  authors: {{name: {prefix}authors, key: {{author_id: S}}}}
  books: {{name: {prefix}books, key: {{book_id: S}}, indexes: {{by_author: {{author_id: S}}}}}}
entities: {{author: {{table: authors}}, book: {{table: books}}}}
rules:
  names: {{copy: author.name, into: book.author_name}}
"""
WRITES = {"UpdateItem", "BatchExecuteStatement", "TransactWriteItems"}
THROTTLE = {"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "message": ""}
FAULTS = {"throttled": Answer(400, json.dumps(THROTTLE).encode()), "503": Answer(503, b"")}


@pytest.fixture
def shop(engine, tmp_path, monkeypatch, capsys):
    """Runs a command at a service whose operations `down` fail, with half a second of patience."""
    text = RULES.format(prefix=engines.unique_prefix())
    rules = parse_rules(text)
    engines.create(engine, rules.tables)
    client = aws.dynamodb(engine)
    for table, item in (("authors", author_item("a1", name=s("Ada"))), ("books", book_item("b1", "a1"))):
        client.put_item(TableName=rules.tables[table].physical_name, Item=item)
    (tmp_path / "rules.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(patience, "FIRST_SHOWN_SECONDS", 0.0)
    monkeypatch.setattr(patience, "SHOWN_EVERY_SECONDS", 0.1)
    with lying_proxy(engine) as (url, proxy):

        def run(command: str, fault: str, down: set[str], failures: int = sys.maxsize) -> tuple[int, str]:
            numbers = count()

            def lie(asked: Asked, engine: Engine) -> Answer:
                return FAULTS[fault] if asked.operation in down and next(numbers) < failures else engine(asked)

            proxy.lie = lie
            words = command.format(books=rules.tables["books"].physical_name).split()
            code = main.main([*words, "--endpoint-url", url])
            found = capsys.readouterr()
            return code, " ".join((found.err + found.out).split())

        yield run


@pytest.mark.parametrize("fault", spread_over_night(FAULTS))
@pytest.mark.parametrize(
    ("command", "cure"),
    [
        ("backfill rules.yaml", "Try again later"),
        ("backfill rules.yaml --accept names", "Continue with the same command and --resume."),
        ("verify rules.yaml --grace-seconds 0", "Try again later"),
        ("plan rules.yaml", "Try again later"),
        ("prune rules.yaml", "Try again later"),
        ("propose --table {books} --yes", "Try again later"),
    ],
)
def test_command_shows_what_it_waits_for_and_stops_with_a_cure(shop, command, cure, fault):
    """No scan is answered. Once scans are answered, the command ends well if its cure is applied."""
    code, said = shop(command, fault, {"Scan"})
    assert code in (1, 2)
    assert "waiting since" in said
    assert "Without an answer this command stops at" in said
    assert cure in said
    code, said = shop(command + (" --resume" if "--resume" in cure else ""), fault, set())
    assert "waiting since" not in said
    assert code in (0, 1)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("command", "cure"), [("backfill rules.yaml", " --resume"), ("redrive rules.yaml", "")])
def test_work_whose_writes_fail_is_left_and_continued(shop, command, cure, fault):
    """Reads are answered, and the writes alone wait. A backfill keeps no failure record: it only has to continue."""
    failure = Failure("names", key(parse_rules(RULES.format(prefix="")).tables["books"], "b1"), "ThrottlingException")
    failures = FailureLog(Files.failures, lambda: 0)
    if not cure:
        failures.park(failure)
    code, said = shop(command, fault, WRITES)
    assert code == 1
    assert "waiting since" in said
    assert "this command stops at" in said
    assert Files.failures.exists() == (not cure)
    code, said = shop(command + cure, fault, set())
    assert code == 0
    assert f"1 {'copies ' if cure else ''}written" in said
