"""Permissions: needs follow from rules, statements from needs, roles from statements; and the tests' own IAM."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from sync_rules.deploy import roles
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.permissions import BACKFILL, FANOUT, FUNCTIONS, REDRIVE, STREAM, VERIFY, WRITE, list_needs
from sync_rules.deploy.roles import (
    ROLE_MAX_CHARACTERS,
    compute_value_limits,
    make_roles,
)
from sync_rules.model.errors import UserError
from tests.support import engines, every_kind
from tests.support.policy import ACCOUNT, arn, matches, resolved

EXAMPLES = sorted((engines.ROOT / "examples").glob("*/rules.yaml"))
SCHEMA = """
tables:
  a: {name: "${STAGE}-a", key: {a_id: S}}
  b: {name: all-b, key: {a_id: S, b_id: S}, indexes: {by_c: {c_id: S}}}
  e: {name: all-e, key: {email: S}}
  ledger: {key: {PK: S, SK: S}}
entities: {a: {table: a}, b: {table: b}, e: {table: e}}
rules:
"""


@pytest.fixture
def deploy(tmp_path):
    """Makes the deployment of rules, given as lines of a file."""

    def made(*rules: str, schema: str = SCHEMA):
        file = tmp_path / "rules.yaml"
        file.write_text(schema + "".join(f"  rule-{number}: {rule}\n" for number, rule in enumerate(rules)))
        return read_deployment(file)

    return made


VERBS = ("ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem")


def writes(deployment, function=STREAM):
    """The verbs of the writes that a function may make, by table."""
    found: dict[str, set[str]] = {}
    for need in list_needs(deployment):
        if need.function == function and need.action.endswith(VERBS):
            table = json.dumps(need.resource).rpartition("table/")[2].strip('"}')
            found.setdefault(table, set()).add(need.action.partition(":")[2])
    return {table: " ".join(sorted(verbs)) for table, verbs in found.items()}


A = "${StageVariable}-a"
PAGE = (engines.ROOT / "docs/permissions.md").read_text()
OF_ROW = {line.split("`")[1]: line for line in PAGE.splitlines() if line.startswith("| `")}


@pytest.mark.parametrize(
    ("rule", "expected", "row"),
    [
        ("copy a.name into b.name", {"all-b": "UpdateItem"}, ""),
        ("{copy: a.name, into: b.name, strict: true}", {"all-b": "UpdateItem", A: "ConditionCheckItem"}, "strict"),
        ("{copy: a.name, into: b.name, on_delete: delete}",
         {"all-b": "DeleteItem UpdateItem", A: "ConditionCheckItem"}, "on_delete: delete"),
        ("{derive: a.x, as: '{name}'}", {A: "UpdateItem"}, ""),
        ("{mirror: a, into: e, attributes: [name]}",
         {"all-e": "DeleteItem PutItem UpdateItem", A: "ConditionCheckItem"}, "mirror"),
        ("count b into a.count", {"ledger": "DeleteItem PutItem UpdateItem", A: "UpdateItem"}, "count"),
        ("min b.total into a.least",
         {"ledger": "DeleteItem PutItem", "all-b": "ConditionCheckItem", A: "UpdateItem"}, "min"),
        ("{max: b.total, into: a.most, mode: recount}", {A: "UpdateItem"}, ""),
    ],
)  # fmt: skip
def test_permissions_write_only_what_a_rule_asks_for(deploy, rule, expected, row):
    """Which writes there are follows from the rule: a check, a put or a delete only where it makes them. The page names
    all but UpdateItem in the row of the rule.
    """
    found = writes(deploy(rule))
    assert found == expected
    named = set(re.findall(r"dynamodb:(\w+)", OF_ROW[row])) if row else set()
    assert {verb for verbs in found.values() for verb in verbs.split()} - {"UpdateItem"} == named


def test_permissions_to_delete_targets_are_those_of_records(deploy):
    """Only who works on records and messages deletes targets with their source; verify and backfill write the rest."""
    deployment = deploy("{copy: a.name, into: b.name, on_delete: delete}")
    of_records = {STREAM, FANOUT, REDRIVE}
    assert {function: writes(deployment, function)["all-b"] for function in FUNCTIONS} == {
        function: "DeleteItem UpdateItem" if function in of_records else "UpdateItem" for function in FUNCTIONS
    }


def test_permissions_show_a_role_no_environment_but_its_own(tmp_path):
    """A configuration has the environment in plain text: a role with any right on functions has it on its own alone."""
    file = tmp_path / "rules.yaml"
    file.write_text(every_kind.text_of(every_kind.RULES | every_kind.EFFECTS))
    given = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": ACCOUNT, "AWS::StackName": "s" * 34}
    found = set()
    for need in list_needs(read_deployment(file)):
        if need.action.startswith("lambda:"):
            arns = {one: arn("lambda", f"function:{'s' * 34}-{one}-1A2B3C4D5E6F7") for one in (*FUNCTIONS, WRITE)}
            pattern = resolved(need.resource, given)
            assert [one for one, text in arns.items() if matches(pattern, text)] == [need.function]
            found.add(need.function)
    assert found == {STREAM, FANOUT, REDRIVE}


@pytest.mark.parametrize(
    ("rule", "reads"),
    [
        ("copy a.name into b.name", True),
        ("{copy: a.name, into: b.name, on_delete: delete}", True),
        ("{derive: b.x, as: '{name}'}", True),
        ("{derive: a.x, as: '{name}'}", False),
    ],
)
def test_permissions_to_read_what_is_paid_for(deploy, rule, reads):
    """The stream handler reads the targets that it writes on a table with a limit, to know what they cost; without one,
    their records have all that is asked.
    """
    for limit, expected in (("", False), (", max_write_units_per_second: 50", reads)):
        deployment = deploy(rule, schema=SCHEMA.replace("b_id: S}", f"b_id: S}}{limit}"))
        found = [n for n in list_needs(deployment) if n.function == STREAM and n.action.endswith("GetItem")]
        assert {need.action.partition(":")[2] for need in found if "all-b" in json.dumps(need.resource)} == (
            {"GetItem", "BatchGetItem"} if expected else set()
        )


def test_no_value_of_a_variable_makes_a_role_too_long(deploy):
    """The template takes values as long as the roles have room for, and as their names may be: IAM refuses none."""

    def length(deployment, value):
        (variable,) = deployment.variables
        policies = [one["Properties"]["Policies"][0]["PolicyDocument"] for one in make_roles(deployment).values()]
        return max(roles._count_characters(policy, {variable.parameter: value}) for policy in policies)

    def with_stage(tables):
        text = many(50, tables)
        for number in range(tables):
            text = text.replace(f"_{number:03}: {{key: ", f"_{number:03}: {{name: '${{STAGE:-a}}-{number}', key: ")
        return deploy(schema=text)

    near = with_stage(12)
    (most,) = compute_value_limits(near).values()
    assert length(near, most) <= ROLE_MAX_CHARACTERS < length(near, most + 1)
    few = with_stage(2)
    assert compute_value_limits(few) == {"StageVariable": 255 - len("-1")}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.parent.name)
def test_roles_allow_by_name(file):
    """No action has a wildcard, no statement is without a name of its own, and only what knows no resources has none."""
    for role, resource in make_roles(read_deployment(file)).items():
        (trust,) = resource["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
        (policy,) = resource["Properties"]["Policies"]
        some = policy["PolicyDocument"]["Statement"]
        assert len({statement["Sid"] for statement in some}) == len(some), role
        for statement in some:
            assert statement["Sid"].isalnum()
            assert not any("*" in action for action in statement["Action"])
            assert "*" not in statement["Resource"] or statement["Action"] == ["dynamodb:ListStreams"]


def many(rules: int, tables: int) -> str:
    """A rules file with the given numbers of rules and tables, each listed by an index of its own."""
    names = [f"customers-of-the-shop-{number:03}" for number in range(tables)]
    lines = ["tables:"]
    lines += [f"  {name}: {{key: {{{name}_id: S}}, indexes: {{by_{name}: {{owner: S}}}}}}" for name in names]
    lines += ["entities:", *(f"  e{number}: {{table: {name}}}" for number, name in enumerate(names)), "rules:"]
    for number in range(rules):
        one = number % (tables - 1)
        link = f"link: {{{names[one]}_id: owner}}"
        lines.append(f"  r{number}: {{copy: e{one}.a{number}, into: e{one + 1}.a{number}, {link}}}")
    return "\n".join(lines).replace("-", "_") + "\n"


def test_roles_that_are_too_long_are_told(deploy):
    """A role that IAM would refuse as too long is refused first, with its name, its length and the cure."""
    with pytest.raises(UserError, match=r"StreamRole would have [\d,]+ characters, and IAM allows 10,240.* Split"):
        make_roles(deploy(schema=many(50, 40)))
    assert ROLE_MAX_CHARACTERS == 10_240


# ---------------------------------------------------------------- the page
EVERYTHING = (
    "{copy: a.name, into: b.name, strict: true, on_delete: delete}",
    "count b into a.count",
    "{mirror: a, into: e, attributes: [name]}",
    "{max: b.total, into: a.most, mode: recount}",
)
STATE = {"Fn::GetAtt": ["StateTable", "Arn"]}


@pytest.mark.parametrize("function", [*FUNCTIONS, WRITE])
def test_permissions_page_names_each_action(deploy, function):
    """The page's row of a function names exactly the actions that its role allows."""
    named = set(re.findall(r"`([A-Z]\w+)`", OF_ROW[function])) - {function}
    above = {FANOUT: STREAM, BACKFILL: VERIFY, REDRIVE: FANOUT}  # whose actions on tables a row refers to
    other = function
    while other in above:
        other = above[other]
        named |= set(re.findall(r"`([A-Z]\w+)`", OF_ROW[other].split("|")[2]))
    needs = list_needs(replace(deploy(*EVERYTHING), write="function"))
    mine = [n.action for n in needs if n.function == function and n.resource != STATE]
    found = {action.partition(":")[2] for action in mine if not action.startswith("logs:")}
    assert found - named <= {"SendMessage"}  # as above
    assert named - found == set()
