"""The inputs of a construct: given tables fit the rules, or a message names table, expected, found and cure."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from sync_rules.adapters.preflight import IMAGES
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.resources import make_parameters
from sync_rules.extras.cdk import inputs
from sync_rules.extras.cdk.inputs import GivenTable
from sync_rules.model.errors import UserError
from tests.support.cloudformation import read_template
from tests.test_house import ROOT

RULES = """
tables:
  shop:    {name: "${STAGE:-dev}-shop", key: {PK: S, SK: S}}
  authors: {name: "${AUTHORS}", key: {author_id: S}}
  books:   {key: {book_id: S}, indexes: {by_author: {author_id: S}}}
  unused:  {key: {PK: S}}
entities:
  user:   {table: shop, key: {PK: "USER#{user_id}", SK: PROFILE}}
  order:  {table: shop, key: {PK: "USER#{user_id}", SK: "ORDER#{order_id}"}}
  author: {table: authors}
  book:   {table: books}
rules:
  user-name-on-orders: copy user.name into order.user_name
  author-name-on-books: {copy: author.name, into: book.author_name}
"""


@pytest.fixture
def rules_file(tmp_path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def wire(rules_file, tables, parameters=None):
    deployment = read_deployment(rules_file)
    return inputs.wire_tables(deployment, rules_file, tables, parameters or {}, make_parameters(deployment))


def test_template_has_the_parts_that_the_constructs_replace():
    """The constructs of both languages replace the locations of code and definitions: tests of the night run them."""
    template = read_template((ROOT / "template.yaml").read_text())
    machines = [one for one in template["Resources"].values() if one["Type"] == "AWS::Serverless::StateMachine"]
    assert template["Globals"]["Function"]["CodeUri"]
    assert machines
    assert all(one["Properties"]["DefinitionUri"] for one in machines)


def test_inputs_wire_streams_and_names(rules_file):
    """Each stream has a parameter; a name that is one variable alone has one too."""
    fine = {
        "shop": GivenTable(IMAGES, "dev-shop"),
        "authors": GivenTable(IMAGES, ""),
        "books": GivenTable(None, None),
    }
    streams, names = wire(rules_file, fine)
    assert streams == {"shop": "ShopStreamArn", "authors": "AuthorsStreamArn", "books": "BooksStreamArn"}
    assert names == {"authors": "AuthorsVariable"}
    assert wire(rules_file, {"authors": GivenTable(IMAGES, "given")}, {"AuthorsVariable": "given"})[1] == {}


@pytest.mark.parametrize(
    ("name", "given", "parameters", "message"),
    [
        ("shop", GivenTable("KEYS_ONLY", "dev-shop"), {}, "table shop: expected a stream of NEW_AND_OLD_IMAGES, found KEYS_ONLY"),
        ("books", GivenTable("", "books"), {}, "table books: expected a stream of NEW_AND_OLD_IMAGES, found no stream. Set"),
        ("books", GivenTable(IMAGES, ""), {}, "table books: expected the name books, found a generated name. Give"),
        ("shop", GivenTable(IMAGES, "dev-shop"), {"StageVariable": "prod"}, "expected the name prod-shop, found dev-shop"),
        ("orders", GivenTable(IMAGES, ""), {}, "tables: expected one of shop, authors, books, found orders. Remove"),
        ("unused", GivenTable(IMAGES, ""), {}, "tables: expected one of shop, authors, books, found unused"),
        ("shop", GivenTable(IMAGES, "dev-shop"), {"Stage": "prod"}, "parameters: expected one of StageVariable, "),
        ("shop", GivenTable(IMAGES, "dev-shop"), {"StageVariable": ""}, "expected a value of StageVariable for the name"),
        ("shop", GivenTable(IMAGES, "3-shop"), {"StageVariable": 3}, "parameter StageVariable: expected a text, found 3"),
        ("authors", GivenTable(IMAGES, "a"), {"AuthorsVariable": "b"}, "expected the name b of the parameter AuthorsVariable, found a"),
    ],
)  # fmt: skip
def test_inputs_say_how_a_table_does_not_fit(rules_file, name, given, parameters, message):
    """A message has the place, the expected value, the found value and the cure."""
    with pytest.raises(UserError) as error:
        wire(rules_file, {name: given}, parameters)
    assert message in str(error.value)


@pytest.mark.parametrize("stage", ["${Token[TOKEN.1]}", None])
def test_inputs_compare_no_name_that_they_do_not_know(rules_file, stage):
    """A token of the CDK is a value of deployment: neither a name nor a parameter that has one is compared."""
    found = GivenTable(IMAGES, None if stage is None else "prod-shop")
    assert wire(rules_file, {"shop": found}, {"StageVariable": stage} if stage else {})


def test_inputs_report_wrong_rules(rules_file, tmp_path, monkeypatch, capsys):
    """The command ends with 2 and the messages of `check`."""
    rules_file.write_text(RULES.replace("copy user.name", "copy usr.name"))
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"tables": {}, "parameters": {}})))
    assert inputs.main([str(tmp_path / "made"), "--rules", str(rules_file)]) == 2
    assert "usr" in capsys.readouterr().err


@pytest.mark.parametrize("files", [("requirements.txt",), ("requirements.txt", "template.yaml")])
def test_inputs_are_no_files_of_the_app(tmp_path, files):
    """An app of the CDK has its own requirements, and may have a template of others: the bundle gets neither."""
    for name in files:
        (tmp_path / name).write_text("aws-cdk-lib: any\n")
    assert inputs.read_project_files(tmp_path) == {}


def test_inputs_come_from_the_project_beside_the_rules(rules_file, tmp_path, monkeypatch, capsys):
    """A template and a lock beside the rules file are used, and stay as they are; paths name no folder of the machine."""
    text = inputs.make_current_files()["template.yaml"].replace("MemorySize: !Ref MemoryMegabytes", "MemorySize: 3008")
    (tmp_path / "template.yaml").write_text(text)
    (tmp_path / "requirements.txt").write_text("# none\n")
    monkeypatch.setenv("BUNDLE_PYTHON", "{}.{}".format(*sys.version_info))
    monkeypatch.setattr(inputs, "fill_bundle", lambda folder, template: folder.mkdir())
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({"tables": {}, "parameters": {}})))
    assert inputs.main([str(tmp_path / "made"), "--rules", str(rules_file)]) == 0
    made = json.loads(capsys.readouterr().out)
    template = json.loads(Path(made["template"]).read_text())
    assert template["Globals"]["Function"]["MemorySize"] == 3008
    assert template["Metadata"] == {"SyncRules": {"Rules": "rules.yaml"}}
    assert (tmp_path / "made/requirements.txt").read_text() == "# none\n"
    assert (tmp_path / "template.yaml").read_text() == text
