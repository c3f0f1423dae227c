"""The template: what is generated into it for a rules file, and what it refuses."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from sync_rules.deploy import sam_template
from sync_rules.deploy import template as templates
from sync_rules.deploy.deployment import read_deployment
from sync_rules.deploy.sam_template import list_sam_resources
from sync_rules.deploy.template import fill_template, find_rules_file, warn_of_indexes, warn_of_limits
from sync_rules.model.errors import UserError
from tests.support.cloudformation import read_template
from tests.support.depth import spread_over_night
from tests.test_house import ROOT

TEMPLATE = ROOT / "template.yaml"
TEXT = TEMPLATE.read_text()
EXAMPLES = sorted(ROOT.glob("examples/*/rules.yaml"))
SMALL = """
tables:
  {name}
entities:
  user:  {{table: shop, key: {{PK: "USER#{{user_id}}", SK: PROFILE}}}}
  order: {{table: shop, key: {{PK: "USER#{{user_id}}", SK: "ORDER#{{order_id}}"}}}}
rules:
  names: copy user.name into order.user_name
"""


def template_of(path, text=TEXT):
    """The template for a rules file, read."""
    return read_template(fill_template(text, read_deployment(path), path, TEMPLATE))


@pytest.fixture
def made(tmp_path):
    """The template for a text of rules, and for a template before it was written."""

    def of(text, template=TEXT):
        path = tmp_path / "rules.yaml"
        path.write_text(text)
        return template_of(path, template)

    return of


@pytest.fixture
def small(made):
    def of(table):
        return made(SMALL.format(name=table))

    return of


ONE = SMALL.format(name="shop: {key: {PK: S, SK: S}}")


@pytest.mark.parametrize("path", spread_over_night(EXAMPLES), ids=lambda path: path.parent.name)
def test_template_of_every_example_has_all_that_it_speaks_of(path):
    """Every resource, parameter and condition that a template refers to exists."""
    whole = template_of(path)
    known = whole["Resources"].keys() | whole["Parameters"].keys()

    def check(value):
        match value:
            case {"Ref": name} if len(value) == 1:
                assert name in known or name.startswith(("AWS::", "StreamFunction", "FanoutFunction")), name
            case {"Fn::GetAtt": [name, *_]} if not name.endswith("Role"):
                assert name in known, name
            case {"Fn::If": [condition, *_]}:
                assert condition in whole["Conditions"]
        if isinstance(value, dict):
            for inner in value.values():
                check(inner)
        elif isinstance(value, list):
            for inner in value:
                check(inner)

    check(whole)
    tables = {name for name, resource in whole["Resources"].items() if "Condition" in resource}
    assert {whole["Resources"][name]["Condition"] for name in tables} <= whole["Conditions"].keys()


def test_template_in_the_repo_is_that_of_its_rules_file():
    """The template in the repository is up to date with its rules file, as `sync-rules infra --check` says."""
    path = find_rules_file(TEXT, TEMPLATE)
    assert path.parent.name == "organisations-users-tickets"
    assert fill_template(TEXT, read_deployment(path), path, TEMPLATE) == TEXT


def test_template_has_a_parameter_for_each_variable_and_gives_it_to_the_functions(small):
    """The functions load the same rules file, and find its variables set."""
    whole = small('shop: {name: "${STAGE:-dev}-${TEAM}", key: {PK: S, SK: S}}')
    assert whole["Parameters"]["StageVariable"]["Default"] == "dev"
    assert "Default" not in whole["Parameters"]["TeamVariable"]
    variables = whole["Globals"]["Function"]["Environment"]["Variables"]
    assert (variables["STAGE"], variables["TEAM"]) == ({"Ref": "StageVariable"}, {"Ref": "TeamVariable"})


def ids_of(whole):
    """Every logical id that CloudFormation will see."""
    made = (one for name, resource in whole["Resources"].items() for one in list_sam_resources(name, resource))
    return Counter([*whole["Parameters"], *whole["Resources"], *made])


@pytest.mark.parametrize(
    "name", ["BUCKET", "STREAM_ROLE", "FANOUT_FUNCTION_QUEUE", "SHOP_TABLE", "STREAM_FUNCTION_SHOP"]
)
def test_template_has_a_variable_of_any_name(small, name):
    """None of them is a resource of ours, nor of SAM's, nor another parameter."""
    whole = small(f'shop: {{name: "${{{name}:-shop}}", key: {{PK: S, SK: S}}}}')
    assert ids_of(whole).most_common(1)[0][1] == 1


def test_template_takes_the_stream_of_its_table_alone(small, made):
    """The ARN of another table's stream is refused before anything is deployed, where the table's name is known."""
    fixed = small("shop: {name: my.shop, key: {PK: S, SK: S}}")["Parameters"]["ShopStreamArn"]["AllowedPattern"]
    begun = "arn:aws:dynamodb:eu-west-1:123456789012:table"
    assert re.fullmatch(fixed, f"{begun}/my.shop/stream/2026-01-01T00:00:00.000")
    assert re.fullmatch(fixed, "")
    for other in ("myxshop", "my.shops", "orders"):
        assert not re.fullmatch(fixed, f"{begun}/{other}/stream/2026-01-01T00:00:00.000")
    varied = small('shop: {name: "${STAGE}-shop", key: {PK: S, SK: S}}')["Parameters"]["ShopStreamArn"]
    assert re.fullmatch(varied["AllowedPattern"], f"{begun}/dev-shop/stream/2026-01-01T00:00:00.000")
    known = small(f'shop: {{name: "{begun}/shop", key: {{PK: S, SK: S}}}}')["Parameters"]["ShopStreamArn"]
    assert re.fullmatch(known["AllowedPattern"], f"{begun}/shop/stream/1")
    assert not re.fullmatch(known["AllowedPattern"], f"{begun}/shops/stream/1")
    assert not re.fullmatch(known["AllowedPattern"], "")


ONE_DEFAULT = """shop:  {name: "users-${STAGE:-a}", key: {PK: S, SK: S}}
  other: {name: "orders-${STAGE}", key: {id: S}}"""
TWO_TABLES = ONE.replace("  shop:", "  Shop: {key: {PK: S, SK: S}}\n  shop:").replace(
    "user:  {table: shop", "user: {table: Shop"
)


def named(name):
    """Rules on a table of this name."""
    return SMALL.format(name=f'shop: {{name: "{name}", key: {{PK: S, SK: S}}}}')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (named("${SYNC_RULES_FILE}"),
         "rules.yaml:3: variable SYNC_RULES_FILE would be given to the functions of .*, and the template itself has"),
        (named("${stage}-${STAGE}"),
         r"rules.yaml:3: variable STAGE would be StageVariable in .*, and variable stage \(line 3\) has that name"),
        (named("${AWS_REGION}-shop"), "Lambda reserves variables that begin with .*: give AWS_REGION another name"),
        (named("${_STAGE}-shop"), "yaml:3: Lambda reserves variables .*: give _STAGE another name"),
        (SMALL.format(name=ONE_DEFAULT.replace("${STAGE}", "${STAGE:-b}")),
         r"rules.yaml:4: variable STAGE has the default 'b', and 'a' in line 3"),
        (ONE.replace("table: shop", "table: state").replace("  shop:", "  state:"),
         r"rules.yaml:3: table state would be StateTable in .*, and the template itself"),
        (TWO_TABLES, r"rules.yaml:4: table shop would be .*, and table Shop \(line 3\) has that name"),
        (ONE.replace("shop", "lagAlarm").replace("names:", "stream-function:"),
         r"yaml:8: rule stream-function would be .*, and table lagAlarm \(line 3\)"),
    ],
    ids=["of the template", "of another", "Lambda's", "underscore", "defaults", "table", "tables", "alarm"],
)  # fmt: skip
def test_template_refuses_names_that_are_taken(made, text, told):
    """A parameter or a resource is never two things at once, and no deployment fails for the name of a variable."""
    with pytest.raises(UserError, match=told):
        made(text)


def test_template_takes_one_default_beside_none(made):
    """A parameter has one default. None beside one is none too many."""
    assert made(SMALL.format(name=ONE_DEFAULT))["Parameters"]["StageVariable"]["Default"] == "a"


def test_template_refuses_a_queue_that_gives_out_what_is_worked_on(made):
    """A function timeout too long for the queue's visibility is refused with the visibility needed."""
    raised = TEXT.replace("Timeout: 180 ", "Timeout: 300 ")
    with pytest.raises(
        UserError, match=r"FanoutFunction may take 300 seconds .* for 1080 .*: set that to 1800 or more"
    ):
        made(ONE, raised)
    made(ONE, raised.replace("VisibilityTimeout: 1080", "VisibilityTimeout: 1800"))


def test_template_lets_functions_run_for_as_long_as_their_state_machine_waits(made):
    """A state machine waits a minute longer than Lambda runs a function; a longer Timeout is refused."""
    waits = re.findall(r'"TimeoutSeconds": (\d+),\n +"ResultPath', (ROOT / "infra/machine.asl.json").read_text())
    assert waits == [str(sam_template.MACHINE_WAITS_SECONDS)] * 3
    made(ONE, TEXT.replace("Timeout: 900", "Timeout: 1800"))
    with pytest.raises(UserError, match=r"BackfillFunction may take 1801 seconds .*: set Timeout to 1800 or less"):
        made(ONE, TEXT.replace("Timeout: 900", "Timeout: 1801"))


@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("Runtime", "python3.10", "python3.11, python3.12, python3.13, python3.14, python3.15"),
        ("Runtime", "nodejs26.x", "python3.11"),
        ("Architectures", "[riscv64]", "arm64, x86_64"),
    ],
)
def test_template_refuses_a_machine_that_sync_rules_does_not_run_on(made, name, found, expected):
    """A Runtime or a processor of the template that no build is for is refused with the possible ones."""
    wrong = re.sub(rf"^( +{name}: ).*", rf"\g<1>{found}", TEXT, flags=re.MULTILINE)
    with pytest.raises(
        UserError, match=f"{name} of the functions: expected one of {expected}.*found {found.strip('[]')}"
    ):
        made(ONE, wrong)
    mixed = TEXT.replace("      Timeout: 180 ", "      Runtime: python3.13\n      Timeout: 180 ")
    with pytest.raises(UserError, match=r"the same for all, found python3\.13, python3\.14"):
        made(ONE, mixed)


INDEXED = "shop: {{key: {{PK: S, SK: S}}, indexes: {{{}}}}}"


def indexed(indexes):
    """Rules on a table with these indexes."""
    return SMALL.format(name=INDEXED.format(indexes))


def timed(ttl):
    """Rules that make the attribute of a Time to Live, or none."""
    rule = f"derive: game.{ttl or 'label'}, as: '{'ttl(ended_at, 60d)' if ttl else '{ended_at}'}'"
    return f"tables: {{games: {{key: {{id: S}}}}}}\nentities: {{game: {{table: games}}}}\nrules: {{x: {{{rule}}}}}\n"


@pytest.mark.parametrize(
    ("rules", "before", "after", "told"),
    [
        (indexed, "by_a: {a: S}", "by_a: {a: S}", []),
        (indexed, "by_a: {a: S}", "by_a: {a: S}, by_b: {b: S}", []),
        (indexed, "by_a: {a: S}, by_b: {b: S}", "by_a: {a: S}", ["ShopTable is left without index by_b"]),
        (indexed, "by_a: {a: S}", "by_a: {c: S}", ["index by_a of ShopTable has changed"]),
        (indexed, "by_a: {a: S}", "by_a: {a: S}, mine: {partition: {PK: S}, sort: {a: S}, local: true}",
         ["makes a new, empty table"]),
        (indexed, "by_a: {a: S}", "by_b: {b: S}", ["left without index by_a", "2 indexes more or less (by_a, by_b)"]),
        (timed, "gone", "gone", []),
        (timed, None, "gone", []),
        (timed, "gone", "ends", ["goes from gone to ends"]),
        (timed, "gone", None, ["left without Time to Live on gone"]),
    ],
)  # fmt: skip
def test_template_warns_of_what_a_deployment_takes_away(rules, before, after, told, tmp_path):
    """An index that the rules no longer have is deleted by the next deployment, and two are more than one makes.
    CloudFormation refuses another attribute of Time to Live, and may leave on what the rules no longer have.
    """
    path = tmp_path / "rules.yaml"
    texts = []
    for one in (before, after):
        path.write_text(rules(one))
        texts.append(fill_template(TEXT, read_deployment(path), path, TEMPLATE))
    found = list(warn_of_indexes(*texts, TEMPLATE))
    assert len(found) == len(told)
    assert all(one in warning for one, warning in zip(told, found, strict=True))


def test_template_warns_near_the_limits_of_cloudformation(monkeypatch):
    """Before a deployment fails for it."""
    assert not list(warn_of_limits(TEXT, TEMPLATE))
    monkeypatch.setattr(templates, "RESOURCES_MAX", 100)
    (warning,) = warn_of_limits(TEXT, TEMPLATE)
    assert "CloudFormation takes 100" in warning
