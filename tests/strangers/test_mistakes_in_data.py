"""Small mistakes of a stranger that only the data shows: each is named before the first write, with a cure that works.

`check` cannot see these. A sample of the tables does: plan names the mistake, backfill and run stop before they write.
tests/unit/audit/test_links.py has each finding of the sample.
The cure, applied literally, leaves the values that the rule means.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sync_rules.adapters import aws
from sync_rules.cli import main
from sync_rules.language.load import parse_rules
from tests.support import engines

TABLES = """\
tables:
  users:   {{name: {prefix}users, key: {{user_id: S}}}}
  orders:  {{name: {prefix}orders, key: {{order_id: S}}, indexes: {{by_user: {{user_id: S}}, by_buyer: {{buyer: S}}}}}}
  forums:  {{name: {prefix}forums, key: {{Name: S}}}}
  threads: {{name: {prefix}threads, key: {{ForumName: S, Subject: S}}}}
  ledger:  {{name: {prefix}ledger, key: {{PK: S, SK: S}}}}
entities:
  user:   {{table: users}}
  order:  {{table: orders}}
  forum:  {{table: forums}}
  thread: {{table: threads}}
rules:
"""
Item = dict[str, dict[str, str]]


def users() -> list[Item]:
    return [{"user_id": {"S": f"u-{n}"}, "name": {"S": f"N{n}"}} for n in range(3)]


def orders(link: str = "user_id", **copies: str) -> list[Item]:
    return [
        {"order_id": {"S": f"{n}"}, link: {"S": f"u-{n % 3}"}, **{name: {"S": v} for name, v in copies.items()}}
        for n in range(6)
    ]


FORUMS: list[Item] = [{"Name": {"S": "DynamoDB"}, "Threads": {"N": "6"}}, {"Name": {"S": "S3"}, "Threads": {"N": "0"}}]
THREADS: list[Item] = [{"ForumName": {"S": "DynamoDB"}, "Subject": {"S": f"t{n}"}} for n in range(6)]


class Mistake(NamedTuple):
    """A rule that passes `check`, and tables where it hits nothing. The output offers `offer`. `cured` is the rule with
    that cure, empty where a person must change the data. `kept` names a table and the attribute that the wrong rule
    would damage.
    """

    rule: str
    tables: dict[str, list[Item]]
    offer: str
    cured: str
    kept: tuple[str, str]
    after: list[str]  # the values of the attribute `kept` after a backfill of the cured rule


MISTAKES = {
    "a typo in the attribute of the source": Mistake(
        "copy user.nmae into order.user_name",
        {"users": users(), "orders": orders(user_name="by hand")},
        "write name in place of nmae",
        "copy user.name into order.user_name",
        ("orders", "user_name"),
        ["N0", "N0", "N1", "N1", "N2", "N2"],
    ),
    "a copy whose link is another attribute": Mistake(
        "copy user.name into order.user_name",
        {"users": users(), "orders": orders("buyer", user_name="by hand")},
        "link: {user_id: buyer}",
        "{copy: user.name, into: order.user_name, link: {user_id: buyer}}",
        ("orders", "user_name"),
        ["N0", "N0", "N1", "N1", "N2", "N2"],
    ),
    "a count whose link is forgotten": Mistake(
        "count thread into forum.Threads",
        {"forums": FORUMS, "threads": THREADS},
        "link: {Name: ForumName}",
        "{count: thread, into: forum.Threads, link: {Name: ForumName}}",
        ("forums", "Threads"),
        ["0", "6"],
    ),
    "a condition on a misspelled attribute": Mistake(
        "{count: thread, into: forum.Threads, link: {Name: ForumName}, where: \"Staus == 'OPEN'\"}",
        {"forums": FORUMS, "threads": [{**thread, "Status": {"S": "OPEN"}} for thread in THREADS]},
        "write Status in place of Staus",
        "{count: thread, into: forum.Threads, link: {Name: ForumName}, where: \"Status == 'OPEN'\"}",
        ("forums", "Threads"),
        ["0", "6"],
    ),
    "an attribute that no source has, and copies by hand": Mistake(
        "copy user.email into order.user_name",
        {"users": users(), "orders": orders(user_name="by hand")},
        "correct the name user.email, if it is misspelled",
        "",
        ("orders", "user_name"),
        [],
    ),
}


class Project:
    """A stranger's project on an engine: one rule, named `wrong`."""

    def __init__(self, engine: str, folder: Any, capsys: Any, mistake: Mistake) -> None:
        self.engine, self.folder, self.capsys = engine, folder, capsys
        self.prefix = engines.unique_prefix()
        self.tables = self.write(mistake.rule)
        engines.create(engine, self.tables)
        self.client = aws.dynamodb(engine)
        for table, items in mistake.tables.items():
            for item in items:
                self.client.put_item(TableName=self.tables[table].physical_name, Item=item)

    def write(self, rule: str) -> Any:
        """Write the rules file with this rule."""
        text = TABLES.format(prefix=self.prefix) + f"  wrong: {rule}\n"
        (self.folder / "rules.yaml").write_text(text)
        return parse_rules(text, {}).tables

    def call(self, verb: str, *options: str) -> tuple[int, str]:
        code = main.main([verb, "--endpoint-url", self.engine, *options])
        return code, "".join(" ".join(self.capsys.readouterr()).split())

    def items(self) -> dict[str, list[Item]]:
        found = {}
        for name, table in self.tables.items():
            items = self.client.scan(TableName=table.physical_name, ConsistentRead=True)["Items"]
            found[name] = sorted(items, key=str)
        return found

    def values(self, table: str, attribute: str) -> list[str]:
        return sorted(value for item in self.items()[table] for value in item.get(attribute, {}).values())


@pytest.fixture(params=MISTAKES)
def mistake(request) -> Mistake:
    return MISTAKES[request.param]


@pytest.fixture
def project(engine, tmp_path, capsys, monkeypatch, mistake) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SYNC_RULES_STATE_TABLE", raising=False)
    return Project(engine, tmp_path, capsys, mistake)


def test_mistake_in_data_is_named_before_the_first_write(project, mistake):
    """plan, backfill and run name the rule, the fault and the cure; the tables stay as they were. `--accept` with the
    rule's name is the one way on.
    """
    before = project.items()
    for verb, expected in (("plan", 1), ("backfill", 2), ("run", 2)):
        code, output = project.call(verb, *(["--once"] if verb == "run" else []))
        assert (verb, code) == (verb, expected), output
        assert "wrong" in output
        assert "".join(mistake.offer.split()) in output
        assert project.items() == before
    code, output = project.call("backfill", "--accept", "wrong")  # the person knows better
    assert code == 0, output


@pytest.mark.parametrize("mistake", [one for one in MISTAKES.values() if one.cured], ids=lambda one: one.offer)
def test_mistake_in_data_is_cured_literally(project, mistake):
    """With the offered rule a backfill leaves what the rule means, and plan has nothing left to say."""
    project.write(mistake.cured)
    code, output = project.call("backfill")
    assert code == 0, output
    assert project.values(*mistake.kept) == mistake.after
    code, output = project.call("plan", "--detailed-exitcode")
    assert code == 0, output


UNSEEN = Mistake(
    "copy user.nick into order.user_name",
    {"users": [*users()[:2], {**users()[2], "nick": {"S": "Z"}}], "orders": orders(user_name="by hand")},
    "",
    "copy user.name into order.user_name",
    ("orders", "user_name"),
    ["N0", "N0", "N1", "N1", "N2", "N2"],
)


@pytest.mark.parametrize("mistake", [UNSEEN], ids=["another attribute that few items have"])
def test_mistake_that_no_sample_shows_leaves_values_of_others(project, mistake, capsys):
    """`run` alone neither removes nor replaces them, and the failure records name the command that accepts the rule."""
    code, output = project.call("run", "--once")
    assert code == 0, output
    assert project.values(*mistake.kept) == ["by hand"] * 6
    records = [json.loads(line) for line in Path(".sync-rules-failures.jsonl").read_text().splitlines()]
    assert {(one["rule"], one["table"]) for one in records} == {("wrong", "orders")}
    assert {one["reason"].partition(":")[0] for one in records} == {"NotAccepted"}
    (command,) = {one["reason"].split("`")[1] for one in records}
    assert command == f"sync-rules backfill --endpoint-url {project.engine} --rule wrong"
    project.write(mistake.cured)
    code = main.main(command.split()[1:])
    output = capsys.readouterr().err
    assert code == 0, output
    assert project.values(*mistake.kept) == mistake.after
    user = {"user_id": {"S": "u-0"}, "name": {"S": "new"}}
    project.client.put_item(TableName=project.tables["users"].physical_name, Item=user)
    code, output = project.call("run", "--once")
    assert code == 0, output
    assert project.values(*mistake.kept) == ["N1", "N1", "N2", "N2", "new", "new"]


BOTH = Mistake(
    "{copy: [user.name, user.plan], into: order}",
    {"users": [{**user, "plan": {"S": "gold"}} for user in users()], "orders": orders()},
    "",
    "{copy: user.name, into: order.name}",
    ("orders", "plan"),
    ["gold"] * 6,
)


@pytest.mark.parametrize("mistake", [BOTH], ids=["plan"])
def test_attribute_that_an_applied_rule_no_longer_copies_stays_until_it_is_pruned(project, mistake):
    """A rule loses an attribute after it was deployed: its copies stay, and `prune` names and removes only them."""
    assert project.call("backfill")[0] == 0
    assert project.values(*mistake.kept) == mistake.after
    (project.folder / "before.yaml").write_text((project.folder / "rules.yaml").read_text())
    project.write(mistake.cured)
    for verb, options in (("plan", ["--changed"]), ("run", ["--once"]), ("backfill", ["--changed"])):
        code, output = project.call(verb, *options)
        assert (verb, code) == (verb, 0), output
        assert "removes" not in output
    assert project.values(*mistake.kept) == mistake.after
    code, output = project.call("prune", "before.yaml", "rules.yaml")
    assert (code, "plan" in output) == (1, True), output
    assert project.call("prune", "before.yaml", "rules.yaml", "--apply")[0] == 0
    assert project.values(*mistake.kept) == []
    assert project.values("orders", "name") == ["N0", "N0", "N1", "N1", "N2", "N2"]
