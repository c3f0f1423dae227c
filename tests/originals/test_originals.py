"""The study of original handlers, with a naive handler of our own in place of an original."""

from __future__ import annotations

import re
import sys

import aws_lambda_powertools
import boto3
import pytest
from moto import mock_aws

from sync_rules.language.load import load_rules
from tests.originals import __main__ as program
from tests.originals.applications import APPLICATIONS
from tests.originals.original import count_code_lines, update
from tests.originals.study import Study, make_ours
from tests.test_house import ROOT

NAIVE = '''
"""Adds what each record changes to the total of its product."""
import os
import boto3
from aws_lambda_powertools import Tracer  # a module that is not the real one

tracer = Tracer()
totals = boto3.resource("dynamodb").Table(os.environ["TABLE_NAME"])


@tracer.capture_lambda_handler
def lambda_handler(event, context):
    for record in event["Records"]:
        key, data = record["dynamodb"]["Keys"], record["dynamodb"]
        if key["sk"]["S"] == "totalquantity":
            continue
        old, new = (int(data.get(image, {}).get("quantity", {"N": "0"})["N"]) for image in ("OldImage", "NewImage"))
        try:
            totals.update_item(
                Key={"pk": key["sk"]["S"], "sk": "totalquantity"},
                UpdateExpression="ADD quantity :more",
                ExpressionAttributeValues={":more": new - old},
            )
        except Exception:
            pass
'''
COUNT = "SET #n = if_not_exists(#n, :zero) + :one, kind = :kind"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "db_stream_handler.py").write_text(NAIVE)
    return f"cart={tmp_path}"


def run(capsys, *arguments):
    """The exit code, and the cells of each row."""
    code = program.main(arguments)
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    return code, [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.night
def test_originals_naive_handler_is_wrong_when_repeated_and_rules_are_right(folder, capsys):
    """A handler that adds differences is right in any order, and wrong after a second delivery or a death."""
    code, (theirs, ours) = run(capsys, folder, "--histories", "20")
    assert (code, theirs["kept by"], ours["kept by"]) == (0, "its handler", "rules")
    assert theirs["in order"] == theirs["shuffled"] == "0 of 20"
    assert int(theirs["repeated"].split()[0]) > 10
    assert int(theirs["dying"].split()[0]) > 5
    assert {ours[delivery] for delivery in ("in order", "repeated", "shuffled", "dying")} == {"0 of 20"}
    assert float(theirs["write units"]) <= 1 < float(ours["write units"])
    assert (theirs["lines"], ours["lines"]) == ("20", "8")


def test_originals_program_fails_when_rules_are_wrong(folder, capsys, monkeypatch):
    """The exit code is 1 if numbers that rules keep are wrong."""
    monkeypatch.setattr(program, "make_ours", lambda gate: (lambda event: None, frozenset({"carts"})))
    code, (_, ours) = run(capsys, folder, "--histories", "2")
    assert (code, ours["in order"]) == (1, "2 of 2")


@pytest.mark.parametrize("name", APPLICATIONS)
def test_originals_rules_keep_the_numbers_of_each_application(name):
    """Rules end right without the folder of an original."""
    application = APPLICATIONS[name]
    tally = Study(application, load_rules(application.rules), make_ours).run(2, 7)
    assert not tally.wrong.total()
    assert tally.write_units > tally.changes


def test_originals_modules_are_the_real_ones_afterwards(folder, capsys):
    """An original's modules, and those that stand in for others, go with it."""
    run(capsys, folder, "--histories", "1")
    assert sys.modules["aws_lambda_powertools"] is aws_lambda_powertools
    assert "db_stream_handler" not in sys.modules


@pytest.mark.parametrize("item", [{}, {"n": {"N": "2.5"}, "kind": {"S": "old"}}])
@pytest.mark.parametrize(
    "expression", [COUNT, COUNT.replace("+", "-"), "ADD #n :one", "SET n=:one,kind=:kind ADD m :zero"]
)
def test_originals_updates_are_those_of_moto(item, expression):
    """Update expressions of the originals' forms do what moto does."""
    names, values = {"#n": "n"}, {":zero": {"N": "0"}, ":one": {"N": "1"}, ":kind": {"S": "day"}}
    names, values = ({k: v for k, v in some.items() if k in expression} for some in (names, values))
    key = {"pk": {"S": "1"}}
    asked = {"ExpressionAttributeValues": values, **({"ExpressionAttributeNames": names} if names else {})}
    with mock_aws():
        client = boto3.client("dynamodb", "us-east-1")
        client.create_table(
            TableName="one",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        )
        client.put_item(TableName="one", Item={**key, **item})
        client.update_item(TableName="one", Key=key, UpdateExpression=expression, **asked)
        expected = client.get_item(TableName="one", Key=key)["Item"]
    assert update({**key, **item}, expression, names, values) == expected


@pytest.mark.parametrize(
    "expression", ["REMOVE n", "SET n = list_append(n, :one)", "SET n = :one * :one", "DELETE n :one"]
)
def test_originals_other_updates_are_refused(expression):
    """No other form is read as if it were one of these."""
    with pytest.raises(ValueError, match=r"n"):
        update({}, expression, {}, {":one": {"N": "1"}})


def test_originals_lines_are_lines_of_code():
    """Neither docstrings nor comments nor blank lines count."""
    assert count_code_lines(NAIVE) == 20
    assert count_code_lines('"""One."""\n\n# two\nx = """\n#a\n"""  # three\n') == 3


def test_originals_table_in_the_docs_has_the_rules_as_they_are():
    """The page has each application once with its handler and once with its rules, whose lines it counts."""
    page = (ROOT / "docs/replaced.md").read_text()
    rows = re.findall(
        r"^\| (.+) \| rules \| (\d+) \|.* 0 of 1,000 \| 0 of 1,000 \| 0 of 1,000 \| 0 of 1,000 \|", page, re.MULTILINE
    )
    rules = {one.name: len(one.rules.read_text().splitlines()) for one in APPLICATIONS.values()}
    assert {name: int(lines) for name, lines in rows} == rules
    assert page.count("| its handler |") == len(rules)
